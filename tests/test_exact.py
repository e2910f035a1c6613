"""ENC and DEC: the exact model against a plain search among all values of a format.

The search knows nothing of exponents and significands: it lists every number of the format, finds
the two around the input, and chooses. Where the text of the specification has a code, so does the
test.
"""

import bisect
import functools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from inputs import RELEASED, SMALL, any_format, by_name, edges, roundings_of, values_of

import mor_ref
from mor_ref import Format, exact, formats
from mor_ref.definitions.encoding import OVERFLOWS, SpecialCases
from mor_ref.definitions.formats import encoding_profiles

IEEE = SpecialCases(overflow="ieee")


class Search:
    """Every magnitude of a format with its code, and one more beyond the largest."""

    def __init__(self, fmt):
        magnitudes = values_of(fmt)
        self.values = [Fraction(v) for v in magnitudes.tolist() if v >= 0]
        if fmt.sign == "twos-complement":
            self.values = self.values[: fmt.largest_code + 1]
        step = self.values[-1] - self.values[-2]
        if fmt.is_power_of_two:
            step = self.values[-1]
        self.beyond = self.values[-1] + step
        self.codes = {}
        for code in range(fmt.code_count):
            value = fmt.value(code)
            if math.isfinite(value) and math.copysign(1, value) > 0:
                self.codes[Fraction(value)] = code

    def magnitude(self, x, rounding, negative):
        """Return the rounded magnitude, or None for one above the largest."""
        low = bisect.bisect_right(self.values, x) - 1
        if low < 0:
            return self.values[0]
        if self.values[low] == x:
            return x
        high = self.values[low + 1] if low + 1 < len(self.values) else self.beyond
        if x >= self.beyond:
            return None
        chosen = self._choose(self.values[low], high, x, rounding, negative)
        return None if chosen == self.beyond else chosen

    def _choose(self, low, high, x, rounding, negative):
        even_low = self.codes[low] % 2 == 0
        middle = (low + high) / 2
        match rounding:
            case "rtz":
                return low
            case "rtp":
                return low if negative else high
            case "rtn":
                return high if negative else low
            case "rto":
                return high if even_low else low
            case "rna":
                return low if x < middle else high
            case "rne":
                if x == middle:
                    return low if even_low else high
                return low if x < middle else high


@pytest.mark.tier("full", but_one_in=6)
@pytest.mark.parametrize("fmt", SMALL, ids=by_name)
def test_rounding_is_a_choice_between_neighbours(fmt):
    """ENC-002, ENC-003, ENC-004, ENC-007, ENC-011, ENC-012, ENC-013, ENC-014, ENC-015."""
    search = Search(fmt)
    inputs = [x for x in edges(fmt, np.float64).tolist() if math.isfinite(x)]
    for rounding in roundings_of(fmt):
        for x in inputs:
            negative = math.copysign(1, x) < 0 and fmt.sign != "none"
            magnitude = search.magnitude(abs(Fraction(x)), rounding, negative)
            for special in (SpecialCases(), IEEE):
                code = exact.encode(x, fmt, rounding, special)
                if magnitude is None:
                    assert code == overflow(fmt, rounding, negative, special), (x, rounding)
                    continue
                value = fmt.value(code)
                assert abs(Fraction(value)) == magnitude, (x, rounding)
                if value or (fmt.sign == "sign-magnitude" and fmt.specials != "fnuz"):
                    assert (math.copysign(1, value) < 0) == negative, (x, rounding)


# The codes beyond the largest number, by hand from the table in the specification.
WITH_SIGN = {"e4m3": 0x7F, "e4m3_ieee": 0x78, "e5m2": 0x7C, "e3m4": 0x70, "e2m1_ieee": 0x6}
WITHOUT_SIGN = {"e4m3fnuz": 0x80, "e5m2fnuz": 0x80, "e4m3b11fnuz": 0x80, "e8m0": 0xFF}
WITH_SPECIALS = [fmt for fmt in SMALL if fmt.specials != "none"]


@functools.cache
def code_beyond(fmt, negative):
    """Return the code of infinity or else of NaN, of that sign if there is one."""
    infinity = -math.inf if negative else math.inf
    values = {code: fmt.value(code) for code in range(fmt.code_count)}
    infinities = [code for code, value in values.items() if value == infinity]
    nans = [code for code, value in values.items() if math.isnan(value)]
    of_that_sign = [code for code in nans if bool(code & fmt.sign_bit) == negative]
    return (infinities or of_that_sign or nans)[0]


