"""What the machine code of the engine's loops is, and what bounds each pipeline.

The kernels are compiled anew, as Numba keeps no text of those that it finds on disk.
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numba
import numpy as np

from benchmarks.assembly import loop_of_the_work
from benchmarks.kernels import REST, Spent, kernels, steps_of
from benchmarks.pipelines import pipelines
from mor_ref.engine.intrinsics import use_full_vectors

LARGE, IN_CACHE = 22, 18
_ROUNDS = 3
_WAITING = 0.6  # below this share of the time, the same work in the caches says: memory
_DIVIDING = 0.5


@numba.njit(error_model="numpy")
def divide(x, y, out):
    """Nothing but divisions."""
    use_full_vectors()
    for i in range(x.size):
        out[i] = x[i] / y[i]


def nanoseconds_of_a_division() -> float:
    """The processor time of a binary32 division in full vectors, in the first level cache."""
    x, y, out = (np.full(1 << 11, value, np.float32) for value in (1.5, 1.25, 0))
    best = float("inf")
    for _ in range(200):
        start = time.thread_time_ns()
        for _ in range(20):
            divide(x, y, out)
        best = min(best, (time.thread_time_ns() - start) / 20 / x.size)
    return best


def loops() -> list[dict[str, Any]]:
    """The loop of the work of each kernel, for each type of numbers."""
    found = []
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
    """What each kernel takes in each pipeline."""
    return {pipeline.name: steps_of(pipeline.call, _ROUNDS) for pipeline in pipelines(log2_size)}


def nanoseconds(spent: Spent, log2_size: int) -> dict[str, float]:
    """The time of each step for an element."""
    return {step: seconds / (1 << log2_size) * 1e9 for step, seconds in spent.seconds.items()}


def bound_of(large: float, in_cache: float, dividing: float) -> str:
    """What bounds a step: its time in memory and in the caches, and that of its divisions alone."""
    if in_cache < _WAITING * large:
        return "memory"
    return "division" if dividing > _DIVIDING * in_cache else "instructions"


def divisions_of(kernel: str, spent: Spent) -> int:
    """How many divisions of vectors a vector of numbers takes in all calls of a kernel.

    A tensor that fits a cache is one part: a kernel is called once for each pass over it.
    """
    code = kernels()[kernel].inspect_asm
    loops_called = [(loop_of_the_work(code(s)), n) for s, n in spent.calls[kernel].items()]
    return sum(n * loop.divisions for loop, n in loops_called if loop and loop.widest > 128)


def examine() -> dict[str, Any]:
    """All that there is to say."""
    of_large, of_small = steps(LARGE), steps(IN_CACHE)
    code, division = loops(), nanoseconds_of_a_division()
    read = {loop["kernel"] for loop in code}
    pipelines_found = []
    for name, found in of_large.items():
        spent, in_cache = nanoseconds(found, LARGE), nanoseconds(of_small[name], IN_CACHE)
        slowest = max((step for step in spent if step != REST), key=lambda step: spent[step])
        divisions = divisions_of(slowest, of_small[name])
        large, small = spent[slowest], in_cache[slowest]
        pipelines_found.append(
            {
                "pipeline": name,
                "steps": spent,
                "slowest": slowest,
                "in_cache": small,
                "divisions": divisions,
                "bound": bound_of(large, small, divisions * division),
            }
        )
    return {
        "log2_size": LARGE,
        "log2_size_in_cache": IN_CACHE,
        "nanoseconds_of_a_division": division,
        "load": os.getloadavg()[0],
        "loops": code,
        "unread": sorted(kernels().keys() - read),
        "pipelines": pipelines_found,
    }


def main() -> None:
    """Write what there is to say to a file."""
    with tempfile.TemporaryDirectory() as directory:
        os.environ["NUMBA_CACHE_DIR"] = directory
        Path(sys.argv[1]).write_text(json.dumps(examine(), indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
