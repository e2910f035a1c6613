"""Which mistakes a suite shows: for each, the first entry that is another one with it."""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mor_ref.deviations.deviation import Deviation, applied

_BEYOND = (ArithmeticError, ValueError)  # a wrong program may refuse numbers


@dataclass(frozen=True)
class Shown:
    """A mistake, and the case and the field that show it; None if no entry differs with it."""

    mistake: Deviation
    case: str | None = None
    field: str | None = None


def shown_by(
    mistakes: Iterable[Deviation],
    cases: Mapping[str, Callable[[], Mapping[str, np.ndarray[Any, Any]]]],
    done: Callable[[str], None] = lambda _: None,
) -> list[Shown]:
    """Return what shows each mistake. Each case computes its fields with the exact model.

    A mistake with which the exact model refuses a case is shown by it, in no field.
    """
    expected = {name: compute() for name, compute in cases.items()}
    rows = []
    for mistake in mistakes:
        rows.append(_first(mistake, cases, expected))
        done(mistake.name)
    return rows


def _first(
    mistake: Deviation,
    cases: Mapping[str, Callable[[], Mapping[str, np.ndarray[Any, Any]]]],
    expected: Mapping[str, Mapping[str, np.ndarray[Any, Any]]],
) -> Shown:
    for name, compute in cases.items():
        wrong = None
        with applied(mistake), contextlib.suppress(*_BEYOND):
            wrong = compute()
        if wrong is None:
            return Shown(mistake, name)
        for field, right in expected[name].items():
            if not np.array_equal(right, wrong[field]):
                return Shown(mistake, name, field)
    return Shown(mistake)
