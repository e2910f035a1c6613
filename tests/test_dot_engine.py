"""Dot products: the engine is the exact model, profile by profile, with every field of a chunk."""

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from records import bits32

import mor_ref
from mor_ref import formats
from mor_ref.arrays import code_dtype
from mor_ref.definitions.dot import DOT_PROFILES, operand_format
from mor_ref.engine.dot_operands import NO_SCALES, binary32_of, forms_of, room_of, rows_of_pairs
from mor_ref.engine.dot_rounding import Pairs
from mor_ref.exact import dot as exact_dot

ANY_FORMAT = ("e4m3", "e5m2", "e2m1", "bf16", "f16", "f32", "e3m2", "e4m3fnuz", "int8_mx", "e8m0")
SCALE_FORMATS = ("e8m0", "f32", "e4m3", "bf16")
LENGTHS = [0, 1, 2, 3, 15, 16, 17, 31, 32, 33, 64, 65, 127, 128, 130, 257]
NAN = 0x7FFFFFFF


def values(codes, fmt):
    return np.array([fmt.value(int(code)) for code in codes.ravel()]).reshape(codes.shape)


def codes_at_edges(random, fmt, shape, special):
    """Return codes whose exponents are often close, with zeros and rows that cancel."""
    found = random.integers(0, fmt.code_count, shape, dtype=np.uint32)
    if random.random() < 0.6 and fmt.exponent_bits:
        fields = 1 << fmt.exponent_bits
        near = random.integers(0, fields) + random.integers(-2, 3, shape)
        rest = found & (fmt.sign_bit | (1 << fmt.mantissa_bits) - 1)
        found = rest | (np.clip(near, 0, fields - 1) << fmt.mantissa_bits).astype(np.uint32)
    if random.random() < 0.3:  # subnormal numbers and the smallest normal ones
        found &= np.uint32(fmt.sign_bit | (2 << fmt.mantissa_bits) - 1)
    found = np.where(random.random(shape) < random.choice([0, 0.1, 0.9]), 0, found)
    if not special:
        found = np.where(np.isfinite(values(found, fmt)), found, 1)
    return found.astype(code_dtype(fmt))


def cancelling(random, a, b, of):
    """Return b with the last half of the products opposite to the first half."""
    half = a.shape[1] // 2
    if of[1].sign != "sign-magnitude" or half == 0 or random.random() < 0.7:
        return a, b
    a[:, half : 2 * half], b[:, half : 2 * half] = a[:, :half], b[:, :half] ^ of[1].sign_bit
    return a, b


