"""Checking lines of inputs and results, as they come, against the results of the engine."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.golden.streams.lines import NEWLINE, Column
from mor_ref.golden.streams.stream import Stream
from mor_ref.operations import OPERATIONS
from mor_ref.operations.operation import Arrays
from mor_ref.verify.comparing.distance import distance, shown

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
        """Describe a wrong line: its number, its inputs, and each result that differs."""
        inputs = _inputs(self.stream, self.given, place)
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


class Sent:
    """The inputs that were sent to a device, from the first line on."""

    def __init__(self, chunks: Iterator[Arrays]) -> None:
        self._chunks = chunks
        self._rest: Arrays = {}
        self._size = 0

    def take(self, count: int) -> Arrays:
        """Return the inputs of the next lines."""
        while self._size < count:
            more = next(self._chunks)
            rest = self._rest or {name: array[:0] for name, array in more.items()}
            self._rest = {name: np.concatenate([rest[name], more[name]]) for name in more}
            self._size += next(iter(more.values())).size
        taken = {name: array[:count] for name, array in self._rest.items()}
        self._rest = {name: array[count:] for name, array in self._rest.items()}
        self._size -= count
        return taken


def checked(
    stream: Stream, read: Read, count: int | None = None, sent: Sent | None = None
) -> Iterator[Checked]:
    """Yield the check of every line that `read` returns, some lines at a time.

    With a count, no more lines than that are checked, and fewer are an error; so is none. A line
    with other inputs than were sent is one too.
    """
    done = 0
    for lines in whole_lines(read, stream.answer.length):
        given = stream.answer.read(lines)
        size = given[stream.results[0].name].size
        wanted = size if count is None else min(size, count - done)
        given = {name: array[:wanted] for name, array in given.items()}
        problem = _first_problem(stream, given, None if sent is None else sent.take(wanted))
        usable = wanted if problem is None else problem.place
        if usable:
            part = {name: array[:usable] for name, array in given.items()}
            yield _compared(stream, done + 1, usable, part)
        done += usable
        if problem is not None:
            raise LineError(f"line {done + 1} has {problem.what}")
        if done == count:
            return
        if size * stream.answer.length < len(lines):
            raise LineError(_not_understood(stream, done + 1, lines[size * stream.answer.length :]))
    if count is not None:
        raise LineError(f"count is {count}, but the input ended after {done} lines; give them all")
    if not done:
        raise LineError(f"the input has no line to check; give lines of {stream.answer.describe()}")


def whole_lines(read: Read, length: int) -> Iterator[bytes]:
    """Yield whole lines from `read`; CRLF is a newline, and the last newline may be missing.

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
    expected = OPERATIONS[stream.operation].engine(stream.parameters, inputs)
    differs = np.zeros(count, np.bool_)
    for column in stream.results:
        differs |= given[column.name] != expected[column.name]
    return Checked(stream, first, count, given, expected, np.flatnonzero(differs))


class _Problem(NamedTuple):
    """A line whose inputs cannot be used, and a description of it."""

    place: int
    what: str


def _first_problem(stream: Stream, given: Arrays, sent: Arrays | None) -> _Problem | None:
    """Find the first line whose inputs differ from those sent, or that the operation refuses."""
    if sent is not None:
        same = np.logical_and.reduce([given[name] == array for name, array in sent.items()])
        if same.all():
            return None
        place = int(same.argmin())
        return _Problem(
            place,
            f"{_inputs(stream, given, place)}, where mor-ref gen sent "
            f"{_inputs(stream, sent, place)}; return each of its lines once, in its order, and "
            "give here the seed that it had",
        )
    inside = stream.domain.inside(stream.parameters, given)
    if inside.all():
        return None
    place = int(inside.argmin())
    inputs = _inputs(stream, given, place)
    return _Problem(place, f"{inputs}, which {stream.suite} does not take: {stream.domain.takes}")


def _inputs(stream: Stream, arrays: Arrays, place: int) -> str:
    return ", ".join(_named(c, arrays[c.name][place]) for c in stream.inputs)


def _not_understood(stream: Stream, number: int, lines: bytes) -> str:
    line = lines.split(NEWLINE, 1)[0].decode("ascii", "backslashreplace")
    cut = line if len(line) <= _MOST_SHOWN else line[:_MOST_SHOWN] + ".."
    return f"line {number} is {cut!r}, which is not understood; give {stream.answer.describe()}"


def _named(column: Column, bits: int) -> str:
    return f"{column.name} {shown(int(bits), column.format)}"


def _apart(found: int, right: int, fmt: str) -> str:
    apart = distance(found, right, fmt)
    return f", {apart}" if apart else ""
