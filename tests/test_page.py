"""The page that reports a verification to people."""

import dataclasses
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from verifying import cases_of, module, run

from mor_ref import golden
from mor_ref.deviations import applied
from mor_ref.golden import bundled_files
from mor_ref.mistakes.catalogue import CAUSES
from mor_ref.operations import OPERATIONS
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.comparing.conformance import Conformance
from mor_ref.verify.comparing.coverage import Coverage
from mor_ref.verify.comparing.difference import Difference, Entry, KindOfEntries
from mor_ref.verify.comparing.evidence import Failure
from mor_ref.verify.comparing.inputs_of_entry import Input
from mor_ref.verify.diagnosing.diagnosis_records import Diagnosis, Explanation, SuiteDiagnosis
from mor_ref.verify.reporting.page import as_html
from mor_ref.verify.reporting.picture import levels_of, picture_of
from mor_ref.verify.reporting.report_files import as_json
from mor_ref.verify.reporting.templates import rendered
from mor_ref.verify.running.field_result import FieldResult
from mor_ref.verify.running.results import SuiteResult
from mor_ref.verify.running.run import Verification, verify
from mor_ref.verify.running.suites import suites_in
from mor_ref.verify.running.unknown_names import Unknown

__all__ = ["module"]  # a fixture

VOID = {"meta", "br"}
HOSTILE = "<script>alert('1')</script>\"' onload=x\n\x00\udc80\u202e&amp;"
SHOWN = "<script>alert('1')</script>\"' onload=x\\n\\x00\\udc80\\u202e&amp;"


class Page(HTMLParser):
    """Elements that are opened and closed in turn; their text in one line, by class and by tag."""

    def __init__(self, page):
        super().__init__()
        self.open, self.found, self.ids, self.links = [], [], set(), set()
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names)), attributes
        assert not [name for name in names if name.startswith("on")]
        values = dict(attributes)
        if "id" in values:
            assert values["id"] not in self.ids
            self.ids.add(values["id"])
        if tag == "a":
            self.links.add(values["href"])
        if tag not in VOID:
            self.open.append((tag, values, []))

    def handle_endtag(self, tag):
        name, attributes, text = self.open.pop()
        assert name == tag
        self.found.append((name, attributes, " ".join("".join(text).split())))

    def handle_data(self, data):
        for _, _, text in self.open:
            text.append(data)

    def texts(self, tag, class_=None):
        return [
            text
            for name, attributes, text in self.found
            if name == tag and (class_ is None or class_ in attributes.get("class", "").split())
        ]


def figure(difference):
    return Page(rendered("picture.html", picture=picture_of(difference)))


def page_of(verification):
    """Return the page, and check that it is well-formed, loads nothing, and is not too large."""
    text = as_html(verification)
    assert text.startswith("<!DOCTYPE html>\n<html")
    assert len(text.encode()) < 1_000_000
    assert not re.search(r"https?:|src=|url\(|@import|<link|<script", text)
    page = Page(text)
    assert page.links <= {f"#{name}" for name in page.ids}
    return page


def deviating(*names, without=()):
    def function(operation, parameters, inputs):
        with applied(*(CAUSES[name] for name in names)):
            found = OPERATIONS[operation].exact(parameters, inputs)
        return {name: array for name, array in found.items() if name not in without}

    return function


def on(function, *suites):
    return verify(PythonFunction("kernel:dut", function), suites_in(bundled_files(), list(suites)))


def made(differences=(), suites=("suite",), diagnoses=(), name="kernel:dut"):
    """Return a verification with these differences in each of the suites."""
    fields = tuple(
        FieldResult(
            field, ("QNT-001",), 2048, sum(d.count for d in differences if d.suite_field == field)
        )
        for field in ("code", "y")
    )
    results = tuple(
        SuiteResult(
            suite, "A title", True, ("ENC-003",), 9, 9, fields, (), Unknown(), Unknown(),
            {"code": "", "y": ""}, tuple(differences),
        )
        for suite in suites
    )  # fmt: skip
    diagnosis = Diagnosis(tuple(diagnoses))
    conformance = Conformance("not", Coverage(1, 2, 9, 1), Coverage(1, 2, 9, 1), 28)
    return Verification(name, "golden", results, (), Unknown(), diagnosis, conformance)


