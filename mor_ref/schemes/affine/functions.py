"""Integers with zero points: the public function and its record."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.border import public
from mor_ref.api.dequantization import WithY
from mor_ref.api.errors import ErrorSums, error_sums, percent
from mor_ref.api.given_scales import finite_binary32
from mor_ref.argument_checks import positive_binary32
from mor_ref.arrays import BF16, Numbers, array_given, numbers_from
from mor_ref.counts_in_words import counted
from mor_ref.definitions.blocks import CutLike, Partition
from mor_ref.definitions.integer_grids import IntegerGrid, integer_grid
from mor_ref.schemes.affine.definition import (
    AffineProfile,
    affine_cut,
    affine_profile,
    check_grid,
    check_zero_points,
    with_float_zeros,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from mor_ref.schemes.affine.engine import AffineFields
    from mor_ref.schemes.affine.engine_orders import Dimensions

_SOURCES = {BF16: "bf16", np.dtype(np.float16): "f16"}


@dataclass(frozen=True, eq=False, repr=False)
class Affine(WithY):
    """A tensor as integers, with a scale and a zero point for each block.

    `xs`, `codes` and `y` have the shape of x. `minimum`, `maximum`, `scale`, `inverse_scale`,
    `zero_float`, `zero_point` and `error` have an entry for each block. `codes` are integers of
    `grid`, the grid that is used. If dimensions are permuted, `range` has an entry for each
    dimension, and `permutation` lists the dimensions in the order of the groups. `group_min` and
    `group_max` are then `minimum` and `maximum`, by the names of PEG. All four are None otherwise.

    `scale` multiplies the codes, less their zero point. Whether x is divided by it or multiplied by
    `inverse_scale` is up to the profile.

    >>> import mor_ref, numpy as np
    >>> integers = mor_ref.quantize_affine(np.float32([[0.3, -1.1]]), "int8")
    >>> y = (integers.codes - integers.zero_point).astype(np.float32) * integers.scale
    >>> y.tolist() == integers.dequantize().tolist() == np.asarray(integers).tolist()
    True
    """

    grid: str
    profile: str
    symmetric: bool
    source: str
    minimum: NDArray[np.float32]
    maximum: NDArray[np.float32]
    scale: NDArray[np.float32]
    inverse_scale: NDArray[np.float32]
    zero_float: NDArray[np.float32]
    zero_point: NDArray[np.int32] | NDArray[np.float32]
    xs: NDArray[np.float32]
    codes: NDArray[Any]
    y: NDArray[np.float32]
    error: ErrorSums
    partition: Partition
    range: NDArray[np.float32] | None
    permutation: NDArray[np.intp] | None

    @property
    def group_min(self) -> NDArray[np.float32] | None:
        """The smallest number of each group."""
        return None if self.permutation is None else self.minimum

    @property
    def group_max(self) -> NDArray[np.float32] | None:
        """The largest number of each group."""
        return None if self.permutation is None else self.maximum

    def __repr__(self) -> str:
        rows, columns = self.partition.block
        mean, lost = percent(self.error.overall), int(self.error.nonfinite.sum())
        blocks = f"{counted(self.scale.size, 'block')} of {rows}x{columns}"
        return (
            f"<{self.source} as {self.grid}, {self.profile}: {blocks}, mean relative error {mean}, "
            f"{lost} non-finite>"
        )


@public
def quantize_affine(
    x: "ArrayLike",
    grid: str = "int8",
    *,
    profile: str = "torch_fake_tensor",
    block: CutLike | None = None,
    symmetric: bool = True,
    scale: "ArrayLike | None" = None,
    zero_point: "ArrayLike | None" = None,
    groups: int | None = None,
    permute: str | None = None,
    threads: int | None = None,
) -> Affine:
    """Quantize `x` to integers with a scale and a zero point for each block.

    `grid` is int2 to int16 or uint2 to uint16. `profile` names the library whose bits are computed.
    `block` is "tensor", "row", "column" or a pair (rows, columns); without it, it is the tensor, or
    a row in bnb_int8_row, switchback_row and torch_quantize_channel. `scale` and `zero_point` have
    a number, or one for each block, if they are known; zero points are integers, or floats under
    torch_fake_channel_2_13. `groups` cuts the dimensions, which are columns, into so many
    groups instead; `permute="range"` first sorts the dimensions by their ranges, as PEG does.

    >>> import mor_ref, numpy as np
    >>> x = np.array([[0.5, -1.25, 3.0, 0.0]], np.float32)
    >>> integers = mor_ref.quantize_affine(x, "uint8", symmetric=False)
    >>> integers.zero_point.tolist(), integers.codes.tolist()
    ([[75]], [[105, 0, 255, 75]])
    """
    integers, rule = integer_grid(grid), affine_profile(profile)
    check_grid(integers, rule, symmetric=symmetric, has_zero_point=zero_point is not None)
    known = None
    if zero_point is not None:
        known = array_given("zero_point", zero_point, "integers, or floats")
    if known is not None and known.dtype.kind == "f":
        rule = with_float_zeros(rule)
    numbers = numbers_from(x, "x")
    cut = affine_cut(numbers.shape, rule, block, groups, permute)
    scales, zeros = _given_scales(scale, cut), _given_zeros(known, integers, cut)
    order = _order(numbers, cut, permute, threads)
    from mor_ref.schemes.affine import engine as affine

    source = _SOURCES.get(numbers.dtype, "f32")
    fields = affine.quantize_affine(
        numbers, cut, rule, integers, symmetric, source, scales, zeros, threads, order
    )
    return _record(numbers, cut, rule, symmetric, fields, order)


def values_of(
    numbers: Numbers,
    cut: Partition,
    profile: AffineProfile,
    grid: IntegerGrid,
    *,
    symmetric: bool,
    permute: str | None,
    threads: int | None,
) -> NDArray[np.float32]:
    """Return y of a tensor whose numbers count as binary32 (AFF-011)."""
    from mor_ref.schemes.affine.engine import quantize_affine as quantized  # imports Numba

    order = _order(numbers, cut, permute, threads)
    fields = quantized(numbers, cut, profile, grid, symmetric, "f32", None, None, threads, order)
    return fields.y.view(np.float32).reshape(numbers.shape)


def _record(
    numbers: Numbers,
    cut: Partition,
    profile: AffineProfile,
    symmetric: bool,
    fields: "AffineFields",
    order: "Dimensions | None",
) -> Affine:
    blocks = fields.blocks

    def per_block(field: NDArray[np.uint32]) -> NDArray[np.float32]:
        return field.view(np.float32).reshape(cut.grid)

    return Affine(
        fields.grid.name,
        profile.name,
        symmetric,
        numbers.described,
        per_block(blocks.minimum),
        per_block(blocks.maximum),
        per_block(blocks.scale),
        per_block(blocks.inverse_scale),
        per_block(blocks.zero_float),
        _zero_points(fields, profile).reshape(cut.grid),
        fields.xs.view(np.float32).reshape(numbers.shape),
        fields.code.reshape(numbers.shape),
        fields.y.view(np.float32).reshape(numbers.shape),
        error_sums(fields.error),
        cut,
        None if order is None else order.ranges,
        None if order is None else order.order,
    )


def _zero_points(fields: "AffineFields", profile: AffineProfile) -> NDArray[Any]:
    return fields.blocks.zero.view(np.float32) if profile.float_zeros else fields.blocks.zero_point


def _order(
    numbers: Numbers, cut: Partition, permute: str | None, threads: int | None
) -> "Dimensions | None":
    """Return the dimensions in the order of their ranges, if they are permuted (AFF-010)."""
    from mor_ref.schemes.affine.engine_orders import dimensions  # imports Numba

    return None if permute is None else dimensions(numbers, cut, threads)


def _given_scales(scale: "ArrayLike | None", cut: Partition) -> NDArray[np.uint32] | None:
    """Return the scale of each block, if it is given (AFF-006)."""
    if scale is None:
        return None
    values, _ = finite_binary32("scale", scale)
    if values.size:
        positive_binary32("scale", float(values.min()), "0.25")
    return _one_per_block("scale", values.view(np.uint32), cut)


def _given_zeros(
    zero_point: NDArray[Any] | None, grid: IntegerGrid, cut: Partition
) -> NDArray[np.int32] | NDArray[np.float32] | None:
    """Return the zero point of each block, if it is given (AFF-006, AFF-012)."""
    if zero_point is None:
        return None
    if zero_point.dtype.kind == "f":
        floats, _ = finite_binary32("zero_point", zero_point)
        return _one_per_block("zero_point", floats, cut)
    if zero_point.dtype.kind not in "iu":
        raise TypeError(f"zero_point has dtype {zero_point.dtype}; give integers")
    if zero_point.size:
        check_zero_points(int(zero_point.min()), int(zero_point.max()), grid)
    return _one_per_block("zero_point", zero_point.astype(np.int32).reshape(-1), cut)


def _one_per_block(argument: str, entries: NDArray[Any], cut: Partition) -> NDArray[Any]:
    """Return an entry for each block, given one for all blocks or one for each."""
    count = math.prod(cut.grid)
    if entries.size not in (1, count):
        raise ValueError(
            f"{argument} has {entries.size} numbers; give one, or one for each "
            f"of the {count} blocks"
        )
    return np.ascontiguousarray(np.broadcast_to(entries, count) if entries.size == 1 else entries)
