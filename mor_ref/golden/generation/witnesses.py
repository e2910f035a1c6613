"""Witnesses: the first entry of a suite at which a deviation differs from the reference."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from mor_ref.deviations import DEVIATIONS, Deviation, applied
from mor_ref.exact import mx, nvfp4, quantization
from mor_ref.exact.errors import error_term
from mor_ref.exact.step import replaced
from mor_ref.golden import bundled_files
from mor_ref.golden.model.suite import Case, Suite, question
from mor_ref.golden.model.views import seen, split
from mor_ref.golden.store.manifest import GoldenError, read_manifest
from mor_ref.operations import OPERATIONS
from mor_ref.operations.mor import MANY
from mor_ref.workers.progress import step_done

Witness = dict[str, Any]
# Most of the work; their results repeat, as bfloat16 has few numbers.
_REMEMBERED = (
    quantization.quantize_element,
    error_term,
    quantization.to_bf16,
    nvfp4.quantize_element,
    mx.quantize_element,
)


def with_expected(suite: Suite, case: Case) -> Case:
    """Return a case with the results of the exact model, each field in its view of the suite."""
    with replaced([(step, _remembering()) for step in _REMEMBERED]):
        found = OPERATIONS[suite.operation].exact(case.parameters, case.arrays)
    arrays = dict(case.arrays)
    for field in suite.fields:
        name, views = split(field.name)
        if field.role == "expected" and name in found:
            arrays[field.name] = seen(found[name], views, case.parameters)
    return Case(case.name, case.parameters, arrays)


def with_deviation(deviation: Deviation, suite: Suite, case: Case) -> Case:
    """Return a case with the results of the exact model with a deviation."""
    with applied(deviation):
        return with_expected(suite, question(suite.fields, case))


def _remembering() -> Callable[..., Any]:
    """Return a step that computes each result once; it depends on its arguments alone."""
    known: dict[tuple[Any, ...], Any] = {}

    def remember(reference: Callable[..., Any], number: float, *others: Any) -> Any:
        if number == 0 or 0.0 in others:  # 0.0 and -0.0 are equal, but their results are not
            return reference(number, *others)
        key = (number, *others)
        result = known.get(key)
        if result is None:
            result = known[key] = reference(number, *others)
        return result

    return remember


def first_witness(deviation: Deviation, suite: Suite, cases: Iterable[Case]) -> Witness | None:
    """Return the first entry of the first case at which a deviation has another result."""
    for case in cases:
        other = with_deviation(deviation, suite, case)
        for name, array in other.arrays.items():
            differs = np.argwhere(np.atleast_1d(array != case.arrays[name]))
            if len(differs):
                return {"case": case.name, "field": name, "index": differs[0].tolist()}
    return None


def _elements(case: Case) -> int:
    return next(iter(case.arrays.values())).size


def _numbers(case: Case) -> int:
    """Return how many different inputs a case has: the cost of a search."""
    return np.unique(next(iter(case.arrays.values()))).size


def witnesses(suite: Suite, cases: list[Case], likely: Mapping[str, str]) -> dict[str, Witness]:
    """Return a witness for each deviation that the suite has to expose, by name.

    `likely` names, for some deviations, the case to search first. It decides how long the search
    takes, and which of several witnesses is found. Tensors so large that their sums come from
    counts are not searched: they do not expose a deviation of a sum. A deviation without a witness
    is left out, as another seed may have none. A test checks that the bundled suites have all.
    """
    searched = sorted((case for case in cases if _elements(case) < MANY), key=_numbers)
    found = {}
    for deviation in DEVIATIONS.values():
        if suite.name in deviation.suites:
            first = [case for case in searched if case.name == likely.get(deviation.name)]
            witness = first_witness(deviation, suite, (*first, *searched))
            if witness is not None:
                found[deviation.name] = witness
            step_done(suite.name)
    return found


def cases_of_bundled_witnesses(suite: str) -> dict[str, str]:
    """Return the cases of the witnesses of the bundled suite, by deviation; none without one."""
    try:
        entry = read_manifest(bundled_files())["suites"].get(suite, {"kills": {}})
    except GoldenError:
        return {}
    return {name: at["case"] for name, at in entry["kills"].items()}
