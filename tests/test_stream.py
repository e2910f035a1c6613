"""Streams of test cases: what is generated, and what comes of the answers of devices.

The right device is the exact model; a wrong one has one step of it otherwise.
"""

import functools
import os
import signal
import struct
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from mor_ref import exact, formats, golden
from mor_ref.cli import stream as command
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.formats import presets
from mor_ref.definitions.policies import FitsRange, MeanRelativeError, NotWorseThan
from mor_ref.exact import arithmetic, policies, quantization
from mor_ref.exact import scales as scaling
from mor_ref.exact.errors import ErrorSum
from mor_ref.exact.errors import error_term as exact_error_term
from mor_ref.golden import kept_files
from mor_ref.golden.store import container
from mor_ref.golden.streams.stream import inputs_of, is_streamed, random_inputs, stream_named
from mor_ref.operations import random_words
from mor_ref.operations.random_numbers import Draws
from mor_ref.verify.running.stream import LineError, Sent, checked, whole_lines

E4M3 = "encode/e4m3.f32.rne.satfinite.canonical"
ENTRIES = container.read_manifest(kept_files())["suites"]
STREAMED = [name for name, entry in ENTRIES.items() if is_streamed(entry["operation"])]
ALL = [f"{suite}/{case}" for suite in STREAMED for case in ENTRIES[suite]["cases"]]
FIRST = [f"{suite}/{next(iter(ENTRIES[suite]['cases']))}" for suite in STREAMED]
FIRST += [
    "decisions/not_worse_than",
    "decisions/fits_range.e5m2",
    "encode/e4m3.f64.rne.satfinite.canonical",
]
MAIN = "import sys; sys.argv[0] = 'mor-ref'; from mor_ref.cli import main; main()"


# ---------------------------------------------------------------------- a device


def number(bits, source="f32"):
    if source == "bf16":
        bits, source = bits << 16, "f32"
    pair = {"f64": "<Qd", "f32": "<If", "f16": "<He"}[source]
    return struct.unpack("<" + pair[2], struct.pack(pair[:2], bits))[0]


def bits32(value):
    return exact.encode(value, formats["f32"], "rne", SpecialCases(overflow="ieee"))


def encode(p, x):
    special = SpecialCases(overflow=p["overflow"], nan=p["nan"])
    return (exact.encode(number(x, p["source"]), formats[p["format"]], p["rounding"], special),)


def encode_preset(p, x):
    special = presets[p["preset"]][p["format"]]
    return (exact.encode(number(x), formats[p["format"]], special=special),)


def encode_stochastic(p, x, word):
    n, special = p["n_random_bits"], SpecialCases(overflow=p["overflow"])
    fmt = formats[p["format"]]
    return (exact.encode(number(x), fmt, "sr", special, random_word=word, n_random_bits=n),)


def decode(p, code):
    return (exact.decode(code, formats[p["format"]]),)


def scale(p, group, block):
    largest = formats[p["format"]].largest
    shared = scaling.group_mantissa(largest, number(group)) if p["scaling"] == "gam" else 0
    found = scaling.scale_of_block(p["scaling"], largest, number(block), shared)
    return shared, found.exponent_code or 0, bits32(found.value)


def quantize_element(p, x, factor):
    found = quantization.quantize_element(number(x), number(factor), formats[p["format"]])
    return bits32(found.xs), found.code, bits32(found.y)


def error_term(_, x, y):
    found = exact_error_term(number(x), number(y))
    return bits32(found.d), bits32(found.r), found.u


def decide(p, total, nonzero, nonfinite, limit, yardstick, amax, amin):
    own, errors = ErrorSum(total, nonzero, nonfinite), {}
    if p["metric"] == "mean_relative_error":
        metric = MeanRelativeError(Fraction(limit, 1 << 23))
        assert metric.limit == limit
    elif p["metric"] == "not_worse_than":
        metric, errors = NotWorseThan("e5m2"), {"e5m2": ErrorSum(yardstick, 1, 0)}
    else:
        metric = FitsRange(p["format"])
    return (nonfinite == 0 and policies.accepts(metric, own, errors, number(amax), number(amin)),)


