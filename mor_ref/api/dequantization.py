"""Dequantization, from codes and scales to numbers: the methods that all records share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.border import public
from mor_ref.api.encoding import encode
from mor_ref.api.errors import ErrorSums, error_sums, percent
from mor_ref.arrays import Bits, Numbers, dequantized_dtype, numbers_from, room_for
from mor_ref.definitions.blocks import Partition, rows_and_columns
from mor_ref.definitions.format import Format
from mor_ref.definitions.scales import ScalingBlocks
from mor_ref.records import NumbersRecord

if TYPE_CHECKING:
    from mor_ref.engine.strips import TileScales
    from mor_ref.engine.unrounded_y import Fill


@dataclass(frozen=True, eq=False, repr=False)
class Dequantizable(NumbersRecord):
    """Codes of a format, with a scale for each tile."""

    codes: NDArray[np.uint8]
    error: ErrorSums
    fmt: Format
    source: str
    _scales: "TileScales"  # as the engine takes them

    @property
    def tile(self) -> tuple[int, int]:
        """The rows and columns of numbers that share a scale, clipped to the sides of x."""
        rows, columns = self._scales.tile
        return rows, columns

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
        from mor_ref.engine.dequantization import dequantize  # imports Numba

        wanted, codes = dequantized_dtype(dtype), self.codes
        room, store = room_for(out, codes.shape, wanted, [codes])
        y = room if wanted == np.float32 else np.empty(codes.size, np.float32)
        sides, bits = rows_and_columns(codes.shape), y.view(np.uint32)
        dequantize(codes.reshape(-1), self.fmt, self._scales, sides, bits, threads)
        if y is not room:
            encode(y, "bf16", overflow="ieee", out=room.view(np.uint16), threads=threads)
        return store(room)

    def _described(self, description: str) -> str:
        lost = int(self.error.nonfinite.sum())
        mean = percent(self.error.overall)
        return f"<{self.source} as {description}, mean relative error {mean}, {lost} non-finite>"


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

    `make` makes its record: callers that need the output alone, such as training, do not make one.
    """

    codes: NDArray[np.uint8]
    fmt: Format
    scales: "TileScales"
    sums: NDArray[np.uint64]
    make: Callable[[], Record]

    @property
    def record(self) -> Record:
        """The record that `MorResult.quantized` has."""
        return self.make()

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


@dataclass(frozen=True, eq=False)
class Values(NumbersRecord):
    """A tensor with a representation whose implementation returns y.

    `y` has the shape of x. `error` has the sums of each scaling block.
    """

    y: NDArray[np.float32]
    error: ErrorSums

    @public
    def dequantize(
        self,
        dtype: "np.typing.DTypeLike" = np.float32,
        *,
        out: NDArray[Any] | None = None,
        threads: int | None = None,
    ) -> NDArray[Any]:
        """Return y: as float32, or rounded from it to bfloat16; it goes to `out`, if given."""
        wanted = dequantized_dtype(dtype)
        if out is None and wanted == np.float32:
            return self.y
        room, store = room_for(out, self.y.shape, wanted, [self.y])
        if wanted == np.float32:
            room[...] = self.y.reshape(-1)
        else:
            bits = room.view(np.uint16)
            encode(self.y.reshape(-1), "bf16", overflow="ieee", out=bits, threads=threads)
        return store(room)


class OutcomeOfValues(NamedTuple):
    """Values, with y and the error sums as the engine has them."""

    record: Values
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
