"""ENC: the engine against the exact model, bit for bit."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from inputs import (
    ALL,
    ALL_BF16,
    ALL_F16,
    any_format,
    as_float64,
    by_name,
    differences,
    edges,
    exact_codes,
    roundings_of,
)

import mor_ref
from mor_ref import exact, formats
from mor_ref.definitions.encoding import NANS, OVERFLOWS, ROUNDINGS, SpecialCases
from mor_ref.definitions.formats import encoding_profiles
from mor_ref.exact.encoding import with_sign


# Of a wide format nearly every input has its own code.
@pytest.mark.tier("full", but_one_in=6)
@pytest.mark.parametrize("fmt", ALL, ids=by_name)
@pytest.mark.parametrize("x", [ALL_BF16, ALL_F16], ids=["bf16", "f16"])
def test_all_16_bit_inputs(x, fmt):
    """ENC-001 to ENC-015."""
    check(x, fmt)


def check(x, fmt):
    """Check codes with every rounding and every rule for overflow."""
    for rounding in roundings_of(fmt):
        expected = np.array(exact_codes(x, fmt, rounding))
        ends = ends_of(x, expected, fmt)
        for overflow in OVERFLOWS:  # an input that does not saturate has the same code under each
            expected[ends] = exact_codes(x[ends], fmt, rounding, SpecialCases(overflow=overflow))
            actual = mor_ref.encode(x, fmt, rounding=rounding, overflow=overflow)
            assert differences(x, actual, expected) == [], (rounding, overflow)


def ends_of(x, codes, fmt):
    """Mask infinities, NaNs, and numbers with the code of a largest number (satfinite)."""
    largest = [fmt.largest_code, with_sign(fmt.largest_code, True, fmt)]
    return np.isin(codes, largest) | ~np.isfinite(as_float64(x))


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize("fmt", ALL, ids=by_name)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_midpoints_and_neighbours(dtype, fmt):
    """ENC-001 to ENC-015: all of them; of a format of 16 bits every 101st, of each kind."""
    x = edges(fmt, dtype)
    check(share_of(x, fmt, 101) if fmt.bits == 16 else x, fmt)


def share_of(x, fmt, every):
    """Return every so many numbers, and all next to zero or to the largest number."""
    is_far = ~((np.abs(x) > fmt.value(9)) & (np.abs(x) < fmt.largest * 0.99))
    return x[is_far | (np.arange(x.size) % every == 0)]


@pytest.mark.tier("full")
@pytest.mark.parametrize("fmt", [formats["bf16"], formats["f16"]], ids=by_name)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_more_values_midpoints_and_neighbours_of_16_bits(dtype, fmt):
    """ENC-001 to ENC-015."""
    check(share_of(edges(fmt, dtype), fmt, 11), fmt)


@pytest.mark.tier("exhaustive")
@pytest.mark.parametrize("fmt", [formats["bf16"], formats["f16"]], ids=by_name)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_value_midpoint_and_neighbour_of_16_bits(dtype, fmt):
    """ENC-001 to ENC-015."""
    check(edges(fmt, dtype), fmt)


@pytest.mark.parametrize("fmt", ALL, ids=by_name)
@pytest.mark.parametrize("nan", NANS)
def test_nans_of_every_source(fmt, nan):
    """ENC-009, ENC-010: any payload, quiet or signalling."""
    x64 = np.array([0x7FF0000000000001, 0x7FF8000000000000, 0x7FFFFFFFFFFFFFFF], np.uint64)
    x32 = np.array([0x7F800001, 0x7FC00000, 0x7FFFFFFF], np.uint32)
    x16 = np.array([0x7F81, 0x7FC0, 0x7FFF], np.uint16)
    half = np.array([0x7C01, 0x7E00, 0x7FFF], np.uint16)
    for bits, dtype in ((x64, "f8"), (x32, "f4"), (x16, ALL_BF16.dtype), (half, "f2")):
        sign = bits.dtype.type(1 << (bits.dtype.itemsize * 8 - 1))
        for negative in (False, True):
            x = (bits | sign if negative else bits).view(dtype)
            number = -np.float64("nan") if negative else np.float64("nan")
            right = exact.encode(float(number), fmt, special=SpecialCases(nan=nan))
            assert mor_ref.encode(x, fmt, nan=nan).tolist() == [right] * 3, (dtype, negative)


@pytest.mark.tier("full", but_one_in=5)
@pytest.mark.parametrize(
    ("profile", "name"),
    [(profile, name) for profile, rows in encoding_profiles.items() for name in rows],
)
def test_presets(profile, name):
    """ENC-016."""
    fmt = formats[name]
    for x in (edges(fmt, np.float32)[:20_000], edges(fmt, np.float64)[-20_000:], ALL_F16):
        for rounding in (None, *roundings_of(fmt)):
            expected = exact_codes(x, fmt, rounding, encoding_profiles[profile][name])
            actual = mor_ref.encode(x, fmt, profile=profile, rounding=rounding)
            assert differences(x, actual, expected) == []


WIDTHS = st.sampled_from([16, 32, 64])


@pytest.mark.tier("full")
@given(
    any_format(),
    WIDTHS.flatmap(lambda width: hnp.arrays(f"f{width // 8}", 8, elements=st.floats(width=width))),
    st.sampled_from(ROUNDINGS[:-1]),
    st.sampled_from(OVERFLOWS),
    st.sampled_from(NANS),
)
@example(formats["f32"], np.array([2.0**-150, 3 * 2.0**-150]), "rne", "ieee", "canonical")
def test_any_format_any_rounding_any_number(fmt, x, rounding, overflow, nan):
    """ENC-001 to ENC-015, for formats of users as well."""
    mode = rounding if rounding in roundings_of(fmt) else roundings_of(fmt)[0]
    expected = exact_codes(x, fmt, mode, SpecialCases(overflow=overflow, nan=nan))
    actual = mor_ref.encode(x, fmt, rounding=mode, overflow=overflow, nan=nan)
    assert differences(x, actual, expected) == []


# ---------------------------------------------------------------------- stochastic rounding


def stochastic(x, fmt, words, n, overflow="satfinite"):
    """Return the exact model's codes under sr."""
    special = SpecialCases(overflow=overflow)
    return [
        exact.encode(v, fmt, "sr", special, random_word=word, n_random_bits=n)
        for v, word in zip(as_float64(x).tolist(), words.tolist(), strict=True)
    ]


