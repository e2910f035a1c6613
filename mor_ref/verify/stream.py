"""Checking lines of inputs and results, as they come, against what the engine computes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mor_ref.golden.lines import NEWLINE, Column
from mor_ref.golden.stream import Stream
from mor_ref.golden.suite import Arrays
from mor_ref.verify.distance import distance, shown
from mor_ref.verify.engine import OPERATIONS

_MOST_SHOWN = 60  # characters of a line that is not understood

Read = Callable[[], bytes]


class LineError(ValueError):
    """A line that is not understood, or lines that are missing."""


@dataclass(frozen=True, eq=False)
class Checked:
    """Some lines that were checked: the number of the first, and which of them are wrong."""

    stream: Stream
    first: int
    count: int
    given: Arrays
    expected: Arrays
    wrong: NDArray[np.intp]

    def describe(self, place: int) -> str:
        """One line about a wrong one: its number, its inputs, and each result that differs."""
        inputs = ", ".join(_named(c, self.given[c.name][place]) for c in self.stream.inputs)
        results = [
            f"{c.name} is {shown(found, c.format)}, but {shown(right, c.format)} is expected"
            f"{_apart(found, right, c.format)}"
            for c in self.stream.results
            for found, right in [
                (int(self.given[c.name][place]), int(self.expected[c.name][place]))
            ]
            if found != right
        ]
        return f"line {self.first + place}: {inputs}: {'; '.join(results)}"


def checked(stream: Stream, read: Read, count: int | None = None) -> Iterator[Checked]:
    """Every line of what `read` gives, piece by piece, until it gives nothing: some at a time.

    With a count, no more lines than that are checked, and fewer are an error; so is none.
    """
    done = 0
    for lines in whole_lines(read, stream.answer.length):
        given = stream.answer.read(lines)
        size = given[stream.results[0].name].size
        inside = stream.domain.inside(stream.parameters, given)
        outside = None if inside.all() else int(inside.argmin())
        usable = min(size if outside is None else outside, size if count is None else count - done)
        if usable:
            part = {name: array[:usable] for name, array in given.items()}
            yield _compared(stream, done + 1, usable, part)
        done += usable
        if done == count:
            return
        if outside is not None:
            raise LineError(_outside(stream, done + 1, given, outside))
        if size * stream.answer.length < len(lines):
            raise LineError(_not_understood(stream, done + 1, lines[size * stream.answer.length :]))
    if count is not None:
        raise LineError(f"count is {count}, but the input ended after {done} lines; give them all")
    if not done:
        raise LineError(f"the input has no line to check; give lines of {stream.answer.describe()}")


def whole_lines(read: Read, length: int) -> Iterator[bytes]:
    """What `read` gives, cut after newlines; CRLF is a newline, and the last one may be missing.

    A line that has grown far beyond `length` is handed on as if it had ended.
    """
    rest = b""
    while piece := read():
        whole, newline, rest = (rest + piece).rpartition(NEWLINE)
        if newline:
            yield (whole + newline).replace(b"\r\n", NEWLINE)
        if len(rest) > length + _MOST_SHOWN:
            yield rest + NEWLINE
            return
    if rest:
        yield rest.removesuffix(b"\r") + NEWLINE


def _compared(stream: Stream, first: int, count: int, given: Arrays) -> Checked:
    inputs = {column.name: given[column.name] for column in stream.inputs}
    expected = OPERATIONS[stream.operation](stream.parameters, inputs)
    differs = np.zeros(count, np.bool_)
    for column in stream.results:
        differs |= given[column.name] != expected[column.name]
    return Checked(stream, first, count, given, expected, np.flatnonzero(differs))


def _outside(stream: Stream, number: int, given: Arrays, place: int) -> str:
    inputs = ", ".join(_named(c, given[c.name][place]) for c in stream.inputs)
    return f"line {number} has {inputs}, which {stream.suite} does not take: {stream.domain.takes}"


def _not_understood(stream: Stream, number: int, lines: bytes) -> str:
    line = lines.split(NEWLINE, 1)[0].decode("ascii", "backslashreplace")
    cut = line if len(line) <= _MOST_SHOWN else line[:_MOST_SHOWN] + ".."
    return f"line {number} is {cut!r}, which is not understood; give {stream.answer.describe()}"


def _named(column: Column, bits: int) -> str:
    return f"{column.name} {shown(int(bits), column.format)}"


def _apart(found: int, right: int, fmt: str) -> str:
    apart = distance(found, right, fmt)
    return f", {apart}" if apart else ""
