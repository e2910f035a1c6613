"""Dequantization, from codes and scales to numbers: the methods that all records share."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.border import public
from mor_ref.api.encoding import encode
from mor_ref.api.errors import ErrorSums, error_sums, percent
from mor_ref.api.packing import in_pairs
from mor_ref.arrays import (
    Bits,
    Numbers,
    code_dtype,
    copied_to,
    dequantized_dtype,
    numbers_from,
    room_for,
)
from mor_ref.definitions.blocks import Partition, partition, rows_and_columns
from mor_ref.definitions.scales import ScalingBlocks
from mor_ref.definitions.table_format import ElementFormat
from mor_ref.records import NumbersRecord
from mor_ref.tracing import untraced

if TYPE_CHECKING:
    from mor_ref.engine.strips import TileScales
    from mor_ref.engine.unrounded_y import Fill

_NIBBLE, _BYTE = 4, 8  # bits of codes that bytes hold whole


@dataclass(frozen=True, eq=False, repr=False)
class Dequantizable(NumbersRecord):
    """Codes of a format, with a scale for each tile.

    `tile` has the rows and columns of numbers that share a scale, clipped to the sides of x.
    """

    codes: Bits
    error: ErrorSums
    fmt: ElementFormat
    source: str
    tile: tuple[int, int]

    @property
    @untraced
    def packed(self) -> NDArray[np.uint8]:
        """The codes as bytes: two of 4 bits in a byte, the even one in the low nibble (VEC-005)."""
        if self.fmt.bits == _NIBBLE:
            return in_pairs(self.codes)
        if self.fmt.bits == _BYTE:
            return self.codes
        raise ValueError(
            f"packed is of codes of 4 or 8 bits, and {self.fmt.name} has {self.fmt.bits}, which "
            "each library packs in its own way; give .codes to yours"
        )

    @property
    @abstractmethod
    def _tile_scales(self) -> "TileScales":
        """The scales as the engine takes them."""

    def _as_tile_scales(self, scale: NDArray[np.float32], *, divides: bool = False) -> "TileScales":
        """Return the factors of the numbers of codes as the engine takes them."""
        from mor_ref.engine.blocks import Sides  # imports Numba
        from mor_ref.engine.strips import TileScales

        words = np.ascontiguousarray(scale).view(np.uint32)
        return TileScales(Sides(*self.tile), *((words, None) if divides else (None, words)))

    @public
    def dequantize(
        self,
        dtype: "np.typing.DTypeLike" = np.float32,
        *,
        out: NDArray[Any] | None = None,
        threads: int | None = None,
    ) -> NDArray[Any]:
        """Return the numbers that the codes stand for: float32, or rounded from it to bfloat16.

        They go to `out`, if it is given.
        """
        return self._dequantized(dtype, out, threads)

    def _dequantized(
        self, dtype: "np.typing.DTypeLike", out: NDArray[Any] | None, threads: int | None
    ) -> NDArray[Any]:
        """Return the numbers of the codes with their scales."""
        from mor_ref.engine.dequantization import dequantize  # imports Numba

        wanted, codes = dequantized_dtype(dtype), self.codes
        room, store = room_for(out, codes.shape, wanted, [codes])
        y = room if wanted == np.float32 else np.empty(codes.size, np.float32)
        sides, bits = rows_and_columns(codes.shape), y.view(np.uint32)
        dequantize(codes.reshape(-1), self.fmt, self._tile_scales, sides, bits, threads)
        if y is not room:
            encode(y, "bf16", overflow="ieee", out=room.view(np.uint16), threads=threads)
        return store(room)

    def _described(self, description: str) -> str:
        lost = int(self.error.nonfinite.sum())
        mean = percent(self.error.overall)
        return f"<{self.source} as {description}, mean relative error {mean}, {lost} non-finite>"


def check_fields(record: Dequantizable) -> None:
    """Refuse fields that do not go together, such as those of a file that somebody changed."""
    codes, tiles = record.codes, partition(record.shape, record.tile)
    if codes.dtype != code_dtype(record.fmt) or (
        codes.size and codes.max() >= record.fmt.code_count
    ):
        raise ValueError(f"codes are not codes of {record.fmt.name}")
    if tiles.block != record.tile:
        raise ValueError(f"tile is {record.tile}, and codes have the shape {record.shape}")
    _, *scales = record._tile_scales  # noqa: SLF001  # of this module
    if any(scale.shape != tiles.grid for scale in scales if scale is not None):
        raise ValueError(f"scales have not the shape {tiles.grid}")


Record = TypeVar("Record", bound=Dequantizable)


class Tried(Protocol):
    """A tensor with a representation that a policy has tried.

    `record` has `error`, for each scaling block, and `dequantize`. `sums` has the same error sums
    along the last axis.
    """

    @property
    def record(self) -> Any:
        """The record that `MorResult.quantized` has."""

    @property
    def sums(self) -> NDArray[np.uint64]:
        """The sum, nonzero and nonfinite of each scaling block."""

    def write(
        self,
        units: Partition,
        choice: NDArray[np.uint8],
        rung: int,
        out: Bits,
        threads: int | None,
    ) -> None:
        """Write y as bfloat16 into the units that took this rung (MOR-006)."""

    def fill_of_y(self, units: Partition, choice: NDArray[np.uint8], rung: int) -> "Fill":
        """Return the way to y of the units that took this rung, before any rounding (ERR-008)."""


class OutcomeOfCodes(NamedTuple, Generic[Record]):
    """A quantized tensor: its codes, and the scales and the error sums as the engine has them.

    `make` makes its record of the codes in the shape of x: callers that need the output alone,
    such as training, do not make one.
    """

    codes: Bits
    fmt: ElementFormat
    scales: "TileScales"
    sums: NDArray[np.uint64]
    make: Callable[[Bits], Record]
    shape: tuple[int, ...]

    @property
    def record(self) -> Record:
        """The record that `MorResult.quantized` has."""
        return self.make(self.codes.reshape(self.shape))

    def write(
        self,
        units: Partition,
        choice: NDArray[np.uint8],
        rung: int,
        out: Bits,
        threads: int | None,
    ) -> None:
        """Write y as bfloat16 into the units that took this rung (MOR-006)."""
        from mor_ref.engine.policies import render

        render(self.codes, self.fmt, self.scales, units, choice, rung, out, threads)

    def fill_of_y(self, units: Partition, choice: NDArray[np.uint8], rung: int) -> "Fill":
        """Return the way to y of the units that took this rung, before any rounding (ERR-008)."""
        from mor_ref.engine.unrounded_y import from_codes

        return from_codes(self.codes, self.fmt, self.scales, units, choice, rung)

    def saturated(
        self, numbers: Numbers, units: Partition, choice: NDArray[np.uint8], rung: int
    ) -> int:
        """Return how many elements saturated in the units that took this rung (TRN-011)."""
        from mor_ref.engine.saturation import count_saturated

        return count_saturated(numbers, self.fmt, self.scales, units, choice, rung)


class WithY(NumbersRecord):
    """A record that has its numbers as a field, `y`."""

    y: NDArray[np.float32]

    @untraced
    def dequantize(
        self,
        dtype: "np.typing.DTypeLike" = np.float32,
        *,
        out: NDArray[Any] | None = None,
        threads: int | None = None,
    ) -> NDArray[Any]:
        """Return a copy of y: as float32, or rounded from it to bfloat16.

        The numbers go to `out`, if it is given.
        """
        return stored_as(self.y, dtype, out, threads)


def stored_as(
    y: NDArray[np.float32],
    dtype: "np.typing.DTypeLike",
    out: NDArray[Any] | None,
    threads: int | None,
) -> NDArray[Any]:
    """Return a copy of y in `out`, if it is given: as float32, or rounded from it to bfloat16."""
    wanted = dequantized_dtype(dtype)
    if wanted == np.float32:
        return copied_to(out, y)
    room, store = room_for(out, y.shape, wanted, [y])
    bits = room.view(np.uint16)
    encode(y.reshape(-1), "bf16", overflow="ieee", out=bits, threads=threads)
    return store(room)


@dataclass(frozen=True, eq=False, repr=False)
class Values(WithY):
    """A tensor with a representation whose implementation returns y.

    `y` has the shape of x. `error` has the sums of each scaling block. There is no scale.
    """

    _ENTRIES: ClassVar[str] = "y"

    y: NDArray[np.float32]
    error: ErrorSums

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.shape)) or "scalar"
        return f"<{shape} as y, mean relative error {percent(self.error.overall)}>"


class OutcomeOfValues(NamedTuple):
    """Values, with y and the error sums as the engine has them.

    The record may have codes and scales as well, from which y does not follow block by block.
    """

    record: Any
    y: Numbers
    sums: NDArray[np.uint64]

    def write(
        self,
        units: Partition,
        choice: NDArray[np.uint8],
        rung: int,
        out: Bits,
        threads: int | None,
    ) -> None:
        """Write y as bfloat16 into the units that took this rung (MOR-006)."""
        from mor_ref.engine.policies import keep

        keep(self.y, units, choice, rung, out, threads)

    def fill_of_y(self, units: Partition, choice: NDArray[np.uint8], rung: int) -> "Fill":
        """Return the way to y of the units that took this rung, before any rounding (ERR-008)."""
        from mor_ref.engine.unrounded_y import from_numbers

        return from_numbers(self.y, units, choice, rung, rounds=False)


def values(
    numbers: Numbers,
    y: NDArray[np.float32],
    blocks: ScalingBlocks,
    out: Bits | None,
    threads: int | None,
) -> OutcomeOfValues:
    """Return a tensor with a representation, given y: for representations without a fused loop.

    `out` takes y as bfloat16.
    """
    from mor_ref.engine.measuring import measure

    quantized = numbers_from(y.reshape(numbers.shape), "y")
    sums = measure(numbers, quantized, blocks.parts, threads)
    if out is not None:
        out[:] = encode(y.reshape(-1), "bf16", overflow="ieee", threads=threads)
    return OutcomeOfValues(Values(y.reshape(numbers.shape), error_sums(sums)), quantized, sums)
