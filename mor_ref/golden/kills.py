"""Where a suite tells a deviation from the reference: the first entry at which the two differ."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from mor_ref.deviations import DEVIATIONS, Deviation, applied
from mor_ref.golden.container import GoldenError
from mor_ref.golden.expected import OPERATIONS
from mor_ref.golden.suite import Case, Suite, question
from mor_ref.golden.views import seen, split

Witness = dict[str, Any]


def completed(suite: Suite, case: Case) -> Case:
    """A question with what the exact model gives, each field in the view that the suite keeps."""
    found = OPERATIONS[suite.operation].function(case.parameters, case.arrays)
    arrays = dict(case.arrays)
    for field in suite.fields:
        name, views = split(field.name)
        if field.role == "expected" and name in found:
            arrays[field.name] = seen(found[name], views, case.parameters)
    return Case(case.name, case.parameters, arrays)


def witness(deviation: Deviation, suite: Suite, cases: Iterable[Case]) -> Witness | None:
    """A case and the first entry at which a deviation gives something else; small cases first."""
    for case in sorted(cases, key=_size):
        with applied(deviation):
            other = completed(suite, question(suite.fields, case))
        for name, array in other.arrays.items():
            differs = np.argwhere(np.atleast_1d(array != case.arrays[name]))
            if len(differs):
                return {"case": case.name, "field": name, "index": differs[0].tolist()}
    return None


def _size(case: Case) -> int:
    return next(iter(case.arrays.values())).size


def kills(suite: Suite, cases: list[Case]) -> dict[str, Witness]:
    """A witness for each deviation that the suite has to tell from the reference."""
    found = {}
    for deviation in DEVIATIONS.values():
        if suite.name in deviation.suites:
            seen_at = witness(deviation, suite, cases)
            if seen_at is None:
                raise GoldenError(
                    f"the suite {suite.name!r} does not tell {deviation.name!r} from the "
                    "reference; add an input at which they part, or say in unseen why none can"
                )
            found[deviation.name] = seen_at
    return found
