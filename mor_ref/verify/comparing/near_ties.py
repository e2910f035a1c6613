"""Codes next to a tie: the codes on the other side of the midpoint, which a user may allow."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.format import Format
from mor_ref.definitions.table_format import ElementFormat, TableFormat
from mor_ref.golden.model.suite import Case
from mor_ref.golden.model.views import packed
from mor_ref.metrics.thresholds import as_fraction, written
from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import Unsigned
from mor_ref.operations.nearest import Operand

FIELDS_OF_CODES = ("code", "packed", "y")  # the codes and what follows from each alone
_WIDEST = 16  # bits: the values of wider codes are not listed
_NOWHERE = -1


def as_ties(given: object) -> Fraction:
    """Return the allowed distance from a tie, as a fraction of the distance of two codes.

    >>> as_ties("1/64"), as_ties(0.01)
    (Fraction(1, 64), Fraction(1, 100))
    """
    try:
        number = written(given)  # type: ignore[arg-type]  # which is found out here
        if 0 <= number < Fraction(1, 2):
            return as_fraction(number)
    except (ArithmeticError, ValueError):
        pass  # which is said below
    raise ValueError(
        f"ties is {given!r}; give a fraction of an ulp from 0 to less than 1/2, such as 1/64"
    )


def refuse_ties(ties: Fraction, operations: Mapping[str, str]) -> None:
    """Refuse to allow ties where an operation has none; `operations` are by the names of suites.

    The suite of a record has no name.
    """
    for suite, operation in operations.items():
        if ties and OPERATIONS[operation].nearest is None:
            known = ", ".join(name for name, one in OPERATIONS.items() if one.nearest is not None)
            where = f" of the suite {suite}" if suite else ""
            raise ValueError(
                f"ties is {ties}, but the operation {operation}{where} has no codes that are the "
                f"nearest to a number; take operations that have them: {known}"
            )


@dataclass(frozen=True)
class NearTies:
    """The entries of a case that are next to a tie: not further from it than a fraction of an ulp.

    An ulp is the distance between the values of the two codes.
    """

    operation: str
    case: Case
    fraction: Fraction

    @cached_property
    def other_case(self) -> Case:
        """The case with the code on the other side of each such tie, and what follows from it.

        All other entries are the expected ones.
        """
        declared, arrays = OPERATIONS[self.operation], self.case.arrays
        parameters, nearest = self.case.parameters, declared.nearest
        if nearest is None or "code" not in arrays:  # digests of codes have no entries
            return self.case
        operand = declared.operand(parameters, arrays)
        if operand is None or not _has_midpoints(operand.fmt):
            return self.case
        code = other_codes(operand, arrays["code"], self.fraction)
        others: dict[str, Unsigned] = {"code": code}
        if "packed" in arrays:
            others["packed"] = packed(code, parameters)
        is_by_number = declared.way_back is None or declared.way_back.is_by_number(parameters)
        if "y" in arrays and nearest.restore is not None and is_by_number:
            y = nearest.restore(parameters, {**arrays, "code": code})
            others["y"] = np.where(code == arrays["code"], arrays["y"], y)
        return replace(self.case, arrays={**arrays, **others})


def _has_midpoints(fmt: ElementFormat) -> bool:
    """Return whether numbers turn at the midpoints of values, and these can be listed."""
    is_moved = isinstance(fmt, TableFormat) and fmt.limits is not None
    return fmt.bits <= _WIDEST and not is_moved


def other_codes(operand: Operand, codes: Unsigned, fraction: Fraction) -> Unsigned:
    """Return the codes on the other side of ties, and the same codes where no tie is near.

    A number that is exactly at the midpoint is next to no tie: there, the rule for ties decides.
    """
    ladder = _ladder(operand.fmt)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        numbers = operand.numbers.astype(np.float64)
    place = ladder.place[np.minimum(codes, len(ladder.place) - 1).astype(np.intp)]
    is_there = (place != _NOWHERE) & np.isfinite(numbers)
    value = ladder.values[place]
    other = place + np.where(numbers > value, 1, -1)
    is_there &= (other >= 0) & (other < len(ladder.values))
    other = np.where(is_there, other, place)
    other_value = ladder.values[other]
    # Binary64 errs in the distance, by far less than a thousandth of it: a tie that is near may be
    # among these, and integers decide.
    distance = np.abs(numbers - (value + other_value) / 2)
    is_there &= distance <= 1.001 * float(fraction) * np.abs(other_value - value)
    found = codes.copy()
    for k in np.flatnonzero(is_there):
        ends = float(value.flat[k]), float(other_value.flat[k])
        if _is_near(float(numbers.flat[k]), *ends, fraction):
            zero = 0 if ends[1] else _sign_of_zero(operand, float(numbers.flat[k]))
            found.flat[k] = ladder.codes[other.flat[k]] | zero
    return found


def _is_near(number: float, value: float, other: float, fraction: Fraction) -> bool:
    """Return whether a number is next to the midpoint of two values, and not at it."""
    ulp = abs(Fraction(other) - Fraction(value))
    distance = abs(Fraction(number) - (Fraction(value) + Fraction(other)) / 2)
    return 0 < distance <= fraction * ulp


def _sign_of_zero(operand: Operand, number: float) -> int:
    """Return the sign bit of the zero that a number is rounded to."""
    fmt = operand.fmt
    if number > 0 or not operand.has_negative_zero or not isinstance(fmt, Format):
        return 0
    return fmt.sign_bit if fmt.value(fmt.sign_bit) == 0 else 0


class _Ladder(NamedTuple):
    """The finite values of a format in ascending order, with a code of each.

    `place` has the place of each code among them; of zeros, +0 stands here.
    """

    values: NDArray[np.float64]
    codes: NDArray[np.int64]
    place: NDArray[np.int64]


@cache
def _ladder(fmt: ElementFormat) -> _Ladder:
    every = np.array([fmt.value(code) for code in range(fmt.code_count)])
    largest = fmt.largest if isinstance(fmt, Format) else np.inf  # the least integer is no result
    with np.errstate(invalid="ignore"):
        is_there = np.isfinite(every) & (np.abs(every) <= largest)
    values, first = np.unique(every[is_there], return_index=True)
    place = np.where(is_there, np.searchsorted(values, every), _NOWHERE)
    return _Ladder(values, np.flatnonzero(is_there)[first], place)
