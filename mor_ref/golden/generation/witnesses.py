"""Witnesses: an entry of a suite at which a deviation differs from the reference."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from mor_ref.deviations import DEVIATIONS, Deviation
from mor_ref.golden import bundled_files
from mor_ref.golden.generation.expected import with_deviation
from mor_ref.golden.model.suite import Case, Suite
from mor_ref.golden.store.manifest import GoldenError, read_manifest
from mor_ref.operations import OPERATIONS
from mor_ref.operations.mor import MANY
from mor_ref.workers.progress import step_done

Witness = dict[str, Any]


def differs_at(deviation: Deviation, suite: Suite, case: Case, at: Mapping[str, Any]) -> bool:
    """Return whether a deviation differs from the reference at an entry of a case."""
    field, place = at["field"], list(at["index"])
    if OPERATIONS[suite.operation].is_by_row and place:  # no other row has a say
        row = slice(place[0], place[0] + 1)
        arrays = {name: array[row] for name, array in case.arrays.items()}
        case, place = Case(case.name, case.parameters, arrays), [0, *place[1:]]
    other = with_deviation(deviation, suite, case)
    ours, theirs = (one.arrays.get(field) for one in (case, other))
    return ours is not None and theirs is not None and place in np.argwhere(ours != theirs).tolist()


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


def searched_witnesses(
    suite: Suite, cases: list[Case], known: Mapping[str, Witness]
) -> dict[str, Witness]:
    """Return a witness for each deviation that the suite has to expose, by name.

    The case of a known witness is searched first. It decides how long the search takes, and which
    of several witnesses is found. Tensors so large that their sums come from
    counts are not searched: they do not expose a deviation of a sum. A deviation without a witness
    is left out, as another seed may have none. A test checks that the bundled suites have all.
    """
    searched = sorted((case for case in cases if _elements(case) < MANY), key=_numbers)
    found = {}
    for deviation in DEVIATIONS.values():
        if suite.name in deviation.suites:
            likely = known.get(deviation.name, {"case": None})["case"]
            first = [case for case in searched if case.name == likely]
            witness = first_witness(deviation, suite, (*first, *searched))
            if witness is not None:
                found[deviation.name] = witness
            step_done(suite.name)
    return found


def bundled_witnesses(suite: str) -> dict[str, Witness]:
    """Return the witnesses of the bundled suite of a name, by deviation; none without one."""
    try:
        entry = read_manifest(bundled_files())["suites"].get(suite, {"kills": {}})
    except GoldenError:
        return {}
    return dict(entry["kills"])


def holding_witnesses(
    suite: Suite, cases: list[Case], known: Mapping[str, Witness]
) -> dict[str, Witness]:
    """Return those of some witnesses at which the deviations differ in these cases as well."""
    by_name = {case.name: case for case in cases}
    holding = {}
    for name, at in known.items():
        deviation, case = DEVIATIONS.get(name), by_name.get(at["case"])
        if deviation is not None and case is not None and differs_at(deviation, suite, case, at):
            holding[name] = at
        step_done(suite.name)
    return holding
