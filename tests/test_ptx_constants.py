"""Expressions of constants, and addresses with them: `mor_ref.ptx` reads them as ptxas does."""

import random
import re

import numpy as np
import ptxas
import pytest
from kernels import needed
from ptx_programs import HEADER

from mor_ref.ptx import Module, PtxError

# Values that ptxas 13.0 writes to a .u64. A remainder and ~ are unsigned, and so are operations
# with an unsigned side; a shift has the type of its left side, modulo 64.
INTEGERS = {
    "1+2*3": 7, "(1+2)*3": 9, "8-2-2": 4, "8/2/2": 2, "-2*3": -6, "2*-3": -6, "1--1": 2,
    "- -1": 1, "++5": 5, "-~5": 6, "!5": 0, "!!5": 1, "~0": -1, "1?2:0?3:4": 2, "1?0?5:6:7": 6,
    "1||0&&0": 1, "(1||0)&&0": 0, "1|2^3&4": 3, "6^3": 5, "1==1<2": 1, "2==1<2": 0, "3>2>1": 0,
    "1<<2+1": 8, "2*3 % 4": 2, "7%(4)": 3, "-7 % 2": 1, "7 % -2": 7,
    "(7 % 4-8)/2": 0x7FFFFFFFFFFFFFFD,
    "-7/2": -3, "7U/2": 3, "(-3+2U)/2": (1 << 63) - 1, "(-5&2U)/2": 1, "(-5&-2)/2": -3,
    "(~2)/2": 0x7FFFFFFFFFFFFFFE, "(!2U-2)/2": -1, "((1<2U)-2)/2": 0, "((1U&&2U)-4)/2": -1,
    "-1<1U": 0, "-1>1U": 1, "-1==0xFFFFFFFFFFFFFFFF": 1, "-8>>1": -4, "-8U>>1": 0x7FFFFFFFFFFFFFFC,
    "(-8>>1U)/2": -2, "1<<70": 64, "-8>>65": -4, "1<<-1": 1 << 63, "(0?-3:2U)/-2": 0,
    "(1?-8:3U)/2": -4, "(0?3:-8U)/2": 0x7FFFFFFFFFFFFFFC, "(.s64)0xFFFFFFFFFFFFFFFF/2": 0,
    "(.u64)-1/2": (1 << 63) - 1, "( .u64 )(.s64)-2/2": (1 << 63) - 1, "-(.s64)4": -4,
    "9223372036854775808/2": 1 << 62, "9223372036854775807+1": 1 << 63, "0b11U-4": -1,
    "0x10+010": 24, "01777777777777777777777/2": (1 << 63) - 1, "0XFFU+0B11": 258,
    "-WARP_SZ/2": -16, "1.5==1.5": 1, "(1.5<2.5)+1": 2, ".5<1.": 1, "-1e3>2.0 ? 5 : 6": 6,
    "0d4000000000000000>1.5": 1,
}  # fmt: skip
REALS = {
    "1.5+2.5": 4.0, "-1.5*2.0": -3.0, "-(1.5)": -1.5, "1.0/3.0": 1 / 3, "1.0-2.0-3.0": -4.0,
    "- -.5": 0.5, "0d3FF0000000000000+1.0": 2.0, "-0d3FF0000000000000": -1.0, "1e308*10.0": np.inf,
    "1e39": 1e39, "-0.0": -0.0,
}  # fmt: skip
REFUSED = {
    "5/0": "divides by zero", "1?2:5/(3-3)": "divides by zero", "5 % 0": "divides by zero",
    "0&&5/0": "divides by zero", "1.5/0.0": "divides by zero", "1.5+1": "has numbers of two types",
    "1&&2.0": "has numbers of two types", "1?2:3.0": "chooses by real numbers",
    "1.5?2:3": "chooses by real numbers", "1.5&2.5": "has real numbers at '&'",
    "1.5 % 2.5": "has real numbers at", "~1.5": "has a real number behind '~'",
    "(.u64)1.0": "has a real number behind 'u64'", "-0f3F800000": "has a real number behind '-'",
    "0f3F800000+1.0": "has numbers of two types", "(-9223372036854775807-1)/-1": "divides -2^63",
    "(.s32)1": "", "(.f64)1.0": "", "(. s64)4": "", "5 %2": "", "5 5": "", "()": "",
    "(5": "is not understood", "5)": "is not understood", "2+": "", "*2": "", "12u": "",
    "1LL": "", "08": "", "0x": "", "1.0f": "",
    "1?2::3": "", "5> =3": "", "1<2?3": "", "0f3F80000": "", "1e400": "is beyond the normal",
    "1e-310": "is beyond the normal", "18446744073709551616": "is too large for 64 bits",
    "(" * 33 + "1" + ")" * 33: "is nested more than 32 times", "%r1*2": "", "x*2": "",
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    needed.compiler()


def stored(expressions, kind):
    """Return the values of expressions as operands, and as initial values."""
    stores = "\n".join(
        f"mov.{kind} %v, {text}; st.global.{kind} [%d1+{8 * n}], %v; "
        f"ld.global.{kind} %v, [x+{n}*8]; st.global.{kind} [%d1+{8 * (n + len(expressions))}], %v;"
        for n, text in enumerate(expressions)
    )
    text = f""".global .{kind} x[] = {{{", ".join(expressions)}}};
.visible .entry run(.param .u64 out) {{ .reg .{kind} %v; .reg .b64 %d<2>;
ld.param.u64 %d1, [out]; {stores} ret; }}"""
    out = np.zeros((2, len(expressions)), np.float64 if kind == "f64" else np.uint64)
    Module(HEADER + text)["run"][1, 1](out)
    return out


def test_integers():
    wanted = [value % (1 << 64) for value in INTEGERS.values()]
    assert stored(list(INTEGERS), "u64").tolist() == [wanted, wanted]


def test_real_numbers():
    found = stored(list(REALS), "f64")
    assert [[each.hex() for each in row] for row in found.tolist()] == 2 * [
        [float(each).hex() for each in REALS.values()]
    ]


def test_real_numbers_are_rounded_to_binary32():
    """From binary64, as ptxas does; one that is too large becomes infinity."""
    text = """.visible .entry run(.param .u64 out) { .reg .b64 %d<2>; ld.param.u64 %d1, [out];
st.global.f32 [%d1], 1.0/3.0; st.global.f32 [%d1+4], -1e39; st.global.f32 [%d1+8], 1e-50;
st.global.f32 [%d1+12], 1.0000000596046448; st.global.b32 [%d1+16], (0f3F800000); ret; }"""
    out = np.zeros(5, np.float32)
    Module(HEADER + text)["run"][1, 1](out)
    assert out.tolist() == [np.float32(1 / 3), -np.inf, 0, 1, 1]


def of_one(line, more=""):
    """Run a line of a kernel: x is an array of 16 words, %d1 its address, %r1 goes out."""
    text = f""".global .align 8 .u32 x[16] = {{{", ".join(map(str, range(100, 116)))}}};
{more}
.visible .entry run(.param .u64 out, .param .align 8 .b8 given[32]) {{
.reg .b64 %d<4>; .reg .b32 %r<4>; .reg .f32 %f<3>; .reg .pred %p<3>; .reg .b16 %h<3>;
.shared .align 16 .b8 s[64]; .local .align 8 .b8 own[32];
mov.u64 %d1, x+8*4; mov.u32 %r2, s+16; st.shared.u32 [s+4*5], 7; st.local.u32 [own+8], 8;
mov.u32 %r1, 0;
{line}
ld.param.u64 %d3, [out]; st.global.u32 [%d3], %r1; ret; }}"""
    out, given = np.zeros(1, np.uint32), np.zeros((), [("words", np.uint32, 8)])
    given["words"] = range(200, 208)
    Module(HEADER + text)["run"][1, 1](out, given[()])
    return int(out[0])


FORMS = {
    "ld.global.u32 %r1, [%d1+4+4];": 110,
    "ld.global.u32 %r1, [%d1+4*2];": 110,
    "ld.global.u32 %r1, [%d1+-8];": 106,
    "ld.global.u32 %r1, [ %d1 + - 8 ];": 106,
    "ld.global.u32 %r1, [%d1+4-8];": 107,
    "ld.global.u32 %r1, [%d1++4];": 109,
    "ld.global.u32 %r1, [%d1+0xFFFFFFFFFFFFFFFC];": 107,
    "ld.global.u32 %r1, [%d1+1<<2];": 109,
    "ld.global.u32 %r1, [%d1+1?4:8];": 109,
    "ld.global.u32 %r1, [%d1+4*(3==3)];": 109,
    "ld.global.u32 %r1, [x+(16+4)];": 105,
    "ld.global.u32 %r1, [x+WARP_SZ+4*2];": 110,
    "ld.shared.u32 %r1, [%r2+8-4];": 7,
    "ld.shared.u32 %r1, [s+4*5];": 7,
    "ld.local.u32 %r1, [own+4*2];": 8,
    "ld.param.u32 %r1, [given+4*3];": 203,
    "mov.u64 %d2, x+4*3; ld.global.u32 %r1, [%d2];": 103,
    "mov.u64 %d2, x+-4; ld.global.u32 %r1, [%d2+4*2];": 101,
    "ld.global.u64 %d2, [y]; ld.global.u32 %r1, [%d2];": 103,
    "ld.global.u64 %d2, [y+8*1]; ld.global.u32 %r1, [%d2+4*4];": 103,
    "add.u32 %r1, 1+2, 3*4;": 15,
    "mov.b64 %d2, {1+2, 3*4}; cvt.u32.u64 %r1, %d2;": 3,
    "mov.pred %p1, 0x100000000; selp.u32 %r1, 2+3, 1, %p1;": 5,
    "setp.eq.and.u32 %p1, %r1, 1-1, !1+1; selp.u32 %r1, 1, 2, %p1;": 1,
    "mov.u32 %r2, 0xF0F0; lop3.b32 %r1, %r2, 0xFF00, 0x0FF0, (0xF0&0xCC)|0xAA;": 0xFFF0,
    "and.b64 %d2, 1.5, 0xFFFF<<48; shr.u64 %d2, %d2, 44+4; cvt.u32.u64 %r1, %d2;": 0x3FF8,
}  # fmt: skip


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize("line", FORMS)
def test_forms(line):
    more = ".global .u64 y[2] = {x+4*3, generic(x)+-4};"
    assert of_one(line, more) == FORMS[line]


OTHERS = (
    "ld.global.u32 %r1, [%d1-8];", "ld.global.u32 %r1, [%d1 4];", "ld.global.u32 %r1, [%d1+];",
    "ld.global.u32 %r1, [4+%d1];", "ld.global.u32 %r1, [(%d1+4)];", "ld.global.u32 %r1, [%d1*4];",
    "ld.global.u32 %r1, [%d1+%d2];", "ld.global.u32 %r1, [%d1+1.5];", "mov.u64 %d2, x-4;",
    "ld.global.u32 %r1, [%d1+4/0];", "ld.global.u32 %r1, [16+4];", "ld.param.u32 %r1, [given-4];",
    "mov.u64 %d2, 4+x;", "mov.u64 %d2, (x);", "add.u32 %r1, %r2, 1.5+2.5;", "mov.b32 %r1, 1.5;",
    "mov.b32 %r1, 0d3FF0000000000000;", "mov.b64 %d2, 0f3F800000;", "mov.u64 %d2, 1.5;",
    "add.f32 %f1, %f1, 1+1;", "add.f32 %f1, %f1, -0f3F800000;", ".reg .b32 %x<2+2>;",
    ".shared .b8 q[4*2];",
)  # fmt: skip


@pytest.mark.parametrize("line", OTHERS)
def test_other_forms_are_refused(line):
    """ptxas refuses them as well."""
    with pytest.raises(PtxError, match=re.escape(line.rstrip(";"))):
        of_one(line)


@pytest.mark.parametrize("text", REFUSED)
def test_other_expressions_are_refused(text):
    with pytest.raises(PtxError, match=re.escape(REFUSED[text] or "is not supported")):
        of_one(f"mov.u64 %d2, {text};")


def test_initial_values_of_bits():
    """A real number is rounded to the bits of .b32; integers are cut."""
    line = "ld.global.u32 %r1, [b]; ld.global.u8 %r2, [c]; add.u32 %r1, %r1, %r2;"
    more = ".global .b32 b = 1.5/2.0; .global .u8 c = 2*255+1;"
    assert of_one(line, more) == 0x3F400000 + 255


_LEAVES = (
    "0", "1", "2", "3U", "5", "7", "63", "64", "0x8000000000000000", "9223372036854775807", "-1",
    "0xFFU", "017", "0b101", "WARP_SZ", "1.5", "0d4000000000000000", "2.", ".25",
)  # fmt: skip
_JOINING = [
    "+",
    "-",
    "*",
    "/",
    "%",
    "<<",
    ">>",
    "<",
    "<=",
    ">",
    ">=",
    "==",
    "!=",
    "&",
    "|",
    "^",
    "&&",
    "||",
]


def expression(rng, depth):
    """Return a random expression; most of its parts are integers."""
    kind = rng.random()
    if not depth or kind < 0.15:
        return rng.choice(_LEAVES[:-4] if rng.random() < 0.97 else _LEAVES)
    if kind < 0.3:
        return rng.choice(["-", "+", "!", "~", "(.s64)", "(.u64)"]) + expression(rng, depth - 1)
    parts = [expression(rng, depth - 1) for _ in range(3)]
    if kind < 0.38:
        return f"{parts[0]} ? {parts[1]} : {parts[2]}"
    joined = f"{parts[0]} {rng.choice(_JOINING)} {parts[1]}"
    return f"({joined})" if kind < 0.7 else joined


def mutated(rng, text):
    """Return a text with a character fewer, or one more."""
    at = rng.randrange(len(text))
    return (
        text[:at] + rng.choice(["", "(", ")", "%", "1", "-", " ", "?", ".", "U"]) + text[at + 1 :]
    )


def as_ptxas_has_it(text):
    """Return the bits that ptxas writes to a .u64, or None if it refuses the text."""
    cubin = ptxas.assembled(f"{HEADER}.global .u64 x = {text}; .entry run() {{ ret; }}")
    if cubin is None:
        return None
    return int.from_bytes(ptxas.section(cubin, ".nv.global.init")[:8].ljust(8, b"\0"), "little")


def generated(seed):
    """Yield expressions, some of them with a mistake."""
    rng = random.Random(seed)  # noqa: S311  # the same expressions each time
    for _ in range(150):
        text = expression(rng, rng.randrange(1, 5))
        yield (mutated(rng, text) if rng.random() < 0.3 else text).strip()


@pytest.mark.tier("full")
def test_generated_expressions():
    """Expressions that ptxas takes have its values, and all others are refused."""
    ptxas.needed()
    wanted = {text: as_ptxas_has_it(text) for text in generated(1)}
    taken = [text for text in wanted if wanted[text] is not None]
    found = dict(zip(taken, stored(taken, "u64")[0].tolist(), strict=True))
    assert found == {text: wanted[text] for text in taken}
    assert 50 < len(taken) < len(wanted) - 20
    for text in wanted.keys() - found.keys():
        with pytest.raises(PtxError):
            stored([text], "u64")
