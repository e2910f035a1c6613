"""Arithmetic of PTX in half precision, against fractions and the exact model."""

import itertools
import math
import struct
from fractions import Fraction

import numpy as np
import pytest
from kernels import needed
from ptx_programs import HEADER, run

from mor_ref import exact, formats
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.ptx import Module

IEEE = SpecialCases(overflow="ieee")
NAN = 0x7FFF
HALVES = ["f16", "bf16"]
INFINITY = {"f16": 0x7C00, "bf16": 0x7F80}


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    needed.compiler()


def value(code, name):
    return struct.unpack("<f", struct.pack("<I", exact.decode(code, formats[name])))[0]


def codes(name, stride):
    """Return codes at the ends of binades, some others, and their opposites."""
    top = INFINITY[name]
    ends = {one + k for one in (0, 1, 2, top - 1, top, top + 1) for k in (0, 1)}
    unit = exact.encode(1.0, formats[name], "rne", IEEE)
    ends |= {unit + k for k in (-2, -1, 0, 1, 2)} | {
        exact.encode(1 / 3, formats[name], "rne", IEEE)
    }
    ends |= set(range(3, top, stride))
    return [code | sign for code in sorted(ends) for sign in (0, 0x8000)]


def rounded(terms, name, signs):
    """Return the code of a sum of products; `signs` are those of the terms, for zeros."""
    if any(map(math.isnan, terms)) or {math.inf, -math.inf} <= set(terms):
        return NAN
    infinite = [term for term in terms if math.isinf(term)]
    if infinite:
        return INFINITY[name] | (infinite[0] < 0) << 15
    total = sum(map(Fraction, terms))
    if total:
        return exact.encode(total, formats[name], "rne", IEEE)
    return 0x8000 if all(signs) else 0


def product(a, b):
    """Return an exact product as a fraction, or as a float if it is not finite."""
    if math.isfinite(a) and math.isfinite(b):
        return Fraction(a) * Fraction(b)
    return a * b


def modelled(op, operands, name):
    values = [value(code, name) for code in operands]
    signs = [bool(code >> 15) for code in operands]
    if op in ("mul", "fma"):
        first, sign = product(*values[:2]), signs[0] ^ signs[1]
        values, signs = [first, *values[2:]], [sign, *signs[2:]]
    if op == "sub":
        values[1], signs[1] = -values[1], not signs[1]
    return rounded(values, name, signs)


def rows_of(op, name):
    if op == "fma":
        some = codes(name, 5003)
        return list(itertools.islice(itertools.product(some, repeat=3), 0, None, 7))
    return list(itertools.product(codes(name, 1999), repeat=2))


@pytest.mark.tier("full", but=["[bf16-add]", "[f16-fma]"])
@pytest.mark.parametrize("op", ["add", "sub", "mul", "fma"])
@pytest.mark.parametrize("name", HALVES)
def test_arithmetic(name, op):
    rows = rows_of(op, name)
    wanted = [modelled(op, row, name) for row in rows]
    mode = ".rn" if op == "fma" else ""
    assert run(f"{op}{mode}.{name}", ("b16",) * (len(rows[0]) + 1), rows) == wanted


@pytest.mark.tier("full", but=["[bf16]"])
@pytest.mark.parametrize("name", HALVES)
def test_two_at_once(name):
    """Each half by itself, also where the other one overflows."""
    rows = [(a << 16 | b, a << 16 | a) for a, b in itertools.product(codes(name, 4001), repeat=2)]
    for op in ("add", "mul"):
        wanted = []
        for a, b in rows:
            halves = [modelled(op, (a >> at & 0xFFFF, b >> at & 0xFFFF), name) for at in (16, 0)]
            wanted.append(halves[0] << 16 | halves[1])
        assert run(f"{op}.rn.{name}x2", ("b32",) * 3, rows) == wanted


def test_products_of_the_whole_range():
    """A product and a sum that binary64 would round twice."""
    tie, tiny = 0x3C01, 0x0001  # (1 + 2^-10)^2 + 2^-24 is above the tie at 1 + 2^-9 + 2^-20
    rows = [
        (tie, tie, tiny),
        (tie, tie, 0x8001),
        (0x7BFF, 0x7BFF, 0x8001),
        (0x0001, 0x0001, 0x3C00),
    ]
    assert run("fma.rn.f16", ("b16",) * 4, rows) == [modelled("fma", row, "f16") for row in rows]


@pytest.mark.tier("full")
@pytest.mark.parametrize("name", HALVES)
def test_signs_and_extremes(name):
    some = codes(name, 2999)
    rows = list(itertools.product(some, repeat=2))

    def order(code):
        return -(code & 0x7FFF) - 1 if code >> 15 else code

    for op, way in (("min", min), ("max", max)):
        for more in ("", ".NaN"):
            wanted = []
            for row in rows:
                numbers = [code for code in row if code & 0x7FFF <= INFINITY[name]]
                lost = not numbers or (more and len(numbers) < 2)
                wanted.append(NAN if lost else way(numbers, key=order))
            assert run(f"{op}{more}.{name}", ("b16",) * 3, rows) == wanted
    each = [(code,) for code in some]
    assert run(f"neg.{name}", ("b16", "b16"), each) == [code ^ 0x8000 for code in some]
    assert run(f"abs.{name}", ("b16", "b16"), each) == [code & 0x7FFF for code in some]


