"""amax, ideal scales, the three kinds, and the theorems about them."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mor_ref
from mor_ref import Format, formats
from mor_ref.definitions.scales import SCALINGS, scaled_format
from mor_ref.exact import arithmetic, encode, floor_log2
from mor_ref.exact.scales import amax, group_mantissa, ideal_scale, scale_of_block

SCALED = [fmt for fmt in formats.values() if fmt.bits <= 8 and fmt.sign != "none"]
SCALED = [fmt for fmt in SCALED if fmt.largest >= 4]

# The significands at which divisions round differently, and those next to q_amax's own.
SIGNIFICANDS = [0x800000, 0x800001, 0xC00000, 0xDFFFFF, 0xE00000, 0xE00001, 0xFFFFFE, 0xFFFFFF]
SIGNIFICANDS += [0xAAAAAA, 0xAAAAAB, 0xBFFFFF, 0x9E3779, 0xB504F3, 0xF00000, 0xF00001, 0xEFFFFF]
EXPONENTS = [-149, -148, -140, -127, -126, -125, -118, -1, 0, 1, 8, 9, 15, 16, 100, 126, 127]


def binary32(significand, exponent):
    """Return the binary32 number nearest to significand / 2^23 * 2^exponent, but not 0."""
    value = arithmetic.rn32(Fraction(significand) * Fraction(2) ** (exponent - 23))
    return value or math.ldexp(1.0, -149)


AMAXES = sorted({binary32(s, e) for s in SIGNIFICANDS for e in EXPONENTS} - {math.inf})
amaxes = st.sampled_from(AMAXES) | st.floats(
    min_value=2.0**-149, max_value=arithmetic.FLT_MAX, width=32, exclude_min=False
)
scaled_formats = st.sampled_from(SCALED)


def test_amax_is_of_the_finite_elements():
    """SCL-001."""
    assert amax([1.0, -3.0, math.inf, math.nan, -math.inf]) == 3.0
    assert amax([math.nan, math.inf]) == 0.0
    assert amax([]) == 0.0
    assert amax([0.0, -(2.0**-149)]) == 2.0**-149
    x = np.array([[np.nan, -np.inf, 2.0**-149], [3.4e38, -1.0, np.inf], [np.nan] * 3], np.float32)
    assert mor_ref.quantize(x, "e4m3", block="row").amax.tolist() == [
        [2.0**-149],
        [float(np.float32(3.4e38))],
        [0.0],
    ]


@given(scaled_formats, amaxes)
def test_the_ideal_scale_is_the_division_of_binary32_where_that_does_not_overflow(fmt, a):
    """SCL-002, compared with the processor's division."""
    found = ideal_scale(fmt.largest, a)
    assert 0 <= found.mantissa < 1 << 23
    shift = 0 if a > 2.0**-100 else 60
    quotient = np.float32(fmt.largest * 2.0**-shift) / np.float32(a)
    assert found.value == Fraction(float(quotient)) * 2**shift


def test_formats_that_numbers_are_not_scaled_into():
    """SCL-003."""
    assert [f for f in formats if f in {s.name for s in map(scaled_format, SCALED)}] == [
        s.name for s in SCALED
    ]
    unsigned = Format("u", exponent_bits=4, mantissa_bits=3, bias=7, specials="fn", sign="none")
    for fmt in ("bf16", "f32", "e8m0", "int8_mx", unsigned):
        with pytest.raises(ValueError, match="give a signed format of at most 8 bits whose"):
            mor_ref.quantize([1.0], fmt)


def scales_of(kind, block_amaxes, fmt="e4m3", group="tensor"):
    """Return the engine's scales of blocks of one element with these amaxes."""
    x = np.array([block_amaxes], np.float32)
    return mor_ref.quantize(x, fmt, scaling=kind, block=(1, 1), group=group)


def test_fp32_scales():
    """SCL-004."""
    found = scales_of("fp32", [0.0, 1.0, 3.0, 2.0**-149, 2.0**-119, 3e38])
    thirds = float(np.float32(448) / np.float32(3))
    assert found.scale[0].tolist()[:4] == [1.0, 448.0, thirds, arithmetic.FLT_MAX]
    assert found.scale[0, 4] == 1.75 * 2.0**127
    assert found.scale[0, 5] == np.float32(448) / np.float32(3e38)
    assert found.scale_exponent is None
    assert found.scale_mantissa is None


