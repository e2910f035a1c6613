"""`mor-ref encode` and `mor-ref decode`: numbers and codes as people type them, and pipe them."""

import json
import math
from decimal import Decimal
from fractions import Fraction

import forking
import ml_dtypes
import numpy as np
import pytest
from inputs import UP_TO_16

import mor_ref
from mor_ref import formats
from mor_ref.explanations.decoding import explain_code

SR = ("--rounding", "sr", "--n-random-bits", "8", "--random-word")


def run(*arguments, given="", status=0):
    done = forking.mor_ref(*arguments, input=given)
    assert done.returncode == status, done.stderr + done.stdout
    return done.stdout if status == 0 else done.stderr


def test_numbers_have_their_codes_and_what_the_codes_stand_for():
    numbers = ["0.3", "0.4", "-1.5", "-inf", "0x1.8p-2", "0x3f800000", "1e6"]
    expected = np.float64([0.3, 0.4, -1.5, -448, 0.375, 1, 448]).astype(ml_dtypes.float8_e4m3fn)
    lines = run("encode", *numbers, "--format", "e4m3").splitlines()
    codes = [f"0x{code:02X}" for code in expected.view(np.uint8)]
    assert [line.split()[0] for line in lines] == numbers
    assert [line.split()[1] for line in lines] == codes
    assert [float(line.split()[-1]) for line in lines] == expected.astype(float).tolist()
    assert lines[0] == "0.3           0x2A  0 0101 010  0.3125"


def test_a_code_has_its_number_and_those_next_to_it():
    assert run("decode", "0x3A", "126", "0b1111110", "0xFE", "0x7F", "--format", "e4m3") == (
        "0x3A  0 0111 010  1.25  between 1.125 (0x39) and 1.375 (0x3B)\n"
        "0x7E  0 1111 110  448  the largest, above 416 (0x7D)\n"
        "0x7E  0 1111 110  448  the largest, above 416 (0x7D)\n"
        "0xFE  1 1111 110  -448  the smallest, below -416 (0xFD)\n"
        "0x7F  0 1111 111  NaN\n"
    )


def test_the_largest_numbers_of_binary32_are_next_to_infinity():
    largest = float(np.finfo(np.float32).max)
    assert mor_ref.neighbours(math.inf, "f32") == (largest, None)
    assert mor_ref.neighbours(0.1, "f32") == (
        float(np.nextafter(np.float32(0.1), np.float32(0))),
        np.float32(0.1),
    )
    assert mor_ref.neighbours(math.nan, "f32") == (None, None)


@pytest.mark.parametrize(
    ("number", "options"),
    [
        (0.3, {}),
        (np.float32(0.3), {"rounding": "rtz"}),
        (1e9, {"overflow": "ieee"}),
        (-math.inf, {"profile": "ml_dtypes"}),
        (math.nan, {"nan": "signed"}),
        (0.3, {"rounding": "sr", "random_word": 5, "n_random_bits": 4}),
    ],
)
def test_a_call_explains_what_the_command_does(number, options):
    written = [
        part
        for name, value in options.items()
        for part in (f"--{name.replace('_', '-')}", str(value))
    ]
    explanation = mor_ref.explain(number, "e5m2", **options)
    shown = run("explain", *written, "--format", "e5m2", "--", repr(float(number)))
    assert shown == f"{explanation}\n"
    words = {"random_bits": [options["random_word"]]} if "random_word" in options else {}
    for_encode = {name: value for name, value in options.items() if name != "random_word"}
    assert mor_ref.encode([float(number)], "e5m2", **for_encode, **words) == explanation.code


def test_one_number_is_explained():
    with pytest.raises(TypeError, match="x is an array of 2; give one number, such as 0.3"):
        mor_ref.explain(np.float32([1, 2]), "e4m3")
    with pytest.raises(TypeError, match="x is '0.3'; give a number, such as 0.3"):
        mor_ref.neighbours("0.3", "e4m3")
    with pytest.raises(ValueError, match="format is 'e4m33'"):
        mor_ref.explain(0.3, "e4m33")


