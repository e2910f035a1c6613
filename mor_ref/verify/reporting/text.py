"""Reports as lines of text."""

from collections.abc import Iterable, Iterator, Sequence

from mor_ref.addresses import cause_path, rule_path, see
from mor_ref.counts_in_words import counted, listed, percent
from mor_ref.mistakes.catalogue import CAUSES
from mor_ref.verify.comparing.conformance import ties_allowed
from mor_ref.verify.diagnosing.diagnosis import PAIRS_END
from mor_ref.verify.diagnosing.diagnosis_records import Explanation, SuiteDiagnosis
from mor_ref.verify.outcome import Verdict
from mor_ref.verify.own_inputs import lines_of_rounded, lines_of_skipped
from mor_ref.verify.reporting.asked_again_text import another_answer, asked_again, changed
from mor_ref.verify.reporting.cause_text import (
    all_explained,
    explaining,
    in_fields,
    not_tried,
    why_a_guess,
    wrong_expected,
)
from mor_ref.verify.reporting.rules import rule_named
from mor_ref.verify.reporting.structure_text import identity, not_diagnosed, structure_lines
from mor_ref.verify.running.field_result import FieldResult
from mor_ref.verify.running.results import SuiteResult
from mor_ref.verify.running.run import Verification
from mor_ref.verify.running.unknown_names import Unknown

DOUBT = "the answers, with one wrong scale, do not distinguish the two"
_SHOWN, _ENTRIES = 5, 3  # differences of a suite, and entries of each


def lines(verification: Verification) -> Iterator[str]:
    """Yield the verdict, the results by suite with their explanations, and the summary.

    If the candidate could not be opened, the first line says why. The verdict is also the last
    line, where the eye is in a terminal. The line of a suite that is alone says it already. One
    line names all suites without an answer.
    """
    if verification.not_opened:
        yield verification.not_opened.message
    if len(verification.results) > 1:
        yield verdict_line(verification)
    diagnoses = {diagnosis.suite: diagnosis for diagnosis in verification.diagnosis.suites}
    silent = []
    for result in verification.results:
        if result.is_silent:
            silent.append(result)
        else:
            yield from suite_lines(result, diagnoses.get(result.suite))
    if len(silent) == 1:
        yield from suite_lines(silent[0], None)
    elif silent:
        names = listed([result.suite for result in silent])
        yield f"{len(silent)} suites not run, {silent[0].why_nothing}: {names}"
    if verification.cases_not_asked and not verification.not_opened:
        yield cases_not_asked(verification)
    if verification.not_asked:
        yield f"not asked{after_failures(verification)}: {listed(verification.not_asked)}"
    if verification.unknown.names:
        yield f"not suites: {_unknown(verification.unknown)}"
    yield from expected_bits(verification)
    yield from lines_of_skipped(verification.skipped)
    yield from summary(verification)


def expected_bits(verification: Verification) -> Iterator[str]:
    """Yield which expected bits are not those of the exact model, or of rounded numbers."""
    if verification.expected_from_engine:
        large = counted(verification.expected_from_engine, "large tensor")
        yield f"the expected bits of {large} are those of the engine, not of the exact model"
    yield from lines_of_rounded(verification.rounded)


def summary(verification: Verification) -> Iterator[str]:
    """Yield the last lines: causes in several suites, conformance and verdict."""
    common = explains_all(verification)
    if any(result.not_diagnosed for result in verification.results):
        common = None
    if common and len(verification.diagnosis.suites) > 1:
        count = sum(diagnosis.mismatches for diagnosis in verification.diagnosis.suites)
        comparable = all(result.is_comparable for result in verification.results)
        yield f"{all_explained(count, comparable=comparable)} {_by(common)}"
    yield from asked_again(verification.results)
    yield f"conformance: {verification.conformance}"
    yield verdict_line(verification)


