"""Large tensors are diagnosed by parts that are cut out of them: files cannot be asked again."""

import numpy as np
import pytest
from safetensors.numpy import save_file

import mor_ref
from mor_ref.deviations import applied
from mor_ref.golden.inputs.own_tensors import cases_of
from mor_ref.mistakes.catalogue import CAUSES
from mor_ref.operations import OPERATIONS
from mor_ref.recipes import own_recipe
from mor_ref.verify import assert_bit_exact
from mor_ref.verify import own_tensors as own_module
from mor_ref.verify.asserting import fields as asserting
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.diagnosing.tensor_parts import parts_of
from mor_ref.verify.own_fields import fields_of_operation
from mor_ref.verify.own_inputs import from_arrays
from mor_ref.verify.own_tensors import LARGEST_SMALL, SUITE

RANDOM = np.random.default_rng(4)
SIZES = np.exp2(RANDOM.integers(-7, 7, (140, 1)))
X = (RANDOM.standard_normal((140, 136)) * SIZES).astype(np.float32)
OTHERS = ["nvfp4:te:1x16", "e4m3:gam:64x64", "e4m3:fp32:tensor", "mor:three_way:32x64"]


def answer_of(recipe, *names):
    """Return the operation, and the case of X with the fields that a kernel with deviations has."""
    asked = own_recipe(recipe)
    (case,) = cases_of(asked, from_arrays({"x": X}))
    operation = OPERATIONS[asked.asked.operation]
    kept = operation.engine(case.parameters, case.arrays)
    with applied(*(CAUSES[name] for name in names)):
        found = operation.exact(case.parameters, case.arrays)
    return operation.name, case, {name: found[name] for name in kept}


def written(tmp_path, recipe, *names):
    """Write the results of a kernel, and return the report on them."""
    _, _, found = answer_of(recipe, *names)
    save_file({f"x/{name}": a for name, a in found.items()}, tmp_path / f"{SUITE}.safetensors")
    return mor_ref.verify(f"dir:{tmp_path}", inputs={"x": X}, recipe=recipe)


def named(report):
    assert [one.suite for one in report.results] == [SUITE]
    (diagnosis,) = report.diagnosis.suites
    return [one.deviations for one in diagnosis.explanations if one.is_whole]


def test_files_of_large_tensors_are_complete_without_corners(tmp_path):
    assert X.size > LARGEST_SMALL
    report = written(tmp_path, "mxfp8:rceil")
    assert (report.verdict, report.is_complete, report.not_asked) == ("match", True, ())


@pytest.mark.tier("full")
def test_a_cause_is_named_in_files_of_large_tensors(tmp_path, monkeypatch):
    """Also if they are too large for a diagnosis as a whole: then of parts alone."""
    report = written(tmp_path, "mxfp8:rceil", "MXS-003/always")
    assert ("MXS-003/always",) in named(report)
    assert report.diagnosis.suites[0].mismatches == report.results[0].differing
    monkeypatch.setattr(own_module, "MOST_DIAGNOSED", 300)
    report = written(tmp_path, "mxfp8:rceil", "MXS-003/always")
    assert ("MXS-003/always",) in named(report)
    text = str(report)
    assert f"  {report.results[0].differing:,} mismatches are in tensors too large for a " in text
    assert "  in parts of the tensors, with " in text
    assert " mismatches are explained by `MXS-003/always` (rule" in text


@pytest.mark.tier("full")
def test_the_structure_of_scales_is_that_of_the_whole_field(tmp_path, monkeypatch):
    """Parts of them do not show that the swizzle is forgotten."""
    monkeypatch.setattr(own_module, "MOST_DIAGNOSED", 300)
    monkeypatch.setattr("mor_ref.verify.diagnosing.diagnosis.PAIRS_END", 0)
    scale = answer_of("mxfp8:rceil")[2]["scale"]
    padded = np.pad(scale, ((0, -len(scale) % 128), (0, -scale.shape[1] % 4))).ravel()
    save_file({"x/scale@swizzled_128x4": padded}, tmp_path / f"{SUITE}.safetensors")
    report = mor_ref.verify(f"dir:{tmp_path}", inputs={"x": X}, recipe="mxfp8:rceil")
    (diagnosis,) = report.diagnosis.suites
    assert diagnosis.is_displaced
    assert (
        "  scale: the swizzle is forgotten: the scales are row by row, with padding, in all "
        in (str(report))
    )