def differing(case="case", field="code", shape=(64, 32), step=1):
    """Return a field that differs in every so many of its entries."""
    size = int(np.prod(shape))
    wrong = np.arange(size).reshape(shape) % step == 0
    entries = tuple(
        Entry(tuple(map(int, index)), 0x38, 0x39, (Input("x", 0x3F800000, "f32"),))
        for index in np.argwhere(wrong)[:8]
    )
    rows = min(24, size // shape[-1])
    picture = tuple((3,) * min(64, shape[-1]) for _ in range(rows))
    kinds = (KindOfEntries("1 ulp above", int(wrong.sum()), entries[0]),)
    return Difference(
        case, field, field, "e4m3", int(wrong.sum()), size, shape, entries, picture, kinds=kinds
    )


def test_a_match():
    page = page_of(on(deviating(), "decisions"))
    (title,) = page.texts("h1")
    cases = cases_of("decisions")
    assert title.startswith(f"✓ match bit-exact in all that was asked: 1 field, {cases} cases, ")
    assert page.texts("h2") == ["What was compared"]
    assert page.texts("ol", "tiles") == ["decisions ✓ match"]
    entries = sum(case.arrays["accepted"].size for case in golden.load("decisions"))
    row = f"decisions Acceptance from the sums of a unit ✓ match {entries:,} {cases} cases 0 "
    assert row in page.texts("tr")[1]
    assert not page.texts("figure")


def test_nothing_run():
    page = page_of(on(lambda *_: None, "decisions", "encode"))
    assert page.texts("h1") == ["○ not run nothing was compared"]
    assert page.texts("summary") == ["○ 2 suites not run the candidate has no answer"]
    assert "encode: " in page.texts("details")[0]
    assert not page.texts("table")


@pytest.mark.tier("full")
def test_mismatches():
    found = on(deviating("ENC-003/ties-away", without=("xs",)), "quantize_steps", "decisions")
    page = page_of(found)
    code, y = found.results[0].fields
    wrong, compared = code.differing + y.differing, code.compared + y.compared
    assert page.texts("h1") == ["✗ mismatch not conformant"]
    assert page.texts("p", "lead") == [
        f"All {wrong:,} mismatches are explained by ENC-003/ties-away (rule ENC-003)"
    ]
    assert CAUSES["ENC-003/ties-away"].summary in page.texts("details", "cause")[0]
    rows = page.texts("table")[-1]
    assert f" ✗ mismatch {compared:,} 5 cases {wrong:,} code xs yes decisions" in rows
    assert "#suite-0" in page.links
    flow = page.texts("ol", "flow")[0]
    words = ("xs ○ not given", f"code ✗ {code.differing:,} of {code.compared:,}", "y ✗ ")
    order = [flow.index(word) for word in words]
    assert order == sorted(order)
    assert (
        "first mismatching field; rules QNT-001, ENC-003, ENC-007" in page.texts("li", "stage")[0]
    )
    assert "first mismatching field" in page.texts("th")
    assert {"ENC-003", "QNT-001"} <= set(page.texts("a", "rule"))
    kinds = page.texts("table", "kinds")[0]
    differences = [d for d in found.results[0].differences if d.suite_field == "code"]
    above = [k for d in differences for k in d.kinds if k.words == "1 ulp above"]
    most = max(above, key=lambda kind: kind.count)
    number = most.entry.inputs[0]
    assert f"code {sum(k.count for k in above):,} 1 ulp above " in kinds
    assert f"[{most.entry.index[0]}] {number.what} 0x{number.bits:08X} " in kinds
    assert kinds.index("code") < kinds.index(" y ")
    assert len(page.texts("figure")) == 2
    assert "mor-ref verify kernel:dut --suite quantize_steps" in page.texts("code")
    elsewhere = page_of(dataclasses.replace(found, vectors="own.safetensors"))
    assert "kernel:dut --suite" not in " ".join(elsewhere.texts("code"))


def test_the_first_mismatching_field_is_in_the_page_and_in_json():
    """A field that differs is false, and is not taken for none."""

    def wrong(operation, parameters, inputs):
        del operation, parameters
        return {"value": np.uint32(1) + inputs["code"]}

    found = on(wrong, "decode")
    assert " value " in page_of(found).texts("table")[-1]
    assert json.loads(as_json(found))["results"][0]["stage"] == "value"


def test_what_cannot_be_compared():
    def floats(operation, parameters, inputs):
        found = deviating()(operation, parameters, inputs)
        return {name: array.astype(float) for name, array in found.items()}

    page = page_of(on(floats, "decisions"))
    cases = cases_of("decisions")
    assert f"not comparable {cases} fields of cases" in page.texts("dl", "facts")[0]
    assert "entries compared 0" in page.texts("dl", "facts")[0]
    assert "could not be compared, so no cause can be named" in page.texts("body")[0]
    assert "case mean_relative_error, field accepted: has dtype float64" in page.texts("details")[0]
    assert "explained by" not in page.texts("body")[0]
    assert f"cannot be compared in {cases} cases" in page.texts("ol", "flow")[0]


@pytest.mark.tier("full")
def test_what_can_be_compared_in_part():
    """The reservation of the text: on top, where all is explained or some, and of the suite."""

    def partly(operation, parameters, inputs):
        found = deviating("ENC-003/ties-away")(operation, parameters, inputs)
        return found if parameters["format"] != "e5m2" else found | {"y": found["y"][1:]}

    def odd_as_well(operation, parameters, inputs):
        found = partly(operation, parameters, inputs)
        return found | {"code": found["code"] ^ (np.arange(len(found["code"])) % 7 == 3)}

    page = page_of(on(partly, "quantize_steps"))
    there = [case for case in golden.load("quantize_steps") if case.parameters["format"] != "e5m2"]
    compared = sum(case.arrays["y"].size for case in there)
    y = page.texts("ol", "flow")[0].partition("y ✗ ")[2]
    assert re.match(rf"[\d,]+ of {compared:,} differ; cannot be compared in \d case", y)
    (lead,) = page.texts("p", "lead")
    assert re.fullmatch(
        r"All [\d,]+ mismatches that can be compared are explained by ENC-003/ties-away .*", lead
    )
    suite = page.texts("details", "cause")[0]
    assert "mismatches that can be compared are explained by ENC-003/ties-away" in suite
    page = page_of(on(odd_as_well, "quantize_steps"))
    assert page.texts("p", "lead") == ["What explains the mismatches is not known"]
    (causes,) = page.texts("details", "cause")
    assert "No known mistake explains the " in causes
    assert "mismatches that can be compared; ENC-003/ties-away (rule ENC-003) explains " in causes
    assert re.search(r" explains \d+\.\d % of them \([\d,]+ of [\d,]+\)", causes)


def test_a_failure():
    """It is said on top; earlier comparisons are below."""

    def breaking(operation, parameters, inputs):
        if parameters.get("metric") == "not_worse_than":
            raise ArithmeticError("no <units>")
        if operation == "quantize_element":
            return None
        return deviating()(operation, parameters, inputs)

    page = page_of(on(breaking, "error_steps", "decisions", "quantize_steps"))
    given = cases_of("decisions")  # one without an answer, and one of error_steps
    said = f"✗ failed bit-exact in the given part: 4 of 7 fields, {given} of "
    assert page.texts("h1")[0].startswith(said)
    (lead,) = page.texts("p", "lead")
    place = "case 'not_worse_than' of suite 'decisions'"
    said = f"kernel:dut raised ArithmeticError on {place}: no <units>"
    assert re.fullmatch(rf"{re.escape(said)} \(line \d+ of test_page.py, in breaking\)", lead)
    first, second = page.texts("tr")[1:]
    assert first.startswith("decisions")
    assert "✗ failed" in first
    assert second.startswith("error_steps")
    assert "✓ match" in second
    assert "suites: failed 1" in page.texts("dl", "facts")[0]
    assert f"cases given {given} of " in page.texts("dl", "facts")[0]
    assert "rules given in full 1 of 10" in page.texts("dl", "facts")[0]


def test_names_that_nobody_knows():
    """Of suites that match, and of those without a known answer."""

    def strange(operation, parameters, inputs):
        found = deviating()(operation, parameters, inputs)
        return {"cod": found["u"]} if operation == "error_term" else found | {"acepted": 3}

    page = page_of(on(strange, "error_steps", "decisions"))
    (row,) = page.texts("tr")[1:]
    assert "Given, but not fields of this suite: acepted; the nearest to acepted is accepted" in row
    table, left = page.texts("details")
    assert "acepted" in table
    assert "Given, but not fields of this suite: cod; the nearest to cod is " in left


@pytest.mark.tier("full")
def test_the_conclusion_comes_first():
    """The verdict and the explanation, then the evidence, then the comparison."""
    found = on(deviating("ENC-003/ties-away"), "quantize_steps", "decisions")
    text = as_html(found)
    parts = [
        "</h1>", 'id="cause-0" open', 'class="lead"', 'id="suite-0"', 'class="flow"', ">How they",
        "<figure>", "Rules: ", 'class="facts"', 'class="tiles"', "as a table", "by their names",
        "Golden vectors",
    ]  # fmt: skip
    places = [text.index(part, text.index("<body>")) for part in parts]
    assert places == sorted(places)
    (tiles,) = Page(text).texts("ol", "tiles")
    assert tiles == "quantize_steps ✗ mismatch"
    assert "✓ match decisions" in Page(text).texts("p")
    (wrong,) = {result.differing / result.compared for result in found.results[:1]}
    assert f'style="width: {100 * wrong:.2f}%"' in text


def test_explanations_that_are_not_the_whole():
    def whole(*names):
        return Explanation(names, ("ENC-003", "QNT-001"), 60, 60, is_whole=True)

    part = Explanation(
        ("ENC-003/truncated",), ("ENC-003",), 9, 20, is_whole=False, is_of_sample=True
    )
    diagnoses = [
        SuiteDiagnosis(
            "a",
            60,
            (whole("ENC-003/ties-away", "ENC-006/not-saturated"), whole("ENC-003/truncated")),
        ),
        SuiteDiagnosis("b", 30, (part,), leaders=("ENC-003/ties-away",), untried=1234),
        SuiteDiagnosis("c", 10, ()),
        SuiteDiagnosis("d", 20, (), is_large=True),
        SuiteDiagnosis("e", 1, (dataclasses.replace(part, explained=1, of=1, is_of_sample=False),)),
    ]
    found = made([differing()], "abcde", diagnoses)
    page = page_of(found)
    assert page.texts("p", "lead") == ["60 of 121 mismatches are explained (49.5 %)"]
    heads = page.texts("h3")[:4]
    assert heads == [
        "ENC-003/ties-away and ENC-006/not-saturated",
        "Not known; a guess: ENC-003/truncated",
        "Not known",
        "Not known",
    ]
    cards = page.texts("details", "cause")
    assert (
        "All 60 mismatches are explained by ENC-003/ties-away and ENC-006/not-saturated" in cards[0]
    )
    assert "The answers do not distinguish it from these: or by ENC-003/truncated" in cards[0]
    none = "No known mistake explains the "
    assert f"{none}30 mismatches; a guess: ENC-003/truncated (rule ENC-003) explains " in cards[1]
    assert " 45.0 % of a sample of them (9 of 20)" in cards[1]
    assert "the search ended after 131,072 elements, and 1,234 pairs were not tried" in cards[1]
    assert (
        f"{none}1 mismatch and makes no others; a guess: ENC-003/truncated (rule ENC-003)"
        in cards[1]
    )
    assert "No mistake that explains another suite explains the 20 mismatches; on " in cards[2]
    assert f"{none}10 mismatches, or enough of them for a guess" in cards[3]


def test_what_comes_from_outside_is_escaped():
    hostile = dataclasses.replace(differing(case=HOSTILE), field=HOSTILE)
    missing = dataclasses.replace(hostile, problem=HOSTILE)
    found = made([hostile, missing], [HOSTILE], name=HOSTILE)
    (result,) = found.results
    result = dataclasses.replace(
        result,
        title=HOSTILE,
        unknown=Unknown((HOSTILE,), HOSTILE),
        unknown_cases=Unknown((HOSTILE,), HOSTILE),
        not_given=(HOSTILE,),
        expected={HOSTILE: HOSTILE},
        failures=(Failure(HOSTILE, HOSTILE),),
    )
    found = dataclasses.replace(
        found,
        results=(result,),
        not_asked=(HOSTILE,),
        unknown=Unknown((HOSTILE,), HOSTILE),
        vectors=HOSTILE,
    )
    page = page_of(found)
    assert page.texts("p", "name") == [f"mor-ref verify {SHOWN}"]
    assert page.texts("title") == [f"failed: {SHOWN}"]
    assert f"case {SHOWN}, field {SHOWN}: {SHOWN}" in page.texts("details")[0]


NOT_FREE = {"deviations", "format", "level"}  # names of this package


def renamed(value, name_of):
    """Return a record with another name for each of its texts."""
    if isinstance(value, str):
        return name_of(value)
    if isinstance(value, dict):
        return {name_of(key): renamed(one, name_of) for key, one in value.items()}
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
    elif isinstance(value, tuple):
        names = getattr(value, "_fields", ())
        if not names:
            return tuple(renamed(one, name_of) for one in value)
    else:
        return value
    parts = {k: renamed(getattr(value, k), name_of) for k in names if k not in NOT_FREE}
    return type(value)(**{k: getattr(value, k) for k in names} | parts)


def test_each_text_is_escaped_wherever_it_is_from():
    """In texts and in attributes: the page has the elements of one with harmless texts."""

    def explaining(*, is_whole):
        return Explanation(
            ("ENC-003/truncated",), ("ENC-003",), 1, 2, is_whole=is_whole, spared=("a",), left="b"
        )

    unknown = Unknown(("a",), "b")
    diagnoses = [
        SuiteDiagnosis("a", 9, (explaining(is_whole=True),) * 2),
        SuiteDiagnosis("b", 9, (explaining(is_whole=False),), leaders=("c",), untried=1),
    ]
    wrong = differing(shape=(2, 3), step=2)
    found = made([wrong, dataclasses.replace(wrong, problem="p")], "ab", diagnoses)
    results = [
        dataclasses.replace(
            result,
            unknown=unknown,
            unknown_cases=unknown,
            not_given=("d",),
            failures=(Failure("case", "message"),) * 2,
        )
        for result in found.results
    ]
    nothing = {"fields": (), "differences": (), "failures": ()}
    found = dataclasses.replace(
        found,
        results=(*results, dataclasses.replace(results[0], suite="not_run", **nothing)),
        not_asked=("e",),
        unknown=unknown,
    )
    elements = {tag for tag, _, _ in page_of(found).found}
    texts = set()
    renamed(found, lambda text: texts.add(text) or text)
    for text in texts:
        page = page_of(renamed(found, lambda other, text=text: HOSTILE if other == text else other))
        assert {tag for tag, _, _ in page.found} <= elements, text
        assert SHOWN in page.texts("html")[0], text


def test_long_names_are_cut():
    long = "x" * 100_000
    unknown = Unknown(tuple(f"{k}{long}" for k in range(100)), long)
    found = made([differing(case=long)] * 300, [long], name=long)
    results = (dataclasses.replace(found.results[0], unknown=unknown),)
    page = page_of(dataclasses.replace(found, results=results))
    assert f"{'x' * 300}… (100,000 characters)" in page.texts("p", "name")[0]
    assert "and 80 more" in page.texts("body")[0]


@pytest.mark.tier("full")
def test_a_page_stays_small():
    """However much differs, the page says how much it leaves out."""
    cases = [differing(f"case {k} {'name ' * 30}", "code", (999, 640)) for k in range(50)]
    found = made(cases, [f"suite_{k}" for k in range(300)])
    page = page_of(found)
    assert len(page.texts("figure")) == 20
    body = page.texts("body")[0]
    assert "and 100 more suites" in body
    assert re.search(r"There is no room for \d+ more suites", body)
    assert "1 of 50 fields of cases: the largest" in body
    assert "There is no room for 50 pictures" in body


def test_a_picture_says_where_and_how_many():
    counts = ((0, 0, 0), (0, 1, 9), (0, 0, 2))
    found = dataclasses.replace(differing(shape=(30, 12)), picture=counts, count=12)
    drawn = figure(found)
    text = drawn.texts("figure")[0]
    assert "12 of 360 differ. They lie in rows 10 to 29 and columns 4 to 11. Shape 30 x 12." in text
    assert "row 0row 29" in text
    assert "columns 0 to 11" in text
    assert " 1 2 9 entries differ in a cell of up to 10 x 4" in text
    squares = [values["d"] for name, values, _ in drawn.found if name == "path"][1:4]
    # The more mismatches, the larger the square: the one in the middle has the fewest.
    assert squares == ["M12 12h6v6h-6z", "M21 21h8v8h-8z", "M20 10h10v10h-10z"]


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((5,), "They lie in rows 0 to 4. Shape 5."),
        ((2, 3, 4), "Shape 2 x 3 x 4; a row is the last axis."),
        ((7, 1), "They lie in rows 0 to 6 and column 0. Shape 7 x 1."),
    ],
)
def test_pictures_of_any_shape(shape, words):
    assert words in figure(differing(shape=shape)).texts("figcaption")[0]


