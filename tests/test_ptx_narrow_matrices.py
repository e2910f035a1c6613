"""Matrix instructions of PTX with scales of blocks, and of integers."""

import itertools
import re

import numpy as np
import pytest
from fragments import KINDS, multiplied, numbers
from kernels import needed
from ptx_programs import HEADER

from mor_ref import exact, formats
from mor_ref.definitions.dot import DOT_PROFILES
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.exact.dot import Scales, dot
from mor_ref.ptx import Module, PtxError


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    needed.compiler()


# ---------------------------------------------------------------------- scales of blocks

# The kind, the types of a, b and scales, how many scales a row has, selectors, and the profile.
SCALED = [
    ("mxf8f6f4", "e4m3", "e5m2", "ue8m0", 1, ((2, 1), (3, 2)), "mxfp8"),
    ("mxf8f6f4", "e2m1", "e2m3", "ue8m0", 1, ((0, 0), (1, 3)), "mxfp8"),
    ("mxf4", "e2m1", "e2m1", "ue8m0", 2, ((2, 0), (0, 1)), "mxfp4"),
    ("mxf4nvf4", "e2m1", "e2m1", "ue8m0", 4, ((0, 1), (0, 0)), "mxfp4"),
    ("mxf4nvf4", "e2m1", "e2m1", "ue4m3", 4, ((0, 1), (0, 3)), "nvfp4"),
]
SCALES = {"ue8m0": formats["e8m0"], "ue4m3": formats["e4m3"]}


def scale_codes(random, rows, count, kind, wide):
    """Return codes of scales: about one, or any, with rows of zeros."""
    one = 127 if kind == "ue8m0" else 0x38
    if wide:
        is_zero = random.random((rows, 1)) < 0.3
        return np.where(is_zero, 0, random.integers(0, 256, (rows, count), np.uint32))
    return random.integers(one - 5, one + 6, (rows, count), np.uint32)


def scale_registers(random, codes, selectors):
    """Return two registers a lane: the scales where they are read, and noise elsewhere."""
    found = random.integers(0, 1 << 32, (32, 2), np.uint32)
    for k, (of, (byte, lane)) in enumerate(zip(codes, selectors, strict=True)):
        for i, row in enumerate(of.tolist()):
            # After the manual: a pair of each quad has rows i and i + 8 of a.
            at = i % 8 * 4 + 2 * lane + i // 8 if k == 0 else i * 4 + lane
            for n, code in enumerate(row):
                shift = 8 * (byte + n)
                found[at, k] = found[at, k] & ~np.uint32(0xFF << shift) | np.uint32(code << shift)
    return found


