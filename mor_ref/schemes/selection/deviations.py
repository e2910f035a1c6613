"""Selections that differ: other places of thresholds, other comparisons, other columns."""

import math
from collections.abc import Callable
from fractions import Fraction

from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.exact import outliers as exact
from mor_ref.exact.blocks import Rows
from mor_ref.schemes.selection import exact as selection

Reference = Callable[..., object]
_DOMAIN = ("selections",)
_RANK, _COLUMN = ("SEL-001",), ("SEL-002",)


@deviation(selection.is_above, rules=_RANK, domain=_DOMAIN)
def selection_has_the_threshold(_: Reference, x: float, least: float) -> bool:
    """A number of the threshold's magnitude is selected."""
    return not abs(x) < least


@deviation(selection.is_above, rules=_RANK, domain=_DOMAIN)
def selection_without_nan(_: Reference, x: float, least: float) -> bool:
    """By rank, NaN is not selected."""
    return abs(x) > least


@deviation(selection.is_above, rules=_RANK, domain=_DOMAIN)
def selection_at_least(_: Reference, x: float, least: float) -> bool:
    """A number of at least the threshold is selected, and NaN is not."""
    return abs(x) >= least


@deviation(exact.rounded_limit, rules=_COLUMN, domain=_DOMAIN)
def selection_limit_in_binary64(_: Reference, limit: float) -> float:
    """The limit is not rounded to binary32 before it is compared."""
    return limit


@deviation(selection.place, rules=_RANK, domain=_DOMAIN)
def selection_place_from_one(_: Reference, count: int, share: float) -> int:
    """The place of the threshold counts from 1, as in torch.kthvalue."""
    return max(min(int(count * share), count) - 1, 0)


@deviation(selection.place, rules=_RANK, domain=_DOMAIN)
def selection_place_before(_: Reference, count: int, share: float) -> int:
    """The place of the threshold is one less, also if the share is 1."""
    return max(min(int(count * share), count - 1) - 1, 0)


@deviation(selection.place, rules=_RANK, domain=_DOMAIN)
def selection_place_exact(_: Reference, count: int, share: float) -> int:
    """The product of the count and the share is not rounded."""
    return min(math.floor(count * Fraction(share)), count - 1)


@deviation(selection.place, rules=_RANK, domain=_DOMAIN)
def selection_place_rounded(_: Reference, count: int, share: float) -> int:
    """The product is rounded to the nearest integer."""
    return min(round(count * share), count - 1)


@deviation(selection.place, rules=_RANK, domain=_DOMAIN)
def selection_place_rounded_up(_: Reference, count: int, share: float) -> int:
    """The product is rounded up."""
    return min(math.ceil(count * share), count - 1)


@deviation(selection.place, rules=_RANK, domain=_DOMAIN)
def selection_place_of_the_last(_: Reference, count: int, share: float) -> int:
    """The place is the share times n - 1, as in quantiles."""
    return int((count - 1) * share)


@deviation(selection.threshold, rules=_RANK, domain=_DOMAIN)
def selection_counts_numbers_alone(
    reference: Reference, magnitudes: list[float], share: float
) -> object:
    """NaN is left out of the count."""
    return reference([x for x in magnitudes if not math.isnan(x)] or [math.nan], share)


@deviation(selection.by_rank, rules=_RANK, domain=_DOMAIN)
def selection_by_rows(reference: Reference, x: Rows, share: float) -> list[object]:
    """Each row has a threshold of its own."""
    return [found for row in x for found in reference([row], share)]  # type: ignore[attr-defined]


@deviation(selection.by_rank, rules=_RANK, domain=_DOMAIN)
def selection_by_count(_: Reference, x: Rows, share: float) -> list[list[bool]]:
    """All numbers after the place are selected, even if some equal the threshold."""
    flat = [(math.isnan(v), abs(v)) for row in x for v in row]
    order = sorted(range(len(flat)), key=lambda i: flat[i])
    chosen = set(order[selection.place(len(flat), share) + 1 :])
    width = len(x[0]) if x else 0
    return [[i * width + j in chosen for j in range(width)] for i in range(len(x))]


@deviation(selection.by_rank, rules=_RANK, domain=_DOMAIN)
def selection_at_both_ends(_: Reference, x: Rows, share: float) -> list[list[bool]]:
    """Half of the selected numbers are the least, half the largest, as in PB-LLM's training."""
    ordered = sorted((v for row in x for v in row), key=lambda v: (math.isnan(v), v))
    count, rest = len(ordered), 1 - share
    low, high = (ordered[min(max(int(count * f), 1), count) - 1] for f in (rest / 2, 1 - rest / 2))
    return [[v < low or v > high for v in row] for row in x]


@deviation(exact.is_outlier, rules=_COLUMN, domain=_DOMAIN)
def outliers_above_the_limit(_: Reference, x: float, limit: float) -> bool:
    """A number that equals the limit is not an outlier."""
    return abs(x) > limit


@deviation(exact.is_outlier, rules=_COLUMN, domain=_DOMAIN)
def outliers_are_positive(_: Reference, x: float, limit: float) -> bool:
    """A negative number is not an outlier."""
    return x >= limit


@deviation(exact.is_outlier, rules=_COLUMN, domain=_DOMAIN)
def outliers_with_nan(_: Reference, x: float, limit: float) -> bool:
    """A NaN is an outlier."""
    return not abs(x) < limit


@deviation(exact.is_outlier, rules=_COLUMN, domain=_DOMAIN)
def outliers_are_finite(_: Reference, x: float, limit: float) -> bool:
    """An infinite number is not an outlier."""
    return limit <= abs(x) < math.inf


def _is_by_column(_: Rows, by: str, __: float) -> bool:
    return by == "column"


@deviation(selection.selected, where=_is_by_column, rules=_COLUMN, domain=_DOMAIN)
def outliers_by_the_largest(
    reference: Reference, x: Rows, by: str, limit: float
) -> list[list[bool]]:
    """The largest |x| of a column decides: with a NaN it is NaN, and selects nothing."""
    found: list[list[bool]] = reference(x, by, limit)  # type: ignore[assignment]
    lost = [any(map(math.isnan, column)) for column in zip(*x, strict=True)]
    return [[chosen and not nan for chosen, nan in zip(row, lost, strict=True)] for row in found]


@deviation(exact.by_column, rules=_COLUMN, domain=_DOMAIN)
def outliers_alone(_: Reference, outliers: list[list[bool]]) -> list[list[bool]]:
    """The outliers are selected, not their columns."""
    return outliers


@deviation(exact.by_column, rules=_COLUMN, domain=_DOMAIN)
def outliers_by_rows(_: Reference, outliers: list[list[bool]]) -> list[list[bool]]:
    """The rows of outliers are selected."""
    return [[any(row)] * len(row) for row in outliers]


DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))
