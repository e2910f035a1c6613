"""Threads of a block that wait for one another: races, barriers that lanes miss, flags, loops."""

import os
import signal
import threading

import numpy as np
import pytest
from kernels import needed
from ptx_programs import HEADER

from mor_ref.cuda.host import Schedule
from mor_ref.ptx import LaunchError, Module

KERNEL = """
.visible .entry run(.param .u64 out) {
  .reg .pred %p<5>; .reg .b32 %r<9>; .reg .b64 %d<4>; .shared .align 4 .b8 all[128];
  ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, all;
  add.s32 %r4, %r3, %r2; setp.lt.u32 %p1, %r1, 16; mul.wide.u32 %d2, %r1, 4; add.s64 %d2, %d1, %d2;
BODY
  ret;
}
"""


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    needed.compiler()


def launch(body, out=None):
    out = np.zeros(32, np.uint32) if out is None else out
    Module(HEADER + KERNEL.replace("BODY", body))["run"][1, 32](out)
    return out


_READ = """  xor.b32 %r5, %r2, 64; add.s32 %r6, %r3, %r5;
  ld.shared.u32 %r7, [%r6];
  st.global.u32 [%d2], %r7;
END:"""
_CHAIN = """  st.shared.u32 [%r4], %r1;
  setp.gt.u32 %p2, %r1, 1; @%p2 bra SOME;
  bar.warp.sync 3;
SOME: setp.eq.u32 %p3, %r1, 0; @%p3 bra END; setp.gt.u32 %p2, %r1, 2; @%p2 bra END;
  bar.warp.sync 6;
  setp.eq.u32 %p3, %r1, 1; @%p3 bra END;
  ld.shared.u32 %r7, [%r3+OF];
  st.global.u32 [%d2], %r7;
END:"""
RACES = {
    "one half waits for itself": (
        "  st.shared.u32 [%r4], %r1;\n  @%p1 bra END;\n  bar.warp.sync 0xffff0000;\n" + _READ,
        r"line 13: ld.shared.u32 .* a race: thread \d+ writes to it in line 9, .* thread \d+\)",
    ),
    "two halves wait for themselves": (
        "  st.shared.u32 [%r4], %r1;\n  @%p1 bar.warp.sync 0xffff;\n"
        "  @!%p1 bar.warp.sync 0xffff0000;\n" + _READ,
        "a race: thread",
    ),
    "of a chain, by one who came too late": (
        _CHAIN.replace("OF", "12"),
        "line 9: st.shared.* a race: thread 2 reads it in line 15",
    ),
    "a read before the half of the other waits": (
        """  ld.shared.u32 %r7, [%r3];
  @%p1 bar.warp.sync 0xffff;
  setp.eq.u32 %p2, %r1, 0; @%p2 st.shared.u32 [%r3], 1;""",
        "a race: thread",
    ),
}


@pytest.mark.parametrize("race", RACES)
def test_lanes_that_do_not_wait_for_one_another(race):
    body, words = RACES[race]
    if "read before" in race:
        body = "  @%p1 st.shared.u32 [%r3], 0; bar.sync 0;\n" + body
        body = body.replace("@%p1 st", "setp.eq.u32 %p4, %r1, 0; @%p4 st")
    with pytest.raises(LaunchError, match=words):
        launch(body)


def test_lanes_that_wait_for_one_another():
    """All of them, or a chain: lane 1 has met lane 0, and lane 2 meets lane 1."""
    body = "  st.shared.u32 [%r4], %r1;\n  bar.warp.sync 0xffffffff;\n"
    assert launch(body + _READ).tolist() == [k ^ 16 for k in range(32)]
    assert launch("  mov.u32 %r1, %r1;\n" + _CHAIN.replace("OF", "0"))[2] == 0
    body = _CHAIN.replace("OF", "0").replace("[%r4], %r1", "[%r4], 7")
    assert launch(body)[2] == 7


