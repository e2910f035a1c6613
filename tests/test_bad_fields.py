"""One bad field ends nothing: the other fields, cases and suites are still compared."""

import numpy as np
import pytest
from verifying import entries_of

from mor_ref import golden
from mor_ref.golden import bundled_files
from mor_ref.operations import OPERATIONS
from mor_ref.verify.candidates.by_name import candidate_named
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.reporting import text as report
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

SUITES = ["mx_blocks", "decode"]
CASES = [case.name for case in golden.load("mx_blocks")]
OF_E4M3 = [case.name for case in golden.load("mx_blocks") if case.parameters["format"] == "e4m3"]


def renamed(name):
    """Return a change of an answer with the scale by another name."""

    def change(found, _):
        found[name] = found.pop("scale")

    return change


def replaced(function):
    """Return a change of an answer with another scale."""

    def change(found, _):
        found["scale"] = function(found["scale"])

    return change


def raising(*_):
    raise ArithmeticError


def not_a_dict(*_):
    return [1]


def changing_the_input(found, inputs):
    found["x"] = inputs["x"] ^ np.uint32(1)


def naming_nothing(found, _):
    found["foo@bar"] = found["y"]


NOT_COMPARED = {
    "wrong shape": (replaced(lambda scale: scale[1:]), "has shape"),
    "no entries": (replaced(lambda scale: scale[:0]), "has shape"),
    "wrong dtype": (replaced(lambda scale: scale.astype(float)), "has dtype float64"),
    "negative": (replaced(lambda scale: -scale.astype(int) - 1), "holds -"),
    "objects": (replaced(lambda _: [None, "a", [1]]), "is not an array"),
    "nothing": (replaced(lambda _: None), "is missing"),
    "wrong name": (renamed("scales"), "is missing"),
    "wrong view": (renamed("scale@foo"), "has no view 'foo'"),
    "view of a view": (renamed("scale@foo@bar"), "has no view 'foo'"),
    "nothing in a view": (renamed("scale@"), "has no view ''"),
    "another view": (renamed("scale@swizzled_128x4"), "has no view 'swizzled_128x4'"),
}
FAILED = {
    "exception": (raising, "raised ArithmeticError"),
    "not a dict": (not_a_dict, "returned a list"),
    "changed input": (changing_the_input, "changes the input 'x'"),
}


def verified(change):
    """Return the report on a candidate that is right, but for a change in blocks of e4m3."""

    def changed(operation, parameters, inputs):
        found = dict(OPERATIONS[operation].engine(parameters, inputs))
        if operation == "mx_block" and parameters["format"] == "e4m3":
            return change(found, inputs) or found
        return found

    found = verify(PythonFunction("mine", changed), suites_in(bundled_files(), SUITES))
    assert all(line.isprintable() for line in report.lines(found))
    other = found.results[1]
    assert (other.verdict, other.compared) == ("match", entries_of("decode", "value"))
    return found.results[0]


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize("kind", NOT_COMPARED)
def test_a_field_that_cannot_be_compared(kind):
    change, said = NOT_COMPARED[kind]
    result = verified(change)
    assert result.verdict == "mismatch"
    assert {d.case for d in result.differences} == {*OF_E4M3}
    assert all(d.suite_field == "scale" and said in d.problem for d in result.differences)
    fields = {field.name: field for field in result.fields}
    assert fields["code"].compared == entries_of("mx_blocks", "code")
    assert fields["code"].matches
    left = [case for case in golden.load("mx_blocks") if case.name not in OF_E4M3]
    assert fields["scale"].compared == sum(case.arrays["scale"].size for case in left)
    assert not fields["scale"].differing


@pytest.mark.parametrize("kind", FAILED)
def test_a_case_that_failed(kind):
    change, said = FAILED[kind]
    result = verified(change)
    assert result.verdict == "failed"
    assert [failure.case for failure in result.failures] == OF_E4M3
    assert all(said in failure.message for failure in result.failures)
    assert result.answered == len(CASES) - len(OF_E4M3)
    assert all(field.matches for field in result.fields)


def test_a_field_that_nobody_knows():
    """It is named, and all others are compared."""
    result = verified(naming_nothing)
    assert (result.verdict, result.unknown.names) == ("match", ("foo@bar",))
    assert not result.is_complete


@pytest.mark.tier("full")
def test_a_field_of_the_operation_that_a_suite_leaves_out():
    """It is not unknown: dot has the exponent and the cut sum of its chunks in dot_chunks alone."""
    found = verify(
        candidate_named("numba"), suites_in(bundled_files(), ["dot"]), must_be_complete=True
    )
    assert (found.verdict, found.results[0].unknown.names) == ("match", ())


def test_a_field_of_a_dtype_without_bits(tmp_path):
    """In a file of results: those next to it are compared."""
    header = b'{"e2m1/value":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]},'
    header += b'"e4m3/value":{"dtype":"U32","shape":[256],"data_offsets":[2,1026]}}'
    right = next(case for case in golden.load("decode") if case.name == "e4m3").arrays["value"]
    content = len(header).to_bytes(8, "little") + header + b"\0\0" + right.astype("<u4").tobytes()
    (tmp_path / "decode.safetensors").write_bytes(content)
    found = verify(candidate_named(f"dir:{tmp_path}"), suites_in(bundled_files(), ["decode"]))
    (difference,) = found.results[0].differences
    assert difference.case == "e2m1"
    assert "has dtype F8_E4M3; give bit patterns as unsigned integers" in difference.problem
    assert found.results[0].compared == 256


@pytest.mark.tier("full", but=["[nvfp4_te]"])
@pytest.mark.parametrize("suite", ["nvfp4_te", "nvfp4_blocks"])
def test_a_global_scale_without_axes(suite):
    """A shape of () stands for (1,)."""

    def scalars(operation, parameters, inputs):
        found = OPERATIONS[operation].engine(parameters, inputs)
        return {name: a.reshape(()) if a.shape == (1,) else a for name, a in found.items()}

    found = verify(PythonFunction("scalars", scalars), suites_in(bundled_files(), [suite]))
    assert found.verdict == "match"