# So small that each drops another number of bits, up to more than a word has.
SMALL_NUMBERS = np.ldexp(1.3712345, np.arange(-90, 0))


def decisive_words(x, fmt, n):
    """Return for each number the smallest word that rounds it up, or the one before, in turn."""
    words = []
    for index, v in enumerate(as_float64(x).tolist()):
        if not np.isfinite(v) or v == 0:
            words.append(0)
            continue
        exponent = max(exact.floor_log2(abs(v)), fmt.smallest_exponent)
        _, rest, whole = exact.in_units_of(exponent - fmt.mantissa_bits, abs(v))
        first = 2**n - (rest << n) // whole
        words.append(min(max(first - index % 2, 0), 2**n - 1))
    return np.array(words, np.uint32)


@pytest.mark.tier("full", but=["-8]"])
@pytest.mark.parametrize("n", [1, 3, 8, 24, 31, 32])
@pytest.mark.parametrize("fmt", [f for f in ALL if not f.is_power_of_two], ids=by_name)
def test_stochastic_rounding_at_its_edges(fmt, n):
    """ENC-005: with the very words at which the decision turns."""
    for dtype in (np.float32, np.float64):
        x = edges(fmt, dtype)
        x = np.concatenate([x[:: max(1, x.size // 4000)], SMALL_NUMBERS.astype(dtype)])
        words = decisive_words(x, fmt, n)
        for overflow in OVERFLOWS:
            actual = mor_ref.encode(
                x, fmt, rounding="sr", random_bits=words, n_random_bits=n, overflow=overflow
            )
            assert differences(x, actual, stochastic(x, fmt, words, n, overflow)) == []


@given(
    any_format().filter(lambda fmt: not fmt.is_power_of_two),
    st.sampled_from([32, 64]).flatmap(
        lambda width: hnp.arrays(f"f{width // 8}", 8, elements=st.floats(width=width))
    ),
    st.integers(1, 32),
    st.randoms(use_true_random=False),
)
def test_stochastic_rounding_of_anything(fmt, x, n, random):
    """ENC-005."""
    words = np.array([random.getrandbits(n) for _ in x], np.uint32)
    actual = mor_ref.encode(x, fmt, rounding="sr", random_bits=words, n_random_bits=n)
    assert differences(x, actual, stochastic(x, fmt, words, n)) == []


@pytest.mark.tier("full")
def test_stochastic_rounding_of_16_bit_inputs():
    """ENC-001, ENC-005."""
    words = np.random.default_rng(5).integers(0, 1 << 12, 1 << 16, dtype=np.uint32)
    for x in (ALL_BF16, ALL_F16):
        actual = mor_ref.encode(x, "e4m3", rounding="sr", random_bits=words, n_random_bits=12)
        assert differences(x, actual, stochastic(x, formats["e4m3"], words, 12)) == []
