"""Seldom arithmetic of PTX: binary64 by direction, three operands, packed integers, vectors."""

import itertools
import math
import struct
from fractions import Fraction

import numpy as np
import pytest
from kernels import needed
from ptx_programs import HEADER, run

from mor_ref.ptx import Module

SIGN = 1 << 63
MODES = {"rz": "rtz", "rm": "rtn", "rp": "rtp"}
WIDE = [
    0x3FF0000000000000, 0x3FF0000000000001, 0x4008000000000000, 0x3FD5555555555555,
    0x0000000000000001, 0x000FFFFFFFFFFFFF, 0x7FEFFFFFFFFFFFFF, 0x3CA0000000000001,
]  # fmt: skip
WIDE += [one | SIGN for one in WIDE]


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    needed.compiler()


def wide(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def directed(x, mode):
    """Return the bits of a number that is not 0, rounded to binary64 by direction."""
    size, least = abs(x), Fraction(2) ** -1074
    up = (mode == "rp" and x > 0) or (mode == "rm" and x < 0)
    exponent = max(size.numerator.bit_length() - size.denominator.bit_length() - 54, -1074)
    while exponent > -1074 and size < Fraction(2) ** (exponent + 52):
        exponent -= 1
    while size >= Fraction(2) ** (exponent + 53):
        exponent += 1
    unit = max(Fraction(2) ** exponent, least)
    whole = size // unit + (up and size % unit != 0)
    largest = (Fraction(2) ** 53 - 1) * Fraction(2) ** 971
    beyond = math.inf if up else float(largest)
    found = beyond if whole * unit > largest else float(whole * unit)
    return struct.unpack("<Q", struct.pack("<d", -found if x < 0 else found))[0]


@pytest.mark.tier("full")
@pytest.mark.parametrize("mode", MODES)
def test_binary64_by_direction(mode):
    pairs = [(a, b) for a, b in itertools.product(WIDE, WIDE)]
    models = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b,
    }
    for name, model in models.items():
        exact = {row: model(*(Fraction(wide(one)) for one in row)) for row in pairs}
        rows = [row for row in pairs if exact[row]]
        wanted = [directed(exact[row], mode) for row in rows]
        assert run(f"{name}.{mode}.f64", ("b64",) * 3, rows) == wanted, name
    rows = [(a, b, 0x3FF0000000000001) for a, b in pairs]
    exact = [Fraction(wide(a)) * Fraction(wide(b)) + Fraction(wide(c)) for a, b, c in rows]
    found = run(f"fma.{mode}.f64", ("b64",) * 4, rows)
    assert [(x, y) for x, y in zip(found, exact, strict=True) if y and x != directed(y, mode)] == []
    rows = [(one,) for one in WIDE]
    wanted = [directed(1 / Fraction(wide(one)), mode) for one in WIDE]
    assert run(f"rcp.{mode}.f64", ("b64",) * 2, rows) == wanted
    (zero,) = run(f"add.{mode}.f64", ("b64",) * 3, [(WIDE[0], WIDE[0] | SIGN)])
    assert zero == (SIGN if mode == "rm" else 0)


@pytest.mark.tier("full", but=["[rm]"])
@pytest.mark.parametrize("mode", MODES)
def test_square_roots_by_direction(mode):
    """The root is exact if and only if its square is the number."""
    for kind, codes in (("f64", WIDE[:8]), ("f32", [0x3F800001, 0x40800000, 1, 0x7F7FFFFF])):
        form = "<d" if kind == "f64" else "<f"
        word = "<Q" if kind == "f64" else "<I"
        types = ("b64", "b64") if kind == "f64" else ("f32", "f32")
        found = run(f"sqrt.{mode}.{kind}", types, [(one,) for one in codes])
        for bits, one in zip(codes, found, strict=True):
            below, root, above = (
                Fraction(struct.unpack(form, struct.pack(word, one + k))[0]) for k in (-1, 0, 1)
            )
            x = Fraction(struct.unpack(form, struct.pack(word, bits))[0])
            if mode == "rp":
                assert below**2 < x <= root**2
            else:
                assert root**2 <= x < above**2


@pytest.mark.tier("full")
def test_extremes_of_three():
    nan = 0x7FC00001
    rows = [(0x3F800000, 0xC0000000, 0x40400000), (nan, 0x3F800000, 0x80000000), (nan, nan, 5)]
    wanted = {
        "min": [0xC0000000, 0x80000000, 5],
        "max": [0x40400000, 0x3F800000, 5],
        "min.NaN": [0xC0000000, 0x7FFFFFFF, 0x7FFFFFFF],
        "max.abs": [0x40400000, 0x3F800000, 5],
        "min.NaN.abs": [0x3F800000, 0x7FFFFFFF, 0x7FFFFFFF],
        "max.ftz": [0x40400000, 0x3F800000, 0],
    }
    for name, found in wanted.items():
        assert run(f"{name}.f32", ("f32",) * 4, rows) == found, name


