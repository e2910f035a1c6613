"""The rows of the table, measured; `make bench` runs this, and the other tests do not.

The contenders of a row take turns, so that a busy machine disturbs all of them, and the
best time of each counts.
"""

import functools

import pytest

from benchmarks.all_rows import ROWS
from benchmarks.course import Course
from benchmarks.rows import Row

# What other libraries warn of as they start is not ours to fail on.
pytestmark = pytest.mark.filterwarnings("ignore")


@functools.lru_cache(maxsize=1)
def course_of(operation: str) -> Course:
    """Return the course of an operation; only one row is in memory."""
    return Course(next(row for row in ROWS if row.operation == operation))


@pytest.mark.parametrize(
    ("row", "_turn", "name"),
    [(row, turn, name) for row in ROWS for turn in range(row.turns) for name in row.running],
    ids=lambda value: value.operation if isinstance(value, Row) else None,
)
def test_speed(row, _turn, name, benchmark):
    course = course_of(row.operation)
    facts = course.facts[name]
    benchmark.group = row.operation
    benchmark.extra_info |= facts
    benchmark.pedantic(course.calls[name], rounds=course.rounds, iterations=1)
    contender = row.running[name]
    assert contender.allows(facts["differing"]), (
        f"{facts['differing']} elements are not the same, which nothing explains: "
        f"{contender.differs}"
    )
