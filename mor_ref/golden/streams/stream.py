"""Streams of test cases: the inputs of a bundled case first, and then random ones without end.

A line has single numbers, or a block with all of its numbers.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mor_ref.argument_checks import UnknownNameError, known_name
from mor_ref.golden import bundled_files, load
from mor_ref.golden.store.manifest import read_manifest
from mor_ref.golden.streams.lines import Line, LineField
from mor_ref.operations import OPERATIONS, RandomInputs
from mor_ref.operations.call import Arrays, Parameters
from mor_ref.operations.fields import format_meant
from mor_ref.operations.random_numbers import Draws

_CHUNK = 1 << 14  # numbers that are made at once: few enough for the processor's cache
_SHOWN = 3


@dataclass(frozen=True, eq=False)
class Stream:
    """The source of lines: a case of a suite of columns or of blocks.

    `domain` has the random inputs of the operation, and which inputs it takes. `bundled` are the
    inputs of the case, and `others` its expected fields that the lines do not have.
    """

    suite: str
    case: str
    operation: str
    parameters: Parameters
    inputs: tuple[LineField, ...]
    results: tuple[LineField, ...]
    domain: RandomInputs
    bundled: Arrays
    others: tuple[LineField, ...] = ()

    @property
    def width(self) -> int:
        """The numbers of a block; 1 without blocks."""
        return self.inputs[0].words

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
    """Return the stream that SUITE/CASE names, or SUITE if it has one case.

    SUITE/CASE:ROWSxCOLUMNS has other tiles than the suite, if the profile of the case takes them.
    """
    named, colon, tile = text.partition(":")
    stream = _of_suite(named)
    return with_tile(stream, tile) if colon else stream


def _of_suite(text: str) -> Stream:
    suites = read_manifest(bundled_files())["suites"]
    suite, _, case = text.partition("/")
    entry = suites[known_name("suite", suite, suites)]
    domain = OPERATIONS[entry["operation"]].random
    if domain is None:
        streamed = [name for name, other in suites.items() if OPERATIONS[other["operation"]].random]
        raise ValueError(
            f"suite is {suite!r}, which has no random inputs; streams are of single numbers and "
            f"blocks: take one of {', '.join(streamed)}, or use mor-ref verify"
        )
    name = _case_named(suite, case, list(entry["cases"]))
    bundled = next(one for one in load(suite) if one.name == name)
    inputs, results = _columns_of(entry, name, bundled.arrays)
    stream = Stream(
        suite,
        name,
        entry["operation"],
        bundled.parameters,
        inputs,
        results,
        domain,
        {column.name: bundled.arrays[column.name] for column in inputs},
    )
    return with_results(stream, domain.answers) if domain.answers else stream


def with_tile(stream: Stream, tile: str) -> Stream:
    """Return a stream of larger tiles, row by row in a line; its numbers are all random.

    >>> stream = with_tile(stream_named("nvfp4_blocks/te"), "16x16")
    >>> stream.name, stream.width
    ('nvfp4_blocks/te:16x16', 256)
    """
    tiles = stream.domain.tiles
    if tiles is None:
        raise ValueError(
            f"stream is {stream.name}:{tile}, and only NVFP4 has tiles; leave out :{tile}"
        )
    sides = {"x".join(map(str, one)): one for one in tiles(stream.parameters)}
    rows, columns = sides[known_name("tile", tile, sides)]

    def wide(column: LineField) -> LineField:
        return column if column.count is None else replace(column, count=rows * columns)

    none = {one.name: np.zeros((0, *wide(one).shape), f"u{one.size}") for one in stream.inputs}
    return replace(
        stream,
        case=f"{stream.case}:{rows}x{columns}",
        parameters={**stream.parameters, "tile": (rows, columns)},
        inputs=tuple(wide(one) for one in stream.inputs),
        results=tuple(wide(one) for one in stream.results),
        others=tuple(wide(one) for one in stream.others),
        bundled=none,
    )


def with_results(stream: Stream, names: Sequence[str]) -> Stream:
    """Return a stream whose lines end with these results, in this order."""
    known = {column.name: column for column in (*stream.results, *stream.others)}
    chosen = tuple(known_name("field", name, known) for name in names)
    twice = next((name for name in chosen if chosen.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"field {twice} is given twice; give it once")
    others = tuple(column for name, column in known.items() if name not in chosen)
    return replace(stream, results=tuple(known[name] for name in chosen), others=others)


def _columns_of(
    entry: Mapping[str, Any], case: str, arrays: Arrays
) -> tuple[tuple[LineField, ...], tuple[LineField, ...]]:
    """Return the columns of the inputs and of the expected fields of a case."""
    columns: dict[str, list[LineField]] = {"input": [], "expected": []}
    for field in entry["fields"]:
        if field["name"] in arrays:
            meant = format_meant(field["format"], entry["cases"][case])
            column = LineField(field["name"], meant, *arrays[field["name"]].shape[1:])
            columns[field["role"]].append(column)
    return tuple(columns["input"]), tuple(columns["expected"])


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
    near = difflib.get_close_matches(case, cases, n=1, cutoff=0.4)
    hint = f"the nearest to it is {near[0]!r}; " if near else ""
    raise UnknownNameError(
        f"case of {suite} is {case!r}, which is not known; {hint}mor-ref golden list {suite} "
        f"--cases prints all {len(cases)}"
    )


def inputs_of(
    stream: Stream, seed: int, count: int | None = None, chunk: int | None = None
) -> Iterator[Arrays]:
    """Yield the inputs of a stream, some cases at a time: `count` of them, or without end."""
    left = count
    for arrays in _without_end(stream, seed, chunk or max(1, _CHUNK // stream.width)):
        size = len(next(iter(arrays.values())))
        if left is not None and left <= size:
            yield {name: array[:left] for name, array in arrays.items()}
            return
        left = None if left is None else left - size
        yield arrays


def _without_end(stream: Stream, seed: int, chunk: int) -> Iterator[Arrays]:
    for start in range(0, len(next(iter(stream.bundled.values()))), chunk):
        yield {name: array[start : start + chunk] for name, array in stream.bundled.items()}
    first = 0
    while True:
        yield random_inputs(stream, Draws(first, chunk, seed, stream.width))
        first += chunk


def random_inputs(stream: Stream, draws: Draws) -> Arrays:
    """Return the random inputs of some cases."""
    found = stream.domain.draw(stream.parameters, draws)
    return {c.name: found[c.name].astype(np.dtype(f"u{c.size}")) for c in stream.inputs}
