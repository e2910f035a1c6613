"""A row of the table: an operation, who carries it out, and the limits on the times."""

import importlib.util
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np

OURS, COPY = "mor_ref", "copy"
AS_MANY_BYTES = "copy of as many bytes"
WITH_OUT = "with out"  # ours, into room that is there already, as that of a copy is
_LARGEST_COPY = 1 << 27  # bytes: such a copy fits no cache, nor do larger arrays

Arrays = tuple[np.ndarray, ...]
Call = Callable[[], Any]


class Difference(NamedTuple):
    """Why the results of a contender are not ours, and in how many elements they may differ."""

    reason: str
    most: int
    least: int = 1


@dataclass(frozen=True)
class Contender:
    """Who carries out the operation of a row, in a call that is prepared before it is timed.

    The call is given the numbers, or what `given` makes of them, such as codes with scales.
    `bits` makes arrays of the call's result, to be compared with ours or with `expected`; `differs`
    says why they are not the same, where that is known. `elements` is how many of the row's numbers
    it takes, if not all; one that `makes_numbers` itself reads none of them.
    """

    prepare: Callable[[Any], Call]
    bits: Callable[[Any], Arrays] | None = None
    expected: Callable[[], Arrays] | None = None
    differs: Difference | None = None
    needs: str | None = None
    elements: int | None = None
    makes_numbers: bool = False
    given: Callable[[np.ndarray], Any] = lambda x: x  # as it is

    @property
    def is_installed(self) -> bool:
        """Whether the library or the program that it needs is here."""
        return (
            self.needs is None
            or importlib.util.find_spec(self.needs) is not None
            or shutil.which(self.needs) is not None
        )

    def allows(self, differing: int | None) -> bool:
        """Return whether so many elements may differ; True if they are not compared."""
        found = self.differs or Difference("", 0, 0)
        return differing is None or found.least <= differing <= found.most


class Measured(NamedTuple):
    """The measurement of a contender: the best time of a call, and its other figures."""

    contender: str
    seconds: float
    elements: int
    differing: int | None = None  # elements whose bits are not ours; None if they are not compared
    differs: str | None = None
    mebibytes: float | None = None  # beyond the input and the result
    moved: int | None = None  # bytes that are read and written, each once

    @property
    def nanoseconds(self) -> float:
        """The time for one element."""
        return self.seconds / self.elements * 1e9

    @property
    def rate(self) -> float:
        """How many bytes are read and written in a second."""
        return (self.moved or 0) / self.seconds


class Verdict(NamedTuple):
    """The limit and the measured ratio, and whether it is enough."""

    text: str
    is_met: bool
    bound: str = ""  # the obstacle, if it is known


@dataclass(frozen=True)
class Ratio:
    """A limit on the time for an element of some contenders over that of another; the worst counts.

    Those that were not measured are left out. `bound` says what bounds the ratio.
    """

    of: tuple[str, ...]
    over: str = OURS
    at_least: float | None = None
    at_most: float | None = None
    bound: str = ""

    def judge(self, found: Mapping[str, Measured]) -> Verdict | None:
        """Return the verdict, or None if there is nothing to compare."""
        here = [name for name in self.of if name in found]
        if not here or self.over not in found:
            return None
        worst = max if self.at_least is None else min
        name = worst(here, key=lambda name: found[name].nanoseconds)
        ratio = found[name].nanoseconds / found[self.over].nanoseconds
        pair = f"{name} / {self.over} {ratio:.2f}"
        if self.at_least is not None:
            return Verdict(f"{pair} (≥ {self.at_least:g})", ratio >= self.at_least, self.bound)
        return Verdict(f"{pair} (≤ {self.at_most:g})", ratio <= (self.at_most or 0), self.bound)


@dataclass(frozen=True)
class Memory:
    """A limit on the memory that a call of ours takes beyond its input and its result."""

    mebibytes: float

    def judge(self, found: Mapping[str, Measured]) -> Verdict | None:
        """Return the verdict, or None if it was not measured."""
        taken = found[OURS].mebibytes
        if taken is None:
            return None
        return Verdict(f"{taken:.1f} MiB (< {self.mebibytes:g})", taken < self.mebibytes)


@dataclass(frozen=True)
class Whole:
    """A limit on the seconds that so many elements take under every contender but copies."""

    elements: int
    seconds: float

    def judge(self, found: Mapping[str, Measured]) -> Verdict | None:
        """Return the verdict on the slowest."""
        slowest = max(
            (m for m in found.values() if m.contender not in (COPY, AS_MANY_BYTES)),
            key=lambda m: m.nanoseconds,
        )
        taken = slowest.nanoseconds * self.elements * 1e-9
        text = f"all in {taken:.1f} s under {slowest.contender} (≤ {self.seconds:g})"
        return Verdict(text, taken <= self.seconds)


@dataclass(frozen=True)
class Row:
    """An operation on some numbers. The first contender is ours.

    A copy of the numbers joins them where a limit is on its time, and one of as many bytes as ours
    moves. `compared` names the results of other libraries that are compared with ours.
    Of the contenders that are but other arguments of ours, the table shows the slowest few.
    """

    operation: str
    numbers: Callable[[], np.ndarray]
    contenders: Mapping[str, Contender]
    wanted: tuple[Ratio | Memory | Whole, ...] = ()
    turns: int = 3
    compared: str = "codes"

    @property
    def running(self) -> dict[str, Contender]:
        """Those that can be measured here."""
        found = {name: c for name, c in self.contenders.items() if c.is_installed}
        ratios = [limit for limit in self.wanted if isinstance(limit, Ratio)]
        if any(COPY in (*ratio.of, ratio.over) for ratio in ratios):
            found[COPY] = Contender(copying)
        if not self.contenders[OURS].makes_numbers:
            found[AS_MANY_BYTES] = Contender(copying)
        return found

    def judged(self, found: Mapping[str, Measured]) -> list[Verdict]:
        """Return the verdicts on all limits."""
        return [verdict for limit in self.wanted if (verdict := limit.judge(found))]


def copying(x: np.ndarray) -> Call:
    """Return a call that copies the same bytes to memory that exists already."""
    room = np.empty_like(x)
    return lambda: np.copyto(room, x)


def to_copy(moved: int) -> np.ndarray:
    """Return an array whose copy reads and writes so many bytes, up to a size that suffices."""
    return np.ones(min(moved // 2, _LARGEST_COPY), np.uint8)


def bytes_of(result: object) -> int:
    """Return the bytes of all arrays in the result of a call; shared memory counts once."""
    found: dict[int, int] = {}
    for array in arrays_in(result):
        start = array.__array_interface__["data"][0]
        found[start] = max(array.nbytes, found.get(start, 0))
    return sum(found.values())


def arrays_in(result: object) -> Iterator[np.ndarray]:
    """Yield the arrays in records and tables, at any depth."""
    if isinstance(result, np.ndarray):
        yield result
    elif isinstance(result, dict):
        yield from arrays_in(tuple(result.values()))
    elif isinstance(result, tuple | list):
        for part in result:
            yield from arrays_in(part)
    elif is_dataclass(result):
        yield from arrays_in(tuple(getattr(result, field.name) for field in fields(result)))
    elif hasattr(result, "__dict__"):
        yield from arrays_in(vars(result))
