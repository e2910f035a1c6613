"""Asking a candidate, suite by suite: in this process, or in workers."""

import platform
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mor_ref.golden.model.suite import Case, question
from mor_ref.golden.model.views import SEPARATOR
from mor_ref.golden.store.suite_files import read_suite
from mor_ref.mapped_files import in_memory
from mor_ref.mistakes.catalogue import id_of
from mor_ref.operations.bits import Unsigned
from mor_ref.verify.candidates.by_name import candidate_named
from mor_ref.verify.candidates.candidate import (
    NO_REMARKS,
    Answer,
    Candidate,
    CandidateError,
    NoAnswer,
    Remarks,
)
from mor_ref.verify.candidates.fresh_process import outcome_of_candidate
from mor_ref.verify.candidates.results_directory import read_part
from mor_ref.verify.comparing.changed_answers import cases_to_repeat, is_same_answer
from mor_ref.verify.comparing.compare import problem_of
from mor_ref.verify.comparing.evidence import (
    ALL_ASKED,
    NO_REPEATS,
    Evidence,
    Failure,
    NotAsked,
    Repeats,
)
from mor_ref.verify.comparing.names_given import fields_of
from mor_ref.verify.running.large_cases import CaseInStrips
from mor_ref.verify.running.suites import Entry, Suites
from mor_ref.workers.pools import Workers
from mor_ref.workers.shards import Outcome, WorkersError

_AT_ONCE = 1 << 22  # numbers
Ask = Callable[[Candidate, Suites], Iterator[Evidence]]


@dataclass(frozen=True)
class _Answers:
    """The answers of a candidate to the cases of a suite, without the cases, which are many."""

    answers: Mapping[str, Answer]
    failures: tuple[Failure, ...] = ()
    other_cases: tuple[str, ...] = ()
    is_over: bool = False
    remarks: Remarks = NO_REMARKS
    repeats: Repeats = NO_REPEATS
    not_asked: NotAsked = ALL_ASKED
    second: Mapping[str, Answer | None] = field(default_factory=dict)

    def on(self, suite: str, entry: Entry, cases: list[Case]) -> Evidence:
        """Return the answers together with the suite."""
        return Evidence(
            suite,
            entry["operation"],
            fields_of(entry),
            cases,
            self.answers,
            self.other_cases,
            self.failures,
            {id_of(name): (at["case"], at["field"]) for name, at in entry["kills"].items()},
            is_over=self.is_over,
            remarks=self.remarks,
            repeats=self.repeats,
            not_asked=self.not_asked,
            second=self.second,
        )


def ask_here(candidate: Candidate, suites: Suites) -> Iterator[Evidence]:
    """Yield the answers of a candidate to suites, one suite after the other."""
    for name, entry in suites.entries.items():
        cases = read_suite(suites.directory, name, entry)
        yield _answers(candidate, name, entry, cases).on(name, entry, cases)


Parts = Iterator[tuple[str, list[Case] | CaseInStrips]]


def ask_parts(parts: Callable[[Collection[str]], Parts]) -> Ask:
    """Return a way to ask parts of suites, which are made when they are asked.

    `parts` is given the names of the suites.
    After a failure that ends a suite, its other parts are not asked. A large case is asked once,
    and its answer comes strip by strip.
    """

    def ask(candidate: Candidate, suites: Suites) -> Iterator[Evidence]:
        ended = ""
        for name, cases in parts(suites.entries):
            if name == ended:
                continue
            entry = suites.entries[name]
            large = cases if isinstance(cases, CaseInStrips) else None
            asked = [cases.case] if isinstance(cases, CaseInStrips) else cases
            found = _answers(candidate, name, entry, asked, large)
            if any(failure.case is None for failure in found.failures):
                ended = name
            evidence = [found.on(name, entry, asked)]
            if large is not None and found.answers:
                del cases, found, asked
                yield from large.strips(candidate, evidence.pop())
                continue
            del cases, found, asked
            yield evidence.pop()  # nothing of it stays here

    return ask


def ask_workers(workers: Workers, seconds: float) -> Ask:
    """Return a way to ask in which workers open the candidate, anew for each suite.

    A failure of the candidate therefore ends no other suite.
    """

    def ask(candidate: Candidate, suites: Suites) -> Iterator[Evidence]:
        here, directory = Path.cwd(), suites.directory.resolve()
        shards = [(here, candidate.name, seconds, directory, *s) for s in suites.entries.items()]
        found: Iterator[Outcome[_Answers]]
        found = workers.outcomes_in_order(_answers_in_worker, shards)
        for name, entry in suites.entries.items():
            cases = read_suite(suites.directory, name, entry)
            try:
                answers = next(found).result()
            except WorkersError as error:
                failure = Failure(None, f"{candidate.name}, suite {name}: {error}")
                answers = _Answers({}, (failure,))
            yield answers.on(name, entry, cases)

    return ask


