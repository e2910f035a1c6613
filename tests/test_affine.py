"""Integers with zero points: the engine is the exact model, and the rules by hand."""

import math

import ml_dtypes
import numpy as np
import pytest
from affine_inputs import PROFILES_OF_127, quantized
from hypothesis import given
from hypothesis import strategies as st
from records import SOURCES, adversarial, bits32, listed, of_grid, rows_of, shapes, sums

import mor_ref
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.integer_grids import integer_grid
from mor_ref.schemes.affine import exact as affine
from mor_ref.schemes.affine import exact_groups as affine_groups
from mor_ref.schemes.affine.definition import AFFINE_PROFILES, affine_profile, with_float_zeros

NAN = 0x7FFFFFFF
BLOCKS = ["tensor", "row", "column", (2, 8), (1, 5)]
OF_BLOCKS = ("minimum", "maximum", "scale", "inverse_scale", "zero_float")
SHAPES = [(5, 37), (1, 70), (33, 1), (1, 1), (), (0, 4), (3, 0), (2, 3, 17)]
NAMES = {np.float16: "f16", ml_dtypes.bfloat16: "bf16"}


def exact(x, grid="int8", profile="torch_fake_tensor", block="tensor", symmetric=True, given=None):
    """Return every field of the exact model, as lists."""
    cut = partition(x.shape, block)
    source = NAMES.get(x.dtype.type, "f32")
    how = affine.Choices(affine_profile(profile), integer_grid(grid), symmetric, source)
    found = affine.affine(rows_of(x), how, cut, given)
    elements = [element for row in found.elements for element in row]
    return {
        "grid": found.grid.name,
        **{
            name: of_grid(found.blocks, cut.grid, lambda b, name=name: bits32(getattr(b, name)))
            for name in OF_BLOCKS
        },
        "zero_point": of_grid(found.blocks, cut.grid, lambda b: b.zero_point),
        "error": of_grid(found.error, cut.grid, sums),
        "codes": [e.code for e in elements],
        "xs": [bits32(e.xs) for e in elements],
        "y": [bits32(e.y) for e in elements],
    }


def engine(x, *arguments, **named):
    """Return the fields of `exact`, from the engine."""
    found = mor_ref.quantize_affine(x, *arguments, **named)
    return {
        "grid": found.grid,
        **{name: getattr(found, name).view(np.uint32).tolist() for name in OF_BLOCKS},
        "zero_point": found.zero_point.tolist(),
        "error": listed(found.error),
        "codes": found.codes.ravel().tolist(),
        "xs": found.xs.view(np.uint32).ravel().tolist(),
        "y": found.dequantize().view(np.uint32).ravel().tolist(),
    }


def choices(profile):
    """Yield the grids and symmetries that a profile has."""
    if profile in PROFILES_OF_127:
        return [("int8", True)]
    return [
        (grid, s) for grid in ("int8", "uint8", "int4", "uint3", "int16") for s in (True, False)
    ]


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize("profile", AFFINE_PROFILES)
def test_the_engine_is_the_exact_model(profile):
    """AFF-001 to AFF-009: every shape, source and block, with special numbers."""
    for seed, shape in enumerate(SHAPES):
        for k, (grid, symmetric) in enumerate(choices(profile)):
            x = adversarial(shape, seed + 10 * k, SOURCES[(seed + k) % 4])
            how = {"profile": profile, "block": BLOCKS[(seed + k) % 5], "symmetric": symmetric}
            assert engine(x, grid, **how) == exact(x, grid, **how), (shape, grid, how)


