"""Asking a candidate, suite by suite: in this process, or in many."""

import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from mor_ref.golden.model.suite import Case, question
from mor_ref.golden.model.views import split
from mor_ref.golden.store.container import read_suite
from mor_ref.verify.candidates.by_name import opened
from mor_ref.verify.candidates.candidate import Answer, Candidate, CandidateError, Ends
from mor_ref.verify.candidates.fresh_process import called_afresh
from mor_ref.verify.candidates.results_directory import ResultsDirectory
from mor_ref.verify.comparing.compare import fields_of, problem_of
from mor_ref.verify.comparing.evidence import Evidence, Failure
from mor_ref.workers.pools import Workers
from mor_ref.workers.shards import WorkersError

Result = TypeVar("Result")
Entries = Mapping[str, Any]  # of a manifest, by the names of suites
Asking = Callable[[Candidate, Path, Entries], Iterator[Evidence]]


def asked_here(candidate: Candidate, folder: Path, entries: Entries) -> Iterator[Evidence]:
    """What a candidate answers to suites, one after the other."""
    for name, entry in entries.items():
        yield _asked(candidate, folder, name, entry)


def asked_by(workers: Workers, seconds: float) -> Asking:
    """Each suite is asked by a worker, which opens the candidate for it."""

    def ask(candidate: Candidate, folder: Path, entries: Entries) -> Iterator[Evidence]:
        whole, here = folder.resolve(), Path.cwd()
        shards = [(candidate.name, seconds, here, whole, *suite) for suite in entries.items()]
        found = workers.outcomes_in_order(_asked_by_name, shards)
        for name, entry in entries.items():
            cases = read_suite(folder, name, entry)
            try:
                yield replace(next(found).result(), cases=cases, is_over=False)
            except WorkersError as error:
                failure = Failure(None, f"{candidate.name}, suite {name}: {error}")
                yield Evidence(
                    name, entry["operation"], fields_of(entry), cases, {}, failures=(failure,)
                )

    return ask


def _asked_by_name(
    candidate: str, seconds: float, here: Path, folder: Path, name: str, entry: dict[str, Any]
) -> Evidence:
    """What a candidate answers, without the cases that were asked, which are many."""
    try:
        found = with_opened(here, candidate, seconds, _asked_to_send, folder, name, entry)
    except CandidateError as error:  # it was opened by the one who asks, and cannot be here
        failure = Failure(None, f"on the worker {platform.node()}: {error}")
        return Evidence(name, entry["operation"], fields_of(entry), [], {}, failures=(failure,))
    return found


def with_opened(
    folder: Path, candidate: str, seconds: float, function: Callable[..., Result], *arguments: Any
) -> Result:
    """What a function of a candidate gives for the one that is meant by a name in this folder."""
    if ":" not in candidate:  # one of this package's own, the same in all folders
        return _called(candidate, seconds, function, *arguments)
    result: Result = called_afresh(folder, _called, candidate, seconds, function, *arguments)
    return result


def _called(
    candidate: str, seconds: float, function: Callable[..., Result], *arguments: Any
) -> Result:
    with opened(candidate, seconds) as there:
        return function(there, *arguments)


def _asked_to_send(
    candidate: Candidate, folder: Path, name: str, entry: dict[str, Any]
) -> Evidence:
    found = _asked(candidate, folder, name, entry)
    answers = {case: _sendable(answer) for case, answer in found.answers.items()}
    return replace(found, cases=[], answers=answers)


def _sendable(answer: Answer) -> Answer:
    """Arrays of somebody's objects may not be sent, and are compared with nothing anyway."""
    return {
        name: np.full(array.shape, None)
        if isinstance(array, np.ndarray) and array.dtype.hasobject
        else array
        for name, array in answer.items()
    }


def _asked(candidate: Candidate, folder: Path, name: str, entry: dict[str, Any]) -> Evidence:
    """What a candidate answers to the cases of a suite, up to a failure that ends the suite."""
    fields, operation = fields_of(entry), entry["operation"]
    cases = read_suite(folder, name, entry)
    answers: dict[str, Answer] = {}
    failures: list[Failure] = []
    ends: Ends = "case"
    for case in cases:
        try:
            answer = candidate.answer(name, operation, question(fields, case))
            whose = f"{candidate.name}, case {case.name!r} of {name}"
            _check_inputs(answer or {}, question(fields, case), whose)
        except CandidateError as error:
            ends = error.ends
            failures.append(Failure(None if ends == "suite" else case.name, str(error)))
            if ends != "case":
                break
        else:
            if answer is not None:
                answers[case.name] = answer
    is_readable = not failures  # a file of a folder
    others = (
        tuple(candidate.cases(name))
        if isinstance(candidate, ResultsDirectory) and is_readable
        else ()
    )
    witnesses = {name: (at["case"], at["field"]) for name, at in entry["kills"].items()}
    return Evidence(
        name,
        operation,
        fields,
        cases,
        answers,
        others,
        tuple(failures),
        witnesses,
        is_over=ends == "run",
    )


def _check_inputs(answer: Answer, asked: Case, whose: str) -> None:
    """Who repeats an input has to repeat its bits: other bits may have led to other results."""
    for name, given in answer.items():
        base = split(name)[0]
        if base not in asked.arrays or given is None:
            continue
        right = asked.arrays.get(name)
        if right is None or problem_of(given, right) or not np.array_equal(given, right):
            raise CandidateError(
                f"{whose}: the answer gives {name!r}, which goes in, otherwise than it was asked; "
                "answer to the inputs of the suite, and give them as they are or not at all"
            )
