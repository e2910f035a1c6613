"""The machine code of the engine's loops, and the bound of each pipeline.

The kernels are compiled anew, as Numba keeps no text of those that it finds on disk.
"""

import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import cpuinfo
import numba
import numpy as np

from benchmarks.assembly import loop_of_the_work
from benchmarks.kernels import REST, Spent, kernels, steps_of
from benchmarks.pipelines import pipelines
from mor_ref.engine.intrinsics import use_full_vectors

LARGE, IN_CACHE = 22, 18
_ROUNDS, _FINDINGS = 3, 3
WAITING = 0.6  # below this share of the time, the same work in the caches says: memory
DIVIDING = 0.5  # above this share of the time in the caches, divisions alone say: division
NOT_CLEAR = "not clear"
READ = ("x86_64", "AMD64")  # the processors whose machine code is read

Time = tuple[dict[str, Spent], dict[str, Spent]]  # of large tensors, and in the caches


@numba.njit(error_model="numpy")
def divide(x, y, out):
    """Divide, and do nothing else."""
    use_full_vectors()
    for i in range(x.size):
        out[i] = x[i] / y[i]


def nanoseconds_of_a_division() -> float:
    """Measure a binary32 division in full vectors: processor time, in the first level cache."""
    x, y, out = (np.full(1 << 11, value, np.float32) for value in (1.5, 1.25, 0))
    best = float("inf")
    for _ in range(200):
        start = time.thread_time_ns()
        for _ in range(20):
            divide(x, y, out)
        best = min(best, (time.thread_time_ns() - start) / 20 / x.size)
    return best


def loops() -> list[dict[str, Any]]:
    """Return the main loop of each kernel for each type of numbers; none on other processors."""
    found: list[dict[str, Any]] = []
    if platform.machine() not in READ:
        return found
    for name, kernel in sorted(kernels().items()):
        for signature, assembly in kernel.inspect_asm().items():
            loop = loop_of_the_work(assembly)
            if loop is not None:
                widths = {str(width): count for width, count in sorted(loop.widths.items())}
                found.append(
                    {
                        "kernel": name,
                        "numbers": str(getattr(signature[0], "dtype", signature[0])),
                        "instructions": loop.instructions,
                        "widths": widths,
                        "widest": loop.widest,
                        "share_of_widest": loop.share_of_widest,
                        "divisions": loop.divisions,
                    }
                )
    return found


def steps(log2_size: int) -> dict[str, Spent]:
    """Measure the time of each kernel in each pipeline."""
    return {pipeline.name: steps_of(pipeline.call, _ROUNDS) for pipeline in pipelines(log2_size)}


def nanoseconds(spent: Spent, log2_size: int) -> dict[str, float]:
    """Return the time of each step for an element."""
    return {step: seconds / (1 << log2_size) * 1e9 for step, seconds in spent.seconds.items()}


def bound_of(large: float, in_cache: float, dividing: float | None) -> str:
    """Return the bound of a step, from its times in memory and in caches, and of its divisions.

    A step that neither waits nor divides is bound by its instructions.
    """
    if in_cache < WAITING * large:
        return "memory"
    if dividing is None:
        return NOT_CLEAR
    return "division" if dividing > DIVIDING * in_cache else "instructions"


def agreed(bounds: list[tuple[str, str]]) -> str:
    """Return the bound of a step if all times agree."""
    return bounds[0][1] if len(set(bounds)) == 1 else NOT_CLEAR


def divisions_of(kernel: str, spent: Spent) -> int:
    """Return the divisions of vectors for a vector of numbers in all calls of a kernel.

    A tensor that fits a cache is one part: a kernel is called once for each pass over it.
    """
    code = kernels()[kernel].inspect_asm
    loops_called = [(loop_of_the_work(code(s)), n) for s, n in spent.calls[kernel].items()]
    return sum(n * loop.divisions for loop, n in loops_called if loop and loop.widest > 128)


def slowest_of(spent: Spent) -> str:
    """Return the kernel that takes longest."""
    return max((step for step in spent.seconds if step != REST), key=spent.seconds.__getitem__)


def found_of(large: Spent, small: Spent, division: float) -> dict[str, Any]:
    """Return the findings on a pipeline at one time."""
    spent, in_cache = nanoseconds(large, LARGE), nanoseconds(small, IN_CACHE)
    slowest = slowest_of(large)
    is_read = platform.machine() in READ
    divisions = divisions_of(slowest, small) if is_read else None
    dividing = None if divisions is None else divisions * division
    return {
        "steps": spent,
        "slowest": slowest,
        "in_cache": in_cache[slowest],
        "divisions": divisions,
        "bound": bound_of(spent[slowest], in_cache[slowest], dividing),
    }


def pipelines_found(times: list[Time], division: float) -> list[dict[str, Any]]:
    """Return the findings on each pipeline: the figures of the first time, the bound of all."""
    found = []
    for name in times[0][0]:
        each = [found_of(large[name], small[name], division) for large, small in times]
        bound = agreed([(one["slowest"], one["bound"]) for one in each])
        found.append(each[0] | {"pipeline": name, "bound": bound})
    return found


def examine() -> dict[str, Any]:
    """Return all findings."""
    times = [(steps(LARGE), steps(IN_CACHE)) for _ in range(_FINDINGS)]
    code, division = loops(), nanoseconds_of_a_division()
    without = kernels().keys() - {loop["kernel"] for loop in code}
    called = {name for spent in times[0][0].values() for name in spent.calls}
    return {
        "cpu": cpuinfo.get_cpu_info()["brand_raw"],
        "is_read": platform.machine() in READ,
        "log2_size": LARGE,
        "log2_size_in_cache": IN_CACHE,
        "nanoseconds_of_a_division": division,
        "findings": _FINDINGS,
        "load": os.getloadavg()[0],
        "loops": code,
        "without_loop": sorted(without & called),
        "not_called": sorted(without - called),
        "pipelines": pipelines_found(times, division),
    }


def main() -> None:
    """Write what there is to say to a file."""
    with tempfile.TemporaryDirectory() as directory:
        os.environ["NUMBA_CACHE_DIR"] = directory
        Path(sys.argv[1]).write_text(json.dumps(examine(), indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
