"""Where what a candidate gives differs from what a suite expects, bit for bit."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mor_ref.golden.suite import Arrays, Case, Parameters

Candidate = Callable[[Parameters, Arrays], Mapping[str, Any]]


@dataclass(frozen=True)
class Difference:
    """A field of a case that differs: in how many of its entries, and the first of them."""

    case: str
    field: str
    count: int
    of: int
    first: int
    expected: int | None
    actual: int | None

    def __str__(self) -> str:
        where = f"case {self.case}, field {self.field}"
        if self.actual is None or self.expected is None:
            return f"{where}: is missing, or has another shape"
        return (
            f"{where}: {self.count} of {self.of} differ, the first at {self.first}: "
            f"0x{self.actual:X} where 0x{self.expected:X} is expected"
        )


def differences(
    cases: list[Case], inputs: tuple[str, ...], candidate: Candidate
) -> Iterator[Difference]:
    """Every field of every case that differs from what is expected."""
    for case in cases:
        given = {name: case.arrays[name] for name in inputs}
        found = candidate(case.parameters, given)
        for field, expected in case.arrays.items():
            if field not in inputs:
                difference = _compare(case.name, field, expected, found.get(field))
                if difference is not None:
                    yield difference


def _compare(case: str, field: str, expected: Any, actual: Any) -> Difference | None:
    size = expected.size
    if actual is None or np.shape(actual) != expected.shape:
        return Difference(case, field, size, size, 0, None, None)
    wrong = np.flatnonzero(np.asarray(actual).ravel() != expected.ravel())
    if not wrong.size:
        return None
    first = int(wrong[0])
    values = (int(np.asarray(array).ravel()[first]) for array in (expected, actual))
    return Difference(case, field, int(wrong.size), size, first, *values)
