"""A report as a page for people: one HTML file that needs no other."""

import shlex

from mor_ref import __version__
from mor_ref.verify.comparing.compare import Difference, Entry
from mor_ref.verify.counts import counted
from mor_ref.verify.diagnosing.records import SuiteDiagnosis
from mor_ref.verify.reporting.picture import picture_of
from mor_ref.verify.reporting.templates import rendered
from mor_ref.verify.reporting.text import all_that_explain_all, verdicts
from mor_ref.verify.running.results import SuiteResult
from mor_ref.verify.running.run import Verification

_OPEN = 3  # sections that are open if there are no more
_PICTURES, _OF_SUITE = 20, 3
_ROOM = 750_000  # characters of sections
_SUITES = 200  # rows of a table, and items of a list
_ROWS, _OF_ONE = 16, 4  # of the table of mismatches, and of them for a field of a case


def as_html(verification: Verification) -> str:
    """Return the page: the verdict, a picture of the suites, their table, then the mismatches."""
    results, suites = verification.results, verification.diagnosis.suites
    ran = [
        result
        for verdict in ("mismatch", "failed", "incomplete", "match")
        for result in results
        if result.verdict == verdict
    ]
    sections = _sections(verification)
    return rendered(
        "page.html",
        it=verification,
        facts=_facts(verification),
        ran=ran,
        not_run=[result for result in results if result.verdict == "not run"],
        common=all_that_explain_all(verification),
        causes=_by_cause(suites),
        mismatches=sum(suite.mismatches for suite in suites),
        explained=sum(suite.mismatches for suite in suites if suite.is_explained),
        comparable={result.suite: result.is_comparable for result in results},
        is_comparable=all(result.is_comparable for result in results),
        counts=_counts,
        sections=sections,
        left=sum(result.verdict == "mismatch" for result in results) - len(sections),
        most=_SUITES,
        version=__version__,
    )


def _facts(verification: Verification) -> dict[str, str]:
    """Return the numbers behind the verdict."""
    results = verification.results
    unlike = sum(result.not_comparable for result in results)
    given, asked = verification.conformance.given, verification.conformance.asked
    return {
        "entries compared": f"{sum(result.compared for result in results):,}",
        "differ": f"{sum(result.differing for result in results):,}",
        **({"not comparable": counted(unlike, "field of a case")} if unlike else {}),
        "fields given": f"{given.fields:,} of {asked.fields:,}",
        "cases given": f"{given.cases:,} of {asked.cases:,}",
        "rules given in full": f"{given.rules:,} of {asked.rules:,}",
        **{f"suites: {kind}": f"{count:,}" for kind, count in verdicts(verification).items()},
    }


def _by_cause(suites: tuple[SuiteDiagnosis, ...]) -> list[list[SuiteDiagnosis]]:
    """Return suites that the same deviations explain in full together, then each other one."""
    alike: dict[tuple[str, ...], list[SuiteDiagnosis]] = {}
    for suite in suites:
        if suite.is_explained:
            alike.setdefault(suite.explanations[0].deviations, []).append(suite)
    return [*alike.values(), *([suite] for suite in suites if not suite.is_explained)]


def _counts(result: SuiteResult) -> str:
    """Return how many entries differ, and how many fields of cases could not be compared."""
    differing, unlike = result.differing, result.not_comparable
    parts = [f"{differing:,}"] if differing or not unlike else []
    if unlike:
        parts.append(f"{counted(unlike, 'field of a case')} not comparable")
    return "; ".join(parts)


def _sections(verification: Verification) -> list[str]:
    """Return the sections of suites with mismatches, as far as there is room."""
    diagnoses = {diagnosis.suite: diagnosis for diagnosis in verification.diagnosis.suites}
    found = [result for result in verification.results if result.verdict == "mismatch"]
    sections: list[str] = []
    room, pictures = _ROOM, _PICTURES
    for k, result in enumerate(found):
        drawn = _drawn(result)
        chosen = drawn[: min(_OF_SUITE, pictures)]
        again = f"{shlex.quote(verification.candidate)} --suite {shlex.quote(result.suite)}"
        section = rendered(
            "suite.html",
            result=result,
            diagnosis=diagnoses.get(result.suite),
            counts=_counts(result),
            pictures=[picture_of(difference) for difference in chosen],
            drawn=len(drawn),
            rows=_rows(result),
            of_one=_OF_ONE,
            problems=[d for d in result.differences if d.problem],
            again=f"mor-ref verify {again}",
            is_open=k == 0 or len(found) <= _OPEN,
        )
        room -= len(section)
        if room < 0:
            break
        pictures -= len(chosen)
        sections.append(section)
    return sections


def _is_later(result: SuiteResult, difference: Difference) -> bool:
    """Return whether a difference is not of the first mismatching field."""
    first = result.first_mismatching_field
    return first is not None and difference.suite_field != first.name


def _rows(result: SuiteResult) -> list[tuple[Difference, Entry]]:
    """Return a few entries of each field of a case, the first mismatching field first."""
    ordered = sorted(result.differences, key=lambda d: _is_later(result, d))
    return [(d, entry) for d in ordered for entry in d.entries[:_OF_ONE]][:_ROWS]


def _drawn(result: SuiteResult) -> list[Difference]:
    """Return the fields for pictures: the first that mismatches, then the largest tensor."""
    found = [d for d in result.differences if d.picture and d.of > 1]
    return sorted(found, key=lambda d: (_is_later(result, d), -d.of))
