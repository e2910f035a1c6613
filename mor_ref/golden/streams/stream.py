"""Streams of test cases: the inputs of a bundled case first, and then random ones without end."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mor_ref.argument_checks import UnknownNameError, known_name
from mor_ref.golden import bundled_files, load
from mor_ref.golden.store.manifest import read_manifest
from mor_ref.golden.streams.lines import Column, Line
from mor_ref.operations import OPERATIONS, RandomInputs
from mor_ref.operations.fields import format_meant
from mor_ref.operations.operation import Arrays, Parameters
from mor_ref.operations.random_numbers import Draws

_CHUNK = 1 << 14  # cases that are made at once: few enough that they stay in the processor's cache
_SHOWN = 3


@dataclass(frozen=True)
class Stream:
    """The source of lines: a case of a suite of columns.

    `domain` has the random inputs of the operation, and which inputs it takes.
    """

    suite: str
    case: str
    operation: str
    parameters: Parameters
    inputs: tuple[Column, ...]
    results: tuple[Column, ...]
    domain: RandomInputs

    @property
    def name(self) -> str:
        """The name on the command line."""
        return f"{self.suite}/{self.case}"

    @cached_property
    def question(self) -> Line:
        """A line as it is generated."""
        return Line(self.inputs)

    @cached_property
    def answer(self) -> Line:
        """A line as it comes back."""
        return Line(self.inputs + self.results)


def stream_named(text: str) -> Stream:
    """Return the stream that SUITE/CASE names, or SUITE if it has one case."""
    suites = read_manifest(bundled_files())["suites"]
    suite, _, case = text.partition("/")
    entry = suites[known_name("suite", suite, suites)]
    domain = OPERATIONS[entry["operation"]].random
    if domain is None:
        streamed = [name for name, other in suites.items() if OPERATIONS[other["operation"]].random]
        raise ValueError(
            f"suite is {suite!r}, whose cases are blocks or tensors, and streams are of single "
            f"numbers; take one of {', '.join(streamed)}, or use mor-ref verify"
        )
    name = _case_named(suite, case, list(entry["cases"]))
    columns: dict[str, list[Column]] = {"input": [], "expected": []}
    for field in entry["fields"]:
        meant = format_meant(field["format"], entry["cases"][name])
        columns[field["role"]].append(Column(field["name"], meant))
    return Stream(
        suite,
        name,
        entry["operation"],
        entry["cases"][name],
        tuple(columns["input"]),
        tuple(columns["expected"]),
        domain,
    )


def _case_named(suite: str, case: str, cases: list[str]) -> str:
    if case in cases:
        return case
    if not case and len(cases) == 1:
        return cases[0]
    if not case:
        some = ", ".join(f"{suite}/{name}" for name in cases[:_SHOWN])
        raise ValueError(
            f"suite is {suite!r}, which has {len(cases)} cases; give one of them after a slash, "
            f"such as {some}; mor-ref golden list {suite} --cases prints all"
        )
    (near,) = difflib.get_close_matches(case, cases, n=1, cutoff=0.0)
    raise UnknownNameError(
        f"case of {suite} is {case!r}, which is not known; did you mean {near!r}? there are "
        f"{len(cases)}, which mor-ref golden list {suite} --cases prints"
    )


def inputs_of(
    stream: Stream, seed: int, count: int | None = None, chunk: int = _CHUNK
) -> Iterator[Arrays]:
    """Yield the inputs of a stream, some cases at a time: `count` of them, or without end."""
    left = count
    for arrays in _without_end(stream, seed, chunk):
        size = next(iter(arrays.values())).size
        if left is not None and left <= size:
            yield {name: array[:left] for name, array in arrays.items()}
            return
        left = None if left is None else left - size
        yield arrays


def _without_end(stream: Stream, seed: int, chunk: int) -> Iterator[Arrays]:
    bundled = _bundled_inputs(stream)
    for start in range(0, next(iter(bundled.values())).size, chunk):
        yield {name: array[start : start + chunk] for name, array in bundled.items()}
    first = 0
    while True:
        yield random_inputs(stream, Draws(first, chunk, seed))
        first += chunk


def random_inputs(stream: Stream, draws: Draws) -> Arrays:
    """Return the random inputs of some cases."""
    found = stream.domain.draw(stream.parameters, draws)
    return {c.name: found[c.name].astype(np.dtype(f"u{c.size}")) for c in stream.inputs}


def _bundled_inputs(stream: Stream) -> Arrays:
    arrays = next(case.arrays for case in load(stream.suite) if case.name == stream.case)
    return {column.name: arrays[column.name].copy() for column in stream.inputs}
