"""Where a suite tells a deviation from the reference: the first entry at which the two differ."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from mor_ref.deviations import DEVIATIONS, Deviation, applied
from mor_ref.exact import mx, nvfp4, quantization
from mor_ref.exact.errors import error_term
from mor_ref.exact.step import replaced
from mor_ref.golden import kept_files
from mor_ref.golden.model.suite import Case, Suite, question
from mor_ref.golden.model.views import seen, split
from mor_ref.golden.store.manifest import GoldenError, read_manifest
from mor_ref.operations import OPERATIONS
from mor_ref.operations.mor import MANY

Witness = dict[str, Any]
# Most of the work, and the same again and again for the few numbers that bfloat16 has.
_LOOKED_UP = (
    quantization.quantize_element,
    error_term,
    quantization.to_bf16,
    nvfp4.quantize_element,
    mx.quantize_element,
)


def completed(suite: Suite, case: Case) -> Case:
    """A question with what the exact model gives, each field in the view that the suite keeps."""
    with replaced([(step, _looking_up()) for step in _LOOKED_UP]):
        found = OPERATIONS[suite.operation].exact(case.parameters, case.arrays)
    arrays = dict(case.arrays)
    for field in suite.fields:
        name, views = split(field.name)
        if field.role == "expected" and name in found:
            arrays[field.name] = seen(found[name], views, case.parameters)
    return Case(case.name, case.parameters, arrays)


def deviated(deviation: Deviation, suite: Suite, case: Case) -> Case:
    """A case with what the model gives under a deviation."""
    with applied(deviation):
        return completed(suite, question(suite.fields, case))


def _looking_up() -> Callable[..., Any]:
    """A step that is computed once for the same arguments, on which alone it depends."""
    known: dict[tuple[Any, ...], Any] = {}

    def look_up(reference: Callable[..., Any], *args: Any) -> Any:
        if 0.0 in args:  # which is also -0.0
            return reference(*args)
        if args not in known:
            known[args] = reference(*args)
        return known[args]

    return look_up


def witness(deviation: Deviation, suite: Suite, cases: Iterable[Case]) -> Witness | None:
    """The first of the cases, and of its entries, at which a deviation gives something else."""
    for case in cases:
        other = deviated(deviation, suite, case)
        for name, array in other.arrays.items():
            differs = np.argwhere(np.atleast_1d(array != case.arrays[name]))
            if len(differs):
                return {"case": case.name, "field": name, "index": differs[0].tolist()}
    return None


def _elements(case: Case) -> int:
    return next(iter(case.arrays.values())).size


def _numbers(case: Case) -> int:
    """How many different numbers go in, which is what a search costs."""
    return np.unique(next(iter(case.arrays.values()))).size


def kills(suite: Suite, cases: list[Case], likely: Mapping[str, str]) -> dict[str, Witness]:
    """A witness for each deviation that the suite has to tell from the reference.

    `likely` names the case to look at first for some; it decides how long the search takes, and
    which of several witnesses is found. A unit of so many numbers that its sums come from counts
    is not looked at: a deviation of a sum would not show there. Where there is no witness, the pair
    is left out: another seed may be without one, and tests hold the kept suites to having all.
    """
    by_name = {case.name: case for case in cases if _elements(case) < MANY}
    ordered = sorted(by_name.values(), key=_numbers)
    found = {}
    for deviation in DEVIATIONS.values():
        if suite.name in deviation.suites:
            first = [by_name[name] for name in (likely.get(deviation.name),) if name in by_name]
            found[deviation.name] = witness(deviation, suite, (*first, *ordered))
    return {name: seen_at for name, seen_at in found.items() if seen_at is not None}


def seen_in_kept_suites(suite: str) -> dict[str, str]:
    """The cases by which the kept suite tells deviations, where there is one."""
    try:
        entry = read_manifest(kept_files())["suites"].get(suite, {"kills": {}})
    except GoldenError:
        return {}
    return {name: at["case"] for name, at in entry["kills"].items()}
