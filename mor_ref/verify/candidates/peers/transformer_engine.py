"""Transformer Engine: MXFP8 under rceil, on a GPU of compute capability 10."""

from mor_ref.operations.call import Arrays, Parameters
from mor_ref.verify.candidates.candidate import Answer
from mor_ref.verify.candidates.peers.peer import Peer, as_torch, cut, padded


def mx(parameters: Parameters, inputs: Arrays) -> Answer | None:
    """Quantize by `MXFP8Quantizer`, along rows."""
    import transformer_engine.pytorch as te
    import transformer_engine_torch as tex

    fmt, rule, block = (parameters[name] for name in ("format", "scale_rule", "block"))
    if fmt not in ("e4m3", "e5m2") or (rule, block) != ("rceil", 32):
        return None
    dtype = tex.DType.kFloat8E4M3 if fmt == "e4m3" else tex.DType.kFloat8E5M2
    x = padded(parameters, inputs, 32)
    found = te.MXFP8Quantizer(dtype, rowwise=True, columnwise=False)(as_torch(x).cuda())
    rows, blocks = len(x), x.shape[1] // 32
    return {
        "scale": found._rowwise_scale_inv.cpu().numpy()[:rows, :blocks],  # noqa: SLF001
        "code": cut(found._rowwise_data.cpu().numpy(), inputs),  # noqa: SLF001
    }


PEER = Peer(
    "transformer-engine",
    ("torch", "transformer_engine"),
    "pip install transformer-engine[pytorch]",
    "mxfp8:rceil:32 and mxfp8_e5m2:rceil:32",
    {"mx": mx},
    needs_gpu=True,
)
