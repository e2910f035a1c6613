"""Atomic operations of 128 bits, and on vectors of half precision."""

import itertools
import re
import struct

import numpy as np
import ptxas
import pytest
from kernels import needed
from ptx_programs import HEADER

from mor_ref import exact, formats
from mor_ref.ptx import Module, PtxError, Schedule

KERNEL = """.visible .entry run(.param .u64 out, .param .u64 memory, .param .u64 given) {{
  .reg .b16 %h<17>; .reg .b32 %r<12>; .reg .b64 %d<9>; .reg .b128 %q<4>; .reg .f32 %f<9>;
  .reg .pred %p<2>; .shared .align 16 .b8 s[16];
  mov.u32 %r9, %tid.x; mov.u32 %r10, %ctaid.x; mov.u32 %r11, %ntid.x;
  mad.lo.u32 %r10, %r10, %r11, %r9; ld.param.u64 %d1, [out]; mad.wide.u32 %d1, %r10, 16, %d1;
  ld.param.u64 %d2, [memory]; ld.param.u64 %d3, [given]; mad.wide.u32 %d3, %r10, 16, %d3;
  {body}
  ret; }}
"""


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    needed.compiler()


def aligned(count, dtype):
    """Return zeros that begin at 16 bytes."""
    whole = np.zeros(count + 16, dtype)
    first = -whole.ctypes.data % 16 // whole.itemsize
    return whole[first : first + count]


def launched(body, memory, given, threads, blocks=1, **schedule):
    """Run lines by threads; each has 16 bytes of `given`, and 16 that go out."""
    out = aligned(2 * threads * blocks, np.uint64)
    module = Module(HEADER + KERNEL.format(body=body), **schedule)
    kernel = module["run"]
    kernel[blocks, threads](out, memory, given)
    return out.reshape(-1, 2).tolist(), kernel


def swaps(operation, space="global"):
    """Return lines that compare with, or exchange, 128 bits: {own number, 7}."""
    place = {"global": "[%d2]", "shared": "[s]", "generic": "[%d4]"}[space]
    word = f".{space}" if space != "generic" else ""
    operands = "%q3, %q2" if operation == "cas" else "%q2"
    return f"""ld.global.b128 %q2, [%d3]; mov.b64 %d5, 7; mov.b64 %d6, 0;
  mov.b128 %q3, {{%d6, %d5}};
  setp.eq.u32 %p1, %r9, 0; @%p1 st.shared.b64 [s], 0; @%p1 st.shared.b64 [s+8], 7; bar.sync 0;
  mov.u64 %d4, s; cvta.shared.u64 %d4, %d4;
  atom{word}.{operation}.b128 %q1, {place}, {operands}; st.global.b128 [%d1], %q1;"""


@pytest.mark.parametrize("space", ["global", "shared", "generic"])
@pytest.mark.parametrize("operation", ["cas", "exch"])
def test_128_bits(operation, space):
    """The first one finds {0, 7}; an exchange leaves its own, a comparison that of the first."""
    memory = aligned(2, np.uint64)
    memory[:] = 0, 7
    given = aligned(8, np.uint64)
    given[:] = [1 << 63 | 1, 2, 3, 4, 5, 6, 0, 8]
    out, _ = launched(swaps(operation, space), memory, given, 4)
    rows = given.reshape(-1, 2).tolist()
    assert out.count([0, 7]) == 1
    first = rows[out.index([0, 7])]
    others = [each for each in out if each != [0, 7]]
    if operation == "cas":
        assert others == [first] * 3
        left = first
    else:
        (left,) = [each for each in rows if each not in others]
        assert sorted([*others, left]) == sorted(rows)
    if space == "global":
        assert memory.tolist() == left


def test_both_words_are_compared():
    """Of {1, 7} and {0, 8}, which are half of it, nothing is exchanged."""
    for own in ([1, 7], [0, 8]):
        memory, given = aligned(2, np.uint64), aligned(2, np.uint64)
        memory[:] = own
        out, _ = launched(swaps("cas"), memory, given, 1)
        assert (out, memory.tolist()) == ([own], own)


COUNTED = """mov.u32 %r1, 600000; mov.b64 %d5, 0; mov.b128 %q1, {%d5, %d5};
AGAIN: mov.b128 {%d5, %d6}, %q1; add.u64 %d7, %d5, 1; add.u64 %d8, %d6, 3; mov.b128 %q2, {%d7, %d8};
  atom.global.cas.b128 %q1, [%d2], %q1, %q2; mov.b128 {%d7, %d8}, %q1;
  setp.eq.u64 %p1, %d5, %d7; setp.eq.and.u64 %p1, %d6, %d8, %p1; @!%p1 bra AGAIN;
  sub.u32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra AGAIN;"""


@pytest.mark.tier("full")
def test_sums_of_blocks_lose_nothing():
    """Blocks of four workers compare and exchange until each has added {1, 3} so many times."""
    memory, given = aligned(2, np.uint64), aligned(16, np.uint64)
    launched(COUNTED, memory, given, 1, 8, schedule=Schedule(workers=4))
    assert memory.tolist() == [8 * 600_000, 3 * 8 * 600_000]