DEVICE = {
    "encode": encode,
    "encode_preset": encode_preset,
    "encode_stochastic": encode_stochastic,
    "decode": decode,
    "scale": scale,
    "quantize_element": quantize_element,
    "error_term": error_term,
    "decide": decide,
}


@functools.cache
def kept(suite):
    """The arrays of the cases of a suite."""
    return {case.name: case.arrays for case in golden.load(suite)}


def arrays_of(name):
    suite, case = name.split("/")
    return kept(suite)[case]


def widths(name):
    """The digits of the columns, from the arrays that are kept."""
    return [2 * array.itemsize for array in arrays_of(name).values()]


def answered(name, lines, device=None):
    """Each line with the results of a device appended."""
    stream, digits = stream_named(name), widths(name)
    device = device or DEVICE[stream.operation]
    out = []
    for line in lines:
        results = device(stream.parameters, *(int(word, 16) for word in line.split(" ")))
        places = digits[len(line.split(" ")) :]
        words = [f"{result:0{width}x}" for result, width in zip(results, places, strict=True)]
        out.append(" ".join([line, *words]))
    return out


def random_lines(name, count, seed=0, first=0):
    """Lines of the random part alone."""
    stream = stream_named(name)
    text = stream.question.written(random_inputs(stream, Draws(first, count, seed)))
    return text.decode("ascii").splitlines()


def check(name, text, piece=1 << 16, count=None):
    """How many lines were checked, and what is said of the wrong ones."""
    pieces = iter([text[i : i + piece] for i in range(0, len(text), piece)])
    lines, wrong = 0, []
    for part in checked(stream_named(name), lambda: next(pieces, b""), count):
        assert part.first == lines + 1
        lines += part.count
        wrong += [part.describe(place) for place in part.wrong.tolist()]
    return lines, wrong


def joined(lines, newline="\n"):
    return "".join(f"{line}{newline}" for line in lines).encode("ascii")


def run(*arguments, text=b""):
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *map(str, arguments)],
        input=text,
        capture_output=True,
        check=False,
    )
    assert b"Traceback" not in done.stderr
    return done.returncode, done.stdout.decode(), done.stderr.decode()


# ---------------------------------------------------------------------- what is generated


@pytest.mark.parametrize("name", FIRST)
def test_the_kept_inputs_come_first(name):
    fields = ENTRIES[name.split("/")[0]]["fields"]
    columns = [field["name"] for field in fields if field["role"] == "input"]
    rows = zip(*(arrays_of(name)[column].tolist() for column in columns), strict=True)
    places = widths(name)
    expected = [" ".join(f"{v:0{w}x}" for v, w in zip(row, places, strict=False)) for row in rows]
    status, out, err = run("gen", name, "--count", len(expected) + 5)
    assert (status, err) == (0, "")
    assert out.endswith("\n")
    assert out.splitlines()[: len(expected)] == expected
    assert out.splitlines()[len(expected) :] == random_lines(name, 5)
    assert {len(line) for line in out.splitlines()} == {len(expected[0])}


def test_the_same_lines_every_time():
    lengths = 3000, 3000, 2500
    first, again, shorter = (run("gen", E4M3, "--seed", 7, "--count", n)[1] for n in lengths)
    other = run("gen", E4M3, "--seed", 8, "--count", 3000)[1]
    assert first == again
    assert first.startswith(shorter)
    size = arrays_of(E4M3)["x"].size
    same = [a == b for a, b in zip(first.splitlines(), other.splitlines(), strict=True)]
    assert all(same[:size])
    assert sum(same[size:]) < 100


@pytest.mark.parametrize("name", FIRST)
def test_the_same_lines_in_chunks_of_any_size(name):
    stream = stream_named(name)
    some, others = (
        b"".join(stream.question.written(a) for a in inputs_of(stream, 3, 9000, chunk=chunk))
        for chunk in (1 << 14, 777)
    )
    assert some == others
    assert some.count(b"\n") == 9000


def test_the_words_have_no_end():
    """SplitMix64 of a counter that begins at a word of the seed's; here with Python's integers."""

    def split_mix(counter):
        z = counter * 0x9E3779B97F4A7C15 % 2**64
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return z ^ z >> 31

    for first in (0, 5, 1 << 40, (1 << 64) - 9):
        start = split_mix(1 + (2 << 32) + (3 << 48))
        expected = [split_mix((start + first + i) % 2**64) for i in range(4)]
        assert random_words.endless_words(first, 4, 3, 2).tolist() == expected


