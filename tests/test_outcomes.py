"""Results in a condition: `assert result` passes for a match alone."""

import dataclasses
import importlib
import pkgutil

import numpy as np
import pytest
from safetensors.numpy import save_file

import mor_ref
import mor_ref.verify
from mor_ref.golden import bundled_files
from mor_ref.verify.all_inputs.verify import ChunkResult
from mor_ref.verify.candidates.candidate import CandidateError
from mor_ref.verify.checking.check import Check, SuiteCheck
from mor_ref.verify.checking.suite_checks import Finding
from mor_ref.verify.comparing.conformance import Conformance, Coverage
from mor_ref.verify.running.field_result import FieldResult
from mor_ref.verify.running.run import not_opened
from mor_ref.verify.running.suites import suites_in

X = {"x": np.random.default_rng(0).standard_normal((4, 64), dtype=np.float32)}


def right(*asked):
    found = mor_ref.quantize_mx(asked[-1]["x"].view(np.float32), "e4m3", scale_rule="rceil")
    return {"scale": found.scale, "code": found.codes}


def wrong(*asked):
    return right(*asked) | {"scale": np.zeros((4, 2), np.uint8)}


def misspelt(*asked):
    found = right(*asked)
    return {"scale": found["scale"], "cod": found["code"]}


def silent(*_):
    return None


def failing(*_):
    raise CandidateError("no such device")


@pytest.mark.parametrize(
    ("candidate", "verdict"),
    [
        (right, "match"),
        (wrong, "mismatch"),
        (misspelt, "incomplete"),
        (silent, "not run"),
        (failing, "failed"),
    ],
)
def test_a_report_is_true_for_a_match_alone(candidate, verdict):
    report = mor_ref.verify(candidate, inputs=X, recipe="mxfp8:rceil")
    assert report.verdict == verdict
    assert bool(report) is (verdict == "match")
    assert all(bool(result) is (result.verdict == "match") for result in report.results)
    assert all(bool(field) is field.matches for one in report.results for field in one.fields)


def test_a_report_on_a_part_of_the_tensors_is_false(tmp_path):
    """Also where all that was compared matches: a tensor has no answer, or is of no recipe."""
    one, two = np.ones((2, 32), np.float32), np.ones((4, 32), np.float32)

    def of_one(*asked):
        return right(*asked) if asked[-1]["x"].shape == one.shape else None

    some = mor_ref.verify(of_one, inputs={"one": one, "two": two}, recipe="mxfp8:rceil")
    assert (some.verdict, bool(some)) == ("match", False)
    save_file({"one": one, "integers": np.ones(3, np.int32)}, tmp_path / "x.safetensors")
    some = mor_ref.verify(of_one, inputs=tmp_path / "x.safetensors", recipe="mxfp8:rceil")
    assert (some.verdict, bool(some)) == ("match", False)
    assert mor_ref.verify(right, inputs={"one": one, "two": two}, recipe="mxfp8:rceil")


def test_a_candidate_that_is_not_opened_is_false():
    error = CandidateError("no such module", "run")
    assert not not_opened("absent", suites_in(bundled_files(), ["decisions"]), error)


def test_a_check_of_files_is_true_for_a_match_alone():
    found = Finding("it differs")
    fine, wrong, unusable = (
        SuiteCheck("decode"),
        SuiteCheck("decode", findings=(found,)),
        SuiteCheck("decode", is_usable=False),
    )
    assert [bool(one) for one in (fine, wrong, unusable)] == [True, False, False]
    assert Check("here", (fine,), ())
    assert not Check("here", (fine, wrong), ())
    assert not Check("here", (fine,), (found,))
    assert not Check("here", (fine,), (), is_usable=False)


def test_other_outcomes_are_false_where_anything_differs():
    assert ChunkResult(3, is_same=True)
    assert not ChunkResult(3, False, 1)
    assert FieldResult("code", (), 8, 0)
    assert not FieldResult("code", (), 8, 1)
    levels = ["bit-exact", "partial", "allowed", "open", "decisions", "not", "not run"]
    some = Coverage(*(1 for _ in dataclasses.fields(Coverage)))
    found = [bool(Conformance(level, some, some, 1)) for level in levels]
    assert found == [True, *[False] * 6]


def test_every_result_that_can_fail_has_a_truth_value():
    """Python takes any other object for true, so a new kind of result needs one as well."""
    for module in pkgutil.walk_packages(mor_ref.verify.__path__, "mor_ref.verify."):
        for kind in vars(importlib.import_module(module.name)).values():
            if isinstance(kind, type) and dataclasses.is_dataclass(kind):
                names = {*dir(kind), *kind.__dataclass_fields__}
                if names & {"verdict", "is_same"} or kind in (Conformance, FieldResult):
                    assert "__bool__" in names, kind