def verdict_line(verification: Verification) -> str:
    """Return the verdict, and how many suites have which."""
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts(verification).items())
    both = sum(one.verdict != "failed" and bool(one.failures) for one in verification.results)
    also = f"; it also failed in {counted(both, 'suite')} with a mismatch" if both else ""
    return f"{verification.candidate}: {verification.verdict} ({counts}{also})"


def verdicts(verification: Verification) -> dict[Verdict, int]:
    """Count the suites of each verdict; leave a rare verdict out if no suite has it."""
    found = [result.verdict for result in verification.results]
    kinds: tuple[Verdict, ...] = ("match", "mismatch", "not run")
    counts = {kind: found.count(kind) for kind in kinds}
    counts["not run"] += len(verification.not_asked)
    rare: tuple[Verdict, ...] = ("match but for ties", "incomplete", "failed")
    return counts | {kind: found.count(kind) for kind in rare if kind in found}


def explains_all(verification: Verification) -> Explanation | None:
    """Return an explanation that every suite with mismatches has in common."""
    return next(iter(all_that_explain_all(verification)), None)


def all_that_explain_all(verification: Verification) -> list[Explanation]:
    """Return the explanations that every suite with mismatches has in common."""
    suites = verification.diagnosis.suites
    whole = [[e for e in suite.explanations if e.is_whole] for suite in suites]
    names = [{e.deviations for e in explanations} for explanations in whole]
    return [e for e in (whole[0] if whole else []) if all(e.deviations in there for there in names)]


def sparing(spared: Sequence[str]) -> Iterator[str]:
    """Say which cases speak against an explanation, if any do."""
    if spared:
        matches = "matches" if len(spared) == 1 else "match"
        yield f"it would also change {listed(spared)}, which {matches}"


def leaving(explanation: Explanation) -> Iterator[str]:
    """Say where the first mismatch is that an explanation leaves, if it leaves one."""
    if explanation.left:
        yield f"the first mismatch that it leaves: {explanation.left}"


def cases_not_asked(verification: Verification) -> str:
    """Say how many cases were not asked any more, and why; nothing if all were asked."""
    if not verification.cases_not_asked:
        return ""
    verb = "was" if verification.cases_not_asked == 1 else "were"
    cases = counted(verification.cases_not_asked, "case")
    return f"{cases} {verb} not asked: {verification.why_not_asked}"


def after_failures(verification: Verification) -> str:
    """Say when suites were not asked: after a candidate failed, unless it could not be opened."""
    return "" if verification.not_opened else " after the last failure"


def suite_lines(result: SuiteResult, diagnosis: SuiteDiagnosis | None) -> Iterator[str]:
    """Yield the verdict, the first mismatching field and the explanation, then the evidence."""
    if not result.compared and result.verdict in ("not run", "incomplete"):
        yield f"{result.suite}: {result.verdict}, {result.why_nothing}"
    else:
        yield f"{result.suite}: {result.verdict}, {_extent(result)}"
    yield from [f"  {ties_allowed(result.ties)}"] if result.ties else ()
    yield from (f"  {line}" for line in failing(result))
    yield from (f"  {line}" for line in changed(result))
    is_explained = diagnosis is not None and bool(diagnosis.explanations)
    yield from (f"  {line}" for line in _first_field(result, is_explained=is_explained))
    yield from (f"  {line}" for line in result.said)
    yield from [f"  {result.left_out}"] if result.left_out else ()
    yield from (f"  {line}" for line in not_diagnosed(result.not_diagnosed))
    if diagnosis is not None:
        of_it = diagnosis_lines(diagnosis, comparable=result.is_comparable)
        yield from (f"  {line}" for line in of_it)
    if result.must_be_complete and result.has_answers and result.not_answered:
        yield f"  not answered: {listed(result.not_answered)}"
    if result.has_answers and result.not_given:
        yield f"  not given: {', '.join(result.not_given)}"
    if result.of_rungs:
        yield f"  not compared, because no suite has the codes of rungs: {listed(result.of_rungs)}"
    if result.unknown.names:
        yield f"  not fields of this suite: {_unknown(result.unknown)}"
    if result.unknown_cases.names:
        yield f"  not cases of this suite: {_unknown(result.unknown_cases)}"
    if result.verdict == "mismatch":
        yield from _mismatch_lines(result)


