"""Kernels that take the amax of a part of a tensor, of a row or of a block for that of all."""

import re

import ml_dtypes
import numpy as np
import pytest

import mor_ref
from mor_ref.recipes import own_recipe
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.diagnosing.amaxes_of_parts import named, parts_of_blocks
from mor_ref.verify.diagnosing.diagnosis import diagnose
from mor_ref.verify.diagnosing.sample import samples_of
from mor_ref.verify.diagnosing.structure import structures_of
from mor_ref.verify.own_fields import fields_of_operation
from mor_ref.verify.own_inputs import from_arrays
from mor_ref.verify.own_tensors import own_tensors
from mor_ref.verify.reporting.structure_text import structure_lines
from mor_ref.verify.reporting.text import diagnosis_lines


def tensors(*shapes):
    """Return tensors whose largest numbers are anywhere."""
    random = np.random.default_rng(3)
    return {
        f"t{k}": (random.standard_normal(shape) * np.exp(random.standard_normal(shape))).astype("f")
        for k, shape in enumerate(shapes)
    }


FEW = tensors((24, 150), (40, 103), (9, 95))
FEW["t1"] *= 4


def words(array):
    return np.ascontiguousarray(array, np.float32).view(np.uint32)


def e4m3(x, amax):
    """Return the fields of a kernel of FP8 that divides 448 by an amax."""
    amax = np.asarray(amax, np.float32).reshape(-1, 1)
    scale = np.float32(448) / amax
    code = np.clip(x * scale, -448, 448).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
    return {"amax": words(amax), "scale": words(scale), "code": code}


def nvfp4(x, amax):
    found = mor_ref.quantize_nvfp4(x, amax=float(amax))
    scale = words(found.global_encode_scale).reshape(1)
    return {
        "global_encode_scale": scale,
        "block_scale": found.block_scale,
        "code": found.codes,
    }


def evidence_of(recipe, kernel, given):
    asked, own = own_recipe(recipe).asked, own_tensors(own_recipe(recipe), from_arrays(given))
    cases = [case for _, some in own.parts() for case in some]
    answers = {case.name: kernel(case.arrays["x"].view(np.float32)) for case in cases}
    fields = list(fields_of_operation(asked))
    return Evidence("own", asked.operation, fields, cases, answers)


def said_of(recipe, kernel, given=FEW):
    """Return the lines on a kernel, a function of a tensor."""
    evidence = evidence_of(recipe, kernel, given)
    return "\n".join(structure_lines(structures_of(list(samples_of(evidence)))))


PARTS = {
    "first 64 numbers": lambda x: x.ravel()[:64],
    "last 512 numbers": lambda x: x.ravel()[-512:],
    "first 64 columns": lambda x: x[:, :64],
    "last 32 columns": lambda x: x[:, -32:],
    "first row": lambda x: x[:1],
    "first half of the rows": lambda x: x[: len(x) // 2],
}


@pytest.mark.tier("full", but=["[e4m3:fp32:tensor-e4m3-first 64 columns]"])
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(("recipe", "made"), [("e4m3:fp32:tensor", e4m3), ("nvfp4:te:1x16", nvfp4)])
def test_a_tensor_with_the_amax_of_a_part_is_named(recipe, made, part):
    """SCL-001, NVF-002: a thread, a warp or a tile has seen the part alone."""
    text = said_of(recipe, lambda x: made(x, np.abs(PARTS[part](x)).max()))
    first, *others = text.splitlines()
    assert re.match(r"(amax and scale|global_encode_scale, .*):", first)
    half = part.replace("of the rows", "of (the rows of the tensor|its rows)")
    assert re.search(rf"the amax of .*{half}", first), first
    assert re.search(r", in all [\d,]+ entries that differ$", first), first
    assert all("with the given scale, in all" in line for line in others)


def codes_alone(recipe, kernel):
    """Return the lines on a kernel that returns codes, without scales."""
    return said_of(recipe, lambda x: {"code": kernel(x)["code"]})


@pytest.mark.tier("full", but=["[first 64 numbers]"])
@pytest.mark.parametrize("part", PARTS)
def test_codes_of_a_tensor_with_the_amax_of_a_part_are_named(part):
    """SCL-001. The scale is not returned."""
    text = codes_alone("e4m3:fp32:tensor", lambda x: e4m3(x, np.abs(PARTS[part](x)).max()))
    words = f"code: each entry is that of x with the scale of the amax of [^;]*the {part}"
    assert re.match(rf"{words}[^;]*, in all [\d,]+ entries that differ$", text), text


def gam(x, amax):
    """Return codes of e4m3 with a GAM scale of this amax."""
    scale = mor_ref.quantize(np.full((1, 1), amax, np.float32), "e4m3", block="tensor").scale
    return {"code": np.clip(x * scale, -448, 448).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)}


@pytest.mark.tier("full")
@pytest.mark.parametrize(
    ("recipe", "kernel", "says"),
    [
        (
            "e4m3:fp32:row",
            lambda x: e4m3(x, np.abs(x[:, :64]).max(1)),
            "with the scale of the amax of the first 64 columns of its row",
        ),
        (
            "e4m3:gam:tensor",
            lambda x: gam(x, np.abs(x).ravel()[:64].max()),
            "with the scale of the amax of the first 64 numbers of the tensor",
        ),
    ],
)
def test_codes_with_the_scale_of_another_amax_are_named(recipe, kernel, says):
    """SCL-001, GAM-002. Mantissa and exponent are those of the part."""
    text = codes_alone(recipe, kernel)
    assert re.match(rf"code: each entry is that of x {says}, in all ", text), text


