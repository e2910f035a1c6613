"""Theorems on dot products, on random rows."""

import math
from fractions import Fraction

import numpy as np
import pytest

from mor_ref.definitions.dot import DOT_PROFILES, operand_format
from mor_ref.exact.dot import Scales, dot, dot_chunks, in_chunks, products_of
from mor_ref.exact.dot_binary32 import fused, product

CUT = [
    "hopper_fp8",
    "ada_fp8",
    "blackwell_fp8",
    "hopper_bf16",
    "blackwell_mxfp8",
    "blackwell_nvfp4",
]
FREE_OF_ORDER = ["exact", "hopper_fp8", "blackwell_mxfp8", "cdna1_fp16", "cdna3_bf16"]


def row_of(profile, seed, binades=6):
    """Return codes of two rows of a chunk and a half, near each other, and scales and c."""
    random = np.random.default_rng(seed)
    fmt = operand_format(profile.formats[0] if profile.formats else "e4m3")
    count = profile.chunk + profile.chunk // 2 or 40
    most = min(binades, (1 << fmt.exponent_bits) - 2)
    middle = (1 << fmt.exponent_bits - 1) - most // 2
    exponents = random.integers(middle, middle + most, (2, count))
    mantissas = random.integers(0, 1 << fmt.mantissa_bits, (2, count))
    signs = random.integers(0, 2, (2, count)) * fmt.sign_bit
    codes = np.where(random.random((2, count)) < 0.1, 0, exponents << fmt.mantissa_bits | mantissas)
    if fmt.specials == "fnuz":  # a zero with a sign is its NaN
        signs = np.where(codes == 0, 0, signs)
    a, b = (codes | signs).tolist()
    c = float(np.float32(random.normal()))
    scales = None
    if profile.scales:
        name, block = profile.scales[0]
        low = 120 if name == "e8m0" else 48
        of = random.integers(low, low + 16, (2, -(-count // block))).tolist()
        scales = Scales(*of, operand_format(name), block)
    return (a, b, c, profile, (fmt, fmt), scales)


def exact_terms(part, c):
    """Return the exact sum of c and products, and of their magnitudes."""
    terms = [one.element_product * one.scale_product for one in part]
    return sum(terms, Fraction(c)), sum(map(abs, terms), abs(Fraction(c)))


def shuffled(given, order):
    a, b, c, profile, of, scales = given
    if scales is None:
        return ([a[k] for k in order], [b[k] for k in order], c, profile, of, None)
    blocks = [k // scales.block for k in order]
    own = Scales([scales.a[n] for n in blocks], [scales.b[n] for n in blocks], scales.fmt, 1)
    return ([a[k] for k in order], [b[k] for k in order], c, profile, of, own)


@pytest.mark.parametrize("name", FREE_OF_ORDER)
def test_a_chunk_is_free_of_order(name):
    """THM-007: exact as a whole; else any order inside of a chunk."""
    profile = DOT_PROFILES[name]
    for seed in range(20):
        given = row_of(profile, seed)
        random = np.random.default_rng(seed + 1000)
        length = profile.chunk or len(given[0])
        places = range(0, len(given[0]), length)
        parts = [random.permutation(range(k, min(k + length, len(given[0])))) for k in places]
        order = [int(k) for part in parts for k in part]
        assert dot(*shuffled(given, order)) == dot(*given)


def test_groups_are_free_of_order():
    """THM-007: sixteen products of a group, and the groups of a chunk."""
    profile = DOT_PROFILES["blackwell_nvfp4"]
    for seed in range(10):
        given = row_of(profile, seed)
        random = np.random.default_rng(seed)
        groups = [random.permutation(range(k, k + 16)) for k in (32, 0, 48, 16)]
        order = [int(k) for group in groups for k in group]
        whole = [one[:64] for one in given[:2]]
        row = (*whole, *given[2:])
        a, b, c, profile, of, own = shuffled(row, order)
        own = Scales(own.a[::16], own.b[::16], own.fmt, 16)
        assert dot(a, b, c, profile, of, own) == dot(*row)


def test_another_order_of_chunks_is_another_result():
    """THM-007: so order matters beyond a chunk."""
    profile = DOT_PROFILES["hopper_fp8"]
    given = [row_of(profile, seed) for seed in range(20)]
    reversed_ = [shuffled(one, range(len(one[0]))[::-1]) for one in given]
    assert any(dot(*one) != dot(*other) for one, other in zip(given, reversed_, strict=True))


@pytest.mark.tier("full", but=["[ada_fp8]"])
@pytest.mark.parametrize("name", CUT)
def test_the_error_of_a_chunk_is_bounded(name):
    """THM-008: each term loses less than a unit, and the result less than its own unit."""
    profile = DOT_PROFILES[name]
    lost = 0
    for seed in range(40):
        a, b, c, *rest = row_of(profile, seed)
        parts = in_chunks(products_of(a, b, profile, *rest[1:]), profile)
        for part, chunk in zip(parts, dot_chunks(a, b, c, *rest), strict=True):
            whole, _ = exact_terms(part, c)
            unit = Fraction(2) ** (chunk.exponent - profile.fraction_bits)
            count = sum(one.element_product * one.scale_product != 0 for one in part) + (c != 0)
            assert abs(chunk.cut_sum * unit - whole) < count * unit
            n = profile.kept_bits
            own = max(abs(Fraction(chunk.c)) / 2**n, Fraction(1, 2 ** (126 + n)))
            assert abs(Fraction(chunk.c) - whole) < count * unit + own
            lost += chunk.c != whole
            c = chunk.c
    assert lost


def first_chunk_without_cut_bits(a, b, profile, of, scales):
    """Return the first chunk, and its exact sum, if no bit of it is cut (THM-009)."""
    part = in_chunks(products_of(a, b, profile, of, scales), profile)[0]
    chunk = dot_chunks(a, b, 0.0, profile, of, scales)[0]
    unit = chunk.exponent - profile.fraction_bits
    exponents = [
        one.a.exponent + one.b.exponent + one.scale_a.exponent + one.scale_b.exponent
        for one in part
        if one.element_product != 0
    ]
    if min(exponents) < unit + 2 * of[0].mantissa_bits:
        return None
    whole, _ = exact_terms(part, 0.0)
    assert chunk.cut_sum * Fraction(2) ** unit == whole
    assert unit >= -126 - profile.kept_bits
    return chunk, whole


@pytest.mark.tier("full", but=["[hopper_bf16]"])
@pytest.mark.parametrize("name", ["hopper_fp8", "blackwell_fp8", "blackwell_mxfp8", "hopper_bf16"])
def test_a_chunk_without_cut_bits_is_exact(name):
    """THM-009: the smallest products that a cut leaves as they are."""
    profile = DOT_PROFILES[name]
    exact = 0
    for seed in range(200):
        a, b, _, *rest = row_of(profile, seed, binades=2)
        found = first_chunk_without_cut_bits(a, b, *rest)
        if found and abs(found[0].cut_sum) < 2 ** (profile.kept_bits + 1):
            assert found[0].c == found[1] < 2**128
            exact += 1
    assert exact > 10


@pytest.mark.parametrize(("name", "bits"), [("blackwell_nvfp4", 3), ("blackwell_mxfp4", 0)])
def test_a_chunk_of_groups_without_cut_bits_is_exact(name, bits):
    """THM-009: the least difference of exponents that the condition takes, and c far below 2^23."""
    profile, exact = DOT_PROFILES[name], 0
    fmt = operand_format("e4m3" if bits else "e8m0")
    random = np.random.default_rng(9)
    most = profile.fraction_bits - 2 - 2 * bits  # of E - e_g
    for _ in range(20):
        a, b = random.integers(0, 16, (2, profile.chunk)).tolist()
        lowest, span = (1, min(most // 2, 14)) if bits else (120, most // 2)
        fields = lowest + np.array([0, span, *random.integers(0, span + 1, 2)])
        codes = (fields << bits | (random.integers(0, 8, 4) if bits else 0)).tolist()
        part = Scales(codes, codes, fmt, 16)
        row = a, b, profile, (operand_format("e2m1"),) * 2, part
        (products,) = in_chunks(products_of(*row), profile)
        (chunk,) = dot_chunks(row[0], row[1], 0.0, *row[2:])
        least = min(2 * int(field) for field in fields) - 2 * fmt.bias
        if chunk.exponent - least > most:
            continue
        whole, _ = exact_terms(products, 0.0)
        assert chunk.cut_sum * Fraction(2) ** (chunk.exponent - profile.fraction_bits) == whole
        if abs(chunk.cut_sum) < 2 ** (profile.kept_bits + 1):
            assert chunk.c == whole
        exact += 1
    assert exact > 10


def test_partial_sums_without_cut_bits_are_exact():
    """THM-009: sums of 1 and -1 in promoted, with scales, from chunks that have no cut bits."""
    promoted, plain = DOT_PROFILES["hopper_fp8_promoted"], DOT_PROFILES["hopper_fp8"]
    fmt, random, c = operand_format("e5m2"), np.random.default_rng(9), 0.75
    numbers = random.choice([-1.0, 1.0], (2, 256))
    a, b = ([0x3C if x > 0 else 0xBC for x in row] for row in numbers.tolist())
    scales = Scales([0x3FC00001, 0x40200003], [0x3F800005, 0x3FA00007], operand_format("f32"), 128)
    found = dot_chunks(a, b, c, promoted, (fmt, fmt), scales)
    for n, part in enumerate((slice(0, 128), slice(128, 256))):
        chunks = dot_chunks(a[part], b[part], 0.0, plain, (fmt, fmt))
        assert all(one.exponent - plain.fraction_bits + 4 <= 0 for one in chunks)
        one, other = (scales.fmt.value(codes[n]) for codes in (scales.a, scales.b))
        whole = float((numbers[0] * numbers[1])[part].sum())
        c = fused(product(one, other), whole, c)
        assert (chunks[-1].c, found[n].c) == (whole, c)


def test_a_sum_without_cut_bits_can_overflow():
    """THM-009: 2^254 - 2^254 + 2^243, whose cut sum has few bits."""
    profile, fmt = DOT_PROFILES["hopper_bf16"], operand_format("bf16")
    a, b = ([fmt.bias + e << 7 for e in of] for of in ((127, 127, 122), (127, 127, 121)))
    a[1] |= fmt.sign_bit
    chunk, whole = first_chunk_without_cut_bits(a, b, profile, (fmt, fmt), None)
    assert (chunk.cut_sum, whole, chunk.c) == (2**14, 2**243, math.inf)


def nearest(x):
    """Return how much rounding to binary32 can change a number that becomes x."""
    return max(abs(Fraction(x)) / 2**24, Fraction(1, 2**150))


@pytest.mark.parametrize("name", ["hopper_fp16_f16", "blackwell_fp8_f16"])
def test_the_error_of_a_chunk_in_f16_is_bounded(name):
    """THM-008."""
    profile = DOT_PROFILES[name]
    for seed in range(40):
        a, b, _, *rest = row_of(profile, seed)
        c = float(np.float16(np.random.default_rng(seed).normal()))
        (part, *_), (chunk, *_) = (
            in_chunks(products_of(a, b, profile, *rest[1:]), profile), dot_chunks(a, b, c, *rest)
        )  # fmt: skip
        whole, _ = exact_terms(part, c)
        unit = Fraction(2) ** (chunk.exponent - profile.fraction_bits)
        own = max(abs(Fraction(chunk.c)) / 2**11, Fraction(1, 2**25))
        assert abs(Fraction(chunk.c) - whole) < (len(part) + 1) * unit + own


@pytest.mark.parametrize(
    ("name", "more"), [("cdna3_bf16", 2), ("cdna3_fp16", 2), ("cdna3_fp8", 4), ("cdna1_fp16", 0)]
)
def test_the_error_of_chunks_of_amd_is_bounded(name, more):
    """THM-011: with cut sums, and of one rounding."""
    profile = DOT_PROFILES[name]
    for seed in range(40):
        a, b, c, *rest = row_of(profile, seed)
        parts = in_chunks(products_of(a, b, profile, *rest[1:]), profile)
        for part, chunk in zip(parts, dot_chunks(a, b, c, *rest), strict=True):
            whole, _ = exact_terms(part, c)
            if chunk.cut_sum is None:
                assert abs(Fraction(chunk.c) - whole) <= nearest(chunk.c)
            else:
                v = chunk.cut_sum * Fraction(2) ** (chunk.exponent - 32)
                unit = Fraction(2) ** (chunk.exponent - profile.fraction_bits)
                count = sum(one.element_product != 0 for one in part)
                assert abs(v - whole) < (count + more) * unit
                last = max(abs(v) / 2**23, Fraction(1, 2**149))
                assert abs(Fraction(chunk.c) - v) < last
            c = chunk.c


@pytest.mark.parametrize(("name", "roundings"), [("cdna2_bf16", 3), ("cdna2_fp16", 4)])
def test_the_error_of_cdna2_is_bounded(name, roundings):
    """THM-011: each operation has its own rounding."""
    profile = DOT_PROFILES[name]
    factor = (1 + Fraction(1, 2**24)) ** roundings - 1
    for seed in range(40):
        a, b, c, *rest = row_of(profile, seed)
        parts = in_chunks(products_of(a, b, profile, *rest[1:]), profile)
        for part, chunk in zip(parts, dot_chunks(a, b, c, *rest), strict=True):
            whole, magnitudes = exact_terms(part, c)
            assert abs(Fraction(chunk.c) - whole) <= factor * magnitudes
            c = chunk.c


def test_the_error_of_promoted_sums_is_bounded():
    """THM-011: a fused operation after four chunks."""
    profile, inner = DOT_PROFILES["hopper_fp8_promoted"], DOT_PROFILES["hopper_fp8"]
    for seed in range(20):
        random = np.random.default_rng(seed)
        a, b = (
            random.integers(0x20, 0x50, (2, 128)) | random.integers(0, 2, (2, 128)) << 7
        ).tolist()
        c, *scales = random.normal(size=3).astype(np.float32)
        codes = ([int(one.view(np.uint32))] for one in scales)
        fmt = operand_format("e4m3")
        own = Scales(*codes, operand_format("f32"), 128)
        r = dot(a, b, float(c), profile, (fmt, fmt), own)
        whole, _ = exact_terms(products_of(a, b, inner, (fmt, fmt), None), 0)
        scale = Fraction(float(np.float32(scales[0] * scales[1])))
        chunks = dot_chunks(a, b, 0.0, inner, (fmt, fmt))
        d = abs(Fraction(chunks[-1].c) - whole)
        units = [Fraction(2) ** (one.exponent - inner.fraction_bits) for one in chunks]
        assert d < sum(33 * unit for unit in units) + sum(
            abs(Fraction(x.c)) / 2**13 for x in chunks
        )
        assert abs(Fraction(r) - scale * whole - Fraction(float(c))) <= abs(scale) * d + nearest(r)


@pytest.mark.parametrize(("name", "roundings"), [("f32_fma", 40), ("f32_pairwise", 8)])
def test_the_error_of_binary32_is_bounded(name, roundings):
    """THM-010: of 40 products."""
    profile = DOT_PROFILES[name]
    factor = (1 + Fraction(1, 2**24)) ** roundings - 1
    assert roundings in (40, math.ceil(math.log2(40)) + 2)
    f32 = operand_format("f32")
    for seed in range(40):
        random = np.random.default_rng(seed)
        a, b = random.normal(size=(2, 40)).astype(np.float32).view(np.uint32).tolist()
        given = (a, b, float(np.float32(random.normal())), profile, (f32, f32), None)
        whole, magnitudes = exact_terms(products_of(a, b, *given[3:]), given[2])
        error = abs(Fraction(dot(*given)) - whole)
        assert error <= factor * magnitudes
