"""Which rows of a suite show a mistake, where each row is a question of its own.

The rows are computed once, and the operands of each site are kept with all the rows that have them.
An operator is then tried on the operands. Only where its result is another one is a row computed
with the mistake. So it is exact, and cheap, that no row of a kind of call differs.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from mor_ref.deviations.deviation import Function, applied, everywhere
from mor_ref.exact.step import Step, replaced
from mor_ref.mistakes.calls import calls_made
from mor_ref.mistakes.mistake import Mistake, Place
from mor_ref.mistakes.source import SourceSite, hooked

Arrays = Mapping[str, np.ndarray[Any, Any]]
_BEYOND = (ArithmeticError, ValueError)  # a wrong program may refuse numbers
_SAMPLE = 24  # rows that are computed before all others
_STRIDE = 31  # between operands of a site that are tried one after the other


@dataclass(frozen=True)
class Kind:
    """A kind of call: its name, the count of its rows, and what computes the fields of some."""

    name: str
    count: int
    compute: Callable[[Sequence[int]], Arrays]


class Seen(NamedTuple):
    """Operands of a site, the right function of them and its result, and all their rows."""

    right: Function
    operands: tuple[Any, ...]
    result: str
    rows: list[int]

    def differs(self, wrong: Function) -> bool:
        """Return whether an operator has another result, or none."""
        try:
            return repr(wrong(self.right, *self.operands)) != self.result
        except _BEYOND:
            return True


@dataclass(frozen=True)
class Verdict:
    """What becomes of a mistake in a kind of call.

    `shown` are some rows that have another field, and `field` is the first one. If there are none,
    all `touched` rows were computed: those in which a site of it has another result.
    """

    mistake: Mistake
    kind: str
    touched: int = 0
    shown: tuple[int, ...] = ()
    field: str | None = None


@dataclass
class Trace:
    """What the sites of some mistakes see in the rows of a kind.

    A site is a step and the number of a node: sites that count in other calls see the same.
    """

    kind: Kind
    seen: dict[tuple[Step, int, Place | None], dict[str, Seen]] = field(default_factory=dict)
    row: int | None = None  # that is computed

    def touched(self, mistake: Mistake) -> Iterator[int]:
        """Yield the rows in which a mistake changes what a site of it returns."""
        if mistake.operator.wrong is None:  # statements are exchanged
            yield from range(self.kind.count)
            return
        there = [
            [*self.seen.get((site.step, site.node, mistake.place), {}).values()]
            for site in _in_source(mistake)
        ]
        for seen in (
            one for each in there for first in range(_STRIDE) for one in each[first::_STRIDE]
        ):
            if seen.differs(mistake.operator.wrong):
                yield from seen.rows


def _in_source(mistake: Mistake) -> list[SourceSite]:
    return [site for site in mistake.sites if isinstance(site, SourceSite)]


def traced(mistakes: Iterable[Mistake], kind: Kind) -> Trace:
    """Compute all rows of a kind, and keep what the sites of mistakes see."""
    wanted: dict[Place | None, dict[Step, dict[int, SourceSite]]] = {}
    for mistake in mistakes:
        for site in _in_source(mistake):
            steps = wanted.setdefault(mistake.place, {})
            steps.setdefault(site.step, {})[site.node] = replace(site, where=everywhere)
    trace = Trace(kind)
    for place, steps in wanted.items():
        changes = [
            hooked({site: _keeping(trace, site, place) for site in sites.values()})
            for sites in steps.values()
        ]
        if place is not None:
            changes = [place.change(change) for change in changes]
        with replaced([(change.step, change) for change in changes]):
            for trace.row in range(kind.count):
                kind.compute([trace.row])
        trace.row = None
    return trace


def _keeping(trace: Trace, site: SourceSite, place: Place | None) -> Function:
    seen = trace.seen.setdefault((site.step, site.node, place), {})

    def keep(right: Function, *operands: Any) -> Any:
        result = right(*operands)
        if trace.row is not None:
            key = repr(operands)
            if key not in seen:
                seen[key] = Seen(right, operands, repr(result), [])
            if trace.row not in seen[key].rows[-1:]:
                seen[key].rows.append(trace.row)
        return result

    return keep


def judged(mistake: Mistake, trace: Trace, expected: Arrays) -> Verdict:
    """Return what becomes of a mistake: a sample of the touched rows is computed, then all."""
    touched = trace.touched(mistake)
    sample = [*islice(touched, _SAMPLE)]
    shown, name = _shown(mistake, trace.kind, sample, expected)
    if sample and not shown:
        sample = sorted({*sample, *touched})
        shown, name = _shown(mistake, trace.kind, sample, expected)
    return Verdict(mistake, trace.kind.name, len(sample), shown, name)


def _shown(
    mistake: Mistake, kind: Kind, rows: Sequence[int], expected: Arrays
) -> tuple[tuple[int, ...], str | None]:
    """Return the rows of some that have another field with a mistake, and the first such field."""
    if not rows:
        return (), None
    wrong = None
    with applied(mistake.deviation), np.errstate(over="ignore"), contextlib.suppress(*_BEYOND):
        wrong = kind.compute(rows)
    if wrong is None:
        return tuple(rows), None
    differs = {
        name: (wrong[name] != array[rows]).reshape(len(rows), -1).any(axis=1)
        for name, array in expected.items()
    }
    shown = np.logical_or.reduce([*differs.values()])
    first = next((name for name, where in differs.items() if where.any()), None)
    return tuple(np.asarray(rows)[shown].tolist()), first


def matrix(mistakes: Sequence[Mistake], kind: Kind) -> list[Verdict]:
    """Return what becomes of each mistake in a kind of call."""
    expected, made = made_in(kind, mistakes)
    trace = traced((one for one in mistakes if one.name in made), kind)
    return [
        judged(one, trace, expected) if one.name in made else Verdict(one, kind.name)
        for one in mistakes
    ]


def made_in(kind: Kind, mistakes: Sequence[Mistake]) -> tuple[Arrays, set[str]]:
    """Return the right results of a kind, and the names of mistakes that can be made there.

    These are the mistakes of calls that it makes.
    """
    changes = {mistake.name: mistake.deviation.changes for mistake in mistakes}
    with calls_made((one.step, one.where) for each in changes.values() for one in each) as calls:
        expected = kind.compute(range(kind.count))
    made = {
        name for name, own in changes.items() if any((one.step, one.where) in calls for one in own)
    }
    return expected, made


def matrix_by_calls(mistakes: Sequence[Mistake], kind: Kind) -> list[Verdict]:
    """Return what becomes of each mistake in a kind of call whose rows are one number each.

    A number costs less to compute with a mistake than to trace. Mistakes in other kinds of calls,
    and those whose steps are not taken, are not computed.
    """
    everything = [*range(kind.count)]
    sample = everything[:: max(kind.count // _SAMPLE, 1)]
    expected, made = made_in(kind, mistakes)
    verdicts = []
    for mistake in mistakes:
        rows: list[int] = []
        shown: tuple[tuple[int, ...], str | None] = ((), None)
        if mistake.name in made:
            rows, shown = sample, _shown(mistake, kind, sample, expected)
            if not shown[0]:
                rows, shown = everything, _shown(mistake, kind, everything, expected)
        verdicts.append(Verdict(mistake, kind.name, len(rows), *shown))
    return verdicts


def cover(verdicts: Iterable[Verdict]) -> dict[str, list[int]]:
    """Return few rows of each kind that show each mistake that some row of the kind shows."""
    by_kind: dict[str, list[set[int]]] = {}
    for verdict in verdicts:
        if verdict.shown:
            by_kind.setdefault(verdict.kind, []).append({*verdict.shown})
    return {kind: _covering(unshown) for kind, unshown in by_kind.items()}


def _covering(unshown: list[set[int]]) -> list[int]:
    """Return rows, each of which is in the most sets that have none of those before it."""
    chosen = []
    while unshown:
        ((best, _),) = Counter(row for rows in unshown for row in rows).most_common(1)
        chosen.append(best)
        unshown = [rows for rows in unshown if best not in rows]
    return chosen