@pytest.mark.parametrize("fmt", UP_TO_16, ids=lambda fmt: fmt.name)
def test_neighbours_are_the_next_of_all_numbers(fmt):
    codes = np.arange(fmt.code_count, dtype=np.uint32)
    values = mor_ref.decode(codes, fmt).astype(np.float64)
    ordered = np.unique(values[np.isfinite(values)])
    for code in codes[:: max(1, fmt.code_count // 512)].tolist():
        found, value = explain_code(code, fmt), float(values[code])
        near = [one if one is None else float(one.value) for one in (found.below, found.above)]
        if not math.isfinite(value):
            assert near == [None, None]
            continue
        at = int(np.searchsorted(ordered, value))
        below = ordered[at - 1] if at else None
        above = ordered[at + 1] if at + 1 < ordered.size else None
        assert near == [below, above], code
    limits = [0.0, float(np.finfo(np.float64).tiny), 1e300, math.inf]
    between = (ordered[1:] + ordered[:-1]) / 2
    for x in [*limits, *ordered[::37], *between[::37], *(-number for number in limits)]:
        first, last = np.searchsorted(ordered, x, "left"), np.searchsorted(ordered, x, "right")
        assert mor_ref.neighbours(x, fmt) == (
            ordered[first - 1] if first else None,
            ordered[last] if last < ordered.size else None,
        ), x
        for one in (found.below, found.above):
            assert one is None or values[one.code] == float(one.value)


def test_lines_of_the_standard_input():
    assert run("encode", "-", "--format", "e2m1", given="0.3 0.4\n\n-2\n").split("\n")[2] == (
        "-2            0xC  1 10 0  -2"
    )
    assert len(run("decode", "1", "-", "2", "--format", "e2m1", given="3\n4").splitlines()) == 4
    assert run("encode", "-", "--format", "e2m1") == ""


def test_as_json():
    rows = json.loads(run("encode", "0.3", "nan", "--format", "e4m3", "--json"))
    assert rows[0] == {
        "number": "0.3", "format": "e4m3", "code": 42, "bits": "00101010", "value": 0.3125,
    }  # fmt: skip
    assert rows[1]["value"] == "nan"
    (row,) = json.loads(run("decode", "-", "--format", "e4m3", "--json", given="0x3A"))
    assert (row["value"], row["below"]) == (1.25, {"value": 1.125, "code": 0x39})
    (row,) = json.loads(run("decode", "0x7F", "--format", "e4m3", "--json"))
    assert (row["value"], row["above"]) == ("nan", None)


@pytest.mark.parametrize("word", ["0x1F", "31", "0b11111", "0o37"])
def test_random_words_may_be_hexadecimal(word):
    shown = run("encode", "0.3", "--format", "e4m3", *SR, word)
    code = mor_ref.encode(
        0.3, "e4m3", rounding="sr", random_bits=np.uint32(31), n_random_bits=8
    ).item()
    assert f"0x{code:02X}" in shown
    assert f"0x{code:02X}" in run("explain", "0.3", "--format", "e4m3", *SR, word)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("decode", "3A"), "CODE is '3A'; give a code of e4m3, such as 0x01, 1 or 0b1; to decode"),
        (("decode", "x.npy"), "to decode a file, give --out as well"),
        (("decode", "256"), "CODE is 256; e4m3 has the codes 0x00 to 0xFF"),
        (("decode", "-"), "CODE is 'x'; give a code of e4m3"),
        (("decode", "1", "--field", "x"), "field is 'x', which is for files; give --out FILE"),
        (("decode", "1", "--include", "x"), "include is 'x', which is for files"),
        (("decode", "1", "2", "--out", "y.npz"), "2 files are given with out; give one file"),
        (("decode", "1", "--out", "y.npz", "--json"), "json is given with out; give one file"),
        (("encode", "abc"), "NUMBER is 'abc'; give a decimal such as 0.3"),
        (("encode", "1e999"), "NUMBER is '1e999', which binary64 does not have"),
        (("encode", "0.3", "--rounding", "up"), "rounding is 'up', which is not known"),
        (("encode", "0.3", *SR, "zz"), "'zz' is no whole number; give one, such"),
        (("encode", "0.3", *SR[:-1]), "rounding is 'sr'"),
    ],
)
def test_mistakes_are_answered(arguments, words):
    errors = run(*arguments, "--format", "e4m3", given="x", status=2)
    assert words in " ".join(errors.replace("│", "").split())


def test_every_format_is_shown():
    for name in formats:
        code = run("encode", "1.5", "--format", name).split()[1]
        assert code in run("decode", code, "--format", name)


WIDE = 2**54 + 2**30 + 1  # just above halfway between two numbers of binary32


@pytest.mark.parametrize(
    ("x", "shown"),
    [
        (WIDE, "18014399583223809"),
        (np.int64(WIDE), "np.int64(18014399583223809)"),
        (Fraction(1, 3), "Fraction(1, 3)"),
        (Decimal("0.3"), "Decimal('0.3')"),
    ],
)
@pytest.mark.parametrize("function", [mor_ref.explain, mor_ref.neighbours])
def test_a_number_that_binary64_lacks_is_refused(function, x, shown):
    with pytest.raises(ValueError, match="which is not a number of binary64; the nearest") as said:
        function(x, "f32")
    assert str(said.value).startswith(f"x is {shown}, ")
    assert function(float(x), "f32") == function(np.float64(x), "f32")


@pytest.mark.parametrize(
    "x",
    [
        [np.int64(WIDE), 0.5],
        (np.uint64(WIDE), np.float32(0.5)),
        [np.array(WIDE), 0.5],
        [np.array([WIDE]), [0.5]],
    ],
)
def test_an_integer_next_to_floats_is_not_rounded(x):
    """NumPy makes floats of all of them."""
    with pytest.raises(TypeError, match="of which binary64 lacks an integer; give"):
        mor_ref.encode(x, "f32")
    assert mor_ref.encode([np.int64(2**54), 0.5], "f32").tolist() == [0x5A800000, 0x3F000000]


def test_an_argument_that_only_looks_like_one_of_binary32_is_refused():
    """As a float it is 1."""
    with pytest.raises(ValueError, match="which is not a number of binary32; the nearest is 1.0"):
        mor_ref.quantize(np.ones(4, np.float32), "e4m3", amax=1 + Fraction(1, 2**60))


def test_a_format_takes_integers_of_others():
    made = mor_ref.Format(
        "a", exponent_bits=np.int64(4), mantissa_bits=np.uint8(3), bias=np.array(7), specials="none"
    )
    assert made == mor_ref.Format("a", exponent_bits=4, mantissa_bits=3, bias=7, specials="none")
    assert type(made.bias) is int
    with pytest.raises(ValueError, match="exponent_bits is 4.0; give an int"):
        mor_ref.Format("a", exponent_bits=4.0, mantissa_bits=3, bias=7, specials="none")