def _answers_in_worker(here: Path, candidate: str, *asked: Any) -> Outcome[_Answers]:
    try:
        return outcome_of_candidate(here, candidate, _answers_of_named, *asked)
    except CandidateError as error:  # its process was ended
        return Outcome.of(_failed_on_worker(error))


def _answers_of_named(
    candidate: str, seconds: float, directory: Path, suite: str, entry: Entry
) -> _Answers:
    """Return the answers of a candidate that is opened for this suite: it ends no other."""
    try:
        with candidate_named(candidate, seconds) as one:
            found = _answers(one, suite, entry, read_suite(directory, suite, entry))
    except CandidateError as error:  # it was opened by the one who asks, and cannot be here
        not_asked = NotAsked(tuple(entry["cases"]), error.why)
        return replace(_failed_on_worker(error), not_asked=not_asked)
    return replace(found, is_over=False)


def _failed_on_worker(error: CandidateError) -> _Answers:
    return _Answers({}, (Failure(None, f"on the worker {platform.node()}: {error}"),))


def _answers(
    candidate: Candidate,
    suite: str,
    entry: Entry,
    cases: list[Case],
    large: CaseInStrips | None = None,
) -> _Answers:
    """Return the answers to the cases of a suite, up to a failure that ends the suite."""
    fields, operation = fields_of(entry), entry["operation"]
    answers: dict[str, Answer] = {}
    failures: list[Failure] = []
    reasons: list[str] = []
    not_asked = ALL_ASKED
    for number, case in enumerate(cases):
        asked = question(fields, case)
        try:
            if large is None:
                answer = candidate.answer(suite, operation, asked)
            else:
                answer = large.asked_of(candidate, suite)
            _check_inputs(answer or {}, asked, f"{candidate.name}, case {case.name!r} of {suite}")
        except NoAnswer as reason:
            reasons.append(str(reason))
        except CandidateError as error:
            failures.append(Failure(None if error.ends == "suite" else case.name, str(error)))
            if error.ends == "run":
                not_asked = NotAsked(tuple(case.name for case in cases[number + 1 :]), error.why)
            if error.ends != "case":
                break
        else:
            if answer is not None:
                answers[case.name] = answer
    others = () if failures else tuple(candidate.cases(suite))  # files could be read
    remarks = candidate.remarks()
    if not answers:
        remarks += Remarks(tuple(dict.fromkeys(reasons)))
    found = _Answers(
        answers, tuple(failures), others, bool(not_asked.why), remarks, not_asked=not_asked
    )
    is_asked = large is None and candidate.suites is None  # files do not change
    ended = any(failure.case is None for failure in failures)
    return _again(candidate, suite, entry, cases, found) if is_asked and not ended else found


def _again(
    candidate: Candidate, suite: str, entry: Entry, cases: list[Case], first: _Answers
) -> _Answers:
    """Return the answers with later ones to some cases, which are asked in another order."""
    fields, operation = fields_of(entry), entry["operation"]
    second: dict[str, Answer | None] = {}
    failures: dict[str, Failure] = {}
    not_asked, asked = first.not_asked, list[str]()
    for case in cases_to_repeat(cases, first.answers):
        if not_asked.why:
            break
        if case.name in failures or case.name in second:
            continue
        asked.append(case.name)
        try:
            answer = candidate.answer(suite, operation, question(fields, case))
        except NoAnswer:
            answer = None
        except CandidateError as error:
            failures[case.name] = Failure(case.name, f"{error} (when it was asked again)")
            not_asked = NotAsked(why=error.why if error.ends == "run" else "")
            continue
        if not is_same_answer(first.answers[case.name], answer):
            second[case.name] = answer
    candidate.remarks()  # they would count its entries twice
    return replace(
        first,
        failures=(*first.failures, *failures.values()),
        is_over=bool(not_asked.why),
        not_asked=not_asked,
        repeats=Repeats(len({*asked}), len(first.answers), len(asked), len(failures)),
        second=second,
    )


def _check_inputs(answer: Answer, asked: Case, whose: str) -> None:
    """Refuse an answer that repeats an input with other bits, which may give other results."""
    for name, given in answer.items():
        base = name.split(SEPARATOR)[0]  # what follows may be no view, which is a mismatch
        if base not in asked.arrays or given is None:
            continue
        right = asked.arrays.get(name)
        if right is None or problem_of(given, right) or not _is_same(given, right):
            raise CandidateError(
                f"{whose}: the answer changes the input {name!r}; compute from the inputs of the "
                "suite, and return each input unchanged or not at all"
            )


def _is_same(given: Any, right: Unsigned) -> bool:
    """Return whether two arrays are equal, some rows at a time."""
    array = np.asarray(given)
    step = max(1, _AT_ONCE * len(right) // max(right.size, 1)) if right.ndim else 1
    if right.ndim == 0:
        return np.array_equal(array, right)
    rows = (slice(k, k + step) for k in range(0, len(right), step))
    return all(np.array_equal(read_part(array[some]), in_memory(right[some])) for some in rows)
