"""Sanitizers find no race and no overrun in any kernel, and find those that are put there."""

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from kernels import needed
from kernels.sanitized import FLAGS, every_kernel_in_pieces
from kernels.sources import changed, exported, with_wrong_ones
from kernels.suites import Names
from kernels.tensors import DTYPES, every_kernel

from mor_ref.cuda import host, source

TESTS = Path(__file__).parent
# The last two keep what AddressSanitizer has mapped: to map it anew takes a third of the time.
ADDRESS_OPTIONS = (
    "detect_leaks=0",
    "detect_stack_use_after_return=0",
    "clear_shadow_mmap_threshold=1073741824",
    "allocator_release_to_os_interval_ms=-1",
)


@cache
def runtime(sanitizer):
    """Return the path of the runtime of a sanitizer, or skip the test."""
    command = needed.compiler()
    name = {"thread": "libtsan.so", "address": "libasan.so"}[sanitizer]
    done = subprocess.run(
        [*command, f"-print-file-name={name}"], capture_output=True, text=True, check=False
    )
    if not Path(done.stdout.strip()).is_absolute():
        pytest.skip(f"{' '.join(command)} has no {name}")
    return done.stdout.strip()


def sanitized(sanitizer, job, *arguments, folder=source.KERNELS, programs=None):
    """Run a job of kernels.sanitized; its programs are compiled before, without the runtime."""
    library = runtime(sanitizer)
    for program in programs or source.program_names():
        host.library_file(program, folder, FLAGS[sanitizer])
    command = [sys.executable, "-m", "kernels.sanitized", sanitizer, folder, job, *arguments]
    environment = os.environ | {
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": ":".join(ADDRESS_OPTIONS),
        "PYTHONPATH": os.pathsep.join([str(TESTS), *filter(None, sys.path)]),
    }
    done = run(command, environment)
    if "unexpected memory mapping" in done.stderr and shutil.which("setarch"):
        done = run(["setarch", "-R", *command], environment)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("the runtime of the sanitizer does not start: unexpected memory mapping")
    return done


