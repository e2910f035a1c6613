"""AMD Quark: the scales of MXFP4 and MXFP6 under even."""

import numpy as np

from mor_ref.operations.call import Arrays, Parameters
from mor_ref.verify.candidates.candidate import Answer
from mor_ref.verify.candidates.peers.peer import Peer, as_torch, padded

_DTYPES = {"e2m1": "fp4", "e2m3": "fp6_e2m3", "e3m2": "fp6_e3m2", "e4m3": "fp8_e4m3"}


def mx(parameters: Parameters, inputs: Arrays) -> Answer | None:
    """Return the codes of the powers of two that `even_round` computes from the amaxes."""
    from quark.torch.quantization.utils import even_round

    fmt, rule, block = (parameters[name] for name in ("format", "scale_rule", "block"))
    if fmt not in _DTYPES or rule != "even":
        return None
    x = as_torch(padded(parameters, inputs, block).astype(np.float32))
    amax = x.abs().unflatten(-1, (-1, block)).amax(-1)
    scale = even_round(amax, _DTYPES[fmt]).numpy()
    exponent = np.frexp(scale)[1] - 1
    code = np.where(np.isnan(scale), 255, exponent + 127)
    return {"scale": code.astype(np.uint8)}


PEER = Peer(
    "quark",
    ("torch", "quark"),
    "pip install amd-quark==0.13",
    "mxfp4, mxfp6_e2m3, mxfp6_e3m2 and mxfp8 under even",
    {"mx": mx},
)
