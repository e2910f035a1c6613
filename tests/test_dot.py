"""Dot products by hand: the exact model has what the rules say, family by family."""

import math
import re
from dataclasses import replace
from fractions import Fraction

import pytest
from dots import chunks, codes_of, result, scales_of
from records import bits32

from mor_ref import FormatError
from mor_ref.definitions.dot import DOT_PROFILES, DotProfile, operand_format
from mor_ref.exact.arithmetic import rn32
from mor_ref.exact.dot import Scales, dot, in_chunks
from mor_ref.exact.dot_terms import ONE, ZERO, Product

INF = math.inf


@pytest.mark.parametrize(
    ("profile", "numbers"),
    [
        ("hopper_fp8", ("t_fdpa", 32, 13, -133, 13)),
        ("hopper_bf16", ("t_fdpa", 16, 25, -133, 23)),
        ("blackwell_bf16", ("t_fdpa", 16, 25, -133, 23)),
        ("blackwell_fp8", ("t_fdpa", 32, 25, -133, 23)),
        ("ada_fp8", ("t_fdpa", 16, 13, -132, 13)),
        ("blackwell_mxfp8", ("st_fdpa", 32, 25, -133, 23)),
        ("blackwell_mxfp4", ("gst_fdpa", 64, 35, -139, 23)),
        ("blackwell_nvfp4", ("gst_fdpa", 64, 35, -139, 23)),
    ],
)
def test_profiles_have_the_numbers_of_their_rows(profile, numbers):
    """DOT-002."""
    row = DOT_PROFILES[profile]
    found = row.family, row.chunk, row.fraction_bits, row.zero_exponent, row.kept_bits
    assert found == numbers


def test_a_user_adds_a_profile():
    """DOT-002."""
    mine = DotProfile("mine", "t_fdpa", ("e4m3",), 8, 3, -133, "f32", 3)
    assert result(mine, [1, 0.125], [1, 0.5]) == 1.0
    assert result(mine, [1, 0.125], [1, 1]) == 1.125


