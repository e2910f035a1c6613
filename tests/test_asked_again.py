"""Cases that are asked again: a right answer depends on nothing but its case."""

import json
import shutil
from collections import Counter
from itertools import count

import numpy as np
import pytest
from verifying import DECISIONS, cases_of, module, run

from mor_ref.golden import bundled_files
from mor_ref.golden.model.suite import Case
from mor_ref.operations import OPERATIONS
from mor_ref.verify.candidates.by_name import candidate_named
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.comparing import changed_answers
from mor_ref.verify.comparing.allowed import Allowed
from mor_ref.verify.comparing.changed_answers import cases_to_repeat
from mor_ref.verify.own_tensors import verify_on
from mor_ref.verify.reporting import junit, report_files
from mor_ref.verify.reporting import text as report
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

__all__ = ["module"]  # a fixture


def later(change):
    """Return the engine, whose answer is changed when it has had the same question before."""
    asked = set()

    def function(operation, parameters, inputs):
        question = str((operation, parameters, [array.tobytes() for array in inputs.values()]))
        found = dict(OPERATIONS[operation].engine(parameters, inputs))
        if question in asked:
            return change(found)
        asked.add(question)
        return found

    return PythonFunction("kernel:run", function)


def verified(change, *suites, **how):
    return verify(later(change), suites_in(bundled_files(), list(suites)), **how)


def first_entry_inverted(found):
    accepted = found["accepted"].copy()
    accepted[0] ^= 1
    return {"accepted": accepted}


def test_another_answer_is_a_mismatch():
    """In each kind of report; all first answers are right."""
    found = verified(first_entry_inverted, "decisions")
    (result,) = found.results
    assert (found.verdict, result.differences, result.repeats.cases) == ("mismatch", (), 3)
    assert found.conformance.level == "not"
    lines = list(report.lines(found))
    said = "another answer to 3 of 3 cases that were asked again"
    assert lines[:2] == [
        f"decisions: mismatch, {said}",
        f"  {said}; return the same bits whenever a case is asked",
    ]
    assert lines[2].startswith("    case mean_relative_error, field accepted: 1 of ")
    assert lines[2].endswith(
        "entries differs when the case is asked again, the first at [0]: 1, then 0"
    )
    of = f"3 of {cases_of('decisions')} cases"
    assert f"asked again: {of}, 3 times in all; another answer to 3 of them" in lines
    record = json.loads(report_files.as_json(found))["results"][0]
    cases = ["mean_relative_error", "not_worse_than", "fits_range.e5m2"]
    assert [change["case"] for change in record["changes"]] == cases
    assert junit.as_junit(found).count('"another answer when it was asked again"') == 3
    page = report_files.as_html(found)
    assert f"A{said[1:]}" in page
    assert "Answers that change when a case is asked again" in page


def test_the_same_answers_are_a_line():
    lines = list(report.lines(verified(dict, "decisions", "error_steps")))
    of = cases_of("decisions") + 1
    assert f"asked again: 4 of {of} cases, 5 times in all; the same answers" in lines


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda _: None, "case mean_relative_error: it has no answer when it is asked again"),
        (lambda _: {}, "field accepted: it is not given when the case is asked again"),
        (
            lambda found: {"accepted": found["accepted"][:-1]},
            "field accepted: when the case is asked again, it has shape (445,), and (446,) is",
        ),
    ],
)
def test_what_else_can_change(change, said):
    found = verified(change, "decisions")
    assert found.verdict == "mismatch"
    assert said in str(found.results[0].changes[0])


