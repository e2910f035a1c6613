"""Code that compilers write and PTX allows, and sentences for constants that are too large."""

import os
import re
import signal
import threading

import numpy as np
import pytest
from kernels import needed
from ptx_programs import HEADER

from mor_ref.ptx import LaunchError, Module, PtxError, Schedule

KERNEL = """
.visible .entry run(.param .u64 out) {
  .reg .pred %p<5>; .reg .b32 %r<9>; .reg .b64 %d<4>; .shared .align 4 .b8 all[8];
  ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; mov.u32 %r3, all;
  mul.wide.u32 %d2, %r1, 4; add.s64 %d2, %d1, %d2; setp.lt.u32 %p1, %r1, 32;
BODY
  ret;
}
"""


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    needed.compiler()


def launch(body, threads=64, order=0):
    """Run a body in one block."""
    out = np.zeros(max(64, threads), np.uint32)
    text = HEADER + KERNEL.replace("BODY", body)
    Module(text, schedule=Schedule(order=order))["run"][1, threads](out)
    return out


_STORE = "  and.b32 %r4, %r1, 1; shl.b32 %r5, %r4, 2; add.s32 %r5, %r3, %r5;\n  VALUE\n"
_STORE += "  st.shared.u32 [%r5], %r4;\n"
_AFTER = "  ld.shared.u32 %r7, [%r5]; st.global.u32 [%d2], %r7;"


@pytest.mark.parametrize("order", [0, 1])
def test_warps_that_write_equal_bytes(order):
    """A value that every warp has is stored by each, as Triton stores maxima of a block."""
    store = _STORE.replace("VALUE", "add.s32 %r4, %r4, 7;")
    assert launch(store + "  bar.sync 0;\n" + _AFTER, order=order).tolist() == [7, 8] * 32
    races = {
        "other bytes": _STORE.replace("VALUE", "add.s32 %r4, %r4, %r2;"),
        "a read of one's own": store + "  @%p1 ld.shared.u32 %r7, [%r5];",
        "other bytes after equal ones": store + "  @!%p1 st.shared.u32 [%r5], 5;",
    }
    for body in races.values():
        with pytest.raises(LaunchError, match=r"a race: (warp|thread) \d+ (reads|writes to) it"):
            launch(body, order=order)


@pytest.mark.tier("full")
def test_addresses_of_local_memory_have_32_bits():
    """Triton has them in registers of 32 bits, and the generic ones in those of 64."""
    body = """  .local .align 8 .b8 depot[32]; .reg .b32 %SPL; .reg .b64 %SP, %wide;
  mov.b32 %SPL, depot; cvt.u64.u32 %wide, %SPL; cvta.local.u64 %SP, %wide;
  st.local.b32 [%SPL+24], %r1; ld.b32 %r4, [%SP+24];
  st.b32 [%SP+4], 5; ld.local.b32 %r5, [depot+4]; add.s32 %r4, %r4, %r5;
  cvta.to.local.u64 %wide, %SP; ld.local.b32 %r5, [%wide+24]; add.s32 %r4, %r4, %r5;
  st.global.u32 [%d2], %r4;"""
    assert launch(body).tolist() == [2 * k + 5 for k in range(64)]
    for store in ("st.local.b32 [%SPL+32], 1;", "st.local.b32 [%SPL+-4], 1;"):
        with pytest.raises(LaunchError, match="it is outside of local memory"):
            launch(body.replace("  st.global", f"  {store}\n  st.global"))


@pytest.mark.parametrize("order", [0, 1])
def test_barriers_do_not_wait_for_threads_that_have_ended(order):
    """As PTX says of `exit`; of the threads that are left, all and 40 vote."""
    body = """  setp.gt.u32 %p2, %r1, 39; @%p2 exit;
  setp.eq.u32 %p3, %r1, 39; @%p3 st.shared.u32 [%r3], 9;
  BARRIER;
  bar.red.popc.u32 %r4, 0, 1; bar.red.and.pred %p4, 0, 1; @%p4 add.s32 %r4, %r4, 100;
  ld.shared.u32 %r5, [%r3]; add.s32 %r4, %r4, %r5; st.global.u32 [%d2], %r4;"""
    found = launch(body.replace("BARRIER", "bar.sync 0"), order=order)
    assert found.tolist() == [149] * 40 + [0] * 24
    with pytest.raises(LaunchError, match=r"ended before they came|ends, and \d+ threads wait"):
        launch(body.replace("BARRIER", "bar.sync 0, 64"), order=order)


_NINES = "9" * 5000
REFUSED = {
    "mov.f64 %f2, 1e400;": "operand '1e400' is beyond the normal numbers of binary64",
    f"mov.b32 %r1, {_NINES};": "operand '9{40}' is too large for 64 bits",
    "mov.b64 %d1, 0x10000000000000000;": "is too large for 64 bits",
    f"ld.global.b32 %r1, [%d1+{_NINES}];": "offset '9{40}' is too large for 64 bits",
    f".reg .b32 %x<{_NINES}>;": "'9{40}' is not a number of at most 64 bits",
    f"mov.b32 %r1, %r{_NINES};": "is not supported",
    "barrier.cluster.arrive;": "this barrier is not supported",
}


