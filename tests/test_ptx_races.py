"""Races in shared memory, of random programs: those that vector clocks find."""

import random

import numpy as np
import pytest
from kernels import needed
from ptx_programs import HEADER

from mor_ref.ptx import LaunchError, Module, Schedule

THREADS, BYTES, LANES = 64, 4, (0, 0, 1, 1, 2, 2, 3, 32, 33)
STORE, LOAD, WARP, BLOCK, STRONG_STORE, STRONG_LOAD = range(1, 7)
# Each thread runs its operations: the kind, and a byte of shared memory or a mask of lanes.
TEXT = f"""{HEADER}
.visible .entry run(.param .u64 ops, .param .u32 steps) {{
  .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<3>; .reg .b16 %h<3>;
  .shared .align 4 .b8 all[{BYTES}];
  ld.param.u64 %d1, [ops]; ld.param.u32 %r1, [steps]; mov.u32 %r2, %tid.x; mov.u32 %r3, all;
  setp.eq.u32 %p1, %r2, 0; @%p1 st.shared.u32 [%r3], 0; bar.sync 0;
  mov.u32 %r4, 0; cvt.u16.u32 %h1, %r2;
LOOP: mad.lo.u32 %r5, %r4, {THREADS}, %r2; mul.wide.u32 %d2, %r5, 8; add.s64 %d2, %d1, %d2;
  ld.global.u32 %r6, [%d2]; ld.global.u32 %r7, [%d2+4]; add.u32 %r8, %r3, %r7;
KINDS: .branchtargets NEXT, STORE, LOAD, WARP, BLOCK, STRONG_STORE, STRONG_LOAD;
  brx.idx %r6, KINDS;
STORE: st.shared.u8 [%r8], %h1; bra NEXT;
LOAD: ld.shared.u8 %h2, [%r8]; bra NEXT;
STRONG_STORE: st.volatile.shared.u8 [%r8], %h1; bra NEXT;
STRONG_LOAD: ld.volatile.shared.u8 %h2, [%r8]; bra NEXT;
WARP: bar.warp.sync %r7; bra NEXT;
BLOCK: bar.sync 0;
NEXT: add.u32 %r4, %r4, 1; setp.lt.u32 %p3, %r4, %r1; @%p3 bra LOOP;
  ret; }}
"""


class Clocks:
    """Times at which each thread last knew of each other; accesses without such knowledge race."""

    def __init__(self):
        self.known = np.zeros((THREADS, THREADS), np.int64)
        self.accesses = []
        self.is_race = False

    def meet(self, threads):
        self.known[threads] = self.known[threads].max(axis=0)

    def access(self, thread, kind, byte):
        self.known[thread, thread] += 1
        writes, strong = kind in (STORE, STRONG_STORE), kind in (STRONG_STORE, STRONG_LOAD)
        for other, time, other_byte, other_writes, other_strong in self.accesses:
            conflicts = other_byte == byte and (writes or other_writes)
            if conflicts and not (strong and other_strong) and self.known[thread, other] < time:
                self.is_race = True
        self.accesses.append((thread, self.known[thread, thread], byte, writes, strong))


def scenario(draw):
    """Return the operations of all threads in some steps, and whether they race."""
    ops, clocks = np.zeros((draw.randrange(3, 14), THREADS, 2), np.uint32), Clocks()
    kinds = (STORE, LOAD, LOAD, *((STRONG_STORE, STRONG_LOAD) if draw.random() < 0.4 else ()))
    for step in ops:
        how = draw.random()
        if how < 0.06:
            step[:, 0] = BLOCK
            clocks.meet(np.arange(THREADS))
        elif how < 0.65:
            of, share = draw.choice(((3, 0.6), (3, 0.6), (4, 0.6), (32, 0.4), (32, 1)))
            lanes = np.array([k for k in range(of) if draw.random() < share] or [0])
            threads = draw.choice((0, 0, 0, 32)) + lanes
            step[threads] = WARP, int(np.sum(1 << lanes))
            clocks.meet(threads)
        else:
            for thread in {*draw.sample(LANES, draw.choice((1, 1, 2)))}:
                kind, byte = draw.choice(kinds), draw.randrange(draw.choice((1, BYTES)))
                step[thread] = kind, byte
                clocks.access(thread, kind, byte)
    return ops, clocks.is_race


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.tier("full")) for n in (1, 2))]
)
def test_races_are_those_of_vector_clocks(seed):
    needed.compiler()
    draw, counts = random.Random(seed), [0, 0]  # noqa: S311
    kernels = [Module(TEXT, schedule=Schedule(order=order))["run"] for order in (0, 1, 7)]
    for _ in range(100 if seed == 0 else 1000):
        ops, is_race = scenario(draw)
        counts[is_race] += 1
        for kernel in kernels:
            if is_race:
                with pytest.raises(LaunchError, match="a race: "):
                    kernel[1, THREADS](ops, np.uint32(len(ops)))
            else:
                kernel[1, THREADS](ops, np.uint32(len(ops)))
    assert min(counts) > 20