IMPOSSIBLE = [
    (("a b", "exact"), "profile 'a b' cannot exist: name is 'a b'; give a letter, and then"),
    (("mine", "t_fdpa", (), 8, 41), "fraction_bits is 41 and chunk is 8; give 0 to 40 and 0 to"),
    (("mine", "t_fdpa", (), 129, 4), "fraction_bits is 4 and chunk is 129; give 0 to 40 and 0 to"),
    (("mine", "t_fdpa", (), 0, 4), "chunk is 0; for t_fdpa, give 1 or more"),
    (("mine", "gst_fdpa", (), 40, 4), "chunk is 40; for gst_fdpa, give a multiple of 16"),
    (("mine", "ftz_mul_add", (), 3), "chunk is 3; for ftz_mul_add, give 2 or 4"),
    (("mine", "gtr_fdpa", (), 3), "chunk is 3; for gtr_fdpa, give an even number"),
    (("mine", "promoted", (), 48), "chunk is 48; for promoted, give a divisor of 128"),
    (("mine", "tr_fdpa", (), 4, 33), "fraction_bits is 33; for tr_fdpa, give 0 to 32"),
    (
        ("mine", "t_fdpa", (), 8, 3, -125),
        "zero_exponent is -125, above that of the smallest normal number of f32; give one of at",
    ),
    (("mine", "t_fdpa", (), 8, 3, -13, "f16"), "of the smallest normal number of f16; give one"),
    (("mine", "t_fda"), "family is 't_fda'; give 'exact' or 'f32_fma' or"),
    (("mine", "t_fdpa", (), 8, 3, -133, "bf16"), "result is 'bf16'; give 'f32' or 'f16'"),
    (("mine", "t_fdpa", (), 8.0, 3), "chunk is 8.0; give an int"),
    (("mine", "t_fdpa", (), 8, 3, -133.5), "zero_exponent is -133.5; give an int"),
    (("mine", "t_fdpa", (), 8, 3, -133, "f32", 24), "kept_bits is 24; give 1 to 23"),
    (("mine", "t_fdpa", (), 8, 3, -133, "f32", -3), "kept_bits is -3; give 1 to 23"),
    (("mine", "exact", (), 8), "chunk is 8, which exact does not use; leave it out, or give 0"),
    (("mine", "e_fdpa", (), 4, 3), "fraction_bits is 3, which e_fdpa does not use; leave it out"),
    (("mine", "tr_fdpa", (), 4, 24, -133), "zero_exponent is -133, which tr_fdpa does not use; le"),
    (("mine", "promoted", (), 32, 13, -133, "f16"), "result is 'f16', which promoted does not use"),
    (
        ("mine", "gst_fdpa", (), 64, 35, -139),
        "scales is (), and gst_fdpa needs some; give pairs of",
    ),
    (
        ("mine", "gst_fdpa", (), 64, 35, -139, "f32", 23, (("e4m3", 8),)),
        "scales has a block of 8; for gst_fdpa, give a multiple of 16",
    ),
    (
        ("mine", "t_fdpa", (), 64, 35, -139, "f32", 23, (("f32", 32),)),
        "scales is (('f32', 32),), which t_fdpa does not use; leave it out, or give ()",
    ),
    (
        ("mine", "st_fdpa", (), 64, 35, -139, "f32", 23, ("e8m0", 32)),
        "scales has 'e8m0'; give pairs of the name of a format and a block",
    ),
    (("mine", "t_fdpa", "e4m3", 8, 3, -133), "formats is 'e4m3'; give a tuple"),
    (
        ("mine", "t_fdpa", (), 8, 3, -133, "f32", 23, (), 0, 0, "", 3),
        "wide is 3; give the name of a profile that multiplies bfloat16",
    ),
    (("mine", "t_fdpa", (), 8, 3, -133, "f32", 23, (), -1), "ignored_bits is -1; give 0 to 23"),
    (
        ("mine", "t_fdpa", (), 8, 3, -133, "f32", 23, (), 0, 8),
        "flushed_every is 8, which t_fdpa does not use; leave it out, or give 0",
    ),
    (
        ("mine", "ftz_mul_add", (), 4, 0, 0, "f32", 23, (), 0, -4),
        "flushed_every is -4; give 0, or a multiple of chunk, which is 4",
    ),
    (
        ("mine", "exact", (), 0, 0, 0, "f32", 23, (), 0, 0, "f16"),
        "first_c is 'f16', which exact does not use; leave it out, or give ''",
    ),
    (
        ("mine", "t_fdpa", (), 8, 3, -133, "f16", 10),
        "kept_bits is 10, which a result in f16 does not use; leave it out, or give 23",
    ),
    (
        ("mine", "t_fdpa", ("e4m3", "e5m2"), 32, 13, -132, "f32", 13, (), 13),
        "ignored_bits is 13 and formats is ('e4m3', 'e5m2'); leave it out, or give formats=",
    ),
]


@pytest.mark.parametrize("name", ["exact", "f32_pairwise", "cdna1_fp16", "cdna3_fp16", "cdna3_fp8"])
def test_only_profiles_that_cut_their_results_keep_fewer_bits(name):
    """DOT-012, DOT-014, DOT-015, DOT-017: they round to binary32."""
    with pytest.raises(FormatError, match="kept_bits is 13, which .* does not use; leave it out"):
        replace(DOT_PROFILES[name], kept_bits=13)


@pytest.mark.parametrize(("row", "message"), IMPOSSIBLE, ids=[message for _, message in IMPOSSIBLE])
def test_an_impossible_profile_is_refused(row, message):
    """DOT-002."""
    with pytest.raises(FormatError, match=re.escape(message)):
        DotProfile(*row)