def test_a_case_that_fails_when_it_is_asked_again_has_failed():
    found = verified(lambda _: 1 // 0, "decisions")
    assert found.verdict == "failed"
    assert [failure.case for failure in found.failures] == [
        "fits_range.e5m2",
        "mean_relative_error",
        "not_worse_than",
    ]
    assert "raised ZeroDivisionError" in found.failures[0].message
    assert found.failures[0].message.endswith("(when it was asked again)")
    asked = f"asked again: 3 of {cases_of('decisions')} cases, 3 times in all"
    assert f"{asked}; a failure at 3 of them" in list(report.lines(found))


def test_each_way_in_which_later_answers_end_is_said():
    ends = iter([lambda _: 1 // 0, first_entry_inverted])

    def change(found):
        return next(ends, dict)(found)

    lines = list(report.lines(verified(change, "decisions", "error_steps")))
    of = f"4 of {cases_of('decisions', 'error_steps')} cases, 4 times in all"
    said = "another answer to 1 of them, a failure at 1 of them, the same answers to the others"
    assert f"asked again: {of}; {said}" in lines


def test_a_case_that_is_left_out_was_asked():
    def engine(operation, parameters, inputs):
        return OPERATIONS[operation].engine(parameters, inputs)

    found = verify_on(engine, {"x": np.float32([[np.nan] * 32])}, "mxfp8:rceil", domain="finite")
    assert "asked again: 1 of 1 case, 1 time in all; the same answers" in str(found).splitlines()


def test_bits_that_do_not_count_may_change():
    """NaNs with other bits if they are allowed, and entries that are outside the domain."""

    def other_nans(found):
        value = found["value"].copy()
        value[(value & 0x7FFFFFFF) > 0x7F800000] = 0xFFC00001
        return {"value": value}

    assert verified(other_nans, "decode").verdict == "mismatch"
    assert verified(other_nans, "decode", allowed=Allowed("any", "exact")).verdict == "match"
    assert verified(other_nans, "decode", domain="finite").verdict == "match"


def test_fields_of_rungs_count():
    """Of own tensors under a policy."""
    x = {"x": np.float32([[1, 2, 3, 4]])}

    def with_codes(change):
        calls = []

        def function(operation, parameters, inputs):
            calls.append(1)
            code = np.zeros((1, 4), np.uint8) + (len(calls) > 1) * change
            found = OPERATIONS[operation].engine(parameters, inputs)
            return {"output": found["output"], "e4m3.code": code.astype(np.uint8)}

        return function

    texts = [str(verify_on(with_codes(change), x, "mor:two_way")) for change in (0, 1)]
    said = "case x, field code: 4 of 4 entries differ when the case is asked again"
    assert [said in text for text in texts] == [False, True]


def test_a_tenth_of_the_cases_is_asked_again(monkeypatch):
    """At least two, none of the largest, and the last first."""
    monkeypatch.setattr(changed_answers, "_MOST_TIMES", 0)
    cases = [Case(f"{k}", {}, {"x": np.zeros(4)}) for k in range(72)]
    answers = {case.name: {} for case in cases}

    def names(some):
        return [case.name for case in cases_to_repeat(some, answers)]

    assert names(cases) == ["63", "54", "45", "36", "27", "18", "9", "0"]
    assert [len(names(cases[:n])) for n in (0, 1, 2, 3, 20, 21)] == [0, 1, 2, 2, 2, 3]
    answers.pop("0")
    cases[1] = Case("1", {}, {"x": np.broadcast_to(np.uint8(0), (1 << 18) + 1)})
    assert names(cases[:4]) == ["3", "2"]


def test_small_cases_are_asked_again_and_again():
    """Up to a quarter of all numbers: a kernel may be wrong at one question in 200."""
    sizes = {"large": 8000, "middle": 900, "small": 300, "tiny": 1}
    cases = [Case(name, {}, {"x": np.zeros(size)}) for name, size in sizes.items()]
    asked = [case.name for case in cases_to_repeat(cases, {name: {} for name in sizes})]
    assert asked == ["small", "large", "tiny", "small", "middle"]
    cases.append(Case("largest", {}, {"x": np.broadcast_to(np.uint8(0), 1 << 20)}))
    asked = [case.name for case in cases_to_repeat(cases, {case.name: {} for case in cases})]
    assert Counter(asked) == {"tiny": 8, "small": 9, "middle": 8, "large": 9}


def test_a_rare_mistake_is_found():
    """At one question in 100, of a suite with fewer cases, whose first answers are all right."""
    calls = count(1)

    def function(operation, parameters, inputs):
        found = OPERATIONS[operation].engine(parameters, inputs)
        is_wrong = next(calls) == 100
        return {name: field ^ 1 if is_wrong else field for name, field in found.items()}

    suite = "mx_blocks"
    assert cases_of(suite) * 1.2 < 100
    found = verify(PythonFunction("kernel:run", function), suites_in(bundled_files(), [suite]))
    assert (found.verdict, found.results[0].differences) == ("mismatch", ())


@pytest.mark.tier("full")
def test_results_in_files_are_asked_once(module):
    (module / "results").mkdir()
    shutil.copy(bundled_files() / "decisions.safetensors", module / "results")
    assert "asked again" not in run(module, "dir:results", *DECISIONS).stdout
    with candidate_named(f"dir:{module / 'results'}") as candidate:
        found = verify(candidate, suites_in(bundled_files(), ["decisions"]))
    assert (found.verdict, found.results[0].repeats.cases) == ("match", 0)
