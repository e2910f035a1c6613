"""Diagnosis: a planted deviation is named, alone or with another, and nothing else is claimed."""

import html
import json
import re
from dataclasses import replace

import numpy as np
import pytest

import mor_ref
from mor_ref import exact, formats, golden
from mor_ref.deviations import DEVIATIONS, applied
from mor_ref.deviations.domains import LARGE
from mor_ref.exact.errors import error_term as exact_error_term
from mor_ref.exact.step import reached, replaced
from mor_ref.golden import bundled_files
from mor_ref.golden.generation.expected import with_expected
from mor_ref.golden.model.suite import question
from mor_ref.golden.store.manifest import read_manifest
from mor_ref.golden.suites import SUITES
from mor_ref.mistakes.catalogue import CAUSES, id_of
from mor_ref.operations import OPERATIONS
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.comparing.names_given import fields_of
from mor_ref.verify.diagnosing.diagnosis import diagnose
from mor_ref.verify.diagnosing.diagnosis_records import Explanation, SuiteDiagnosis
from mor_ref.verify.diagnosing.sample import samples_of
from mor_ref.verify.diagnosing.scoring import Model, steps_of
from mor_ref.verify.reporting import report_files
from mor_ref.verify.reporting import text as report
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

# Deviations that no suite can distinguish: the same function of every input that there is.
INDISTINGUISHABLE: tuple[frozenset[str], ...] = ()
MANIFEST = read_manifest(bundled_files())["suites"]
FAST = ("quantize_steps", "mx_blocks")


def planted(*names):
    """Return a candidate that is the exact model with deviations."""

    def function(operation, parameters, inputs):
        with applied(*(CAUSES[name] for name in names)):
            return dict(OPERATIONS[operation].exact(parameters, inputs))

    return PythonFunction("+".join(names), function)


def explanations(diagnosis):
    return [set(e.deviations) for e in diagnosis.explanations if e.is_whole]


def smallest_suites(deviation):
    """Return the suites of a deviation, those of few elements first."""
    return sorted(deviation.suites, key=lambda name: MANIFEST[name]["elements"])


def whole_of(name, suite):
    """Return a planted deviation on all cases of a suite."""
    return answered(name, suite, golden.load(suite))


def some_of(name, suite):
    """Return a planted deviation on the case that shows it first, and on the smallest case."""
    cases = golden.load(suite)
    kills = {id_of(known): at for known, at in MANIFEST[suite]["kills"].items()}
    first = kills[name]["case"]
    chosen = [case for case in cases if case.name == first]
    chosen.append(min(cases, key=lambda case: next(iter(case.arrays.values())).size))
    return answered(name, suite, chosen)


def answered(name, suite, chosen):
    fields = fields_of(MANIFEST[suite])
    with applied(CAUSES[name]):
        answers = {
            case.name: with_expected(SUITES[suite], question(fields, case)).arrays
            for case in chosen
        }
    return Evidence(suite, MANIFEST[suite]["operation"], fields, chosen, answers)


@pytest.mark.tier("full", one_in=16, but=[f"[{name}]" for name in [*DEVIATIONS][::800]])
@pytest.mark.parametrize("name", DEVIATIONS)
def test_a_planted_deviation_is_diagnosed(name):
    """In two cases of two suites, which may not distinguish it from others."""
    suites = [suite for suite in smallest_suites(CAUSES[name]) if suite not in LARGE]
    found = [some_of(name, suite) for suite in suites[:2]]
    for diagnosis in diagnose(found).suites:
        assert {name} in explanations(diagnosis)


@pytest.mark.tier("exhaustive")
@pytest.mark.parametrize("name", DEVIATIONS)
def test_whole_suites_distinguish_a_planted_deviation_from_all_others(name):
    """Together: a suite is asked only if those before it leave something else as well."""
    allowed = {name}.union(*(group for group in INDISTINGUISHABLE if name in group))
    left = None
    for suite in smallest_suites(CAUSES[name]):
        (diagnosis,) = verify(planted(name), suites_in(bundled_files(), [suite])).diagnosis.suites
        found = explanations(diagnosis)
        assert {name} in found
        left = found if left is None else [one for one in left if one in found]
        if set().union(*left) <= allowed:
            return
    pytest.fail(f"also explained by {left}")


