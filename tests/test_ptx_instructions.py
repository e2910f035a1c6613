"""Instructions of PTX against integers of Python and against the exact model."""

import itertools
import math
import operator
import random
import struct
from fractions import Fraction

import pytest
from kernels import needed
from ptx_programs import bits_of, run

from mor_ref import exact, formats
from mor_ref.definitions.encoding import SpecialCases


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    needed.compiler()


def edges(width, seed=0):
    """Return integers at which implementations differ, and some others."""
    rng = random.Random(seed)  # noqa: S311  # the same inputs each time
    near = {0, 1, 2, 3, 7, 8, 31, 32, 33, 63, 64, (1 << width - 1) - 1, 1 << width - 1}
    near |= {(1 << width) - k for k in (1, 2, 3)} | {0x5555555555555555, 0x123456789ABCDEF0}
    return sorted({n % (1 << width) for n in near} | {rng.getrandbits(width) for _ in range(6)})


def signed(value, width):
    return value - (1 << width) * (value >> width - 1)


def of_type(kind, value):
    return signed(value, int(bits_of(kind))) if kind[0] == "s" else value


def quotient(a, b):
    return (abs(a) // abs(b)) * (-1 if (a < 0) != (b < 0) else 1)


def remainder(a, b):
    return a - b * quotient(a, b)


def clamped(value, kind):
    half = 1 << int(bits_of(kind)) - 1
    low, high = (-half, half - 1) if kind[0] == "s" else (0, 2 * half - 1)
    return min(max(value, low), high)


TWO = {
    "add": operator.add,
    "sub": operator.sub,
    "min": min,
    "max": max,
    "div": quotient,
    "rem": remainder,
    "mul.lo": operator.mul,
}
KINDS = [f"{letter}{width}" for letter in "su" for width in (16, 32, 64)]


def expect(opcode, types, model, operands, immediate=""):
    """Compare an instruction with a function of the values of its operands."""
    operands = list(operands)
    mask = (1 << int(bits_of(types[0]))) - 1 if types[0] != "pred" else 1
    wanted = [
        int(model(*(of_type(kind, bits) for kind, bits in zip(types[1:], row, strict=True)))) & mask
        for row in operands
    ]
    assert run(opcode, types, operands, immediate) == wanted


@pytest.mark.tier("full", but=["[s32-", "[u64-add"])
@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("kind", KINDS)
def test_integers(kind, name):
    pairs = itertools.product(edges(int(bits_of(kind))), repeat=2)
    defined = [(a, b) for a, b in pairs if b or name not in ("div", "rem")]
    expect(f"{name}.{kind}", (kind,) * 3, TWO[name], defined)


@pytest.mark.tier("full", but=["[u64]"])
@pytest.mark.parametrize("kind", KINDS)
def test_products(kind):
    """High halves, and products and sums of twice the width."""
    width = int(bits_of(kind))
    some = edges(width)[::3]
    expect(
        f"mul.hi.{kind}", (kind,) * 3, lambda a, b: a * b >> width, itertools.product(some, some)
    )
    triples = list(itertools.product(some, some, some))
    expect(f"mad.lo.{kind}", (kind,) * 4, lambda a, b, c: a * b + c, triples)
    expect(f"mad.hi.{kind}", (kind,) * 4, lambda a, b, c: (a * b >> width) + c, triples)
    if width < 64:
        wide = f"{kind[0]}{2 * width}"
        expect(f"mul.wide.{kind}", (wide, kind, kind), operator.mul, itertools.product(some, some))
        rows = itertools.product(some, some, edges(2 * width)[::4])
        expect(f"mad.wide.{kind}", (wide, kind, kind, wide), lambda a, b, c: a * b + c, rows)


@pytest.mark.parametrize("name", ["add", "sub"])
def test_saturating(name):
    pairs = itertools.product(edges(32), repeat=2)
    model = lambda a, b: clamped(TWO[name](a, b), "s32")  # noqa: E731
    expect(f"{name}.sat.s32", ("s32",) * 3, model, pairs)


@pytest.mark.tier("full")
@pytest.mark.parametrize("width", [16, 32, 64])
def test_logic_and_shifts(width):
    kind, ones = f"b{width}", (1 << width) - 1
    pairs = list(itertools.product(edges(width), repeat=2))
    for name, model in (("and", operator.and_), ("or", operator.or_), ("xor", operator.xor)):
        expect(f"{name}.{kind}", (kind,) * 3, model, pairs)
    each = [(a,) for a in edges(width)]
    expect(f"not.{kind}", (kind, kind), lambda a: ~a, each)
    expect(f"cnot.{kind}", (kind, kind), lambda a: a == 0, each)
    for letter in "su":
        if letter == "s":
            expect(f"neg.s{width}", (f"s{width}",) * 2, operator.neg, each)
            expect(f"abs.s{width}", (f"s{width}",) * 2, abs, each)
        rows = itertools.product(edges(width), edges(32))
        types = (f"{letter}{width}", f"{letter}{width}", "u32")
        expect(f"shr.{letter}{width}", types, lambda a, n: a >> min(n, width), rows)
    rows = itertools.product(edges(width), edges(32))
    expect(f"shl.{kind}", (kind, kind, "u32"), lambda a, n: a << min(n, width) & ones, rows)


@pytest.mark.tier("full", but=["[clamp]"])
@pytest.mark.parametrize("how", ["clamp", "wrap"])
def test_funnel_shifts(how):
    rows = list(itertools.product(edges(32)[::2], edges(32)[::3], edges(32)))

    def by(n):
        return min(n, 32) if how == "clamp" else n & 31

    left = lambda a, b, n: ((b << 32 | a) << by(n)) >> 32  # noqa: E731
    right = lambda a, b, n: (b << 32 | a) >> by(n)  # noqa: E731
    expect(f"shf.l.{how}.b32", ("b32",) * 4, left, rows)
    expect(f"shf.r.{how}.b32", ("b32",) * 4, right, rows)


@pytest.mark.tier("full", but=["[128]"])
@pytest.mark.parametrize("table", [0x00, 0x3C, 0x80, 0xE8, 0xFE, 0x1B])
def test_lop3(table):
    def model(a, b, c):
        return sum(
            (table >> (4 * (a >> k & 1) + 2 * (b >> k & 1) + (c >> k & 1)) & 1) << k
            for k in range(32)
        )

    rows = itertools.product(edges(32)[::3], repeat=3)
    expect("lop3.b32", ("b32",) * 4, model, rows, f", {table}")


@pytest.mark.tier("full")
@pytest.mark.parametrize("width", [32, 64])
def test_counts_of_bits(width):
    each, kind = [(a,) for a in edges(width)], f"b{width}"
    expect(f"popc.{kind}", ("u32", kind), int.bit_count, each)
    expect(f"clz.{kind}", ("u32", kind), lambda a: width - a.bit_length(), each)
    expect(f"brev.{kind}", (kind, kind), lambda a: int(f"{a:0{width}b}"[::-1], 2), each)
    top = lambda a: (~a if a < 0 else a).bit_length() - 1  # noqa: E731
    for letter in "us":
        expect(f"bfind.{letter}{width}", ("u32", f"{letter}{width}"), top, each)


@pytest.mark.tier("full", but=["[64]"])
@pytest.mark.parametrize("width", [32, 64])
def test_fields_of_bits(width):
    """bfe and bfi, with places and lengths beyond the register."""
    places = [0, 1, 5, width - 1, width, width + 1, 255, 256 + 3]
    rows = list(itertools.product(edges(width)[::2], places, places))

    def in_range(n):  # as an H200 takes them
        return min(n, 255) if width == 64 else n & 255

    def extracted(a, place, length, sign):
        at, count = in_range(place), in_range(length)
        whole = (a & (1 << width) - 1) >> at & (1 << count) - 1
        if count and sign and a >> min(at + count - 1, width - 1) & 1:
            whole |= ~0 << max(0, min(count, width - at))
        return whole

    for letter in "us":
        types = (f"{letter}{width}", f"{letter}{width}", "u32", "u32")
        model = lambda a, p, n, letter=letter: extracted(a, p, n, letter == "s")  # noqa: E731
        expect(f"bfe.{letter}{width}", types, model, rows)

    def inserted(a, b, place, length):
        at, count = in_range(place), in_range(length)
        mask = ((1 << count) - 1) << at & (1 << width) - 1
        return b & ~mask | a << at & mask

    rows = list(itertools.product(edges(width)[::5], edges(width)[::6], places, places))
    kind = f"b{width}"
    expect(f"bfi.{kind}", (kind, kind, kind, "u32", "u32"), inserted, rows)


def test_prmt():
    def model(a, b, c):
        taken = [(b << 32 | a) >> 8 * (c >> 4 * k & 7) & 255 for k in range(4)]
        signs = [c >> 4 * k & 8 for k in range(4)]
        return sum(
            (255 * (byte >> 7) if sign else byte) << 8 * k
            for k, (byte, sign) in enumerate(zip(taken, signs, strict=True))
        )

    selectors = [0x3210, 0x7654, 0x5410, 0x7632, 0xFEDC, 0x8F07, 0x0123]
    rows = itertools.product(edges(32)[::2], edges(32)[::3], selectors)
    expect("prmt.b32", ("b32",) * 4, model, rows)


# ---------------------------------------------------------------------- binary32

IEEE = SpecialCases(overflow="ieee")
MODES = {"rn": "rne", "rz": "rtz", "rm": "rtn", "rp": "rtp"}
NAN, INFINITY = 0x7FFFFFFF, 0x7F800000
PATTERNS = [
    *(0, 1, 2, 0x7FFFFF, 0x800000, 0x800001, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3F800003),
    *(0x4B7FFFFF, 0x4B800001, 0x33800001, 0x34000000, 0x7F7FFFFE, 0x7F7FFFFF, INFINITY, NAN),
]
FLOATS = [sign | pattern for pattern in PATTERNS for sign in (0, 1 << 31)]


def number(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def rounded(found, mode, zero):
    """Return the bits of an exact number in binary32; `zero` are those of an exact zero."""
    return exact.encode(found, formats["f32"], MODES[mode], IEEE) if found else zero


def flushed(bits):
    return bits if bits & 0x7F800000 else bits & 1 << 31


def with_special(name, values):
    """Return the bits of a result that is not of finite numbers, or None."""
    if all(map(math.isfinite, values)) and not (name == "div" and values[1] == 0):
        return None
    a, b, *_ = values
    if name == "fma":
        product = with_special("mul", values[:2])
        a, b, name = number(product) if product is not None else 0.0, values[2], "add"
    if name == "div":
        sign = math.copysign(1, a) * math.copysign(1, b)
        found = (
            math.nan
            if math.isnan(a + b) or a == b == 0 or (math.isinf(a) and math.isinf(b))
            else math.copysign(0.0 if math.isinf(b) else math.inf, sign)
        )
    else:
        found = {"add": a + b, "sub": a - b, "mul": a * b}[name]
    bits = struct.unpack("<I", struct.pack("<f", found))[0]
    return NAN if math.isnan(found) else bits


def modelled(name, mode, operands):
    """Return the bits of an operation on binary32."""
    values = [number(bits) for bits in operands]
    special = with_special(name, values)
    if special is not None:
        return special
    x, y, z = (*map(Fraction, values), Fraction(0))[:3]
    signs = [bits >> 31 for bits in operands]
    down = (mode == "rm") << 31
    if name in ("mul", "div"):
        return rounded(x * y if name == "mul" else x / y, mode, (signs[0] ^ signs[1]) << 31)
    if name == "fma":
        x, y, signs = x * y, z, [signs[0] ^ signs[1], signs[2]]
    if name == "sub":
        y, signs = -y, [signs[0], 1 - signs[1]]
    same = not x and not y and signs[0] == signs[1]
    return rounded(x + y, mode, signs[0] << 31 if same else down)


@pytest.mark.tier("full", but_one_in=15)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "fma"])
def test_binary32(name, mode):
    rows = list(itertools.product(FLOATS, repeat=2))
    if name == "fma":
        rows = [(a, b, c) for (a, b), c in zip(rows * 3, itertools.cycle(FLOATS[:-1]))]
    wanted = [modelled(name, mode, row) for row in rows]
    assert run(f"{name}.{mode}.f32", ("f32",) * (len(rows[0]) + 1), rows) == wanted


