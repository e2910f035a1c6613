"""Fields of blocks with extremes of other numbers, of another size, and of other tensors."""

import re

import ml_dtypes
import numpy as np
import pytest

from mor_ref.golden import bundled_files
from mor_ref.golden.model.suite import Case
from mor_ref.golden.store.manifest import read_manifest
from mor_ref.operations import OPERATIONS
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.comparing.names_given import fields_of
from mor_ref.verify.diagnosing.amaxes_of_blocks import over
from mor_ref.verify.diagnosing.entries import entries_of
from mor_ref.verify.diagnosing.other_scales import other_scales
from mor_ref.verify.diagnosing.sample import Pair, Sample, samples_of
from mor_ref.verify.diagnosing.scales_of_other_blocks import block_of, other_block_sizes
from mor_ref.verify.diagnosing.scales_of_other_numbers import _with_extremes
from mor_ref.verify.diagnosing.structure import structures_of
from mor_ref.verify.reporting.structure_text import structure_lines

FIELDS = ("minimum", "maximum", "scale", "inverse_scale", "zero_float", "zero_point")


@pytest.mark.parametrize("source", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("profile", ["peg", "torch_fake_tensor"])
def test_extremes_of_a_row_of_blocks_are_those_of_a_wide_block(profile, symmetric, source):
    random, exact = np.random.default_rng(4), OPERATIONS["affine"].exact
    x = random.standard_normal((5, 70)) * np.exp2(random.integers(-5, 5, (5, 1)))
    words = x.astype(np.float32).view(np.uint32)
    narrow = x.astype(np.float16).view(np.uint16) if source == "f16" else words >> 16
    inputs = {"x": words if source == "f32" else narrow.astype(np.uint16)}
    own = {"grid": "int8" if symmetric else "uint8", "profile": profile, "symmetric": symmetric}
    parameters = {**own, "block": [2, 32], "source": source}
    right, wide = exact(parameters, inputs), exact({**parameters, "block": [2, 70]}, inputs)
    for name in FIELDS:
        pair = Pair(right[name], right[name], right[name] != right[name])
        sample = Sample("affine", Case("", parameters, inputs), {name: pair})
        found = _with_extremes(over((1, 2, 3)), sample, name).reshape(right[name].shape)
        np.testing.assert_array_equal(found, np.broadcast_to(wide[name], found.shape))


@pytest.mark.parametrize("shape", [(2, 300), (300, 2)])
def test_blocks_of_a_tensor_that_is_narrower_than_a_block_have_a_scale_for_each_number(shape):
    """Or none is known, if a smaller block would have to begin inside of a block."""
    asked = {"format": "e4m3", "scaling": "gam", "block": [128, 128], "group": "tensor"}
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32).view(np.uint32)
    sample = Sample("quantize", Case("", {**asked, "source": "f32"}, {"x": x}), {})
    blocks = [one for _, one in other_block_sizes(block_of(sample))]
    found = [one.scales(sample, ["scale"]) for one in blocks]
    assert {fields["scale"].shape for fields in found if fields is not None} == {shape}


@pytest.mark.parametrize(
    ("operation", "shape", "asked", "taken"),
    [
        ("quantize", (25, 18), [32, 32], [16, 16]),  # the asked block is larger than the tensor
        ("quantize", (25, 18), [32, 32], [1, 32]),
        ("quantize", (40, 37), [1, 16], [16, 16]),
        ("quantize", (20, 30), "tensor", [1, 30]),
        ("mx", (8, 100), 32, 64),
        ("affine", (24, 40), [8, 8], [1, 8]),
    ],
)
def test_codes_with_scales_of_blocks_of_another_size_are_named(operation, shape, asked, taken):
    own = {
        "quantize": {"format": "e4m3", "scaling": "gam", "group": "tensor"},
        "mx": {"format": "e4m3", "scale_rule": "rceil"},
        "affine": {"grid": "uint8", "profile": "onnx", "symmetric": False},
    }[operation]
    x = np.random.default_rng(4).standard_normal(shape)
    for steepness, line in ((9, (shape[0], 1)), (4, (1, shape[1]))):
        x = x * np.exp2(np.linspace(-steepness, steepness, max(line)).reshape(line))
    inputs = {"x": x.astype(np.float32).view(np.uint32)}
    parameters = {**own, "source": "f32", "block": asked}
    right = OPERATIONS[operation].exact(parameters, inputs)["code"]
    wrong = OPERATIONS[operation].exact({**parameters, "block": taken}, inputs)["code"]
    pair = Pair(right, wrong, right != wrong)
    entries = entries_of("code", [Sample(operation, Case("", parameters, inputs), {"code": pair})])
    first = next(iter(other_scales(entries)))
    rows, columns = (1, taken) if isinstance(taken, int) else taken
    assert f" of blocks of {rows}x{columns} numbers" in first.words
    assert first.explained == pair.differs.sum() > 50
    assert first.kept == 0


