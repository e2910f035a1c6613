"""Witnesses: an entry of a suite at which a deviation differs from the reference."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from mor_ref.deviations import DEVIATIONS, Deviation, applied
from mor_ref.exact.blocks import cells
from mor_ref.exact.errors import SUMS, ErrorSum, error_sum
from mor_ref.exact.step import Replacement, replaced
from mor_ref.golden import bundled_files
from mor_ref.golden.generation.expected import distinct_numbers, with_deviation, with_expected
from mor_ref.golden.model.suite import Case, Suite, question
from mor_ref.golden.model.views import DIGEST, DIGEST_TILE, split
from mor_ref.golden.store.manifest import GoldenError, read_manifest
from mor_ref.mistakes.catalogue import CAUSES, FORMER_IDS, id_of
from mor_ref.operations import OPERATIONS
from mor_ref.operations.policies import MANY
from mor_ref.workers.progress import step_done

Witness = dict[str, Any]
Cells = dict[tuple[int, int], list[tuple[int, int]]]


class Entries:
    """The entries of a suite, computed again with deviations."""

    def __init__(self, suite: Suite, cases: Iterable[Case]) -> None:
        self._suite, self._cases = suite, {case.name: case for case in cases}
        self._suffices: dict[tuple[str, str, tuple[int, ...]], bool] = {}

    def differs(self, deviation: Deviation, at: Mapping[str, Any]) -> bool:
        """Return whether a deviation differs from the reference at an entry of a case."""
        field, place = at["field"], tuple(at["index"])
        case = self._cases.get(at["case"])
        if case is None or field not in case.arrays:
            return False
        if OPERATIONS[self._suite.operation].is_by_row and place:  # no other row has a say
            row = slice(place[0], place[0] + 1)
            arrays = {name: array[row] for name, array in case.arrays.items()}
            case, place = Case(case.name, case.parameters, arrays), (0, *place[1:])
        other = self._near(deviation, case, field, place)
        if other is None:
            other = with_deviation(deviation, self._suite, case)
        theirs = other.arrays.get(field)
        return (
            theirs is not None and list(place) in np.argwhere(case.arrays[field] != theirs).tolist()
        )

    def _near(
        self, deviation: Deviation, case: Case, field: str, place: tuple[int, ...]
    ) -> Case | None:
        """Return a case with a deviation, in which tiles away from a digest are left empty.

        Error sums are left out as well if the digest is not of one of them.
        None if entries of the digest may follow from other tiles: if the reference does not have
        the digest without these tiles, or if a part of a tensor depends on the rest.
        """
        name, views = split(field)
        operation = OPERATIONS[self._suite.operation]
        axes = operation.field(name).axes
        if views != [DIGEST] or axes not in ("rc", "grid") or operation.needs_all(case.parameters):
            return None
        near = _NearDigest(axes, place)
        # No other field follows from the error sums of an operation that returns them.
        has_others = name not in SUMS and set(SUMS) <= set(operation.outputs)
        unneeded: list[Replacement] = [(error_sum, _no_errors)] if has_others else []
        with applied(deviation), replaced([(cells, near), *unneeded]):
            other = with_expected(self._suite, question(self._suite.fields, case))
        if not near.has_left_out:
            return other
        tile = (case.name, field, place[:2])
        if tile not in self._suffices:
            with replaced([(cells, _NearDigest(axes, place)), *unneeded]):
                ours = with_expected(self._suite, question(self._suite.fields, case))
            at = place[:2]
            self._suffices[tile] = np.array_equal(ours.arrays[field][at], case.arrays[field][at])
        return other if self._suffices[tile] else None


def _no_errors(*_: Any) -> ErrorSum:
    return ErrorSum()


class _NearDigest:
    """The step that cuts a tensor into tiles, where tiles away from a digest are empty.

    The digest is of 128x128 numbers, or of 128x128 tiles.
    """

    def __init__(self, axes: str, place: tuple[int, ...]) -> None:
        self._is_of_tiles = axes == "grid"
        self._rows, self._columns = (
            range(n * DIGEST_TILE, (n + 1) * DIGEST_TILE) for n in place[:2]
        )
        self.has_left_out = False

    def __call__(
        self, reference: Callable[..., Cells], rows: int, columns: int, sides: tuple[int, int]
    ) -> Cells:
        """Run in place of the step."""
        tiles = reference(rows, columns, sides)
        near = {tile: places for tile, places in tiles.items() if self._is_near(tile, places)}
        self.has_left_out |= len(near) < len(tiles)
        return {tile: near.get(tile, []) for tile in tiles}

    def _is_near(self, tile: tuple[int, int], places: list[tuple[int, int]]) -> bool:
        of_digest = [tile] if self._is_of_tiles else places
        return any(i in self._rows and j in self._columns for i, j in of_digest)


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


def searched_witnesses(
    suite: Suite, cases: list[Case], known: Mapping[str, Witness]
) -> dict[str, Witness]:
    """Return a witness for each deviation that the suite has to expose, by its name in golden/v1.

    The case of a known witness is searched first. It decides how long the search takes, and which
    of several witnesses is found. Tensors so large that their sums come from
    counts are not searched: they do not expose a deviation of a sum. A deviation without a witness
    is left out, as another seed may have none. A test checks that the bundled suites have all.
    """
    searched = sorted((case for case in cases if _elements(case) < MANY), key=distinct_numbers)
    exposed = [name for name, one in DEVIATIONS.items() if suite.name in one.suites]
    found = {}
    for name in dict.fromkeys([*(name for name in known if name in FORMER_IDS), *exposed]):
        likely = known.get(name, {"case": None})["case"]
        first = [case for case in searched if case.name == likely]
        witness = first_witness(CAUSES[id_of(name)], suite, (*first, *searched))
        if witness is not None:
            found[name] = witness
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
    entries, holding = Entries(suite, cases), {}
    for name, at in known.items():
        deviation = CAUSES.get(id_of(name))
        if deviation is not None and entries.differs(deviation, at):
            holding[name] = at
        step_done(suite.name)
    return holding
