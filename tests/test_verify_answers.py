"""Verifying candidates that answer in part."""

import json
from xml.etree import ElementTree as ET

import pytest
from safetensors.numpy import save_file
from verifying import (
    DECIDING,
    DECISIONS,
    MANIFEST,
    QUANTIZING,
    cases_of,
    entries_of,
    failure_of,
    module,
    on,
    run,
)

from mor_ref import golden
from mor_ref.counts_in_words import listed
from mor_ref.golden import bundled_files
from mor_ref.operations import OPERATIONS
from mor_ref.verify.candidates.by_name import candidate_named
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.reporting import junit, report_files
from mor_ref.verify.reporting import text as report
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

__all__ = ["module"]  # a fixture

MX = cases_of("mx")


def test_an_operation_without_an_answer_is_not_run():
    found = verify(
        PythonFunction("none", lambda *_: None), suites_in(bundled_files(), ["decisions"])
    )
    assert found.verdict == "not run"
    assert "not run, the candidate has no answer" in next(report.lines(found))


@pytest.mark.parametrize(
    ("answered", "said"),
    [
        ("decide", "2 suites not run, %s: decode, mx"),
        ("", "3 suites not run, %s: decisions, decode, mx"),
    ],
)
def test_one_line_names_all_suites_without_an_answer(answered, said):
    """So the suites that differ are not lost among the others."""

    def function(operation, parameters, inputs):
        found = OPERATIONS[operation].exact(parameters, inputs) if operation == answered else None
        return found and dict(found)

    suites = suites_in(bundled_files(), ["decisions", "decode", "mx"])
    lines = list(report.lines(verify(PythonFunction("some", function), suites)))
    silent = [line for line in lines if "no answer" in line]
    assert silent == [said % "the candidate has no answer"]


def test_candidates_see_no_expected_values():
    seen = []

    def function(*arguments):
        seen.append(set(arguments[2]))
        arguments[2]["sum"] = None

    verify(PythonFunction("curious", function), suites_in(bundled_files(), ["decisions"]))
    given = {"sum", "nonzero", "nonfinite", "limit", "yardstick_sum", "amax", "amin"}
    assert all(names == given for names in seen)


@pytest.mark.tier("full")
def test_a_directory_of_results(tmp_path):
    results = {}
    for case in golden.load("decisions"):
        results[f"{case.name}/accepted"] = case.arrays["accepted"].copy()
    save_file(results, tmp_path / "decisions.safetensors")
    folder = candidate_named(f"dir:{tmp_path}")
    assert verify(folder, suites_in(bundled_files(), ["decisions", "mx"])).verdict == "match"
    results["not_worse_than/accepted"][2] ^= 1
    save_file(results, tmp_path / "decisions.safetensors")
    found = verify(candidate_named(f"dir:{tmp_path}"), suites_in(bundled_files(), ["decisions"]))
    assert [str(d.case) for d in found.results[0].differences] == ["not_worse_than"]
    (tmp_path / "mx.safetensors").write_bytes(b"nothing")
    said = failure_of(candidate_named(f"dir:{tmp_path}"), "mx")
    assert "mx.safetensors is not a safetensors file" in said


def in_part(found):
    return {"code": found["code"]}


def misspelt(found):
    return found | {"cod": found["code"]}


def of_some_cases(found):
    return found if len(found["y"]) > 3000 else None


def without_a_field_in_some(found):
    return found if len(found["y"]) > 3000 else in_part(found)


@pytest.mark.tier("full", but_one_in=6)
@pytest.mark.parametrize(
    ("change", "plain", "strict"),
    [
        (dict, "match", "match"),
        (in_part, "match", "incomplete"),
        (misspelt, "match", "incomplete"),
        (of_some_cases, "match", "incomplete"),
        (without_a_field_in_some, "mismatch", "mismatch"),
        (lambda _: None, "not run", "incomplete"),
        (lambda found: found | {"x": None}, "match", "match"),
    ],
)
def test_answers_in_part(change, plain, strict):
    """They are incomplete in any case; whether that counts is asked for."""
    for must_be_complete, verdict in ((False, plain), (True, strict)):
        found = on(change, "quantize_steps", "quantize_element", must_be_complete=must_be_complete)
        is_complete = change is dict or strict == "match"
        assert (found.verdict, found.is_complete) == (verdict, is_complete)
        assert found.results[0].verdict == verdict
        record = json.loads(report_files.as_json(found))
        assert (record["complete"], record["results"][0]["complete"]) == (is_complete,) * 2


def test_an_incomplete_suite_is_a_failing_test():
    """And is skipped if nobody asks for all answers."""
    for must_be_complete, kind in ((True, "failure"), (False, "skipped")):
        nothing = PythonFunction("none", lambda *_: None)
        suites = suites_in(bundled_files(), ["decisions"])
        found = verify(nothing, suites, must_be_complete=must_be_complete)
        root = ET.fromstring(junit.as_junit(found))[0]  # noqa: S314  # made a line before
        (suite,) = [one for one in root.findall("testcase") if one.get("name") == "decisions"]
        assert [one.tag for one in suite] == [kind]