@pytest.mark.tier("full", one_in=2)
@pytest.mark.parametrize("recipe", [*OTHERS, "nvfp4:te_row"])
def test_a_cause_is_named_also_where_scales_depend_on_the_whole_tensor(tmp_path, recipe):
    """A part with the amax has the same scales, or the amax is given."""
    assert ("ENC-003/truncated",) in named(written(tmp_path, recipe, "ENC-003/truncated"))


@pytest.mark.tier("full")
@pytest.mark.parametrize(
    "recipe", [*OTHERS, "mxfp8:rceil", "nvfp4:te_row", "e5m2:e8m0:column", "mx9", "int4:1x32"]
)
def test_parts_have_the_expected_bits_of_the_whole(recipe):
    """And the wrong bits of the answer; every part has a mismatch."""
    operation, case, found = answer_of(recipe)
    wrong = {name: array.copy() for name, array in found.items()}
    field = "output" if operation == "mor" else "code"
    wrong[field][70, 70] ^= 1
    wrong[field][-1, -1] ^= 1
    whole = type(case)("x", case.parameters, case.arrays | found)
    fields = list(fields_of_operation(own_recipe(recipe).asked))
    evidence = Evidence(SUITE, operation, fields, [whole], {"x": wrong})
    parts = parts_of(evidence)
    counts = [sum(one.count for one in parts.comparisons[c.name]) for c in parts.cases]
    assert counts
    assert all(counts)
    for part in parts.cases:
        rows, columns = (slice(*map(int, ends.split(":"))) for ends in part.name[2:-1].split(","))
        assert np.array_equal(part.arrays[field], found[field][rows, columns])
        assert part.arrays["x"].size <= LARGEST_SMALL


@pytest.mark.tier("full")
def test_what_is_left_out_is_left_out_of_parts():
    """Bits that a deviation would have there do not speak against it."""
    recipe = "mxfp8:rceil"
    operation, case, found = answer_of(recipe)
    whole = type(case)("x", case.parameters, case.arrays | found)
    marks = np.zeros(found["code"].shape, np.bool_)
    marks[64:, :32] = True
    evidence = Evidence(
        SUITE,
        operation,
        list(fields_of_operation(own_recipe(recipe).asked)),
        [whole],
        {"x": found | {"code": found["code"] ^ 1}},
        entries_left_out={"x": {"code": marks}},
    )
    parts = parts_of(evidence)
    compared = [parts.compared(one.name)["code"] for one in parts.cases]
    assert any(one.left_out.any() for one in compared)
    assert all(np.array_equal(one.left_out, ~one.differs) for one in compared)


@pytest.mark.tier("full")
def test_no_part_stands_for_a_decision_on_the_whole_tensor():
    operation, case, found = answer_of("mor:tensor")
    whole = type(case)("x", case.parameters, case.arrays | found)
    fields = list(fields_of_operation(own_recipe("mor:tensor").asked))
    wrong = found | {"choice": found["choice"] ^ np.uint8(1)}
    evidence = Evidence(SUITE, operation, fields, [whole], {"x": wrong})
    assert parts_of(evidence) is None


@pytest.mark.tier("full")
def test_an_assertion_names_the_cause_of_large_tensors(monkeypatch):
    """Of larger ones that of parts; if there is no part, it says so."""
    right, wrong = (mor_ref.quantize_mx(X, "e4m3", scale_rule=rule) for rule in ("rceil", "floor"))
    cause = "are explained by `MXS-003/always` (rule"
    assert cause in failure(wrong, right)
    monkeypatch.setattr(asserting, "_LARGEST", 1 << 10)
    text = failure(wrong, right)
    assert "  the tensor is too large for a diagnosis; that of parts, expected[" in text
    assert cause in text
    monkeypatch.setattr(asserting, "parts_of", lambda _: None)
    assert "  no cause is looked for: the tensor is large, and no part " in failure(wrong, right)


def failure(actual, expected):
    with pytest.raises(AssertionError) as error:
        assert_bit_exact(actual, expected, x=X)
    return str(error.value)
