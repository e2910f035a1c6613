"""Fragments of matrices in the registers of a warp, and kernels of one matrix instruction."""

import functools
import itertools

import numpy as np
from ptx_programs import HEADER

from mor_ref import exact
from mor_ref.ptx import Module


def program(target, opcode, counts, scales=""):
    """Return a kernel of one warp: registers of a, b and c come from arrays, a row a lane.

    With `scales`, the selectors of the instruction, a fourth array has two registers of scales.
    """
    letters = "abcs" if scales else "abc"
    version = "9.1" if "4X" in opcode and "ue8m0" in opcode else "9.0"
    counts = [*counts, 2][: len(letters)]
    lines, groups = [], []
    for k, (letter, count) in enumerate(zip(letters, counts, strict=True)):
        names = [f"%r{k}{n}" for n in range(count)]
        groups.append("{" + ", ".join(names) + "}")
        lines.append(f"  ld.param.u64 %d1, [{letter}]; mad.wide.u32 %d1, %r99, {4 * count}, %d1;")
        lines += [f"  ld.global.u32 {name}, [%d1+{4 * n}];" for n, name in enumerate(names)]
    if scales:
        of_a, of_b = scales
        groups[3] = f"%r30, {{{of_a[0]}, {of_a[1]}}}, %r31, {{{of_b[0]}, {of_b[1]}}}"
    result = "{" + ", ".join(f"%r5{n}" for n in range(counts[2])) + "}"
    stores = [f"  st.global.u32 [%d1+{4 * n}], %r5{n};" for n in range(counts[2])]
    parameters = ", ".join(f".param .u64 {letter}" for letter in ("d", *letters))
    return "\n".join([
        HEADER.replace("sm_90", target).replace("9.0", version),
        f".visible .entry run({parameters}) {{",
        "  .reg .b32 %r<100>; .reg .b64 %d<4>;",
        "  mov.u32 %r99, %tid.x;",
        *lines,
        f"  {opcode} {result}, {', '.join(groups)};",
        f"  ld.param.u64 %d1, [d]; mad.wide.u32 %d1, %r99, {4 * counts[2]}, %d1;",
        *stores,
        "  ret;\n}\n",
    ])  # fmt: skip


def in_registers(codes, bits, place):
    """Return the registers of all lanes; `place` is the row and the column of an element."""
    each = 32 // bits
    lanes = []
    for lane in range(32):
        row = []
        for register in itertools.count():
            places = [place(lane, register, k, each) for k in range(each)]
            if any(i >= codes.shape[0] or j >= codes.shape[1] for i, j in places):
                break
            row.append(sum(int(codes[at]) << bits * k for k, at in enumerate(places)))
        lanes.append(row)
    return np.array(lanes, np.uint32)


def of_a(lane, register, k, each, rows=16):
    """Return the place in a, after the figures of the manual of PTX."""
    halves = rows // 8
    column = register // halves * 4 * each + lane % 4 * each + k
    return lane // 4 + 8 * (register % halves), column


def of_b(lane, register, k, each):
    return register * 4 * each + lane % 4 * each + k, lane // 4


def of_c(lane, register, k, each):
    element = register * each + k
    return lane // 4 + 8 * (element // 2), lane % 4 * 2 + element % 2


def multiplied(target, opcode, codes, widths, scales=None):
    """Return the codes of a product; `scales` are registers of the lanes and selectors."""
    places = functools.partial(of_a, rows=codes[0].shape[0]), of_b, of_c
    inputs = [in_registers(*each) for each in zip(codes, widths, places, strict=True)]
    out = np.zeros_like(inputs[2])
    counts = [each.shape[1] for each in inputs]
    words, selectors = scales or (None, "")
    more = [] if words is None else [words]
    Module(program(target, opcode, counts, selectors))["run"][1, 32](out, *inputs, *more)
    each = 32 // widths[2]
    found = np.zeros(codes[2].shape, np.uint32)
    for lane, register, part in itertools.product(range(32), range(out.shape[1]), range(each)):
        word = int(out[lane, register]) >> widths[2] * part & ((1 << widths[2]) - 1)
        found[of_c(lane, register, part, each)] = word
    return found.tolist()


KINDS = ("near", "any", "few")


def numbers(random, shape, fmt, kind):
    """Return codes: of near magnitudes, any, or mostly zeros and one, with few infinities."""
    if kind == "any":
        return random.integers(0, fmt.code_count, shape, np.uint32)
    if kind == "few":
        beyond = fmt.largest_code if fmt.infinity_code is None else fmt.infinity_code
        codes = [0, exact.encode(1.0, fmt), fmt.sign_bit, beyond, beyond | fmt.sign_bit]
        return random.choice(np.array(codes, np.uint32), shape, p=[0.4, 0.45, 0.1, 0.03, 0.02])
    values = random.standard_normal(shape) * np.exp2(random.integers(-3, 4, shape))
    return np.reshape([exact.encode(x, fmt) for x in values.ravel().tolist()], shape)
