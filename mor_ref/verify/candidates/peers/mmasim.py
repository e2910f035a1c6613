"""MMA-Sim, Microsoft's model of tensor cores: the decoding of small floats, by a product with 1."""

from typing import Any

import numpy as np

from mor_ref.operations.operation import Arrays, Parameters
from mor_ref.verify.candidates.candidate import Answer
from mor_ref.verify.candidates.peers.peer import Peer, f32_bits

_DTYPES = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
_ROWS, _COLUMNS, _DEPTH = 16, 8, 32  # of an instruction


def decode(parameters: Parameters, inputs: Arrays) -> Answer | None:
    """Multiply each code by 1, with an `mma` of binary32 results on RTX Blackwell."""
    import torch
    from mmasim.nv_ptx import MMA

    fmt = parameters["format"]
    if fmt not in _DTYPES:
        return None
    dtype = getattr(torch, _DTYPES[fmt])
    unit = MMA("RTX Blackwell", f"m16n8k32.kind::f8f6f4.f32.{fmt}.{fmt}.f32")
    one, zeros = _codes(dtype, _DEPTH, _COLUMNS), torch.zeros(_ROWS, _COLUMNS)
    one[0, 0] = 1.0
    codes, values = inputs["code"], []
    for start in range(0, len(codes), _ROWS):
        some = codes[start : start + _ROWS]
        left = _codes(dtype, _ROWS, _DEPTH)
        left.view(torch.uint8)[: len(some), 0] = torch.from_numpy(some.copy())
        values.append(unit(left, one, zeros)[: len(some), 0].numpy())
    return {"value": f32_bits(np.concatenate(values))}


def _codes(dtype: Any, rows: int, columns: int) -> Any:
    import torch

    return torch.zeros(rows, columns, dtype=torch.uint8).view(dtype)


PEER = Peer(
    "mmasim",
    ("torch", "mmasim"),
    "pip install torch mmasim==2.1.1 ninja, and a compiler of C++",
    "codes of e4m3 and e5m2",
    {"decode": decode},
)
