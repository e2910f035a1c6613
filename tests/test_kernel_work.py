"""The work of the kernels: no spills, and no more instructions than their budgets."""

from pathlib import Path

import pytest
from extras import of_benchmarks
from kernels import needed

from mor_ref.cuda import nvrtc, source

work = of_benchmarks("kernel_work")
PAGE = Path(__file__).parent.parent / "docs" / "gpu-work.md"


def measured_in(programs):
    needed.compiler()
    needed.library()
    return work.measured(programs)


@pytest.fixture(scope="module")
def measured():
    """Return the work of the programs that have hot kernels."""
    return measured_in(work.HOT_PROGRAMS)


@pytest.fixture(scope="module")
def every_kernel():
    """Return the work of all programs."""
    return measured_in(source.program_names())


def test_the_page_has_a_row_for_each_hot_kernel():
    page = PAGE.read_text()
    assert all(f"| `{one.kernel}` |" in page for one in work.HOT)


@pytest.mark.tier("full")
def test_no_hot_kernel_spills(measured):
    """Local memory is memory of the device, and slow. The page names the others that have some."""
    taken, _ = measured
    hot = {one.kernel for one in work.HOT}
    assert {name for _, name in work.spilling(taken)}.isdisjoint(hot)
    for found in taken.values():
        assert all(found.resources[one.kernel].registers <= one.registers for one in work.HOT)


@pytest.mark.tier("full")
def test_hot_kernels_are_within_their_budgets(measured):
    _, executed = measured
    for found in executed.values():
        over = {one.kernel: found[one.kernel] for one in work.HOT}
        assert {name: n for name, n in over.items() if n > budget_of(name)} == {}


def budget_of(kernel):
    return next(one.budget for one in work.HOT if one.kernel == kernel)


@pytest.mark.tier("full")
def test_hot_loops_are_within_their_budgets(measured):
    """In instructions of the GPU, on the shortest path around the loop."""
    taken, _ = measured
    needed.disassembler()
    for found in taken.values():
        over = {one.kernel: found.fewest[one.kernel] for one in work.HOT}
        most = {one.kernel: one.least for one in work.HOT}
        assert {name: n for name, n in over.items() if n > most[name]} == {}


LOOP = """
.L_x_0:
        /*0000*/                   LDG.E.U16 R0, [R2] ;
        /*0010*/               @P0 BRA `(.L_x_1) ;
        /*0020*/                   IADD R1, R1, R0 ;
        /*0030*/                   LDG.E.U16 R0, [R2+2] ;
.L_x_1:
        /*0040*/                   FADD R1, R1, R0 ;
        /*0050*/               @P1 BRA `(.L_x_0) ;
        /*0060*/                   EXIT ;
.L_x_2:
        /*0070*/                   BRA `(.L_x_2) ;
"""


def test_a_pass_of_a_loop_loads_what_it_has_to():
    fewest = of_benchmarks("sass").fewest
    assert fewest(LOOP, 2) == 4
    assert fewest(LOOP, 4) == 6
    assert fewest(LOOP, 0) == 1  # the loop behind the end is the shortest


@pytest.mark.tier("exhaustive")
def test_few_kernels_spill(every_kernel):
    taken, _ = every_kernel
    assert len(work.spilling(taken)) <= 55
    assert all(len(found.resources) > 180 for found in taken.values())


@pytest.mark.tier("exhaustive")
def test_the_page_is_measured(every_kernel):
    """Another version of NVRTC compiles to other instructions."""
    needed.disassembler()
    page = PAGE.read_text()
    version = ".".join(map(str, nvrtc.version()))
    if f"NVRTC {version} " not in page:
        pytest.skip(f"the page is of another NVRTC than {version}")
    assert page == work.page(*every_kernel)
