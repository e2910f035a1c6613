"""The inputs at which encoders differ, and expected codes from the exact model."""

import functools

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

from mor_ref import Format, FormatError, exact, formats
from mor_ref.definitions.encoding import (
    DETERMINISTIC_ROUNDINGS,
    POWER_OF_TWO_ROUNDINGS,
    SpecialCases,
)
from mor_ref.golden import bundled_files
from mor_ref.golden.store.manifest import read_manifest

SMALL = [fmt for fmt in formats.values() if fmt.bits <= 8]
UP_TO_16 = [fmt for fmt in formats.values() if fmt.bits <= 16]
ALL = list(formats.values())

# The formats of the bundled vectors. A newer one waits for its second opinions until its release.
RELEASED = set(read_manifest(bundled_files())["suites"]["decode"]["cases"])


def by_name(fmt):
    return fmt.name


def roundings_of(fmt):
    return POWER_OF_TWO_ROUNDINGS if fmt.is_power_of_two else DETERMINISTIC_ROUNDINGS


def all_16_bit(dtype):
    """Return every bfloat16 or every float16, NaNs with all their payloads included."""
    return np.arange(1 << 16, dtype=np.uint16).view(dtype)


_MAGNITUDE, _INFINITY = np.uint64((1 << 63) - 1), np.uint64(0x7FF << 52)
ALL_BF16 = all_16_bit(ml_dtypes.bfloat16)
ALL_F16 = all_16_bit(np.float16)


def values_of(fmt):
    """Return every finite number of a format, ascending; of float32, some of every exponent."""
    codes = range(fmt.code_count)
    if fmt.bits > 16:
        fields = np.arange(256, dtype=np.uint64) << 23
        mantissas = np.array([0, 1, 2, 0x3FFFFF, 0x400000, 0x400001, 0x7FFFFE, 0x7FFFFF], np.uint64)
        codes = (fields[:, None] + mantissas).ravel().tolist()
    values = {fmt.value(code) for code in codes}
    return np.array(sorted(v for v in values if np.isfinite(v)))


def edges(fmt, dtype):
    """Return each value, each midpoint, their neighbours, and numbers beyond; of both signs."""
    return _edges(fmt, dtype).copy()


@functools.cache
def _edges(fmt, dtype):
    values = values_of(fmt)
    step = values[-1] - values[-2]
    beyond = [values[-1] + step * share for share in (0.25, 0.5, 1, 1.5, 8)]
    points = np.concatenate([values, (values[1:] + values[:-1]) / 2, beyond])
    with np.errstate(over="ignore", under="ignore"):
        points = points.astype(dtype)
        near = [np.nextafter(points, dtype(-np.inf)), points, np.nextafter(points, dtype(np.inf))]
    finfo = np.finfo(dtype)
    extremes = [0.0, finfo.smallest_subnormal, finfo.smallest_normal, finfo.max, np.inf, np.nan]
    found = np.unique(np.concatenate([*near, np.array(extremes, dtype)]))
    return np.concatenate([found, -found])


def exact_codes(x, fmt, rounding=None, special=None):
    """Return the codes of numbers of any dtype, from the exact model, as a list.

    Rounding is monotonic: if two numbers of one sign have one code, so have all between them. A
    NaN stands for all of its sign.
    """
    cases = special or SpecialCases()
    bits = as_float64(x).ravel().view(np.uint64)
    bits[(bits & _MAGNITUDE) > _INFINITY] |= _MAGNITUDE
    points, places = np.unique(bits, return_inverse=True)
    numbers = points.view(np.float64).tolist()
    codes = [None] * len(numbers)

    def fill(low, high):
        """Fill the codes between `low` and `high`, whose own codes are known."""
        if codes[low] == codes[high]:
            codes[low:high] = [codes[low]] * (high - low)
        elif high - low > 1:
            middle = (low + high) // 2
            codes[middle] = exact.encode(numbers[middle], fmt, rounding, cases)
            fill(low, middle)
            fill(middle, high)

    # Zeros, finite numbers, infinities and NaNs of each sign.
    size = points & _MAGNITUDE
    kinds = 4 * (points >> 63) + (size > 0) + (size >= _INFINITY) + (size > _INFINITY)
    ends = np.flatnonzero(np.diff(kinds, append=9)).tolist()
    for first, last in zip([0, *(end + 1 for end in ends)], ends, strict=False):
        for place in {first, last}:
            codes[place] = exact.encode(numbers[place], fmt, rounding, cases)
        fill(first, last)
    return np.array(codes)[places].tolist()


def as_float64(x):
    """Return the same numbers in binary64; a signalling NaN does not cause a warning."""
    with np.errstate(invalid="ignore"):
        return x.astype(np.float64)


def differences(x, actual, expected):
    """Return the first few inputs whose codes differ, to be compared with an empty list."""
    right = np.asarray(expected)
    assert x.shape == actual.shape == right.shape
    first = np.flatnonzero(actual != right)[:5]
    pairs = zip(x[first].tolist(), actual[first].tolist(), right[first].tolist(), strict=True)
    return [(v, hex(found), hex(wanted)) for v, found, wanted in pairs]


@st.composite
def any_format(draw):
    """Draw a format of any kind that can exist."""
    fields = {
        "exponent_bits": draw(st.integers(0, 8)),
        "mantissa_bits": draw(st.integers(0, 23)),
        "bias": draw(st.integers(-130, 140)),
        "specials": draw(st.sampled_from(["ieee", "fn", "fnuz", "none"])),
        "sign": draw(st.sampled_from(["sign-magnitude", "none", "twos-complement"])),
    }
    if fields["sign"] == "twos-complement":
        fields |= {"exponent_bits": 0, "specials": "none"}
    try:
        return Format("drawn", **fields)
    except FormatError:
        return draw(st.sampled_from(ALL))
