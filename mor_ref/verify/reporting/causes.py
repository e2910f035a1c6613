"""Causes of mismatches: suites that the same deviations or the same structure explain, together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mor_ref.verify.diagnosing.diagnosis_records import Explanation, SuiteDiagnosis
from mor_ref.verify.running.results import SuiteResult

CauseKind = Literal["deviation", "structure", "guess", "unknown"]
Found = tuple[SuiteResult, SuiteDiagnosis | None]


@dataclass(frozen=True)
class Cause:
    """The mistake that suites with mismatches have in common; the clearest suite is the first.

    A cause is known if it is a deviation, or the structure of the mismatches. `also` are the
    deviations that explain all of these suites as well.
    """

    kind: CauseKind
    suites: tuple[Found, ...]
    explanation: Explanation | None = None
    also: tuple[Explanation, ...] = ()

    @property
    def mismatches(self) -> int:
        """How many entries differ in its suites."""
        return sum(
            of.mismatches + of.of_reference if of else result.differing
            for result, of in self.suites
        )

    @property
    def is_known(self) -> bool:
        """Whether it explains all mismatches of its suites."""
        return self.kind in ("deviation", "structure")


def causes_of(results: Sequence[SuiteResult], diagnoses: Sequence[SuiteDiagnosis]) -> list[Cause]:
    """Return as few causes as explain the suites with mismatches, known ones first."""
    by_suite = {diagnosis.suite: diagnosis for diagnosis in diagnoses}
    wrong = [(r, by_suite.get(r.suite)) for r in results if r.verdict == "mismatch"]
    found = []
    while (best := _most_common(wrong)) is not None:
        of_it = [one for one in wrong if best.deviations in _names_of_whole(one)]
        wrong = [one for one in wrong if one not in of_it]
        also = tuple(e for e in _whole(of_it[0]) if e != best and _is_of_all(e, of_it))
        found.append(Cause("deviation", _clearest_first(of_it), best, also))
    alike: dict[tuple[object, ...], list[Found]] = {}
    for one in wrong:
        alike.setdefault(_alike(one), []).append(one)
    for key, of_it in alike.items():
        kind: CauseKind = key[0]  # type: ignore[assignment]  # as _alike returns it
        guess = of_it[0][1].explanations[0] if kind == "guess" and of_it[0][1] else None
        found.append(Cause(kind, _clearest_first(of_it), guess))
    order = {"deviation": 0, "structure": 0, "guess": 1, "unknown": 2}
    return sorted(found, key=lambda cause: (order[cause.kind], -cause.mismatches))


def _whole(one: Found) -> list[Explanation]:
    return [e for e in one[1].explanations if e.is_whole] if one[1] else []


def _names_of_whole(one: Found) -> list[tuple[str, ...]]:
    return [e.deviations for e in _whole(one)]


def _is_of_all(explanation: Explanation, suites: Sequence[Found]) -> bool:
    return all(explanation.deviations in _names_of_whole(one) for one in suites)


def _most_common(suites: Sequence[Found]) -> Explanation | None:
    """Return the explanation of the most suites; the first of them if several explain as many."""
    found = [e for one in suites for e in _whole(one)]
    if not found:
        return None
    names = [e.deviations for e in found]
    return max(found, key=lambda e: names.count(e.deviations))


def _alike(one: Found) -> tuple[object, ...]:
    """Return what suites without a whole explanation have in common."""
    of = one[1]
    if of is not None and of.is_displaced:
        return "structure", *((s.fields, s.words) for s in of.structures if s.words)
    if of is not None and of.explanations:
        return "guess", of.explanations[0].deviations
    return "unknown", of is not None and of.is_large, of.lacks if of else ""


def _clearest_first(suites: Sequence[Found]) -> tuple[Found, ...]:
    """Return the suites in order: normative, few fields that differ, a large share of entries."""

    def order(one: Found) -> tuple[bool, int, float]:
        result, _ = one
        fields = sum(not field.matches for field in result.fields)
        return not result.normative, fields, -result.differing / max(1, result.compared)

    return tuple(sorted(suites, key=order))