@pytest.mark.parametrize("name", ALL)
def test_all_inputs_are_in_the_domain(name):
    stream = stream_named(name)
    arrays = random_inputs(stream, Draws(0, 1 << 14, 1))
    assert stream.domain.inside(stream.parameters, arrays).all()
    assert stream.domain.inside(stream.parameters, arrays_of(name)).all()


# ---------------------------------------------------------------------- right devices


@pytest.mark.parametrize("name", FIRST)
def test_the_exact_model_is_a_right_device(name):
    stream = stream_named(name)
    text = b"".join(stream.question.written(arrays) for arrays in inputs_of(stream, 0, 400))
    lines = [*text.decode("ascii").splitlines(), *random_lines(name, 600, seed=1)]
    assert check(name, joined(answered(name, lines))) == (1000, [])


def test_a_pipe_of_commands():
    _, lines, _ = run("gen", E4M3, "--count", 3000)
    status, out, err = run("ver", E4M3, text=joined(answered(E4M3, lines.splitlines())))
    assert (status, out, err) == (0, f"{E4M3}: match, 3,000 lines, 0 of them wrong\n", "")


@pytest.mark.parametrize("name", ALL)
def test_random_inputs_of_every_case(name):
    text = joined(answered(name, random_lines(name, 80, seed=2)))
    assert check(name, text) == (80, [])


# ---------------------------------------------------------------------- wrong devices


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
    """Ties are common where r is large; where it is small, x and y have to be chosen."""
    d, r, u = error_term(_, x, y)
    units = Fraction(number(r)) * 2**23
    return d, r, int(units + Fraction(1, 2)) if units < 2**11 else u


def without_the_one(_, x, y):
    found = exact_error_term(number(x), number(y))
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


def test_a_mismatch_is_told_with_its_line_its_inputs_and_its_distance():
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


def test_it_stops_after_so_many_errors():
    wrong = joined(answered(E4M3, random_lines(E4M3, 200), lambda _, x: (x & 0x7F,)))
    status, out, err = run("ver", E4M3, text=wrong)
    assert (status, err) == (1, "")
    assert len(out.splitlines()) == 21
    last = int(out.splitlines()[19].split(":")[0].removeprefix("line "))
    assert out.splitlines()[20] == f"{E4M3}: mismatch, {last} lines, 20 of them wrong, stopped here"
    status, few, _ = run("ver", E4M3, "--errors", 3, text=wrong)
    assert status == 1
    assert few.splitlines()[:3] == out.splitlines()[:3]
    assert few.endswith(" 3 of them wrong, stopped here\n")


def test_nothing_is_read_after_the_last_error_that_is_told(monkeypatch, capsys):
    pieces = iter([b"3f800000 38\n3f800000 39\n3f800000 40\n", b"foo\n"])
    monkeypatch.setattr(command.os, "read", lambda *_: next(pieces))
    assert command.run_ver(E4M3, "testfloat", 1, None) == 1
    assert capsys.readouterr().out.endswith("mismatch, 2 lines, 1 of them wrong, stopped here\n")
    assert next(pieces) == b"foo\n"


# ---------------------------------------------------------------------- lines