_GROUPS = """  st.shared.u32 [%r4], %r1;
  setp.eq.u32 %p2, %r1, 2; @%p2 bra TWO; setp.gt.u32 %p2, %r1, 2; @%p2 bra END;
  setp.eq.u32 %p2, %r1, 1; @%p2 bra ONE;
  bar.warp.sync 3; bra END;
ONE: bar.warp.sync 6;
  bar.warp.sync 3; bra END;
TWO: bar.warp.sync 6;
  ld.shared.u32 %r7, [%r3+4]; st.global.u32 [%d2], %r7;
END:"""


@pytest.mark.parametrize("order", [0, 1, 7])
def test_groups_of_lanes_wait_at_the_same_time(order):
    """Lane 0 waits for lane 1, which first meets lane 2 in another line, under another mask."""
    module, out = HEADER + KERNEL.replace("BODY", _GROUPS), np.zeros(32, np.uint32)
    Module(module, schedule=Schedule(order=order))["run"][1, 32](out)
    assert out[2] == 1
    module = module.replace("bar.warp.sync 3; bra END;\nONE", "bar.warp.sync 7; bra END;\nONE")
    with pytest.raises(LaunchError, match="lanes 0x.* of its mask do not come to this call"):
        Module(module, schedule=Schedule(order=order))["run"][1, 32](out)


@pytest.mark.parametrize(
    "call", ["shfl.sync.idx.b32 %r7, %r1, 2, 31, 0xffffffff", "bar.warp.sync 0xffffffff"]
)
def test_lanes_that_do_not_come_are_named(call):
    with pytest.raises(
        LaunchError,
        match="32 of 32 threads wait for ever, 16 of them at a barrier; lanes 0xffff0000",
    ):
        launch(f"  @!%p1 bar.sync 0;\n  @%p1 {call};")


# Lanes with %p1 go on, and the others end.
_LEFT = "  @!%p1 bra END;\n  CALL;\n  st.global.u32 [%d2], %r7;\nEND:"


@pytest.mark.parametrize("order", [0, 1, 7])
@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("shfl.sync.idx.b32 %r7, %r1, 2, 31, 0xffffffff", 2),
        ("redux.sync.add.u32 %r7, %r1, 0xffffffff", 120),
        ("redux.sync.max.u32 %r7, %r1, 0xffffffff", 15),
        ("vote.sync.ballot.b32 %r7, 1, 0xffffffff", 0xFFFF),
        ("match.any.sync.b32 %r7, 3, 0xffffffff", 0xFFFF),
        ("match.all.sync.b32 %r7|%p2, 3, 0xffffffff", 0xFFFF),
        ("bar.warp.sync 0xffffffff; mov.u32 %r7, 5", 5),
    ],
)
def test_lanes_that_have_ended_are_not_waited_for(call, found, order):
    text = HEADER + KERNEL.replace("BODY", _LEFT.replace("CALL", call))
    out = np.zeros(32, np.uint32)
    Module(text, schedule=Schedule(order=order))["run"][1, 32](out)
    assert out.tolist() == [found] * 16 + [0] * 16


def test_a_shuffle_from_a_lane_that_has_ended_is_an_error():
    body = _LEFT.replace("CALL", "shfl.sync.idx.b32 %r7, %r1, 20, 31, 0xffffffff")
    with pytest.raises(LaunchError, match="a shuffle reads a lane that has ended"):
        launch(body)


def test_a_warp_with_fewer_lanes_than_its_mask():
    """Of 48 threads, the second warp has 16."""
    text = KERNEL.replace(
        "BODY", "  redux.sync.add.u32 %r7, 1, 0xffffffff;\n  st.global.u32 [%d2], %r7;"
    )
    out = np.zeros(48, np.uint32)
    Module(HEADER + text)["run"][1, 48](out)
    assert out.tolist() == [32] * 32 + [16] * 16


def test_a_text_as_nvrtc_returns_it():
    """With a zero behind it."""
    out = np.zeros(32, np.uint32)
    Module(HEADER + KERNEL.replace("BODY", "  st.global.u32 [%d2], 7;") + "\0")["run"][1, 32](out)
    assert (out == 7).all()


