"""Mixtures of formats that differ: other errors, other sums, other choices and other scales."""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from mor_ref.definitions.blocks import Partition
from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.deviations.floating_point import SMALLEST_NORMAL
from mor_ref.exact.arithmetic import product, rn32, total
from mor_ref.exact.blocks import Rows, cells
from mor_ref.exact.errors import absolute_error, error_sum
from mor_ref.exact.quantization import Element, quantize_element
from mor_ref.exact.scales import amax, scale_of_block
from mor_ref.schemes.mixed import exact as mixed
from mor_ref.schemes.mixed.definition import FRACTION_BITS, LARGEST_ERROR
from mor_ref.schemes.mixed.domain import IN_MIXED, MIXED

Reference = Callable[..., Any]
_LAYERS = ("mixed_layers",)
_NOTHING_LOST = dict.fromkeys(
    MIXED, "No candidate of the suite makes a finite number infinite or NaN."
)
_FAR_SUMS = dict.fromkeys(
    MIXED, "No two sums of a unit are so near that binary32 makes them equal."
)

# ---------------------------------------------------------------------- errors of numbers


@deviation(mixed.error_in_units, rules=("MFQ-002",), domain=IN_MIXED)
def mixed_errors_half_away(reference: Reference, x: float, y: float, largest: float) -> int:
    """Errors are rounded half away from zero."""
    return _rounded(reference, x, y, largest, lambda u: math.floor(u + Fraction(1, 2)))


@deviation(mixed.error_in_units, rules=("MFQ-002",), domain=IN_MIXED)
def mixed_errors_cut(reference: Reference, x: float, y: float, largest: float) -> int:
    """Errors are cut to integers."""
    return _rounded(reference, x, y, largest, math.floor)


def _rounded(
    reference: Reference, x: float, y: float, largest: float, integer: Callable[[Fraction], int]
) -> int:
    found = int(reference(x, y, largest))
    if not found < LARGEST_ERROR or not math.isfinite(x) or largest == 0:
        return found
    unit = Fraction(2) ** (mixed.binade(largest) - FRACTION_BITS)
    return integer(Fraction(absolute_error(x, y)) / unit)


@deviation(mixed.error_in_units, rules=("MFQ-002",), domain=IN_MIXED)
def mixed_errors_of_amax(reference: Reference, x: float, y: float, largest: float) -> int:
    """Errors are in units of amax, not of its binade."""
    found = int(reference(x, y, largest))
    if found in (0, LARGEST_ERROR) or not math.isfinite(largest):
        return found
    return round(Fraction(absolute_error(x, y)) / Fraction(largest) * (1 << FRACTION_BITS))


@deviation(mixed.binade, rules=("MFQ-002",), domain=IN_MIXED)
def mixed_binade_above(reference: Reference, largest: float) -> int:
    """The unit follows from the power of two above amax, as in frexp."""
    return int(reference(largest)) + 1


@deviation(mixed.error_in_units, rules=("MFQ-002",), domain=IN_MIXED)
def mixed_subnormal_amax_flushed(reference: Reference, x: float, y: float, largest: float) -> int:
    """A subnormal amax counts as 0, and its unit has no error."""
    return 0 if largest < SMALLEST_NORMAL else int(reference(x, y, largest))


@deviation(mixed.error_in_units, rules=("MFQ-002",), domain=IN_MIXED, exemptions=_NOTHING_LOST)
def mixed_lost_values_left_out(reference: Reference, x: float, y: float, largest: float) -> int:
    """An infinite or NaN y of a finite number has no error."""
    return int(reference(x, y, largest)) if math.isfinite(y) else 0


@deviation(mixed.error_in_units, rules=("MFQ-002",), domain=IN_MIXED)
def mixed_nonfinite_numbers_count(reference: Reference, x: float, y: float, largest: float) -> int:
    """A number that is not finite has the largest error."""
    return int(reference(x, y, largest)) if math.isfinite(x) else LARGEST_ERROR


# ---------------------------------------------------------------------- sums


@deviation(mixed.squared_error, rules=("MFQ-003",), domain=IN_MIXED)
def mixed_squares_in_floating_point(
    reference: Reference, pairs: Iterable[tuple[float, float]], largest: float
) -> int:
    """The squares are summed in binary32, one after the other."""
    del reference
    found = 0.0
    for x, y in pairs:
        u = float(mixed.error_in_units(x, y, largest))
        found = total(found, product(u, u))
    return int(found)


@deviation(mixed.squared, rules=("MFQ-003",), domain=IN_MIXED)
def mixed_errors_not_squared(reference: Reference, u: int) -> int:
    """The absolute errors are summed."""
    del reference
    return u


@deviation(mixed.squared, rules=("MFQ-003",), domain=IN_MIXED)
def mixed_squares_of_32_bits(reference: Reference, u: int) -> int:
    """A square has 32 bits, and wraps."""
    return int(reference(u)) % (1 << 32)