@pytest.mark.parametrize("line", REFUSED, ids=lambda line: line[:24])
def test_what_is_too_large_or_not_there(line):
    """Each is refused in a sentence."""
    body = f"  .reg .f32 %f1; .reg .f64 %f2;\n  {line}"
    with pytest.raises(PtxError, match=f"^line .*: {REFUSED[line]}|^line .*{REFUSED[line]}$"):
        launch(body)


def test_heads_and_grids():
    """The error names the missing directive, and the most blocks of a grid."""
    text = HEADER + KERNEL.replace("BODY", "")
    with pytest.raises(PtxError, match=r"^the text has no \.target; give a whole PTX module"):
        Module(text.replace(".target sm_90", ""))
    with pytest.raises(LaunchError, match=r"grid is 2147483648; a GPU takes at most \(2147483647"):
        Module(text)["run"][1 << 31, 1]


WAITS = (
    HEADER
    + """
.visible .entry run(.param .u64 out) {
  .reg .pred %p<3>; .reg .b32 %r<5>; .reg .b64 %d<2>;
  ld.param.u64 %d1, [out]; mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, WRITER; @%p1 bra WRITE;
AGAIN: ld.volatile.global.u32 %r2, [%d1]; setp.eq.u32 %p2, %r2, 0; @%p2 bra AGAIN;
  st.volatile.global.u32 [%d1+4], %r2; ret;
WRITE: st.volatile.global.u32 [%d1], 1; ret;
}
"""
)


def test_a_block_that_waits_for_another(monkeypatch):
    """Blocks run in turn: one that waits for a later one is refused, and does not run for ever."""
    monkeypatch.setattr("mor_ref.ptx.running._PATIENCE", 5000)
    out = np.zeros(2, np.uint32)
    Module(WAITS.replace("WRITER", "0"))["run"][2, 64](out)
    assert out.tolist() == [1, 1]
    end = threading.Timer(60, os.kill, (os.getpid(), signal.SIGINT))  # if it is not refused
    end.start()
    try:
        with pytest.raises(LaunchError, match=r"AGAIN: ld.* it waits for memory that no thread of"):
            Module(WAITS.replace("WRITER", "1"))["run"][2, 64](np.zeros(2, np.uint32))
    finally:
        end.cancel()


CALLED = """
.func nothing() { ret; }
.func (.param .b32 o) sum(.param .b32 x, .param .f32 y, .param .b64 z) {
  .reg .b32 %r<4>; .reg .f32 %f<1>; .reg .b64 %d<1>;
  ld.param.b32 %r0, [x]; ld.param.f32 %f0, [y]; ld.param.b64 %d0, [z];
  cvt.rzi.u32.f32 %r1, %f0; cvt.u32.u64 %r2, %d0;
  add.u32 %r3, %r0, %r1; add.u32 %r3, %r3, %r2; st.param.b32 [o], %r3; ret; }
.visible .entry run(.param .u64 out) {
  .reg .b32 %r<3>; .reg .f32 %f<2>; .reg .b64 %d<2>;
  ld.param.u64 %d0, [out]; mov.b32 %r1, 3; mov.b64 %d1, 11; mov.f32 %f1, 0f40000000;
CALL
  st.global.b32 [%d0], %r1; ret; }
"""
CALLS = {
    "call (%r1), sum, (%r1, %f1, %d1);": 16,
    "call.uni (%r1), sum, (7, 2.5, -2);": 7,
    "call (), nothing, ();": 3,
    "call (%d1), sum, (%r1, %f1, %d1);": "'%d1' is a register of type .b64, and the operand has",
    "call (%r1), sum, (%r1);": "sum has 1 results and 3 parameters",
    "{ .param .b32 w; call (%r1), sum, (%r1, %f1, w); }": "w has 4 bytes, and z has 8",
}


@pytest.mark.parametrize("line", CALLS)
def test_registers_and_constants_are_arguments_of_calls(line):
    """As ptxas takes and refuses them."""
    out, text = np.zeros(1, np.uint32), HEADER + CALLED.replace("CALL\n", f"{line}\n")
    if isinstance(CALLS[line], str):
        with pytest.raises(PtxError, match=re.escape(CALLS[line])):
            Module(text)["run"][1, 1](out)
    else:
        Module(text)["run"][1, 1](out)
        assert out[0] == CALLS[line]


def test_numbers_of_declarations_have_bases():
    """As ptxas reads them: base 16 and 8, also of threads; f16 has no initial value."""
    text = """.global .align 0x8 .b8 all[010];
.visible .entry run(.param .u64 out) .reqntid 0x2, 1 { .reg .b32 %r<0x2>; .reg .b64 %d<2>;
ld.param.u64 %d0, [out]; mov.u32 %r1, %ntid.x; st.global.b32 [%d0], %r1; ret; }
.visible .entry beyond() { .reg .b16 %h; ld.global.u8 %h, [all+8]; ret; }
"""
    out, module = np.zeros(1, np.uint32), Module(HEADER + text)
    module["run"][1, 2](out)
    assert out[0] == 2
    with pytest.raises(LaunchError, match="outside"):
        module["beyond"][1, 1]()
    half = (
        ".global .f16 a = 1.0; .visible .entry run() { .reg .b16 %h; ld.global.b16 %h, [a]; ret; }"
    )
    with pytest.raises(PtxError, match=r"initial value '1.0' is not supported"):
        Module(HEADER + half)["run"][1, 1]()
