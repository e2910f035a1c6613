"""What a row of the table is: an operation, who carries it out, and what is wanted of the times."""

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

OURS, COPY = "mor_ref", "copy"

Arrays = tuple[np.ndarray, ...]
Call = Callable[[], Any]


@dataclass(frozen=True)
class Contender:
    """Who carries out the operation of a row, in a call that is prepared before it is timed.

    `bits` makes arrays of what the call returns, to be held to ours or to `expected`; `differs`
    says why they are not the same, where that is known. `elements` is how many of the row's numbers
    it takes, if not all.
    """

    prepare: Callable[[np.ndarray], Call]
    bits: Callable[[Any], Arrays] | None = None
    expected: Callable[[], Arrays] | None = None
    differs: str | None = None
    needs: str | None = None
    elements: int | None = None

    @property
    def is_installed(self) -> bool:
        """Whether the library that it needs is here."""
        return self.needs is None or importlib.util.find_spec(self.needs) is not None


class Measured(NamedTuple):
    """What was found of a contender: the best time of a call, and what comes with it."""

    contender: str
    seconds: float
    elements: int
    differing: int | None = None  # elements whose bits are not ours; None if they are not compared
    differs: str | None = None
    mebibytes: float | None = None  # beyond the input and what is returned

    @property
    def nanoseconds(self) -> float:
        """The time for one element."""
        return self.seconds / self.elements * 1e9


class Verdict(NamedTuple):
    """What was wanted and what was found, and whether it is enough."""

    text: str
    is_met: bool
    bound: str = ""  # what stands in the way, if that is known


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
        """The verdict, or None if there is nothing to compare."""
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
    """A limit on what a call of ours takes beyond its input and what it returns."""

    mebibytes: float

    def judge(self, found: Mapping[str, Measured]) -> Verdict | None:
        """The verdict, or None if it was not measured."""
        taken = found[OURS].mebibytes
        if taken is None:
            return None
        return Verdict(f"{taken:.1f} MiB (< {self.mebibytes:g})", taken < self.mebibytes)


@dataclass(frozen=True)
class Whole:
    """A limit on the seconds that so many elements take under every contender but the copy."""

    elements: int
    seconds: float

    def judge(self, found: Mapping[str, Measured]) -> Verdict | None:
        """The verdict on the slowest."""
        slowest = max(
            (m for m in found.values() if m.contender != COPY), key=lambda m: m.nanoseconds
        )
        taken = slowest.nanoseconds * self.elements * 1e-9
        text = f"all in {taken:.1f} s under {slowest.contender} (≤ {self.seconds:g})"
        return Verdict(text, taken <= self.seconds)


@dataclass(frozen=True)
class Row:
    """An operation on some numbers. The first contender is ours; a copy of the numbers joins them.

    Of the contenders that are but other arguments of ours, the table shows the slowest few.
    """

    operation: str
    numbers: Callable[[], np.ndarray]
    contenders: Mapping[str, Contender]
    wanted: tuple[Ratio | Memory | Whole, ...] = ()
    turns: int = 3

    @property
    def running(self) -> dict[str, Contender]:
        """Those that can be measured here."""
        installed = {name: c for name, c in self.contenders.items() if c.is_installed}
        return installed | {COPY: Contender(copying)}

    def judged(self, found: Mapping[str, Measured]) -> list[Verdict]:
        """What there is to say of the limits."""
        return [verdict for limit in self.wanted if (verdict := limit.judge(found))]


def copying(x: np.ndarray) -> Call:
    """A copy of the same bytes."""
    room = np.empty_like(x)
    return lambda: np.copyto(room, x)