def test_e8m0_scales():
    """SCL-005."""
    found = scales_of("e8m0", [0.0, 1.0, 3.0, 2.0**-149, 3e38])
    assert found.scale[0].tolist() == [1.0, 256.0, 128.0, 2.0**127, 2.0**-120]
    assert found.scale_exponent.tolist() == [[127, 135, 134, 254, 7]]
    assert found.scale_mantissa is None


def test_gam_scales():
    """GAM-001 to GAM-005, worked by hand: 448 / 3 = (1 + 1/6) * 2^7, and 448 = 1.75 * 2^8."""
    third = 0x155555
    found = scales_of("gam", [3.0, 2.0, 0.0, 2.0**-149, 1.5])
    assert found.scale_mantissa.tolist() == [[third]]
    assert found.scale_exponent.tolist() == [[134, 134, 127, 254, 135]]
    assert [found.scale[0, j] for j in range(3)] == [
        np.float32(448) / np.float32(3),
        np.float32(448) / np.float32(3),
        np.float32(1 + third / 2**23),
    ]


def test_gam_decrements_only_where_the_mantissa_of_the_group_is_greater():
    """GAM-002, GAM-003: of blocks with the group's own mantissa, less, and more by one step."""
    m = ideal_scale(448.0, 3.0).mantissa
    for a in AMAXES:
        own = ideal_scale(448.0, a)
        expected = own.exponent - (m > own.mantissa)
        found = scale_of_block("gam", 448.0, a, m)
        assert found.exponent_code == min(expected, 127) + 127
    assert group_mantissa(448.0, 0.0) == 0


def test_a_group_of_zeros_and_the_largest_exponent():
    """GAM-001, GAM-004."""
    found = scales_of("gam", [0.0, np.nan])
    assert found.scale_mantissa.tolist() == [[0]]
    assert found.scale_exponent.tolist() == [[127, 127]]
    assert scale_of_block("gam", 448.0, 2.0**-149, 5).exponent_code == 254


def test_each_group_has_its_mantissa():
    """GAM-005: with the group, the same block has another scale."""
    x = np.array([[3.0, 1.0], [1.0, 1.0]], np.float32)
    found = mor_ref.quantize(x, "e4m3", block=(1, 1), group="row")
    assert found.scale_mantissa.tolist() == [[0x155555], [0x600000]]
    assert found.scale.tolist() == [
        [float(np.float32(448) / np.float32(3)), float(np.float32(2 * 448) / np.float32(3))],
        [448.0, 448.0],
    ]


@pytest.mark.parametrize("kind", ["fp32", "e8m0"])
def test_groups_are_for_gam(kind):
    """GAM-006."""
    with pytest.raises(ValueError, match=f"group is 'row', but scaling is '{kind}'"):
        mor_ref.quantize(
            np.ones((4, 4), np.float32), "e4m3", scaling=kind, block="row", group="row"
        )


@given(st.sampled_from(SCALINGS), scaled_formats, st.lists(amaxes, min_size=1, max_size=6))
def test_the_engine_has_the_scales_of_the_exact_model(kind, fmt, block_amaxes):
    found = scales_of(kind, block_amaxes, fmt)
    shared = group_mantissa(fmt.largest, max(block_amaxes)) if kind == "gam" else 0
    expected = [scale_of_block(kind, fmt.largest, a, shared) for a in block_amaxes]
    assert found.scale[0].tolist() == [s.value for s in expected]
    if kind != "fp32":
        assert found.scale_exponent[0].tolist() == [s.exponent_code for s in expected]


def test_the_engine_has_the_scales_of_the_exact_model_for_all_edges():
    for fmt in SCALED:
        for kind in SCALINGS:
            found = scales_of(kind, AMAXES, fmt)
            shared = group_mantissa(fmt.largest, max(AMAXES)) if kind == "gam" else 0
            expected = [scale_of_block(kind, fmt.largest, a, shared).value for a in AMAXES]
            assert found.scale[0].tolist() == expected, (fmt.name, kind)


# ---------------------------------------------------------------------- theorems


@given(st.sampled_from(SCALINGS), scaled_formats, amaxes, amaxes, st.floats(0, 1))
def test_nothing_saturates(kind, fmt, one, other, share):
    """THM-001: rounded in a format of the same kind with a larger largest number, none exceeds."""
    a, group = min(one, other), max(one, other)
    scale = scale_of_block(kind, fmt.largest, a, group_mantissa(fmt.largest, group)).value
    x = arithmetic.rn32(Fraction(a) * Fraction(share))
    for number in (a, x):
        xs = arithmetic.product(number, scale)
        assert xs <= float(np.nextafter(np.float32(fmt.largest), np.float32(np.inf)))
        unit = Fraction(2) ** (floor_log2(fmt.largest) - fmt.mantissa_bits)
        assert Fraction(xs) < Fraction(fmt.largest) + unit / 2
        assert encode(xs, fmt, "rne") <= fmt.largest_code