def _first_field(result: SuiteResult, *, is_explained: bool) -> Iterator[str]:
    """Name the first mismatching field with its rules; an explanation has addresses of its own."""
    if (field := result.first_mismatching_field) is not None:
        rules = field.rules or result.rules
        named = f" (rules {', '.join(rules)})" if rules else ""  # an operation of a user has none
        yield f"first mismatching field: {field.name}{named}"
        yield from () if is_explained else addresses((), rules)


def failing(result: SuiteResult) -> Iterator[str]:
    """Say at which cases the candidate failed, and why at the first."""
    first, *others = result.failures or (None,)
    if first is not None:
        yield f"it failed: {first.message}"
    if others:
        names = listed([failure.case or "all" for failure in others])
        yield f"and in {counted(len(others), 'other case')}: {names}"


def _extent(result: SuiteResult) -> str:
    """Say how many entries were compared, or how many of them differ, and in how many cases."""
    foreign = "" if result.normative else ", not normative"
    if not result.has_answers:
        return f"nothing was compared in {counted(result.cases, 'case')}{foreign}"
    if result.changes and not result.differences:
        return f"{differing(result)}{foreign}"
    if not result.differences:
        return f"{counted(result.compared, 'entry')} in {cases_of(result)}{foreign}"
    of = f"{result.differing:,} of {counted(result.compared, 'entry')} {_verb(result)}"
    found = of if result.is_comparable else differing(result)
    nans = of_nans(result.nans, result.nans) if result.is_equal_but_for_nans else ""
    return f"{found}, in {cases_differing(result)}{foreign}{nans}"


def differing(result: SuiteResult) -> str:
    """Say how many entries differ, and how many fields of cases could not be compared."""
    if result.changes and not result.differences:
        return another_answer(result)
    found = f"{counted(result.differing, 'entry')} {_verb(result)}"
    if result.is_comparable:
        return f"{found}{of_nans(result.nans, result.nans) if result.is_equal_but_for_nans else ''}"
    others = f"{counted(result.not_comparable, 'field of a case')} cannot be compared"
    return f"{found} and {others}" if result.differing else others


def _verb(result: SuiteResult) -> str:
    return "differs" if result.differing == 1 else "differ"


def cases_of(result: SuiteResult) -> str:
    """Say how many cases were answered, and of how many if not of all."""
    some = "" if result.answered == result.cases else f"{result.answered:,} of "
    return f"{some}{counted(result.cases, 'case')}"


def cases_differing(result: SuiteResult) -> str:
    """Say in how many cases entries differ, of how many compared, of how many there are."""
    found = f"{result.cases_differing:,} of {counted(result.answered, 'case')}"
    is_all = result.answered == result.cases
    return found if is_all else f"{found} compared; the suite has {result.cases:,}"


def _unknown(unknown: Unknown) -> str:
    """Return the unknown names, and the known name that is nearest."""
    return f"{listed(unknown.names)}; the nearest to {unknown.names[0]} is {unknown.nearest}"


def _mismatch_lines(result: SuiteResult) -> Iterator[str]:
    for field in result.fields:
        yield f"  {field.name}: {of_field(field)}"
    for difference in result.differences[:_SHOWN]:
        yield f"  {difference}"
        yield from (f"    at {difference.shown(e)}" for e in difference.entries[1:_ENTRIES])
    if len(result.differences) > _SHOWN:
        more = counted(len(result.differences) - _SHOWN, "more field of a case")
        yield f"  and {more}"