def test_barriers_with_a_count():
    """That of the block; PTX has barriers of some warps, too."""
    body = "  st.shared.u32 [%r4], %r1;\n  bar.sync 1, COUNT;\n" + _READ
    assert launch(body.replace("COUNT", "32")).tolist() == [k ^ 16 for k in range(32)]
    with pytest.raises(LaunchError, match="line 10: bar.sync 1, 64; a barrier of some threads of"):
        launch(body.replace("COUNT", "64"))


@pytest.mark.parametrize(
    ("store", "load"),
    [
        ("st.volatile.shared.u32", "ld.volatile.shared.u32"),
        ("st.volatile.shared.u32", "ld.acquire.cta.shared.u32"),
        ("st.release.cta.shared.u32", "ld.acquire.cta.shared.u32"),
        ("st.release.cta.shared.u32", "ld.relaxed.cta.shared.u32"),
    ],
)
def test_threads_that_hand_over_a_flag(store, load):
    """Thread 31 waits for a write of thread 0, and answers: both come to their ends."""
    out = launch(f"""
  setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r1, 31;
  @%p1 st.volatile.shared.u32 [%r3], 0;
  bar.sync 0;
  @%p1 bra FIRST;
  @%p2 bra LAST;
  bra END;
FIRST: {store} [%r3], 1;
BACK: {load} %r7, [%r3];
  setp.ne.u32 %p3, %r7, 2;
  @%p3 bra BACK;
  st.global.u32 [%d2], %r7;
  bra END;
LAST: {load} %r7, [%r3];
  setp.ne.u32 %p3, %r7, 1;
  @%p3 bra LAST;
  {store} [%r3], 2;
END:""")
    assert out[0] == 2


# One thread writes without `atom`, and there is no barrier before or after.
COUNTERS = {
    "set, then counted": "  @%p3 st.shared.u32 [%r3], 0;\n  atom.shared.add.u32 %r7, [%r3], 1;",
    "counted by others only": (
        "  @%p3 st.shared.u32 [%r3], 0;\n  @!%p3 atom.shared.add.u32 %r7, [%r3], 1;"
    ),
    "counted, then set": "  atom.shared.add.u32 %r7, [%r3], 1;\n  @%p3 st.shared.u32 [%r3], 0;",
    "counted, then read": (
        "  atom.shared.add.u32 %r7, [%r3], 1;\n  @%p3 ld.shared.u32 %r7, [%r3];"
    ),
}


@pytest.mark.parametrize("order", range(4))
@pytest.mark.parametrize("threads", [32, 64])
@pytest.mark.parametrize("counter", COUNTERS)
def test_a_barrier_that_a_counter_lacks(counter, threads, order):
    """In any order: an atomic access hides no plain one, of its thread or of others."""
    first = "  setp.eq.u32 %p3, %r1, 0;\n"
    if "set," not in counter and "others" not in counter:
        first += "  @%p3 st.shared.u32 [%r3], 0;\n  bar.sync 0;\n"
    out, schedule = np.zeros(64, np.uint32), Schedule(order=order)
    text = HEADER + KERNEL.replace("BODY", first + COUNTERS[counter])
    with pytest.raises(LaunchError, match="a race: (thread|warp)"):
        Module(text, schedule=schedule)["run"][1, threads](out)
    with_barrier = first + COUNTERS[counter].replace("\n", "\n  bar.sync 0;\n")
    text = HEADER + KERNEL.replace("BODY", with_barrier)
    Module(text, schedule=schedule)["run"][1, threads](out)


def test_a_plain_read_of_a_flag_of_ones_own():
    """Thread 0 reads its own flag plainly before it writes; thread 31 looks at it: no race."""
    launch("""
  setp.eq.u32 %p1, %r1, 0;
  @%p1 st.shared.u32 [%r3], 0;
  bar.sync 0;
  @%p1 ld.shared.u32 %r7, [%r3];
  ld.relaxed.cta.shared.u32 %r7, [%r3];
  @%p1 st.relaxed.cta.shared.u32 [%r3], 1;""")


