"""The pieces of `make bench`: the reading of machine code, and the limits."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from extras import of_benchmarks

assembly = of_benchmarks("assembly")
rows = of_benchmarks("rows")
scale = of_benchmarks("scale")

CODE = """
outer:
	xorl	%eax, %eax
inner:
	vmovups	(%rdi,%rax), %zmm0
	vdivps	%zmm1, %zmm0, %zmm0
	vaddss	%xmm2, %xmm3, %xmm3
	addq	$64, %rax
	jne	inner
	jmp	outer
tail:
	vmovups	(%rdi), %ymm0
	jne	tail
"""


def test_innermost_loops_and_their_widths():
    work, tail = assembly.innermost_loops(CODE)
    assert work == ({512: 2, 32: 1, 0: 2}, 1)
    assert tail == ({256: 1, 0: 1}, 0)
    assert assembly.loop_of_the_work(CODE) == work


@pytest.mark.parametrize(
    ("instruction", "width"),
    [
        ("vaddss %xmm1, %xmm2, %xmm3", 32),
        ("vcvtsi2sd %rax, %xmm1, %xmm1", 32),
        ("vbroadcastss (%rbp), %zmm3", 512),
        ("vpabsd %ymm0, %ymm1", 256),
        ("vpminsd %zmm0, %zmm1, %zmm2", 512),
        ("addq $4, %rax", 0),
    ],
)
def test_the_width_of_an_instruction(instruction, width):
    assert assembly.width_of(instruction) == width


def test_a_loop_without_vectors_is_read_as_well():
    found = assembly.loop_of_the_work(".L1:\n movzbl (%rax), %ecx\n addq $1, %rax\n jne .L1\n")
    assert found.widths == {0: 3}


@pytest.mark.parametrize(("seconds", "is_met"), [(3.0, True), (2.9, False)])
def test_the_worst_of_a_limit_counts(seconds, is_met):
    times = {"mor_ref": 1.0, "slow": 9.0, "fast": seconds}
    found = {name: rows.Measured(name, taken, 1) for name, taken in times.items()}
    verdict = rows.Ratio(("slow", "fast", "absent"), at_least=3, bound="memory").judge(found)
    assert verdict.is_met == is_met
    assert "fast" in verdict.text
    assert verdict.bound == "memory"


def test_nothing_is_said_of_what_was_not_measured():
    assert rows.Ratio(("absent",), at_most=1).judge({}) is None


def test_every_row_can_be_measured_where_all_peers_are():
    """The rows are data that need the engine alone: peers are imported by who measures them."""
    from benchmarks.all_rows import ROWS

    assert len({row.operation for row in ROWS}) == len(ROWS)


DIVISIONS = """
import numpy as np
import mor_ref
from benchmarks.kernels import steps_of
from benchmarks.machine_code import divisions_of

x = np.random.default_rng(0).standard_normal((64, 256), dtype=np.float32)
for call in (
    lambda: mor_ref.quantize(x, "e4m3", threads=1),
    lambda: mor_ref.quantize_mx(x, "e4m3", threads=1),
    lambda: mor_ref.mor(x, "three_way", block=(64, 128), threads=1),
):
    print(divisions_of("quantize_part", steps_of(call, 1)))
"""


@pytest.mark.tier("full")
def test_divisions_are_those_of_the_loop_that_was_called(tmp_path):
    """A kernel has loops with two of them and loops with one; compiled anew, to be read."""
    done = subprocess.run(
        [sys.executable, "-c", DIVISIONS],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["2", "1", "4"], done.stderr


@pytest.mark.parametrize(("overhead", "seconds"), [(1e-6, 2 * 1.5), (1e-2, 1001 * 1e-2)])
def test_many_cores_wait_for_their_jobs_or_for_those_who_hand_them_out(overhead, seconds):
    """A thousand cores: of 1001 jobs one has two."""
    timed = scale.Timed(scale.Sweep("s", 1001, "1001", "r", 1, 1, 1.0, "g", "q"), 1.5e9, overhead)
    assert timed.jobs == 1001
    assert timed.seconds_on_many == pytest.approx(seconds)
    assert scale.duration(seconds) in timed.row()
