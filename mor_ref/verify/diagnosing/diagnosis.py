"""Search for the deviations that explain the mismatches of a candidate: one, or two together."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from mor_ref.definitions.block_formats import MissingFunctionError
from mor_ref.deviations import Deviation
from mor_ref.mistakes import mistakes_of_all
from mor_ref.mistakes.catalogue import CAUSES
from mor_ref.operations import OPERATIONS
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.diagnosing.certainty import Cases, Certainty
from mor_ref.verify.diagnosing.codes_outside import with_codes_outside
from mor_ref.verify.diagnosing.diagnosis_records import (
    Diagnosis,
    Explanation,
    Structure,
    SuiteDiagnosis,
)
from mor_ref.verify.diagnosing.displaced_deviations import Displaced, displaced_deviation
from mor_ref.verify.diagnosing.entries import differing_fields
from mor_ref.verify.diagnosing.explanations import (
    at_fewest_sites,
    explanation_of,
    in_parts,
    names_of,
    size_of,
    spared_elsewhere,
    spared_next_to_mismatches,
)
from mor_ref.verify.diagnosing.guesses import LEADERS, Guesses
from mor_ref.verify.diagnosing.one_scale import causes_of_one_scale
from mor_ref.verify.diagnosing.pairs import certain_pairs
from mor_ref.verify.diagnosing.placed_deviations import Placed, modelled, placed_deviations
from mor_ref.verify.diagnosing.sample import (
    Sample,
    count_of_reference,
    few_cases,
    in_turn,
    is_large,
    is_of_rows,
    samples_of,
    some_of,
)
from mor_ref.verify.diagnosing.scoring import Model, Together
from mor_ref.verify.diagnosing.structure import (
    structure_of_each_field,
    structures_left,
    structures_of,
    where_deviating,
)
from mor_ref.verify.diagnosing.tensor_parts import parts_of
from mor_ref.verify.diagnosing.tried_alone import tried_alone

# Limits are counts of elements that the model computes: unlike seconds, they are the same on every
# machine.
PAIRS_END = 1 << 17  # in pairs that explain nothing, before the search ends
_OF_STRUCTURE = 1 << 14  # elements of cases that differ, and as many of cases that match
_LEAST_FOR_REST = 10  # a guess explains one mismatch in 10, if the rest is searched
_SHARE = 0.9  # explained by a guess that is preferred to a structure or moved entries


def diagnose(
    found: Iterable[Evidence],
    matching: Sequence[Evidence] = (),
    on_suite: Callable[[str], None] = lambda _: None,
) -> Diagnosis:
    """Return the explanations of suites that have mismatches.

    `matching` are suites without mismatches. `on_suite` is called with the name of each suite
    before its diagnosis, which may take a while. A suite is omitted if all its differences are in
    entries that are not compared.

    The explanation of one suite is tried first on the next. It is a guess if it would change
    entries of another suite that match.
    """
    known: list[Together] = []
    diagnoses = []
    searched = set[str]()
    differing = sorted(found, key=lambda one: (is_large(one), not is_of_rows(one)))
    for evidence in differing:
        on_suite(evidence.suite)
        try:
            one = _of_suite(evidence, matching, known, searched)
        except MissingFunctionError as error:
            one = _not_computed(evidence, error.function)
        diagnoses += [] if one is None else [one]
    return Diagnosis(tuple(_with_doubts(one, differing) for one in diagnoses))


def _with_doubts(diagnosis: SuiteDiagnosis, differing: Sequence[Evidence]) -> SuiteDiagnosis:
    """Return a diagnosis whose explanations are guesses if entries of other suites say so."""
    others = [one for one in differing if one.suite != diagnosis.suite and not is_large(one)]
    doubted = [_doubted(one, others) if one.is_whole else one for one in diagnosis.explanations]
    whole = tuple(one for one in doubted if one.is_whole)
    return replace(diagnosis, explanations=whole or tuple(doubted))


def _doubted(one: Explanation, others: Iterable[Evidence]) -> Explanation:
    """Return a deviation as a guess if it would change entries that match in another suite."""
    if len(one.deviations) > 1 or one.deviations[0] not in CAUSES:
        return one
    those = (CAUSES[one.deviations[0]],)
    spared = tuple(spared_next_to_mismatches(those, others))
    return replace(one, is_whole=False, spared=(*one.spared, *spared)) if spared else one


def _of_suite(
    evidence: Evidence,
    matching: Sequence[Evidence],
    known: list[Together],
    searched: set[str],
) -> SuiteDiagnosis | None:
    """Return the diagnosis of a suite; what explains it is added to what is known."""
    search = _Search(evidence)
    if not search.differing:
        count = search.of_reference
        return SuiteDiagnosis(evidence.suite, 0, (), of_reference=count) if count else None
    those = search.explaining(known)
    one = None if those else search.diagnosis([], matching)
    if one is not None and one.is_large and evidence.operation not in searched:
        one, those = _by_parts(evidence, search, one, known)
    searched.add(evidence.operation)
    known += [together for together in those if together not in known]
    one = one or search.diagnosis(those, matching)
    size = size_of(evidence) if evidence.is_of_parts else one.of_parts
    return replace(one, of_parts=size)


def _not_computed(evidence: Evidence, lacks: str) -> SuiteDiagnosis | None:
    """Return the diagnosis of a suite whose model needs a function of a user that is not here."""
    mismatches = sum(one.count for found in evidence.comparisons.values() for one in found)
    return SuiteDiagnosis(evidence.suite, mismatches, (), lacks=lacks) if mismatches else None


def _by_parts(
    evidence: Evidence, search: "_Search", alone: SuiteDiagnosis, known: list[Together]
) -> tuple[SuiteDiagnosis | None, list[Together]]:
    """Return the diagnosis of large tensors by parts of them, if there is one.

    Deviations that explain the parts are tried on the tensors. If these deviations explain all
    mismatches of the tensors, they are returned, without a diagnosis.
    """
    parts = None if alone.is_displaced or alone.explanations else parts_of(evidence)
    if parts is None:
        return alone, []
    of_parts = _Search(parts)
    found = of_parts.explaining(known)
    if those := search.explaining(found):
        return None, those
    return in_parts(alone, of_parts.diagnosis(found, ()), parts), []


def _mistakes_in(evidence: Evidence) -> Iterable[Deviation]:
    """Return the deviations that are tried: the mistakes of block formats, or those listed."""
    formulas = OPERATIONS[evidence.operation].formulas
    if formulas is None:
        return CAUSES.values()
    wrong = (
        case
        for case in evidence.cases
        if any(one.count for one in evidence.compared(case.name).values())
    )
    return mistakes_of_all(formulas(case.parameters) for case in wrong)


class _Search:
    """The search for the deviations that explain the mismatches of one suite."""

    def __init__(self, evidence: Evidence) -> None:
        self._cases = list(samples_of(evidence))
        self.differing = sorted((e for e in self._cases if e.mismatches), key=lambda e: e.size)
        self._matching = [e for e in self._cases if not e.mismatches]
        self.of_reference = count_of_reference(evidence, self.differing)
        self._suite = evidence.suite
        self._is_large, self._of_rows = is_large(evidence), is_of_rows(evidence)
        self._turns = in_turn(self.differing, of_rows=self._of_rows)
        self._model = Model(_mistakes_in(evidence))
        self._evidence = evidence
        self._untried = 0
        self._known: list[Together] = []
        self._paired: list[Together] = []

    def explaining(self, known: list[Together]) -> list[Together]:
        """Return the deviations that explain all mismatches: single ones if possible, else pairs.

        Explanations of other suites are tried first, and each deviation of a pair alone.
        """
        of_known = [(one,) for those in known for one in those]
        singles = list(dict.fromkeys(sorted(of_known, key=lambda one: one not in known)))
        self._known += singles
        found = self._certainty.certain(singles)
        if not found and not self._is_large:
            found = self._certainty.certain(self._alone)
        if not found:
            found = self._certainty.certain([those for those in known if len(those) > 1])
        is_open = not found and not self._certainty.leads
        if is_open and self._is_searched and not self._is_displaced_whole:
            found = self._surviving_pairs(singles)
        return at_fewest_sites(found, names_of)

    def diagnosis(self, those: list[Together], matching: Sequence[Evidence]) -> SuiteDiagnosis:
        """Return the diagnosis of the suite, given the deviations that explain all mismatches."""
        mismatches = sum(sample.mismatches for sample in self.differing)
        found = [self._of_all(one, matching) for one in those]
        found = [one for one in found if one.is_whole] or found
        if not found and not self._structure_explains_all:
            found = [one for one, _ in self._placed] if self._is_large else self._guessed()
            found = found or [self._of_all(one, matching) for one in self._certainty.leads]
            found = [self._as_lead(one) for one in found]
        leaders = tuple(one.name for (one,) in self._paired)
        there = with_codes_outside(self._structures_of(found), found, self._cases)
        named = (self._suite, mismatches, tuple(found), self._is_large, leaders, self._untried)
        untried = 0 if self._is_large else len(self._model.alone) - len(self._alone)
        return SuiteDiagnosis(*named, there, untried_alone=untried, of_reference=self.of_reference)

    def _of_all(self, those: Together, matching: Sequence[Evidence]) -> Explanation:
        """Return deviations that explain all mismatches: for certain, if they change no match."""
        mismatches = sum(sample.mismatches for sample in self.differing)
        spared = (*self._certainty.spared(those), *spared_elsewhere(those, matching))
        found = explanation_of(those, mismatches, mismatches, is_whole=not spared)
        return replace(found, spared=spared)

    def _as_lead(self, one: Explanation) -> Explanation:
        """Return a guess with the case that speaks against it, if it explains all mismatches."""
        those = self._model.named(one.deviations)
        return (
            replace(one, spared=self._certainty.spared(those))
            if those in self._certainty.leads
            else one
        )

    @cached_property
    def _alone(self) -> list[Together]:
        few = few_cases(self._turns, of_rows=self._of_rows)
        return tried_alone(self._model, self._evidence, self.differing, {*few, *self._turns[:1]})

    @cached_property
    def _certainty(self) -> Certainty:
        some = [*self._guesses.some_matching, *self._some_matching]
        cases = Cases(self._turns, self._matching, some, [] if self._is_large else self._matching)
        return Certainty(self._model, self._suite, cases, self._evidence.witnesses)

    @cached_property
    def _guesses(self) -> Guesses:
        return Guesses(
            self._model,
            self._alone,
            self._cases,
            self.differing,
            self._turns,
            of_rows=self._of_rows,
        )

    @cached_property
    def _structures(self) -> list[Structure]:
        return structures_of(self._cases)

    @property
    def _structure_explains_all(self) -> bool:
        """Whether structures explain every field that differs."""
        there = {name for one in self._structures if one.is_whole for name in one.fields}
        return there == set(differing_fields(self._cases))

    @property
    def _has_structure(self) -> bool:
        """Whether the first structure has the bits of all entries that differ, or of most."""
        return any(
            one.is_of_all or one.is_of_most or (bool(one.words) and one.explained == one.of)
            for one in self._structures[:1]
        )

    def _guessed(self) -> list[Explanation]:
        """Return guesses, or the deviation with moved entries if it explains more."""
        moved = [] if self._displaced is None else [self._displaced[0]]
        if self._is_displaced_whole:
            return moved
        found = at_fewest_sites(list(self._guesses.best()), lambda one: one.deviations)
        if not any(one.fields for one in found) and self._placed:
            return [one for one, _ in self._placed]
        if self._has_structure:
            found = [one for one in found if one.fields or one.explained >= _SHARE * one.of]
        is_less = all(not one.fields and one.explained < _SHARE * one.of for one in found)
        return moved if moved and is_less else found

    @property
    def _is_displaced_whole(self) -> bool:
        return self._displaced is not None and self._displaced[0].is_whole

    @property
    def _is_searched(self) -> bool:
        return not self._is_large and not self._structure_explains_all

    @cached_property
    def _placed(self) -> list[Placed]:
        """The deviations that explain all mismatches, if a condition says where they apply.

        There are none if the first field needs no deviation.
        """
        if any(one.is_whole for one in self._structures[:1]):
            return []
        of_all = self._guesses.of_all(self._known if self._is_large else None)
        some = self._some
        if not self._of_rows:
            some = [case for case, _ in self._guesses.looked_at] + self._some_matching
        return list(placed_deviations(self._model, of_all, some, cases=len(self._cases)))

    @cached_property
    def _displaced(self) -> Displaced | None:
        """The deviation that explains most with moved entries, if all cases are looked at."""
        if self._of_rows or len(self._some_differing) < len(self.differing):
            return None
        mismatches = sum(sample.mismatches for sample in self.differing)
        return displaced_deviation(self._model, self._alone, self._turns[0], self._some, mismatches)

    @cached_property
    def _some_differing(self) -> list[Sample]:
        return some_of(self.differing, _OF_STRUCTURE, of_rows=False)

    @cached_property
    def _some(self) -> list[Sample]:
        """Some cases that differ, and some that match, to compute with deviations."""
        return self._some_differing + self._some_matching

    @cached_property
    def _some_matching(self) -> list[Sample]:
        return some_of(self._matching, _OF_STRUCTURE, of_rows=False)

    def _structures_of(self, found: list[Explanation]) -> Iterator[Structure]:
        """Yield the structures of mismatches, and of those that the best deviations leave."""
        best = next(iter(found), None)
        if best is not None and best.is_displaced and self._displaced is not None:
            yield from self._displaced[1]
            return
        is_of_all = best is not None and not best.is_whole and best.explained == best.of
        placed = {one.deviations: where for one, where in self._placed} if is_of_all else {}
        if best is not None and best.deviations in placed:
            yield placed[best.deviations]
            return
        if best is None or not (best.is_whole or best.fields):
            yield from self._structures
        if best is None or best.is_whole:
            yield from causes_of_one_scale(self._cases) if best is not None else ()
            return
        is_rest = best.explained < best.of
        is_little = _LEAST_FOR_REST * best.explained < best.of
        if is_rest and not best.fields and (is_little or self._has_structure):
            return
        of_best = modelled(self._model, best, self._some)
        structures_with = structures_left if is_rest else where_deviating
        structures = list(structures_with(of_best, best.deviations))
        if best.fields:
            structures = list(structure_of_each_field(best.fields, self._structures, structures))
        for one in structures:
            yield replace(one, is_of_sample=len(self._some) < len(self._cases))

    def _surviving_pairs(self, known: Sequence[Together]) -> list[Together]:
        """Return pairs of deviations; one of each explains another suite, or much of this one."""
        self._paired = list(dict.fromkeys([*known, *self._guesses.leaders[:LEADERS]]))
        others = list(dict.fromkeys([*self._paired, *self._alone]))
        found, self._untried = certain_pairs(
            self._model, self._certainty, self._guesses, self._paired, others, end=PAIRS_END
        )
        return found