def test_an_interrupt_ends_a_launch():
    out = np.zeros(32, np.uint32)

    def interrupt():
        while not out[31]:
            pass
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    other = threading.Thread(target=interrupt)
    other.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            launch("  st.global.u32 [%d2], 1;\n  bar.sync 0;\nAGAIN: bra AGAIN;", out)
    finally:
        other.join()
        signal.signal(signal.SIGINT, before)
    assert out.all()
    assert launch("  st.global.u32 [%d2], 1;").all()


_BRANCHES = "  @%p1 bra LOW; {}; bra END;\nLOW: {};\nEND: st.global.u32 [%d2], %r7;"
SAME_CALLS = {
    "shfl.sync.bfly.b32 %r7, %r1, 16, 31, -1": [k ^ 16 for k in range(32)],
    "vote.sync.ballot.b32 %r7, %p1, -1": [0xFFFF] * 32,
    "match.any.sync.b32 %r7, %r1, -1": [1 << k for k in range(32)],
    "redux.sync.add.u32 %r7, %r1, -1": [496] * 32,
}


@pytest.mark.parametrize("call", SAME_CALLS)
def test_lanes_meet_in_equal_calls_of_two_branches(call):
    """PTX asks for the same words and the same mask, not for the same line."""
    assert launch(_BRANCHES.format(call, call)).tolist() == SAME_CALLS[call]


_MMA = (
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f,%f,%f,%f},{%r1,%r1},{%r1},{%f,%f,%f,%f}"
)
OTHER_CALLS = {
    ("shfl.sync.up.b32 %r7, %r1, 1, 0, -1", "shfl.sync.down.b32 %r7, %r1, 1, 31, -1"): "different",
    ("redux.sync.add.u32 %r7, %r1, -1", "redux.sync.max.u32 %r7, %r1, -1"): "different calls",
    ("bar.sync 0", "bar.sync 0"): r"thread \d+ of the same warp waits at another barrier",
    (_MMA, _MMA): "lanes of a warp meet in different calls",
}


@pytest.mark.tier("full", but=["[redux.sync.a]"])
@pytest.mark.parametrize("calls", OTHER_CALLS, ids=lambda calls: calls[0][:12])
def test_lanes_that_come_to_different_calls_of_one_line(calls):
    """As inline PTX has them; an aligned instruction is another one at another place."""
    body = " ".join(["  .reg .f32 %f; mov.f32 %f, 0f00000000;", *_BRANCHES.format(*calls).split()])
    with pytest.raises(LaunchError, match=OTHER_CALLS[calls]):
        launch(body)


def test_warps_wait_at_barriers_of_different_lines():
    """In an order in which the warps come in turns: lanes are compared with those of their warp."""
    body = (
        "  setp.lt.u32 %p2, %r1, 32; @%p2 bra LOW;\n  bar.sync 0; bra END;\nLOW: bar.sync 0;\nEND:"
    )
    module = Module(HEADER + KERNEL.replace("BODY", body), schedule=Schedule(order=2))
    module["run"][1, 64](np.zeros(64, np.uint32))


def test_a_matrix_instruction_of_half_a_warp():
    body = f"  .reg .f32 %f; mov.f32 %f, 0f00000000;\n  {_MMA};"
    with pytest.raises(LaunchError, match="line 10: mma.* its warp has fewer than 32 threads"):
        Module(HEADER + KERNEL.replace("BODY", body))["run"][1, 16](np.zeros(32, np.uint32))


def test_the_source_of_a_copy_is_written_before_the_wait():
    body = "  cp.async.ca.shared.global [%r4], [%d2], 4;\n"
    body += "  st.global.u32 [%d2], {};\n  cp.async.wait_all;"
    launch(body.format(0))
    with pytest.raises(LaunchError, match=r"line 9: cp.async.* a race: its source is written"):
        launch(body.format(9))