@pytest.mark.tier("full")
@pytest.mark.parametrize(
    ("names", "suites"),
    [
        (("ENC-003/ties-away", "dequantized_twice"), ["quantize_steps"]),
        (("ENC-005/threshold-without-equals", "ENC-011/negative-zero-lost"), ["encode_stochastic"]),
        (("SCL-002/significand-truncated", "GAM-003/comparison-never"), ["scale_steps"]),
    ],
)
def test_two_together_are_diagnosed(names, suites):
    found = verify(planted(*names), suites_in(bundled_files(), suites))
    assert set(names) in explanations(found.diagnosis.suites[-1])


@pytest.mark.tier("full")
def test_every_nan_with_the_sign_bit_is_named():
    """Those of inputs are one deviation, those of overflows and with a sign another."""
    is_asked = re.compile(r"e4m3\.f32\.rne\.(satfinite|ieee)\.(canonical|signed)").fullmatch
    cases = [case for case in golden.load("encode") if is_asked(case.name)]
    assert len(cases) > 2
    answers = {}
    for case in cases:
        codes = case.arrays["code"]
        wrong = np.where(codes & 0x7F == 0x7F, np.uint8(0xFF), codes)
        answers[case.name] = {**case.arrays, "code": wrong}
    fields = fields_of(MANIFEST["encode"])
    (found,) = diagnose([Evidence("encode", "encode", fields, cases, answers)]).suites
    assert explanations(found) == [{"ENC-009/nan-negative", "ENC-007+ENC-010/nan-negative"}]


@pytest.mark.tier("full")
def test_the_best_is_found_by_all_mismatches(monkeypatch):
    """Not by a sample, though all that it shows is explained by another."""
    names = "SCL-002/quotient-by-reciprocal", "SCL-002/quotient-by-truncated-reciprocal"
    one, other = (CAUSES[name] for name in names)

    def function(operation, parameters, inputs):
        """Answer with one deviation, but in three places with the other."""
        by_each = []
        for deviation in (one, other):
            with applied(deviation):
                by_each.append(OPERATIONS[operation].exact(parameters, inputs))
        found = {field: array.copy() for field, array in by_each[0].items()}
        part = np.flatnonzero(by_each[0]["scale"] != by_each[1]["scale"])[:3]
        for field, array in found.items():
            array[part] = by_each[1][field][part]
        return found

    def flattering(turns, *, of_rows):
        assert of_rows
        for sample in turns:
            is_shown = sample.differing_rows
            is_shown &= ~Model().rows_missed((other,), sample)
            if is_shown.any():
                yield sample.rows(is_shown)

    monkeypatch.setattr("mor_ref.verify.diagnosing.guesses.few_cases", flattering)
    monkeypatch.setattr("mor_ref.verify.diagnosing.diagnosis.PAIRS_END", 0)
    found = verify(PythonFunction("mine", function), suites_in(bundled_files(), ["scale_steps"]))
    (diagnosis,) = found.diagnosis.suites
    assert [e.deviations for e in diagnosis.explanations] == [(one.name,)]


@pytest.mark.tier("full")
def test_an_unknown_mistake_is_not_explained():
    cases, fields = golden.load("mx_blocks")[::8], fields_of(MANIFEST["mx_blocks"])
    answers = {}
    for case in cases:
        code = case.arrays["code"]
        some = np.arange(code.shape[1]) % 7 == 3
        answers[case.name] = {**case.arrays, "code": code ^ some}
    (found,) = diagnose([Evidence("mx_blocks", "mx_block", fields, cases, answers)]).suites
    assert explanations(found) == []
    text = "\n".join(report.diagnosis_lines(found, comparable=True))
    assert "mismatches are explained" not in text
    assert "no known mistake" in text


