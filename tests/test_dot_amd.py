"""Dot products by hand: matrix cores of AMD, and integers."""

import math
from fractions import Fraction

from dots import chunks, result, scales_of
from records import bits32

from mor_ref.exact.arithmetic import rn32
from mor_ref.exact.dot_binary32 import int32_sum
from mor_ref.exact.dot_terms import Factor, Product

INF = math.inf


def test_cdna1_is_exact_in_a_chunk():
    """DOT-015: chunks of four in f16, of two in bf16."""
    a, b = [2.0**15, 1, -(2.0**15), 0, 2.0**-12], [2.0**9, 1, 2.0**9, 0, 2.0**-12]
    assert result("cdna1_fp16", a, b, fmt="f16") == rn32(Fraction(1) + Fraction(2) ** -24)
    of_bf16 = [2.0**24, 1, -(2.0**24)]
    assert result("cdna1_bf16", of_bf16, [1] * 3, fmt="bf16") == 0.0
    assert bits32(result("cdna1_fp16", [-0.0], [1], -0.0, fmt="f16")) == 0


def test_cdna2_flushes():
    """DOT-016: operands, c and each result."""
    assert result("cdna2_fp16", [2.0**-15], [1], fmt="f16") == 0
    assert result("cdna2_bf16", [2.0**-64], [2.0**-63], fmt="bf16") == 0
    assert bits32(result("cdna2_bf16", [-(2.0**-64)] * 2, [2.0**-63] * 2, -0.0, fmt="bf16")) == 0
    assert result("cdna2_bf16", [0], [0], 2.0**-127, fmt="bf16") == 0
    assert result("cdna2_bf16_1k", [2.0**-63] * 4, [2.0**-63] * 4, fmt="bf16") == 2.0**-124
    ulp = 2.0**-24
    assert result("cdna2_bf16", [ulp, ulp, ulp, ulp], [1] * 4, 1.0, fmt="bf16") == 1 + 4 * ulp
    one_by_two = result("cdna2_bf16", [1, ulp, ulp, ulp], [1] * 4, fmt="bf16")
    assert (one_by_two, result("cdna2_bf16_1k", [1, ulp, ulp, ulp], [1] * 4, fmt="bf16")) == (
        1 + 2 * ulp,
        1 + 2 * ulp,
    )


def test_cdna3_rounds_down():
    """DOT-017: a small negative c takes a whole unit, a small positive one adds nothing."""
    assert result("cdna3_bf16", [1], [1], -(2.0**-100), fmt="bf16") == rn32(1 - Fraction(2) ** -24)
    assert result("cdna3_bf16", [1], [1], 2.0**-100, fmt="bf16") == 1.0
    (one,) = chunks("cdna3_bf16", [1], [1], -(2.0**-100), fmt="bf16")
    assert (one.exponent, one.cut_sum) == (0, (1 << 32) - (1 << 8))
    (one,) = chunks("cdna3_bf16", [0], [0], 3.0, fmt="bf16")
    assert (one.exponent, one.cut_sum, one.c) == (1, 3 << 31, 3.0)
    (one,) = chunks("cdna3_bf16", [2.0**-66], [-(2.0**-67)], fmt="bf16")
    assert (one.exponent, one.cut_sum) == (-126, -(1 << 25))
    assert result("cdna3_bf16", [2.0**64], [2.0**64], -INF, fmt="bf16") != -INF
    assert bits32(result("cdna3_bf16", [2.0**-90], [-(2.0**-90)], fmt="bf16")) == 0x80000000
    (one,) = chunks("cdna3_fp16", [1, 2.0**-13], [1, -(2.0**-12)], fmt="f16")
    assert one.cut_sum == 1 << 32


def test_cdna3_adds_even_and_odd_products_of_fp8_apart():
    """DOT-018: a far smaller c counts as 0."""
    for small, kept in ((2**-5, 2.0**-10), (2**-6, 0.0)):
        a, b = [1, 240, small, -240], [1, 240, 2**-5, 240]
        (one,) = chunks("cdna3_fp8", a, b, fmt="e4m3fnuz")
        assert (one.exponent, one.c) == (14, 1 + kept)
    c = -(2.0**-30)
    assert result("cdna3_fp8", [1], [1], c, fmt="e4m3fnuz") == 1.0
    assert result("cdna3_fp8", [1], [1], -(2.0**-25), fmt="e4m3fnuz") == rn32(
        1 - Fraction(2) ** -24
    )
    assert result("cdna3_fp8", [0], [1], c, fmt="e4m3fnuz") == c


def test_int32_wraps_around():
    """DOT-019: and is rounded once."""
    assert result("int32", [-128, 127], [-128, 127], fmt="int8") == 128 * 128 + 127 * 127
    assert int32_sum([Product(Factor(2.0**16, 0), Factor(2.0**15 + 1, 0))]) == 2**16 - 2**31
    a = [127] * 1041 + [1]
    assert result("int32", a, a, fmt="int8") == rn32(Fraction(127 * 127 * 1041 + 1))


def test_switchback_has_two_scales():
    """DOT-020: each product is rounded."""
    scales = scales_of([3], [rn32(Fraction(1, 3))], "f32", 2)
    inner = rn32(Fraction(2 * 127 * 127) * Fraction(rn32(Fraction(1, 127**2))))
    wanted = rn32(Fraction(rn32(Fraction(1, 3))) * Fraction(rn32(Fraction(inner) * 3)))
    found = result("switchback", [127, 127], [127, 127], fmt="int8", scales=scales)
    assert found == wanted


def test_c_survives_under_cdna3_fp8():
    """DOT-008: an infinite c stays, which MMA-Sim 2.1.1 loses."""
    assert result("cdna3_fp8", [240], [240], INF, fmt="e4m3fnuz") == INF
    assert math.isnan(result("cdna3_fp8", [240], [240], math.nan, fmt="e4m3fnuz"))
