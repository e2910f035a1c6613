"""NVIDIA Model Optimizer: MXFP8 under rceil, and NVFP4."""

from mor_ref.operations.call import Arrays, Parameters
from mor_ref.verify.candidates.candidate import Answer
from mor_ref.verify.candidates.peers.peer import (
    Peer,
    as_torch,
    bytes_of,
    cut,
    f32_bits,
    global_scale_in,
    padded,
    unpacked,
)


def mx(parameters: Parameters, inputs: Arrays) -> Answer | None:
    """Quantize by `MXFP8QTensor`."""
    import torch
    from modelopt.torch.quantization.qtensor.mxfp8_tensor import MXFP8QTensor

    if [parameters[name] for name in ("format", "scale_rule", "block")] != ["e4m3", "rceil", 32]:
        return None
    found, scale = MXFP8QTensor.quantize(as_torch(padded(parameters, inputs, 32)))
    y = found.dequantize(torch.float32, scale=scale)
    return {
        "scale": scale.numpy(),
        "code": cut(bytes_of(found._quantized_data), inputs),  # noqa: SLF001
        "y": f32_bits(cut(y.numpy(), inputs)),
    }


def nvfp4(parameters: Parameters, inputs: Arrays) -> Answer | None:
    """Quantize by `NVFP4QTensor`."""
    import torch
    from modelopt.torch.quantization.qtensor.nvfp4_tensor import NVFP4QTensor

    if parameters["profile"] != "modelopt" or parameters["tile"] != [1, 16]:
        return None
    x = as_torch(padded(parameters, inputs, 16))
    given = {"weights_scaling_factor_2": global_scale_in(parameters)}
    found, scale, g = NVFP4QTensor.quantize(x.clone(), 16, **given)
    y = found.dequantize(torch.float32, scale=scale, double_scale=g, block_sizes={-1: 16})
    codes = unpacked(bytes_of(found._quantized_data))  # noqa: SLF001
    return {
        "global_decode_scale": f32_bits(g.numpy()),
        "block_scale": bytes_of(scale),
        "code": cut(codes, inputs),
        "y": f32_bits(cut(y.numpy(), inputs)),
    }


PEER = Peer(
    "modelopt",
    ("torch", "modelopt", "requests"),
    "pip install torch nvidia-modelopt==0.47.0 requests",
    "mxfp8:rceil:32 and nvfp4:modelopt:1x16",
    {"mx": mx, "nvfp4": nvfp4},
    takes=("global_scale",),
)
