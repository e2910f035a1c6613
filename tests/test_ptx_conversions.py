"""Conversions of PTX to and from small formats, against the exact model."""

import itertools
import struct

import numpy as np
import pytest
from kernels import needed
from ptx_programs import program, run

from mor_ref import exact, formats
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.ptx import Module

IEEE, SATURATING = SpecialCases(overflow="ieee"), SpecialCases()
MODES = {"rn": "rne", "rz": "rtz"}
SMALL = ["e4m3", "e5m2", "e3m2", "e2m3", "e2m1"]
HALVES = ["f16", "bf16"]
SIDES = {"e4m3": 8, "e5m2": 8, "e3m2": 8, "e2m3": 8, "e2m1": 4, "f16": 16, "bf16": 16}
SPECIALS = [0, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x477FEFFF]


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    needed.compiler()


def number(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def turning_points(name):
    """Return binary32 numbers at, next to and between the numbers of a format."""
    fmt = formats[name]
    step = max(1, fmt.code_count >> 9)
    positive = [exact.decode(code, fmt) for code in range(0, fmt.code_count >> 1, step)]
    ordered = sorted(bits for bits in positive if bits <= 0x7F800000)
    middles = [
        struct.unpack("<I", struct.pack("<f", (number(a) + number(b)) / 2))[0]
        for a, b in itertools.pairwise(ordered)
        if b < 0x7F800000
    ]
    near = {bits + k for bits in (*ordered, *middles, ordered[-1] + 0x100000) for k in (-1, 0, 1)}
    return [bits | sign for bits in sorted({*near, *SPECIALS} - {-1}) for sign in (0, 1 << 31)]


def model(bits, name, mode, words):
    """Return the code of a binary32 number."""
    fmt = formats[name]
    special = SATURATING if "satfinite" in words else IEEE
    code = exact.encode(number(bits), fmt, MODES[mode], special)
    return 0 if "relu" in words and exact_sign(code, name) and not is_nan(code, fmt) else code


def exact_sign(code, name):
    bits = {"e3m2": 6, "e2m3": 6}.get(name, SIDES[name])
    return code >> (bits - 1)


def is_nan(code, fmt):
    return exact.decode(code, fmt) & 0x7FFFFFFF > 0x7F800000


def pairs_of(values):
    values = list(values)
    return list(zip(values, values[1:] + values[:1], strict=True))


BOTH = ["satfinite", "satfinite.relu", "relu.satfinite"]
FORMS = [
    *((name, "rn", words) for name in SMALL for words in BOTH),
    *((name, mode, words) for name in HALVES for mode in MODES for words in (*BOTH, "relu", "")),
]


@pytest.mark.tier("full", but=["[e4m3-rn-satfinite]", "[e2m1-rn-relu.satfinite]", "[bf16-rz-]"])
@pytest.mark.parametrize(("name", "mode", "words"), FORMS)
def test_pairs_of_binary32(name, mode, words):
    """The first operand is in the upper bits; .relu and .satfinite come in both orders."""
    rows = pairs_of(turning_points(name))
    wanted = [
        model(a, name, mode, words) << SIDES[name] | model(b, name, mode, words) for a, b in rows
    ]
    more = f".{words}" if words else ""
    width = f"b{2 * SIDES[name]}"
    assert run(f"cvt.{mode}{more}.{name}x2.f32", (width, "f32", "f32"), rows) == wanted


@pytest.mark.tier("full", but=["[bf16]"])
@pytest.mark.parametrize("name", HALVES)
def test_single_halves(name):
    """One number, with .relu, with .satfinite, and with both."""
    bits = turning_points(name)
    for words in ("relu", "satfinite", "relu.satfinite"):
        wanted = [model(one, name, "rz", words) for one in bits]
        found = run(f"cvt.rz.{words}.{name}.f32", ("b16", "f32"), [(one,) for one in bits])
        assert found == wanted


@pytest.mark.tier("full", but=["[bf16-e4m3-7]", "[f16-e2m1-7]"])
@pytest.mark.parametrize("stride", [7, 1])
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("source", HALVES)
def test_packed_halves(source, name, stride):
    """All numbers of f16 and of bf16."""
    codes = list(range(0, 1 << 16, stride))
    known = [
        model(exact.decode(code, formats[source]), name, "rn", ("satfinite",)) for code in codes
    ]
    rows = [a << 16 | b for a, b in pairs_of(codes)]
    wanted = [a << SIDES[name] | b for a, b in pairs_of(known)]
    width = f"b{2 * SIDES[name]}"
    opcode = f"cvt.rn.satfinite.{name}x2.{source}x2"
    assert run(opcode, (width, "b32"), [(one,) for one in rows]) == wanted


@pytest.mark.tier("full", but_one_in=5)
@pytest.mark.parametrize("target", HALVES)
@pytest.mark.parametrize("name", SMALL)
def test_widening_pairs(name, target):
    """All codes; a NaN becomes the canonical one."""
    fmt, side = formats[name], SIDES[name]
    codes = range(fmt.code_count)
    known = [
        exact.encode(number(exact.decode(code, fmt)), formats[target], "rne", IEEE)
        for code in codes
    ]
    rows = [(a << side | b,) for a, b in pairs_of(codes)]
    wanted = [a << 16 | b for a, b in pairs_of(known)]
    assert run(f"cvt.rn.{target}x2.{name}x2", ("b32", f"b{2 * side}"), rows) == wanted
    clipped = [a if is_nan(a, formats[target]) or not a >> 15 else 0 for a in known]
    found = run(f"cvt.rn.relu.{target}x2.{name}x2", ("b32", f"b{2 * side}"), rows)
    assert found == [a << 16 | b for a, b in pairs_of(clipped)]


@pytest.mark.tier("full", but=["[rp]"])
@pytest.mark.parametrize("words", ["rz.satfinite", "rp.satfinite", "rz", "rp"])
def test_powers_of_two(words):
    """ue8m0 has no sign; without .satfinite, a number that is too large is NaN."""
    rounding = {"z": "rtz", "p": "rtp"}[words[1]]
    special = SATURATING if "satfinite" in words else IEEE
    ends = [exponent << 23 | k for exponent in range(256) for k in (0, 1, 0x400000, 0x7FFFFF)]
    bits = [*ends, *SPECIALS, 0x400001, 0x3FFFFF, *(0x80000000 | one for one in ends[::9])]

    def known(one):
        return exact.encode(number(one), formats["e8m0"], rounding, special)

    wanted = [known(a) << 8 | known(b) for a, b in pairs_of(bits)]
    assert run(f"cvt.{words}.ue8m0x2.f32", ("b16", "f32", "f32"), pairs_of(bits)) == wanted
    halves = [one >> 16 for one in bits]
    wanted = [known(a << 16) << 8 | known(b << 16) for a, b in pairs_of(halves)]
    rows = [(a << 16 | b,) for a, b in pairs_of(halves)]
    assert run(f"cvt.{words}.ue8m0x2.bf16x2", ("b16", "b32"), rows) == wanted


def test_numbers_of_powers_of_two():
    values = [exact.decode(code, formats["e8m0"]) for code in range(256)]
    known = [exact.encode(number(one), formats["bf16"], "rne", IEEE) for one in values]
    rows = [(a << 8 | b,) for a, b in pairs_of(range(256))]
    wanted = [a << 16 | b for a, b in pairs_of(known)]
    assert run("cvt.rn.bf16x2.ue8m0x2", ("b32", "b16"), rows) == wanted


@pytest.mark.tier("full", but=["[rna-rna]"])
@pytest.mark.parametrize(("mode", "rounding"), [("rna", "rna"), ("rn", "rne"), ("rz", "rtz")])
def test_tf32(mode, rounding):
    """tf32 has the exponents of binary32, and ten bits of mantissa."""
    tf32 = formats["bf16"].__class__("tf32", exponent_bits=8, mantissa_bits=10, bias=127)
    base = [0, 1 << 13, 0x7FE000, 0x800000, 0x3F800000, 0x3F802000, 0x7F7FC000, 0x7F7FE000]
    bits = [one + k for one in base for k in (0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF)]
    bits = [one | sign for one in (*bits, *SPECIALS) for sign in (0, 1 << 31)]
    for words, special in (("", IEEE), (".satfinite", SATURATING)):
        codes = [exact.encode(number(one), tf32, rounding, special) for one in bits]
        wanted = [0x7FFFFFFF if (code & 0x3FFFF) > 0x3FC00 else code << 13 for code in codes]
        found = run(f"cvt.{mode}{words}.tf32.f32", ("b32", "f32"), [(one,) for one in bits])
        assert found == wanted


# ---------------------------------------------------------------------- random bits


def at_random(bits, name, random, count):
    """Return the code of a number: random bits are added to as many of the bits cut off."""
    return exact.encode(
        number(bits), formats[name], "sr", SATURATING, random_word=random, n_random_bits=count
    )


def reverse(random):
    return int(f"{random:016b}"[::-1], 2)


WORDS = [0, 1, 0x1FFF, 0x8000, 0xFFFF, 0x1234, 0xA5C3]
FINITE = [0x3F800001, 0x3F8FFFFF, 0xBF912345, 0x40490FDB, 0x3DCCCCCD, 0x43D80001, 0x447FFFFF]


def test_random_bits_of_bf16():
    """The first number has the upper half of them, and the second the lower half."""
    rows = [
        (a, b, upper << 16 | lower)
        for (a, b), (upper, lower) in itertools.product(pairs_of(FINITE), pairs_of(WORDS))
    ]
    wanted = [
        at_random(a, "bf16", word >> 16, 16) << 16 | at_random(b, "bf16", word & 0xFFFF, 16)
        for a, b, word in rows
    ]
    assert run("cvt.rs.bf16x2.f32", ("b32", "f32", "f32", "b32"), rows) == wanted


def open_results(opcode, types, rows, model):
    """Return the results of an instruction whose bits are open."""
    arrays = [np.array(column, np.uint64) for column in zip(*rows, strict=True)]
    out = np.zeros(len(rows), np.uint64)
    text = program(opcode, types, vector=types.count("f32") == 4)
    Module(text, undefined=model)["run"][len(rows), 1](out, *arrays)
    return out.tolist()


def test_random_bits_of_f16():
    """Thirteen bits of each half."""
    numbers = [0x3F800001, 0x3F801FFF, 0xBF912345, 0x40490FDB, 0x3DCCCCCD]
    rows = [
        (a, b, upper << 16 | lower)
        for (a, b), (upper, lower) in itertools.product(pairs_of(numbers), pairs_of(WORDS))
    ]
    wanted = [
        at_random(a, "f16", word >> 16 & 0x1FFF, 13) << 16 | at_random(b, "f16", word & 0x1FFF, 13)
        for a, b, word in rows
    ]
    types = ("b32", "f32", "f32", "b32")
    assert open_results("cvt.rs.f16x2.f32", types, rows, "nearest") == wanted


@pytest.mark.tier("full", but=["[e4m3]"])
@pytest.mark.parametrize("name", SMALL)
def test_random_bits_of_fours(name):
    """Two numbers share sixteen bits, the first in reverse; both ends are the neighbours."""
    quads = [(*pair, *other) for pair, other in pairs_of(pairs_of(FINITE))]
    rows = [
        (*quad, upper << 16 | lower)
        for quad, (upper, lower) in itertools.product(quads, pairs_of(WORDS))
    ]
    side = SIDES[name]

    def packed(codes):
        return sum(code << side * (3 - k) for k, code in enumerate(codes))

    def shares(word):
        high, low = word >> 16, word & 0xFFFF
        if side == 4:
            high, low = high & 0xFF00 | low >> 8, (high & 0xFF) << 8 | low & 0xFF
        return reverse(high), high, reverse(low), low

    wanted = [
        packed(at_random(x, name, r, 16) for x, r in zip(row[:4], shares(row[4]), strict=True))
        for row in rows
    ]
    opcode = f"cvt.rs.satfinite.{name}x4.f32"
    types = ("b16" if side == 4 else "b32", "f32", "f32", "f32", "f32", "b32")
    assert open_results(opcode, types, rows, "nearest") == wanted
    for end, word in (("below", 0), ("above", None)):
        ends = []
        for row in rows:
            codes = [at_random(x, name, 0, 16) for x in row[:4]]
            if word is None:
                rounding = ["rtn" if x >> 31 else "rtp" for x in row[:4]]
                codes = [
                    exact.encode(number(x), formats[name], mode, SATURATING)
                    for x, mode in zip(row[:4], rounding, strict=True)
                ]
            ends.append(packed(codes))
        assert open_results(opcode, types, rows, end) == ends