def is_tiny(name, mode, operands):
    """Return whether a result rounded to 24 bits is below the least normal number, and not 0."""
    values = [number(bits) for bits in operands]
    if with_special(name, values) is not None:
        return False
    x, y, z = (*map(Fraction, values), Fraction(0))[:3]
    found = {"add": lambda: x + y, "mul": lambda: x * y, "div": lambda: x / y}
    exact_result = (found | {"fma": lambda: x * y + z})[name]()
    if not 0 < abs(exact_result) < Fraction(2) ** -126:
        return False
    return abs(number(rounded(exact_result * 2**64, mode, 0))) < 2.0**-62


# Operands, and the bits of an H100: 2^-126 if the result has 24 bits and is not below it.
LEAST = 0x00800000
NEARLY_NORMAL = {
    "mul": [
        ((0x20225B8C, 0x1FC9D37A), LEAST),
        ((0x2000305E, 0x1FFF9F68), LEAST),
        ((0x207310C2, 0x1F86CFB9), 0),
        ((0x207B4937, 0x1F8266B6), 0),
        ((0x207FFFFE, 0x1F800001), LEAST),
        ((0x207FFFFE, 0x1F800000), 0),
    ],
    "fma": [
        ((0x201FFE65, 0x94800048, 0x00800001), LEAST),
        ((0x200000C0, 0x949FEB29, 0x00800001), LEAST),
        ((0x2020066E, 0x947FFF5A, 0x00800001), 0),
        ((0x200EE360, 0x948F7C75, 0x00800001), 0),
        ((0x207FFFAB, 0x9480002B, 0x00800002), LEAST),
        ((0x207FFF90, 0x94000038, 0x00800000), 0),
    ],
}


