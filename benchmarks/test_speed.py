"""The rows of the table, measured; `make bench` runs this, and the other tests do not.

The contenders of a row take turns, so that what disturbs the machine disturbs all of them, and the
best time of each counts.
"""

import functools
import time
import tracemalloc

import numpy as np
import pytest

from benchmarks.all_rows import ROWS
from benchmarks.rows import OURS, Row

# What other libraries warn of as they start is not ours to fail on.
pytestmark = pytest.mark.filterwarnings("ignore")

_TURN = 0.12  # seconds
_ROUNDS = 7


class Course:
    """A row on its way: its numbers, the prepared calls, and what was found when they first ran."""

    def __init__(self, row: Row) -> None:
        self._row = row
        self._x = row.numbers()
        self._calls = {}
        self._facts = {}
        self._ours = None

    def prepared(self, name):
        """The call of a contender, what is known of it, and how often to run it in a turn."""
        if name not in self._calls:
            contender = self._row.running[name]
            self._calls[name] = call = contender.prepare(self._x)
            result = call()  # compiles, and touches the memory
            differing = self._differing(name, contender, result)
            del result
            start = time.perf_counter()
            call()
            seconds = time.perf_counter() - start
            self._facts[name] = {
                "contender": name,
                "elements": contender.elements or self._x.size,
                "differing": differing,
                "differs": contender.differs,
                "mebibytes": memory_beyond(call) if name == OURS else None,
                "rounds": max(1, min(_ROUNDS, int(_TURN / seconds))),
            }
        return self._calls[name], dict(self._facts[name])

    def _differing(self, name, contender, result):
        if contender.bits is None:
            return None
        found = contender.bits(result)
        if name == OURS:
            self._ours = found
        expected = self._ours if contender.expected is None else contender.expected()
        pairs = list(zip(found, expected, strict=True))
        assert all(a.dtype == b.dtype and a.shape == b.shape for a, b in pairs), pairs
        return sum(int(np.count_nonzero(a != b)) for a, b in pairs)


def memory_beyond(call) -> float:
    """How many mebibytes a call takes for itself alone: at its peak, less what it returns."""
    tracemalloc.start()
    result = call()  # held while memory is counted
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del result
    return (peak - kept) / 2**20


@functools.lru_cache(maxsize=1)
def course_of(operation: str) -> Course:
    """The one row that is in memory."""
    return Course(next(row for row in ROWS if row.operation == operation))


@pytest.mark.parametrize(
    ("row", "turn", "name"),
    [(row, turn, name) for row in ROWS for turn in range(row.turns) for name in row.running],
    ids=lambda value: value.operation if isinstance(value, Row) else None,
)
def test_speed(row, turn, name, benchmark):
    call, facts = course_of(row.operation).prepared(name)
    rounds = facts.pop("rounds")
    benchmark.group = row.operation
    benchmark.extra_info |= facts
    benchmark.pedantic(call, rounds=rounds, iterations=1)
    if turn == 0 and facts["differing"]:
        assert facts["differs"], (
            f"{facts['differing']} elements are not the same, and none says why"
        )