@pytest.mark.tier("full")
def test_modifiers():
    """.ftz, .sat and .relu of f16; of bf16, .relu alone."""
    half, one, small, minus = 0x3800, 0x3C00, 0x0001, 0xBC00
    three = ("b16",) * 3
    assert run("add.ftz.f16", three, [(small, 0), (one, small)]) == [0, one]
    assert run("mul.ftz.f16", three, [(0x0400, half)]) == [0]
    assert run("add.sat.f16", three, [(one, one), (minus, 0), (NAN, 0), (half, 0)]) == [
        one,
        0,
        0,
        half,
    ]
    rows = [(one, minus, 0), (one, one, 0), (NAN, one, 0)]
    assert run("fma.rn.relu.f16", ("b16",) * 4, rows) == [0, one, NAN]
    assert run("fma.rn.relu.bf16x2", ("b32",) * 4, [(0x3F803F80, 0xBF803F80, 0)]) == [0x3F80]


@pytest.mark.tier("full")
@pytest.mark.parametrize("name", HALVES)
def test_comparisons(name):
    some = codes(name, 4999)
    rows = list(itertools.product(some, repeat=2))
    ways = {
        "lt": lambda x, y: x < y, "ge": lambda x, y: x >= y, "ne": lambda x, y: x < y or x > y,
        "equ": lambda x, y: not (x < y or x > y),
        "nan": lambda x, y: math.isnan(x) or math.isnan(y),
    }  # fmt: skip
    for how, way in ways.items():
        wanted = [int(way(value(a, name), value(b, name))) for a, b in rows]
        assert run(f"setp.{how}.{name}", ("pred", "b16", "b16"), rows) == wanted


@pytest.mark.parametrize("name", HALVES)
def test_comparisons_of_pairs(name):
    """The first predicate is of the lower numbers, and the second of the upper ones; and `set`."""
    rows = list(itertools.product(codes(name, 9001), repeat=2))
    body = """.visible .entry run(.param .u64 x, .param .u64 out) {
  .reg .b32 %r<9>; .reg .b16 %h<5>; .reg .b64 %d<4>; .reg .pred %p<4>;
  ld.param.u64 %d0, [x]; ld.param.u64 %d1, [out]; mov.u32 %r0, %ctaid.x;
  mad.wide.u32 %d0, %r0, 8, %d0; mad.wide.u32 %d1, %r0, 16, %d1;
  ld.global.u32 %r1, [%d0]; ld.global.u32 %r2, [%d0+4];
  setp.eq.u32 %p0, 0, 0; setp.lt.and.NAMEx2 %p1|%p2, %r1, %r2, %p0;
  selp.u32 %r3, 1, 0, %p1; selp.u32 %r4, 2, 0, %p2; or.b32 %r3, %r3, %r4;
  set.lt.NAMEx2.NAMEx2 %r4, %r1, %r2; set.lt.xor.u32.NAMEx2 %r5, %r1, %r2, %p0;
  mov.b32 {%h1, %h2}, %r1; mov.b32 {%h3, %h4}, %r2;
  set.lt.NAME.NAME %h1, %h1, %h3; set.lt.s16.NAME %h2, %h2, %h4; mov.b32 %r6, {%h1, %h2};
  st.global.v4.u32 [%d1], {%r3, %r4, %r5, %r6}; ret;
}"""
    pairs = [(a | b << 16, b | a << 16) for a, b in rows]
    out = np.zeros((len(rows), 4), np.uint32)
    text = HEADER + body.replace("NAME", name)
    Module(text)["run"][len(rows), 1](np.array(pairs, np.uint32), out)
    values = [(value(a, name), value(b, name)) for a, b in rows]
    one = {"f16": 0x3C00, "bf16": 0x3F80}[name]
    wanted = [
        [low + 2 * high, low * one + (high * one << 16),
         (not low) * 0xFFFF + (not high) * 0xFFFF0000, low * one + high * 0xFFFF0000]
        for low, high in ((x < y, y < x) for x, y in values)
    ]  # fmt: skip
    assert out.tolist() == wanted


@pytest.mark.tier("full")
def test_two_binary32_numbers():
    one, third = 0x3F800000, 0x3EAAAAAB
    rows = [(one << 32 | third, third << 32 | one, 0)]
    single = run("fma.rz.f32", ("f32",) * 4, [(one, third, 0)])[0]
    assert run("fma.rz.f32x2", ("b64",) * 4, rows) == [single << 32 | single]
    total = run("add.rp.f32", ("f32",) * 3, [(one, third)])[0]
    assert run("add.rp.f32x2", ("b64",) * 3, [row[:2] for row in rows]) == [total << 32 | total]


@pytest.mark.tier("full", but=["[rn.f32x2]"])
@pytest.mark.parametrize("kind", ["f64", "f16", "bf16x2", "f32x2", "rn.f32x2"])
def test_products_that_may_be_contracted(kind):
    """Those of f32x2 also with .rn, as ptxas 13.0 does."""
    width = {"f64": 64, "f16": 16, "bf16x2": 32}.get(kind, 64)
    text = f"""
.visible .entry run() {{
  .reg .b{width} %x<5>; mov.b{width} %x2, 1; mov.b{width} %x3, 2;
  mul.{kind} %x1, %x2, %x3;
  sub.{kind} %x4, %x2, %x1;
  ret;
}}
"""
    head = HEADER.replace("sm_90", "sm_100") if "f32x2" in kind else HEADER
    kernel = Module(head + text, undefined="above")["run"]
    kernel[1, 1]()
    assert [each.line for each in kernel.undefined] == [8]