def test_a_scaled_number_may_exceed_the_largest_by_a_step():
    """THM-001: the remark that it does occur."""
    above = [
        a for a in AMAXES if arithmetic.product(a, scale_of_block("fp32", 448.0, a, 0).value) > 448
    ]
    assert above
    x = np.array([above], np.float32)
    assert set(mor_ref.quantize(x, "e4m3", scaling="fp32", block=(1, 1)).codes[0]) == {0x7E}


@given(scaled_formats, amaxes, amaxes)
def test_the_decrement_needs_no_lower_clamp(fmt, one, other):
    """THM-002."""
    a, group = min(one, other), max(one, other)
    own, shared = ideal_scale(fmt.largest, a), ideal_scale(fmt.largest, group)
    stored = scale_of_block("gam", fmt.largest, a, shared.mantissa).exponent_code - 127
    if own.exponent == shared.exponent:
        assert stored == min(own.exponent, 127)
    assert stored >= max(min(shared.exponent, 127), -126)


@given(scaled_formats, amaxes)
def test_the_largest_element_keeps_its_scale(fmt, a):
    """THM-003."""
    own = ideal_scale(fmt.largest, a)
    found = scale_of_block("gam", fmt.largest, a, own.mantissa)
    if own.exponent <= 127:
        assert Fraction(found.value) == own.value


@given(scaled_formats, amaxes)
def test_the_exponent_needs_no_divider(fmt, a):
    """THM-004."""
    q, e = fmt.largest, floor_log2
    borrows = Fraction(a) / Fraction(2) ** e(a) > Fraction(q) / Fraction(2) ** e(q)
    assert ideal_scale(q, a).exponent == e(q) - e(a) - borrows


def decrements(q, a, m):
    """Return whether m is greater than the mantissa of the block, by integers alone (THM-006)."""
    numerator, significand = (
        int(Fraction(x) / Fraction(2) ** (floor_log2(x) - 23)) for x in (q, a)
    )
    doubled = numerator * (2 if significand > numerator else 1)
    return doubled << 24 < significand * (2 * (2**23 + m) - 1)


@given(scaled_formats, amaxes, st.integers(0, 2**23 - 1))
def test_the_decrement_needs_no_divider(fmt, a, m):
    """THM-006."""
    own = ideal_scale(fmt.largest, a).mantissa
    for near in (m, own - 1, own, own + 1):
        if 0 <= near < 2**23:
            assert decrements(fmt.largest, a, near) == (near > own)


def test_the_decrement_needs_no_divider_at_the_edges():
    """THM-006: the mantissas next to that of each amax of the suites."""
    for fmt in SCALED:
        for a in AMAXES:
            own = ideal_scale(fmt.largest, a).mantissa
            for near in (0, own - 1, own, own + 1, 2**23 - 1):
                if 0 <= near < 2**23:
                    assert decrements(fmt.largest, a, near) == (near > own)


@given(amaxes)
def test_e4m3_and_e5m2_share_the_mantissa(a):
    """THM-005."""
    small, large = ideal_scale(448.0, a), ideal_scale(57344.0, a)
    assert small.mantissa == large.mantissa
    assert large.exponent - small.exponent == 7


@pytest.mark.parametrize("columns", [16, 48, 50, 4320])
def test_blocks_at_the_ends_of_strips(columns):
    """SCL-001: a loop takes strips of 2,048 columns; a block is the same as one that is alone."""
    x = np.random.default_rng(columns).standard_normal((2, 4320)).astype(np.float32)
    x *= np.exp2(np.arange(4320) // columns % 7, dtype=np.float32)
    whole = mor_ref.quantize(x, "e4m3", scaling="fp32", block=(1, columns))
    for k, left in enumerate(range(0, x.shape[1], columns)):
        part = x[:, left : left + columns]
        alone = mor_ref.quantize(part, "e4m3", scaling="fp32", block=(1, columns))
        np.testing.assert_array_equal(whole.scale[:, k : k + 1], alone.scale)
        np.testing.assert_array_equal(whole.codes[:, left : left + columns], alone.codes)
