"""The section of a report's page on a suite with mismatches."""

import shlex
from collections.abc import Iterable, Sequence

from mor_ref.deviations import DEVIATIONS
from mor_ref.verify.comparing.compare import Difference, Entry
from mor_ref.verify.comparing.distance import distance, shown
from mor_ref.verify.diagnosing.diagnosis import Explanation, SuiteDiagnosis
from mor_ref.verify.reporting.markup import (
    DASH,
    Html,
    code,
    element,
    items,
    joined,
    markup,
    rule_list,
)
from mor_ref.verify.reporting.picture import figure
from mor_ref.verify.reporting.text import (
    cases_differing,
    explaining,
    failing,
    leaving,
    of_nans,
    pairs_tried,
    share,
    sparing,
)
from mor_ref.verify.running.run import FieldResult, SuiteResult, Unknown

_ROWS = 16  # of the table of mismatches
_OF_ONE = 4  # rows for a field of a case
_PROBLEMS = 8
_NAMES = 20
_OTHERS = 6  # explanations


def problems(result: SuiteResult) -> list[Difference]:
    """The fields of cases that could not be compared."""
    return [d for d in result.differences if d.problem]


def counts(result: SuiteResult) -> str:
    """How many entries differ, and how many fields of cases could not be compared."""
    differing, unlike = result.differing, result.not_comparable
    parts = [f"{differing:,}"] if differing or not unlike else []
    if unlike:
        parts.append(f"{unlike:,} field{'s' * (unlike > 1)} of cases not comparable")
    return "; ".join(parts)


def section(
    result: SuiteResult,
    diagnosis: SuiteDiagnosis | None,
    candidate: str,
    pictures: int,
    *,
    is_open: bool,
) -> Html:
    """Everything about a suite: the flow of the data, what explains it, mismatches and pictures."""
    stage = result.stage
    summary = element(
        "summary",
        element("h3", code(result.suite)),
        element("span", f"✗ differ: {counts(result)}", class_="badge mismatch"),
        element("span", "from ", code(stage.name), " on") if stage else "",
    )
    repeat = f"mor-ref verify {shlex.quote(candidate)} --suite {shlex.quote(result.suite)}"
    body = [
        element("p", result.title, class_="title"),
        element("p", *_about(result), class_="muted"),
        _flow(result),
        *_paragraphs(failing(result)),
        *unknown_names(result),
        explained(diagnosis, comparable=result.is_comparable) if diagnosis else "",
        _problems(result),
        _mismatches(result),
        _pictures(result, pictures),
        element("p", "To run it again: ", code(repeat), class_="muted"),
    ]
    return element("details", summary, element("div", *body), open=is_open)


def _about(result: SuiteResult) -> list[str]:
    foreign = "" if result.normative else ", not normative"
    text = f"{result.compared:,} entries compared{foreign}; they differ in "
    return [f"{text}{cases_differing(result)}. Rules: ", rule_list(result.rules)]


def _flow(result: SuiteResult) -> Html:
    """The fields in the order in which one follows from another."""
    given = {field.name: field for field in result.fields}
    stage = result.stage
    boxes = []
    for name, meaning in result.expected.items():
        field = given.get(name)
        kind, words = ("absent", "○ not given")
        if field is not None:
            kind, words = ("match", f"✓ {field.compared:,} match")
            if not field.matches:
                kind, words = ("mismatch", f"✗ {_differing(field)}")
        pieces = [element("strong", name), element("span", words, class_="state")]
        if field is not None and field is stage:
            kind = "mismatch stage"
            rules = rule_list(field.rules or result.rules)
            pieces.append(
                element("span", "▲ first mismatching field; rules ", rules, class_="here")
            )
        pieces.append(element("span", meaning, class_="muted"))
        boxes.append(element("li", *pieces, class_=kind))
    return joined(element("h4", "Fields, in the order of the data flow"), _boxes(boxes))


def _boxes(boxes: list[Html]) -> Html:
    return element("ol", *boxes, class_="flow")


def _differing(field: FieldResult) -> str:
    count, unlike = field.differing, field.not_comparable
    nans = of_nans(field.nans, count)
    parts = [f"{count:,} of {field.compared:,} differ{nans}"] if count else []
    if unlike:
        parts.append(f"not comparable in {unlike:,} case{'s' * (unlike > 1)}")
    return "; ".join(parts)


def unknown_names(result: SuiteResult) -> list[Html]:
    """Return the fields and cases that the suite does not have."""
    return [
        unknown_list("Given, but not fields of this suite: ", result.unknown),
        unknown_list("Given, but not cases of this suite: ", result.unknown_cases),
    ]


def unknown_list(what: str, unknown: Unknown) -> Html:
    """Names that nobody knows, and what may have been meant by the first."""
    if not unknown.names:
        return Html("")
    names = joined(*(code(name) for name in unknown.names[:_NAMES]), between=", ")
    left = len(unknown.names) - _NAMES
    rest = f" and {left:,} more" if left > 0 else ""
    nearest = [code(unknown.names[0]), " is ", code(unknown.nearest)]
    return element("p", what, names, f"{rest}; the nearest to ", *nearest)


def by(explanation: Explanation) -> Html:
    """The deviations of an explanation, and the rules that they are about."""
    names = joined(*(code(name) for name in explanation.deviations), between=" and ")
    some = "s" if len(explanation.rules) > 1 else ""
    return joined(names, f" (rule{some} ", rule_list(explanation.rules), ")")