@pytest.mark.tier("full")
def test_complete_on_the_command_line(module):
    """A suite that is incomplete is a failure, also next to one that matches."""
    suites = (*DECISIONS, "--suite", "mx")
    for kind in ("json", "xml", "html"):
        done = run(module, "candidate:right", *suites, "--complete", "--report", f"r.{kind}")
        assert done.returncode == 1
    cases = cases_of("decisions")
    verdict = "candidate:right: incomplete (1 match, 0 mismatch, 0 not run, 1 incomplete)"
    assert done.stdout.splitlines() == [
        verdict,
        f"decisions: match, {entries_of('decisions', 'accepted'):,} entries in {cases} cases",
        "mx: incomplete, the candidate has no answer",
        f"asked again: 3 of {cases} cases, 4 times in all; the same answers",
        (
            f"conformance: bit-exact in the given part: 1 of 5 fields, {cases} of {cases + MX} "
            f"cases, {len(DECIDING)} of {len(DECIDING | QUANTIZING)} rules in full, 1 of 2 suites "
            f"(of {len(MANIFEST)}); the rest was not shown"
        ),
        verdict,
    ]
    record = json.loads((module / "r.json").read_text())
    assert (record["verdict"], record["complete"]) == ("incomplete", False)
    assert [entry["complete"] for entry in record["results"]] == [True, False]
    root = ET.parse(module / "r.xml").getroot()[0]  # noqa: S314  # written a line before
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("2", "1", "0")
    assert root.find("testcase/failure").get("message") == "the answers are incomplete"
    page = (module / "r.html").read_text(encoding="utf-8")
    assert '<span class="badge incomplete">✗ incomplete</span>' in page
    done = run(module, "candidate:right", *DECISIONS, *DECISIONS, "--complete")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].endswith("match (1 match, 0 mismatch, 0 not run)")


def test_ten_names_are_listed_and_the_others_counted():
    assert listed("abcdefghij") == "a, b, c, d, e, f, g, h, i, j"
    assert listed("abcdefghijkl") == "a, b, c, d, e, f, g, h, i, j and 2 more"


def test_cases_that_were_not_answered_are_named():
    """Where they are asked for: the first of them, and how many more there are."""

    def one_format(operation, parameters, inputs):
        is_mine = parameters["format"] == "e4m3"
        return OPERATIONS[operation].engine(parameters, inputs) if is_mine else None

    candidate = PythonFunction("one format", one_format)
    names = [case.name for case in golden.load("encode")]
    mine = [name for name in names if not name.startswith("e4m3.")]
    found = verify(candidate, suites_in(bundled_files(), ["encode"]), must_be_complete=True)
    left = f"  not answered: {', '.join(mine[:10])} and {len(mine) - 10} more"
    assert list(report.lines(found))[1] == left
    assert found.results[0].not_answered == tuple(mine)
    found = verify(candidate, suites_in(bundled_files(), ["encode"]))
    assert "not answered" not in "\n".join(report.lines(found))


def test_fields_that_are_not_given_are_named():
    """CON-002."""
    found = on(
        lambda f: {"code": f["code"], "cod": f["code"]}, "quantize_steps", "quantize_element"
    )
    assert found.verdict == "match"
    text = "\n".join(report.lines(found))
    assert "  not given: xs, y\n  not fields of this suite: cod; the nearest to cod is code" in text
    nothing = on(lambda f: {"cod": f["code"]}, "quantize_steps", "quantize_element")
    assert nothing.verdict == "incomplete"
    assert "  not fields of this suite: cod; the nearest" in "\n".join(report.lines(nothing))


@pytest.mark.parametrize("misspelt", ["scales", "scale_inv", "Scale"])
def test_a_misspelt_field_is_not_a_match(misspelt):
    """CON-002."""

    def answer(found):
        return {"code": found["code"], misspelt: found["scale"]}

    found = on(answer, "mx_blocks", "mx_block")
    assert found.verdict == found.results[0].verdict == "incomplete"
    text = "\n".join(report.lines(found))
    assert f"not fields of this suite: {misspelt}; the nearest to {misspelt} is scale" in text
    unlike = on(lambda f: {"code": f["code"], "mine": f["scale"]}, "mx_blocks", "mx_block")
    assert unlike.verdict == "match"


def test_a_misspelt_field_alone_is_not_left_out():
    """Next to another suite that matches: nothing of this one was compared."""

    def function(operation, parameters, inputs):
        found = OPERATIONS[operation].engine(parameters, inputs)
        return {"scales": found["scale"]} if operation == "mx_block" else found

    suites = suites_in(bundled_files(), ["decode", "mx_blocks"])
    found = verify(PythonFunction("misspelt", function), suites)
    assert [result.verdict for result in found.results] == ["match", "incomplete"]
    assert found.verdict == "incomplete"


def test_a_field_that_some_answers_lack_is_missing():
    def some(found):
        return found if len(found["y"]) > 3000 else {"code": found["code"]}

    result = on(some, "quantize_steps", "quantize_element").results[0]
    assert {d.problem for d in result.differences} == {"is missing"}
    assert {d.field for d in result.differences} == {"xs", "y"}
