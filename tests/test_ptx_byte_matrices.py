"""`ldmatrix` and `stmatrix` of numbers of 8, 6 and 4 bits, against the layouts of CuTe.

CuTe (CUTLASS 4, `copy_traits_sm100.hpp`) maps lanes and bits of registers to bits of matrices.
"""

import itertools
import re

import numpy as np
import ptxas
import pytest
from kernels import needed

from mor_ref.ptx import LaunchError, Module, PtxError

ROWS = 32
KERNEL = """.version 8.8
.target {target}
.address_size 64
.visible .entry run(.param .u64 out, .param .u64 rows, .param .u64 places) {{
  .shared .align 16 .b8 all[{size}]; .reg .b32 %r<9>; .reg .b32 %x<5>; .reg .b64 %d<5>;
  mov.u32 %r1, %tid.x; ld.param.u64 %d1, [out]; ld.param.u64 %d2, [rows]; mul.wide.u32 %d3, %r1, 16;
  ld.param.u64 %d4, [places]; mad.wide.u32 %d4, %r1, 4, %d4; ld.global.u32 %r3, [%d4];
  add.s64 %d2, %d2, %d3; add.s64 %d1, %d1, %d3; mov.u32 %r2, all; add.u32 %r3, %r3, %r2;
  mad.lo.u32 %r4, %r1, 16, %r2; ld.global.v4.u32 {{%x0, %x1, %x2, %x3}}, [%d2];
  {body}
  ret; }}
"""
STORE = "st.shared.v4.u32 [%r4], {{%x0, %x1, %x2, %x3}}; bar.sync 0; mov.u32 %x0, 0; "
STORE += "mov.u32 %x1, 0; mov.u32 %x2, 0; mov.u32 %x3, 0; "
OUT = "st.global.v4.u32 [%d1], {%x0, %x1, %x2, %x3}; "
NAMES = ["%x0", "%x1", "%x2", "%x3"]
# Where lanes take a row from: (lane mod 2, the next bit, the next two, the last one).
SHUFFLED = (2, 2, 4, 2), (128, 1024, 256, 2048)
IN_ORDER = (32,), (128,)
TRANSPOSED = (4, 8, 8, 2, 2, 4), (256, 8, 1, 128, 64, 1024)


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    needed.compiler()


def offsets(layout):
    """Return the offsets of a layout of CuTe: the first mode is the fastest."""
    found = [0]
    for size, stride in zip(*layout, strict=True):
        found = [each + k * stride for k in range(size) for each in found]
    return found


def launched(body, rows, places=range(0, 512, 16), target="sm_100a", size=512):
    out = np.zeros((32, 4), np.uint32)
    text = KERNEL.format(body=body, target=target, size=size)
    given = np.zeros((32, 16), np.uint8)
    given[: len(rows)] = rows
    Module(text)["run"][1, 32](out, given, np.array(places, np.uint32))
    return out.view(np.uint8).reshape(32, 16)


def registers(count):
    return "{" + ", ".join(NAMES[:count]) + "}"


def random_rows(seed):
    return np.random.default_rng(seed).integers(0, 256, (ROWS, 16), np.uint8)


def unpacked(rows, bits):
    """Return rows of 16 numbers of fewer bits, which lie one after the other, as bytes."""
    whole = [int.from_bytes(row.tobytes(), "little") for row in rows]
    each = [[n >> bits * k & (1 << bits) - 1 for k in range(16)] for n in whole]
    return np.array(each, np.uint8)