VECTORS = [(2, "f16"), (4, "bf16"), (8, "f16"), (2, "f16x2"), (4, "bf16x2"), (8, "bf16")]


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize("operation", ["min", "max", "add"])
@pytest.mark.parametrize(("count", "kind"), VECTORS)
@pytest.mark.parametrize("instruction", ["atom", "red"])
def test_vectors_of_half_precision(instruction, count, kind, operation):
    """Subnormal numbers are kept, and -0 is below 0."""
    fmt = formats[kind.removesuffix("x2")]
    words, letter = count * (1 + kind.endswith("x2")), "r" if kind.endswith("x2") else "h"
    random = np.random.default_rng(count)
    given = aligned(8 * 6, np.uint16)
    given[:] = random.choice([0x0001, 0x8001, 0, 0x8000, 0x3C01, 0xBC02, 0x7C00, 0x0400], 48)
    given.reshape(6, 8)[:, 0] = [0x8000, 0, 0x0002, 0x8003, 0, 0x8000]
    if operation == "add":
        given[given == 0x7C00] = 0x3C00
    memory = aligned(8, np.uint16)
    names = ", ".join(f"%{letter}{k}" for k in range(count))
    width = 32 if letter == "r" else 16
    target = f"{{{names}}}, " if instruction == "atom" else ""
    chunk = min(count, 4)
    load = " ".join(
        f"ld.global.v{chunk}.b{width} {{{', '.join(f'%{letter}{k + n}' for n in range(chunk))}}}, "
        f"[%d3+{k * width // 8}];"
        for k in range(0, count, chunk)
    )
    store = " ".join(
        f"st.global.b{width} [%d1+{k * width // 8}], %{letter}{k};" for k in range(count)
    )
    opcode = f"{instruction}.global.{operation}.noftz.v{count}.{kind}"
    body = f"{load} {opcode} {target}[%d2], {{{names}}}; {store}"
    out, kernel = launched(body, memory, given, 6)
    state, found = [0] * words, np.array(out, np.uint64).view(np.uint16).reshape(6, 8)
    for thread, own in enumerate(given.reshape(6, 8)[:, :words].tolist()):
        if instruction == "atom":
            assert found[thread, :words].tolist() == state
        state = [modelled(operation, *pair, fmt) for pair in zip(state, own, strict=True)]
    assert memory[:words].tolist() == state
    assert not kernel.undefined


def number(code, fmt):
    return struct.unpack("<f", struct.pack("<I", exact.decode(code, fmt)))[0]


def modelled(operation, a, b, fmt):
    """Return an operation on two numbers, by the exact model; of zeros, -0 is the least."""
    if operation == "add":
        total = number(a, fmt) + number(b, fmt)
        return exact.encode(total, fmt) if total else (0x8000 if a == b == 0x8000 else 0)
    return {"min": min, "max": max}[operation](
        a, b, key=lambda code: (number(code, fmt), not code >> 15)
    )


@pytest.mark.parametrize("kind", ["v2.f16", "v2.bf16x2"])
def test_a_nan_is_named(kind):
    """PTX says nothing of it: a number wins, as in `min` and `max`, and the line is among those."""
    letter = "r" if "x2" in kind else "h"
    body = "mov.b32 %r1, 0x7FFF3C00; mov.b32 %r2, 0; mov.b16 %h1, 0x7FFF; mov.b16 %h2, 0; "
    body += f"red.global.max.noftz.{kind} [%d2], {{%{letter}1, %{letter}2}};"
    memory = aligned(8, np.uint16)
    _, kernel = launched(body, memory, aligned(8, np.uint16), 1)
    assert memory[:4].tolist() == ([0x3C00, 0, 0, 0] if letter == "r" else [0] * 4)
    assert "PTX does not say" in str(kernel.undefined[0])


REFUSED = (
    "red.global.exch.b128 [%d2], %q2;", "atom.global.and.b128 %q1, [%d2], %q2;",
    "atom.global.min.f32 %f1, [%d2], %f2;", "atom.global.max.f64 %d4, [%d2], %d5;",
    "atom.global.min.noftz.f16 %h1, [%d2], %h2;", "red.global.max.noftz.f16x2 [%d2], %r1;",
    "atom.shared.max.noftz.v2.f16x2 {%r1, %r2}, [s], {%r3, %r4};",
    "atom.global.max.v2.f32 {%f1, %f2}, [%d2], {%f3, %f4};",
    "atom.global.add.v2.u32 {%r1, %r2}, [%d2], {%r3, %r4};",
    "atom.global.exch.v2.b32 {%r1, %r2}, [%d2], {%r3, %r4};",
    "red.global.inc.noftz.v2.bf16x2 [%d2], {%r3, %r4};",
)  # fmt: skip


@pytest.mark.parametrize("line", REFUSED)
def test_other_forms_are_refused(line):
    """ptxas refuses them, too, if it is there."""
    with pytest.raises(PtxError, match=re.escape(line.rstrip(";"))):
        launched(line, aligned(8, np.uint16), aligned(8, np.uint16), 1)


def test_forms_of_ptxas():
    ptxas.needed()
    head = HEADER
    for operation, space in itertools.product(("cas", "exch"), ("global", "shared", "generic")):
        assert ptxas.assembled(head + KERNEL.format(body=swaps(operation, space)))
    for line in REFUSED:
        assert not ptxas.assembled(head + KERNEL.format(body=line)), line