@pytest.mark.tier("full", but=["[mxf8f6f4-e2m1-e2m3-ue8m0-1]"])
@pytest.mark.parametrize("case", SCALED, ids=lambda case: "-".join(map(str, case[:5])))
def test_products_with_scales(case):
    """DOT-006 to DOT-010: codes and scales about one, and any; a sample of the entries."""
    kind, a, b, stype, count, selectors, name = case
    profile, of = DOT_PROFILES[f"rtx_blackwell_{name}"], (formats[a], formats[b])
    width = 8 if kind == "mxf8f6f4" else 4
    k, random = 256 // width, np.random.default_rng(count)
    opcode = (
        f"mma.sync.aligned.kind::{kind}.block_scale.scale_vec::{count}X.m16n8k{k}.row.col"
        f".f32.{a}.{b}.f32.{stype}"
    )
    for draw, wide in itertools.product(KINDS, (False, True)):
        shapes = (16, k), (k, 8), (16, 8)
        formats_of = *of, formats["f32"]
        codes = [numbers(random, *each, draw) for each in zip(shapes, formats_of, strict=True)]
        scales = [scale_codes(random, rows, count, stype, wide) for rows in (16, 8)]
        shown = [each << 2 * (fmt.name == "e2m1" and width == 8)
                 for each, fmt in zip(codes, formats_of, strict=True)]  # fmt: skip
        words = scale_registers(random, scales, selectors)
        found = multiplied("sm_120a", opcode, shown, (width, width, 32), (words, selectors))
        for i, j in [(n % 16, n * 3 % 8) for n in range(48)]:
            both = Scales(scales[0][i].tolist(), scales[1][j].tolist(), SCALES[stype], k // count)
            c = float(np.uint32(codes[2][i, j]).view(np.float32))
            total = dot(codes[0][i].tolist(), codes[1][:, j].tolist(), c, profile, of, both)
            code = exact.encode(total, formats["f32"], "rne", SpecialCases(overflow="ieee"))
            assert found[i][j] == code


# ---------------------------------------------------------------------- integers

INTEGERS = [
    ("m16n8k32", "s8", "u8", ""),
    ("m16n8k16", "s8", "s8", ".satfinite"),
    ("m8n8k16", "u8", "u8", ""),
    ("m16n8k64", "s4", "s4", ""),
    ("m8n8k32", "u4", "s4", ".satfinite"),
]


def signed(codes, bits):
    """Return integers in two's complement."""
    return codes.astype(np.int64) - (codes >> (bits - 1) & 1).astype(np.int64) * (1 << bits)


@pytest.mark.tier("full", but=["[m8n8k16-u8-u8-]"])
@pytest.mark.parametrize(("shape", "a", "b", "clamped"), INTEGERS)
def test_products_of_integers(shape, a, b, clamped):
    """They wrap, or are clamped, at the ends of 32 bits."""
    m, _, k = map(int, re.findall(r"\d+", shape))
    width, random = int(a[1:]), np.random.default_rng(k)
    codes = [random.integers(0, 1 << width, size, np.uint32) for size in ((m, k), (k, 8))]
    c = random.choice([0, 5, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF], (m, 8)).astype(np.uint32)
    opcode = f"mma.sync.aligned.{shape}.row.col{clamped}.s32.{a}.{b}.s32"
    found = multiplied("sm_80", opcode, [*codes, c], (width, width, 32))
    x, y = (signed(one, width) if kind[0] == "s" else one.astype(np.int64)
            for one, kind in zip(codes, (a, b), strict=True))  # fmt: skip
    total = x @ y + signed(c, 32)
    total = np.clip(total, -(1 << 31), (1 << 31) - 1) if clamped else total
    np.testing.assert_array_equal(np.array(found, np.uint32), (total & 0xFFFFFFFF).astype("u4"))


# ---------------------------------------------------------------------- refusals

FOUR, TWO = "{%r1, %r2, %r3, %r4}", "{%r1, %r2}"
BOTH = f"{FOUR}, {FOUR}, {TWO}, {FOUR}"
FOURS = (
    "k64.row.col.kind::mxf4.block_scale.scale_vec::{}X.f32.e2m1.e2m1.f32.ue8m0 "
    "{{%r1, %r2, %r3, %r4}}, {{%r1, %r2, %r3, %r4}}, {{%r1, %r2}}, {{%r1, %r2, %r3, %r4}}, "
    "%r1, {{{}, 0}}, %r2, {{0, 0}};"
)
REFUSED = [
    ("sm_120a", f"k32.row.col.f32.e2m1.e4m3.f32 {BOTH};", "no profile"),
    ("sm_89", f"k32.row.col.kind::f8f6f4.f32.e2m1.e4m3.f32 {BOTH};", "it needs .target sm_1"),
    ("sm_120a", FOURS.format(4, 0), "no profile of dot products has these scales"),
    ("sm_120a", FOURS.format(2, 1), "selectors of scales are not defined"),
    ("sm_80", f"k32.row.col.f32.s8.s8.f32 {BOTH};", "not supported"),
    ("sm_80", f"k32.row.col.s32.s8.s4.s32 {BOTH};", "its types of a and b"),
]


@pytest.mark.parametrize(("target", "line", "words"), REFUSED)
def test_others_are_refused_with_their_line(target, line, words):
    header = HEADER.replace("sm_90", target)
    body = f".visible .entry run() {{\n.reg .b32 %r<9>;\nmma.sync.aligned.m16n8{line}\n}}"
    with pytest.raises(PtxError, match=rf"line \d+: mma.sync.*{words}"):
        Module(header + body)["run"][1, 32]()
