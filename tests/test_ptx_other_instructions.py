"""Seldom instructions of PTX against integers of Python and against the exact model."""

import itertools
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from kernels import needed
from ptx_programs import HEADER
from test_ptx_instructions import FLOATS, clamped, edges, expect, modelled, number, run, signed

from mor_ref import exact, formats
from mor_ref.ptx import Module, PtxError


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    needed.compiler()


def parts(x, width, kind):
    """Return the parts of a word, from the lowest on."""
    each = [x >> k & (1 << width) - 1 for k in range(0, 32, width)]
    return [signed(one, width) for one in each] if kind[0] == "s" else each


def paired(a, b, width):
    return zip(parts(a, width, "u"), parts(b, width, "u"), strict=True)


def low24(x, kind):
    return signed(x & 0xFFFFFF, 24) if kind[0] == "s" else x & 0xFFFFFF


def mask(place, count, *, wraps):
    if wraps:
        place, count = place & 31, count & 31
    return ((1 << min(count, 32)) - 1) << min(place, 32)


def extended(x, count, kind, *, wraps):
    if count > 31 and not wraps:
        return x
    rest = x & (1 << (count & 31)) - 1
    return signed(rest, count & 31) if kind[0] == "s" and count & 31 else rest


def nth(bits, base, offset):
    places = [k for k in range(32) if bits >> k & 1 and base < 32]
    if offset == 0:
        return base if base in places else -1
    ahead = (
        [k for k in places if k >= base] if offset > 0 else [k for k in places[::-1] if k <= base]
    )
    return ahead[abs(offset) - 1] if abs(offset) <= len(ahead) else -1


SOME, FEW = edges(32)[::2], edges(32)[::3]
THREE = list(itertools.product(SOME, FEW, FEW))
# The opcode, the types of the result and of the operands, the model, and operands.
CASES = [
    *((f"sad.{t}", (t,) * 4, lambda a, b, c: c + abs(a - b), THREE) for t in ("s32", "u32")),
    ("min.relu.s32", ("s32",) * 3, lambda a, b: max(0, min(a, b)), itertools.product(SOME, FEW)),
    ("max.s32.relu", ("s32",) * 3, lambda a, b: max(0, a, b), itertools.product(SOME, FEW)),
    *(
        (f"mul24.{half}.{t}", (t,) * 3,
         lambda a, b, t=t, by=by: low24(a, t) * low24(b, t) >> by, itertools.product(SOME, FEW))
        for half, by in (("lo", 0), ("hi", 16)) for t in ("s32", "u32")
    ),
    ("mad24.lo.u32", ("u32",) * 4, lambda a, b, c: low24(a, "u") * low24(b, "u") + c, THREE),
    ("mad24.hi.s32", ("s32",) * 4,
     lambda a, b, c: (low24(a, "s") * low24(b, "s") >> 16) + c, THREE),
    ("mad24.hi.sat.s32", ("s32",) * 4,
     lambda a, b, c: clamped((low24(a, "s") * low24(b, "s") >> 16) + c, "s32"), THREE),
    ("mad.hi.sat.s32", ("s32",) * 4, lambda a, b, c: clamped((a * b >> 32) + c, "s32"), THREE),
    ("vabsdiff4.u32.u32.u32.add", ("b32",) * 4,
     lambda a, b, c: c + sum(abs(x - y) for x, y in paired(a, b, 8)), THREE),
    *(
        (f"vabsdiff{n}.u32.u32.u32", ("b32",) * 4,
         lambda a, b, _, by=32 // n: sum(
             abs(x - y) << by * k for k, (x, y) in enumerate(paired(a, b, by))
         ), THREE)
        for n in (2, 4)
    ),
    *(
        (f"dp4a.{s}.{t}", ("b32",) * 4,
         lambda a, b, c, s=s, t=t: c + sum(map(int.__mul__, parts(a, 8, s), parts(b, 8, t))), THREE)
        for s, t in (("u32", "s32"), ("s32", "s32"), ("u32", "u32"))
    ),
    *(
        (f"dp2a.{half}.s32.u32", ("b32",) * 4,
         lambda a, b, c, at=at: c + sum(map(int.__mul__, parts(a, 16, "s"), parts(b, 8, "u")[at:])),
         THREE)
        for half, at in (("lo", 0), ("hi", 2))
    ),
    *(
        (f"bfind.shiftamt.{t}", ("b32", t),
         lambda a: 32 - (~a if a < 0 else a).bit_length() if a not in (0, -1) else -1,
         [(a,) for a in edges(32)])
        for t in ("u32", "s32")
    ),
    *(
        (f"bmsk.{how}.b32", ("b32",) * 3, lambda a, b, how=how: mask(a, b, wraps=how == "wrap"),
         itertools.product(edges(32), edges(32)))
        for how in ("clamp", "wrap")
    ),
    *(
        (f"szext.{how}.{t}", (t, t, "u32"),
         lambda a, b, how=how, t=t: extended(a, b, t, wraps=how == "wrap"),
         itertools.product(edges(32), edges(32)))
        for how in ("clamp", "wrap") for t in ("u32", "s32")
    ),
    ("fns.b32", ("b32", "b32", "u32", "s32"), nth,
     itertools.product(edges(32), (0, 5, 31, 32), (0, 1, 3, 32, 2**32 - 1, 2**32 - 4))),
    ("slct.b64.s32", ("b64", "b64", "b64", "s32"), lambda a, b, c: a if c >= 0 else b,
     itertools.product((3, 2**63), (5, 2**40), edges(32))),
    ("slct.f32.f32", ("b32", "b32", "b32", "b32"),
     lambda a, b, c: a if number(c) >= 0 else b, itertools.product((3,), (5,), FLOATS)),
    ("add.u16x2", ("b32",) * 3, lambda a, b: in_pairs(int.__add__, a, b),
     itertools.product(SOME, SOME)),
    ("min.s16x2", ("b32",) * 3, lambda a, b: in_pairs(min, a, b), itertools.product(SOME, SOME)),
    *(
        (opcode, ("b32",) * 3, lambda a, b: in_pairs(lambda x, y: max(0, x, y), a, b),
         itertools.product(SOME, SOME))
        for opcode in ("max.relu.s16x2", "max.s16x2.relu")
    ),
]  # fmt: skip


