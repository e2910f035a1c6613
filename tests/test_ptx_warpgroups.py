"""Matrix instructions of four warps, whose operands lie in shared memory."""

import re

import numpy as np
import pytest
from fragments import in_registers, numbers, of_a
from kernels import needed
from ptx_programs import HEADER

from mor_ref import exact, formats
from mor_ref.definitions.dot import DOT_PROFILES
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.exact.dot import dot
from mor_ref.ptx import LaunchError, Module, PtxError

N, OF_B, IMAGE = 16, 8192, 16384
LAYOUTS = {16: 0, 128: 1, 64: 2, 32: 3}  # bits 62 and 63 of a descriptor
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8}
WGMMA = "wgmma.mma_async.sync.aligned.m64n16k{}.{}.{}.{}"


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    needed.compiler()


def program(opcode, count, registers, more):
    """Return a kernel of four warps that copies an image to shared memory, and multiplies.

    Descriptors count from the image: on a GPU, the first 1,024 bytes of shared memory are its own.
    """
    sums = [f"%s{n}" for n in range(count)]
    loads = [f"ld.global.u32 {name}, [%d3+{4 * n}];" for n, name in enumerate(sums)]
    stores = [f"st.global.u32 [%d3+{4 * n}], {name};" for n, name in enumerate(sums)]
    words = ["%a0", "%a1", "%a2", "%a3"]
    loads += [f"ld.global.u32 {name}, [%d4+{4 * n}];" for n, name in enumerate(words)]
    of_first = "{" + ", ".join(words) + "}" if registers else "%d5"
    return f"""{HEADER.replace("sm_90", "sm_90a")}
.extern .shared .align 1024 .b8 image[];
.visible .entry run(.param .u64 d, .param .u64 a, .param .u64 x, .param .u64 of_a, .param .u64 of_b,
                    .param .u32 keeps) {{
  .reg .pred %p<2>; .reg .b32 %r<9>; .reg .b32 %s<{count}>; .reg .b32 %a<4>; .reg .b64 %d<9>;
  mov.u32 %r1, %tid.x; ld.param.u64 %d1, [d]; ld.param.u64 %d2, [a]; ld.param.u64 %d7, [x];
  mad.wide.u32 %d3, %r1, {4 * count}, %d1; mad.wide.u32 %d4, %r1, 16, %d2;
  ld.param.u64 %d5, [of_a]; ld.param.u64 %d6, [of_b]; ld.param.u32 %r2, [keeps];
  setp.ne.u32 %p1, %r2, 0; mov.u32 %r4, image;
  shr.u32 %r3, %r4, 4; cvt.u64.u32 %d8, %r3; add.u64 %d5, %d5, %d8; add.u64 %d6, %d6, %d8;
  {" ".join(loads)}
$copy:
  mad.wide.u32 %d8, %r1, 4, %d7; ld.global.u32 %r3, [%d8];
  mad.lo.u32 %r5, %r1, 4, %r4; st.shared.u32 [%r5], %r3;
  add.u32 %r1, %r1, 128; setp.lt.u32 %p0, %r1, {IMAGE // 4}; @%p0 bra $copy;
  fence.proxy.async; bar.sync 0; wgmma.fence.sync.aligned;
  {opcode} {{{", ".join(sums)}}}, {of_first}, %d6, %p1{more};
  wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
  {" ".join(stores)}
  ret;
}}
"""


