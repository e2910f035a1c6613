"""FMT: formats are rows of numbers, and the values follow from them."""

import math
import pickle

import ml_dtypes
import numpy as np
import pytest
from inputs import ALL, RELEASED, UP_TO_16, as_float64, by_name

import mor_ref
from mor_ref import Format, FormatError, UnknownNameError, formats

ML_DTYPES = {
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e2m1": ml_dtypes.float4_e2m1fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e8m0": ml_dtypes.float8_e8m0fnu,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz,
    "e4m3_ieee": ml_dtypes.float8_e4m3,
    "e3m4": ml_dtypes.float8_e3m4,
}


@pytest.mark.parametrize("name", ML_DTYPES)
def test_every_value_is_that_of_ml_dtypes(name):
    """FMT-001 to FMT-007, FMT-009."""
    fmt = formats[name]
    unsigned = np.uint8 if fmt.bits <= 8 else np.uint16
    theirs = as_float64(np.arange(fmt.code_count, dtype=unsigned).view(ML_DTYPES[name]))
    for code, value in enumerate(theirs.tolist()):
        ours = fmt.value(code)
        assert ours == value or (math.isnan(ours) and math.isnan(value)), hex(code)
        assert math.copysign(1, ours) == math.copysign(1, value) or math.isnan(ours), hex(code)


@pytest.mark.parametrize("name", ML_DTYPES)
def test_limits_are_those_of_ml_dtypes(name):
    """FMT-009."""
    fmt, theirs = formats[name], ml_dtypes.finfo(ML_DTYPES[name])
    assert fmt.bits == theirs.bits
    assert fmt.largest == float(theirs.max)
    assert fmt.smallest_normal == float(theirs.smallest_normal)
    if not fmt.is_power_of_two:
        assert fmt.smallest_subnormal == float(theirs.smallest_subnormal)


@pytest.mark.parametrize(
    ("name", "largest", "smallest"),
    [
        ("e4m3", 448, 2.0**-9),
        ("e5m2", 57344, 2.0**-16),
        ("e2m1", 6, 0.5),
        ("e2m3", 7.5, 0.125),
        ("e3m2", 28, 0.0625),
        ("int8_mx", 127 / 64, 1 / 64),
        ("f32", (2 - 2.0**-23) * 2.0**127, 2.0**-149),
    ],
)
def test_limits_are_those_of_the_standards(name, largest, smallest):
    """FMT-009."""
    assert formats[name].largest == largest
    assert formats[name].smallest_subnormal == smallest


@pytest.mark.parametrize(
    ("name", "code", "value"),
    [
        pytest.param("e4m3", 0b0_0111_000, 1.0, id="FMT-001 normal"),
        pytest.param("e4m3", 0b1_1000_100, -3.0, id="FMT-001 negative"),
        pytest.param("e4m3", 0b0_0000_011, 3 * 2.0**-9, id="FMT-002 subnormal"),
        pytest.param("e5m2", 0b0_11111_00, math.inf, id="FMT-003 infinity"),
        pytest.param("e5m2", 0b1_11111_01, math.nan, id="FMT-003 NaN"),
        pytest.param("e4m3", 0b1_1111_111, math.nan, id="FMT-004 NaN"),
        pytest.param("e4m3", 0b0_1111_110, 448.0, id="FMT-004 largest"),
        pytest.param("e4m3fnuz", 0b1_0000_000, math.nan, id="FMT-005 NaN"),
        pytest.param("e4m3fnuz", 0b0_1111_111, 240.0, id="FMT-005 largest"),
        pytest.param("e2m1", 0b1_11_1, -6.0, id="FMT-006 nothing special"),
    ],
)
def test_codes_by_hand(name, code, value):
    assert formats[name].value(code) == pytest.approx(value, rel=0, nan_ok=True)


def test_a_power_of_two_format_has_no_zero():
    """FMT-007."""
    assert formats["e8m0"].value(0) == 2.0**-127
    assert formats["e8m0"].value(254) == 2.0**127
    assert formats["e8m0"].smallest_subnormal is None


def test_integers_are_twos_complement():
    """FMT-008."""
    values = [formats["int8_mx"].value(code) for code in range(256)]
    assert values == [np.int8(code - 256 if code > 127 else code) / 64 for code in range(256)]
    assert values[0x80] == -2.0


CANONICAL_NANS = {
    "e4m3": 0x7F,
    "e5m2": 0x7F,
    "e2m1": None,
    "e2m3": None,
    "e3m2": None,
    "e8m0": 0xFF,
    "bf16": 0x7FFF,
    "f16": 0x7FFF,
    "f32": 0x7FFFFFFF,
    "int8_mx": None,
    "e4m3fnuz": 0x80,
    "e5m2fnuz": 0x80,
    "e4m3b11fnuz": 0x80,
    "e4m3_ieee": 0x7F,
    "e3m4": 0x7F,
    "e2m1_ieee": 0x7,
}


def test_canonical_nans():
    """FMT-011: by hand; and by a search below."""
    assert CANONICAL_NANS.keys() >= RELEASED, "write the canonical NaN of a released format here"
    found = {name: formats[name].canonical_nan_code for name in CANONICAL_NANS}
    assert found == CANONICAL_NANS


