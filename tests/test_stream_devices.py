"""Streams: right devices match, and wrong ones are found."""

import struct
from fractions import Fraction

import numpy as np
import pytest
from streaming import (
    ALL,
    E4M3,
    FIRST,
    answered,
    bits32,
    check,
    decide,
    decode,
    encode,
    encode_stochastic,
    error_term,
    joined,
    number,
    quantize_element,
    random_lines,
    run,
    scale,
)

from mor_ref import formats
from mor_ref.cli import stream as command
from mor_ref.exact import arithmetic, errors
from mor_ref.exact import scales as scaling
from mor_ref.golden.streams.stream import inputs_of, stream_named


@pytest.mark.tier("full", but_one_in=17)
@pytest.mark.parametrize("name", FIRST)
def test_the_exact_model_is_a_right_device(name):
    stream = stream_named(name)
    text = b"".join(stream.question.written(arrays) for arrays in inputs_of(stream, 0, 400))
    lines = [*text.decode("ascii").splitlines(), *random_lines(name, 600, seed=1)]
    assert check(name, joined(answered(name, lines))) == (1000, [])


@pytest.mark.tier("full", one_in=8)
@pytest.mark.parametrize("name", ALL)
def test_random_inputs_of_every_case(name):
    text = joined(answered(name, random_lines(name, 80, seed=2)))
    assert check(name, text) == (80, [])


def to_away(p, x):
    return encode(p | {"rounding": "rna"}, x)


def through_binary32(p, x):
    value = number(x, "f64")
    if value - value == 0 and value:
        x = struct.unpack("<Q", struct.pack("<d", arithmetic.rn32(Fraction(value))))[0]
    return encode(p, x)


def flushing(p, x):
    return encode(p, x if x & 0x7F800000 else x & 0x80000000)


def keeping_the_sign_of_nan(p, x):
    return encode(p | {"nan": "signed"}, x)


def overflowing_early(p, x):
    magnitude = abs(number(x, p["source"]))
    return encode(p | ({"overflow": "satfinite"} if magnitude < 480 else {}), x)


def without_the_sign_of_zero(p, x):
    (code,) = encode(p, x)
    return (0 if code == 0x80 else code,)


def one_word_early(p, x, word):
    return encode_stochastic(p, x, min(word + 1, (1 << p["n_random_bits"]) - 1))


def of_seven_bits(p, group, block):
    shared, exponent, _ = scale(p, group, block)
    return shared & 0x7F0000, exponent, (exponent << 23) + (shared & 0x7F0000)


def without_decrement(p, group, block):
    shared, _, _ = scale(p, group, block)
    largest = formats[p["format"]].largest
    own = scaling.ideal_scale(largest, number(block)) if block else None
    exponent = 127 + min(own.exponent, 127) if own else 127
    return shared, exponent, (exponent << 23) + shared


def decrementing_when_equal(p, group, block):
    shared, exponent, bits = scale(p, group, block)
    largest = formats[p["format"]].largest
    if block and scaling.ideal_scale(largest, number(block)).mantissa == shared and exponent > 1:
        return shared, exponent - 1, bits - (1 << 23)
    return shared, exponent, bits


def comparing_few_bits(p, group, block):
    shared, exponent, bits = without_decrement(p, group, block)
    largest = formats[p["format"]].largest
    if block and shared >> 2 > scaling.ideal_scale(largest, number(block)).mantissa >> 2:
        return shared, exponent - 1, bits - (1 << 23)
    return shared, exponent, bits


def by_reciprocal(p, x, factor):
    xs, code, _ = quantize_element(p, x, factor)
    inverse = arithmetic.quotient(1.0, number(factor))
    return xs, code, bits32(arithmetic.product(formats[p["format"]].value(code), inverse))


def truncating_errors(_, x, y):
    d, r, _ = error_term(_, x, y)
    return d, r, int(Fraction(number(r)) * 2**23)


def rounding_small_errors_up(_, x, y):
    """Round ties up where r is small; random x and y reach them only where r is large."""
    d, r, u = error_term(_, x, y)
    units = Fraction(number(r)) * 2**23
    return d, r, int(units + Fraction(1, 2)) if units < 2**11 else u


def without_the_one(_, x, y):
    found = errors.error_term(number(x), number(y))
    ratio = arithmetic.quotient(found.d, abs(number(x)))
    return bits32(found.d), bits32(ratio), found.u


def taking_ties(p, total, *others):
    return decide(p, max(total - 1, 0), *others)


def refusing_ties(p, total, *others):
    return decide(p, total + 1, *others)


def in_single_precision(_, *fields):
    total, nonzero, nonfinite, limit = fields[:4]
    mean = np.float32(total) / np.float32(nonzero or 1) < np.float32(limit)
    return (nonfinite == 0 and bool(mean or nonzero == 0),)


def with_the_subnormal_range(p, *fields):
    *sums, amax, amin = fields
    return decide(p, *sums, amax, bits32(number(amin) * 4))


def blind_to_lost_elements(p, total, nonzero, _, *others):
    return decide(p, total, nonzero, 0, *others)


def keeping_payloads(p, code):
    (value,) = decode(p, code)
    return (value | (code & 0x80) << 24,) if value == 0x7FFFFFFF else (value,)