@pytest.mark.parametrize(
    ("blocks", "where"),
    [
        ([(0, 1, 0, 0), (3, 2, 3, 1)], "of the block at [i, j - 1]"),
        ([(2, 0, 1, 3), (5, 1, 5, 0)], "of the block before it, row by row"),
        ([(2, 0, 4, 3), (5, 1, 0, 2)], "of another block"),
    ],
)
def test_codes_of_a_few_blocks_with_the_scale_of_another_block_are_named(blocks, where):
    draws = np.random.default_rng(8)
    x = draws.standard_normal((6, 128)) * np.exp2(2 * np.arange(24)).reshape(6, 4).repeat(32, 1)
    inputs = {"x": x.astype(np.float32).view(np.uint32)}
    parameters = {"format": "e4m3", "scale_rule": "rceil", "block": 32, "source": "f32"}
    right = OPERATIONS["mx"].exact(parameters, inputs)
    wrong = right["code"].copy()
    for i, j, row, column in blocks:
        here = i, slice(32 * j, 32 * j + 32)
        scale = np.exp2(right["scale"][row, column].astype(np.float64) - 127)
        numbers = np.clip(x.astype(np.float32)[here].astype(np.float64) / scale, -448, 448)
        wrong[here] = numbers.astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
    pair = Pair(right["code"], wrong, right["code"] != wrong)
    (found,) = structures_of([Sample("mx", Case("", parameters, inputs), {"code": pair})])
    assert f"in 2 of 24 blocks, the expected scale {where}" in found.words
    assert found.explained == found.of == pair.differs.sum()
    wrong[blocks[0][0], 32 * blocks[0][1] + 5] ^= 3  # no scale explains one of the codes
    assert not [
        one
        for one in structures_of([Sample("mx", Case("", parameters, inputs), {"code": pair})])
        if "blocks, the expected scale" in one.words
    ]


