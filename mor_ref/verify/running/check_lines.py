"""Checking lines of inputs and results, as they come, against the results of the engine."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.counts_in_words import counted
from mor_ref.definitions.formats import formats
from mor_ref.golden.streams.lines import NEWLINE, LineField
from mor_ref.golden.streams.stream import Stream, inputs_of
from mor_ref.operations import OPERATIONS
from mor_ref.operations.call import Arrays
from mor_ref.operations.fields import INTEGERS
from mor_ref.verify.comparing.allowed import EVERY_BIT, Allowed
from mor_ref.verify.comparing.distance import distance, shown
from mor_ref.verify.comparing.inputs_of_entry import largest_of

_MOST_SHOWN = 60  # characters of a line that is not understood

Read = Callable[[], bytes]


class LineError(ValueError):
    """A line that is not understood, or lines that are missing."""


@dataclass(frozen=True, eq=False)
class Checked:
    """Some lines that were checked: the number of the first, and which of them are wrong.

    `other_bits` counts the entries whose bits differ and are allowed to.
    """

    stream: Stream
    first: int
    count: int
    given: Arrays
    expected: Arrays
    wrong: NDArray[np.intp]
    allowed: Allowed = EVERY_BIT
    other_bits: int = 0

    def describe(self, place: int) -> str:
        """Describe a wrong line: its number, its inputs, and each result that differs."""
        inputs = _inputs(self.stream, self.given, place)
        results = [self._difference(column, place) for column in self._wrong_results(place)]
        return f"line {self.first + place}: {inputs}: {'; '.join(results)}"

    def rules(self, place: int) -> set[str]:
        """Return the rules of the results of a line that differ."""
        declared = OPERATIONS[self.stream.operation]
        wrong = self._wrong_results(place)
        return {rule for column in wrong for rule in declared.field(column.name).rules}

    def _wrong_results(self, place: int) -> list[LineField]:
        return [one for one in self.stream.results if self._differs(one, place).any()]

    def _differs(self, column: LineField, place: int) -> NDArray[np.bool_]:
        """Return which entries of a result differ in a line."""
        found, right = (
            np.atleast_1d(side[column.name][place]) for side in (self.given, self.expected)
        )
        return unlike(column, found, right, self.allowed)

    def _difference(self, column: LineField, place: int) -> str:
        """Describe the first entry of a result that differs, and count the others."""
        found, right = (
            np.atleast_1d(side[column.name][place]) for side in (self.given, self.expected)
        )
        wrong = np.flatnonzero(self._differs(column, place))
        at = int(wrong[0])
        bits = _meant(self.stream, column, found[at]), _meant(self.stream, column, right[at])
        said = (
            f"{_entry(column, at)} is {shown(bits[0], column.format)}, but "
            f"{shown(bits[1], column.format)} is expected{_apart(*bits, column.format)}"
        )
        own = self.stream.inputs[0]
        if column.count and own.count:
            of = _meant(self.stream, own, self.given[own.name][place, at])
            said += f", of {_entry(own, at)} {shown(of, own.format)}"
        if wrong.size > 1:
            said += f"; {column.name} differs at {counted(int(wrong.size) - 1, 'more place')}"
        return said


def computed(stream: Stream) -> Stream:
    """Return a stream if the engine computes all of its results; refuse others."""
    some = next(inputs_of(stream, 0, 1))
    known = OPERATIONS[stream.operation].engine(stream.parameters, some)
    for column in stream.results:
        if column.name not in known:
            raise ValueError(
                f"field is {column.name!r}, which only the exact model computes; take one of "
                f"{', '.join(known)}, or use mor-ref verify"
            )
    return stream


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
            self._size += len(next(iter(more.values())))
        taken = {name: array[:count] for name, array in self._rest.items()}
        self._rest = {name: array[count:] for name, array in self._rest.items()}
        self._size -= count
        return taken


def unlike(
    column: LineField, given: NDArray[Any], expected: NDArray[Any], allowed: Allowed
) -> NDArray[np.bool_]:
    """Return which entries of a column differ in bits that are not allowed to."""
    differs: NDArray[np.bool_] = given != expected
    if allowed.is_nothing or column.format not in formats:
        return differs
    fmt = formats[column.format]
    found: NDArray[np.bool_] = differs & ~allowed.either(given, expected, fmt)
    return found


def checked(
    stream: Stream,
    read: Read,
    count: int | None = None,
    sent: Sent | None = None,
    allowed: Allowed = EVERY_BIT,
) -> Iterator[Checked]:
    """Yield the check of every line that `read` returns, some lines at a time.

    With a count, no more lines than that are checked, and fewer are an error; so is none. A line
    with other inputs than were sent is one too. `allowed` bits of results may differ.
    """
    done = 0
    for lines in whole_lines(read, stream.answer.length):
        given = stream.answer.read(lines)
        size = len(given[stream.results[0].name])
        wanted = size if count is None else min(size, count - done)
        given = {name: array[:wanted] for name, array in given.items()}
        problem = _first_problem(stream, given, None if sent is None else sent.take(wanted))
        usable = wanted if problem is None else problem.place
        if usable:
            part = {name: array[:usable] for name, array in given.items()}
            yield _compared(stream, done + 1, usable, part, allowed)
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


def _compared(stream: Stream, first: int, count: int, given: Arrays, allowed: Allowed) -> Checked:
    inputs = {column.name: given[column.name] for column in stream.inputs}
    expected = OPERATIONS[stream.operation].engine(stream.parameters, inputs)
    differs, other_bits = np.zeros(count, np.bool_), 0
    for column in stream.results:
        found = given[column.name], expected[column.name]
        wrong = unlike(column, *found, allowed)
        differs |= _of_any(wrong)
        other_bits += int(np.count_nonzero((found[0] != found[1]) & ~wrong))
    places = np.flatnonzero(differs)
    return Checked(stream, first, count, given, expected, places, allowed, other_bits)


class _Problem(NamedTuple):
    """A line whose inputs cannot be used, and a description of it."""

    place: int
    what: str


def _first_problem(stream: Stream, given: Arrays, sent: Arrays | None) -> _Problem | None:
    """Find the first line whose inputs differ from those sent, or that the operation refuses."""
    if sent is not None:
        same = ~np.logical_or.reduce([_of_any(given[n] != array) for n, array in sent.items()])
        if same.all():
            return None
        place = int(same.argmin())
        entries = {
            name: np.flatnonzero(np.atleast_1d(given[name][place] != array[place]))[:1]
            for name, array in sent.items()
        }
        return _Problem(
            place,
            f"{_inputs(stream, given, place, entries)}, where mor-ref gen sent "
            f"{_inputs(stream, sent, place, entries)}; return each of its lines once, in its "
            "order, and give here the seed that it had",
        )
    inside = stream.domain.inside(stream.parameters, given)
    if inside.all():
        return None
    place = int(inside.argmin())
    inputs = _inputs(stream, given, place)
    return _Problem(place, f"{inputs}, which {stream.suite} does not take: {stream.domain.takes}")


def _of_any(differs: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which lines have an entry that differs."""
    found: NDArray[np.bool_] = np.any(differs.reshape(len(differs), -1), axis=1)
    return found


