"""Amaxes and scales that are given for each block, group or row, as kernels with calibration do."""

import re

import numpy as np
import pytest

import mor_ref
from mor_ref import BlockFormat, BlockScale, exact, formats
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.definitions.scales import AmaxOrScale
from mor_ref.exact import block_formats as exact_block_formats
from mor_ref.exact import nvfp4 as exact_nvfp4
from mor_ref.exact import quantization as exact_quantization

X = np.random.default_rng(5).standard_normal((6, 32), dtype=np.float32)
X[1] *= np.float32(1e-3)
X[4, :9] = 0
ROWS = X.astype(float).tolist()
CUTS = [("row", "tensor"), ("row", (2, 32)), ((2, 8), (4, 16)), ("column", "tensor")]


def numbers_for(grid, seed=0):
    """Return positive numbers of binary32, one for each place of a grid."""
    return np.random.default_rng(seed).uniform(0.3, 5, grid).astype(np.float32)


FP32 = {"scaling": "fp32", "block": "row"}


def codes_of(elements):
    return [[element.code for element in row] for row in elements]


@pytest.mark.parametrize(("block", "group"), CUTS)
@pytest.mark.parametrize("scaling", ["gam", "e8m0", "fp32"])
def test_an_amax_of_each_block_or_group(scaling, block, group):
    """SCL-006, against the exact model."""
    group = group if scaling == "gam" else "tensor"
    cut = partition(X.shape, block, group)
    amax = numbers_for(cut.group_grid if scaling == "gam" else cut.grid)
    found = mor_ref.quantize(X, "e4m3", scaling=scaling, block=block, group=group, amax=amax)
    right = exact_quantization.quantize(ROWS, formats["e4m3"], scaling, cut, amax.tolist())
    assert found.codes.tolist() == codes_of(right.elements)
    assert found.scale.tolist() == by_grid({p: s.value for p, s in right.scale.items()}, cut.grid)
    assert found.amax.tolist() == by_grid(right.amax, cut.grid)


def by_grid(values, grid):
    return [[values[i, j] for j in range(grid[1])] for i in range(grid[0])]


@pytest.mark.parametrize(("block", "_group"), CUTS)
def test_a_scale_of_each_block(block, _group):
    """SCL-007, against the exact model."""
    cut = partition(X.shape, block)
    scale = numbers_for(cut.grid)
    found = mor_ref.quantize(X, "e5m2", scaling="fp32", block=block, scale=scale)
    right = exact_quantization.quantize(
        ROWS, formats["e5m2"], "fp32", cut, given_scale=scale.tolist()
    )
    assert found.scale.tolist() == scale.tolist()
    assert found.codes.tolist() == codes_of(right.elements)
    assert found.dequantize().tolist() == [[one.y for one in row] for row in right.elements]


@pytest.mark.parametrize("name", ["amax", "global_scale"])
def test_each_row_of_nvfp4(name):
    """NVF-013 and NVF-014, under te_row, against the exact model."""
    each = numbers_for(6)
    found = mor_ref.quantize_nvfp4(X, profile="te_row", **{name: each})
    given = AmaxOrScale(**{name.removeprefix("global_"): each.tolist()})
    right = exact_nvfp4.nvfp4(ROWS, PROFILES["te_row"], (1, 16), given)
    assert found.codes.tolist() == codes_of(right.elements)
    assert found.global_encode_scale.tolist() == [scale.encode for scale in right.global_scale]
    own = [mor_ref.quantize_nvfp4(row, profile="te_row", **{name: one}).codes.tolist()
           for row, one in zip(X, each, strict=True)]  # fmt: skip
    assert found.codes.tolist() == own


OF_FORMULAS = {
    "outermost amax": ("amax", {"S": 3.5}),
    "amax of each block": ("amax", {"s": numbers_for((6, 2))}),
    "amaxes of both": ("amax", {"S": 0.25, "s": numbers_for((6, 2), 1)}),
    "outermost scale": ("scale", {"S": 0.125}),
    "scale of each block": ("scale", {"s": np.full((6, 2), 0.75, np.float32)}),
    "scales of both": ("scale", {"S": 2.0, "s": 0.375}),
}