def test_the_result_is_the_last_c():
    """DOT-001: from the given c on, which is the result of no products."""
    of = operand_format("e4m3"), operand_format("e4m3")
    for profile in DOT_PROFILES.values():
        if not profile.needs_scales and profile.family != "int32":
            assert dot([], [], 1.5, profile, of) == 1.5, profile
            found = bits32(dot([], [], -0.0, profile, of))
            assert found == (0 if profile.family == "exact" else 1 << 31), profile
    assert result("hopper_fp8", [1], [1], 1.5) == 2.5
    assert result("hopper_fp8_f16", [1], [1], 65472.0) == 65472


def test_chunks_are_taken_in_order():
    """DOT-003: each chunk takes the c of the one before."""
    big, small = [448] + [0] * 31, [2**-6] * 32
    ahead = chunks("hopper_fp8", big + small, [448] + [1] * 63)
    behind = chunks("hopper_fp8", small + big, [1] * 32 + [448] + [1] * 31)
    assert [one.c for one in ahead] == [448 * 448, 448 * 448]
    assert [one.c for one in behind] == [0.5, 448 * 448]
    assert [one.exponent for one in behind] == [-6, 16]
    assert len(chunks("f32_fma", [1, 2, 3], [1, 2, 3])) == 3
    assert len(chunks("hopper_fp8_promoted", [1] * 129, [1] * 129)) == 2
    assert len(chunks("exact", [1] * 129, [1] * 129)) == 1


def test_the_last_chunk_is_filled_with_zeros():
    """DOT-003: with the scale 1; e0 is at most the exponent of c, so that they change nothing."""
    row = DOT_PROFILES["hopper_bf16"]
    (part,) = in_chunks([Product(ONE, ONE)] * 3, row)
    assert part == [Product(ONE, ONE)] * 3 + [Product(ZERO, ZERO, ONE, ONE)] * 13
    tiny = [2.0**-70] * 16
    for c, exponent in ((0.0, -133), (2.0**-149, -126)):
        for n in (3, 16):
            (one,) = chunks(row, tiny[:n], tiny[:n], c, fmt="bf16")
            assert one.exponent == exponent


def test_a_special_chunk_has_no_fields_but_c():
    """DOT-003: exponent and cut_sum are 0."""
    (one,) = chunks("ada_fp8", [1], [1], INF)
    assert (one.exponent, one.cut_sum, one.c) == (0, 0, INF)
    (one,) = chunks("f32_pairwise", [1], [1])
    assert (one.exponent, one.cut_sum, one.c) == (None, None, 1.0)


def test_a_subnormal_number_has_the_exponent_of_the_smallest_normal_one():
    """DOT-004: 2^-9 of e4m3 has -6, and 2^-149 of binary32 -126."""
    (one,) = chunks("hopper_fp8", [2**-9] * 32, [1] * 32, 2.0**-149)
    assert (one.exponent, one.cut_sum) == (-6, 32 << 10)
    (one,) = chunks("hopper_bf16", [2.0**-130] * 16, [2.0**-126] * 16, 2.0**-149, fmt="bf16")
    assert one.exponent == -126


def test_tf32_has_13_bits_less():
    """DOT-005: also of a NaN, which can become an infinity."""
    f32 = operand_format("f32")
    for name in ("hopper_tf32", "cdna3_xf32"):
        row = DOT_PROFILES[name]
        of = f32, f32
        assert dot([0x3F801FFF], [0x3F802000], 0.0, row, of) == 1 + 2.0**-10
        assert dot([0x7F801FFF], [0x3F800000], 0.0, row, of) == INF
        assert math.isnan(dot([0x7FC00000], [0x3F800000], 0.0, row, of))