def _inputs(
    stream: Stream,
    arrays: Arrays,
    place: int,
    entries: Mapping[str, NDArray[np.intp]] | None = None,
) -> str:
    """Describe the inputs of a line: of a block its largest number, or the `entries`."""
    said = []
    for column in stream.inputs:
        bits = arrays[column.name][place]
        if column.count is None:
            number = _meant(stream, column, bits)
            said.append(f"{column.name} {shown(number, column.format)}")
        elif entries is None and column.format not in INTEGERS:  # which are codes
            top = largest_of(column.name, bits, column.format)
            said.append(f"{top.what} is {shown(top.bits, top.format)}")
        elif entries is not None:
            said += [
                f"{_entry(column, at)} {shown(_meant(stream, column, bits[at]), column.format)}"
                for at in entries[column.name].tolist()
            ]
    return ", ".join(said)


def _not_understood(stream: Stream, number: int, lines: bytes) -> str:
    line = lines.split(NEWLINE, 1)[0].decode("ascii", "backslashreplace")
    cut, why = line, ""
    if len(line) > _MOST_SHOWN:
        cut, why = line[:_MOST_SHOWN] + "..", f": {_fault_of(line, stream)}"
    return (
        f"line {number} is {cut!r}, which is not understood{why}; give {stream.answer.describe()}"
    )


def _fault_of(line: str, stream: Stream) -> str:
    """Return the fault of a line: how many numbers it has, or the first wrong one."""
    digits = [column.digits for column in stream.answer.columns for _ in range(column.words)]
    words = line.split(" ")
    if len(words) < len(digits):
        return f"it has {len(words)} numbers, but {len(digits)} are expected"
    for place, (word, size) in enumerate(zip(words, digits, strict=False), 1):
        if not re.fullmatch(f"[0-9a-fA-F]{{{size}}}", word):
            return f"number {place} is {word[:_MOST_SHOWN]!r}, but {size} digits are expected"
    return f"it has more than {len(digits)} numbers"


def _meant(stream: Stream, column: LineField, bits: Any) -> int:
    """Return the bits of an entry, or the integer that they mean."""
    return OPERATIONS[stream.operation].field(column.name).number(int(bits))


def _entry(column: LineField, at: int) -> str:
    """Return the name of an entry of a line."""
    return column.name if column.count is None else f"{column.name}[{at}]"


def _apart(found: int, right: int, fmt: str) -> str:
    apart = distance(found, right, fmt)
    return f", {apart}" if apart else ""