def put(image, codes, bits, begin, width, across):
    """Lay rows of K in an image of shared memory; return their descriptor.

    After the layouts of CUTLASS: pieces of 16 bytes, whose number is changed by that of their row.
    """
    size = bits // 8
    tile = 8 * width
    if not across:  # tiles of eight rows; without swizzling they have 16 bytes along K
        beside, along = (2 if width == 16 else 1) * tile, tile
    else:  # tiles of eight elements of K; `beside` are those of the next rows
        beside, along = 4 * tile, tile
    for (i, k), code in np.ndenumerate(codes):
        if across:
            at = i * size // width * beside + i * size % width + k // 8 * along + k % 8 * width
        else:
            at = i // 8 * beside + i % 8 * width + k * size // width * along + k * size % width
        piece, row = at // 16, at // 128
        piece ^= row % (width // 16)
        at = begin + piece * 16 + at % 16
        image[at : at + size] = np.frombuffer(int(code).to_bytes(size, "little"), np.uint8)
    leading, stride = (along, beside) if across == (width == 16) else (beside, along)
    if not across:
        leading, stride = along, beside
    return begin >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | LAYOUTS[width] << 62


# Types of the result, of a and of b; widths of rows in shared memory, and whether they lie across.
CASES = [
    ("f32", "f16", "f16", (0, 128), (False, False), "hopper_fp16"),
    ("f16", "f16", "f16", (64, 32), (False, True), "hopper_fp16_f16"),
    ("f32", "bf16", "bf16", (16, 16), (True, True), "hopper_bf16"),
    ("f32", "f16", "f16", (128, 128), (True, True), "hopper_fp16"),
    ("f32", "tf32", "tf32", (0, 64), (False, False), "hopper_tf32"),
    ("f32", "e4m3", "e5m2", (32, 16), (False, False), "hopper_fp8"),
    ("f16", "e5m2", "e4m3", (0, 32), (False, False), "hopper_fp8_f16"),
    ("s32", "s8", "u8", (128, 64), (False, False), ""),
]


def multiplied(case, codes, keeps=1, signs=(1, 1)):
    """Return the sums of the kernel as codes, (64, N)."""
    d, a, b, widths, across, _ = case
    image, bits = np.zeros(IMAGE, np.uint8), BITS[a]
    of_a_text = put(image, codes[0], bits, 0, widths[0], across[0]) if widths[0] else 0
    of_b_text = put(image, codes[1].T, bits, OF_B, widths[1], across[1])
    words = [in_registers(codes[0][k : k + 16], bits, of_a) for k in range(0, 64, 16)]
    width, count = {"f16": (16, N // 4)}.get(d, (32, N // 2))
    sums = np.zeros((128, count), np.uint32)
    for thread, place, at in places(width, count):
        sums[thread, place[0]] |= np.uint32(int(codes[2][at]) << place[1])
    more = [f", {sign}" for sign in signs] if d != "s32" else []
    if bits == 16:
        more += [f", {int(one)}" for one in (across if widths[0] else across[1:])]
    text = program(WGMMA.format(256 // bits, d, a, b), count, not widths[0], "".join(more))
    numbers_of = np.uint64(of_a_text), np.uint64(of_b_text), np.uint32(keeps)
    Module(text)["run"][1, 128, IMAGE](sums, np.concatenate(words), image, *numbers_of)
    found = np.zeros((64, N), np.uint32)
    for thread, place, at in places(width, count):
        found[at] = int(sums[thread, place[0]]) >> place[1] & ((1 << width) - 1)
    return found


def places(width, count):
    """Yield the thread, the register and the bit, and the row and the column of each sum."""
    for thread in range(128):
        for n in range(count * 32 // width):
            row = thread // 32 * 16 + thread % 32 // 4 + n // 2 % 2 * 8
            column = n // 4 * 8 + thread % 4 * 2 + n % 2
            register, bit = divmod(n * width, 32)
            yield thread, (register, bit), (row, column)


@pytest.mark.tier("full")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[5]}-{case[3]}")
def test_products_of_the_exact_model(case):
    """DOT-004, DOT-005, DOT-007, DOT-008, DOT-010, in a sample of the rows."""
    d, a, b, *_, name = case
    k, random = 256 // BITS[a], np.random.default_rng(len(a))
    if d == "s32":
        codes = [random.integers(0, 256, shape) for shape in ((64, k), (k, N))]
        codes.append(random.integers(0, 1 << 32, (64, N)))
        wanted = codes[0].astype(np.int8).astype(np.int64) @ codes[1] + codes[2]
        np.testing.assert_array_equal(multiplied(case, codes), wanted & 0xFFFFFFFF)
        return
    of = [formats[{"tf32": "f32"}.get(x, x)] for x in (a, b, d)]
    for kind, keeps, signs in (("near", 1, (1, -1)), ("any", 0, (1, 1)), ("few", 1, (-1, -1))):
        codes = [numbers(random, shape, fmt, kind)
                 for shape, fmt in zip(((64, k), (k, N), (64, N)), of, strict=True)]  # fmt: skip
        found = multiplied(case, codes, keeps, signs)
        for i, j in [(n, n * 5 % N) for n in range(64)]:
            row, column = codes[0][i].tolist(), codes[1][:, j].tolist()
            row = [code ^ of[0].sign_bit * (signs[0] != signs[1]) for code in row]
            start = exact.decode(int(codes[2][i, j]) * keeps, of[2])
            start = float(np.uint32(start).view(np.float32))
            total = dot(row, column, start, DOT_PROFILES[name], tuple(of[:2]))
            code = exact.encode(total, of[2], "rne", SpecialCases(overflow="ieee"))
            assert found[i, j] == code, (kind, i, j)


def test_what_a_descriptor_may_not_be():
    case = CASES[0]
    codes = [np.zeros(shape, np.uint32) for shape in ((64, 16), (16, N), (64, N))]
    text = program(WGMMA.format(16, "f32", "f16", "f16"), 8, registers=True, more=", 1, 1, 0")
    arrays = np.zeros((128, 8), np.uint32), np.zeros((128, 4), np.uint32), np.zeros(IMAGE, "u1")
    assert multiplied(case, codes).max() == 0
    for descriptor, words in ((1 << 49, "base offset"), (0x3FFF, "outside of shared memory")):
        numbers_of = np.uint64(0), np.uint64(descriptor), np.uint32(1)
        with pytest.raises(LaunchError, match=rf"line \d+: wgmma.mma_async.* {words}"):
            Module(text)["run"][1, 128, IMAGE](*arrays, *numbers_of)


SUMS = "{" + ", ".join(f"%r{n}" for n in range(4)) + "}"
REFUSED = [
    ("m64n8k16.f32.f16.bf16", "1, 1, 0, 0", "not supported"),
    ("m64n8k8.f32.f16.f16", "1, 1, 0, 0", "shape is not supported"),
    ("m64n8k16.f32.f16.f16", "1, 1", "operands are not those of its shape"),
    ("m64n8k16.f32.f16.f16", "1, 2, 0, 0", "is 1 or -1"),
    ("m64n8k8.f16.tf32.tf32", "1, 1", "no profile"),
]


@pytest.mark.parametrize(("shape", "more", "words"), REFUSED)
def test_others_are_refused_with_their_line(shape, more, words):
    line = f"wgmma.mma_async.sync.aligned.{shape} {SUMS}, %d1, %d2, %p1, {more};"
    body = ".reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<2>;\n"
    text = f"{HEADER.replace('sm_90', 'sm_90a')}.visible .entry run() {{\n{body}{line}\n}}"
    with pytest.raises(PtxError, match=rf"line \d+: wgmma.*{re.escape(shape)}.*{words}"):
        Module(text)["run"][1, 128]()