@pytest.mark.tier("full")
@pytest.mark.parametrize("suite", ["quantize_steps", "dot_scaled"])
def test_expected_values_that_are_wrong_are_not_explained(suite):
    """The candidate has the values of the reference: a deviation that changes nothing has, too."""
    chosen, fields = golden.load(suite)[:2], fields_of(MANIFEST[suite])
    answers = {case.name: dict(case.arrays) for case in chosen}
    (last,) = [field.name for field in fields if field.role == "expected"][-1:]
    for case in chosen:
        wrong = case.arrays[last].copy()
        wrong[:3] ^= 1
        case.arrays[last] = wrong
    found = Evidence(suite, MANIFEST[suite]["operation"], fields, chosen, answers)
    (diagnosis,) = diagnose([found]).suites
    assert diagnosis.explanations == ()


@pytest.mark.tier("full")
def test_a_mistake_next_to_a_known_one_is_not_claimed():
    """One entry more that is wrong: most is explained, and the report says how much."""

    def function(operation, parameters, inputs):
        with applied(CAUSES["ENC-003/ties-away"]):
            found = dict(OPERATIONS[operation].exact(parameters, inputs))
        found["y"] = found["y"].copy()
        found["y"][7] ^= 0x00012345
        return found

    found = verify(PythonFunction("two", function), suites_in(bundled_files(), ["quantize_steps"]))
    (diagnosis,) = found.diagnosis.suites
    (best,) = diagnosis.explanations
    assert best.deviations == ("ENC-003/ties-away",)
    assert (best.is_whole, best.is_of_sample) == (False, False)
    assert (best.explained, best.of) == (diagnosis.mismatches - 5, diagnosis.mismatches)
    text = "\n".join(report.lines(found))
    assert "no known mistake explains the " in text
    assert "; `ENC-003/ties-away` (rule ENC-003) explains 99.9 % of them (" in text
    assert f": all {best.of_fields:,} of code" in text
    assert "the first mismatch that it leaves: case e2m1, field y, at [7]" in text
    (record,) = json.loads(report_files.as_json(found))["diagnosis"]["suites"]
    assert (record["is_large"], record["untried"]) == (False, 0)
    assert record["explanations"] == [
        {
            "deviations": ["ENC-003/ties-away"],
            "rules": ["ENC-003"],
            "explained": best.explained,
            "of": best.of,
            "is_whole": False,
            "is_of_sample": False,
            "spared": [],
            "more": 0,
            "left": "case e2m1, field y, at [7]",
            "fields": list(best.fields),
            "of_fields": best.of_fields,
            "is_displaced": False,
            "summaries": [CAUSES["ENC-003/ties-away"].summary],
        }
    ]


def with_another_mistake_in_a_large_case():
    """Return ties away from zero in small cases and a large one, with more mistakes in that."""
    cases = golden.load("mx")
    ordinary = [case for case in cases if case.parameters["source"] == "bf16"]
    small = [case for case in ordinary if size_of(case) == 360][:12]
    (large,) = [case for case in cases if size_of(case) == 1152][:1]
    found = answered("ENC-003/ties-away", "mx", [*small, large])
    code = found.answers[large.name]["code"]
    wrong = {"code": code ^ (np.arange(code.shape[1]) % 7 == 3)}
    return replace(found, answers=found.answers | {large.name: found.answers[large.name] | wrong})


def size_of(case):
    return next(iter(case.arrays.values())).size


def said(diagnosis):
    return "\n".join(report.diagnosis_lines(diagnosis, comparable=True))


@pytest.mark.tier("full")
def test_what_explains_small_cases_alone_is_not_claimed():
    """The sample by which the best is chosen has nothing else; its share is of all."""
    found = with_another_mistake_in_a_large_case()
    (diagnosis,) = diagnose([found]).suites
    (best,) = diagnosis.explanations
    assert best.deviations == ("ENC-003/ties-away",)
    assert not diagnosis.is_explained
    assert 0 < best.explained < best.of == diagnosis.mismatches
    assert "no known mistake explains the " in said(diagnosis)
    assert "of a sample" not in said(diagnosis)


