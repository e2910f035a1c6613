"""What people read of a verification: lines of text."""

from collections.abc import Iterator

from mor_ref.deviations import DEVIATIONS
from mor_ref.verify.diagnosis import Explanation, SuiteDiagnosis
from mor_ref.verify.run import SuiteResult, Verification

_SHOWN = 5  # differences of a suite


def lines(verification: Verification) -> Iterator[str]:
    """What was found, suite by suite, what explains it, and how far the candidate conforms."""
    diagnoses = {diagnosis.suite: diagnosis for diagnosis in verification.diagnosis.suites}
    for result in verification.results:
        yield from suite_lines(result, diagnoses.get(result.suite))
    yield from summary(verification)


def summary(verification: Verification) -> Iterator[str]:
    """The last lines: what explains mismatches of several suites, conformance, the verdict."""
    common = explains_all(verification)
    if common:
        count = sum(diagnosis.mismatches for diagnosis in verification.diagnosis.suites)
        is_whole = not any(d.problem for r in verification.results for d in r.differences)
        yield f"all {count:,} mismatches{_comparable(is_whole)} are explained by {_by(common)}"
    counts = [
        f"{sum(result.verdict == verdict for result in verification.results)} {verdict}"
        for verdict in ("match", "mismatch", "not run")
    ]
    yield f"conformance: {verification.conformance}"
    yield f"{verification.candidate}: {verification.verdict} ({', '.join(counts)})"


def explains_all(verification: Verification) -> Explanation | None:
    """An explanation that every suite with mismatches has in common."""
    return next(iter(all_that_explain_all(verification)), None)


def all_that_explain_all(verification: Verification) -> list[Explanation]:
    """The explanations that every suite with mismatches has in common."""
    suites = verification.diagnosis.suites
    whole = [[e for e in suite.explanations if e.is_whole] for suite in suites]
    names = [{e.deviations for e in explanations} for explanations in whole]
    return [e for e in (whole[0] if whole else []) if all(e.deviations in there for there in names)]


def suite_lines(result: SuiteResult, diagnosis: SuiteDiagnosis | None) -> Iterator[str]:
    """A suite: the verdict, the fields, the first mismatches, the stage, and what explains them."""
    if result.verdict == "not run":
        yield f"{result.suite}: not run, the candidate has no answer"
        return
    foreign = "" if result.normative else ", not normative"
    some = "" if result.answered == result.cases else f" of {result.cases}"
    yield (
        f"{result.suite}: {result.verdict}, {result.compared:,} entries of {result.answered}{some} "
        f"cases{foreign}"
    )
    if result.not_given:
        yield f"  not given: {', '.join(result.not_given)}"
    if result.unknown:
        yield f"  not fields of this suite: {', '.join(result.unknown)}"
    if result.verdict == "mismatch":
        yield from _mismatch_lines(result)
    if diagnosis is not None:
        is_whole = not any(difference.problem for difference in result.differences)
        yield from (f"  {line}" for line in diagnosis_lines(diagnosis, is_whole=is_whole))


def _mismatch_lines(result: SuiteResult) -> Iterator[str]:
    for field in result.fields:
        verdict = (
            f"{field.differing:,} of {field.compared:,} differ" if field.differing else "match"
        )
        yield f"  {field.name}: {verdict}"
    for difference in result.differences[:_SHOWN]:
        yield f"  {difference}"
    if len(result.differences) > _SHOWN:
        yield f"  and {len(result.differences) - _SHOWN} more fields of cases"
    stage = result.stage
    if stage is not None:
        yield f"  the two part at {stage.name} (rules {', '.join(stage.rules or result.rules)})"


def _comparable(is_whole: bool) -> str:
    """A reservation where some answers had no bits that could be compared."""
    return "" if is_whole else " that can be compared"


def diagnosis_lines(diagnosis: SuiteDiagnosis, *, is_whole: bool) -> Iterator[str]:
    """What explains the mismatches of a suite, of which all or some could be compared."""
    of = f"{diagnosis.mismatches:,} mismatches{_comparable(is_whole)}"
    whole = [e for e in diagnosis.explanations if e.is_whole]
    if whole:
        yield f"all {of} are explained by {_by(whole[0])}"
        yield from (f"  {line}" for line in _meanings(whole[0]))
        for other in whole[1:]:
            yield f"  or by {_by(other)}, which this suite cannot tell from it"
    elif diagnosis.explanations:
        best = diagnosis.explanations[0]
        share = 100 * best.explained / best.of
        yield (
            f"no deviation explains all {of}; {_by(best)} explains "
            f"{share:.1f} % of {best.of:,} looked at"
        )
    else:
        yield f"no deviation that is known explains any of {of}"


def _by(explanation: Explanation) -> str:
    names = " and ".join(f"`{name}`" for name in explanation.deviations)
    rules = ", ".join(explanation.rules)
    return f"{names} (rule{'s' if len(explanation.rules) > 1 else ''} {rules})"


def _meanings(explanation: Explanation) -> Iterator[str]:
    for name in explanation.deviations:
        yield f"{name}: {DEVIATIONS[name].summary}"