def test_codes_rounded_otherwise_are_not_those_of_another_amax():
    text = codes_alone("e4m3:fp32:tensor", lambda x: toward_zero(e4m3(x, np.abs(x).max()), x))
    assert "the amax of" not in text, text


def toward_zero(found, x):
    exact = np.abs(x * found["scale"].view(np.float32))
    value = np.abs(found["code"].view(ml_dtypes.float8_e4m3fn).astype(np.float32))
    return {"code": found["code"] - (value > exact)}


@pytest.mark.tier("full", but=["without the last columns % 32 columns]"])
@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (lambda x: x[:, :64], "of the first 64 columns of its row"),
        (
            lambda x: x[:, : x.shape[1] // 32 * 32],
            "of its row without the last columns % 32 columns",
        ),
        (lambda x: x[:, :-1], "of its row without the last column"),
    ],
)
def test_a_row_with_the_amax_of_a_part_is_named(columns, says):
    """SCL-001. The loop over a row ends too soon."""
    text = said_of("e4m3:fp32:row", lambda x: e4m3(x, np.abs(columns(x)).max(1)))
    assert re.match(rf"amax and scale: each entry is that of the amax {says}[ ,]", text), text


@pytest.mark.tier("full", but=["[e4m3:fp32:tensor-e4m3-<lambda>-the tensor before it]"])
@pytest.mark.parametrize(
    ("pick", "says"),
    [
        (lambda k, own: own[max(k - 1, 0)], "the tensor before it"),
        (lambda k, own: max(own[: k + 1]), "the tensor and all before it"),
        (lambda _, own: max(own), "all tensors together"),
    ],
)
@pytest.mark.parametrize(("recipe", "made"), [("e4m3:fp32:tensor", e4m3), ("nvfp4:te:1x16", nvfp4)])
def test_the_amax_of_other_tensors_is_named_from_few(recipe, made, pick, says):
    """A scale of the call before is stale; a maximum that is not reset grows."""
    own, count = [np.abs(x).max() for x in FEW.values()], iter(range(len(FEW)))
    text = said_of(recipe, lambda x: made(x, pick(next(count), own)))
    assert f"the amax of {says}, in all" in text.splitlines()[0], text


def test_parts_that_the_tensors_do_not_distinguish_are_named_together():
    """All of these leave out the last number alone, which is the largest."""
    x = tensors((33, 33))
    x["t0"][-1, -1] = 100
    text = said_of("e4m3:fp32:tensor", lambda x: e4m3(x, np.abs(x.ravel()[:-1]).max()), x)
    assert "the tensor without the last size % 4 numbers (or of the tensor without" in text, text


def test_one_scale_is_not_evidence_for_a_deviation_alone():
    """The last number is the largest, and negative: its sign, or its place, may be the cause."""
    given = {name: np.abs(x) for name, x in tensors((9, 13), (8, 12)).items()}
    given["t0"][-1, -2:] = 50.1, -100.1

    def kernel(x):
        return e4m3(x, np.abs(x.ravel()[: x.size // 4 * 4]).max())

    (found,) = diagnose([evidence_of("e4m3:fp32:tensor", kernel, given)]).suites
    text = "\n".join(diagnosis_lines(found, comparable=True))
    assert re.match(r"all \d+ mismatches are explained by `SCL-001/amax-signed` ", text), text
    doubt = "  or by their structure: the answers, with one wrong scale, do not distinguish the two"
    assert doubt in text, text
    assert "without the last size % 4 numbers (or of the tensor without" in text, text


def test_an_amax_of_another_number_is_of_no_part():
    """The amax is the second largest of all: no reach of a kernel explains it."""
    text = said_of("e4m3:fp32:tensor", lambda x: e4m3(x, np.sort(np.abs(x).ravel())[-40]))
    assert "the amax of" not in text, text


def test_every_part_of_a_block_is_of_its_own_block():
    """The last rows of a partial block are those of the tensor."""
    x = np.arange(1, 71).reshape(7, 10).astype(np.uint32)
    parts = {named(part, "its block"): part for part in parts_of_blocks("its block")}
    found = parts["the first column of its block"].of(x, (4, 8))
    assert np.flatnonzero(found.any(axis=0)).tolist() == [0, 8]
    found = parts["the first number of its block"].of(x, (4, 8))
    assert np.argwhere(found).tolist() == [[0, 0], [0, 8], [4, 0], [4, 8]]
    found = parts["its block without the last rows % 2 rows of the tensor"].of(x, (4, 8))
    assert np.flatnonzero(found.any(axis=1)).tolist() == [0, 1, 2, 3, 4, 5]
    assert parts["the last 32 numbers of its block"].of(x, (4, 8)) is None
    found = parts["the last 32 numbers of its block"].of(x, (8, 8))
    assert np.argwhere(found[:, :8] == 0)[:, 0].max() == 2


def test_scales_that_share_a_mantissa_are_no_evidence_for_another_amax():
    """GAM-002. The first block of a row has the largest amax in it: a few exponents say no more."""
    (x,) = tensors((96, 64)).values()
    x[:, :32] *= 2

    def kernel(x):
        scale = words(mor_ref.quantize(x, "e4m3", block=(16, 32)).scale)
        return {"scale": np.broadcast_to(scale[:, :1], scale.shape).copy()}

    assert said_of("e4m3:gam:16x32", kernel, {"x": x}) == ""
