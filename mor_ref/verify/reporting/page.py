"""A report as a page for people: one HTML file that needs no other."""

from importlib.resources import files

from mor_ref import __version__
from mor_ref.verify.diagnosing.diagnosis import SuiteDiagnosis
from mor_ref.verify.reporting.counts import counted
from mor_ref.verify.reporting.markup import DASH, Html, code, element, items, joined
from mor_ref.verify.reporting.page_suite import (
    bar,
    best_of,
    by,
    counts,
    meanings,
    only_there,
    others,
    section,
    unknown_list,
    unknown_names,
)
from mor_ref.verify.reporting.text import (
    after_that,
    all_explained,
    all_that_explain_all,
    cases_of,
    percent,
    spared_by,
    verdicts,
)
from mor_ref.verify.running.run import SuiteResult, Verification

_OPEN = 3  # sections that are open where there are no more
_PICTURES, _OF_SUITE = 20, 3
_ROOM = 800_000  # characters of sections
_FAILURES = 8
_SUITES = 200  # rows of a table, and items of a list
_MARKS = {"match": "✓", "mismatch": "✗", "incomplete": "✗", "not run": "○", "failed": "✗"}
# The page may load nothing, whatever it says.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def as_html(verification: Verification) -> str:
    """The page."""
    style = (files("mor_ref.verify.reporting") / "page.css").read_text(encoding="utf-8")
    head = element(
        "head",
        Html('<meta charset="utf-8">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<meta name="color-scheme" content="light dark">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        element("title", f"{verification.verdict}: {verification.candidate}"),
        element("style", Html(style)),
    )
    sections = _sections(verification)
    main = element(
        "main",
        _headline(verification),
        _failure(verification),
        _explained(verification),
        _table(verification, len(sections)),
        unknown_list("Given, but not suites: ", verification.unknown),
        _not_run(verification),
        _mismatches(verification, sections),
    )
    foot = element(
        "footer", f"mor_ref {__version__}, on the suites in ", code(verification.vectors)
    )
    page = element("html", head, element("body", main, foot), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


def _headline(verification: Verification) -> Html:
    """The verdict, how far the candidate conforms, and the numbers behind it."""
    verdict, results = verification.verdict, verification.results
    badge = element("span", f"{_MARKS[verdict]} {verdict}", class_=f"badge {_kind(verdict)}")
    differing = sum(result.differing for result in results)
    unlike = sum(result.not_comparable for result in results)
    facts = {
        "entries compared": f"{sum(result.compared for result in results):,}",
        "differ": f"{differing:,}",
    }
    if unlike:
        facts["not comparable"] = f"{unlike:,} field{'s' * (unlike > 1)} of cases"
    given, asked = verification.conformance.given, verification.conformance.asked
    facts["fields given"] = f"{given.fields:,} of {asked.fields:,}"
    facts["cases given"] = f"{given.cases:,} of {asked.cases:,}"
    facts["rules given in full"] = f"{given.rules:,} of {asked.rules:,}"
    for kind, count in verdicts(verification).items():
        facts[f"suites: {kind}"] = f"{count:,}"
    pairs = [
        element("div", element("dt", name), element("dd", value)) for name, value in facts.items()
    ]
    return element(
        "header",
        element("p", "mor-ref verify ", code(verification.candidate), class_="name"),
        element("h1", badge, " ", element("span", str(verification.conformance))),
        element("dl", *pairs, class_="facts"),
    )


def _kind(verdict: str) -> str:
    return verdict.replace(" ", "-")


def _failure(verification: Verification) -> Html:
    """Where the candidate failed, why, and what was not asked after that."""
    found = verification.failures
    if not found:
        return Html("")
    names = map(code, verification.not_asked)
    left = [element("p", f"Not asked{after_that(verification)}: ", joined(*names, between=", "))]
    more = f"and {counted(len(found) - _FAILURES, 'more case')}"
    return element(
        "section",
        element("h2", "Where it failed"),
        *(element("p", failure.message, class_="lead") for failure in found[:_FAILURES]),
        element("p", more) if len(found) > _FAILURES else "",
        *(left if verification.not_asked else ()),
    )


def _explained(verification: Verification) -> Html:
    """Return the explanations of the mismatches, one for all suites if there is one."""
    suites = verification.diagnosis.suites
    unlike = not all(result.is_comparable for result in verification.results)
    if not suites and not unlike:
        return Html("")
    common = all_that_explain_all(verification)
    is_known = any(suite.is_explained for suite in suites)
    known = "What explains the mismatches"
    known += "" if is_known else " is not known"
    pieces = [element("h2", known)]
    if common:
        total = sum(suite.mismatches for suite in suites)
        lead = all_explained(total, comparable=not unlike).capitalize()
        pieces.append(element("p", f"{lead} ", by(common[0]), class_="lead"))
        pieces += [
            meanings(common[0]),
            only_there(spared_by(suites, common[0])),
            others(common[1:], "The answers do not distinguish it from these:"),
        ]
    elif suites:
        pieces.append(_in_part(verification))
    if unlike:
        pieces.append(
            element(
                "p",
                "Some answers could not be compared, and nothing is known of what explains them: "
                "their suites say why.",
            )
        )
    return element("section", *pieces)


def _in_part(verification: Verification) -> Html:
    """How much is explained in full, by what, and what is left."""
    suites = verification.diagnosis.suites
    comparable = {result.suite: result.is_comparable for result in verification.results}
    total = sum(suite.mismatches for suite in suites)
    full = sum(suite.mismatches for suite in suites if suite.is_explained)
    some = "" if all(comparable.values()) else " that can be compared"
    said = f"{full:,} of {total:,} mismatches{some} are explained ({percent(full, total)})"
    lead = element("p", bar(full, total, said), class_="lead") if full else ""
    pieces = []
    for alike in _with_one_cause(suites):
        best = alike[0].explanations[0]
        names = joined(*(code(suite.suite) for suite in alike), between=", ")
        count = sum(suite.mismatches for suite in alike)
        only = only_there(spared_by(alike, best))
        pieces.append(
            joined(names, f": all {count:,} mismatches by ", by(best), meanings(best), only)
        )
    for suite in suites:
        if not suite.is_explained:
            found = best_of(suite, comparable=comparable[suite.suite])
            pieces.append(joined(code(suite.suite), ": ", found))
    return joined(lead, items(pieces, _SUITES, class_="causes"))


def _with_one_cause(suites: tuple[SuiteDiagnosis, ...]) -> list[list[SuiteDiagnosis]]:
    """The suites that are explained in full, those by the same deviations together."""
    found: dict[tuple[str, ...], list[SuiteDiagnosis]] = {}
    for suite in suites:
        if suite.is_explained:
            found.setdefault(suite.explanations[0].deviations, []).append(suite)
    return list(found.values())


def _table(verification: Verification, sections: int) -> Html:
    """The suites that were run, those with mismatches first; so many of these have a section."""
    names = (
        "suite",
        "verdict",
        "compared",
        "differ",
        "first mismatching field",
        "not given",
        "normative",
    )
    ran = [
        result
        for verdict in ("mismatch", "failed", "incomplete", "match")
        for result in verification.results
        if result.verdict == verdict
    ]
    if not ran:
        return Html("")
    head = element("tr", *(element("th", name, scope="col") for name in names))
    rows = [
        element("tr", *map(_cell, names, _row(k, result, k < sections)))
        for k, result in enumerate(ran[:_SUITES])
    ]
    left = len(ran) - len(rows)
    table = element("table", element("thead", head), element("tbody", *rows), class_="cards")
    return element(
        "section",
        element("h2", "Suites"),
        element("div", table, class_="wide"),
        element("p", f"and {left:,} more suites") if left else "",
    )


def _cell(name: str, content: Html) -> Html:
    return element("td", element("div", content), data_label=name)


def _row(k: int, result: SuiteResult, has_section: bool) -> list[Html]:
    name, stage = code(result.suite), result.stage
    badge = element(
        "span",
        f"{_MARKS[result.verdict]} {result.verdict}",
        class_=f"badge {_kind(result.verdict)}",
    )
    return [
        joined(
            element("a", name, href=f"#suite-{k}") if has_section else name,
            element("div", result.title, class_="muted"),
            *unknown_names(result),
        ),
        badge,
        joined(
            f"{result.compared:,}",
            element("div", cases_of(result), class_="muted"),
        ),
        joined(counts(result)),
        code(stage.name) if stage else DASH,
        joined(*map(code, result.not_given), between=", ") if result.not_given else DASH,
        joined("yes" if result.normative else "no"),
    ]


def _not_run(verification: Verification) -> Html:
    """The suites that the candidate has no answer for."""
    left = [result for result in verification.results if result.verdict == "not run"]
    if not left:
        return Html("")
    names = [
        joined(code(result.suite), f": {result.title}", *unknown_names(result)) for result in left
    ]
    some = f"{len(left):,} suite{'s' * (len(left) > 1)} not run"
    return element(
        "details",
        element("summary", element("h3", f"○ {some}"), "the candidate has no answer"),
        items(names, _SUITES),
        open=verification.verdict == "not run",
    )


def _sections(verification: Verification) -> list[Html]:
    """The suites with mismatches, as far as there is room."""
    diagnoses = {diagnosis.suite: diagnosis for diagnosis in verification.diagnosis.suites}
    found = [result for result in verification.results if result.verdict == "mismatch"]
    pieces: list[Html] = []
    room, pictures = _ROOM, _PICTURES
    for k, result in enumerate(found):
        piece = section(
            result,
            diagnoses.get(result.suite),
            verification.candidate,
            min(_OF_SUITE, pictures),
            is_open=k == 0 or len(found) <= _OPEN,
        )
        room -= len(piece)
        if room < 0:
            break
        pictures -= piece.count("<figure>")
        pieces.append(element("div", piece, id=f"suite-{k}"))
    return pieces


def _mismatches(verification: Verification, sections: list[Html]) -> Html:
    if not sections:
        return Html("")
    left = sum(r.verdict == "mismatch" for r in verification.results) - len(sections)
    rest = f"There is no room for {left:,} more suites; --suite shows one by itself."
    return element(
        "section", element("h2", "Mismatches"), *sections, element("p", rest) if left else ""
    )