@pytest.mark.tier("full")
def test_a_share_of_many_mismatches_is_of_a_sample(monkeypatch):
    """Of cases of all sizes, and the report says so."""
    found = with_another_mistake_in_a_large_case()
    monkeypatch.setattr("mor_ref.verify.diagnosing.diagnosis.PAIRS_END", 0)
    (whole,) = diagnose([found]).suites[0].explanations
    monkeypatch.setattr("mor_ref.verify.diagnosing.guesses._SHARE_OF_TENSORS", 1000)
    (diagnosis,) = diagnose([found]).suites
    (best,) = diagnosis.explanations
    assert best.is_of_sample
    assert 0 < best.of < whole.of
    assert 0 < best.explained < best.of
    assert f" % of a sample of them ({best.explained:,} of {best.of:,})" in said(diagnosis)


@pytest.mark.tier("full")
def test_what_explains_next_to_nothing_is_not_a_guess(monkeypatch):
    """One entry of thousands by a known deviation: its share would be shown as 0.0 %."""
    monkeypatch.setattr("mor_ref.verify.diagnosing.diagnosis.PAIRS_END", 0)
    case = max(golden.load("quantize_steps"), key=size_of)
    found = answered("ENC-003/ties-away", "quantize_steps", [case])
    answer = found.answers[case.name]
    (first, *_) = np.flatnonzero(answer["code"] != case.arrays["code"])
    wrong = {name: array.copy() for name, array in case.arrays.items() if name in answer}
    some = np.random.default_rng(0).random(len(wrong["y"])) < 1 / 2
    wrong["y"][first:][some[first:]] ^= 0x00012345
    for name, array in answer.items():
        wrong[name][first] = array[first]
    (diagnosis,) = diagnose([replace(found, answers={case.name: wrong})]).suites
    assert diagnosis.mismatches > 2000  # two explained are less than 0.1 %
    assert diagnosis.explanations == ()
    assert said(diagnosis).startswith(
        f"no known mistake explains the {diagnosis.mismatches:,} mismatches, "
        "or enough of them for a guess"
    )


def test_a_share_is_100_percent_only_if_it_is_all():
    assert (report.percent(9999, 10_000), report.percent(7, 7)) == ("99.9 %", "100.0 %")


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({}, "100.0 % of them (8 of 8), but would make others as well"),
        ({"more": 3}, "100.0 % of them (8 of 8), but would make others as well"),
        (
            {"is_of_sample": True},
            "100.0 % of a sample of them (8 of 8), and the rest was not tried",
        ),
        ({"explained": 6}, "75.0 % of them (6 of 8)"),
    ],
)
def test_a_guess_that_explains_all_says_why_it_is_one(how, why):
    """Also each further guess that is as good."""
    alone = Explanation(
        ("ENC-003/truncated",), ("ENC-003",), 8, 8, is_whole=False, summaries=("Truncates.",)
    )
    one = replace(alone, **how)
    other = replace(one, deviations=("ENC-003/ties-away",))
    lines = list(
        report.diagnosis_lines(SuiteDiagnosis("encode", 20, (one, other)), comparable=True)
    )
    assert lines[0].endswith(f"; a guess: `ENC-003/truncated` (rule ENC-003) explains {why}")
    assert f"  a guess as good: `ENC-003/ties-away` (rule ENC-003) explains {why}" in lines


@pytest.mark.tier("full")
def test_what_would_make_other_mismatches_is_not_claimed():
    """A deviation in every other row: it explains all that differs, and more would differ."""
    found = whole_of("ENC-003/ties-away", "quantize_steps")
    right = {case.name: case.arrays for case in found.cases}
    answers = {
        case: {
            name: np.where(np.arange(len(array)) % 2, array, right[case][name])
            for name, array in answer.items()
        }
        for case, answer in found.answers.items()
    }
    (diagnosis,) = diagnose([replace(found, answers=answers)]).suites
    assert not diagnosis.is_explained
    count = f"{diagnosis.mismatches:,} mismatches"
    assert said(diagnosis).startswith(
        f"no known mistake explains the {count} and makes no others; a guess: "
        f"`ENC-003/ties-away` (rule ENC-003) explains 100.0 % of them ({diagnosis.mismatches:,} of "
        f"{diagnosis.mismatches:,}), but would make others as well"
    )