def in_pairs(model, a, b):
    found = map(model, parts(a, 16, "s"), parts(b, 16, "s"))
    return sum((one & 0xFFFF) << 16 * k for k, one in enumerate(found))


# The bytes of the result from the highest on, by the lowest two bits of the selector.
MODES = {
    "f4e": ("3210", "4321", "5432", "6543"),
    "b4e": ("5670", "6701", "7012", "0123"),
    "rc8": ("0000", "1111", "2222", "3333"),
    "ecl": ("3210", "3211", "3222", "3333"),
    "ecr": ("0000", "1110", "2210", "3210"),
    "rc16": ("1010", "3232", "1010", "3232"),
}


def permuted(a, b, c, of):
    whole = (b << 32 | a).to_bytes(8, "little")
    return int.from_bytes(bytes(whole[int(k)] for k in of[c & 3]), "big")


CASES += [
    (f"prmt.b32.{name}", ("b32",) * 4, lambda a, b, c, of=of: permuted(a, b, c, of),
     itertools.product((0x44332211,), (0x88776655, 0xF0000000), range(5)))
    for name, of in MODES.items()
]  # fmt: skip


@pytest.mark.tier("full", but=["[sad.s32", "[dp4a.u32", "[bmsk.clamp", "[prmt.b32.b4e"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_seldom_instructions(case):
    opcode, types, model, rows = case
    expect(opcode, types, model, list(rows))


CARRIES = """
.visible .entry run(.param .u64 x, .param .u64 out) {
  .reg .b32 %r<30>; .reg .b64 %d<4>; .reg .pred %p<2>;
  mov.u32 %r29, %ctaid.x; ld.param.u64 %d0, [x]; ld.param.u64 %d1, [out];
  mad.wide.u32 %d0, %r29, 24, %d0; mad.wide.u32 %d1, %r29, 44, %d1;
  ld.global.u32 %r0, [%d0]; ld.global.u32 %r1, [%d0+4]; ld.global.u32 %r2, [%d0+8];
  ld.global.u32 %r3, [%d0+12]; ld.global.u32 %r4, [%d0+16]; ld.global.u32 %r5, [%d0+20];
  add.cc.u32 %r10, %r0, %r3; addc.cc.u32 %r11, %r1, %r4; addc.u32 %r12, %r2, %r5;
  sub.cc.u32 %r13, %r0, %r3; subc.cc.u32 %r14, %r1, %r4; subc.u32 %r15, %r2, %r5;
  mad.lo.cc.u32 %r16, %r0, %r3, %r1; madc.hi.cc.u32 %r17, %r0, %r3, %r2; addc.u32 %r18, %r5, 0;
  sub.cc.u32 %r20, %r0, %r3; addc.u32 %r19, 0, 0; add.cc.u32 %r20, %r0, %r3; subc.u32 %r20, %r1, 0;
STORES
  ret;
}
"""


def test_carries():
    """Sums, differences, and a product and a sum, of 96 bits; a carry after a difference or before.

    ptxas folds "sub.cc.u32 x, 5, 7; addc.u32 y, 0, 0;" to 0, and "subc.u32 y, 0, 0;" without a
    carry to -1: no borrow is a carry of 1.
    """
    rows = [
        row for row in itertools.product((0, 1, 2**31, 2**32 - 1), repeat=6) if row[0] or row[3]
    ]
    stores = "\n".join(f"  st.global.u32 [%d1+{4 * n}], %r{10 + n};" for n in range(11))
    out = np.zeros((len(rows), 11), np.uint32)
    Module(HEADER + CARRIES.replace("STORES", stores))["run"][len(rows), 1](
        np.array(rows, np.uint32), out
    )
    for row, found in zip(rows, out.tolist(), strict=True):
        a, b = (sum(x << 32 * k for k, x in enumerate(row[n : n + 3])) for n in (0, 3))
        third = row[0] * row[3] + (row[2] << 32 | row[1]) + (row[5] << 64)
        wanted = [(x >> 32 * k) & 0xFFFFFFFF for x in (a + b, a - b, third) for k in range(3)]
        no_borrow, carry = row[0] >= row[3], row[0] + row[3] >> 32
        wanted += [int(no_borrow), (row[1] - 1 + carry) & 0xFFFFFFFF]
        assert found == wanted


# ---------------------------------------------------------------------- floating point

WIDE = [0, 1, 1 << 52, 0x3FF0000000000000, 0x3FE5555555555555, 0x4008000000000000, 0x7FE1 << 48]
WIDE += [0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0x4340000000000001, 0x0008000000000000]
WIDE += [one | 1 << 63 for one in WIDE]


def of_wide(bits):
    return float(np.uint64(bits).view(np.float64))


def root(x):
    """Return the square root of a binary64 number, rounded once: by integers alone."""
    if x == 0 or math.isinf(x):
        return x
    numerator, denominator = x.as_integer_ratio()
    shift = 2 * (120 + denominator.bit_length())
    whole = math.isqrt((numerator << shift) // denominator)
    odd = whole * whole != Fraction(numerator << shift, denominator)
    return float(Fraction(2 * whole + odd, 2 << shift // 2))


def test_binary64():
    roots = [one for one in WIDE if not one >> 63]
    found = run("sqrt.rn.f64", ("b64", "b64"), [(one,) for one in roots])
    assert [of_wide(one) for one in found] == [root(of_wide(one)) for one in roots]
    finite = [one for one in WIDE if one & ~(1 << 63) and math.isfinite(of_wide(one))]
    found = run("rcp.rn.f64", ("b64", "b64"), [(one,) for one in finite])
    for one, other in zip(finite, found, strict=True):
        ratio = 1 / Fraction(of_wide(one))
        assert of_wide(other) == (
            math.copysign(math.inf, of_wide(one))
            if abs(ratio) >= Fraction(2) ** 1024
            else float(ratio)
        )
    assert run("min.f64", ("b64",) * 3, [(0, 1 << 63), (5, 7)]) == [1 << 63, 5]
    assert run("max.f64", ("b64",) * 3, [(0, 1 << 63), (5, 0x7FF8 << 48)]) == [0, 5]


@pytest.mark.tier("full")
def test_kinds_of_numbers():
    """A zero counts as normal."""
    kinds = {
        "finite": math.isfinite,
        "infinite": math.isinf,
        "number": lambda x: not math.isnan(x),
        "notanumber": math.isnan,
        "normal": lambda x: math.isfinite(x) and (x == 0 or abs(x) >= 2.0**-126),
        "subnormal": lambda x: 0 < abs(x) < 2.0**-126,
    }
    for name, model in kinds.items():
        wanted = [int(model(number(one))) for one in FLOATS]
        assert run(f"testp.{name}.f32", ("pred", "b32"), [(one,) for one in FLOATS]) == wanted


@pytest.mark.tier("full", but=["[bf16]"])
@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_sums_with_halves(name):
    """Each half is a number of binary32, and the sum is rounded once."""
    codes = [0, 1, 0x3C00, 0x3F80, 0x7B00, 0x8001, 0xBF81]
    bits = [exact.decode(code, formats[name]) for code in codes]
    rows = list(itertools.product(range(len(codes)), FLOATS[:-2]))
    for mode in ("rn", "rp"):
        wanted = [modelled("sub", mode, (bits[k], c)) for k, c in rows]
        inputs = [(codes[k], c) for k, c in rows]
        assert run(f"sub.{mode}.f32.{name}", ("f32", "b16", "f32"), inputs) == wanted
    wanted = [modelled("fma", "rz", (bits[k], bits[2], c)) for k, c in rows]
    inputs = [(codes[k], codes[2], c) for k, c in rows]
    assert run(f"fma.rz.f32.{name}", ("f32", "b16", "b16", "f32"), inputs) == wanted


def test_sums_of_halves_in_memory():
    """Six times one and two, in pairs of f16, and a policy of caches, which changes nothing."""
    body = """.visible .entry run(.param .u64 out) {
  .reg .b32 %r<4>; .reg .b64 %d<4>; ld.param.u64 %d0, [out];
  createpolicy.fractional.L2::evict_last.b64 %d1, 1.0;
  mov.u32 %r0, 0x40003C00; atom.global.add.noftz.f16x2 %r1, [%d0], %r0;
  red.global.add.noftz.f16x2 [%d0], %r0; ret;
}"""
    out = np.zeros(2, np.float16)
    Module(HEADER + body)["run"][3, 1](out)
    assert out.tolist() == [6.0, 12.0]


@pytest.mark.parametrize("join", ["and", "or"])
@pytest.mark.parametrize("target", ["%r3", "_"])
def test_lop3_with_a_predicate(join, target):
    """It is whether a bit of the result is set, joined with another predicate, as PTX has it."""
    text = f"""
.visible .entry run(.param .u64 out, .param .u64 a, .param .u64 p) {{
  .reg .pred %p<3>; .reg .b32 %r<5>; .reg .b64 %d<4>;
  ld.param.u64 %d1, [a]; ld.param.u64 %d2, [p]; ld.param.u64 %d3, [out];
  mov.u32 %r1, %tid.x; mad.wide.u32 %d1, %r1, 4, %d1; mad.wide.u32 %d2, %r1, 4, %d2;
  mad.wide.u32 %d3, %r1, 8, %d3; ld.global.u32 %r2, [%d1]; ld.global.u32 %r3, [%d2];
  setp.ne.u32 %p1, %r3, 0; mov.u32 %r3, 77;
  lop3.{join}.b32 {target}|%p1, %r2, 0x0F0F0F0F, %r1, (0xF0&0xCC)^0xAA, %p1;
  selp.u32 %r4, 1, 0, %p1; st.global.v2.u32 [%d3], {{%r3, %r4}}; ret; }}
"""
    a = np.array([0, 3, 0, 3, 1 << 31, 0xF0F0F0F0, 6, 15], np.uint32)
    p = np.array([0, 0, 1, 1, 0, 1, 1, 1], np.uint32)
    out = np.zeros((8, 2), np.uint32)
    Module(HEADER + text)["run"][1, 8](out, a, p)
    wanted = (a & 0x0F0F0F0F) ^ np.arange(8, dtype=np.uint32)
    assert 0 < (wanted == 0).sum() < 8
    assert out[:, 0].tolist() == (wanted if target == "%r3" else np.full(8, 77)).tolist()
    both = np.logical_and if join == "and" else np.logical_or
    assert out[:, 1].tolist() == both(wanted != 0, p).tolist()


@pytest.mark.parametrize(
    "words",
    [
        "xor.b32 %r1|%p1, %r1, %r1, %r1, 1, %p1", "or.b32 %r1|_, %r1, %r1, %r1, 1, %p1",
        "or.b32 %r1, %r1, %r1, %r1, 1, %p1", "or.b32 %r1|%p1, %r1, %r1, %r1, 1",
        "b32 %r1|%p1, %r1, %r1, %r1, 1, %p1", "b32 %r1|%p1, %r1, %r1, %r1, 1",
        "or.b64 %d1|%p1, %d1, %d1, %d1, 1, %p1", "or.b32 %p1|%p1, %r1, %r1, %r1, 1, %p1",
        "or.b32 %r1|%r1, %r1, %r1, %r1, 1, %p1", "or.b32 %r1|%p1, %r1, %r1, %r1, 256, %p1",
    ],
)  # fmt: skip
def test_lop3_of_other_forms_is_refused(words):
    """ptxas refuses them, too, save for the table of 256."""
    body = ".reg .pred %p<2>; .reg .b32 %r<2>; .reg .b64 %d<2>;"
    with pytest.raises(PtxError, match=f"lop3.{re.escape(words)}: "):
        Module(f"{HEADER}.visible .entry run() {{ {body} lop3.{words}; ret; }}")["run"][1, 1]()
