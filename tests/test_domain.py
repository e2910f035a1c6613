"""Inputs that a candidate does not promise: left out, and counted."""

import sys

import numpy as np
import pytest
from verifying import undiagnosed

import mor_ref
from mor_ref import golden, layouts
from mor_ref.cli import main
from mor_ref.golden import bundled_files
from mor_ref.golden.model.suite import Case
from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import numbers_of
from mor_ref.verify import quantize_by_rows
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.comparing.coverage import SuiteAnswers
from mor_ref.verify.comparing.domain import as_domain
from mor_ref.verify.diagnosing.sample import Pair, Sample
from mor_ref.verify.diagnosing.structure import structures_of
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

__all__ = ["undiagnosed"]
ROWS, ORDERED = "quantize_steps", "affine_groups"
OUTSIDE = {
    "finite": lambda x, _: not np.isfinite(x),
    "normal": lambda x, least: not np.isfinite(x) or 0 < abs(x) < least,
    "nonnegative": lambda x, _: bool(np.signbit(x)),
}


def wrong_outside(domain):
    """Return a candidate whose answers are wrong in rows, or cases, outside a domain."""

    def function(operation, parameters, inputs):
        found = dict(OPERATIONS[operation].engine(parameters, inputs))
        marks = [of_rows(bits, parameters, domain) for bits in inputs.values()]
        off = np.logical_or.reduce(marks)
        if not OPERATIONS[operation].is_by_row:
            off[:] = off.any()
        found["code"] = found["code"].copy()
        found["code"][off] ^= 1
        return {"code": found["code"]}

    return PythonFunction("wrong outside", function)


def of_rows(bits, parameters, domain):
    """Return which rows have a number outside, by the exact model's reading of the bits."""
    source = parameters.get("source", "f32")
    least = 2.0**-14 if source == "f16" else 2.0**-126
    numbers = numbers_of(bits, source)
    marks = np.array([OUTSIDE[domain](x, least) for x in numbers]).reshape(bits.shape)
    return marks.reshape(len(marks), -1).any(axis=1)


@pytest.mark.tier("full", but=["[quantize_steps-normal]"])
@pytest.mark.parametrize("domain", OUTSIDE)
@pytest.mark.parametrize("suite", [ROWS, ORDERED])
def test_a_candidate_that_is_wrong_outside_matches(suite, domain):
    found = verify(wrong_outside(domain), suites_in(bundled_files(), [suite]), domain=domain)
    assert found.verdict == "match"
    cases, left = golden.load(suite), 0
    for case in cases:
        names = OPERATIONS[{ROWS: "quantize_element", ORDERED: "affine_groups"}[suite]].inputs
        marks = [of_rows(case.arrays[name], case.parameters, domain) for name in names]
        off = np.logical_or.reduce(marks)
        left += int(off.sum()) if suite == ROWS else int(off.any())
    assert left > 0
    noun = "row" if suite == ROWS else "case"
    said = f"{left:,} {noun}s outside the domain {domain} left out"
    (result,) = found.results
    assert result.left_out == said
    assert found.conformance.level == "partial"
    assert str(found.conformance).endswith(f"; {said}")
    if suite == ORDERED:
        assert result.cases == len(cases) - left


@pytest.mark.usefixtures("undiagnosed")
def test_a_mistake_inside_is_still_found():
    """The candidate is wrong where a number is negative: finite numbers are compared."""
    suites = suites_in(bundled_files(), [ROWS])
    assert verify(wrong_outside("nonnegative"), suites, domain="finite").verdict == "mismatch"


def test_everything_is_compared_at_first():
    engine = PythonFunction("engine", lambda operation, *rest: OPERATIONS[operation].engine(*rest))
    found = verify(engine, suites_in(bundled_files(), [ROWS]))
    assert found.results[0].left_out == ""
    assert found.conformance.level == "bit-exact"