def test_a_field_with_an_entry_for_each_row_is_drawn_lying():
    drawn = figure(differing(shape=(71,)))
    assert drawn.texts("div", "rows") == ["column 0"]
    assert drawn.texts("div", "columns") == ["row 0row 70"]


def test_levels():
    assert levels_of(((0, 4), (0, 4))) == [(4, 4)]
    assert levels_of(((1, 2, 3, 5),)) == [(1, 1), (2, 2), (3, 3), (5, 5)]
    for counts in ([1, 2, 3, 5, 81], [7, 8, 9, 10, 11, 12], [1, 2, 3, 4, 5], [*range(1, 400)]):
        levels = levels_of((tuple(counts),))
        assert 1 < len(levels) <= 4 or counts[0] == 7
        assert all(sum(a <= count <= b for a, b in levels) == 1 for count in counts)


@pytest.mark.tier("full")
def test_the_command_writes_it(module):
    status = run(module, "candidate:wrong", "--suite", "decisions", "--report", "r.html")
    assert status.returncode == 1, status.stderr
    page = Page((module / "r.html").read_text(encoding="utf-8"))
    assert "mor-ref verify candidate:wrong" in page.texts("p", "name")
    assert "[3]" in page.texts("table", "kinds")[0]
    assert re.search(r"SHA-256 [0-9a-f]{64} of candidate\.py", page.texts("footer")[0])


def test_the_stage_and_large_tensors_come_first():
    """In the table, the case in which the most entries differ; as pictures, the largest."""
    small, large = differing("small", shape=(2, 4)), differing("large", shape=(64, 64))
    page = page_of(made([differing("later", "y", (99, 99)), small, large]))
    rows = page.texts("table", "kinds")[0]
    assert "code 4,104 1 ulp above large [0, 0]" in rows
    assert rows.index("large") < rows.index("y 9,801 1 ulp above later")
    assert [text.split(",")[0] for text in page.texts("figcaption")] == ["case large", "case small"]


@pytest.mark.tier("full")
def test_inputs_are_no_fields_of_the_flow():
    found = on(deviating(without=("xs",)), "quantize_steps").results[0]
    assert list(found.expected) == ["xs", "code", "y"]
    assert found.expected["code"]