def test_how_lines_may_be_written():
    lines = answered(E4M3, random_lines(E4M3, 100))
    text = joined(lines)
    for other in (
        text,
        text.upper(),
        joined(lines, "\r\n"),
        text.removesuffix(b"\n"),
        joined(lines, "\r\n").removesuffix(b"\n"),
        joined(lines[:50], "\r\n") + joined(lines[50:]),
    ):
        for piece in (1, 7, 12, 1 << 16):
            assert check(E4M3, other, piece) == (100, [])


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("3f800000", "'3f800000'"),
        ("3f800000 ", "'3f800000 '"),
        ("3f800000 3", "'3f800000 3'"),
        ("3f800000 038", "'3f800000 038'"),
        ("3f800000 38 00", "'3f800000 38 00'"),
        ("3f800000  8", "'3f800000  8'"),
        ("3f80000 038", "'3f80000 038'"),
        ("3f8000 0038", "'3f8000 0038'"),
        ("3f80  00 38", "'3f80  00 38'"),
        ("3f800000\t38", "'3f800000\\t38'"),
        ("3f80000g 38", "'3f80000g 38'"),
        ("0x3f800000 0x38", "'0x3f800000 0x38'"),
        ("3f800000038", "'3f800000038'"),
        ("3f800000 \x00\x00", "'3f800000 \\x00\\x00'"),
        ("", "''"),
        (" ", "' '"),
        ("3f800000 38" * 20, "'" + ("3f800000 38" * 20)[:60] + "..'"),
    ],
)
@pytest.mark.parametrize("before", [0, 1, 100])
def test_a_line_that_is_not_understood(line, shown, before):
    """It is told with its number, after the lines before it have been checked."""
    right = ["3F80000a 38"] * before
    expected = (
        f"line {before + 1} is {shown}, which is not understood; give x of 8 and code of 2 "
        "hexadecimal digits, with one space between"
    )
    text = joined([*right, line, *right])
    for piece in (5, 1 << 16):
        with pytest.raises(LineError) as refused:
            check(E4M3, text, piece)
        assert str(refused.value) == expected


def test_bytes_that_are_no_text():
    with pytest.raises(LineError, match=r"line 1 is '\\\\xff\\\\xfe'"):
        check(E4M3, b"\xff\xfe\n")


def test_a_line_without_end_is_not_kept():
    pieces = iter([b"0" * 100] * 3)
    assert list(whole_lines(lambda: next(pieces, b""), 12)) == [b"0" * 100 + b"\n"]


