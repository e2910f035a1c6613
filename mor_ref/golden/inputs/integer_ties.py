"""Numbers next to ties of integers, where one more rounding changes the result."""

import numpy as np

from mor_ref.golden.inputs.edges import bell, in_source, narrowed
from mor_ref.golden.inputs.tensors import Tensor

# Rows whose zero points, before rounding, are within a step of a tie. Added to the lowest integer,
# they are at the tie. In the last rows, the sum of a number and the zero point is so near the
# middle of two binary32 numbers that binary64 rounds it to the middle.
_NEAR_HALVES = {
    "f32": (
        (-1.0, 33.0, 1.0), (-5.0, 29.0, 2.5), (-7.0, 63.0, -3.0), (-35.0, 115.0, 8.0),
        (-0.036679238080978394, 0.6083693504333496, 0.1),
        (-6.0, 46.421875, 0.00515461340546608), (-5.0, 39.140625, -0.01264590211212635),
        (-4.75, 24.828125, -0.06216932460665703),
    ),
    "bf16": ((-1.0, 18.0, 0.5), (-1.0, 23.0, 2.0), (-3.0, 22.0, -1.0), (-3.0, 23.0, 7.0)),
    "f16": ((-8.0, 35.0, 1.0), (-5.0, 47.0, 2.5), (-13.0, 40.0, -3.0), (-13.0, 49.0, 7.0)),
}  # fmt: skip
# A number, a scale and a zero point for each grid. Their sum is so near the middle of two binary32
# numbers that binary64 rounds it to the middle. In wide grids it is next to a tie of the integers,
# too.
ROUNDED_TWICE = {
    "int8": ((0xBE40AF7F, 0x40355C8C, -100), (0x3EF72C53, 0x3F950296, -100)),
    "uint8": ((0x3F31B7B1, 0x3FB1B6FF, 200),),
    "int4": ((0xBB3D91DA, 0x3F305269, 5), (0x3B3E8A48, 0x3FD4DC41, -6)),
    "uint4": ((0x3DC708EA, 0x40532C4B, 9), (0x3E3BE8AD, 0x40750776, 9)),
    "int16": ((0x3F006012, 0x3F802002, 20000),),
    "uint16": ((0x3F00920C, 0x3F8011FA, 32768),),
    "uint3": ((0x3D4467F5, 0x4052DE86, 5), (0xBDFC4D53, 0x400E2863, 6)),
}
# Streams whose numbers show where a narrow dtype rounds integers.
_STREAMS = {"bf16": 4495, "f16": 4346}
_WIDE = (8, 12)


def rows_near_half_zeros(source: str) -> Tensor:
    """Return rows whose zero points are just off a tie in the dtype of `source`."""
    rows = _NEAR_HALVES[source]
    x = in_source((number for row in rows for number in row), source)
    return Tensor(f"near_halves.{source}", source, x.reshape(len(rows), 3))


def rows_of_wide_grids(source: str) -> Tensor:
    """Return rows whose integers the source lacks, if the integers have 12 bits or more."""
    x = bell(_WIDE[0] * _WIDE[1], 0, _STREAMS[source]).reshape(_WIDE)
    return Tensor(f"wide_grid.{source}", source, narrowed(x, source))


def turned(tensor: Tensor) -> Tensor:
    """Return the transpose of a tensor."""
    return Tensor(tensor.name, tensor.source, np.ascontiguousarray(tensor.x.T))
