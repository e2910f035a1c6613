"""Quantization with scales: the public function and its record."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.tracing import untraced
from mor_ref.arguments import known_name
from mor_ref.arrays import BF16, Numbers, dequantized_dtype, numbers_from
from mor_ref.definitions.blocks import Cut, Partition, partition
from mor_ref.definitions.format import Format
from mor_ref.definitions.scales import SCALINGS, Scaling, check_group, scaled_format

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from mor_ref.engine.strips import TileScales

_ULP_OF_ONE = 2.0**-23


@dataclass(frozen=True, eq=False)
class ErrorSums:
    """The relative errors of units, in integers: add them in any order, the bits are the same.

    `sum` is of r * 2^23 over the `nonzero` finite elements that are not zero; `nonfinite` counts
    the elements that are not finite, or would not be after quantization.
    """

    sum: NDArray[np.uint64]
    nonzero: NDArray[np.uint64]
    nonfinite: NDArray[np.uint64]

    @property
    @untraced
    def mean_relative_error(self) -> NDArray[np.float64]:
        """The mean of each unit, a float, 0 where nothing counts; decisions use the integers."""
        return self.sum / np.maximum(self.nonzero, 1) * _ULP_OF_ONE

    @property
    @untraced
    def overall(self) -> float:
        """The mean relative error over all units."""
        counted = int(self.nonzero.sum())
        return int(self.sum.sum()) / counted * _ULP_OF_ONE if counted else 0.0

    @untraced
    def __repr__(self) -> str:
        units = "x".join(map(str, self.sum.shape))
        lost = int(self.nonfinite.sum())
        return (
            f"<{units} error sums, mean relative error {percent(self.overall)}, {lost} non-finite>"
        )


def error_sums(errors: NDArray[np.uint64]) -> ErrorSums:
    """The record of what the engine has along the last axis."""
    return ErrorSums(*(np.ascontiguousarray(errors[..., k]) for k in range(3)))


def percent(share: float) -> str:
    """A share as people read it: three significant digits, and 100 only if it is all."""
    digits = 3 if share >= 1 or share < 0.9995 else 6
    return f"{100 * share:.{digits}g} %"


def describe(shape: tuple[int, ...], dtype: np.dtype[Any]) -> str:
    """A shape and a dtype, such as "64x128 bfloat16"."""
    return f"{'x'.join(map(str, shape)) or 'scalar'} {dtype}"


def as_dtype(y: NDArray[np.uint32], dtype: object) -> NDArray[Any]:
    """The numbers of these bits, as float32 or rounded to bfloat16 (QNT-003)."""
    if dequantized_dtype(dtype) == np.float32:
        return y.view(np.float32)
    from mor_ref.api.encoding import encode

    return encode(y.view(np.float32), "bf16", overflow="ieee").view(BF16)


def dequantized(
    codes: NDArray[np.uint8],
    fmt: Format,
    scales: "TileScales",
    sides: tuple[int, int],
    dtype: object,
    threads: int | None,
) -> NDArray[Any]:
    """What codes stand for with their scales, for a tensor of so many rows and columns."""
    from mor_ref.engine.dequantization import dequantize

    y = dequantize(codes.reshape(-1), fmt, scales, sides, threads)
    return as_dtype(y.reshape(codes.shape), dtype)


@dataclass(frozen=True, eq=False, repr=False)
class Quantized:
    """A tensor quantized to a scaled format.

    `codes` has the shape of x. `amax`, `scale` (float32) and `error` have an entry for each block;
    `scale_exponent` (uint8: exponent + 127) too, for gam and e8m0; `scale_mantissa` (uint32) has
    one for each group, for gam.
    """

    codes: NDArray[np.uint8]
    amax: NDArray[np.float32]
    scale: NDArray[np.float32]
    scale_exponent: NDArray[np.uint8] | None
    scale_mantissa: NDArray[np.uint32] | None
    error: ErrorSums
    fmt: Format
    scaling: Scaling
    partition: Partition
    source: str
    _scales: "TileScales"  # as the engine takes them

    @untraced
    def dequantize(
        self, dtype: "np.typing.DTypeLike" = np.float32, *, threads: int | None = None
    ) -> NDArray[Any]:
        """What the codes stand for: float32, or bfloat16 as fake quantization has it."""
        sides = self.partition.rows, self.partition.columns
        return dequantized(self.codes, self.fmt, self._scales, sides, dtype, threads)

    @untraced
    def __repr__(self) -> str:
        blocks = f"{math.prod(self.partition.grid)} blocks of {_sides(self.partition.block)}"
        lost = int(self.error.nonfinite.sum())
        return (
            f"<{self.source} as {self.fmt.name}: {self.scaling} scales of {blocks}, mean relative "
            f"error {percent(self.error.overall)}, {lost} non-finite>"
        )


def _sides(sides: tuple[int, int]) -> str:
    return f"{sides[0]}x{sides[1]}"


@untraced
def quantize(
    x: "ArrayLike",
    fmt: str | Format,
    *,
    scaling: Scaling = "gam",
    block: Cut = "tensor",
    group: Cut = "tensor",
    threads: int | None = None,
) -> Quantized:
    """Quantize `x` to a format of 8 bits or fewer, with a scale for each block.

    `scaling` is "gam" (an exponent for each block, one mantissa for each group), "e8m0" (powers of
    two) or "fp32". `block` and `group` are "tensor", "row", "column" or a pair (rows, columns);
    leading axes are folded into rows. Groups need gam, and hold whole blocks.

    >>> import mor_ref, numpy as np
    >>> x = np.linspace(-3, 3, 64, dtype=np.float32).reshape(4, 16)
    >>> found = mor_ref.quantize(x, "e4m3", block=(2, 8))
    >>> found
    <4x16 float32 as e4m3: gam scales of 4 blocks of 2x8, mean relative error 2.17 %, 0 non-finite>
    >>> found.scale_exponent.tolist(), found.scale_mantissa.tolist()
    ([[134, 134], [134, 134]], [[1398101]])
    """
    target = scaled_format(fmt)
    known_name("scaling", scaling, SCALINGS)
    numbers = numbers_from(x, "x")
    cut = partition(numbers.shape, block, group)
    check_group(cut, group, scaling)
    from mor_ref.engine.scales import extremes  # imports Numba

    amax = extremes(numbers, cut, threads).amax
    found, _ = quantized_with(numbers, target, scaling, cut, amax, None, threads)
    return found


def quantized_with(
    numbers: Numbers,
    fmt: Format,
    scaling: Scaling,
    cut: Partition,
    amax: NDArray[np.uint32],
    out: NDArray[np.uint16] | None,
    threads: int | None,
) -> tuple[Quantized, "TileScales"]:
    """The record of a tensor whose largest magnitudes are known, and its scales for the engine.

    `out` takes y as bfloat16.
    """
    from mor_ref.engine.blocks import Sides
    from mor_ref.engine.quantization import quantize as quantize_numbers
    from mor_ref.engine.scales import scales_for
    from mor_ref.engine.strips import TileScales

    found = scales_for(scaling, amax, fmt, cut)
    scales = TileScales(Sides(*cut.block), found.scale, None)
    codes, errors = quantize_numbers(numbers, fmt, scales, cut, out, threads)
    record = Quantized(
        codes.reshape(numbers.shape),
        amax.view(np.float32),
        found.scale.view(np.float32),
        found.exponent,
        found.mantissa,
        error_sums(errors),
        fmt,
        scaling,
        cut,
        describe(numbers.shape, numbers.dtype),
        scales,
    )
    return record, scales
