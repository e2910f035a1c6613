"""The operands of `matmul`: records and arrays as rows along K, with their scales and rungs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.coded_blocks import Coded, CodedBlocks, Dequantized
from mor_ref.api.dot import codes_from, dtype_kind
from mor_ref.api.encoding import encode
from mor_ref.api.policies import MorResult
from mor_ref.arrays import Bits, codes_in
from mor_ref.definitions.before_blocks import Step, in_words, kept_by
from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.definitions.dot import INT8, DotProfile, operand_format
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.table_format import TableFormat
from mor_ref.records import NumbersRecord, Transposed

_BF16, _F32 = formats["bf16"], formats["f32"]


@dataclass(frozen=True, eq=False)
class Side:
    """An operand: its rungs by index, and the choice of each unit.

    `as_bf16` and `as_f32` return the numbers of all units as codes. Each segment of K asks again.
    `before` are the steps before the blocks of a record, which run along its rows (BLF-011); it
    `is_flipped` if these are the columns here.
    """

    name: str
    rungs: tuple[CodedBlocks | None, ...]
    choice: NDArray[np.uint8]
    unit: tuple[int, int]
    shape: tuple[int, int]
    is_plain: bool
    as_bf16: Callable[[], Bits]
    as_f32: Callable[[], Bits]
    before: tuple[Step, ...] = ()
    is_flipped: bool = False

    @property
    def is_mixed(self) -> bool:
        """Whether it is a result of `mor`."""
        return self.name == MorResult.__name__

    @property
    def transposed(self) -> "Side":
        """The operand of the transposed matrix."""
        return Side(
            self.name,
            tuple(rung and rung.transposed for rung in self.rungs),
            self.choice.T,
            self.unit[::-1],
            self.shape[::-1],
            self.is_plain,
            lambda: self.as_bf16().T,
            lambda: self.as_f32().T,
            self.before,
            not self.is_flipped,
        )

    def rung(self, choice: int) -> CodedBlocks | None:
        """Return the rung of a choice; None for bfloat16, which is beyond the ladder."""
        return self.rungs[choice] if choice < len(self.rungs) else None

    def chosen(self, k: int) -> NDArray[np.uint8]:
        """Return the rung of each row at place k."""
        column = self.choice[:, k // self.unit[1]]
        return np.repeat(column, self.unit[0])[: self.shape[0]]

    def check_blocks(self, profile: DotProfile) -> None:
        """Refuse a record whose codes and scales are not known (GEM-003)."""
        if not self.is_mixed and None in self.rungs:
            raise ValueError(
                f"a record of type {self.name} has no codes and scales in blocks, which "
                f"{profile.name} needs; give a record of mor, quantize, quantize_mx or "
                "quantize_nvfp4; or use profile f32_fma or f32_pairwise, which take y"
            )

    def check_steps(self, argument: str, other: "Side") -> None:
        """Refuse steps before the blocks that do not cancel in the product (BLF-011)."""
        before, there = in_words(self.before), in_words(other.before)
        if self.is_mixed and self.before:
            problem = f"{argument} is a record of mor that has {before} before the blocks of a rung"
        elif kept_by(self.before) is not None:
            problem = f"{argument} has {before} before its blocks, so its codes lack kept columns"
        elif self.before and self.is_flipped:
            problem = f"{argument} has {before} before its blocks, and not along K"
        elif self.before and self.before != other.before:
            problem = f"{argument} has {before} before its blocks, and the other one has {there}"
        else:
            return
        raise ValueError(
            f"{problem}; give two records with the same Hadamard matrices along K, or use profile "
            "f32_fma or f32_pairwise, which take y"
        )

    @property
    def ends_of_units(self) -> range:
        """The places of K where a unit ends; within a unit, a row has one rung."""
        return range(self.unit[1], self.shape[1], self.unit[1])

    def blocks_of(self, rung: CodedBlocks | None) -> int:
        """Return how long blocks of a rung are along K; those of bfloat16 are units (GEM-004)."""
        return self.unit[1] if rung is None else rung.tile[1]


def shape_of(x: Any) -> tuple[int, ...]:
    """Return the shape of a record or an array."""
    if isinstance(x, NumbersRecord):
        return x.shape
    if isinstance(x, Coded):
        return x.in_blocks().codes.shape
    shape: tuple[int, ...] = np.shape(x.dequantize() if is_record(x) else x)
    return shape


def is_record(x: Any) -> bool:
    """Return whether something has numbers, and is not an array; tensors of torch have both."""
    return isinstance(x, Dequantized) and not hasattr(x, "dtype")


def side_of(x: Any, argument: str) -> Side:
    """Return an operand as rows; K is its last axis."""
    if isinstance(x, Transposed):
        return side_of(x.of, argument).transposed
    fmt = None if is_record(x) else _format_of(x, argument)
    shape = shape_of(x)
    if len(shape) != 2:
        raise ValueError(f"{argument} has the shape {shape}; give a matrix, rows and columns")
    rows, columns = shape
    whole = (max(rows, 1), max(columns, 1))
    none = np.zeros((1, 1), np.uint8)
    if fmt is not None:
        codes = codes_from(x, fmt, argument)
        return Side(
            "array", (CodedBlocks(codes, fmt, whole),), none, whole, (rows, columns), True,
            cache(lambda: _recoded(codes, fmt, _BF16)), cache(lambda: _recoded(codes, fmt, _F32)),
        )  # fmt: skip
    if isinstance(x, MorResult):
        records = [x.quantized.get(name) for name in x.ladder]
        rungs = tuple(map(_blocks_of, records))
        return Side(
            type(x).__name__, rungs, x.choice, x.units.block, (rows, columns), False,
            lambda: x.output, lambda: x.output.astype(np.uint32) << np.uint32(16),
            next(filter(None, map(_steps_of, records)), ()),
        )  # fmt: skip
    return Side(
        type(x).__name__, (_blocks_of(x),), none, whole, (rows, columns), False,
        cache(lambda: encode(x.dequantize(), "bf16", overflow="ieee")),
        lambda: x.dequantize().view(np.uint32), _steps_of(x),
    )  # fmt: skip


def _recoded(codes: Bits, fmt: Format, to: Format) -> Bits:
    """Return the codes of the same numbers in another format."""
    from mor_ref.engine.decoding import decode  # imports Numba

    return encode(decode(codes.reshape(-1), fmt), to, overflow="ieee").reshape(codes.shape)


def _format_of(x: Any, argument: str) -> Format:
    """Return the format of an array, which is its dtype (GEM-002)."""
    entries = codes_in(x)
    name = entries.format
    if name is None and str(getattr(x, "dtype", "")).removeprefix("torch.") == INT8.name:
        name = "int8"
    if name is None or entries.packed:
        view = "; codes of e4m3 are .view(ml_dtypes.float8_e4m3fn)" if dtype_kind(x) == "u" else ""
        raise TypeError(
            f"{argument} is of type {type(x).__name__} and dtype {getattr(x, 'dtype', None)}; give "
            "a record of mor, quantize, quantize_mx or quantize_nvfp4, or an array whose dtype is "
            f"a format{view}"
        )
    return operand_format(name)


def _blocks_of(x: Any) -> CodedBlocks | None:
    """Return the codes and scales of a record (GEM-003); None if it does not say them."""
    is_table = isinstance(getattr(x, "fmt", None), TableFormat)
    is_whole = not is_table and kept_by(_steps_of(x)) is None
    return x.in_blocks() if isinstance(x, Coded) and is_whole else None


def _steps_of(x: Any) -> tuple[Step, ...]:
    """Return the steps before the blocks of a record (BLF-011)."""
    block_format = getattr(x, "block_format", None)
    return block_format.before if isinstance(block_format, BlockFormat) else ()
