"""How far fields match, for each set of parameters of the cases of a suite."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.table_format import ElementFormat, TableFormat
from mor_ref.golden.model.suite import Case
from mor_ref.golden.model.views import DIGEST, split
from mor_ref.operations import OPERATIONS
from mor_ref.operations.block_formats import block_format_in, format_of_codes
from mor_ref.operations.call import Parameters
from mor_ref.operations.fields import bits_of
from mor_ref.verify.comparing.allowed import is_nan
from mor_ref.verify.comparing.compared_field import ComparedField
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.comparing.kinds import Integers, ranks
from mor_ref.verify.comparing.nibbles import format_of_nibbles, halves_of

Words = NDArray[Any]
_Key = tuple[str, str]  # parameters and a field


@dataclass(frozen=True)
class FieldOfCases:
    """A field of the cases of a suite that have the same parameters.

    So many `cases` have it, and so many `entries` were compared. `differing` entries differ, and
    `allowed` ones have other bits that a user allowed. In cases that are `not_comparable`, it is
    missing or has another shape. `kappa` is the largest number of representable values from an
    expected entry to the given one, 0 if all are equal. It is None where that has no meaning: for
    digests, where a NaN or an infinity is expected and something else given, or the other way
    round, and if a case is not comparable.
    """

    parameters: Parameters
    field: str
    cases: int
    entries: int
    differing: int
    allowed: int
    not_comparable: int
    kappa: int | None

    def __add__(self, more: "FieldOfCases") -> "FieldOfCases":
        """Return what is known of more cases as well."""
        kappas = self.kappa, more.kappa
        return replace(
            self,
            cases=self.cases + more.cases,
            entries=self.entries + more.entries,
            differing=self.differing + more.differing,
            allowed=self.allowed + more.allowed,
            not_comparable=self.not_comparable + more.not_comparable,
            kappa=None if None in kappas else max(kappas),  # type: ignore[type-var]
        )

    @property
    def matches(self) -> bool:
        """Whether all was compared, and every bit is as expected."""
        return not self.differing and not self.allowed and not self.not_comparable


def by_parameters(evidence: Evidence) -> tuple[FieldOfCases, ...]:
    """Return how far the fields of answers match, in the order of the cases."""
    cases = {case.name: case for case in evidence.cases}
    return added(
        _of_case(evidence, cases[name], one)
        for name, found in evidence.comparisons.items()
        for one in found
    )


def added(fields: Iterable[FieldOfCases]) -> tuple[FieldOfCases, ...]:
    """Return fields; those with the same name and parameters are one."""
    found: dict[_Key, FieldOfCases] = {}
    for one in fields:
        key = json.dumps(one.parameters, sort_keys=True), one.field
        found[key] = found[key] + one if key in found else one
    return tuple(found.values())


def _of_case(evidence: Evidence, case: Case, one: ComparedField) -> FieldOfCases:
    is_compared = one.problem is None
    allowed = one.allowed_nans + one.allowed_zeros + one.allowed_ties
    return FieldOfCases(
        case.parameters,
        one.suite_field,
        int(not evidence.is_continued),
        evidence.size_of(case, one.suite_field) if is_compared else 0,
        one.count,
        allowed,
        int(not is_compared),
        kappa(evidence.operation, case.parameters, one),
    )


def kappa(operation: str, parameters: Parameters, one: ComparedField) -> int | None:
    """Return the largest number of representable values from an expected entry to the given one."""
    if one.problem is not None or one.given is None:
        return None
    differs = one.given != one.expected
    if one.left_out is not None and one.left_out.shape == differs.shape:
        differs &= ~one.left_out
    actual, expected = one.given[differs], one.expected[differs]
    if not actual.size:
        return 0
    if DIGEST in split(one.suite_field)[1]:
        return None
    nibbles = format_of_nibbles(operation, one.format, one.suite_field, one.view)
    if nibbles is not None:
        actual, expected = halves_of(actual), halves_of(expected)
    fmt = _format(parameters, one, nibbles or one.format)
    if fmt is not None:
        return steps_of_codes(actual.astype(np.int64), expected.astype(np.int64), fmt)
    return _steps_of_integers(operation, parameters, one, (actual, expected))


def _format(parameters: Parameters, one: ComparedField, named: str) -> ElementFormat | None:
    """Return the format of the codes of a field; None for integers."""
    if "block_format" in parameters:
        block_format = block_format_in(parameters["block_format"])
        fmt = format_of_codes(block_format, split(one.suite_field)[0])
        if fmt is not None:
            return fmt
    return formats.known(named)


def steps_of_codes(actual: Integers, expected: Integers, fmt: ElementFormat) -> int | None:
    """Return the most codes from one number to another, or None if one is none."""
    if actual.max() >= fmt.code_count:
        return None
    if isinstance(fmt, TableFormat):
        places = np.argsort(fmt.order)
        return int(np.abs(places[actual] - places[expected]).max())
    for is_special in (is_nan, _is_infinite):
        if (is_special(actual, fmt) != is_special(expected, fmt)).any():
            return None
    steps = np.abs(ranks(actual, fmt) - ranks(expected, fmt))
    steps[is_nan(actual, fmt)] = 0  # another NaN
    if (_is_infinite(actual, fmt) & (steps != 0)).any():  # of the other sign
        return None
    return int(steps.max())


def _is_infinite(codes: Integers, fmt: Format) -> NDArray[np.bool_]:
    if fmt.infinity_code is None:
        return np.zeros(codes.shape, np.bool_)
    found: NDArray[np.bool_] = np.abs(ranks(codes, fmt)) == fmt.infinity_code
    return found


def _steps_of_integers(
    operation: str, parameters: Parameters, one: ComparedField, pair: tuple[Words, Words]
) -> int:
    """Return the largest distance of two integers, which may be in two's complement."""
    declared, name = OPERATIONS[operation], split(one.suite_field)[0]
    has_sign = declared.field(name).signed
    if name == "code" and declared.codes is not None:
        has_sign |= declared.codes(parameters)[0] < 0
    offset = np.uint64(1 << bits_of(one.format) - 1 if has_sign else 0)
    actual, expected = (words.astype(np.uint64) ^ offset for words in pair)
    return int(np.where(actual > expected, actual - expected, expected - actual).max())