@pytest.mark.tier("full")
def test_what_changes_a_field_that_matches_is_not_a_guess(monkeypatch):
    """Codes of numbers times their scale: with another stored scale, which is not stored."""
    x = np.random.default_rng(5).standard_normal((8, 64)).astype(np.float32)

    def function(operation, parameters, inputs):
        found = OPERATIONS[operation].exact(parameters, inputs)
        with applied(CAUSES["MXS-002/inverse"]):
            other = OPERATIONS[operation].exact(parameters, inputs)
        return {"scale": found["scale"], "code": other["code"]}

    monkeypatch.setattr("mor_ref.verify.diagnosing.diagnosis.PAIRS_END", 0)
    text = str(mor_ref.verify(function, inputs={"x": x}, recipe="mxfp8"))
    assert "scale: match" in text
    assert "`MXS-002/inverse` (rule" not in text, text


@pytest.mark.tier("full")
def test_the_search_for_pairs_ends_after_so_many_elements(monkeypatch):
    """At the same pair in each run; the report says that some were not tried."""
    found = with_another_mistake_in_a_large_case()
    monkeypatch.setattr("mor_ref.verify.diagnosing.diagnosis.PAIRS_END", 1 << 40)
    assert diagnose([found]).suites[0].untried == 0
    for module in ("diagnosing.diagnosis", "reporting.text"):
        monkeypatch.setattr(f"mor_ref.verify.{module}.PAIRS_END", 20_000)
    (diagnosis,), again = diagnose([found]).suites, diagnose([found])
    assert diagnosis == again.suites[0]
    assert 0 < diagnosis.untried < 6 * len(CAUSES)
    assert said(diagnosis).endswith(
        f"; the search ended after 20,000 elements, and {diagnosis.untried:,} pairs were not tried"
    )
    assert "pairs of mistakes tried: a part of those that include `ENC-003/ties-away` or `" in said(
        diagnosis
    )


def in_format(name, fmt, *suites):
    """Verify a candidate that deviates in one format alone."""
    deviating, right = planted(name).function, planted().function

    def function(operation, parameters, inputs):
        run = deviating if parameters.get("format") == fmt else right
        return run(operation, parameters, inputs)

    return verify(PythonFunction("in a format", function), suites_in(bundled_files(), list(suites)))


@pytest.mark.tier("full")
def test_an_explanation_says_where_it_does_not_hold():
    """Other cases of the suite match, which the deviation would change as well."""
    found = in_format("ENC-003/ties-away", "e5m2", "quantize_steps")
    (diagnosis,) = found.diagnosis.suites
    (explanation,) = diagnosis.explanations
    assert explanation.deviations == ("ENC-003/ties-away",)
    (case,) = explanation.spared
    assert re.fullmatch("case e(?!5m2).* of quantize_steps", case)
    assert not explanation.is_whole
    only = f"it would also change {case}, which matches"
    assert only in said(diagnosis)
    assert only in "\n".join(report.lines(found))
    assert only.replace("it", "It", 1) in html.unescape(report_files.as_html(found))


@pytest.mark.tier("full")
def test_an_explanation_says_which_suites_do_not_show_it():
    def function(operation, parameters, inputs):
        names = ["ENC-003/ties-away"] if operation == "mx_block" else []
        return planted(*names).function(operation, parameters, inputs)

    found = verify(PythonFunction("in a suite", function), suites_in(bundled_files(), list(FAST)))
    (diagnosis,) = found.diagnosis.suites
    at = MANIFEST["quantize_steps"]["kills"]["ties_away"]["case"]
    (explanation,) = diagnosis.explanations
    assert explanation.spared == (f"case {at} of quantize_steps",)
    assert not explanation.is_whole


