"""microxcaling, Microsoft's emulation of MX: the values of every format under floor."""

import numpy as np

from mor_ref.operations.call import Arrays, Parameters
from mor_ref.verify.candidates.candidate import Answer
from mor_ref.verify.candidates.peers.peer import Peer, as_torch, cut, f32_bits, padded

_FORMATS = {
    "e4m3": "fp8_e4m3",
    "e5m2": "fp8_e5m2",
    "e2m3": "fp6_e2m3",
    "e3m2": "fp6_e3m2",
    "e2m1": "fp4_e2m1",
    "int8_mx": "int8",
}


def mx(parameters: Parameters, inputs: Arrays) -> Answer | None:
    """Return the values: the library stores no codes and no scales."""
    from mx.mx_ops import _quantize_mx

    fmt, rule, block = (parameters[name] for name in ("format", "scale_rule", "block"))
    if fmt not in _FORMATS or rule != "floor":
        return None
    x = as_torch(padded(parameters, inputs, block).astype(np.float32))
    y = _quantize_mx(x, 8, _FORMATS[fmt], axes=[-1], block_size=block, round="even")
    return {"y": f32_bits(cut(y.numpy(), inputs))}


PEER = Peer(
    "microxcaling",
    ("torch", "mx"),
    "pip install torch, and take microxcaling from https://github.com/microsoft/microxcaling",
    "MX under floor",
    {"mx": mx},
)