def test_scales_belong_to_blocks_and_have_no_sign_in_e4m3():
    """DOT-006."""
    a, b = [1] * 64, [1] * 64
    nvfp4 = operand_format("e4m3")
    ones, others = codes_of([1, 2, 3, 4], "e4m3"), codes_of([-1, 1, 1, 1], "e4m3")
    scales = Scales(ones, others, nvfp4, 16)
    assert result("blackwell_nvfp4", a, b, fmt="e2m1", scales=scales) == 16 * (1 + 2 + 3 + 4)
    assert result("exact", a, b, fmt="e2m1", scales=scales) == 160
    halves = scales_of([0.5, 2], [1, 4], "e8m0", 32)
    assert result("blackwell_mxfp8", a, b, scales=halves) == 32 * (0.5 + 8)
    assert result("exact", a, b, scales=halves) == 272


def test_terms_are_cut_toward_zero():
    """DOT-007: at 2^(E - F); the exponent is not that of the product."""
    (one,) = chunks("hopper_fp8", [1, 2**-7, 2**-7], [1, 2**-6, 2**-7])
    assert (one.exponent, one.cut_sum, one.c) == (0, 8193, 1 + 2**-13)
    (one,) = chunks("hopper_fp8", [1, -1.75 * 2**-6], [1, 1.75 * 2**-7])
    assert (one.exponent, one.cut_sum, one.c) == (0, 8192 - 3, 1 - 3 * 2**-13)
    (one,) = chunks("hopper_fp8", [1.5], [1.5])
    assert (one.exponent, one.cut_sum, one.c) == (0, 18432, 2.25)


def test_c_is_a_term():
    """DOT-007: it can be the largest, and can be cut."""
    (one,) = chunks("hopper_fp8", [1], [2**-6], 300.0)
    assert (one.exponent, one.cut_sum, one.c) == (8, 300 * 32, 300.0)
    (one,) = chunks("hopper_fp8", [16], [1], 2.0**-9 + 2.0**-10)
    assert (one.exponent, one.cut_sum) == (4, 8192 * 1 + 1)
    (one,) = chunks("hopper_fp8", [0], [1], 2.0**-148)
    assert (one.exponent, one.c) == (-126, 0.0)


def test_scales_are_in_the_exponents():
    """DOT-007: the product with the larger scales decides the cut."""
    a, b = [1] * 32 + [1] * 32, [1] * 64
    (first, second) = chunks(
        "blackwell_mxfp8", a, b, scales=scales_of([2.0**-30, 2], [1, 2.0**3], "e8m0", 32)
    )
    assert (first.exponent, first.cut_sum, first.c) == (-30, 32 << 25, 2.0**-25)
    assert (second.exponent, second.cut_sum, second.c) == (4, 32 << 25, 512.0)
    both = scales_of([1], [1], "e8m0", 32)
    (one,) = chunks("blackwell_mxfp8", [1, 2**-9], [1, 1], 2.0**-26, scales=both)
    assert (one.exponent, one.cut_sum) == (0, (1 << 25) + (1 << 16))


@pytest.mark.parametrize("profile", ["hopper_fp16", "cdna1_fp16", "cdna2_fp16", "cdna3_fp16"])
@pytest.mark.parametrize(
    ("a", "b", "c", "wanted"),
    [
        ([INF], [1], 0.0, INF),
        ([INF], [-1], 0.0, -INF),
        ([INF, 1], [1, -INF], 0.0, math.nan),
        ([INF], [0], 0.0, math.nan),
        ([1], [1], -INF, -INF),
        ([INF], [1], -INF, math.nan),
        ([1], [1], math.nan, math.nan),
    ],
)
def test_infinities_and_nan(profile, a, b, c, wanted):
    """DOT-008: in every family alike; the bits of NaN are 0x7FFFFFFF."""
    for name in (profile, "exact", "f32_fma", "f32_pairwise"):
        assert bits32(result(name, a, b, c, fmt="f16")) == bits32(wanted)