@pytest.mark.tier("full")
@given(
    shapes, st.integers(0, 1 << 30), st.sampled_from(SOURCES), st.sampled_from(BLOCKS),
    st.sampled_from(list(AFFINE_PROFILES)), st.booleans(), st.booleans(), st.integers(2, 16),
)  # fmt: skip
def test_any_tensor(shape, seed, dtype, block, profile, symmetric, signed, bits):
    x = adversarial(shape, seed, dtype)
    grid = f"{'' if signed else 'u'}int{bits}"
    if profile in PROFILES_OF_127:
        grid, symmetric = "int8", True
    how = {"profile": profile, "block": block, "symmetric": symmetric}
    assert engine(x, grid, **how) == exact(x, grid, **how)


@pytest.mark.parametrize("profile", AFFINE_PROFILES)
def test_given_scales_and_zero_points(profile):
    """AFF-006: one for each block; subnormal and huge scales, and zeros at the ends of a grid."""
    random = np.random.default_rng(5)
    for seed, dtype in enumerate(SOURCES):
        x = adversarial((6, 9), seed, dtype)
        scale = random.choice([1e-45, 1e-39, 0.013, 1.0, 3e38, 2.0**-14], 6).astype(np.float32)
        zero = random.choice([-128, -5, 0, 3, 127], 6)
        named = {} if profile in PROFILES_OF_127 or profile == "peg" else {"zero_point": zero}
        of = zero.tolist() if named else [None] * 6
        blocks = {(i, 0): affine.ScaleAndZero(float(scale[i]), of[i]) for i in range(6)}
        found = engine(x, profile=profile, block="row", scale=scale, **named)
        assert found == exact(x, profile=profile, block="row", given=blocks)


def test_threads_and_slices_change_nothing():
    """AFF-001: of a tensor that several threads share, in each source."""
    x = adversarial((700, 450), 3, np.float32)
    for dtype in SOURCES:
        with np.errstate(all="ignore"):
            y = x.astype(dtype)
        how = {"block": (128, 128), "symmetric": False}
        once, more = (engine(y, threads=n, **how) for n in (1, 2))
        assert once == more


# ---------------------------------------------------------------------- by hand


def test_grids():
    """AFF-001: widths from 2 to 16, and the dtypes of codes."""
    grids = [integer_grid(name) for name in ("int2", "uint2", "int9", "uint16")]
    assert [(g.lowest, g.highest) for g in grids] == [(-2, 1), (0, 3), (-256, 255), (0, 65535)]
    dtypes = [quantized([1.0], grid.name).codes.dtype for grid in grids]
    assert dtypes == [np.int8, np.uint8, np.int16, np.uint16]
    for name in ("int1", "int17", "uint", "int08x", 8):
        with pytest.raises(ValueError, match=f"grid is {name!r}, which is not known"):
            quantized([1.0], name)


def test_profiles_and_their_arithmetic():
    """AFF-002: torchao rounds each operation to the dtype of x; the others round y alone."""
    x = np.array([1.0, 0.3, -0.71], ml_dtypes.bfloat16)
    torch, torchao = (quantized(x, profile=p) for p in ("torch_fake_tensor", "torchao_0_18"))
    assert torch.scale[0, 0] == np.float32(1 / 127.5)
    assert torchao.scale[0, 0] == np.float32(ml_dtypes.bfloat16(1 / 127.5))
    for found in (torch, torchao):
        assert (found.y == found.y.astype(ml_dtypes.bfloat16).astype(np.float32)).all()
    assert repr(torch).startswith("<3 bfloat16 as int8, torch_fake_tensor: 1 block of 1x3, mean")
    with pytest.raises(ValueError, match="profile is 'torch', which is not known"):
        quantized([1.0], profile="torch")
    with pytest.raises(ValueError, match="grid is 'int4', but profile 'switchback_row' has int8"):
        quantized([1.0], "int4", profile="switchback_row")
    with pytest.raises(ValueError, match="profile 'bnb_int8_row' has no zero points; omit it"):
        quantized([1.0], profile="bnb_int8_row", symmetric=False)