@pytest.mark.tier("full")
def test_what_is_known_from_another_suite_has_to_leave_the_matching_cases_alone():
    """Ties go toward zero in a few tensors; what explains another suite explains these as well."""
    few = [case for case in golden.load("quantize") if size_of(case) <= 64]
    towards_zero = answered("ENC-003/ties-toward-zero", "quantize", few)
    steps = some_of("ENC-003/ties-toward-positive", "quantize_steps")
    found = {d.suite: d for d in diagnose([steps, towards_zero]).suites}
    assert {"ENC-003/ties-toward-zero"} in explanations(found["quantize"])
    assert {"ENC-003/ties-toward-positive"} not in explanations(found["quantize"])


@pytest.mark.tier("full")
def test_a_part_that_is_explained_by_what_would_make_more_says_so():
    """Mistakes of two kinds; of deviations that explain as much, those that make the least."""

    def function(operation, parameters, inputs):
        found = dict(planted("MXS-003/log2-in-binary32").function(operation, parameters, inputs))
        wrong = np.isnan(inputs["x"].view(np.float32))
        return found | {"xs": np.where(wrong, np.uint32(0x7FC00000), found["xs"])}

    found = verify(PythonFunction("both", function), suites_in(bundled_files(), ["mx_blocks"]))
    (diagnosis,) = found.diagnosis.suites
    assert not diagnosis.is_explained
    named = [e.deviations for e in diagnosis.explanations]
    assert ("MXS-003/log2-in-binary32",) in named, named
    for explanation in diagnosis.explanations:
        assert (explanation.more > 0) == (", but would make others as well" in said(diagnosis))
    assert f"`{named[-1][0]}` " in said(diagnosis)


@pytest.mark.tier("full")
def test_what_explains_everything_spares_nothing():
    found = verify(planted("ENC-003/ties-away"), suites_in(bundled_files(), list(FAST)))
    assert [e.spared for d in found.diagnosis.suites for e in d.explanations] == [(), ()]
    assert "would also change" not in "\n".join(report.lines(found))


@pytest.mark.tier("full")
def test_two_whose_order_makes_no_difference_are_one_explanation():
    (diagnosis,) = diagnose([of_two("error_absolute", "error_after_bf16")]).suites
    found = [set(e.deviations) for e in diagnosis.explanations]
    assert {"error_absolute", "error_after_bf16"} in found
    assert len(found) == len({frozenset(one) for one in found})


def of_two(*names):
    """Return two deviations on the single steps of an error."""
    cases = golden.load("error_steps")
    answers = {
        case.name: planted(*names).function(
            "error_term", case.parameters, question(fields_of(MANIFEST["error_steps"]), case).arrays
        )
        for case in cases
    }
    return Evidence("error_steps", "error_term", fields_of(MANIFEST["error_steps"]), cases, answers)


@pytest.mark.parametrize("order", [1, -1])
def test_errors_without_a_cap_can_be_truncated(order):
    """R is infinite where x is tiny, and is cut to 32 bits."""
    with applied(*[DEVIATIONS[n] for n in ("error_without_a_cap", "error_truncated")][::order]):
        found = exact_error_term(2.0**-149, 1.0)
    assert (found.r, found.u) == (np.inf, 0xFFFFFFFF)
    with applied(*[DEVIATIONS[n] for n in ("error_without_a_cap", "error_truncated")][::order]):
        assert exact_error_term(3.0, 10.0).u == int(np.float32(7) / np.float32(3) * 2**23)


def sample_of(name, suite):
    found = some_of(name, suite)
    return min(samples_of(found), key=lambda sample: sample.size)


@pytest.mark.tier("full")
@pytest.mark.parametrize(
    "leader", ["ENC-003/ties-away", "ENC-003/truncated", "SCL-002/significand-truncated"]
)
@pytest.mark.parametrize("suite", ["quantize", "nvfp4_te_4over6_mae"])
def test_deviations_of_steps_that_are_not_taken_need_no_computing(leader, suite):
    """And the score is the computed one."""
    sample, knowing, first = sample_of("ENC-003/ties-away", suite), Model(), CAUSES[leader]
    knowing.run((), sample)
    knowing.run((first,), sample)
    alone = [(other,) for other in DEVIATIONS.values()]
    pairs = [(first, other) for other in DEVIATIONS.values() if other is not first]
    runs = [*alone, *pairs[::5], *(pair for pair in pairs if one_step(*pair))]
    for those in runs:
        assert knowing.run(those, sample).score == Model().run(those, sample).score
    assert knowing.elements < sample.size * len(runs) * 0.6
    before = knowing.elements
    knowing.run(runs[-1], sample)
    assert knowing.elements == before