@pytest.mark.parametrize(
    ("profile", "wanted"),
    [("cdna1_bf16", -INF), ("exact", -INF), ("f32_pairwise", math.nan), ("cdna2_bf16", math.nan)],
)
def test_an_overflow_is_an_infinite_term_of_operations_alone(profile, wanted):
    """DOT-008: in f32_pairwise and in CDNA 2, and not in a chunk of other families."""
    found = result(profile, [2.0**100, -INF], [2.0**100, 1], fmt="bf16")
    assert bits32(found) == bits32(wanted)


def test_a_nan_scale_makes_the_result_nan():
    """DOT-008: also over zeros."""
    scales = Scales([0xFF], [127], operand_format("e8m0"), 32)
    for name, fmt in (("blackwell_mxfp8", "e4m3"), ("blackwell_mxfp4", "e2m1")):
        assert math.isnan(result(name, [0], [0], fmt=fmt, scales=scales))
        assert math.isnan(result("exact", [0], [0], fmt=fmt, scales=scales))


def test_groups_of_sixteen_are_exact():
    """DOT-009: they have the exponent of their scales, and can cancel."""
    nvfp4 = scales_of([1], [1], "e4m3", 16)
    (one,) = chunks("blackwell_nvfp4", [6, -6, 0.5], [6, 6, 0.5], fmt="e2m1", scales=nvfp4)
    assert (one.exponent, one.cut_sum, one.c) == (0, 1 << 33, 0.25)
    (one,) = chunks("blackwell_nvfp4", [6, -6], [6, 6], 2.0**-36, fmt="e2m1", scales=nvfp4)
    assert (one.exponent, one.cut_sum, one.c) == (0, 0, 0.0)
    (one,) = chunks("blackwell_nvfp4", [6, 0], [0, 6], 2.0**-100, fmt="e2m1", scales=nvfp4)
    assert (one.exponent, one.c) == (-100, 2.0**-100)
    zero = scales_of([0], [1], "e4m3", 16)
    (one,) = chunks("blackwell_nvfp4", [6], [6], 2.0**-100, fmt="e2m1", scales=zero)
    assert (one.exponent, one.c) == (-100, 2.0**-100)
    subnormal = scales_of([2**-9], [2**-9], "e4m3", 16)
    (one,) = chunks("blackwell_nvfp4", [1], [1], fmt="e2m1", scales=subnormal)
    assert (one.exponent, one.cut_sum) == (-12, 1 << 29)


def test_results_are_rounded_toward_zero():
    """DOT-010: to 13 or 23 bits, beyond the largest number to infinity, and zeros are +0."""
    assert result("hopper_fp8", [1, 1, 1.25], [1, 1, 1], 2.0**-13) == 3.25
    assert result("hopper_fp8", [-1, -1, -1.25], [1, 1, 1], -(2.0**-13)) == -3.25
    assert result("hopper_bf16", [1, 1], [1, 1], 2.0**-23, fmt="bf16") == 2.0
    largest = math.ldexp(2**24 - 1, 104)
    assert result("hopper_bf16", [2.0**64] * 2, [2.0**63] * 2, fmt="bf16") == INF
    assert result("hopper_bf16", [-(2.0**80)], [2.0**80], fmt="bf16") == -INF
    assert result("hopper_bf16", [1], [1], largest, fmt="bf16") == largest
    tiny = result("hopper_bf16", [-(2.0**-100)], [2.0**-50], fmt="bf16")
    assert bits32(tiny) == 0
    assert bits32(result("hopper_bf16", [-0.0], [1], -0.0, fmt="bf16")) == 0
    assert result("hopper_bf16", [2.0**-100], [1.5 * 2.0**-49], fmt="bf16") == 2.0**-149


