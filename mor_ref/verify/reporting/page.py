"""A report as a page for people: one HTML file that needs no other."""

import shlex
from collections.abc import Sequence

from mor_ref import __version__
from mor_ref.counts_in_words import counted
from mor_ref.golden import bundled_files
from mor_ref.verify.reporting.causes import Cause, causes_of
from mor_ref.verify.reporting.origin import Origin
from mor_ref.verify.reporting.rules import known_among
from mor_ref.verify.reporting.suite_section import Sections, counts_of
from mor_ref.verify.reporting.templates import rendered
from mor_ref.verify.reporting.text import verdicts
from mor_ref.verify.running.run import Verification

_SUITES = 200  # rows of a table, and items of a list


def as_html(verification: Verification, made: Origin | None = None, site: str | None = None) -> str:
    """Return the page: the verdict, a card for each cause, then the comparison.

    Rules lead to the `site`, or to their titles at the end of the page if there is none.
    """
    results, suites = verification.results, verification.diagnosis.suites
    ran = [
        result
        for verdict in ("mismatch", "failed", "incomplete", "match but for ties", "match")
        for result in results
        if result.verdict == verdict
    ]
    causes = causes_of(results, suites)
    sections = Sections(_command(verification), site)
    cards = _cards(causes, sections, is_comparable=all(result.is_comparable for result in results))
    return rendered(
        "page.html",
        it=verification,
        made=made,
        site=site,
        facts=_facts(verification),
        ran=ran,
        tiles=[one for one in ran if one.verdict != "match"] or ran,
        not_run=[result for result in results if result.verdict == "not run"],
        causes=causes,
        is_one_cause=len(causes) == 1 and causes[0].kind == "deviation",
        mismatches=sum(cause.mismatches for cause in causes),
        explained=_explained(causes),
        is_comparable=all(result.is_comparable for result in results),
        is_table_open=any(
            one.unknown.names or one.unknown_cases.names for one in ran if one.verdict != "mismatch"
        ),
        counts=counts_of,
        sections=cards,
        shown_suites=sections.ids,
        left=sum(result.verdict == "mismatch" for result in results) - len(sections.ids),
        rules=list(known_among(_rules(verification))) if site is None and cards else [],
        most=_SUITES,
        version=__version__,
    )


def _command(verification: Verification) -> str | None:
    """Return the command of a run on the bundled vectors; others have more arguments."""
    if verification.vectors != str(bundled_files()):
        return None
    return f"mor-ref verify {shlex.quote(verification.candidate)}"


def _facts(verification: Verification) -> dict[str, str]:
    """Return the numbers behind the verdict."""
    results = verification.results
    unlike = sum(result.not_comparable for result in results)
    ties = sum(result.ties for result in results)
    given, asked = verification.conformance.given, verification.conformance.asked
    return {
        "entries compared": f"{sum(result.compared for result in results):,}",
        "differ": f"{sum(result.differing for result in results):,}",
        **({"not comparable": counted(unlike, "field of a case")} if unlike else {}),
        **({"next to a tie, allowed": f"{ties:,}"} if ties else {}),
        "cases asked again": f"{sum(result.repeats.cases for result in results):,}",
        "fields given": f"{given.fields:,} of {asked.fields:,}",
        "cases given": f"{given.cases:,} of {asked.cases:,}",
        "rules given in full": f"{given.rules:,} of {asked.rules:,}",
        **{f"suites: {kind}": f"{count:,}" for kind, count in verdicts(verification).items()},
    }


def _cards(causes: Sequence[Cause], sections: "Sections", *, is_comparable: bool) -> list[str]:
    """Return a card for each cause that there is room for; the first one is open."""
    cards = []
    for number, cause in enumerate(causes):
        inner = sections.of(cause)
        if inner:
            values = {"cause": cause, "sections": inner, "is_comparable": is_comparable}
            place = {"number": number, "is_open": number == 0, "is_only": len(causes) == 1}
            cards.append(rendered("cause.html", **values, **place, site=sections.site))
    return cards


def _explained(causes: Sequence[Cause]) -> int:
    """Return how many mismatches have a known cause; 0 if no cause is a deviation."""
    if not any(cause.kind == "deviation" for cause in causes):
        return 0
    return sum(cause.mismatches for cause in causes if cause.is_known)


def _rules(verification: Verification) -> set[str]:
    """Return the rules that the page names."""
    wrong = [result for result in verification.results if result.verdict == "mismatch"]
    suites = verification.diagnosis.suites
    return {
        *(rule for result in wrong for rule in result.rules),
        *(rule for result in wrong for field in result.fields for rule in field.rules),
        *(rule for suite in suites for one in suite.explanations for rule in one.rules),
    }