@pytest.mark.parametrize("name", NEARLY_NORMAL)
def test_flushing_of_nearly_normal_results(name):
    rows, wanted = zip(*NEARLY_NORMAL[name], strict=True)
    assert run(f"{name}.rn.ftz.f32", ("f32",) * (len(rows[0]) + 1), rows) == [*wanted]


# How many 2^-25 a number is below 2^-126, and the modes with which an H100 makes it 2^-126.
CONVERTED = {
    2.0**-25: {"rn", "rp"},
    1.0: {"rn", "rp"},
    1 - 2.0**-25: {"rn", "rp"},
    1 + 2.0**-25: {"rp"},
    2.0: set(),
    3.0: set(),
    4.0: set(),
}


@pytest.mark.parametrize("mode", MODES)
def test_flushing_of_nearly_normal_numbers_of_binary64(mode):
    numbers = [2.0**-126 * (1 - below * 2.0**-25) for below in CONVERTED]
    rows = [struct.unpack("<Q", struct.pack("<d", x)) for x in numbers]
    wanted = [LEAST if mode in modes else 0 for modes in CONVERTED.values()]
    assert run(f"cvt.{mode}.ftz.f32.f64", ("f32", "f64"), rows) == wanted


@pytest.mark.tier("full", but_one_in=12)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["add", "mul", "div", "fma"])
def test_flushing(name, mode):
    """Subnormal operands count as 0, and tiny results become 0."""
    rows = list(itertools.product(FLOATS, FLOATS[:24]))
    if name == "fma":
        rows = [(a, b, c) for (a, b), c in zip(rows, itertools.cycle(FLOATS[:-1]))]
    for row, _ in NEARLY_NORMAL.get(name, []):
        rows += [row, (row[0] ^ 1 << 31, *row[1:])]
    wanted = []
    for row in rows:
        operands = [flushed(bits) for bits in row]
        bits = modelled(name, mode, operands)
        wanted.append(bits & 1 << 31 if is_tiny(name, mode, operands) else flushed(bits))
    assert run(f"{name}.{mode}.ftz.f32", ("f32",) * (len(rows[0]) + 1), rows) == wanted