def case(profile, seed, rows=4):
    """Return the arguments of `dot_chunks`."""
    random = np.random.default_rng(seed)
    special, columns = random.random() < 0.25, int(random.choice(LENGTHS))
    names = profile.formats or ANY_FORMAT
    of = tuple(operand_format(str(random.choice(names))) for _ in "ab")
    a, b = (codes_at_edges(random, fmt, (rows, columns), special) for fmt in of)
    if profile.formats or of[1].specials != "fnuz":
        a, b = cancelling(random, a, b, of) if of[0] == of[1] else (a, b)
    found = {"formats": of, "profile": profile, "c": None}
    if profile.family not in ("int32", "switchback"):
        start = formats[profile.start]
        c = values(codes_at_edges(random, start, (rows,), special), start)
        found["c"] = (c * random.choice([0, 1, 1])).astype(np.float32)
    known = profile.scales
    if profile.family == "exact":
        known = [(name, block) for name in SCALE_FORMATS for block in (1, 7, 32, 300)]
    if known and (profile.needs_scales or random.random() < 0.5):
        name, block = known[random.integers(len(known))]
        block = block or max(columns, 1)
        shape = (rows, -(-columns // block))
        scales = [codes_at_edges(random, formats[name], shape, special) for _ in "ab"]
        found |= {"scales": scales, "scale_format": name, "block": block}
    return a, b, found


def exact_rows(a, b, c, formats, profile, scales=None, scale_format=None, block=None):
    """Return the chunks of each row by the exact model, as lists of fields."""
    rows = []
    for n in range(len(a)):
        of_row = None
        if scales is not None:
            codes = (scales[0][n].tolist(), scales[1][n].tolist())
            of_row = exact_dot.Scales(*codes, operand_format(scale_format), block)
        start = 0.0 if c is None else float(c[n])
        pair = a[n].tolist(), b[n].tolist()
        rows.append(exact_dot.dot_chunks(*pair, start, profile, formats, of_row))
    return rows


def check(a, b, arguments):
    """Compare each field of each chunk, and the result."""
    expected = exact_rows(a, b, **arguments)
    found = mor_ref.dot_chunks(a, b, **arguments)
    assert found.c.view(np.uint32).tolist() == [[bits32(x.c) for x in row] for row in expected]
    profile = arguments["profile"]
    for field, is_there in ((found.exponent, profile.is_cut), (found.cut_sum, profile.has_sums)):
        assert (field is not None) == is_there
    if found.exponent is not None:
        assert found.exponent.tolist() == [[x.exponent for x in row] for row in expected]
    if found.cut_sum is not None:
        assert found.cut_sum.tolist() == [[x.cut_sum for x in row] for row in expected]
    c = np.zeros(len(a)) if arguments["c"] is None else arguments["c"]
    last = [bits32(row[-1].c if row else float(s)) for row, s in zip(expected, c, strict=True)]
    assert mor_ref.dot(a, b, **arguments).view(np.uint32).tolist() == last


@pytest.mark.tier("full", but_one_in=12)
@pytest.mark.parametrize("profile", DOT_PROFILES)
def test_the_engine_is_the_exact_model(profile):
    """DOT-001 to DOT-020: also zeros, subnormal numbers, infinities, NaN and sums that cancel."""
    for seed in range(12):
        check(*case(DOT_PROFILES[profile], seed))


@pytest.mark.parametrize("block", [1, 2, 3])
@pytest.mark.parametrize("scale_format", SCALE_FORMATS)
def test_an_exact_sum_has_room_for_all_scales(scale_format, block):
    """DOT-012: the largest and the smallest ones, in blocks as short as they can be."""
    random = np.random.default_rng(block)
    fmt, of = operand_format(scale_format), operand_format("e4m3")
    a, b = (codes_at_edges(random, of, (8, 6), special=False) for _ in "ab")
    a[:, 3:], b[:, 3:] = a[:, :3], b[:, :3] ^ of.sign_bit
    ends = [1, fmt.largest_code - 1, fmt.largest_code]
    scales = [random.choice(ends, (8, -(-6 // block))).astype(code_dtype(fmt)) for _ in "ab"]
    scales[0][:4], scales[1][:4] = fmt.largest_code, fmt.largest_code
    c = np.ones(8, np.float32)
    known = {"scales": scales, "scale_format": scale_format, "block": block}
    check(a, b, {"formats": (of, of), "profile": DOT_PROFILES["exact"], "c": c} | known)


@pytest.mark.tier("full")
@given(st.sampled_from(list(DOT_PROFILES)), st.integers(0, 1 << 40))
def test_any_dot_product(profile, seed):
    """DOT-001 to DOT-020."""
    check(*case(DOT_PROFILES[profile], seed, rows=2))


@pytest.mark.parametrize(
    ("profile", "fmt", "a", "b", "c", "scale"),
    [
        ("hopper_bf16", "bf16", [-(2.0**-95)], [2.0**-60], 0.0, None),  # less than -0
        ("hopper_fp16_f16", "f16", [1, 2.0**-11], [1, 1], 0.0, None),  # a tie above an even number
        ("hopper_fp16_f16", "f16", [1, 3 * 2.0**-11], [1, 1], 0.0, None),
        ("blackwell_nvfp4", "e2m1", [1, -1] + [0] * 14 + [0.5], [1] * 17, 0.0, [0x7E, 0x08]),
        ("cdna3_fp8", "e4m3fnuz", [1], [1], -(2.0**-25), None),  # the smallest c that counts
        ("cdna3_fp8", "e4m3fnuz", [1], [1], -(2.0**-26), None),
        ("f32_fma", "f32", [1 + 2.0**-12], [1 + 2.0**-12], 2.0**-60, None),  # more than a tie
        ("f32_fma", "f32", [1 + 2.0**-12], [1 + 2.0**-12], -(2.0**-60), None),  # less than a tie
        ("cdna2_bf16", "bf16", [-(2.0**-80)] * 2, [2.0**-80] * 2, -0.0, None),  # flushed products
    ],
)
def test_numbers_that_random_rows_seldom_have(profile, fmt, a, b, c, scale):
    """DOT-009, DOT-010, DOT-013, DOT-016, DOT-018."""
    pair = (mor_ref.encode(np.array([row], np.float32), fmt) for row in (a, b))
    arguments = {"formats": (formats[fmt],) * 2, "profile": DOT_PROFILES[profile]}
    arguments |= {"c": np.array([c], np.float32)}
    if scale:
        codes = np.array([scale], np.uint8)
        arguments |= {"scales": (codes, codes), "scale_format": "e4m3", "block": 16}
    check(*pair, arguments)


@numba.njit
def rows_made(entries, scales, forms, pairs, room):
    a, _ = rows_of_pairs(entries, entries, scales, scales, forms, pairs, room)
    return a.value, a.exponent, a.special


@pytest.mark.parametrize("fmt", ["e4m3", "e5m2", "e2m1", "e4m3fnuz", "int8_mx", "bf16", "f16"])
def test_rows_have_the_numbers_of_their_codes(fmt):
    """DOT-003 to DOT-005: by a table and from binary32; the last chunk ends with zeros."""
    own, row = formats[fmt], DOT_PROFILES["blackwell_fp8"]
    codes = np.arange(own.code_count, dtype=code_dtype(own))
    codes = np.resize(codes, (3, own.code_count + 5))
    right = values(codes, own)
    is_finite = np.isfinite(right)
    ways = {False: binary32_of(codes, own)} | ({True: codes} if own.bits <= 8 else {})
    for has_codes, entries in ways.items():
        forms = forms_of(own, own, row, has_codes=has_codes)
        room = room_of(4 * (entries.shape[1] + row.chunk) if has_codes else 0)
        made = rows_made(entries, NO_SCALES, forms, Pairs(1, 3, 1, 3, 0), room)
        value, exponent = (part.reshape(len(part), made[0][0].size) for part in made[:2])
        columns = right.shape[1]
        np.testing.assert_array_equal(value[:, :columns], right[1:])
        assert not value[:, columns:].any()
        finite = is_finite[1:] & (right[1:] != 0)
        logs = np.frexp(right[1:][finite])[1] - 1
        with_search = np.maximum(logs, own.smallest_exponent)
        np.testing.assert_array_equal(exponent[:, :columns][finite], with_search)
        assert (exponent[value == 0] == exponent.min()).all()
        chunks = np.isfinite(value).reshape(2, -1, row.chunk).all(axis=2)
        np.testing.assert_array_equal(made[2], ~chunks)
