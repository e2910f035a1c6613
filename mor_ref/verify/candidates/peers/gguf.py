"""gguf, the Python code of llama.cpp: MXFP4."""

import numpy as np

from mor_ref.operations.call import Arrays, Parameters
from mor_ref.verify.candidates.candidate import Answer
from mor_ref.verify.candidates.peers.peer import Peer, cut, f32_bits, padded


def mx(parameters: Parameters, inputs: Arrays) -> Answer | None:
    """Quantize to blocks of a scale and 16 bytes: low nibbles, then high nibbles of 32 numbers."""
    from gguf import GGMLQuantizationType, quants

    fmt, rule, block = (parameters[name] for name in ("format", "scale_rule", "block"))
    if (fmt, rule, block) != ("e2m1", "floor", 32):
        return None
    x = padded(parameters, inputs, 32).astype(np.float32)
    with np.errstate(all="ignore"):
        found = quants.quantize(x, GGMLQuantizationType.MXFP4)
        y = quants.dequantize(found, GGMLQuantizationType.MXFP4)
    blocks = found.reshape(len(x), -1, 17)
    pairs = blocks[..., 1:]
    codes = np.concatenate([pairs & 15, pairs >> 4], axis=-1).reshape(x.shape)
    return {
        "scale": np.ascontiguousarray(blocks[..., 0]),
        "code": cut(codes, inputs),
        "y": f32_bits(cut(y, inputs)),
    }


PEER = Peer("gguf", ("gguf",), "pip install gguf==0.19.0", "mxfp4:floor:32", {"mx": mx})