@pytest.mark.parametrize("fmt", WITH_SPECIALS, ids=by_name)
def test_overflows_by_hand(fmt):
    """ENC-007: of a format that is not yet released, by search alone."""
    codes = tuple(code_beyond(fmt, negative) for negative in (False, True))
    if fmt.name in WITH_SIGN:
        assert codes == (WITH_SIGN[fmt.name], WITH_SIGN[fmt.name] | fmt.sign_bit)
    elif fmt.name in WITHOUT_SIGN:
        assert codes == (WITHOUT_SIGN[fmt.name],) * 2
    else:
        assert fmt.name not in RELEASED, f"write what {fmt.name} overflows to into WITH_SIGN"


def overflow(fmt, rounding, negative, special):
    """Return the code of an overflow."""
    stops = rounding in ("rtz", "rto") or rounding == ("rtp" if negative else "rtn")
    if special.overflow == "ieee" and not stops and fmt.specials != "none":
        return code_beyond(fmt, negative)
    if fmt.name == "int8_mx":
        return 0x81 if negative else 0x7F
    return fmt.largest_code | (fmt.sign_bit if negative else 0)


@pytest.mark.parametrize(
    ("name", "positive", "negative"),
    [
        ("e4m3", 0x7F, 0xFF),
        ("e5m2", 0x7C, 0xFC),
        ("bf16", 0x7F80, 0xFF80),
        ("f32", 0x7F800000, 0xFF800000),
        ("e4m3fnuz", 0x80, 0x80),
        ("e2m1", 0x7, 0xF),
        ("int8_mx", 0x7F, 0x81),
        ("e8m0", 0xFF, 0xFF),
    ],
)
def test_infinity_is_no_overflow(name, positive, negative):
    """ENC-008: the rounding has no say."""
    fmt = formats[name]
    for rounding in roundings_of(fmt):
        assert exact.encode(math.inf, fmt, rounding, IEEE) == positive
        assert exact.encode(-math.inf, fmt, rounding, IEEE) == negative
        largest = exact.encode(math.inf, fmt, rounding)
        assert fmt.value(largest) == fmt.largest


@pytest.mark.parametrize(
    ("name", "canonical", "signed"),
    [
        ("e4m3", 0x7F, 0xFF),
        ("e5m2", 0x7F, 0xFF),
        ("bf16", 0x7FFF, 0xFFFF),
        ("f16", 0x7FFF, 0xFFFF),
        ("f32", 0x7FFFFFFF, 0xFFFFFFFF),
        ("e8m0", 0xFF, 0xFF),
        ("e2m1", 0x7, 0xF),
        ("e2m3", 0x1F, 0x3F),
        ("e3m2", 0x1F, 0x3F),
        ("int8_mx", 0, 0),
        ("e4m3fnuz", 0x80, 0x80),
    ],
)
def test_nan(name, canonical, signed):
    """ENC-009, ENC-010."""
    fmt, negative_nan = formats[name], math.copysign(math.nan, -1)
    assert exact.encode(math.nan, fmt) == exact.encode(negative_nan, fmt) == canonical
    cases = SpecialCases(nan="signed")
    assert exact.encode(math.nan, fmt, special=cases) == canonical
    assert exact.encode(negative_nan, fmt, special=cases) == signed


def test_an_explicit_rounding_goes_before_what_a_preset_does_by_default():
    """ENC-016: rtz never goes up; rna is what the oddity of two libraries belongs to."""
    special = encoding_profiles["torch"]["e8m0"]
    codes = [
        exact.encode(1.2 * 2.0**-127, formats["e8m0"], rounding, special)
        for rounding in (None, "rna", "rtz", "rtp")
    ]
    assert codes == [1, 1, 0, 1]


def test_e4m3_overflow_is_judged_after_rounding():
    """ENC-007: 464 is a tie between 448 and the next step, 480."""
    e4m3 = formats["e4m3"]
    assert exact.encode(464.0, e4m3, "rne", IEEE) == 0x7E
    assert exact.encode(math.nextafter(464.0, 500), e4m3, "rne", IEEE) == 0x7F
    assert exact.encode(464.0, e4m3, "rna", IEEE) == 0x7F
    assert exact.encode(1e300, e4m3, "rtz", IEEE) == 0x7E
    assert exact.encode(449.0, e4m3, "rto", IEEE) == 0x7E