def test_the_command_says_how_many(monkeypatch, capsys):
    command = ["mor-ref", "verify", "numba", "--suite", ROWS, "--domain", "finite"]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert "  1,211 rows outside the domain finite left out\n" in capsys.readouterr().out


def test_other_words_are_refused():
    with pytest.raises(ValueError, match="domain is 'positive', which is not known; "):
        as_domain("positive")


BLOCKS = {
    "mxfp8": (1, 32),
    "nvfp4:te_row": (1, 16),
    "e4m3:gam:4x16": (4, 16),
    "mor:three_way:4x16": (4, 16),
}


def a_tensor(domain):
    """Return numbers inside a domain, but for two in blocks of their own."""
    x = np.abs(np.random.default_rng(3).standard_normal((24, 96), dtype=np.float32)) + 0.5
    for place in ((5, 20), (17, 95)):
        x[place] = {"finite": np.nan, "normal": 1e-40, "nonnegative": -0.25}[domain]
    return x


@pytest.mark.tier("full", but_one_in=6)
@pytest.mark.usefixtures("undiagnosed")
@pytest.mark.parametrize("domain", OUTSIDE)
@pytest.mark.parametrize("recipe", BLOCKS)
def test_of_a_tensor_the_blocks_are_left_out(recipe, domain):
    """All that follows from another block is compared, and a mistake there has its name."""
    x, (high, wide) = a_tensor(domain), BLOCKS[recipe]
    marks = np.zeros(x.shape, bool)
    for i, j in ((5, 20), (17, 95)):
        marks[i // high * high :, j // wide * wide :][:high, :wide] = True

    def wrong_there(operation, parameters, inputs):
        found = dict(OPERATIONS[operation].engine(parameters, inputs))
        name = "output" if "mor" in recipe else "code"
        found[name] = found[name] ^ marks.astype(found[name].dtype)
        return found

    found = mor_ref.verify(wrong_there, inputs={"x": x}, recipe=recipe, domain=domain)
    assert found.verdict == "match"
    said = f"{marks.sum()} numbers left out: outside the domain {domain}, or in a block, unit or"
    assert found.results[0].left_out.startswith(said)
    name = "output" if "mor" in recipe else "code"
    (compared,) = (one.compared for one in found.results[0].fields if one.name == name)
    assert compared == x.size - marks.sum()
    assert mor_ref.verify(wrong_there, inputs={"x": x}, recipe=recipe).verdict == "mismatch"


@pytest.mark.tier("full")
def test_a_mistake_in_the_rest_of_a_tensor_has_its_name():
    """The candidate is wrong in another way where a number is not finite."""
    x = a_tensor("finite")
    nans = np.repeat(np.isnan(x).reshape(24, 3, 32).any(axis=2), 32, axis=1)

    def as_ceil(operation, parameters, inputs):
        found = OPERATIONS[operation].engine({**parameters, "scale_rule": "ceil"}, inputs)
        return {**found, "code": np.where(nans, np.uint8(3), found["code"])}

    found = mor_ref.verify(as_ceil, inputs={"x": x}, recipe="mxfp8", domain="finite")
    (diagnosis,) = found.diagnosis.suites
    # No amax is a power of two: an exponent that is always one more has the same bits.
    whole = [one.deviations for one in diagnosis.explanations if one.is_whole]
    assert ("MXS-004/always",) in whole


def of_scales(given, x):
    """Return scales next to the expected ones; those of blocks with a NaN are left out."""
    parameters = {"format": "e4m3", "scale_rule": "floor", "block": 32, "source": "f32"}
    expected = np.full((len(x), x.shape[1] // 32), 127, np.uint8)
    expected += np.arange(expected.size, dtype=np.uint8).reshape(expected.shape) % 97
    left_out = np.isnan(x).reshape(*expected.shape, 32).any(axis=2)
    found = np.where(left_out, expected, given(expected))
    pair = Pair(expected, found, found != expected, left_out)
    question = Case("a", parameters, {"x": x.view(np.uint32)})
    return Sample("mx", question, {"scale": pair})


def test_entries_left_out_do_not_match():
    """They would change as well, or have what all that differ lack: neither is evidence."""
    x = np.ones((24, 256), np.float32)
    x[::3, 64:128] = np.nan
    transposed = of_scales(lambda scale: scale.T.reshape(scale.shape), x)
    (structure,) = structures_of([transposed])
    assert "transposed" in structure.words
    assert (structure.kept, structure.condition) == (0, None)
    swapped = np.arange(24)
    swapped[[3, 4]] = 4, 3
    (structure,) = structures_of([of_scales(lambda scale: scale[swapped], x)])
    assert structure.words == "rows 3 and 4 are swapped"
    assert (structure.explained, structure.kept) == (14, 0)
    random = np.random.default_rng(0).integers(1, 100, (24, 8), np.uint8)
    assert structures_of([of_scales(lambda scale: scale ^ random, x)]) == []


@pytest.mark.usefixtures("undiagnosed")
@pytest.mark.parametrize("recipe", ["nvfp4", "e4m3:gam:4x16"])
def test_an_amax_that_a_nan_spoils_leaves_out_the_tensor(recipe):
    """So it does if the candidate says so by its scale of the tensor, and not else."""
    x = a_tensor("finite")

    def spoiled(operation, parameters, inputs):
        found = OPERATIONS[operation].engine(parameters, inputs)
        return {name: array ^ array.dtype.type(1) for name, array in found.items()}

    found = mor_ref.verify(spoiled, inputs={"x": x}, recipe=recipe, domain="finite")
    assert found.verdict == "not run"
    assert "own: not run, all of it is left out" in str(found)
    assert found.conformance.level == "not run"
    x[~np.isfinite(x)] = 1
    found = mor_ref.verify(spoiled, inputs={"x": x}, recipe=recipe, domain="finite")
    assert found.verdict == "mismatch"


FEW = {
    "nvfp4": ["code"],
    "nvfp4:te_row": ["block_scale"],
    "nvfp4:torchao": ["block_scale@swizzled_128x4"],
    "e4m3:gam:4x16": ["scale", "code"],
    "mor:three_way:4x16": ["output", "choice"],
}


@pytest.mark.tier("full", but=["[nvfp4:te_row]"])
@pytest.mark.usefixtures("undiagnosed")
@pytest.mark.parametrize("recipe", FEW)
def test_an_amax_outside_may_show_in_any_field(recipe):
    """The candidate ignores negative numbers, and returns no scale of the tensor."""
    x = a_tensor("nonnegative")
    x[5, 20] = -300

    def of_positive(operation, parameters, inputs):
        y = np.maximum(inputs["x"].view(np.float32), 0)
        found = OPERATIONS[operation].engine(parameters, {"x": y.view(np.uint32)})
        plain = {name: found[name.split("@")[0]].copy() for name in FEW[recipe]}
        for array in plain.values():
            array[wrong] ^= 1
        if "nvfp4:torchao" in recipe:
            (name,) = plain
            plain[name] = layouts.swizzled_128x4(plain[name])
        return plain

    asked = {"inputs": {"x": x}, "recipe": recipe, "domain": "nonnegative"}
    wrong = slice(0, 0)
    is_of_rows = "row" in recipe
    assert mor_ref.verify(of_positive, **asked).verdict == ("match" if is_of_rows else "not run")
    wrong = slice(8, 9)
    assert mor_ref.verify(of_positive, **asked).verdict == ("mismatch" if is_of_rows else "not run")
    x[5, 20] = -0.25  # the amax is inside
    assert mor_ref.verify(of_positive, **asked).verdict == "mismatch"


@pytest.mark.usefixtures("undiagnosed")
@pytest.mark.parametrize("recipe", ["nvfp4", "e4m3:gam:4x16"])
def test_so_it_may_where_a_tensor_is_large(recipe, monkeypatch):
    """It is not compared in strips: their rows do not show where the amax is."""
    monkeypatch.setattr(quantize_by_rows, "AT_ONCE", 384)
    x = a_tensor("nonnegative")
    x[5, 20] = -300

    def of_positive(operation, parameters, inputs):
        y = np.maximum(inputs["x"].view(np.float32), 0)
        found = OPERATIONS[operation].engine(parameters, {"x": y.view(np.uint32)})
        return {"code": found["code"]}

    asked = {"inputs": {"x": x}, "recipe": recipe}
    assert mor_ref.verify(of_positive, **asked, domain="nonnegative").verdict == "not run"
    assert mor_ref.verify(of_positive, **asked, domain="finite").verdict == "mismatch"


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.usefixtures("undiagnosed")
@pytest.mark.parametrize("recipe", ["e4m3:fp32:4x16", "nvfp4:amax=300", "mor:three_way:4x16:fp32"])
def test_no_amax_of_a_tensor_is_outside_if_nothing_follows_from_it(recipe):
    x = a_tensor("nonnegative")
    x[5, 20] = -300

    def wrong(operation, parameters, inputs):
        found = OPERATIONS[operation].engine(parameters, inputs)
        name = "output" if operation == "mor" else "code"
        return {name: found[name] ^ 1}

    found = mor_ref.verify(wrong, inputs={"x": x}, recipe=recipe, domain="nonnegative")
    assert found.verdict == "mismatch"


@pytest.mark.usefixtures("undiagnosed")
@pytest.mark.parametrize("at_once", [1 << 22, 256], ids=["whole", "in strips"])
def test_a_case_does_not_count_what_is_left_out(at_once, monkeypatch):
    monkeypatch.setattr(quantize_by_rows, "AT_ONCE", at_once)  # numbers of a strip
    x = np.ones((24, 36), np.float32)
    x[[3, -5], 7] = np.nan

    def wrong(operation, parameters, inputs):
        found = OPERATIONS[operation].engine(parameters, inputs)
        code = found["code"].copy()
        code[0, 0] ^= 1
        scale = layouts.swizzled_128x4(found["scale"])
        return {"code": code} if at_once < x.size else {"code": code, "scale@swizzled_128x4": scale}

    found = mor_ref.verify(wrong, inputs={"x": x}, recipe="mxfp8", domain="finite").results[0]
    (difference,) = found.differences
    assert (difference.count, difference.of) == (1, x.size - 64)
    assert f"field code: 1 of {x.size - 64} differ" in str(difference)


@pytest.mark.usefixtures("undiagnosed")
def test_a_field_that_is_left_out_counts_for_nothing():
    """All of one tensor is outside."""
    inputs = {"a": -np.ones((4, 32), np.float32), "b": np.ones((4, 64), np.float32)}

    def asked(*names):
        some = {name: inputs[name] for name in names}
        return str(mor_ref.verify("numba", inputs=some, recipe="mxfp8", domain="nonnegative"))

    assert "\nconformance: nothing was compared; 128 numbers left out" in asked("a")
    both = "\nconformance: bit-exact in the given part: 3 fields, 1 of 2 cases, 0 of "
    assert both in asked("a", "b")


@pytest.mark.usefixtures("undiagnosed")
def test_rules_count_only_if_no_case_is_left_out():
    found = verify(
        wrong_outside("finite"), suites_in(bundled_files(), [ORDERED]), domain="finite"
    ).conformance
    assert 0 == found.given.rules < found.asked.rules


def test_a_case_of_which_a_strip_is_left_out_counts():
    some = frozenset([("a", "code")])
    parts = [
        SuiteAnswers("own", frozenset({"code"}), frozenset("a"), frozenset(), *pair)
        for pair in ((frozenset(), some), (some, frozenset()))
    ]
    assert (parts[0].cases, parts[0].counted_fields, parts[0].lacking) == (0, set(), {"code"})
    whole = parts[0] + parts[1]
    assert (whole.cases, whole.counted_fields, whole.lacking) == (1, {"code"}, set())