def test_rows_are_usual_in_profiles_of_rows():
    """AFF-002."""
    x = np.ones((3, 4), np.float32)
    shapes_of = {p: quantized(x, profile=p).scale.shape for p in AFFINE_PROFILES}
    rows = {"bnb_int8_row", "switchback_row", "torch_quantize_channel"}
    assert shapes_of == {p: (3, 1) if p in rows else (1, 1) for p in AFFINE_PROFILES}
    assert quantized(x, profile="bnb_int8_row", block="tensor").scale.shape == (1, 1)


def test_extremes():
    """AFF-003: NaN counts, infinities count, and a zero has no sign."""
    x = [[-0.0, -0.0], [np.nan, 1.0], [-np.inf, 2.0]]
    found = quantized(x, block="row", symmetric=False)
    assert found.minimum.view(np.uint32)[:, 0].tolist() == [0, NAN, 0xFF800000]
    assert found.maximum.view(np.uint32)[:, 0].tolist() == [0, NAN, 0x40000000]


def test_scales():
    """AFF-004: half of the range, not its highest integer; limits, and blocks of zeros."""
    scales = {p: float(quantized([-3.0, 1.0], profile=p).scale[0, 0]) for p in AFFINE_PROFILES}
    usual = float(np.float32(3 / 127.5))
    of_127 = dict.fromkeys(PROFILES_OF_127, 3.0)
    rest = {p: usual for p in AFFINE_PROFILES if p not in PROFILES_OF_127}
    assert scales == rest | of_127 | {"peg": float(np.float32(3 / 127))}
    zeros = {p: float(quantized([0.0], profile=p).scale[0, 0]) for p in AFFINE_PROFILES}
    torch, least = 2.0**-23, float(np.float32(1e-8))
    assert zeros == {
        "torch_fake_tensor": torch, "torch_fake_channel_2_13": torch, "torch_quantize": torch,
        "torch_quantize_channel": torch,
        "torchao_0_18": 2.0**-126, "onnx": float(np.float32(1 / 127.5)), "onnxruntime": 1.0,
        **dict.fromkeys(PROFILES_OF_127, 0.0), "peg": least,
    }  # fmt: skip
    half = quantized(np.zeros(1, np.float16), profile="torchao_0_18")
    assert half.scale[0, 0] == 2.0**-14
    wide = quantized([3.0, 2.0], symmetric=False, profile="onnx", grid="uint8")
    assert wide.scale[0, 0] == np.float32(3 / 255)


@pytest.mark.parametrize(
    ("profile", "grid", "zero"),
    [
        ("torch_fake_tensor", "uint8", 128), ("torch_quantize", "uint4", 7),
        ("torch_fake_tensor", "uint16", 32768), ("torchao_0_18", "uint4", 8),
        ("onnx", "uint8", 128), ("torch_fake_tensor", "int4", 0),
    ],
)  # fmt: skip
def test_the_middle_of_a_symmetric_grid(profile, grid, zero):
    """AFF-005."""
    assert quantized([1.0], grid, profile=profile).zero_point.tolist() == [[zero]]


def test_zero_points():
    """AFF-005: rounded to even, within the grid; PEG divides by the scale before its limit."""
    found = quantized([-127.5, 127.5], "uint8", symmetric=False)
    assert (found.zero_float.tolist(), found.zero_point.tolist()) == ([[127.5]], [[128]])
    assert quantized([-127.5, 127.5], symmetric=False).zero_point.tolist() == [[0]]
    assert quantized([5.0], "int8", symmetric=False).zero_point.tolist() == [[-128]]
    assert quantized([-5.0], "int4", symmetric=False).zero_point.tolist() == [[7]]
    assert quantized([np.nan], "int8", symmetric=False).zero_point.tolist() == [[127]]
    tiny = quantized([-1e-9], "uint8", profile="peg", symmetric=False)
    assert tiny.scale[0, 0] == np.float32(1e-8)
    assert tiny.zero_point.tolist() == [[23]]  # 1e-9 over 11e-9 / 255