def test_f16_results_are_rounded_to_nearest():
    """DOT-010: ties to even, infinite from 65520 on."""
    assert result("hopper_fp8_f16", [1, 1], [1, 2**-9], 1024.0) == 1025
    assert result("volta_fp16_f16", [1, 1], [1, 0.5], 2048.0, fmt="f16") == 2050
    assert result("volta_fp16_f16", [1, 1], [1, 2], 2048.0, fmt="f16") == 2052
    assert result("volta_fp16_f16", [256], [256], fmt="f16") == INF
    assert result("volta_fp16_f16", [15], [1], 65504.0, fmt="f16") == 65504
    assert result("volta_fp16_f16", [16], [1], 65504.0, fmt="f16") == INF
    assert result("volta_fp16_f16", [2.0**-20], [2.0**-5], fmt="f16") == 0
    assert result("volta_fp16_f16", [1.5 * 2.0**-20], [2.0**-5], fmt="f16") == 2.0**-24


def test_partial_sums_are_promoted():
    """DOT-011: every 128, with a fused operation, from +0 on."""
    a, b = [448] + [0] * 127 + [1] * 128, [448] + [0] * 127 + [2**-6] * 128
    assert result("hopper_fp8", a, b) == 448 * 448
    assert result("hopper_fp8_promoted", a, b) == 448 * 448 + 2
    scales = scales_of([rn32(Fraction(1, 3)), 3], [3, 0.5], "f32", 128)
    third = Fraction(rn32(Fraction(1, 3)))
    first = rn32(Fraction(rn32(third * 3)) * 448 * 448)
    wanted = rn32(Fraction(1.5) * 2 + Fraction(first))
    assert result("hopper_fp8_promoted", a, b, scales=scales) == wanted
    once = rn32(Fraction(2) - Fraction(1, 3))
    assert result("hopper_fp8_promoted", [1], [2], -rn32(Fraction(1, 3))) == once


def test_exact_rounds_once():
    """DOT-012: a zero is +0."""
    many = [448] + [2**-9] * 3
    a, b = [*many, -448], [448, 2**-9, 2**-9, 2**-9, 448]
    assert result("exact", a, b) == 3 * 2.0**-18
    assert bits32(result("exact", [-0.0], [1], -0.0)) == 0
    assert result("exact", [2.0**-126], [2.0**-126], 1.0, fmt="f32") == 1.0
    half = 1 + 2.0**-24
    assert result("exact", [1, 2.0**-24], [1, 1], fmt="f32") == 1.0
    assert result("exact", [1, 2.0**-24, 2.0**-120], [1] * 3, fmt="f32") > half


def test_f32_fma_rounds_once_a_product():
    """DOT-013: with the zeros of IEEE 754."""
    ulp = 2.0**-23
    assert result("f32_fma", [1 + ulp], [1 + ulp], -(1 + 2 * ulp), fmt="f32") == ulp * ulp
    assert result("f32_fma", [1, 2.0**-24, 2.0**-24], [1] * 3, fmt="f32") == 1.0
    assert bits32(result("f32_fma", [-0.0], [1], -0.0, fmt="f32")) == 0x80000000
    assert bits32(result("f32_fma", [-0.0], [1], 0.0, fmt="f32")) == 0
    assert bits32(result("f32_fma", [-1], [1], 1.0, fmt="f32")) == 0
    assert result("f32_fma", [2.0**100], [2.0**100], -INF, fmt="f32") == -INF
    assert result("cdna2_fp32", [3], [5], 1.0, fmt="f32") == 16


def test_f32_pairwise_is_a_tree():
    """DOT-014: neighbours first, the odd one stays, c last."""
    tiny = 2.0**-24
    assert result("f32_pairwise", [1, tiny, tiny, tiny], [1] * 4, fmt="f32") == 1 + 2 * tiny
    assert result("f32_pairwise", [1, tiny, tiny], [1] * 3, fmt="f32") == 1.0
    assert result("f32_pairwise", [tiny, tiny, 1], [1] * 3, fmt="f32") == 1 + 2 * tiny
    assert result("f32_pairwise", [tiny, tiny], [1] * 2, 1.0, fmt="f32") == 1 + 2 * tiny