@pytest.mark.parametrize(
    ("x", "rtp", "rtz", "rna"),
    [
        (0.0, 0, 0, 0),
        (2.0**-149, 0, 0, 0),
        (2.0**-127, 0, 0, 0),
        (1.25 * 2.0**-127, 1, 0, 0),
        (1.5 * 2.0**-127, 1, 0, 1),
        (2.0**-126, 1, 1, 1),
        (-3.0, 129, 128, 129),
        (2.9, 129, 128, 128),
        (2.0**127, 254, 254, 254),
        (1.25 * 2.0**127, 254, 254, 254),
        (1.5 * 2.0**127, 254, 254, 254),
        (2.0**128, 254, 254, 254),
    ],
)
def test_e8m0(x, rtp, rtz, rna):
    """ENC-013, ENC-014."""
    e8m0 = formats["e8m0"]
    found = [exact.encode(x, e8m0, rounding) for rounding in ("rtp", "rtz", "rna", "rne")]
    assert found == [rtp, rtz, rna, rna]
    assert exact.encode(x, e8m0) == rtp
    assert exact.encode(1.25 * 2.0**127, e8m0, "rtp", IEEE) == 0xFF
    assert exact.encode(1.25 * 2.0**127, e8m0, "rna", IEEE) == 0xFE
    assert exact.encode(2.0**200, e8m0, "rna", IEEE) == 0xFF
    assert exact.encode(2.0**200, e8m0, "rtz", IEEE) == 0xFE


def test_powers_of_two_of_a_user_to_nearest():
    """ENC-013: by the distances to all numbers of the format; of two, to the larger."""
    fields = {"mantissa_bits": 0, "specials": "none", "sign": "none"}
    fmt = Format("powers", exponent_bits=4, bias=9, **fields)
    values = [Fraction(2) ** (code - 9) for code in range(16)]
    points = [Fraction(k, 1 << 13) for k in range(0, 1 << 13, 7)] + [3 * v / 2 for v in values]
    for x in [*points, Fraction(65), Fraction(1000)]:
        nearest = min(range(16), key=lambda code: (abs(values[code] - x), -code))
        assert exact.encode(float(x), fmt, "rne") == nearest
        assert mor_ref.encode(float(x), fmt, rounding="rne") == nearest


@given(any_format(), st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(OVERFLOWS))
@example(formats["f32"], 2.0**-150, "ieee")
def test_directed_roundings_enclose_and_every_other_is_one_of_them(fmt, x, overflow):
    """ENC-003: rtz and away from zero are neighbours; the others choose one of the two."""
    special = SpecialCases(overflow=overflow)
    away = "rtp" if x > 0 or fmt.sign == "none" else "rtn"
    low, high = (exact.encode(x, fmt, mode, special) for mode in ("rtz", away))
    for rounding in roundings_of(fmt):
        assert exact.encode(x, fmt, rounding, special) in (low, high)


@pytest.mark.parametrize("n", [1, 2, 7, 16, 32])
def test_stochastic_rounding_goes_up_for_as_many_words_as_the_fraction_says(n):
    """ENC-005: F of the 2^n words go up; the smallest that does is 2^n - F."""
    e4m3 = formats["e4m3"]
    for x in (1.0, 1.03, 1.0625, 1.11, 1.124999, 0.0013, 2.0**-40, -1.03):
        unit = Fraction(e4m3.value(exact.encode(x, e4m3, "rtz")))
        fraction = abs(Fraction(x) - unit) / (Fraction(1, 8) if abs(x) >= 1 else Fraction(2) ** -9)
        first = 2**n - math.floor(2**n * fraction)
        for word in (
            {0, first - 1, first, 2**n - 1} & set(range(2**n))
            if n < 20
            else (word for word in (0, first - 1, first, 2**n - 1) if 0 <= word < 2**n)
        ):
            code = exact.encode(x, e4m3, "sr", random_word=word, n_random_bits=n)
            down = exact.encode(x, e4m3, "rtz")
            assert code == down + (word >= first), (x, word)


def test_decoding_gives_binary32_and_one_nan():
    """DEC-001, DEC-002, DEC-003."""
    assert exact.decode(0x80, formats["e4m3"]) == 0x80000000
    assert exact.decode(0xFF, formats["e4m3"]) == 0x7FFFFFFF
    assert exact.decode(0xFFC1, formats["bf16"]) == 0x7FFFFFFF
    assert exact.decode(0xFC, formats["e5m2"]) == 0xFF800000
    assert exact.decode(0x0001, formats["bf16"]) == 0x00010000
    assert exact.decode(0, formats["e8m0"]) == 0x00400000


def test_misuse_is_refused():
    with pytest.raises(ValueError, match="needs random_word; give random_word and n_random_bits"):
        exact.encode(1.0, formats["e4m3"], "sr")
    with pytest.raises(ValueError, match="random_word is 4, which does not fit 2 bits"):
        exact.encode(1.0, formats["e4m3"], "sr", random_word=4, n_random_bits=2)
    with pytest.raises(ValueError, match=r"rounding is 'rto', which e8m0 does not admit"):
        exact.encode(1.0, formats["e8m0"], "rto")