def test_the_sign_of_peg():
    """AFF-005: without a negative number, a symmetric grid has no sign."""
    assert quantized([0.5, 2.0], profile="peg").grid == "uint8"
    assert quantized([0.5, 2.0], profile="peg").codes.tolist() == [64, 255]
    found = quantized([0.5, -2.0], "uint4", profile="peg")
    assert (found.grid, found.codes.tolist()) == ("int4", [2, -7])
    assert quantized([0.5, 2.0], profile="peg", symmetric=False).grid == "int8"


def test_what_is_given():
    """AFF-006."""
    found = quantized([[1.0], [2.0]], block="row", scale=[0.5, 0.25], zero_point=[1, -1])
    assert found.codes.tolist() == [[3], [7]]
    assert found.y.tolist() == [[1.0], [2.0]]
    assert quantized([1.0], scale=0.5, symmetric=False).zero_point.tolist() == [[-128]]
    for scale, problem in (
        (0.0, "scale is 0.0; give a positive number"),
        ([2.0, -1.0], "scale is -1.0; give a positive number"),
        (math.nan, "scale is nan, which is no finite number of binary32"),
        (math.inf, "scale is inf, which is no finite number of binary32"),
        (0.05, "scale is 0.05, which is not a number of binary32; the nearest is 0.0500000007"),
    ):
        with pytest.raises(ValueError, match=problem):
            quantized([[1.0], [2.0]], block="row", scale=scale)
    with pytest.raises(ValueError, match="scale has 3 numbers; give one, or one for each of the 1"):
        quantized([1.0], scale=[1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="zero_point has numbers that int8 lacks"):
        quantized([1.0], zero_point=128)
    with pytest.raises(TypeError, match="zero_point has floats, but profile 'torch_fake_tensor'"):
        quantized([1.0], zero_point=0.5)
    with pytest.raises(TypeError, match="zero_point has dtype bool; give integers"):
        quantized([1.0], zero_point=True)
    with pytest.raises(ValueError, match="zero_point is given, but profile 'peg' has none with"):
        quantized([1.0], profile="peg", zero_point=0)


def test_how_numbers_are_scaled():
    """AFF-007: by a rounded reciprocal, by a division, or in one operation with the zero point."""
    x = [0.5]
    codes = {p: quantized(x, profile=p, scale=1.0, zero_point=3).codes[0] for p in FIVE}
    assert codes == {
        "torch_fake_tensor": 3, "torch_quantize": 4, "torch_quantize_channel": 4, "onnx": 3,
        "onnxruntime": 3,
    }  # fmt: skip
    tie = np.array([0.5 * 0.0129999], np.float32) * 49
    scale = np.float32(0.0129999)
    xs = {p: float(quantized(tie, profile=p, scale=scale).xs[0]) for p in FIVE}
    assert xs["torch_fake_tensor"] == float(tie[0] * (np.float32(1) / scale))
    assert xs["onnx"] == float(tie[0] / scale)
    row = quantized([3.0, 1.0], profile="switchback_row")
    assert row.xs[1] == np.float32(127) * np.float32(np.float32(1) / np.float32(3))
    near_tie = {"scale": np.float32(0.05), "zero_point": 3}
    sums = [quantized([-1.7249999], profile=p, **near_tie).xs[0] for p in FIVE[1:3]]
    assert sums == [np.float32(-31.499998), -31.5]
    bnb = quantized([3.0, 1.0], profile="bnb_int8_row")
    assert bnb.inverse_scale[0, 0] == np.float32(127) * np.float32(np.float32(1) / np.float32(3))


FIVE = ("torch_fake_tensor", "torch_quantize", "torch_quantize_channel", "onnx", "onnxruntime")
SPECIAL = [np.nan, np.inf, 3e38, -np.inf, -0.0]


@pytest.mark.parametrize(
    ("profile", "zero", "codes"),
    [
        ("torch_fake_tensor", 3, [-128, 127, 127, -128, 3]),
        ("torch_fake_channel_2_13", 3, [-128, -128, -128, -128, 3]),
        ("torch_quantize", 3, [127, 127, 127, -128, 3]),
        ("torch_quantize_channel", 3, [0, 127, 127, -128, 3]),
        ("torchao_0_18", 3, [0, 127, 127, -128, 3]),
        ("onnx", 3, [-128, -128, -128, -128, 3]),
        ("onnx", -3, [127, 127, 127, 127, -3]),
        ("onnxruntime", -3, [-128, 127, 127, -128, -3]),
        ("bnb_int8_row", None, [0, 0, 0, 0, 0]),
        ("switchback_row", None, [0, 0, 0, 0, 0]),
        ("switchback_tensor", None, [0, 0, 0, 0, 0]),
        ("peg", None, [0, 255, 255, 0, 0]),  # NaN hides the negative numbers
    ],
)
def test_special_numbers(profile, zero, codes):
    """AFF-008."""
    found = quantized(SPECIAL, profile=profile, scale=1.0, zero_point=zero, block="tensor")
    assert found.codes.tolist() == codes


def test_integers():
    """AFF-008: ties to even; amax of a symmetric grid is above its highest integer."""
    found = quantized([0.5, 1.5, -2.5, 300.0], scale=1.0)
    assert found.codes.tolist() == [0, 2, -2, 127]
    assert quantized([-3.0, 3.0]).xs.tolist() == [-127.5, 127.5]
    assert quantized([-3.0, 3.0]).codes.tolist() == [-128, 127]
    assert quantized([1.2, 2.0**31 + 256], profile="bnb_int8_row", scale=127.0).codes.tolist() == [
        1, 0,
    ]  # fmt: skip
    assert quantized([200.0], profile="bnb_int8_row", scale=127.0).codes.tolist() == [-56]


def test_the_way_back():
    """AFF-009: one product, rounded to the dtype of x; 127 divides by a rounded reciprocal."""
    x = np.array([0.3], np.float16)
    found = quantized(x, scale=np.float32(0.0123), zero_point=-7)
    steps = np.float32(int(found.codes[0]) + 7)
    assert found.y[0] == np.float16(steps * np.float32(0.0123))
    found = quantized([3.0, 1.0], profile="bnb_int8_row")
    back = np.float32(1) / np.float32(127)
    assert found.y.tolist() == (np.float32(3) * found.codes.astype(np.float32) * back).tolist()
    assert not np.signbit(quantized([-0.001, 5.0]).y[0])


@pytest.mark.parametrize("dtype", SOURCES)
def test_zero_points_of_binary32(dtype):
    """AFF-012: one for each block, tiny, huge and near a tie; the engine is the exact model."""
    x = adversarial((6, 9), 7, dtype)
    scale = np.array([0.0129999, 1.0, 3.3e-5, 1e-40, 2e38, 7.7], np.float32)
    zero = np.array([3.37, 0.5, 100.013, -1e-30, 1e9, -7.25], np.float32)
    how = {"profile": "torch_fake_channel_2_13", "block": "row"}
    found = mor_ref.quantize_affine(x, scale=scale, zero_point=zero, **how)
    profile = with_float_zeros(affine_profile(how["profile"]))
    source = NAMES.get(x.dtype.type, "f32")
    of = affine.Choices(profile, integer_grid("int8"), symmetric=True, source=source)
    given = {(i, 0): affine.ScaleAndZero(float(scale[i]), float(zero[i])) for i in range(6)}
    expected = affine.affine(rows_of(x), of, partition(x.shape, "row"), given)
    elements = [e for row in expected.elements for e in row]
    assert found.codes.ravel().tolist() == [e.code for e in elements]
    assert found.xs.view(np.uint32).ravel().tolist() == [bits32(e.xs) for e in elements]
    assert found.y.view(np.uint32).ravel().tolist() == [bits32(e.y) for e in elements]
    assert found.zero_point[:, 0].tolist() == zero.tolist()
    with pytest.raises(ValueError, match="zero_point is .*, which is no finite number of binary32"):
        quantized([1.0], zero_point=math.inf, **how)


# ---------------------------------------------------------------------- PEG


def test_groups_of_dimensions():
    """AFF-010: sorted by range, ties by index, NaN last; fields are in the order of x."""
    x = np.array([[9, 0, 1, -1, 0, 5], [0, 1, 0, 0, 2, 5]], np.float32)
    found = quantized(x, profile="peg", groups=3, permute="range", symmetric=False)
    assert found.range.tolist() == [9, 1, 1, 1, 2, 0]
    assert found.permutation.tolist() == [5, 1, 2, 3, 4, 0]
    assert (found.group_min.tolist(), found.group_max.tolist()) == ([[0, -1, 0]], [[5, 1, 9]])
    assert (found.minimum.tolist(), found.maximum.tolist()) == ([[0, -1, 0]], [[5, 1, 9]])
    for k, pair in enumerate(([5, 1], [2, 3], [4, 0])):
        alone = quantized(x[:, pair], profile="peg", symmetric=False)
        assert alone.scale[0, 0] == found.scale[0, k]
        np.testing.assert_array_equal(found.codes[:, pair], alone.codes)
        np.testing.assert_array_equal(found.xs[:, pair], alone.xs)
        np.testing.assert_array_equal(found.y[:, pair], alone.y)
        assert listed(alone.error)[0][0] == listed(found.error)[0][k]
    flat = quantized(x, groups=3)
    assert (flat.range, flat.permutation, flat.group_min, flat.group_max) == (None,) * 4
    assert flat.scale.shape == (1, 3)


@pytest.mark.tier("full")
@given(st.integers(0, 1 << 30), st.sampled_from(SOURCES), st.sampled_from([1, 2, 3, 6, 12]))
def test_the_order_of_the_exact_model(seed, dtype, groups):
    """AFF-010: also with NaN, infinities and equal ranges."""
    x = adversarial((3, 12), seed, dtype)
    x[:, 3], x[:, 7] = x[:, 1], x[:, 1]
    found = mor_ref.quantize_affine(x, profile="peg", groups=groups, permute="range")
    ranges = affine_groups.ranges([list(column) for column in zip(*rows_of(x), strict=True)])
    assert found.range.view(np.uint32).tolist() == [bits32(r) for r in ranges]
    order = affine_groups.by_range(ranges)
    assert found.permutation.tolist() == order
    expected = exact(np.ascontiguousarray(x[:, order]), profile="peg", block=(3, 12 // groups))
    assert found.codes[:, order].ravel().tolist() == expected["codes"]
    assert listed(found.error) == expected["error"]


def test_groups_that_are_refused():
    """AFF-010."""
    with pytest.raises(ValueError, match="groups is 4, which does not divide the 6 columns of x"):
        quantized(np.ones((2, 6)), groups=4)
    with pytest.raises(ValueError, match="permute is 'range', but there are no groups"):
        quantized(np.ones((2, 6)), permute="range")
    with pytest.raises(ValueError, match="permute is 'amax', which is not known"):
        quantized(np.ones((2, 6)), groups=2, permute="amax")
    with pytest.raises(ValueError, match="groups is 2 and block is 'row'; give one of them"):
        quantized(np.ones((2, 6)), groups=2, block="row")


def test_a_sum_of_infinities_has_the_code_of_nan():
    """The zero point of a grid of 16 bits overflows in binary16, and so does the number."""
    x = np.array([[-4.0, -2.0]], np.float16)
    found = exact(x, "uint16", "torchao_0_18", "row", symmetric=False)
    assert found["codes"] == [0, 65535]
    codes = mor_ref.quantize_affine(
        x, "uint16", profile="torchao_0_18", block="row", symmetric=False
    ).codes
    assert codes.tolist() == [[0, 65535]]