@pytest.mark.parametrize("fmt", UP_TO_16, ids=by_name)
def test_derived_codes_say_what_the_values_say(fmt):
    """FMT-003 to FMT-006, FMT-011: the special codes, and the largest, found among all values."""
    values = {code: fmt.value(code) for code in range(fmt.code_count)}
    nans = [code for code, value in values.items() if math.isnan(value)]
    assert [code for codes in fmt.nan_codes for code in codes] == nans
    positive = [code for code in nans if not code & fmt.sign_bit]
    assert fmt.canonical_nan_code == max(positive or nans, default=None)
    infinities = [code for code, value in values.items() if value == math.inf]
    assert infinities == ([] if fmt.infinity_code is None else [fmt.infinity_code])
    finite = [value for value in values.values() if math.isfinite(value)]
    assert max(finite) == fmt.largest
    assert min(value for value in finite if value > 0) == (
        fmt.smallest_normal if fmt.is_power_of_two else fmt.smallest_subnormal
    )


def test_a_users_format_works_wherever_a_name_does():
    e3m4x = Format("e3m4x", exponent_bits=3, mantissa_bits=4, bias=3, specials="fn")
    assert e3m4x.largest == 30.0
    codes = mor_ref.encode([1.03, -100.0], e3m4x)
    assert mor_ref.decode(codes, e3m4x).tolist() == [1.0, -30.0]


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(UnknownNameError, match=r"format is 'E4M3FN'.*did you mean 'e4m3'\?"):
        formats["E4M3FN"]
    with pytest.raises(KeyError):
        formats["nothing"]
    with pytest.raises(ValueError, match="take one of"):
        formats[4]
    assert "e4m3" in formats
    assert "e9m9" not in formats


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"name": ""}, "name is ''; give a letter, and then letters, digits, _ or -"),
        ({"name": "a b"}, "name is 'a b'; give a letter"),
        ({"name": "3e"}, "name is '3e'; give a letter"),
        ({"name": "e4,m3"}, "name is 'e4,m3'; give a letter"),
        ({"name": "../e4m3"}, "name is '../e4m3'; give a letter"),
        ({"name": "e4m3\n"}, "name is 'e4m3\\n'; give a letter"),
        ({"name": "\u00e94m3"}, "name is '\u00e94m3'; give a letter"),
        ({"name": 8}, "name is 8; give a letter"),
        ({"exponent_bits": 4.0}, "exponent_bits is 4.0; give an int"),
        ({"mantissa_bits": True}, "mantissa_bits is True"),
        ({"mantissa_bits": -1}, "mantissa_bits is out of all bounds"),
        ({"bias": 10**5000}, "bias is out of all bounds"),
        ({"specials": "fun"}, "specials is 'fun'; give one of ieee, fn, fnuz, none"),
        ({"sign": "yes"}, "sign is 'yes'"),
        ({"sign": "twos-complement"}, "give exponent_bits=0"),
        (
            {"sign": "twos-complement", "exponent_bits": 0, "mantissa_bits": 0, "specials": "none"},
            "its only value is 0; give 1",
        ),
        ({"exponent_bits": 0}, "exponent_bits is 0"),
        ({"mantissa_bits": 0}, "neither a zero nor an even neighbour"),
        ({"mantissa_bits": 0, "sign": "none"}, "neither a zero nor an even neighbour"),
        ({"exponent_bits": 1, "specials": "ieee"}, "the only exponent of a normal number"),
        ({"sign": "none", "specials": "fnuz"}, "needs a negative zero"),
        ({"mantissa_bits": 24}, "mantissa_bits is 24, but binary32 has 23"),
        ({"bias": 128}, "its smallest normal value is 2^-127, below 2^-126"),
        ({"exponent_bits": 8, "bias": 126}, "its largest exponent is 128"),
        ({"exponent_bits": 9}, "exponent_bits is 9, but binary32 has 8"),
        (
            {"sign": "twos-complement", "exponent_bits": 0, "bias": -127, "specials": "none"},
            "its largest exponent is 128",
        ),
        (
            {"mantissa_bits": 0, "sign": "none", "specials": "fn", "bias": 128},
            "its smallest normal value is 2^-128, below 2^-127",
        ),
    ],
)
def test_a_format_that_cannot_exist_is_refused(fields, problem):
    """FMT-010."""
    row = {"name": "x", "exponent_bits": 4, "mantissa_bits": 3, "bias": 7} | fields
    with pytest.raises(FormatError) as refused:
        Format(row.pop("name"), **row)
    assert problem in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_code_outside_of_the_format_has_no_value():
    for code in (-1, 16):
        with pytest.raises(ValueError, match="code of e2m1 is .*; give an int from 0 to 15"):
            formats["e2m1"].value(code)
    for code in (3.0, True, "3"):
        with pytest.raises(TypeError, match="code of e2m1 is .*; give an int from 0 to 15"):
            formats["e2m1"].value(code)


@pytest.mark.parametrize("fmt", ALL, ids=by_name)
def test_the_codes_of_encode_have_a_value(fmt):
    for x in (-0.3, 1e30, -1e30):
        code = mor_ref.encode([x], fmt)[0]
        assert fmt.value(code) == mor_ref.decode(code, fmt)


def test_errors_survive_a_process_pool():
    for provoke in (
        lambda: formats["e4m4"],
        lambda: Format("x", exponent_bits=0, mantissa_bits=1, bias=0),
    ):
        with pytest.raises(ValueError, match="e4m4|cannot exist") as refused:
            provoke()
        again = pickle.loads(pickle.dumps(refused.value))
        assert str(again) == str(refused.value)
        assert type(again) is type(refused.value)


def test_formats_are_frozen_and_hashable():
    with pytest.raises(AttributeError):
        formats["e4m3"].bias = 8
    assert len(set(ALL)) == len(ALL)