@pytest.mark.tier("full", but=["[decisions/"])
@pytest.mark.parametrize(
    ("name", "device"),
    [
        (E4M3, to_away),
        ("encode/e4m3.f32.rtp.satfinite.canonical", flushing),
        (E4M3, keeping_the_sign_of_nan),
        (E4M3, without_the_sign_of_zero),
        ("encode/e4m3.f32.rne.ieee.canonical", overflowing_early),
        ("encode/e5m2.f32.rtp.satfinite.canonical", to_away),
        ("encode/bf16.f32.rne.satfinite.canonical", to_away),
        ("encode/bf16.f32.rne.satfinite.canonical", flushing),
        ("encode/e8m0.f32.rtp.satfinite.canonical", flushing),
        ("encode/int8_mx.f32.rne.satfinite.canonical", to_away),
        ("encode/e2m1.bf16.rne.satfinite.canonical", to_away),
        ("encode/e4m3.f64.rne.satfinite.canonical", through_binary32),
        ("encode/f32.f64.rne.ieee.canonical", to_away),
        ("encode_stochastic/e4m3.8", one_word_early),
        ("encode_stochastic/bf16.16", one_word_early),
        ("encode_stochastic/e2m1.32", one_word_early),
        ("decode/e4m3", keeping_payloads),
        ("scale_steps/e4m3.gam", of_seven_bits),
        ("scale_steps/e4m3.gam", without_decrement),
        ("scale_steps/e5m2.gam", decrementing_when_equal),
        ("scale_steps/e4m3.gam", comparing_few_bits),
        ("quantize_steps/e4m3", by_reciprocal),
        ("error_steps/all", truncating_errors),
        ("error_steps/all", rounding_small_errors_up),
        ("error_steps/all", without_the_one),
        ("decisions/mean_relative_error", taking_ties),
        ("decisions/mean_relative_error", refusing_ties),
        ("decisions/mean_relative_error", in_single_precision),
        ("decisions/mean_relative_error", blind_to_lost_elements),
        ("decisions/not_worse_than", refusing_ties),
        ("decisions/fits_range.e5m2", with_the_subnormal_range),
    ],
)  # fmt: skip
def test_random_inputs_find_a_wrong_device(name, device):
    """More than once, or a seed would decide."""
    lines, wrong = check(name, joined(answered(name, random_lines(name, 4000), device)))
    assert lines == 4000
    assert len(wrong) >= 4


@pytest.mark.tier("full")
def test_a_mismatch_is_named_with_its_line_its_inputs_and_its_distance():
    right = answered(E4M3, run("gen", E4M3, "--count", 50)[1].splitlines())
    right[16] = "3f800000 3a"
    right[40] = "ff800000 FF"
    status, out, err = run("ver", E4M3, text=joined(right))
    assert (status, err) == (1, "")
    assert out.splitlines() == [
        "line 17: x 0x3F800000 (1): code is 0x3A (1.25), but 0x38 (1) is expected, 2 ulp above",
        "line 41: x 0xFF800000 (-inf): code is 0xFF (nan), but 0xFE (-448) is expected",
        f"{E4M3}: mismatch, 50 lines, 2 of them wrong",
    ]


@pytest.mark.parametrize(
    ("name", "line", "words"),
    [
        (
            "encode/e4m3.f64.rne.satfinite.canonical",
            "3ff0000000000000 39",
            "x 0x3FF0000000000000 (1): code is 0x39 (1.125), but 0x38 (1) is expected, 1 ulp above",
        ),
        (
            "encode/e2m1.f32.rne.satfinite.canonical",
            "3f800000 12",
            "code is 0x12 (not of 4 bits), but 0x2 (1) is expected",
        ),
        (
            "encode_stochastic/e4m3.8",
            "3f880000 0000007f 39",
            "x 0x3F880000 (1.0625), random_word 127: code is 0x39 (1.125), but 0x38 (1) is",
        ),
        (
            "quantize_steps/e4m3",
            "3f800000 40000000 40000000 41 3f800001",
            "code is 0x41 (2.25), but 0x40 (2) is expected, 1 ulp above; y is 0x3F800001 (1.000000",
        ),
        (
            "decisions/not_worse_than",
            " ".join(["0" * 15 + "5", "0" * 16, "0" * 16, "0" * 8, "0" * 15 + "5", *["0" * 8] * 2])
            + " 00",
            "yardstick_sum 5, amax 0x00000000 (0), amin 0x00000000 (0): accepted is 0, but 1 is ex",
        ),
    ],
)
def test_how_bits_are_shown(name, line, words):
    lines, (said,) = check(name, joined([line]))
    assert lines == 1
    assert words in said


@pytest.mark.tier("full")
def test_it_stops_after_so_many_errors():
    wrong = joined(answered(E4M3, random_lines(E4M3, 200), lambda _, x: (x & 0x7F,)))
    status, out, err = run("ver", E4M3, text=wrong)
    assert (status, err) == (1, "")
    assert len(out.splitlines()) == 22  # the errors, where the rules are, and the verdict
    last = int(out.splitlines()[19].split(":")[0].removeprefix("line "))
    assert out.splitlines()[21] == f"{E4M3}: mismatch, {last} lines, 20 of them wrong, stopped here"
    status, few, _ = run("ver", E4M3, "--errors", 3, text=wrong)
    assert status == 1
    assert few.splitlines()[:3] == out.splitlines()[:3]
    assert few.endswith(" 3 of them wrong, stopped here\n")


def test_nothing_is_read_after_the_last_error_that_is_named(monkeypatch, capsys):
    pieces = iter([b"3f800000 38\n3f800000 39\n3f800000 40\n", b"foo\n"])
    monkeypatch.setattr(command.os, "read", lambda *_: next(pieces))
    assert command.run_ver(E4M3, "testfloat", 1, None) == 1
    assert capsys.readouterr().out.endswith("mismatch, 2 lines, 1 of them wrong, stopped here\n")
    assert next(pieces) == b"foo\n"