def of_cute(rows, count, by_lanes):
    """Return the bytes of lanes after transposed loads; CuTe then exchanges some of them."""
    matrix = np.zeros(ROWS * 16, np.uint8)
    for lane, at in enumerate(offsets(by_lanes)):
        matrix[at // 8 : at // 8 + 16] = rows[lane]
    found = matrix[np.array(offsets(TRANSPOSED)).reshape(4, 2, 2, 8, 32)[:, :, :, 0] // 8]
    lanes = found.reshape(16, 32).T.copy()  # bytes of four registers
    for first in (0, 8):
        halves = lanes[:, first : first + 8].reshape(32, 2, 2, 2)
        lanes[:, first : first + 8] = halves.transpose(0, 2, 1, 3).reshape(32, 8)
    lanes[:, 4 * count :] = 0
    return lanes


LOADED = {"b8": 8, "b8x16.b6x16_p32": 6, "b8x16.b4x16_p64": 4}


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("kind", LOADED)
def test_transposed_loads(kind, count):
    """A lane has four rows of a column, and of the column eight further, of each matrix."""
    rows = random_rows(count)
    opcode = f"ldmatrix.sync.aligned.m16n16.x{count}.trans.shared.{kind}"
    found = launched(f"{STORE.format()} {opcode} {registers(2 * count)}, [%r3]; {OUT}", rows)
    numbers = unpacked(rows, LOADED[kind])
    wanted = of_cute(numbers, 2 * count, SHUFFLED)
    np.testing.assert_array_equal(found, wanted)
    assert found[5, :4].tolist() == numbers[4:8, 1].tolist()
    assert found[5, 4:8].tolist() == numbers[4:8, 9].tolist()


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("kind", ["b8x16.b6x16_p32", "b8x16.b4x16_p64"])
@pytest.mark.parametrize("space", [".shared", ".shared::cta"])
def test_loads_of_packed_rows(kind, count, space):
    """A lane has the four bytes of a row in its place, and padding is not read."""
    rows, bits = random_rows(count), LOADED[kind]
    opcode = f"ldmatrix.sync.aligned.m8n16.x{count}{space}.{kind}"
    words = ", ".join(NAMES[: bits // 2])
    store = STORE.format().replace("{%x0, %x1, %x2, %x3}", f"{{{words}}}")
    store = store.replace("v4", "v2", bits == 4)
    if bits == 6:
        store = store.replace("st.shared.v4.u32 [%r4], {%x0, %x1, %x2}", "st.shared.v2.u32 [%r4], "
                              "{%x0, %x1}; st.shared.u32 [%r4+8], %x2")  # fmt: skip
    found = launched(f"{store} {opcode} {registers(count)}, [%r3]; {OUT}", rows)
    wanted = unpacked(rows, bits).reshape(4, 32, 4).transpose(1, 0, 2).reshape(32, 16).copy()
    wanted[:, 4 * count :] = 0
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_transposed_stores(count):
    """Bytes of lanes are those of the sums of mma.sync: two of a row, two of eight rows below."""
    rows, places = random_rows(count), np.random.default_rng(9).permutation(32) * 16
    opcode = f"stmatrix.sync.aligned.m16n8.x{count}.trans.shared.b8"
    body = f"{opcode} [%r3], {registers(count)}; bar.sync 0; "
    body += f"setp.lt.u32 %p1, %r1, {8 * count}; @!%p1 exit; "
    body += "ld.shared.v4.u32 {%x0, %x1, %x2, %x3}, [%r3]; " + OUT
    found = launched(".reg .pred %p<2>; " + body, rows, places)
    matrix = np.zeros(ROWS * 16, np.uint8)
    bits = np.array(offsets(TRANSPOSED)).reshape(4, 2, 2, 8, 32)[:, :, :, 0].reshape(16, 32)
    matrix[bits // 8] = rows.T
    wanted = matrix.reshape(32, 16)
    wanted[8 * count :] = 0
    np.testing.assert_array_equal(found, wanted)


REFUSED = (
    "ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8 {%x0, %x1, %x2, %x3}, [%r3];",
    "ldmatrix.sync.aligned.m16n16.x1.shared.b8 {%x0, %x1}, [%r3];",
    "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%x0}, [%r3];",
    "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b16 {%x0, %x1}, [%r3];",
    "ldmatrix.sync.aligned.m8n16.x1.shared.b8 {%x0}, [%r3];",
    "ldmatrix.sync.aligned.m8n16.x1.trans.shared.b8x16.b4x16_p64 {%x0}, [%r3];",
    "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b6x16_p32 {%x0, %x1}, [%r3];",
    "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b8 {%x0}, [%r3];",
    "stmatrix.sync.aligned.m16n8.x1.shared.b8 [%r3], {%x0};",
    "stmatrix.sync.aligned.m16n8.x1.trans.shared.b16 [%r3], {%x0};",
    "stmatrix.sync.aligned.m16n8.x2.trans.shared.b8 [%r3], {%x0};",
    "stmatrix.sync.aligned.m8n8.x1.trans.shared.b8 [%r3], {%x0};",
)
TARGETS = {"sm_90a": False, "sm_100": False, "sm_100f": True, "sm_120": False, "sm_120a": True}


@pytest.mark.parametrize("line", REFUSED)
def test_other_forms_are_refused(line):
    with pytest.raises(PtxError, match=re.escape(line.rstrip(";"))):
        launched(line, random_rows(1))


@pytest.mark.parametrize("target", TARGETS)
def test_targets(target):
    """Those of one GPU or one family have these instructions."""
    for line in (
        "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%x0, %x1}, [%r3];",
        "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r3], {%x0};",
    ):
        body = f"{STORE.format()} {line}"
        if TARGETS[target]:
            launched(body, random_rows(1), target=target)
        else:
            with pytest.raises(PtxError, match=re.escape(line.rstrip(";"))):
                launched(body, random_rows(1), target=target)


def test_forms_of_ptxas():
    """ptxas takes and refuses the same forms, and the same targets."""
    ptxas.needed()
    load, store = "ldmatrix.sync.aligned", "stmatrix.sync.aligned"
    taken = [f"{load}.m16n16.x{n}.trans.shared.{kind} {registers(2 * n)}, [%r3];"
             for n, kind in itertools.product((1, 2), LOADED)]  # fmt: skip
    taken += [f"{load}.m8n16.x{n}.shared::cta.{kind} {registers(n)}, [%r3];"
              for n, kind in itertools.product((1, 2, 4), list(LOADED)[1:])]  # fmt: skip
    taken += [f"{store}.m16n8.x{n}.trans.shared.b8 [%r3], {registers(n)};" for n in (1, 2, 4)]
    whole = KERNEL.format(body="\n".join(taken), target="sm_100a", size=512)
    assert ptxas.assembled(whole, "sm_100a")
    for line in REFUSED:
        text = KERNEL.format(body=line, target="sm_100a", size=512)
        assert not ptxas.assembled(text, "sm_100a"), line
    for target, is_taken in TARGETS.items():
        text = KERNEL.format(body=taken[0], target=target, size=512)
        assert bool(ptxas.assembled(text, target)) == is_taken, target


@pytest.mark.parametrize(
    ("place", "words"), [(8, "the address of a row is misaligned"), (512, "outside")]
)
def test_faults(place, words):
    """Of the last row alone; other lanes name no row."""
    line = "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%x0, %x1}, [%r3];"
    places = [*range(0, 240, 16), place, *[7] * 16]
    with pytest.raises(LaunchError, match=words):
        launched(f"{STORE.format()} {line}", random_rows(1), places)
