"""The cases of suites that a diagnosis looks at: all of them, or those that have room."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from mor_ref.golden.model.suite import Case
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.diagnosing.diagnosis import diagnose
from mor_ref.verify.diagnosing.diagnosis_records import Diagnosis, Structure
from mor_ref.verify.diagnosing.structure import displaced_fields
from mor_ref.verify.diagnosing.tensor_parts import parts_of
from mor_ref.verify.running.results import SuiteResult


class DiagnosedCases:
    """The answers to suites, without the cases that would take too long and too much memory.

    Of each suite, cases that differ are taken up to `most` numbers, and as many of other cases. If
    none that differs has room, and it is `with_parts`, parts of one are taken.
    """

    def __init__(self, most: int | None, *, with_parts: bool) -> None:
        self._most, self._with_parts = most, with_parts
        self._parts: dict[str, Evidence] = {}
        self._structures: dict[str, tuple[Structure, ...]] = {}
        self._differing = set[str]()
        self._found: dict[str, Evidence] = {}
        self._room: dict[tuple[str, bool], int] = {}
        self._passed_over: dict[str, int] = {}

    def add(self, evidence: Evidence) -> None:
        """Take the cases of a suite, or of a part of one, that have room."""
        name = evidence.suite
        cases = []
        for case in evidence.cases:
            differing = sum(one.count for one in evidence.comparisons.get(case.name, ()))
            size = max(array.size for array in case.arrays.values())
            if evidence.strip is not None:  # not a case of its own
                self._take_parts(evidence, case)
                self._passed_over[name] = self._passed_over.get(name, 0) + differing
                continue
            room = self._room.get((name, bool(differing)), self._most)
            if room is None or size <= room:
                cases.append(case)
                self._differing |= {name} if differing else set()
                if room is not None:
                    self._room[name, bool(differing)] = room - size
            else:
                self._take_parts(evidence, case)
                self._passed_over[name] = self._passed_over.get(name, 0) + differing
        before = self._found.get(name)
        if before is None and len(cases) == len(evidence.cases):
            self._found[name] = evidence
            return
        there = {case.name for case in cases}
        answers = {case: one for case, one in evidence.answers.items() if case in there}
        if before is not None:
            cases, answers = [*before.cases, *cases], {**before.answers, **answers}
        self._found[name] = replace(evidence, cases=cases, answers=answers)

    def at(self, suite: str) -> Evidence:
        """Return the answers to the cases of a suite that have room, or to parts of one."""
        if suite in self._differing or suite not in self._parts:
            return self._found[suite]
        return self._parts[suite]

    def _take_parts(self, evidence: Evidence, case: Case) -> None:
        if self._with_parts and not {evidence.suite} & {*self._differing, *self._parts}:
            alone = replace(evidence, cases=[case])
            parts = parts_of(alone)
            if parts is not None:
                self._parts[evidence.suite] = parts
                self._structures[evidence.suite] = tuple(displaced_fields(alone))

    def diagnosis(
        self, results: Sequence[SuiteResult], on_diagnosis: Callable[[str, int], None]
    ) -> Diagnosis:
        """Return the diagnosis of suites with differences, given those that match."""
        wrong = [self.at(one.suite) for one in results if one.differences]
        right = [self.at(one.suite) for one in results if one.verdict == "match"]
        found = diagnose(wrong, right, lambda name: on_diagnosis(name, len(wrong)))
        return self._with_structures(found)

    def _with_structures(self, found: Diagnosis) -> Diagnosis:
        """Return a diagnosis with the structures of whole fields where parts are not explained."""
        suites = [
            one
            if one.is_explained or one.suite in self._differing
            else replace(one, structures=self._structures.get(one.suite, ()) + one.structures)
            for one in found.suites
        ]
        return Diagnosis(tuple(suites))

    def passed_over(self, suite: str) -> int:
        """Return how many mismatches are in cases that have no room."""
        return self._passed_over.get(suite, 0)