TENSORS = [
    (np.random.default_rng(3 + k).standard_normal(shape) * (1 + k)).astype(np.float32)
    for k, shape in enumerate([(8, 48), (12, 32), (6, 80)])
]
OF_TENSORS = {
    "nvfp4_te": ("nvfp4", {"profile": "te", "tile": [1, 16], "source": "f32"}),
    "quantize": (
        "quantize",
        {
            "format": "e4m3",
            "scaling": "gam",
            "block": [4, 16],
            "group": "tensor",
            "source": "f32",
        },
    ),
}
OF_TENSORS["affine"] = (
    "affine",
    {
        "grid": "uint8",
        "profile": "torch_fake_tensor",
        "symmetric": False,
        "block": [1, 16],
        "source": "f32",
    },
)
AMAXES = {
    "the tensor before it": lambda k: np.abs(TENSORS[max(k - 1, 0)]).max(),
    "the tensor after it": lambda k: np.abs(TENSORS[min(k + 1, 2)]).max(),
    "all tensors together": lambda _: max(np.abs(x).max() for x in TENSORS),
    "the first half of its rows": lambda k: np.abs(TENSORS[k][: len(TENSORS[k]) // 2]).max(),
    "the last half of its rows": lambda k: np.abs(TENSORS[k][len(TENSORS[k]) // 2 :]).max(),
}


def lines_with(suite, change, leaving_out=()):
    """Return the lines on a kernel with other parameters: `change` returns those of a tensor."""

    def given(exact, k, parameters, inputs):
        return exact({**parameters, **change(k)}, inputs)

    return lines_of(suite, given, leaving_out)


def lines_of(suite, given, leaving_out=()):
    """Return the lines on a kernel, a function of the exact model and of a question."""
    operation, parameters = OF_TENSORS[suite]
    exact, cases, answers = OPERATIONS[operation].exact, [], {}
    for k, x in enumerate(TENSORS):
        inputs = {"x": x.view(np.uint32)}
        cases.append(Case(f"{k}", parameters, {**inputs, **exact(parameters, inputs)}))
        found = given(exact, k, parameters, inputs)
        answers[f"{k}"] = {name: found[name] for name in found if name not in leaving_out}
    fields = fields_of(read_manifest(bundled_files())["suites"][suite])
    evidence = Evidence(suite, operation, fields, cases, answers)
    return list(structure_lines(structures_of(list(samples_of(evidence)))))


GLOBAL = ("global_encode_scale", "global_decode_scale", "y", "xs", "packed")


@pytest.mark.parametrize("words", AMAXES)
@pytest.mark.parametrize(
    ("suite", "leaving_out", "names"),
    [
        (
            "nvfp4_te",
            ("packed",),
            "global_encode_scale, global_decode_scale, block_scale, code and y",
        ),
        ("nvfp4_te", GLOBAL, "block_scale and code"),
        ("quantize", (), "mantissa"),
    ],
)
def test_the_amax_of_another_tensor_or_of_a_part_is_named(suite, leaving_out, names, words):
    """A scale of the tensor before is stale; a part is what some threads have seen."""
    first, *_ = lines_with(suite, lambda k: {"amax": float(AMAXES[words](k))}, leaving_out)
    assert first.startswith(names), first
    also = r"( \(or of the tensor without .*\)| \(or of the last .*\))?"
    assert re.search(rf": each entry is that with the amax of {words}{also}, in all", first), first


def test_an_amax_that_is_a_little_off_is_not_that_of_another_tensor():
    off = {"amax": float(np.nextafter(np.float32(4.5), np.float32(5)))}
    assert not any("the amax of" in line for line in lines_with("nvfp4_te", lambda _: off))


@pytest.mark.parametrize("steps", [254, 256])
def test_the_scales_of_a_grid_of_other_steps_are_named(steps):
    """Codes and y follow from the given scales and zero points."""

    def given(_, k, *__):
        x = TENSORS[k].reshape(len(TENSORS[k]), -1, 16)
        low, high = np.minimum(x.min(axis=2), 0), np.maximum(x.max(axis=2), 0)
        scale = (high - low) / np.float32(steps)
        zero = np.rint(-low / scale)
        code = np.clip(np.rint(x / scale[..., None]) + zero[..., None], 0, 255)
        return {
            "scale": scale.view(np.uint32),
            "zero_point": zero.astype(np.uint32),
            "code": code.reshape(TENSORS[k].shape).astype(np.uint32),
        }

    first, *_ = lines_of("affine", given)
    assert first.startswith(
        f"scale: each entry is that of a grid of {steps} steps, not 255, in all"
    )


def e2m1(numbers):
    """Return codes of numbers; somebody else's software rounds them."""
    limited = np.clip(numbers, -6, 6).astype(np.float32)
    return limited.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)


def test_codes_with_the_global_scale_of_the_tensor_before_it_are_named():
    """All scales are right; the codes of the first tensor are as well."""
    before = [None]

    def given(exact, k, parameters, inputs):
        found = exact(parameters, inputs)
        scale = found["block_scale"].view(ml_dtypes.float8_e4m3fn).astype(np.float32)
        own = found["global_encode_scale"].view(np.float32)[0]
        each = np.repeat(scale, 16, axis=1) / (before[-1] or own)
        before.append(own)
        right = {name: found[name] for name in ("global_encode_scale", "block_scale")}
        return {**right, "code": e2m1(TENSORS[k] / each) if k else found["code"]}

    (line,) = lines_of("nvfp4_te", given)
    assert "code: each entry is that of x with the expected global_decode_scale of the same" in line
    assert "place in the preceding case, in all" in line


def test_codes_of_a_few_blocks_with_the_scale_of_the_block_before_them_are_named():
    """All scales are right: only the codes of every fourth block are stale."""

    def given(exact, _, parameters, inputs):
        found = exact(parameters, inputs)
        scale = found["block_scale"].view(ml_dtypes.float8_e4m3fn).astype(np.float32)
        used = scale.ravel().copy()
        used[3::4] = scale.ravel()[2:-1:4]
        each = np.repeat(used.reshape(scale.shape), 16, axis=1)
        x = inputs["x"].view(np.float32)
        code = e2m1(x / (each / found["global_encode_scale"].view(np.float32)))
        return {"block_scale": found["block_scale"], "code": code}

    first, *_ = lines_of("nvfp4_te", given)
    assert (
        "code: each entry is that of x with, in 17 of 78 blocks, the expected block_scale " in first
    )
    assert " of the block before it, row by row, in all " in first