@pytest.mark.parametrize(
    ("name", "line", "words"),
    [
        ("error_steps", ["00000000"] * 5, "line 2 has x 0x00000000 (0), y 0x00000000 (0), which"),
        ("error_steps", ["7f800000"] * 5, "does not take: x is finite and not zero"),
        ("error_steps", ["3f800000", "7fc00000"] + ["0" * 8] * 3, "and y is no NaN"),
        ("scale_steps/e4m3.gam", ["3f800000", "40000000", "0" * 8, "00", "0" * 8], "no larger"),
        ("scale_steps/e4m3.gam", ["7f800000", "40000000", "0" * 8, "00", "0" * 8], "no larger"),
        ("quantize_steps/e4m3", ["3f800000", "0" * 8, "0" * 8, "00", "0" * 8], "scale is positive"),
        ("encode_stochastic/e4m3.8", ["3f800000", "00000100", "38"], "random_word 256, which"),
        ("decode/e2m1", ["10", "00000000"], "code 0x10 (not of 4 bits), which decode does not"),
    ],
)
def test_inputs_outside_of_the_domain(name, line, words):
    right = answered(stream_named(name).name, random_lines(name, 1))
    with pytest.raises(LineError, match="line 2 has ") as refused:
        check(name, joined([*right, " ".join(line), *right]))
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        ((), b"", "the input has no line to check; give lines of x of 8 and code of 2 hexadecimal"),
        (("--count", 3), b"3f800000 38\n" * 2, "count is 3, but the input ended after 2 lines"),
        (("--errors", 0), b"", "errors is 0; give an int from 1 to"),
        (("--count", 0), b"", "count is 0; give an int from 1 to"),
        (("--format", "json"), b"", "format is 'json', which is not known; take one of testfloat"),
    ],
)
def test_ver_cannot_go_on(arguments, text, message):
    status, out, err = run("ver", E4M3, *arguments, text=text)
    assert (status, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_mismatches_before_a_line_that_is_not_understood_are_told():
    status, out, err = run("ver", E4M3, text=b"3f800000 39\nfoo\n")
    assert status == 1
    assert out.startswith("line 1: x 0x3F800000 (1): code is 0x39")
    assert out.endswith(f"\n{E4M3}: mismatch, 1 line, 1 of them wrong\n")
    assert err.startswith("mor-ref: line 2 is 'foo'")
    status, out, _ = run("ver", E4M3, text=b"3f800000 38\nfoo\n")
    assert (status, out) == (2, "")


def test_a_count_ends_the_check():
    text = b"3f800000 38\n" * 5
    assert check(E4M3, text + b"foo\n", count=5) == (5, [])
    assert check(E4M3, text, count=3) == (3, [])
    assert check(E4M3, text + b"3f800000 39\n", piece=12, count=5) == (5, [])


@pytest.mark.parametrize(
    ("suite", "message"),
    [
        ("encode", "which has 234 cases; give one of them after a slash, such as encode/e4m3.f32"),
        ("encode/", "suite is 'encode', which has "),
        ("encode/e4m3.f32.rne", "case of encode is 'e4m3.f32.rne', which is not known; did you m"),
        ("encode/foo", "? there are 234, which mor-ref golden list encode --cases prints"),
        ("encode", "canonical; mor-ref golden list encode --cases prints all"),
        ("encod/e4m3", "suite is 'encod', which is not known; did you mean 'encode'? take one of"),
        ("mx", "suite is 'mx', whose cases are blocks or tensors, and streams are of single"),
        ("nvfp4_te/bell.bf16", "or use mor-ref verify"),
    ],
)  # fmt: skip
def test_names_that_are_not_known(suite, message):
    with pytest.raises(ValueError, match=r"^\w[^\n]+$") as refused:
        stream_named(suite)
    assert message in str(refused.value)


@pytest.mark.parametrize("name", ["gen", "ver"])
def test_a_suite_of_tensors_is_refused(name):
    status, out, err = run(name, "mx")
    assert (status, out) == (2, "")
    assert err.startswith("mor-ref: suite is 'mx', whose cases are blocks or tensors, and")


def test_gen_is_called_wrongly():
    for arguments, message in (
        (("--format", "csv"), "format is 'csv', which is not known; take one of testfloat"),
        (("--seed", -1), "seed is -1; give an int from 0 to 65535"),
        (("--count", 0), "count is 0; give an int from 1 to"),
    ):
        status, out, err = run("gen", E4M3, *arguments)
        assert (status, out) == (2, "")
        assert message in err


# ---------------------------------------------------------------------- lines that were sent


def sent_lines(name, seed, count):
    stream = stream_named(name)
    text = b"".join(stream.question.written(arrays) for arrays in inputs_of(stream, seed, count))
    return answered(name, text.decode("ascii").splitlines())


def held_to(name, lines, seed, piece=1 << 16):
    text = joined(lines)
    pieces = iter([text[i : i + piece] for i in range(0, len(text), piece)])
    stream = stream_named(name)
    sent = Sent(inputs_of(stream, seed, chunk=777))
    parts = checked(stream, lambda: next(pieces, b""), None, sent)
    return sum(part.count for part in parts)


@pytest.mark.parametrize("name", [E4M3, "encode_stochastic/e4m3.8", "error_steps/all"])
def test_lines_are_those_that_were_sent(name):
    """From the kept ones to the random ones, in pieces of any size."""
    size = next(iter(arrays_of(name).values())).size
    lines = sent_lines(name, 7, size + 900)
    for piece in (1 << 16, 1000, 37 if size < 3000 else 997):
        assert held_to(name, lines, 7, piece) == size + 900


@pytest.mark.parametrize(
    ("change", "number"),
    [
        (lambda lines: lines[:100] + lines[101:], 101),
        (lambda lines: lines[:100] + lines[99:], 101),
        (lambda lines: [*lines[:100], lines[101], lines[100], *lines[102:]], 101),
        (lambda lines: [*lines[:100], "3e800000 28", *lines[101:]], 101),
        (lambda lines: lines[::-1], 1),
    ],
)
def test_a_device_that_drops_repeats_or_changes_a_line(change, number):
    right = sent_lines(E4M3, 7, 300)
    lines = change(right)
    with pytest.raises(LineError) as refused:
        held_to(E4M3, lines, 7)
    given, sent = (side[number - 1].split(" ")[0].upper() for side in (lines, right))
    said = str(refused.value)
    assert said.startswith(f"line {number} has x 0x{given} (")
    assert f"), where mor-ref gen sent x 0x{sent} (" in said
    assert said.endswith("each of its lines once, in its order, and here the seed that it had")
    assert check(E4M3, joined(lines))[1] == []  # nobody could tell without the seed


def test_the_seed_of_ver():
    size = arrays_of(E4M3)["x"].size
    text = joined(sent_lines(E4M3, 7, size + 400))
    status, out, _ = run("ver", E4M3, "--seed", 7, text=text)
    assert (status, out) == (0, f"{E4M3}: match, {size + 400:,} lines, 0 of them wrong\n")
    status, out, err = run("ver", E4M3, "--seed", 8, text=text)
    assert (status, out) == (2, "")
    assert f"line {size + 1} has x 0x" in err or "where mor-ref gen sent x" in err
    assert run("ver", E4M3, "--seed", 7, "--count", size, text=text)[0] == 0
    status, _, err = run("ver", E4M3, "--seed", -1, text=text)
    assert (status, err) == (2, "mor-ref: seed is -1; give an int from 0 to 65535\n")


def test_results_before_another_line_are_told():
    lines = sent_lines(E4M3, 7, 20)
    lines[3] = f"{lines[3].split(' ')[0]} 55"
    status, out, err = run("ver", E4M3, "--seed", 7, text=joined([*lines[:9], *lines[10:]]))
    assert status == 1
    assert out.startswith("line 4: x 0x")
    assert err.startswith("mor-ref: line 10 has x 0x")


# ---------------------------------------------------------------------- processes


def started(*arguments, before="", **streams):
    # What runs in the background is started with interrupts ignored, and hands that on.
    listening = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code = listening + before + MAIN
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], **streams)