@deviation(mixed.squared_error, rules=("MFQ-003",), domain=IN_MIXED)
def mixed_sums_of_32_bits(
    reference: Reference, pairs: Iterable[tuple[float, float]], largest: float
) -> int:
    """A sum has 32 bits, and wraps."""
    return int(reference(pairs, largest)) % (1 << 32)


@deviation(mixed.squared_error, rules=("MFQ-003",), domain=IN_MIXED)
def mixed_largest_error_alone(
    reference: Reference, pairs: Iterable[tuple[float, float]], largest: float
) -> int:
    """The largest square takes the place of the sum."""
    return max((int(reference([pair], largest)) for pair in pairs), default=0)


@deviation(mixed.squared_error, rules=("MFQ-003",), domain=IN_MIXED)
def mixed_relative_errors(
    reference: Reference, pairs: Iterable[tuple[float, float]], largest: float
) -> int:
    """The relative errors of MoR are summed, not squares."""
    del reference, largest
    return error_sum(pairs).sum


# ---------------------------------------------------------------------- choices


@deviation(mixed.least, rules=("MFQ-004",), domain=IN_MIXED)
def mixed_ties_to_the_last(reference: Reference, errors: list[int]) -> int:
    """Of equal errors, the last candidate is taken."""
    return len(errors) - 1 - int(reference(errors[::-1]))


@deviation(mixed.least, rules=("MFQ-004",), domain=IN_MIXED)
def mixed_most_error(reference: Reference, errors: list[int]) -> int:
    """The candidate with the largest error is taken."""
    return int(reference([-error for error in errors]))


@deviation(mixed.least, rules=("MFQ-004",), domain=IN_MIXED, exemptions=_FAR_SUMS)
def mixed_roots_compared(reference: Reference, errors: list[int]) -> int:
    """The roots of the sums are compared in binary32, so that near sums are equal."""
    return int(
        reference([rn32(Fraction(math.isqrt(int(error) << 64), 1 << 32)) for error in errors])
    )


@deviation(mixed.least, rules=("MFQ-004",), domain=IN_MIXED, exemptions=_FAR_SUMS)
def mixed_sums_compared_in_binary32(reference: Reference, errors: list[int]) -> int:
    """The sums are compared in binary32, so that near sums are equal."""
    return int(reference([rn32(Fraction(error)) for error in errors]))


@deviation(mixed.layer_errors, rules=("MFQ-005",), domain=_LAYERS)
def mixed_activations_left_out(reference: Reference, tensors: list[list[int]]) -> list[int]:
    """The weights alone decide about a layer whose activations are quantized as well."""
    return list(reference(tensors[:1]))


@deviation(mixed.layer_errors, rules=("MFQ-005",), domain=_LAYERS)
def mixed_worst_tensor_decides(reference: Reference, tensors: list[list[int]]) -> list[int]:
    """The tensor of the larger error decides about a layer."""
    del reference
    return [max(errors) for errors in zip(*tensors, strict=True)]


# ---------------------------------------------------------------------- candidates


@deviation(mixed.candidate_elements, rules=("MFQ-001",), domain=MIXED)
def mixed_scale_of_half_the_range(
    reference: Reference, x: Rows, candidate: Any, parts: Partition
) -> list[list[Element]]:
    """Integers are scaled by half of their range: 127.5 or 7.5, as in torch's observers."""
    return _scaled(reference, x, candidate, parts, lambda largest: largest + 0.5)


@deviation(mixed.candidate_elements, rules=("MFQ-001",), domain=MIXED)
def mixed_scale_of_the_lowest_integer(
    reference: Reference, x: Rows, candidate: Any, parts: Partition
) -> list[list[Element]]:
    """Integers are scaled by the magnitude of the lowest: 128 or 8."""
    return _scaled(reference, x, candidate, parts, lambda largest: largest + 1)


@deviation(mixed.candidate_elements, rules=("MFQ-001",), domain=MIXED)
def mixed_scale_of_the_other_format(
    reference: Reference, x: Rows, candidate: Any, parts: Partition
) -> list[list[Element]]:
    """8-bit integers have the scale of e4m3, and 4-bit integers have the scale of e2m1."""
    return _scaled(reference, x, candidate, parts, lambda largest: 448.0 if largest > 7 else 6.0)


def _scaled(
    reference: Reference,
    x: Rows,
    candidate: Any,
    parts: Partition,
    other: Callable[[float], float],
) -> list[list[Element]]:
    """Quantize with the scale of another largest number, if the candidate is of integers."""
    found: list[list[Element]] = reference(x, candidate, parts)
    if not candidate.name.startswith("int"):
        return found
    for places in cells(parts.rows, parts.columns, parts.block).values():
        own = amax(x[i][j] for i, j in places)
        scale = scale_of_block("fp32", other(candidate.fmt.largest), own, 0).value
        for i, j in places:
            found[i][j] = quantize_element(x[i][j], scale, candidate.fmt)
    return found


DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))
