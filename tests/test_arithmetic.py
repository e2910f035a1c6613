"""The exact model's binary32 arithmetic against the processor's, and that against IEEE 754."""

import math
import struct
from fractions import Fraction

import numpy as np
import pytest
from extras import imported, needs
from hypothesis import given
from hypothesis import strategies as st

import mor_ref
from mor_ref.exact import arithmetic

PATTERNS = [0, 1, 2, 0x7FFFFF, 0x800000, 0x800001, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x34000000]
PATTERNS += [0x33800000, 0x33800001, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x40490FDB, 0x4B000001]
PATTERNS += [0x1FFFFFFF, 0x20000001, 0x00400001, 0x5F000000]
EDGES = [struct.unpack("<f", struct.pack("<I", p | s))[0] for p in PATTERNS for s in (0, 1 << 31)]
numbers = st.floats(width=32) | st.sampled_from(EDGES)


def same(found, expected):
    """Return whether two numbers are equal as bit patterns, all NaNs alike."""
    if math.isnan(expected):
        return math.isnan(found)
    return struct.pack("<d", found) == struct.pack("<d", float(expected))


def check(a, b):
    x, y = np.float32(a), np.float32(b)
    with np.errstate(all="ignore"):
        assert same(arithmetic.product(a, b), x * y), ("product", a, b)
        assert same(arithmetic.quotient(a, b), x / y), ("quotient", a, b)
        assert same(arithmetic.total(a, b), x + y), ("total", a, b)
        assert same(arithmetic.difference(a, b), x - y), ("difference", a, b)


def test_edges():
    for a in EDGES:
        for b in EDGES:
            check(a, b)


@given(numbers, numbers)
def test_any_numbers(a, b):
    """ART-001."""
    check(a, b)


@given(st.floats(allow_nan=False))
def test_binary64_numbers_are_rounded_as_the_processor_rounds_them(x):
    with np.errstate(all="ignore"):
        assert same(arithmetic.rn32_of_binary64(x), np.float32(x))


@pytest.mark.parametrize("last_bits", [0, 1 << 28, 3 << 28, (1 << 28) - 1, (1 << 28) + 1, 1 << 27])
@pytest.mark.parametrize("exponent", [-399, -150, -149, -148, -127, -126, -30, 0, 126])
def test_a_sure_rounding_is_that_of_each_real_number_nearby(last_bits, exponent):
    """Of numbers with 25 bits and of those next to them, and of their halfway points."""
    for upper_bits in (0, 1, 0x2AAAAA, 0x7FFFFF):
        near = math.ldexp((1 << 52) + (upper_bits << 29) + last_bits, exponent - 52)
        below, above = (Fraction(math.nextafter(near, way)) for way in (-math.inf, math.inf))
        sure = arithmetic.rn32_by_binary64(near)
        nearest = {arithmetic.rn32((Fraction(near) + end) / 2) for end in (below, above)}
        assert {sure} == nearest or (sure is None and last_bits % (1 << 28) == 0)
        assert arithmetic.rn32_by_binary64(-near) == (None if sure is None else -sure)


finite = st.floats(allow_nan=False, allow_infinity=False)
SPREAD = st.floats(1, 2) | st.floats(2.0**-150, 2.0**-120) | st.floats(2.0**120, 2.0**130)


@given(finite | SPREAD, finite | SPREAD)
def test_operations_on_binary64_numbers_are_rounded_once(a, b):
    """As fractions round them: binary64 is rounded to on the way, and must not show."""
    x, y = Fraction(a), Fraction(b)
    assert arithmetic.product(a, b) == arithmetic.rn32(x * y)
    assert arithmetic.total(a, b) == arithmetic.rn32(x + y)
    if b:
        assert arithmetic.quotient(a, b) == arithmetic.rn32(x / y)


def test_a_number_that_becomes_a_tie_in_binary64_is_no_tie():
    a, b = 1 + 2.0**-40, 1 + 2.0**-24 - 2.0**-40
    assert a * b == 1 + 2.0**-24 < Fraction(a) * Fraction(b)
    assert arithmetic.product(a, b) == 1 + 2.0**-23


@given(st.floats(width=32, min_value=0, allow_infinity=False))
def test_bits(x):
    assert arithmetic.bits_of(x) == struct.unpack("<I", struct.pack("<f", abs(x)))[0]


def test_a_rational_number_is_rounded_once():
    """ART-001."""
    just_above_a_tie = 1 + Fraction(1, 2**24) + Fraction(1, 2**200)
    assert arithmetic.rn32(just_above_a_tie) == 1 + 2.0**-23
    assert arithmetic.rn32(1 + Fraction(1, 2**24)) == 1
    assert arithmetic.rn32(Fraction(1, 2**150)) == 0
    assert arithmetic.rn32(Fraction(3, 2**151)) == 2.0**-149


@needs("torch")
def test_a_processor_that_flushes_is_refused():
    """ART-002."""
    torch = imported("torch")
    others = (mor_ref.quantize_nvfp4, mor_ref.mor, lambda x: mor_ref.quantize_mx(x, "e2m1"))
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush")
    try:
        with pytest.raises(RuntimeError, match="this thread flushes subnormal numbers"):
            mor_ref.quantize([1.0], "e4m3")
        for call in others:
            with pytest.raises(RuntimeError, match="this thread flushes"):
                call([1.0])
    finally:
        torch.set_flush_denormal(False)
    mor_ref.quantize([1.0], "e4m3")