def test_a_reader_that_has_seen_enough():
    process = started("gen", E4M3, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"00000000\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0


def test_a_pipe_that_takes_a_few_bytes_at_once(monkeypatch):
    written = bytearray()

    def write(_, content):
        written.extend(content[:5])
        return min(5, len(content))

    monkeypatch.setattr(command.os, "write", write)
    assert command.run_gen(E4M3, "testfloat", 0, 3) == 0
    assert written == b"00000000\n00000001\n00800000\n"


def test_a_report_that_nobody_reads():
    reading, writing = os.pipe()
    os.close(reading)
    for code, status in ((b"39", 1), (b"38", 0)):
        process = started(
            "ver", E4M3, stdin=subprocess.PIPE, stdout=writing, stderr=subprocess.PIPE
        )
        _, err = process.communicate(b"3f800000 " + code + b"\n")
        assert (process.returncode, err) == (status, b"")
    os.close(writing)


def test_an_interrupt_is_quiet():
    process = started("gen", E4M3, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert (process.returncode, err) == (130, b"")


def test_an_interrupted_check_says_how_far_it_came():
    process = started(
        "ver", E4M3, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdin.write(b"3f800000 38\n3f800000 39\n")
    process.stdin.flush()
    assert process.stdout.readline().startswith(b"line 2: ")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, err) == (1, b"")
    assert out.decode() == f"{E4M3}: mismatch, 2 lines, 1 of them wrong\n"


@pytest.mark.parametrize(("lines", "verdict"), [([b"3f800000 38\n"], "match"), ([], "not run")])
def test_an_interrupt_before_any_mismatch(monkeypatch, capsys, lines, verdict):
    pieces = iter(lines)

    def read(_, __):
        try:
            return next(pieces)
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr(command.os, "read", read)
    assert command.run_ver(E4M3, "testfloat", 20, None) == 130
    count = "1 line" if lines else "0 lines"
    assert capsys.readouterr().out == f"{E4M3}: {verdict}, {count}, 0 of them wrong\n"


def test_memory_does_not_grow_with_the_stream():
    """Ten million bytes more go through; the most memory that was used stays as it was."""
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("only Linux says how much memory a process has used at most")
    # What getrusage says begins with the memory of the process that starts another.
    peak = (
        "import atexit, sys; atexit.register(lambda: "
        f"sys.stderr.write(open({str(status)!r}).read().split('VmHWM:')[1].split()[0])); "
    )

    def kilobytes(*arguments, text=b""):
        process = started(
            *arguments,
            before=peak,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if arguments[0] == "ver" else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        _, err = process.communicate(text)
        assert process.returncode == 0
        return int(err)

    few, many = (kilobytes("gen", E4M3, "--count", n) for n in (100_000, 5_000_000))
    assert many - few < 4000
    lines = joined(answered(E4M3, random_lines(E4M3, 1000)))
    few, many = (kilobytes("ver", E4M3, text=lines * n) for n in (100, 4000))
    assert many - few < 4000