@pytest.mark.parametrize("tries", [("t",), ("t", "0.875 * t", "percentile(75) / S")])
@pytest.mark.parametrize("case", OF_FORMULAS)
def test_scales_of_own_formulas(case, tries):
    """BLF-008, against the exact model."""
    argument, given = OF_FORMULAS[case]
    own = BlockFormat("own", "e2m1", (
        BlockScale("S", "tensor", "percentile(99) + amax / 688"),
        BlockScale("s", (1, 16), "amax / S / 6 or 1", "e4m3"),
    ), decode="s * S", tries=tries)  # fmt: skip
    found = mor_ref.quantize(X, own, **{argument: given})
    flat = {name: np.ravel(each).tolist() for name, each in given.items()}
    parts = {"S": 1, "s": 12}
    exactly = {
        name: AmaxOrScale(**{argument: each * (parts[name] // len(each))})
        for name, each in flat.items()
    }
    right = exact_block_formats.quantize(X.ravel().tolist(), X.shape, own, exactly)
    assert found.codes.ravel().tolist() == list(right.codes)
    assert found.dequantize().ravel().tolist() == list(right.y)
    for name, scale in right.scales.items():
        assert found.scale_numbers[name].ravel().tolist() == list(scale.numbers[name])
    assert found != mor_ref.quantize(X, own)


@pytest.mark.parametrize(
    ("text", "arguments", "other"),
    [
        ("nvfp4", {"amax": 9.5}, lambda: mor_ref.quantize_nvfp4(X, amax=9.5)),
        ("nvfp4:torchao", {"scale": 0.01171875},
         lambda: mor_ref.quantize_nvfp4(X, profile="torchao", global_scale=0.01171875)),
        ("e4m3:gam:2x8", {"amax": 2.5},
         lambda: mor_ref.quantize(X, "e4m3", block=(2, 8), amax=2.5)),
        ("e4m3:fp32:row", {"scale": numbers_for(6)},
         lambda: mor_ref.quantize(X, "e4m3", **FP32, scale=numbers_for(6))),
    ],
)  # fmt: skip
def test_a_text_takes_what_its_function_takes(text, arguments, other):
    """BLF-008: without a name, amaxes and scales are those of the outermost scale."""
    found, expected = mor_ref.quantize(X, text, **arguments), other()
    assert np.array_equal(found.codes, expected.codes)
    assert np.array_equal(found.dequantize(), expected.dequantize())


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        ("nvfp4", {"amax": {"T": 1.0}}, "a name of amax is 'T', which is not known; take one of S"),
        ("nvfp4", {"amax": 1.0, "scale": 1.0}, "amax and scale of 'S' are both given; give one"),
        ("nvfp4", {"amax": -1.0}, "amax is -1.0; give a number that is not negative"),
        ("nvfp4", {"scale": {"s": 0.3125001}}, "scale is 0.3125001, which is not a number of bin"),
        ("nvfp4", {"scale": {"s": 0.30078125}},
         "scale is 0.30078125, which is not a number of e4m3; the nearest is 0.3125"),
        ("nvfp4", {"scale": {"s": 0}}, "scale is 0.0; give a positive number"),
        ("nvfp4", {"scale": {"s": np.ones((6, 3))}},
         "scale has the shape 6x3; give one number, or one for each of the 6x2 parts of s"),
        ("nvfp4:te_4over6_mse", {"scale": 1.0},
         "scale of 'S' is given, but error, 'square(((v * s) * amax_S) / 1536.0 - x)', has its a"),
        ("mxfp8", {"scale": {"s": 2.0**-130}}, "scale is 7.3"),
    ],
)  # fmt: skip
def test_what_no_formula_can_take_is_refused(text, arguments, words):
    """BLF-008."""
    with pytest.raises((ValueError, TypeError), match=re.escape(words)):
        mor_ref.quantize(X, text, **arguments)


def test_the_scale_that_numpy_computes_for_rows():
    scale = 448 / np.abs(X).max(axis=1)
    row = {"scaling": "fp32", "block": "row"}
    found = mor_ref.quantize(X, "e4m3", **row, scale=scale)
    assert found == mor_ref.quantize(X, "e4m3", **row, scale=scale[:, np.newaxis])
    assert found == mor_ref.quantize(X, "e4m3", **row, scale=scale.tolist())
    assert found == mor_ref.quantize(X, "e4m3", **row, scale=scale.astype(np.float64))
    same = mor_ref.quantize(X, "e4m3", **row, scale=[0.5] * 6)
    assert same == mor_ref.quantize(X, "e4m3", **row, scale=0.5)
    assert np.array_equal(found.codes, exact_codes(scale))


def exact_codes(scale):
    return [
        [exact.encode(float(np.float32(v * s)), formats["e4m3"]) for v in row]
        for row, s in zip(X, scale, strict=True)
    ]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mor_ref.quantize(X, "e4m3", **FP32, scale=[0.5, 0.25]),
         "scale has the shape 2; give one number, or one for each of the 6x1 blocks"),
        (lambda: mor_ref.quantize(X, "e4m3", **FP32, scale=np.ones((1, 6))),
         "scale has the shape 1x6; give one number, or one for each of the 6x1 blocks"),
        (lambda: mor_ref.quantize(X, "e4m3", **FP32, scale=[0.5, 0.1, 1, 1, 1, 1]),
         "scale is 0.1, which is not a number of binary32; the nearest is 0.1000000014901161"),
        (lambda: mor_ref.quantize(X, "e4m3", **FP32, scale=[0.5, 1, 1, 1, 1, -1]),
         "scale is -1.0; give a positive, normal number"),
        (lambda: mor_ref.quantize(X, "e4m3", **FP32, scale=[0.5, 1, 1, 1, 1, np.inf]),
         "scale is inf, which is no finite number of binary32"),
        (lambda: mor_ref.quantize(X, "e4m3", **FP32, amax=[0.5, 1, 1, 1, 1, np.nan]),
         "amax is nan, which is no finite number of binary32"),
        (lambda: mor_ref.quantize(X, "e4m3", block="row", amax=[1.0] * 6),
         "amax has the shape 6; give one number, or one for each of the 1x1 groups"),
        (lambda: mor_ref.quantize(X, "e4m3", block="row", scale=[1.0] * 6),
         "scale is given with scaling 'gam'; give scaling 'fp32'"),
        (lambda: mor_ref.quantize(X, "e4m3", **FP32, amax=[1.0] * 6, scale=[1.0] * 6),
         "give one of them"),
        (lambda: mor_ref.quantize(X, "e4m3", **FP32, scale=["a"] * 6), "scale holds"),
        (lambda: mor_ref.quantize_nvfp4(X, amax=[1.0] * 6), "amax is .*; give a number"),
        (lambda: mor_ref.quantize_nvfp4(X, profile="te_row", amax=[1.0] * 5),
         "amax has the shape 5; give one number, or one for each of the 6x1 rows"),
        (lambda: mor_ref.quantize_nvfp4(X, profile="te_row", amax=[1.0] * 6, global_scale=[1.0]),
         "amax and global_scale are both given; give one of them"),
    ],
)  # fmt: skip
def test_numbers_that_are_not_one_for_each_are_refused(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()