@pytest.mark.tier("full", but=["[max]"])
@pytest.mark.parametrize("name", ["min", "max"])
def test_extremes(name):
    """A number wins over NaN, and NaN over a number with .NaN; -0 is below +0."""

    def order(bits):
        return -(bits & 0x7FFFFFFF) - 1 if bits >> 31 else bits

    rows = list(itertools.product(FLOATS, repeat=2))
    for more, wins in (("", False), (".NaN", True)):
        wanted = []
        for row in rows:
            numbers = [bits for bits in row if bits & 0x7FFFFFFF <= INFINITY]
            lost = not numbers or (wins and len(numbers) < 2)
            wanted.append(NAN if lost else {"min": min, "max": max}[name](numbers, key=order))
        assert run(f"{name}{more}.f32", ("f32",) * 3, rows) == wanted


# ---------------------------------------------------------------------- conversions


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_narrowing(name, mode):
    """Numbers at, next to and between the numbers of the format, and NaN."""
    fmt = formats[name]
    bits = [exact.decode(code, fmt) for code in range(0, fmt.code_count, 61)]
    bits += [max(0, one + step) for one in bits for step in (-1, 1, 1 << 11, (1 << 15) + 1)]
    bits = [one & 0xFFFFFFFF for one in bits] + FLOATS
    wanted = [exact.encode(number(one), fmt, MODES[mode], IEEE) for one in bits]
    found = run(f"cvt.{mode}.{name}.f32", ("b16", "f32"), [(one,) for one in bits])
    assert found == wanted


