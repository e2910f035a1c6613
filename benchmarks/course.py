"""A row on its way: its numbers, the prepared calls, and the results of their first run."""

import time
import tracemalloc
from collections.abc import Collection
from typing import Any

import numpy as np

from benchmarks.rows import AS_MANY_BYTES, COPY, OURS, Call, Contender, Row, bytes_of, to_copy

_TURN = 0.12  # seconds for each contender
_FEWEST, _ROUNDS = 2, 7


class Course:
    """All contenders of a row, prepared; `rounds` is how often each of them runs in a turn.

    Ours is the first of them: the results of the others are compared with its results.
    """

    def __init__(self, row: Row) -> None:
        self._x = row.numbers()
        self._ours: Any = None
        self.calls: dict[str, Call] = {}
        self.facts: dict[str, dict[str, Any]] = {}
        seconds = [self._prepare(name, contender) for name, contender in row.running.items()]
        self.rounds = rounds_in_a_turn(seconds)

    def _prepare(self, name: str, contender: Contender) -> float:
        """Prepare a contender; return the seconds of its second call, as the first compiles."""
        x = to_copy(self.facts[OURS]["moved"]) if name == AS_MANY_BYTES else self._x
        given = contender.given(x)
        self.calls[name] = call = contender.prepare(given)
        result = call()
        self.facts[name] = {
            "contender": name,
            "elements": contender.elements or x.size,
            "differing": self._differing(name, contender, result),
            "differs": contender.differs and contender.differs.reason,
            "mebibytes": memory_beyond(call) if name == OURS else None,
            "moved": moved(name, contender, given, result),
        }
        del result
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    def _differing(self, name: str, contender: Contender, result: Any) -> int | None:
        if contender.bits is None:
            return None
        found = contender.bits(result)
        if name == OURS:
            self._ours = found
        expected = self._ours if contender.expected is None else contender.expected()
        pairs = list(zip(found, expected, strict=True))
        assert all(a.dtype == b.dtype and a.shape == b.shape for a, b in pairs), pairs
        return sum(int(np.count_nonzero(a != b)) for a, b in pairs)


def moved(name: str, contender: Contender, given: Any, result: Any) -> int | None:
    """Return the bytes that a call of ours, or a copy, reads and writes; None for others."""
    if name in (COPY, AS_MANY_BYTES):
        return 2 * bytes_of(given)
    if name != OURS or contender.makes_numbers:
        return None
    return bytes_of(given) + bytes_of(result)


def rounds_in_a_turn(seconds: Collection[float]) -> int:
    """Return the rounds of each contender in a turn.

    All contenders of a row have the same number, and so as many chances of a good time. It is the
    number that fits in the time that the contenders have together, up to a limit.
    """
    return max(_FEWEST, min(_ROUNDS, int(_TURN * len(seconds) / sum(seconds))))


def memory_beyond(call: Call) -> float:
    """Return the mebibytes that a call takes for itself: at its peak, less its result."""
    tracemalloc.start()
    result = call()  # held while memory is counted
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del result
    return (peak - kept) / 2**20
