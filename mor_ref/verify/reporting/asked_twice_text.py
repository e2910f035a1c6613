"""Lines on the cases that were asked twice."""

from collections.abc import Iterator, Sequence

from mor_ref.verify.counts_in_words import counted
from mor_ref.verify.running.results import SuiteResult

_SHOWN = 5  # changes of a suite


def asked_twice(results: Sequence[SuiteResult]) -> Iterator[str]:
    """Say how many cases were asked twice, and whether all answers were the same."""
    twice = sum(result.asked_twice for result in results)
    changed = sum(len(result.changed_cases) for result in results)
    if twice:
        said = f"another answer to {changed:,} of them" if changed else "the same answers"
        cases = counted(sum(result.answered for result in results), "case")
        yield f"asked twice: {twice:,} of {cases}, {said}"


def another_answer(result: SuiteResult) -> str:
    """Say to how many cases the second answer was another."""
    cases = counted(result.asked_twice, "case")
    return f"another answer to {len(result.changed_cases):,} of {cases} that were asked twice"


def changed(result: SuiteResult) -> Iterator[str]:
    """Say which answers were others when cases were asked again."""
    if result.changes:
        yield f"{another_answer(result)}; return the same bits whenever a case is asked"
        yield from (f"  {change}" for change in result.changes[:_SHOWN])