@pytest.mark.tier("full")
def test_packed_integers():
    """The first operand is above the second, and both below the third."""
    numbers = [0, 1, 7, 8, 127, 128, 255, 256, 1 << 30, (1 << 32) - 1, (1 << 32) - 9, 1 << 31]
    rows = list(itertools.product(numbers, numbers, [0x89ABCDEF]))
    for kind in ("s8", "u8", "s4", "u4", "s2", "u2", "s16", "u16"):
        width = int(kind[1:])
        least = -(1 << width - 1) if kind[0] == "s" else 0
        most = (1 << width - (kind[0] == "s")) - 1

        def clamped(x, width=width, least=least, most=most):
            return min(max(x - (x >> 31 << 32), least), most) & (1 << width) - 1

        both = [clamped(a) << width | clamped(b) for a, b, _ in rows]
        if width == 16:
            found = run(f"cvt.pack.sat.{kind}.s32", ("b32",) * 3, [row[:2] for row in rows])
            assert found == both
        else:
            found = run(f"cvt.pack.sat.{kind}.s32.b32", ("b32",) * 4, rows)
            assert found == [
                (c << 2 * width | x) & (1 << 32) - 1 for x, (*_, c) in zip(both, rows, strict=True)
            ]


def test_vectors_of_sums_in_memory():
    body = """.visible .entry run(.param .u64 out) {
  .reg .f32 %f<9>; .reg .b16 %h<5>; .reg .b64 %d<4>; ld.param.u64 %d0, [out];
  mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000; mov.b16 %h1, 0x3C00; mov.b16 %h2, 0x4000;
  red.global.add.v4.f32 [%d0], {%f1, %f2, %f1, %f2};
  atom.global.add.v2.f32 {%f3, %f4}, [%d0+16], {%f1, %f2};
  red.global.add.noftz.v2.f16 [%d0+24], {%h1, %h2}; ret;
}"""
    whole = np.zeros(16, np.float32)
    out = whole[-(whole.ctypes.data // 4) % 4 :][:8]
    Module(HEADER + body)["run"][3, 1](out)
    assert out[:6].tolist() == [3, 6, 3, 6, 3, 6]
    assert out[6:7].view(np.float16).tolist() == [3, 6]


def test_one_lane_is_elected():
    """The lowest of the mask; PTX leaves open which."""
    body = """.visible .entry run(.param .u64 out) {
  .reg .pred %p<3>; .reg .b32 %r<5>; .reg .b64 %d<4>; ld.param.u64 %d0, [out];
  mov.u32 %r1, %laneid; setp.gt.u32 %p1, %r1, 3; @!%p1 bra END;
  elect.sync %r2|%p2, 0xfffffff0;
  mul.wide.u32 %d1, %r1, 4; add.s64 %d1, %d0, %d1; selp.u32 %r3, 100, 0, %p2;
  add.u32 %r3, %r3, %r2; st.global.u32 [%d1], %r3;
END: ret;
}"""
    out = np.zeros(32, np.uint32)
    Module(HEADER + body)["run"][1, 32](out)
    assert out.tolist() == [0] * 4 + [104] + [4] * 27


BOUNDS = {"tanh": (2.0**-11, True), "sin": (2.0**-20.5, False), "cos": (2.0**-20.5, False)}


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_of_functions(name):
    """The ends are within the bound, and near it; the manual bounds angles by their size."""
    bound, is_relative = BOUNDS[name]
    x = np.array([0.3, -2.5, 6.0, 1e-3], np.float32)
    text = f"""{HEADER}.visible .entry run(.param .u64 out, .param .u64 x) {{
  .reg .f32 %f<3>; .reg .b32 %r<2>; .reg .b64 %d<5>; ld.param.u64 %d0, [out]; ld.param.u64 %d1, [x];
  mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.s64 %d0, %d0, %d2; add.s64 %d1, %d1, %d2;
  ld.global.f32 %f1, [%d1]; {name}.approx.f32 %f2, %f1; st.global.f32 [%d0], %f2; ret; }}"""
    found = []
    for model in ("nearest", "below", "above"):
        out = np.zeros(4, np.float32)
        Module(text, undefined=model)["run"][1, 4](out, x)
        found.append([Fraction(float(one)) for one in out])
    for k, one in enumerate(x):
        right = Fraction(getattr(math, name)(float(one)))
        most = Fraction(bound) * (abs(right) if is_relative else 1)
        nearest, below, above = (each[k] for each in found)
        assert abs(nearest - right) <= abs(right) * Fraction(1, 1 << 23)
        for far in (right - below, above - right):
            assert most * Fraction(99, 100) < far + abs(right) * Fraction(1, 1 << 23)
            assert far <= most


ONE, NONE, FIRST, SECOND = (
    "0d3FF0000000000000", "0d0000000000000000", "0d7FF8000000000123", "0dFFF8000000000456",
)  # fmt: skip
# The bits of a NaN of binary64, or two: those that are open are others with undefined="above".
NANS = {
    f"mov.b64 %d1, {FIRST}; st.global.b64 [%d0], %d1; mov.b64 %d1, {SECOND}; "
    "red.global.add.f64 [%d0], %d1; ld.global.b64 %d1, [%d0];": (
        0x7FF8000000000123,
        0x7FF8000000000000,
    ),
    "mov.b16 %h1, 0xFF81; cvt.f32.bf16 %r1, %h1; mov.b64 %d1, {%r1, %r1};": (
        0xFF810000FF810000,
        0x7FFFFFFF7FFFFFFF,
    ),
    f"add.f64 %d1, {ONE}, {FIRST};": 0x7FF8000000000123,
    f"add.rz.f64 %d1, {SECOND}, {ONE};": 0xFFF8000000000456,
    f"sub.rz.f64 %d1, {ONE}, {SECOND};": (0xFFF8000000000456, 0x7FF8000000000456),
    f"fma.rn.f64 %d1, {ONE}, {SECOND}, {SECOND};": (0xFFF8000000000456, 0x7FF8000000000456),
    f"max.f64 %d1, {SECOND}, {SECOND};": 0xFFF8000000000456,
    f"min.f64 %d1, {FIRST}, {ONE};": 0x3FF0000000000000,
    "mov.b32 %r1, 0x7FFFFFFF; cvt.f64.f32 %d1, %r1;": 0x7FFFFFFFE0000000,
    "mov.b32 %r1, 0xFF800001; cvt.f64.f32 %d1, %r1;": 0xFFF8000020000000,
    "mov.b32 %r1, 0xFF800001; cvt.ftz.f64.f32 %d1, %r1;": 0x7FFFFFFFE0000000,
    "mov.b16 %h1, 0xFE01; cvt.f64.f16 %d1, %h1;": (0x7FFFFFFFE0000000, 0xFFF8040000000000),
    f"mul.f64 %d1, {FIRST}, {SECOND};": (0x7FF8000000000123, 0x7FF8000000000000),
    f"min.f64 %d1, {SECOND}, {FIRST};": (0xFFF8000000000456, 0x7FF8000000000000),
    f"div.rn.f64 %d1, {NONE}, {NONE};": (0xFFF8000000000000, 0x7FF8000000000000),
}


def test_nans_of_binary64():
    """As PTX has it for payloads, as ptxas folds conversions, and as CUDA has it for NaN."""
    lines = "".join(f"{text}\nst.global.b64 [%d0+{8 * k}], %d1;\n" for k, text in enumerate(NANS))
    text = f"""{HEADER}.visible .entry run(.param .u64 out) {{
.reg .b64 %d<2>; .reg .b32 %r<2>; .reg .b16 %h<2>; ld.param.u64 %d0, [out];
{lines}ret; }}"""
    for place, model in enumerate(("nearest", "above")):
        kernel, out = Module(text, undefined=model)["run"], np.zeros(len(NANS), np.uint64)
        kernel[1, 1](out)
        both = [each if isinstance(each, tuple) else (each, each) for each in NANS.values()]
        assert out.tolist() == [each[place] for each in both]
        opened = [each.text for each in kernel.undefined]
        assert opened == [text for text, each in NANS.items() if isinstance(each, tuple)]


# ptxas leaves these out, so that a NaN keeps its bits; or another form, which it does not.
KEPT = {
    "cvt.f32.f32 %r1, %r0;": (0xFFC12345, 0x7FFFFFFF),
    "min.f32 %r1, %r0, %r0;": (0x7FFFFFFF, 0xFFC12345),
    "max.f16 %h1, %h0, %h0; mov.b32 %r1, {%h1, %h1};": (0x7FFF7FFF, 0xFE12FE12),
    "mul.f32 %r1, 0f3F800000, %r0;": (0x7FFFFFFF, 0xFFC12345),
    "mul.rn.f32 %r1, %r0, 0f3F800000;": (0x7FFFFFFF, None),
    "min.NaN.f32 %r1, %r0, %r0;": (0x7FFFFFFF, None),
    "min.f32 %r1, %r0, 0f7FFFFFFF;": (0x7FFFFFFF, None),
}


def test_nans_of_instructions_that_return_their_operand():
    lines = "".join(f"{text}\nst.global.b32 [%d0+{4 * k}], %r1;\n" for k, text in enumerate(KEPT))
    text = f"""{HEADER}.visible .entry run(.param .u64 out, .param .b32 x) {{
.reg .b64 %d<2>; .reg .b32 %r<2>; .reg .b16 %h<2>; ld.param.u64 %d0, [out]; ld.param.b32 %r0, [x];
mov.b16 %h0, 0xFE12;
{lines}ret; }}"""
    for place, model in enumerate(("nearest", "above")):
        kernel, out = Module(text, undefined=model)["run"], np.zeros(len(KEPT), np.uint32)
        kernel[1, 1](out, np.uint32(0xFFC12345))
        assert out.tolist() == [each[place if each[1] else 0] for each in KEPT.values()]
        assert len(kernel.undefined) == sum(each[1] is not None for each in KEPT.values())
