"""Lines on the cases that were asked again."""

from collections.abc import Iterator, Sequence

from mor_ref.counts_in_words import counted
from mor_ref.verify.comparing.evidence import NO_REPEATS
from mor_ref.verify.running.results import SuiteResult

_SHOWN = 5  # changes of a suite


def asked_again(results: Sequence[SuiteResult]) -> Iterator[str]:
    """Say how many cases were asked again, how often, and what came of it."""
    repeats = sum((result.repeats for result in results), NO_REPEATS)
    changed = sum(len(result.changed_cases) for result in results)
    if repeats.cases:
        kinds = {"another answer to": changed, "a failure at": repeats.failed}
        parts = [f"{kind} {count:,} of them" for kind, count in kinds.items() if count]
        if changed + repeats.failed < repeats.cases:
            parts.append("the same answers to the others" if parts else "the same answers")
        cases, times = counted(repeats.of, "case"), counted(repeats.questions, "time")
        yield f"asked again: {repeats.cases:,} of {cases}, {times} in all; {', '.join(parts)}"


def another_answer(result: SuiteResult) -> str:
    """Say to how many of the cases that were asked again there was another answer."""
    cases = counted(result.repeats.cases, "case")
    return f"another answer to {len(result.changed_cases):,} of {cases} that were asked again"


def changed(result: SuiteResult) -> Iterator[str]:
    """Say which answers were others when cases were asked again."""
    if result.changes:
        yield f"{another_answer(result)}; return the same bits whenever a case is asked"
        yield from (f"  {change}" for change in result.changes[:_SHOWN])
