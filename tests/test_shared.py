"""Shared exponents: the engine is the exact model, both are Quark's kernels, and rules by hand."""

import ml_dtypes
import numpy as np
import pytest
from extras import needs
from hypothesis import given
from hypothesis import strategies as st
from modes import MODES, has_modes, modes
from records import SOURCES, adversarial, bits32, rows_of, shapes

import mor_ref
from mor_ref import golden
from mor_ref.analysis import compare
from mor_ref.operations import OPERATIONS
from mor_ref.recipes import as_tensor_recipe, short_text
from mor_ref.schemes.shared.definition import (
    BLOCK,
    SHARED_KINDS,
    SHARED_PROFILES,
    shared_kind,
    shared_profile,
)
from mor_ref.schemes.shared.exact import element, packed, shared, shared_block
from mor_ref.schemes.shared.recipe import Shared
from mor_ref.verify import assert_bit_exact

MX = {"mx9": 7, "mx6": 4, "mx4": 2}
NAN = 0x7FFFFFFF


def exact(x, kind, profile):
    """Return every field of the exact model, as lists."""
    of, by = shared_kind(kind), shared_profile(profile)
    numbers = rows_of(x)
    found = shared(numbers, of, by)
    width = len(numbers[0]) if numbers else 0
    rows = [[shared_block(row[k : k + BLOCK], of, by) for k in range(0, width, BLOCK)]
            for row in numbers]  # fmt: skip
    elements = [e for row in found.elements for e in row]
    across = {"shared_exponent": -(-width // BLOCK), "tau": -(-width // 2)}
    by_place = {"shared_exponent": found.exponent, "tau": found.tau}
    return {
        **{
            name: [[by_place[name][i, j] for j in range(across[name])] for i in range(len(numbers))]
            for name in across
        },
        "magnitude": [e.magnitude for e in elements],
        "sign": [e.sign for e in elements],
        "codes": [e.code for e in elements],
        "y": [bits32(e.y) for e in elements],
        "packed": [[b for block in row for b in packed(block, of)] for row in rows],
    }


def listed(found):
    """Return every field of a record, as lists."""
    by_block = {n: getattr(found, n).tolist() for n in ("shared_exponent", "tau", "packed")}
    by_number = {n: getattr(found, n).ravel().tolist() for n in ("magnitude", "sign", "codes")}
    return {**by_block, **by_number, "y": found.dequantize().view(np.uint32).ravel().tolist()}


def of_bits(*words):
    return np.array(words, np.uint32).view(np.float32)


def quantized(numbers, kind, profile="quark_torch"):
    return mor_ref.quantize_shared(np.array(numbers, np.float32), kind, profile=profile)


def numbers_at_edges(seed, rows=300):
    """Return blocks at ties, next to them, at the ends of binades, and with special numbers."""
    random = np.random.default_rng(seed)
    exponent = random.integers(0, 255, (rows, 1)) + random.integers(-3, 2, (rows, BLOCK))
    bits = random.choice([16, 17, 18, 19, 20, 21, 22], (rows, BLOCK))
    mantissa = random.integers(0, 128, (rows, BLOCK)) << bits & 0x7FFFFF
    near = mantissa + random.choice([0, 0, 0, -1, 1, 0x7FFFFF], (rows, BLOCK))
    words = np.clip(exponent, 0, 254) << 23 | near & 0x7FFFFF
    special = [0, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000]
    words = np.where(random.random(words.shape) < 0.03, random.choice(special, words.shape), words)
    signs = random.integers(0, 2, words.shape) << 31
    return (words | signs).astype(np.uint32).view(np.float32)


@pytest.mark.tier("full", but_one_in=2)
@pytest.mark.parametrize("profile", SHARED_PROFILES)
@pytest.mark.parametrize("kind", SHARED_KINDS)
def test_the_engine_is_the_exact_model(kind, profile):
    """SHX-002 to SHX-007: also on edge blocks, vectors, scalars and empty tensors."""
    x = numbers_at_edges(1, rows=60)
    assert listed(quantized(x, kind, profile)) == exact(x, kind, profile)
    for seed, shape in enumerate(
        [(5, 37), (1, 70), (33, 1), (1, 1), (), (0, 4), (3, 0), (2, 3, 17)]
    ):
        x = adversarial(shape, seed, SOURCES[seed % 4])
        found = mor_ref.quantize_shared(x, kind, profile=profile)
        assert listed(found) == exact(x, kind, profile), shape


@given(
    shapes, st.integers(0, 1 << 30), st.sampled_from(SOURCES),
    st.sampled_from(list(SHARED_KINDS)), st.sampled_from(list(SHARED_PROFILES)),
)  # fmt: skip
def test_any_tensor(shape, seed, dtype, kind, profile):
    x = adversarial(shape, seed, dtype)
    found = mor_ref.quantize_shared(x, kind, profile=profile)
    assert listed(found) == exact(x, kind, profile)


@pytest.mark.parametrize("profile", SHARED_PROFILES)
@pytest.mark.parametrize("kind", SHARED_KINDS)
def test_codes_with_exponents_of_other_blocks(kind, profile):
    """SHX-005 and SHX-007: also with exponents and shifts that no block of the number has."""
    of, by = shared_kind(kind), shared_profile(profile)
    x, random = numbers_at_edges(7, rows=40).reshape(-1, 1), np.random.default_rng(7)
    near = (x.view(np.uint32) >> 23 & 255).astype(int) + random.integers(-9, 9, x.shape)
    ends = random.choice([0, 1, 254, 255], x.shape)
    exponent = np.where(random.random(x.shape) < 0.1, ends, near)
    given = {
        "shared_exponent": np.clip(exponent, 0, 255).astype(np.uint8),
        "tau": random.integers(0, 1 + of.shifts, x.shape).astype(np.uint8),
    }
    parameters = {"kind": kind, "profile": profile, "block": BLOCK, "source": "f32"}
    found = OPERATIONS["shared"].way_back.coded(parameters, {"x": x.view(np.uint32), **given})
    numbers = zip(x.ravel().tolist(), *(a.ravel().tolist() for a in given.values()), strict=True)
    assert found.ravel().tolist() == [element(*each, of, by).code for each in numbers]


def test_threads_and_slices_change_nothing():
    """SHX-001: of a tensor that several threads share, in each source."""
    x = adversarial((700, 450), 3, np.float32)
    for dtype in SOURCES:
        with np.errstate(all="ignore"):
            y = x.astype(dtype)
        once, more = (mor_ref.quantize_shared(y, "mx6", threads=n) for n in (1, 2))
        assert listed(once) == listed(more)
        rows = [mor_ref.quantize_shared(row, "mx6").codes for row in y[::100]]
        np.testing.assert_array_equal(once.codes[::100], rows)


# ---------------------------------------------------------------------- other software


def by_quark_onnx(x, mantissa_bits):
    """Return y as Quark's kernel for ONNX Runtime computes it: by shifts of significands."""
    words = x.view(np.uint32).astype(np.int64).reshape(-1, BLOCK)
    field = words >> 23 & 255
    block = field.max(1, keepdims=True)
    pair = np.repeat(field.reshape(-1, BLOCK // 2, 2).max(2), 2, axis=1)
    down = np.minimum(block - pair, 1)
    significand = np.where(field == 0, 0, words & 0x7FFFFF | 0x800000)
    cut = np.minimum(block - down - field + 24 - mantissa_bits, 40)
    whole, rest = significand >> cut, significand & (1 << cut) - 1
    up = (rest > 1 << cut - 1) | ((rest == 1 << cut - 1) & (whole % 2 == 1))
    whole += up & (whole < (1 << mantissa_bits) - 1)
    y = np.ldexp(whole.astype(np.float64), block - 127 - down + 1 - mantissa_bits)
    y = np.where(block == 255, np.nan, np.where(words >> 31, -y, y))
    return y.astype(np.float32).reshape(x.shape)


def by_quark_torch(x, element_bits):
    """Return y as Quark's function for torch computes it: a division, a rounding and a clamp."""
    import torch

    t = torch.from_numpy(x.copy()).reshape(-1, BLOCK)
    t = torch.where(t.abs() < 2.0**-126, torch.zeros(()), t)
    field = torch.nan_to_num(t, nan=0.0, posinf=0.0, neginf=0.0).view(torch.int32) >> 23 & 255
    block = field.amax(1, keepdim=True)
    below = (field < block).reshape(-1, BLOCK // 2, 2).all(2).repeat_interleave(2, dim=1)
    step = torch.ldexp(torch.ones_like(t), block - 127 - below.int() - element_bits + 2)
    most = 2.0 ** (element_bits - 1) - 1
    y = torch.clamp(torch.round(t / step), -most, most) * step
    return torch.where(torch.isfinite(t), y, t).reshape(x.shape).numpy()


def same_bits(found, expected):
    """Compare bits; every NaN is the canonical one."""
    bits = [np.where(np.isnan(y), NAN, y.view(np.uint32)) for y in (found, expected)]
    np.testing.assert_array_equal(*bits)


@pytest.mark.parametrize("kind", MX)
def test_the_kernel_of_quark_for_onnx(kind):
    """SHX-003, SHX-005, SHX-006: NaN blocks and signs of zeros included (SHX-002)."""
    for x in (numbers_at_edges(2), np.where(np.isfinite(found := numbers_at_edges(3)), found, 1)):
        y = x.astype(np.float32)
        same_bits(quantized(y, kind, "quark_onnx").y, by_quark_onnx(y, MX[kind]))


@needs("torch")
@pytest.mark.parametrize("kind", MX)
def test_the_function_of_quark_for_torch(kind):
    """SHX-003, SHX-005, SHX-006: NaN and infinities pass, and subnormal numbers are +0."""
    x = numbers_at_edges(4)
    same_bits(quantized(x, kind).y, by_quark_torch(x, MX[kind] + 1))


def by_quark_blocks(x, carries):
    """Return y as Quark's two kernels for BFP compute it, by divisions, where it is not a zero."""
    x = x.reshape(-1, BLOCK).astype(np.float64)
    exponent = np.frexp(np.abs(x).max(1, keepdims=True))[1] - 1
    whole = np.rint(np.ldexp(x, 6 - exponent))
    if not carries:
        return np.ldexp(np.clip(whole, -127, 127), exponent - 6).astype(np.float32)
    exponent = exponent + ((whole >= 128) | (whole < -128)).any(1, keepdims=True)
    return np.ldexp(np.rint(np.ldexp(x, 6 - exponent)), exponent - 6).astype(np.float32)


@pytest.mark.parametrize("kind", ["bfp16", "bfp16_carry"])
def test_the_kernels_of_quark_for_blocks(kind):
    """SHX-004: equal on normal numbers that are finite; signs of zeros are compared elsewhere."""
    x = numbers_at_edges(5)
    ordinary = np.isfinite(x) & (np.abs(x) > 2.0**-100) & (np.abs(x) < 2.0**120)
    x = np.where(ordinary, x, np.float32(1.5)).astype(np.float32)
    expected = by_quark_blocks(x, kind == "bfp16_carry").reshape(x.shape)
    np.testing.assert_array_equal(quantized(x, kind).y, expected)


# ---------------------------------------------------------------------- by hand


def test_blocks_and_names():
    """SHX-001."""
    found = quantized(np.ones((3, 40)), "mx9")
    assert (found.shared_exponent.shape, found.tau.shape, found.codes.shape) == (
        (3, 3), (3, 20), (3, 40),
    )  # fmt: skip
    assert repr(found) == "<3x40 as mx9, quark_torch: 9 blocks of 16>"
    with pytest.raises(ValueError, match="representation is 'mx8', which is not known"):
        quantized([1.0], "mx8")
    with pytest.raises(ValueError, match="profile is 'onnx', which is not known"):
        quantized([1.0], "mx9", "onnx")


def test_the_exponent_of_a_block():
    """SHX-002: the largest exponent field; NaN and infinities make a NaN block, or are left out."""
    assert quantized([0.75, 4.0], "mx6").shared_exponent.tolist() == [[129]]
    assert quantized(of_bits(0x007FFFFF, 0), "mx6").shared_exponent.tolist() == [[0]]
    special = [1.0, np.inf, np.nan, -np.inf]
    passing = quantized(special, "mx6")
    assert passing.shared_exponent.tolist() == [[127]]
    assert passing.y.view(np.uint32).tolist() == [0x3F800000, 0x7F800000, NAN, 0xFF800000]
    lost = quantized(special, "mx6", "quark_onnx")
    assert lost.shared_exponent.tolist() == [[255]]
    assert lost.y.view(np.uint32).tolist() == [NAN] * 4
    assert lost.codes.tolist() == lost.tau.ravel().tolist() * 2 == [0] * 4


def test_the_shift_of_a_pair():
    """SHX-003: 1 if both numbers lie below the binade of the block, and never more."""
    x = [1.0, 0.01, 0.99, 0.5, 0.25, 0.25, np.nan, 0.3, np.inf, 1.5, 0.0, 0.0]
    assert quantized(x, "mx4").tau.tolist() == [[0, 1, 1, 1, 0, 1]]
    assert quantized([0.0] * 4, "mx4").tau.tolist() == [[0, 0]]
    assert quantized([1.0, 1.0, 0.1, 0.1], "bfp16").tau.tolist() == [[0, 0]]
    assert quantized([1.0, 0.5, 0.5], "mx4").tau.tolist() == [[0, 1]]


def test_the_next_exponent():
    """SHX-004: 255/128 rounds to 128 units, -255/128 to -128, which two's complement has."""
    up = of_bits(0x3FFF0000)[0]
    assert quantized([up, 0.1], "bfp16").magnitude.tolist() == [127, 6]
    carried = quantized([up, 0.1], "bfp16_carry")
    assert (carried.shared_exponent.tolist(), carried.magnitude.tolist()) == ([[128]], [64, 3])
    negative = quantized([-up, 0.1], "bfp16_carry")
    assert (negative.shared_exponent.tolist(), negative.codes.tolist()) == ([[127]], [0x80, 6])
    assert negative.y[0] == -2
    last = quantized(of_bits(0x7F7FFFFF, 0xFF7FFFFF), "bfp16_carry")
    assert (last.shared_exponent.tolist(), last.magnitude.tolist()) == ([[254]], [127, 127])


def test_magnitudes_and_signs():
    """SHX-005: ties go to even, the largest magnitude is a limit, and zeros have a sign or none."""
    ties = quantized([4.0, 0.5, 1.5, 2.5, -3.5], "mx4").magnitude.tolist()
    assert ties == [2, 0, 2, 2, 3]  # in units of 2, 2, 1, 1 and 1
    assert quantized([1.99, 1.0, 0.999, 0.5], "mx6").magnitude.tolist() == [15, 8, 15, 8]
    x = [1.0, -1e-9, -0.0, -1e-40, np.nan, -np.inf]
    assert quantized(x, "mx9").sign.tolist() == [0, 1, 0, 0, 0, 1]
    assert quantized(x[:4], "mx9", "quark_onnx").sign.tolist() == [0, 1, 1, 1]
    assert quantized(x, "mx9").magnitude.tolist() == [64, 0, 0, 0, 0, 127]


def test_what_codes_stand_for():
    """SHX-006: y is exact, also if the unit is subnormal."""
    x = of_bits(0x00800000, 0x80810000, 0x00FF0000, 0x00FFFFFF)
    assert quantized(x, "mx9").y.view(np.uint32).tolist() == [
        0x00800000, 0x80800000, 0x00FE0000, 0x00FE0000,
    ]  # fmt: skip
    zero = quantized(of_bits(0x007FFFFF), "mx9").y
    assert zero.view(np.uint32).tolist() == [0]


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("mx9", [127, 0b10, *[64, 0, 0x80 | 64, 1], *[0] * 12]),
        ("mx6", [127, 0b10, 0x08, 0x60, *[0] * 8]),
        ("mx4", [127, 0b10, 0x82, 0x01, *[0] * 4]),
        ("bfp16", [127, 64, 0, 0x80 | 32, 0, *[0] * 12]),
        ("bfp16_carry", [127, 64, 0, 0xE0, 0, *[0] * 12]),
    ],
)
def test_packed(kind, row):
    """SHX-007: the exponent, the shifts and the codes, from the lowest bit up."""
    assert quantized([[1.0, 0.0, -0.5, 0.004]], kind).packed.tolist() == [row]


@pytest.mark.parametrize("kind", SHARED_KINDS)
def test_packed_bits_for_each_number(kind):
    """SHX-007: 9, 6 and 4 bits a number are what the kinds are named after."""
    bits = {"mx9": 9, "mx6": 6, "mx4": 4, "bfp16": 8.5, "bfp16_carry": 8.5}[kind]
    assert quantized(np.ones((2, 32)), kind).packed.shape == (2, 32 * bits / 8)


@has_modes
def test_modes_of_the_processor_change_nothing():
    """SHX-005: subnormal units are integers here, where others would flush them."""
    x = of_bits(*range(0x00800000, 0x00880000, 0x7FFF))
    expected = listed(quantized(x, "mx9"))
    with modes(MODES["FTZ"] | MODES["DAZ"] | MODES["up"]):
        assert listed(mor_ref.quantize_shared(x, "mx9")) == expected


def test_narrow_sources_are_widened():
    """SHX-001: bfloat16 and binary16 are exact in binary32, whose exponents count."""
    for dtype in (ml_dtypes.bfloat16, np.float16):
        x = np.array([6e-8, 1.5, -2.25], dtype)
        same = mor_ref.quantize_shared(x.astype(np.float32), "mx6")
        assert listed(mor_ref.quantize_shared(x, "mx6")) == listed(same)


# ---------------------------------------------------------------------- recipes


@pytest.mark.parametrize(
    "recipe", [*SHARED_KINDS.specified, "mx4:quark_onnx", "bfp16_carry:quark_onnx"]
)
def test_recipes_of_own_tensors(recipe):
    """MOR-007: short texts, the bits of a number, and the way back of finite numbers."""
    one = as_tensor_recipe(recipe)
    kind, _, profile = recipe.partition(":")
    assert one == Shared(kind, profile or "quark_torch") == as_tensor_recipe(one.text)
    assert as_tensor_recipe(short_text(one)) == one
    x = numbers_at_edges(5, rows=40)
    x = np.where(np.isfinite(x), x, np.float32(1))
    assert mor_ref.verify("numba", inputs={"x": x}, recipe=recipe).verdict == "match"
    asked = one.asked
    parameters = {**asked.parameters, "source": "f32"}
    fields = OPERATIONS["shared"].exact(parameters, {"x": x.view(np.uint32)})
    y = OPERATIONS["shared"].way_back.restore(parameters, fields)
    zeros = 0x80000000 if kind == "bfp16_carry" else None  # two's complement has no -0
    np.testing.assert_array_equal(y, np.where(fields["y"] == zeros, 0, fields["y"]))
    bits = compare(x, [recipe])[recipe].bits_per_number
    assert bits == {"mx9": 9, "mx6": 6, "mx4": 4, "bfp16": 8.5, "bfp16_carry": 8.5}[kind]


@pytest.mark.tier("full")
def test_a_record_is_compared_with_its_fields():
    x = numbers_at_edges(6, rows=20)
    expected = mor_ref.quantize_shared(x, "mx6")
    assert_bit_exact(mor_ref.quantize_shared(x, "mx6"), expected)
    with pytest.raises(AssertionError, match="tau"):
        assert_bit_exact({"tau": 1 - expected.tau}, expected, x=x)


@pytest.mark.parametrize("name", ["shared_packed", "levels_packed"])
def test_packed_bytes_are_those_of_the_suites(name):
    """SHX-007 and LVL-008: of blocks and rows of several widths."""
    operation = OPERATIONS[name]
    for case in golden.load(name):
        found = operation.engine(case.parameters, case.arrays)["packed"]
        np.testing.assert_array_equal(found, case.arrays["packed"], case.name)