def meanings(explanation: Explanation) -> Html:
    """Return the summaries of the deviations."""
    pieces = []
    for name in explanation.deviations:
        pieces += [element("dt", code(name)), element("dd", DEVIATIONS[name].summary)]
    return element("dl", *pieces, class_="meanings")


def others(explanations: list[Explanation], cannot: str) -> Html:
    """Explanations that are as good."""
    if not explanations:
        return Html("")
    found = [joined("or by ", by(explanation)) for explanation in explanations]
    return joined(element("p", cannot), items(found, _OTHERS))


def bar(explained_: int, of: int, said: str) -> Html:
    """A bar, and what it shows in words."""
    shown_ = element("progress", max=of, value=explained_, aria_label="share explained")
    return joined(shown_, f" {said}")


def best_of(diagnosis: SuiteDiagnosis, *, comparable: bool) -> Html:
    """Return the best explanation of the mismatches of a suite."""
    sentence = markup(explaining(diagnosis, comparable=comparable).capitalize())
    if not diagnosis.explanations:
        return sentence
    best = diagnosis.explanations[0]
    filled = sentence.format(by=by(best), share=bar(best.explained, best.of, share(best)))
    left = _paragraphs(leaving(best))
    return joined(Html(filled), meanings(best), only_there(best.spared), *left)


def only_there(spared: Sequence[str]) -> Html:
    """That an explanation holds only where entries differ, if so."""
    return joined(*_paragraphs(sparing(spared)))


def _paragraphs(lines: Iterable[str]) -> list[Html]:
    return [element("p", f"{line[:1].upper()}{line[1:]}") for line in lines]


def explained(diagnosis: SuiteDiagnosis, *, comparable: bool) -> Html:
    """Return the explanation of the mismatches of a suite, and its equals."""
    whole = [e for e in diagnosis.explanations if e.is_whole]
    return joined(
        element("h4", "What explains them" if whole else "What explains them is not known"),
        element("div", best_of(diagnosis, comparable=comparable)),
        others(whole[1:], "The answers do not distinguish it from these:"),
        *_paragraphs(pairs_tried(diagnosis)),
    )


def _problems(result: SuiteResult) -> Html:
    found = [
        joined("case ", code(d.case), ", field ", code(d.field), f": {d.problem}")
        for d in problems(result)
    ]
    if not found:
        return Html("")
    return joined(element("h4", "What could not be compared"), items(found, _PROBLEMS))


def _chosen(result: SuiteResult) -> list[tuple[Difference, Entry]]:
    """A few entries of each field of a case, the first mismatching field first."""
    stage = result.stage
    ordered = sorted(result.differences, key=lambda d: stage is not None and d.kept != stage.name)
    found = [(d, entry) for d in ordered for entry in d.entries[:_OF_ONE]]
    return found[:_ROWS]


def _mismatches(result: SuiteResult) -> Html:
    rows = _chosen(result)
    if not rows:
        return Html("")
    names = ("case", "field", "index", "inputs", "expected", "actual", "distance")
    head = element("tr", *(element("th", name, scope="col") for name in names))
    body = [
        element("tr", *map(_cell, names, _row(difference, entry))) for difference, entry in rows
    ]
    total = result.differing
    note = f"{len(rows):,} of {total:,} mismatches" if len(rows) < total else f"all {total:,}"
    if len(rows) < total:
        note += f": up to {_OF_ONE} of a field of a case, those of the stage first"
    table = element("table", element("thead", head), element("tbody", *body), class_="cards")
    return joined(
        element("h4", "The first mismatches"),
        element("p", note, class_="muted"),
        element("div", table, class_="wide"),
    )


def _cell(name: str, content: Html) -> Html:
    return element("td", element("div", content), data_label=name)


def _row(difference: Difference, entry: Entry) -> list[Html]:
    place = ", ".join(map(str, entry.index))
    inputs = [element("div", f"{what} ", _bits(bits, fmt)) for what, bits, fmt in entry.inputs]
    return [
        code(difference.case),
        code(difference.field),
        code(f"[{place}]"),
        joined(*inputs) if inputs else DASH,
        _bits(entry.expected, difference.format),
        _bits(entry.actual, difference.format),
        joined(distance(entry.actual, entry.expected, difference.format) or DASH),
    ]


def _bits(bits: int, fmt: str) -> Html:
    """Bits, and the number that they are of."""
    pattern, _, value = shown(bits, fmt).partition(" ")
    return (
        joined(code(pattern), " ", element("span", value.strip("()"))) if value else code(pattern)
    )


def _pictures(result: SuiteResult, most: int) -> Html:
    """The largest tensors that differ, the first mismatching field first."""
    stage = result.stage
    found = [d for d in result.differences if d.picture and d.of > 1]
    found.sort(key=lambda d: (stage is not None and d.kept != stage.name, -d.of))
    if not found:
        return Html("")
    head = element("h4", "Where in the tensors they lie")
    if not most:
        note = f"There is no room for {len(found):,} pictures; --suite shows one suite by itself."
        return joined(head, element("p", note, class_="muted"))
    if len(found) > most:
        note = f"{most} of {len(found):,} fields of cases: the largest, those of the stage first"
        head = joined(head, element("p", note, class_="muted"))
    return joined(head, element("div", *map(figure, found[:most]), class_="figures"))