def test_widening():
    """Codes of f16 and of bf16. A NaN of bf16 has the bits that GPUs have by a shift."""
    for name in ("f16", "bf16"):
        codes = range(0, 1 << 16, 7)
        wanted = [exact.decode(code, formats[name]) for code in codes]
        if name == "bf16":
            wanted = [
                code << 16 if code & 0x7FFF > 0x7F80 else wanted[k] for k, code in enumerate(codes)
            ]
        assert run(f"cvt.f32.{name}", ("f32", "b16"), [(code,) for code in codes]) == wanted


@pytest.mark.tier("full", but=["[s16]"])
@pytest.mark.parametrize("kind", ["s32", "u32", "s16", "u8"])
def test_to_integers(kind):
    """Numbers are clamped to the integers; NaN is 0."""
    halves = [struct.unpack("<I", struct.pack("<f", k / 2))[0] for k in range(-9, 10)]
    bits = [*FLOATS, *halves, 0x4F000000, 0x4EFFFFFF, 0xCF000000, 0x4F800000, 0x437F0000]
    ways = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}
    for mode, way in ways.items():
        wanted = []
        for one in bits:
            x = number(one)
            whole = 0 if math.isnan(x) else x if math.isinf(x) else way(x)
            wanted.append(int(clamped(whole, kind)) & (1 << 32) - 1)
        # A register is at least as wide as the type of the result.
        width = max(16, int(bits_of(kind)))
        found = run(f"cvt.{mode}.{kind}.f32", (f"b{width}", "f32"), [(one,) for one in bits])
        assert found == [one & (1 << width) - 1 for one in wanted]


@pytest.mark.tier("full", but=["[u32]"])
@pytest.mark.parametrize("kind", ["s32", "u32", "s64", "u64"])
def test_from_integers(kind):
    values = [*edges(int(bits_of(kind))), (1 << 24) + 1, (1 << 24) + 3, (1 << 25) + 2]
    for mode in MODES:
        wanted = [rounded(Fraction(of_type(kind, one)), mode, 0) for one in values]
        assert run(f"cvt.{mode}.f32.{kind}", ("f32", kind), [(one,) for one in values]) == wanted