def of_field(field: FieldResult) -> str:
    """Say how many entries of a field differ, and in how many cases it cannot be compared."""
    if field.matches:
        return "match"
    count = f"{field.differing:,} of {field.compared:,} differ"
    parts = [f"{count}{of_nans(field.nans, field.differing)}"] if field.compared else []
    if field.not_comparable:
        parts.append(f"cannot be compared in {counted(field.not_comparable, 'case')}")
    return "; ".join(parts)


def of_nans(nans: int, differing: int) -> str:
    """Say how many of the entries that differ are a NaN where a NaN is expected, if any."""
    some = f"{nans:,} of these only in the bits of a NaN"
    but = "equal but for the bits of NaN" if nans == differing else some
    return f"; {but}" if nans else ""


def diagnosis_lines(diagnosis: SuiteDiagnosis, *, comparable: bool) -> Iterator[str]:
    """Return the explanation of the mismatches of a suite that was compared, at least in part."""
    explanations = diagnosis.explanations
    sentence = explaining(diagnosis, comparable=comparable)
    for best in explanations[:1]:
        sentence = sentence.format(by=_by(best), share=share(best))
    yield sentence
    yield from wrong_expected(diagnosis)
    for best in explanations[:1]:
        yield from (f"  {line}" for line in (*_meanings(best), *identity(best)))
        yield from (f"  {line}" for line in addresses(best.deviations, best.rules))
        yield from (f"  {line}" for line in sparing(best.spared))
        yield from (f"  {line}" for line in leaving(best))
    whole = [e for e in explanations if e.is_whole]
    yield from (f"  or by {_by(e)}: the answers do not distinguish the two" for e in whole[1:])
    if not whole:
        for e in explanations[1:]:
            yield f"  a guess as good: {_by(e)} explains {share(e)}{in_fields(e)}{why_a_guess(e)}"
    if diagnosis.is_in_doubt:
        yield f"  or by their structure: {DOUBT}"
    yield from structure_lines(diagnosis.structures)
    if diagnosis.of_parts and diagnosis.is_large:
        yield f"mistakes were tried on parts of the tensors, with {diagnosis.of_parts:,} numbers"
    yield from not_tried(diagnosis)
    yield from pairs_tried(diagnosis)


def addresses(causes: Iterable[str], rules: Iterable[str]) -> Iterator[str]:
    """Say where causes and rules are described, if any of them are; those of a user are not."""
    paths = [cause_path(name) for name in causes if name in CAUSES]
    if paths := [*paths, *(rule_path(rule) for rule in rules if rule_named(rule))]:
        yield see(paths)


def share(explanation: Explanation) -> str:
    """Say how much an explanation explains, as a share and in numbers."""
    of = "a sample of them" if explanation.is_of_sample else "them"
    counts = f"{explanation.explained:,} of {explanation.of:,}"
    return f"{percent(explanation.explained, explanation.of)} of {of} ({counts})"


def pairs_tried(diagnosis: SuiteDiagnosis) -> Iterator[str]:
    """Say which pairs of deviations were tried, if none explains all."""
    if not diagnosis.leaders or diagnosis.is_explained:
        return
    names = f"those that include {' or '.join(f'`{name}`' for name in diagnosis.leaders)}"
    if diagnosis.untried:
        yield (
            f"pairs of mistakes tried: a part of {names}; the search ended after {PAIRS_END:,} "
            f"elements, and {diagnosis.untried:,} pairs were not tried"
        )
    else:
        yield f"pairs of mistakes tried: only {names}; none explains all mismatches"


def _by(explanation: Explanation) -> str:
    names = " and ".join(f"`{name}`" for name in explanation.deviations)
    rules = ", ".join(explanation.rules)
    moved = ", with entries in other places" if explanation.is_displaced else ""
    return f"{names} (rule{'s' if len(explanation.rules) > 1 else ''} {rules}){moved}"


def _meanings(explanation: Explanation) -> Iterator[str]:
    meanings = zip(explanation.deviations, explanation.summaries, strict=True)
    yield from (f"{name}: {summary}" for name, summary in meanings)
