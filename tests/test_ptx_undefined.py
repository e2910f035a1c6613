"""Instructions whose bits PTX leaves open: correctly rounded, and at both ends of its bounds."""

import decimal
import itertools
import math
import struct
from fractions import Fraction

import numpy as np
import pytest
from kernels import needed
from ptx_programs import HEADER, program

from mor_ref import exact, formats
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.ptx import Candidate, LaunchError, Module, PtxError

IEEE = SpecialCases(overflow="ieee")
NAN, INFINITY = 0x7FFFFFFF, 0x7F800000
decimal.getcontext().prec = 60


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    needed.compiler()


def number(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def ulp(x):
    """Return a unit in the last place of binary32, at a number."""
    exponent = -149
    while Fraction(2) ** (exponent + 24) <= abs(x):
        exponent += 1
    return Fraction(2) ** exponent


def at_ends(x, bound):
    """Return the bits of a number, and of the least and the largest within a bound."""
    rounded = exact.encode(x, formats["f32"], "rne", IEEE)
    least = exact.encode(x - bound, formats["f32"], "rtp", IEEE)
    return rounded, least, exact.encode(x + bound, formats["f32"], "rtn", IEEE)


def found_at_ends(opcode, rows):
    """Return the results of an instruction, correctly rounded and at both ends."""
    arrays = [np.array(column, np.uint64) for column in zip(*rows, strict=True)]
    text, found = program(opcode, ("f32",) * (len(arrays) + 1)), []
    for model in ("nearest", "below", "above"):
        out = np.zeros(len(rows), np.uint64)
        Module(text, undefined=model)["run"][len(rows), 1](out, *arrays)
        found.append(out.tolist())
    return list(zip(*found, strict=True))


def fraction_of(decimal_number):
    return Fraction(*decimal_number.as_integer_ratio())


def square_root(x):
    return fraction_of((decimal.Decimal(x.numerator) / decimal.Decimal(x.denominator)).sqrt())


def logarithm(x):
    two, number_ = decimal.Decimal(2), decimal.Decimal(x.numerator) / decimal.Decimal(x.denominator)
    return fraction_of(number_.ln() / two.ln())


def power(x):
    exponent = decimal.Decimal(x.numerator) / decimal.Decimal(x.denominator)
    found = fraction_of((exponent * decimal.Decimal(2).ln()).exp())
    return Fraction(number(exact.encode(found, formats["f32"], "rne", IEEE)))


def relative(exponent):
    return lambda x: abs(x) * fraction_of(decimal.Decimal(2) ** decimal.Decimal(exponent))


POSITIVE = [0x3F800001, 0x3F8CCCCD, 0x40490FDB, 0x42C80000, 0x3DCCCCCD, 0x7EFFFFFF, 0x01234567]
ONE = {
    "rcp.approx": (lambda x: 1 / x, ulp, POSITIVE),
    "sqrt.approx": (square_root, relative("-23"), [*POSITIVE, 0x40800000]),
    "rsqrt.approx": (lambda x: 1 / square_root(x), relative("-22.9"), POSITIVE),
    "ex2.approx": (
        power,
        lambda x: 2 * ulp(x),
        [0x3F000000, 0xBF333333, 0x41234567, 0xC2480001, 0x3F800000],
    ),
    "lg2.approx": (
        logarithm,
        lambda x: relative("-22")(x) if abs(x) >= 1 else Fraction(1, 1 << 22),
        [0x3F800000, 0x3F8CCCCD, 0x3F666666, 0x40490FDB, 0x3E800001, 0x7EFFFFFF],
    ),
}


@pytest.mark.tier("full", but=["[rsqrt.approx]"])
@pytest.mark.parametrize("name", ONE)
def test_bounds(name):
    """The bounds are those of the manual: in ulp, relative, or absolute."""
    model, bound, inputs = ONE[name]
    values = [model(Fraction(number(bits))) for bits in inputs]
    wanted = [at_ends(x, bound(x)) for x in values]
    assert found_at_ends(f"{name}.f32", [(bits,) for bits in inputs]) == wanted


@pytest.mark.parametrize("name", ["div.full", "div.approx"])
def test_quotients(name):
    rows = list(itertools.product([*POSITIVE, 0xBF8CCCCD, 0x00000007], POSITIVE[:5]))
    values = [Fraction(number(a)) / Fraction(number(b)) for a, b in rows]
    wanted = [at_ends(x, 2 * ulp(x)) for x in values]
    same_sign = [
        (rounded, 0 if x > 0 and least >> 31 else least, most)
        for x, (rounded, least, most) in zip(values, wanted, strict=True)
    ]
    assert same_sign != wanted
    assert found_at_ends(f"{name}.f32", rows) == same_sign


SPECIALS = {
    "rcp.approx": {0xFF800000: 1 << 31, 1 << 31: 0xFF800000, 0: INFINITY, INFINITY: 0},
    "sqrt.approx": {0xFF800000: NAN, 0xBF800000: NAN, 1 << 31: 1 << 31, INFINITY: INFINITY},
    "rsqrt.approx": {0xBF800000: NAN, 1 << 31: 0xFF800000, 0: INFINITY, INFINITY: 0},
    "ex2.approx": {0xFF800000: 0, 1 << 31: 0x3F800000, 0: 0x3F800000, INFINITY: INFINITY},
    "lg2.approx": {0xBF800000: NAN, 1 << 31: 0xFF800000, 0: 0xFF800000, INFINITY: INFINITY},
}


@pytest.mark.parametrize("name", SPECIALS)
def test_what_the_manual_defines_has_no_ends(name):
    for bits, wanted in (SPECIALS[name] | {0x7FC00001: NAN}).items():
        assert found_at_ends(f"{name}.f32", [(bits,)]) == [(wanted,) * 3]


def test_divisors_beyond_the_bound_of_approximate_division():
    """It multiplies by a reciprocal, which is 0 above 2^126. PTX bounds nothing below 2^-126."""
    one, large, small = 0x3F800000, 0x7E800001, 0x00000001
    assert found_at_ends("div.approx.f32", [(one, large)]) == [(0, 0, 0)]
    assert found_at_ends("div.approx.f32", [(INFINITY, large)]) == [(NAN,) * 3]
    assert found_at_ends("div.approx.f32", [(small, small)]) == [(one, 0, INFINITY)]
    assert found_at_ends("div.approx.f32", [(INFINITY, small)]) == [(INFINITY,) * 3]


def test_flushing():
    """With .ftz, subnormal operands and results are 0."""
    assert found_at_ends("div.full.ftz.f32", [(0x00000100, 0x3F800000)]) == [(0, 0, 0)]
    assert found_at_ends("rcp.approx.ftz.f32", [(0x80000001,)]) == [(0xFF800000,) * 3]


# ---------------------------------------------------------------------- products in sums

SUMS = """
.visible .entry run(.param .u64 out, .param .u64 x) {
  .reg .f32 %f<9>; .reg .b64 %d<4>; .reg .b32 %r<3>; .reg .pred %p<2>;
  ld.param.u64 %d1, [out];
  ld.param.u64 %d2, [x];
  ld.global.v2.f32 {%f1, %f2}, [%d2];
  ld.global.f32 %f3, [%d2+8];
  PRODUCT
  SUM
  st.global.f32 [%d1], %f5;
  ret;
}
"""
NUMBERS = np.array([1 + 2**-12, 1 + 2**-12, -1 - 2**-11], np.float32)
APART, TOGETHER = 0, 2.0**-24


def sums(product, total, function="", inputs=NUMBERS):
    text = HEADER + function + SUMS.replace("PRODUCT", product).replace("SUM", total)
    found = []
    for model in ("nearest", "below", "above"):
        out, module = np.zeros(1, np.float32), Module(text, undefined=model)
        module["run"][1, 1](out, inputs)
        found.append(out.item())
    return found, [f"line {each.line}: {each.why}" for each in module["run"].undefined]


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize(
    ("total", "sign"),
    [
        ("add.f32 %f5, %f4, %f3;", 1),
        ("add.f32 %f5, %f3, %f4;", 1),
        ("neg.f32 %f6, %f3; sub.f32 %f5, %f4, %f6;", 1),
        ("neg.f32 %f6, %f3; sub.f32 %f5, %f6, %f4;", -1),
    ],
)
def test_products_that_may_be_contracted(total, sign):
    """PTX: without a rounding in their names, a product and a sum may be rounded as one."""
    found, undefined = sums("mul.f32 %f4, %f1, %f2;", total)
    assert found == [APART, sign * TOGETHER, sign * TOGETHER]
    assert len(undefined) == 1
    assert "line 12: ptxas may round it together with the product in line 11" in undefined[0]
    assert "--fmad=false" in undefined[0]


@pytest.mark.tier("full", but_one_in=6)
@pytest.mark.parametrize(
    ("product", "total", "wanted"),
    [
        ("mul.rn.f32 %f4, %f1, %f2;", "add.f32 %f5, %f4, %f3;", APART),
        ("mul.f32 %f4, %f1, %f2;", "add.rn.f32 %f5, %f4, %f3;", APART),
        ("mul.f32 %f4, %f1, %f2; abs.f32 %f6, %f4; sqrt.rn.f32 %f7, %f6;", "add.f32 %f5, %f7, %f3;",
         -(2**-11) + 2**-12),
        ("mul.ftz.f32 %f4, %f1, %f2;", "add.f32 %f5, %f4, %f3;", APART),
        ("mul.f32 %f4, %f1, %f2; mov.f32 %f7, 0f40000000; mul.rn.f32 %f6, %f4, %f7;",
         "add.f32 %f5, %f6, %f3;", 1 - 2**-11 + 2**-10),
        ("mul.f32 %f4, %f1, %f2; cvt.rni.f32.f32 %f6, %f4;", "add.f32 %f5, %f6, %f3;", -(2**-11)),
    ],
)  # fmt: skip
def test_sums_that_are_defined(product, total, wanted):
    found, undefined = sums(product, total)
    assert found == [wanted] * 3
    assert undefined == []


# Each is an FFMA of ptxas for sm_90: the product comes to its sum in another register, or later.
_LOOP = """mov.f32 %f5, %f1; mov.f32 %f4, %f3; mov.u32 %r1, 2;
AGAIN: add.f32 %f5, %f4, %f3; mul.f32 %f4, %f1, %f2; sub.u32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, 0;
@%p1 bra AGAIN;"""
WAYS = {
    "mov": "mul.f32 %f4, %f1, %f2; mov.b32 %r1, %f4; mov.b32 %f6, %r1; add.f32 %f5, %f6, %f3;",
    "neg": "mul.f32 %f4, %f1, %f2; neg.f32 %f6, %f4; sub.f32 %f5, %f3, %f6;",
    "neg of both": "mul.f32 %f4, %f1, %f2; neg.f32 %f6, %f4; neg.f32 %f7, %f3;"
    " add.f32 %f5, %f6, %f7; neg.f32 %f5, %f5;",
    "of the round before": """mov.u32 %r1, 2; mov.f32 %f7, %f1; mov.f32 %f4, 0f00000000;
AGAIN: mov.f32 %f6, %f4; mul.f32 %f4, %f7, %f2; mov.f32 %f7, 0f40400000; sub.u32 %r1, %r1, 1;
setp.ne.u32 %p1, %r1, 0; @%p1 bra AGAIN; add.f32 %f5, %f6, %f3;""",
    "selp": "mul.f32 %f4, %f1, %f2; setp.eq.u32 %p1, 0, 0; selp.f32 %f6, %f4, %f3, %p1;"
    " add.f32 %f5, %f6, %f3;",
    "slct": "mul.f32 %f4, %f1, %f2; slct.f32.s32 %f6, %f4, %f3, 1; add.f32 %f5, %f6, %f3;",
    "min": "mul.f32 %f4, %f1, %f2; min.f32 %f6, %f4, %f4; add.f32 %f5, %f6, %f3;",
    "a word of two": "mul.f32 %f4, %f1, %f2; mov.b64 %d3, {%f4, %f4}; mov.b64 {%f6, %f7}, %d3;"
    " add.f32 %f5, %f7, %f3;",
    "integers": "mul.f32 %f4, %f1, %f2; mov.b32 %r1, %f4; cvt.u64.u32 %d3, %r1;"
    " shl.b64 %d3, %d3, 32; shr.u64 %d3, %d3, 32; cvt.u32.u64 %r2, %d3; or.b32 %r2, %r2, 0;"
    " mov.b32 %f6, %r2; add.f32 %f5, %f6, %f3;",
    "times 1": "mul.f32 %f4, %f1, %f2; mul.rn.f32 %f6, %f4, 0f3F800000; add.f32 %f5, %f6, %f3;",
    "times a register of 1": "mul.f32 %f4, %f1, %f2; mov.f32 %f7, 0f3F800000; mov.f32 %f8, %f7;"
    " mul.rn.f32 %f6, %f4, %f8; add.f32 %f5, %f6, %f3;",
    "times a converted 1": "mul.f32 %f4, %f1, %f2; mov.u32 %r1, 1; cvt.rn.f32.u32 %f7, %r1;"
    " mul.rn.f32 %f6, %f7, %f4; add.f32 %f5, %f6, %f3;",
    "times 1 as bits": "mul.f32 %f4, %f1, %f2; mov.b32 %r1, 1065353216; mov.b32 %f7, %r1;"
    " mul.rn.f32 %f6, %f7, %f4; add.f32 %f5, %f6, %f3;",
    "times 1 times 1": "mul.f32 %f4, %f1, %f2; mov.f32 %f7, 1.0; mul.rn.f32 %f8, %f7, %f7;"
    " mul.rn.f32 %f6, %f8, %f4; add.f32 %f5, %f6, %f3;",
    "used again": "mul.f32 %f4, %f1, %f2; add.f32 %f5, %f4, %f3; mul.f32 %f4, %f5, %f5;",
    "in place": "mul.f32 %f1, %f1, %f2; add.f32 %f5, %f1, %f3;",
    "carried by a loop": _LOOP,
    "local memory": "{ .local .align 4 .b8 own[8]; mul.f32 %f4, %f1, %f2; st.local.f32 [own], %f4;"
    " ld.local.f32 %f6, [own]; } add.f32 %f5, %f6, %f3;",
    "a function": "{ .param .f32 a; .param .f32 b; .param .f32 c; st.param.f32 [a], %f1;"
    " st.param.f32 [b], %f2; call.uni (c), times, (a, b); ld.param.f32 %f6, [c]; }"
    " add.f32 %f5, %f6, %f3;",
}
TIMES = """
.func (.param .f32 c) times(.param .f32 a, .param .f32 b) {
  .reg .f32 %f<4>; ld.param.f32 %f1, [a]; ld.param.f32 %f2, [b]; mul.f32 %f3, %f1, %f2;
  st.param.f32 [c], %f3; ret; }
"""


@pytest.mark.tier("full")
def test_ways_of_a_product_to_its_sum():
    """All of them at once would be one kernel's; each is a module of its own."""
    for way, lines in WAYS.items():
        found, undefined = sums(lines, "", TIMES if way == "a function" else "")
        assert found == [APART, TOGETHER, TOGETHER], way
        assert "ptxas may round it together with the product in line" in undefined[0], way
        assert len(undefined) == 1, way


# Of ptxas for sm_80, 90 and 100: FMUL.D2 and its kin, or two FMULs.
SCALED = {
    "mul.f32 %f4, %f1, %f2; mul.f32 %f5, %f4, 0f3F000000;": 2.0**127,
    "mul.f32 %f4, %f1, %f2; mul.rn.f32 %f5, 0f3E000000, %f4;": 2.0**125,
    "mul.f32 %f4, %f1, %f2; mov.f32 %f6, 0f3E800000; mul.f32 %f5, %f6, %f4;": 2.0**126,
    "mul.rn.f32 %f4, %f1, %f2; mul.f32 %f5, %f4, 0f3F000000;": None,
    "mul.f32 %f4, %f1, %f2; mul.f32 %f5, %f4, 0f3D800000;": None,
    "mul.ftz.f32 %f4, %f1, %f2; mul.f32 %f5, %f4, 0f3F000000;": 2.0**127,
}


@pytest.mark.tier("full", but_one_in=6)
@pytest.mark.parametrize("lines", SCALED)
def test_a_product_and_a_power_of_two_may_be_rounded_as_one(lines):
    """It is noted if that changes bits: if the product alone overflows, or is subnormal."""
    together = SCALED[lines]
    found, undefined = sums(lines, "", inputs=np.array([2.0**127, 2, 0], np.float32))
    assert found == ([math.inf] * 3 if together is None else [math.inf, together, together])
    assert len(undefined) == (together is not None)
    assert all("ptxas may round it as one with the product" in each for each in undefined)
    found, undefined = sums(lines, "")
    assert len(set(found)) == 1
    assert undefined == []


def test_a_sum_of_two_products_has_two_ends():
    """PTX leaves open with which of them it is rounded."""
    product = "mul.f32 %f4, %f1, %f2; mul.f32 %f6, %f1, 0fBF800001;"
    found, undefined = sums(product, "add.f32 %f5, %f4, %f6;")
    a, b = Fraction(float(NUMBERS[0])), -1 - Fraction(1, 1 << 23)
    first, second = (Fraction(float(np.float32(float(each)))) for each in (a * a, a * b))
    wanted = [first + second, a * a + second, first + a * b]
    assert found == [float(np.float32(float(each))) for each in wanted]
    assert len(set(found)) == 3
    assert "with the product in line 11, or apart" in undefined[0]


def test_refused_by_default():
    text = HEADER + SUMS.replace("PRODUCT", "mul.f32 %f4, %f1, %f2;")
    module = Module(text.replace("SUM", "add.f32 %f5, %f4, %f3;"))
    with pytest.raises(PtxError, match=r"line 12: add.f32 .*; to run it, give undefined=\"nearest"):
        module["run"][1, 1](np.zeros(1, np.float32), NUMBERS)
    with pytest.raises(PtxError, match="undefined is 'best'; give one of refused, nearest"):
        Module(text, undefined="best")


# ---------------------------------------------------------------------- candidates


def divided(opcode):
    """Return a candidate that divides by 3 as an opcode does."""
    text = program(opcode, ("f32", "f32", "f32"))

    def launch(module, operation, parameters, inputs):
        if operation != "divide":
            return None
        assert parameters == {"by": 3}
        out = np.zeros(len(inputs["x"]), np.uint64)
        by = np.full(len(out), 0x40400000, np.uint64)
        module(text)["run"][len(out), 1](out, inputs["x"], by)
        inputs["x"][:] = 0  # which is this launch's own
        return {"y": out}

    return Candidate(launch)


def test_a_candidate_says_which_entries_are_open():
    """It answers correctly rounded, and counts the entries that change at the ends."""
    candidate = divided("div.full.f32")
    x = np.array([0x3F800000, 0, INFINITY], np.uint64)
    assert candidate("multiply", {}, {"x": x}) is None
    assert candidate.remarks() == ([], 0)
    found = candidate("divide", {"by": 3}, {"x": x})
    assert found["y"].tolist() == [0x3EAAAAAB, 0, INFINITY]
    (line, depend), count = candidate.remarks()
    assert count == 1
    assert line.startswith("line 18: div.full.f32: PTX bounds its error by 2 ulp")
    assert depend.startswith("1 of 3 entries depend on this")
    candidate("divide", {"by": 3}, {"x": x[1:]})
    (_, depend), count = candidate.remarks()
    assert count == 0
    assert depend.startswith(
        "no entry changed in 8 other ways to run it: all of this at either end"
    )
    assert "not a proof" in depend


def candidate_of(text, asked, dtype=np.float32):
    """Return a candidate that launches a text, and is asked one operation."""

    def launch(module, operation, parameters, inputs):
        assert (operation, parameters) == (asked, {})
        out = np.zeros(1, np.float32)
        module(text)["run"][1, 1](out, inputs["x"])
        return {"y": out.view(dtype)}

    return Candidate(launch)


TWO_LINES = "div.full.f32 %f4, %f1, %f2;\n div.full.f32 %f6, %f1, %f2;\n"
A_LOOP = """mov.f32 %f6, 0f00000000; mov.u32 %r1, 2;
AGAIN: mov.f32 %f4, %f6; div.full.f32 %f6, %f1, %f2; sub.u32 %r1, %r1, 1;
setp.ne.u32 %p1, %r1, 0; @%p1 bra AGAIN;\n"""


@pytest.mark.parametrize(("line", "open_entries"), [(TWO_LINES, 1), (A_LOOP, 0)])
def test_errors_that_cancel_if_all_move_together(line, open_entries):
    """A quotient minus itself: of two lines, each alone shows it. One line has one quotient."""
    text = HEADER + SUMS.replace("PRODUCT", line).replace("SUM", "sub.rn.f32 %f5, %f4, %f6;")
    candidate = candidate_of(text, "subtract")
    x = np.array([1, 3, 0], np.float32)
    assert candidate("subtract", {}, {"x": x})["y"].tolist() == [0]
    assert candidate.remarks()[1] == open_entries


SHARED_QUOTIENT = """
.visible .entry run(.param .u64 out, .param .u64 x) {
  .reg .f32 %f<4>; .reg .b64 %d<4>; .reg .b32 %r<4>;
  .shared .align 4 .b8 place[4];
  ld.param.u64 %d1, [out];
  ld.param.u64 %d2, [x];
  ld.global.v2.f32 {%f1, %f2}, [%d2];
  div.full.f32 %f3, %f1, %f2;
  st.shared.f32 [place], %f3;
  bar.sync 0;
  ld.shared.f32 %f3, [place];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %d3, %r1, 4;
  add.u64 %d3, %d1, %d3;
  st.global.f32 [%d3], %f3;
  ret;
}
"""


def test_threads_with_the_same_operands_have_the_same_result():
    """They store equal numbers to one place, which is a race only if the numbers differ."""

    def launch(module, _operation, _parameters, inputs):
        out = np.zeros(64, np.float32)
        module(HEADER + SHARED_QUOTIENT)["run"][1, 64](out, inputs["x"])
        return {"y": out}

    candidate = Candidate(launch)
    candidate("share", {}, {"x": np.array([1, 3], np.float32)})
    (_, depend), count = candidate.remarks()
    assert count == 64
    assert depend.startswith("64 of 64 entries depend on this")


def test_a_kernel_that_fails_at_another_end_keeps_its_answer():
    """A quotient of 1 is rounded up to an index, which is 2 at the upper end."""
    index = """div.full.f32 %f4, %f1, %f2; cvt.rpi.s32.f32 %r1, %f4; mul.wide.s32 %d3, %r1, 8;
add.u64 %d3, %d2, %d3; ld.global.f32 %f5, [%d3];"""
    text = HEADER + SUMS.replace("PRODUCT", "").replace("SUM", index)
    candidate = candidate_of(text, "look up")
    assert candidate("look up", {}, {"x": NUMBERS})["y"].tolist() == [NUMBERS[2]]
    (_, depend, failure), count = candidate.remarks()
    assert (count, depend[:6]) == (1, "1 of 1")
    assert failure.startswith("within these bounds, the kernel can fail: kernel run: line 13")
    assert "ld.global.f32" in failure


NOTED = {  # the bits at the nearest number, below and above
    "mov.u32 %r1, 7; mov.u32 %r2, 0; div.s32 %r1, %r1, %r2; mov.b32 %f5, %r1;": (
        "divisor", (0xFFFFFFFF, 0x80000000, 0x7FFFFFFF),
    ),
    "mov.u32 %r1, 7; mov.u32 %r2, 0; rem.u32 %r1, %r1, %r2; mov.b32 %f5, %r1;": (
        "divisor", (7, 0, 0xFFFFFFFF),
    ),
    "neg.f32 %f5, 0f7FC00000;": ("NaN", (0xFFC00000, 0xFFFFFFFF, NAN)),
    "abs.f32 %f5, 0fFFC00000;": ("NaN", (0x7FC00000, 0xFFFFFFFF, NAN)),
    "mov.b32 %r1, 0xFC007C01; neg.f16x2 %r1, %r1; mov.b32 %f5, %r1;": (
        "NaN", (0x7C00FC01, 0x7C00FFFF, 0x7C007FFF),
    ),
    "mov.f32 %f5, %f8;": ("register %f8 is read and never written", (0, 0, 0xFFFFFFFF)),
    "{ .local .align 4 .b8 own[8]; st.local.b16 [own], 0x1234; ld.local.f32 %f5, [own]; }": (
        "local memory that was not written", (0x1234, 0x1234, 0xFFFF1234),
    ),
    "{ .shared .align 4 .b8 all[8]; ld.shared.f32 %f5, [all]; }": (
        "shared memory that was not written", (0xFFFFFFFF, 0, 0xFFFFFFFF),
    ),
}  # fmt: skip


@pytest.mark.tier("full")
def test_what_is_open_for_some_operands():
    """The bits of a NaN and of an unwritten register are noted; the others are refused."""
    for line, (words, wanted) in NOTED.items():
        text, found = HEADER + SUMS.replace("PRODUCT", line).replace("SUM", ""), []
        for model in ("nearest", "below", "above"):
            module, out = Module(text, undefined=model), np.zeros(1, np.float32)
            module["run"][1, 1](out, NUMBERS)
            found.append(int(out.view(np.uint32)[0]))
            (noted,) = module.undefined_in_use
            assert (noted.line, words in noted.why) == (11, True), line
        assert tuple(found) == wanted, line
        module = Module(text)
        if words == "NaN" or words.startswith("register"):
            module["run"][1, 1](out, NUMBERS)
            assert module.undefined_in_use == [noted]
        else:
            with pytest.raises(LaunchError, match="line 11: .*PTX leaves"):
                module["run"][1, 1](out, NUMBERS)


def test_what_is_open_for_some_operands_is_named_if_an_entry_changes():
    """Compilers fill up pairs with registers that nothing writes."""
    pair = "cvt.rn.satfinite.e4m3x2.f32 %h1, %f8, %f1; cvt.u32.u16 %r1, %h1; and.b32 %r1, %r1, "
    for mask, count in ((255, 0), (65535, 1)):
        lines = f"{{ .reg .b16 %h<2>; {pair} {mask}; mov.b32 %f5, %r1; }}"
        text = HEADER + SUMS.replace("PRODUCT", lines).replace("SUM", "")
        candidate = candidate_of(text, "convert", np.uint32)
        candidate("convert", {}, {"x": NUMBERS})
        lines, found = candidate.remarks()
        assert found == count
        assert ["register %f8 is read" in line for line in lines] == [True, False][: 2 * count]


def test_entries_are_compared_by_their_bits():
    """A NaN is the same NaN each time, and +0 is not -0."""
    lines = {
        "div.full.f32 %f4, %f1, %f2; mov.f32 %f5, 0f7FFFFFFF;": 0,
        "mov.f32 %f7, 0f40400000; div.full.f32 %f4, %f1, %f7; div.rn.f32 %f6, %f1, %f7;"
        " sub.rn.f32 %f6, %f4, %f6; mov.f32 %f5, 0f00000000; setp.lt.f32 %p1, %f6, %f5;"
        " @%p1 mov.f32 %f5, 0f80000000;": 1,
    }
    for line, count in lines.items():
        text = HEADER + SUMS.replace("PRODUCT", line).replace("SUM", "")
        candidate = candidate_of(text, "divide")
        candidate("divide", {}, {"x": NUMBERS})
        assert candidate.remarks()[1] == count


def test_models_of_single_lines():
    text = program("div.full.f32", ("f32",) * 3)
    a, b = np.array([0x3F800000], np.uint64), np.array([0x40400000], np.uint64)
    found = []
    for undefined in ({18: "above"}, {17: "above"}, "nearest", "above"):
        out = np.zeros(1, np.uint64)
        Module(text, undefined=undefined)["run"][1, 1](out, a, b)
        found.append(out[0])
    assert found[0] == found[3] != found[1] == found[2]
    for undefined, words in (
        ({18: "up"}, "undefined is 'up'"),
        ({99: "above"}, "has line 99"),
        ({"above"}, "undefined is {'above'}"),
        (np.array(["above", "below"]), "undefined is array"),
        ({18: ["above"]}, r"undefined is \['above'\]"),
        ({"18": "above"}, "undefined has line '18'"),
        ({1.5: "above"}, "undefined has line 1.5"),
    ):
        with pytest.raises(PtxError, match=words):
            Module(text, undefined=undefined)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (".global .u32 g[2]={1,2,3};", "line 4: .* it has 3 initial values for 2 places"),
        (".global .f64 g[12500000000];", "line 4: .* it has 100000000000 bytes; at most"),
    ],
)
def test_variables_that_do_not_fit(line, words):
    with pytest.raises(PtxError, match=words):
        Module(f"{HEADER}{line}\n")


def test_a_candidate_with_defined_bits_has_no_remarks():
    candidate = divided("div.rn.f32")
    candidate("divide", {"by": 3}, {"x": np.array([0x3F800000], np.uint64)})
    assert candidate.remarks() == ([], 0)
