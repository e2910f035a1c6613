"""The operands of `matmul`: records and arrays as rows along K, with their scales and rungs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.dequantization import Dequantizable
from mor_ref.api.dot import codes_from
from mor_ref.api.encoding import encode
from mor_ref.api.mx import Mx
from mor_ref.api.nvfp4 import Nvfp4
from mor_ref.api.policies import MorResult
from mor_ref.api.quantization import Quantized
from mor_ref.arrays import Bits, codes_in
from mor_ref.definitions.dot import operand_format
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats

_BF16, _F32 = formats["bf16"], formats["f32"]


@dataclass(frozen=True, eq=False)
class Transposed:
    """A record or an array whose columns `matmul` takes as rows."""

    of: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the transpose."""
        return shape_of(self.of)[::-1]


@dataclass(frozen=True, eq=False)
class Rung:
    """One representation of an operand: codes (rows, K), and its blocks.

    `scale` has the factor of each block of `tile`, and `codes_of_scale` its code, if an instruction
    takes it. `overall` has one factor of all blocks, or one for each row of the record, which are
    columns here if it `is_flipped`.
    """

    codes: Bits
    fmt: Format
    tile: tuple[int, int]
    scale: NDArray[np.float64] | None = None
    codes_of_scale: Bits | None = None
    scale_format: Format | None = None
    overall: NDArray[np.float32] | None = None
    is_flipped: bool = False

    @property
    def transposed(self) -> "Rung":
        """The same of the transpose."""
        return Rung(
            self.codes.T,
            self.fmt,
            self.tile[::-1],
            None if self.scale is None else self.scale.T,
            None if self.codes_of_scale is None else self.codes_of_scale.T,
            self.scale_format,
            self.overall,
            not self.is_flipped,
        )

    def of_all_blocks(self) -> NDArray[np.float32]:
        """Return the factor of each row that all of its blocks share."""
        if self.overall is None:
            return np.ones(len(self.codes), np.float32)
        if self.overall.size > 1 and self.is_flipped:
            raise ValueError(
                "a record of quantize_nvfp4 has a scale for each place of K; quantize the "
                "transpose, and give transposed(...) of the record"
            )
        return np.broadcast_to(self.overall, len(self.codes)).astype(np.float32)

    def of_rows(self, grid: NDArray[Any]) -> NDArray[Any]:
        """Return an entry of each block for each row instead."""
        return np.repeat(grid, self.tile[0], axis=0)[: len(self.codes)]


@dataclass(frozen=True, eq=False)
class Side:
    """An operand: its rungs by index, and the choice of each unit.

    `as_bf16` and `as_f32` return the numbers of all units as codes.
    """

    name: str
    rungs: tuple[Rung | None, ...]
    choice: NDArray[np.uint8]
    unit: tuple[int, int]
    shape: tuple[int, int]
    is_plain: bool
    as_bf16: Callable[[], Bits]
    as_f32: Callable[[], Bits]

    @property
    def is_mixed(self) -> bool:
        """Whether it is a result of `mor`."""
        return self.name == "mor"

    @property
    def transposed(self) -> "Side":
        """The same of the transpose."""
        return Side(
            self.name,
            tuple(rung and rung.transposed for rung in self.rungs),
            self.choice.T,
            self.unit[::-1],
            self.shape[::-1],
            self.is_plain,
            lambda: self.as_bf16().T,
            lambda: self.as_f32().T,
        )

    def chosen(self, k: int) -> NDArray[np.uint8]:
        """Return the rung of each row at place k."""
        column = self.choice[:, k // self.unit[1]]
        return np.repeat(column, self.unit[0])[: self.shape[0]]

    def places(self) -> set[int]:
        """Return the places of K where a unit or a block ends."""
        sides = {self.unit[1]} | {rung.tile[1] for rung in self.rungs if rung is not None}
        return {k for side in sides for k in range(side, self.shape[1], side)}


def shape_of(x: Any) -> tuple[int, ...]:
    """Return the shape of a record or an array."""
    if isinstance(x, Transposed):
        return x.shape
    if isinstance(x, MorResult):
        return x.output.shape
    if isinstance(x, Dequantizable):
        return x.codes.shape
    shape: tuple[int, ...] = np.shape(x)
    return shape


def side_of(x: Any, argument: str) -> Side:
    """Return an operand as rows; K is its last axis."""
    if isinstance(x, Transposed):
        return side_of(x.of, argument).transposed
    is_record = isinstance(x, MorResult | Dequantizable)
    fmt = None if is_record else _format_of(x, argument)
    shape = shape_of(x)
    if len(shape) != 2:
        raise ValueError(f"{argument} has the shape {shape}; give a matrix, rows and columns")
    rows, columns = shape
    whole = (max(rows, 1), max(columns, 1))
    none = np.zeros((1, 1), np.uint8)
    if fmt is not None:
        codes = codes_from(x, fmt, argument)
        return Side(
            "array", (Rung(codes, fmt, whole),), none, whole, (rows, columns), True,
            lambda: _recoded(codes, fmt, _BF16), lambda: _recoded(codes, fmt, _F32),
        )  # fmt: skip
    if isinstance(x, MorResult):
        rungs = tuple(_rung_of_record(x.quantized.get(name)) for name in x.ladder)
        return Side(
            "mor", rungs, x.choice, x.units.block, (rows, columns), False,
            lambda: x.output, lambda: x.output.astype(np.uint32) << np.uint32(16),
        )  # fmt: skip
    return Side(
        type(x).__name__, (_rung_of_record(x),), none, whole, (rows, columns), False,
        lambda: encode(x.dequantize(), "bf16", overflow="ieee"),
        lambda: x.dequantize().view(np.uint32),
    )  # fmt: skip


def _recoded(codes: Bits, fmt: Format, to: Format) -> Bits:
    """Return the codes of the same numbers in another format."""
    from mor_ref.engine.decoding import decode  # imports Numba

    return encode(decode(codes.reshape(-1), fmt), to, overflow="ieee").reshape(codes.shape)


def _format_of(x: Any, argument: str) -> Format:
    """Return the format of an array, which is its dtype (GEM-002)."""
    found = codes_in(x)
    name = found.format
    if name is None and getattr(x, "dtype", None) == np.int8:
        name = "int8"
    if name is None or found.packed:
        raise TypeError(
            f"{argument} is of type {type(x).__name__} and dtype {getattr(x, 'dtype', None)}; give "
            "a record of mor, quantize, quantize_mx or quantize_nvfp4, or an array whose dtype is "
            "a format"
        )
    return operand_format(name)


def _rung_of_record(x: Any) -> Rung | None:
    """Return the codes and scales of a record (GEM-003); None if it has no codes."""
    from mor_ref.engine.dot_operands import scale_numbers  # imports Numba
    from mor_ref.engine.matmul import decode_scales

    if isinstance(x, Quantized):
        scale = decode_scales(x.scale).astype(np.float64).reshape(x.partition.grid)
        return Rung(x.codes, x.fmt, x.partition.block, scale)
    if isinstance(x, Mx):
        e8m0 = formats["e8m0"]
        return Rung(x.codes, x.fmt, x.tile, scale_numbers(x.scale, e8m0), x.scale, e8m0)
    if isinstance(x, Nvfp4):
        e4m3 = formats["e4m3"]
        overall = x.global_decode_scale.reshape(-1)
        numbers = scale_numbers(x.block_scale, e4m3)
        return Rung(x.codes, x.fmt, x.tile, numbers, x.block_scale, e4m3, overall)
    return None