def one_step(a, b):
    return not steps_of(a).isdisjoint(steps_of(b))


def test_steps_are_noted_where_they_are_called():
    """Also where what replaces them does not call them; and to the end of the block."""
    with replaced([(exact.encode, lambda *_: 7)]), reached() as found:
        assert found == set()
        assert exact.encode(0.3, formats["e4m3"]) == 7
        assert found == {exact.encode}
    exact.decode(7, formats["e4m3"])
    assert found == {exact.encode}


@pytest.mark.tier("full")
def test_what_cannot_be_compared_is_not_claimed():
    function = planted("ENC-003/ties-away").function

    def partly(operation, parameters, inputs):
        found = function(operation, parameters, inputs)
        return found if parameters["format"] != "e5m2" else found | {"y": found["y"][1:]}

    found = verify(PythonFunction("partly", partly), suites_in(bundled_files(), ["quantize_steps"]))
    text = "\n".join(report.lines(found))
    assert "mismatches that can be compared are explained by `ENC-003/ties-away`" in text
    assert "mismatches are explained" not in text


@pytest.mark.tier("full")
def test_one_explanation_of_all_suites_comes_last():
    found = verify(planted("ENC-003/ties-away"), suites_in(bundled_files(), list(FAST)))
    lines = list(report.summary(found))
    count = sum(result.differing for result in found.results)
    assert (
        lines[0] == f"all {count:,} mismatches are explained by `ENC-003/ties-away` (rule ENC-003)"
    )


@pytest.mark.tier("full")
def test_what_changes_cases_that_match_is_named_only_if_nothing_else_is_left():
    """A kernel that truncates its scales; one suite alone could blame the reciprocal as well."""
    found = diagnose([whole_of("SCL-002/significand-truncated", "scale_steps")])
    assert explanations(found.suites[0]) == [{"SCL-002/significand-truncated"}]


@pytest.mark.tier("full")
def test_a_large_tensor_is_held_to_what_explains_the_others():
    found = diagnose(
        [some_of("MXS-004/always", "mx_blocks"), some_of("MXS-004/always", "mx_large")]
    )
    assert [d.suite for d in found.suites] == ["mx_blocks", "mx_large"]
    assert all({"MXS-004/always"} in explanations(d) for d in found.suites)


@pytest.mark.tier("full", but=["[mx]"])
@pytest.mark.parametrize("suite", ["mx", "mx_blocks"])
def test_views_are_diagnosed_as_what_they_show(suite):
    """A transposed view is mapped back to rows before the diagnosis."""
    plain = some_of("MXS-004/always", suite)
    fields = [replace(field, views=("transposed",)) for field in plain.fields]
    turned = {
        case: {"code@transposed": found["code"].T, "scale": found["scale"]}
        for case, found in plain.answers.items()
    }
    (diagnosis,) = diagnose([replace(plain, fields=fields, answers=turned)]).suites
    assert {"MXS-004/always"} in explanations(diagnosis)


@pytest.mark.tier("full")
def test_a_mistake_of_a_few_small_cases_does_not_hide_what_explains_the_rest():
    """They come first; the guess is judged by cases of all sizes."""

    found = answered("ENC-003/truncated", "mx_blocks", golden.load("mx_blocks")[::4])
    small = [case for case in found.cases if len(case.arrays["x"]) == 1]
    assert small
    for case in small:
        answer = found.answers[case.name]
        for name in ("scale", "code", "y"):
            answer[name] = answer[name] ^ 1
    (suite,) = diagnose([found]).suites
    (guess,) = suite.explanations
    assert guess.deviations == ("ENC-003/truncated",)
    assert not guess.is_whole
    assert guess.explained > guess.of / 2
