"""MMA-Sim, Microsoft's model of matrix cores: dot products, and decoding by a product with 1."""

from typing import Any

import numpy as np

from mor_ref.definitions.dot import DOT_PROFILES
from mor_ref.definitions.formats import formats
from mor_ref.operations.call import Arrays, Parameters
from mor_ref.verify.candidates.candidate import Answer
from mor_ref.verify.candidates.peers.mmasim_dots import (
    dot_of_mmasim,
    fused,
    is_simulated,
    needs_compiler,
    operation,
    simulators,
)
from mor_ref.verify.candidates.peers.peer import Peer, f32_bits

_DTYPES = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
_ROWS, _COLUMNS, _DEPTH = 16, 8, 32  # of an instruction
_ENDS_EARLY = ("e_fdpa", "tr_fdpa", "gtr_fdpa")  # families in which a sum can be -0


def decode(parameters: Parameters, inputs: Arrays) -> Answer | None:
    """Multiply each code by 1, with an `mma` of binary32 results on RTX Blackwell."""
    import torch

    fmt = parameters["format"]
    if fmt not in _DTYPES:
        return None
    dtype = getattr(torch, _DTYPES[fmt])
    nvidia, _ = simulators()
    unit = nvidia.MMA("RTX Blackwell", f"m16n8k32.kind::f8f6f4.f32.{fmt}.{fmt}.f32")
    one, zeros = _codes(dtype, _DEPTH, _COLUMNS), torch.zeros(_ROWS, _COLUMNS)
    one[0, 0] = 1.0
    codes, values = inputs["code"], []
    for start in range(0, len(codes), _ROWS):
        some = codes[start : start + _ROWS]
        left = _codes(dtype, _ROWS, _DEPTH)
        left.view(torch.uint8)[: len(some), 0] = torch.from_numpy(some.copy())
        values.append(unit(left, one, zeros)[: len(some), 0].numpy())
    return {"value": f32_bits(np.concatenate(values))}


def dot(parameters: Parameters, inputs: Arrays) -> Answer | None:
    """Add up by the instruction of the profile; zeros fill its last chunk.

    On CDNA 1 and 3 the last instruction is as many chunks as there are: a whole chunk of zeros
    would lose the sign of a -0. Nothing fills an instruction of FMA.
    """
    profile = DOT_PROFILES[parameters["dot_profile"]]
    if not is_simulated(profile) or (needs_compiler(profile) and fused() is None):
        return None
    of = formats[parameters["format_a"]], formats[parameters["format_b"]]
    name, block = parameters.get("scale_format"), parameters.get("scale_block")
    _, length = operation(profile, of, name, block)
    size = {"f32_fma": 1}.get(profile.family, length)
    more = -inputs["a"].shape[1] % (profile.chunk if profile.family in _ENDS_EARLY else size)
    a, b = (np.pad(inputs[one], ((0, 0), (0, more))) for one in "ab")
    scales, fmt = None, formats[name] if name else None
    if fmt is not None and block:
        missing = a.shape[1] // block - inputs["scale_a"].shape[1]
        one = fmt.bias << fmt.mantissa_bits
        scale_a, scale_b = (
            np.pad(inputs[field], ((0, 0), (0, missing)), constant_values=one)
            for field in ("scale_a", "scale_b")
        )
        scales = scale_a, scale_b
    c = inputs["c"].view(np.float32)
    with np.errstate(all="ignore"):
        return {"result": dot_of_mmasim(a, b, c, profile, of, scales, fmt, block)}


def _codes(dtype: Any, rows: int, columns: int) -> Any:
    import torch

    return torch.zeros(rows, columns, dtype=torch.uint8).view(dtype)


PEER = Peer(
    "mmasim",
    ("torch", "mmasim"),
    "pip install torch mmasim==2.1.1",
    "codes of e4m3 and e5m2, and dot products of the processors of NVIDIA and AMD",
    {"decode": decode, "dot": dot, "dot_scaled": dot},
)