def run(command, environment):
    return subprocess.run(
        command, env=environment, cwd=TESTS, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    """Return a function that runs a job of kernels.sanitized on wrong.cu."""
    folder = with_wrong_ones(tmp_path_factory.mktemp("wrong") / "kernels")

    def run_wrong(sanitizer, job, *arguments):
        return sanitized(sanitizer, job, *arguments, folder=folder, programs=["wrong"])

    return run_wrong


def assert_clean(done):
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def tier_of(name):
    """Return the tier of a source format: f16 is read, reduced and written as bf16 is."""
    return pytest.mark.tier("exhaustive" if name == "f16" else "full")


@pytest.mark.parametrize(
    "job",
    [
        *(pytest.param(f"kernels_of {name}", marks=tier_of(name)) for name in DTYPES),
        pytest.param("other_kernels", marks=pytest.mark.tier("full")),
        pytest.param("every_kernel_in_pieces", marks=pytest.mark.tier("full")),
    ],
)
def test_no_kernel_has_a_race(job):
    """Within a block, which may go on to other pieces, and between blocks of other workers."""
    assert_clean(sanitized("thread", *job.split()))


@pytest.mark.tier("full")
@pytest.mark.parametrize("job", ["every_kernel", "every_suite", "empty_tensors"])
def test_no_kernel_overruns(job):
    """Nor does what C++ does not define."""
    assert_clean(sanitized("address", job))


@pytest.mark.tier("full")
def test_every_kernel_is_run():
    """By the accesses that the sanitizers see."""
    device = Names()
    for _ in every_kernel(device):
        pass
    every = {(name, kernel) for name in source.program_names() for kernel in exported(name)}
    assert every == device.seen
    in_pieces = Names()
    every_kernel_in_pieces(in_pieces)
    teams = {one for one in every if one[1].endswith("_256")}
    assert {one for one in teams if "_f32_" in one[1] or "_codes_" in one[1]} <= in_pieces.seen


# ---------------------------------------------------------------------- planted faults

FIRST, SECOND = (
    "    __syncthreads();\n    if (threadIdx.x < 32)",
    "    __syncthreads();  // the next reduction writes to the same place\n",
)
TABLE = "    __syncthreads();  // the table of another block is not needed any more\n"
BARRIERS = {
    "before it is read": ("quantization", "blocks.cuh", FIRST, "    if (threadIdx.x < 32)"),
    "before it is reused": ("quantization", "blocks.cuh", SECOND, ""),
    "before a table is made anew": ("dequantization", "quantization.cuh", TABLE, ""),
}


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """Let changed kernels go to a cache that is removed."""
    monkeypatch.setenv("MOR_REF_CACHE", str(tmp_path / "compiled"))


@pytest.mark.tier("full")
@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("barrier", BARRIERS)
def test_a_barrier_that_is_missing_is_a_race(tmp_path, barrier):
    job, *change = BARRIERS[barrier]
    folder = changed(tmp_path / "kernels", *change)
    programs = ["scales", "quantization"]
    done = sanitized("thread", job, folder=folder, programs=programs)
    assert done.returncode
    assert "data race" in done.stderr
    assert change[0] in done.stderr


OVERRUNS = {
    "the sums of an empty tensor": (
        "empty_tensors",
        "measuring.cuh",
        "if (!units_per_block && pieces_of(cut)) add_unit",
        "if (!units_per_block) add_unit",
    ),
    "an element": (
        "conversion",
        "elementwise.cuh",
        "i < count; i += threads_of_grid",
        "i <= count; i += threads_of_grid",
    ),
    "a load of 16 bytes": ("conversion", "elementwise.cuh", "? count / each", "? count / each + 1"),
    "a column": ("extremes", "blocks.cuh", "j < piece.columns; j +=", "j <= piece.columns; j +="),
    "shared memory": ("extremes", "blocks.cuh", "warp < THREADS / 32", "warp <= THREADS / 32"),
}


PROGRAMS = {
    "conversion": ["encoding"],
    "extremes": ["scales"],
    "empty_tensors": ["scales", "mx"],
}


@pytest.mark.tier("full")
@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("overrun", OVERRUNS)
def test_an_index_that_is_one_off_is_an_overrun(tmp_path, overrun):
    job, *change = OVERRUNS[overrun]
    folder = changed(tmp_path / "kernels", *change)
    done = sanitized("address", job, folder=folder, programs=PROGRAMS[job])
    assert done.returncode
    found = "use-after-poison" if overrun == "shared memory" else "heap-buffer-overflow"
    assert f"AddressSanitizer: {found}" in done.stderr
    assert change[0] in done.stderr


@pytest.mark.tier("full")
@pytest.mark.parametrize(
    ("kernel", "blocks"),
    [
        ("race_without_barrier", 1),
        ("race_between_barriers", 1),
        ("race_between_barriers_of_warps", 1),
        ("race_across_a_shuffle", 1),
        ("race_between_blocks", 2),
    ],
)
def test_races(wrong, kernel, blocks):
    done = wrong("thread", "wrong", kernel, str(blocks), "64")
    assert done.returncode
    assert re.search(rf"data race .*wrong\.cu:\d+ in {kernel}", done.stderr)


@pytest.mark.tier("full")
def test_a_block_alone_is_no_race_between_blocks(wrong):
    assert_clean(wrong("thread", "wrong", "race_between_blocks", "1", "64"))


@pytest.mark.tier("full", but=["beyond_an_array"])
@pytest.mark.parametrize(
    ("kernel", "threads", "numbers", "found"),
    [
        ("beyond_an_array", "128", ["64"], "heap-buffer-overflow"),
        *(("beyond_shared", "32", [o, n], "use-after-poison") for o in ("1", "-1") for n in "01"),
        ("shared_of_another_kernel", "64", ["96"], "use-after-poison"),
        ("shifted_too_far", "64", [], "is too large for 32-bit type"),
    ],
)
def test_overruns(wrong, kernel, threads, numbers, found):
    done = wrong("address", "wrong", kernel, "1", threads, *numbers)
    assert done.returncode
    assert found in done.stderr
    assert "wrong.cu" in done.stderr


@pytest.mark.tier("full", but=["[address]"])
@pytest.mark.parametrize("sanitizer", FLAGS)
def test_what_is_right_is_clean(wrong, sanitizer):
    """Barriers, also where threads have ended, and the order of a warp's barrier."""
    assert_clean(wrong(sanitizer, "wrong", "ordered_by_barriers", "2", "64"))


@pytest.mark.tier("full", but=["[address]"])
@pytest.mark.parametrize("sanitizer", FLAGS)
def test_threads_that_never_end_leave_no_marks(wrong, sanitizer):
    """A launch after an error is watched as before: no fault is found that is not there."""
    assert_clean(wrong(sanitizer, "after_errors"))
