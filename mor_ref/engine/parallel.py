"""Splitting a loop over the elements of an array among threads.

Kernels let go of the GIL, so plain threads do. An element's result depends on that element alone:
the bits are the same for any number of threads.
"""

import os
import queue
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from mor_ref.arguments import whole_number

_WORTH_A_THREAD = 1 << 18  # elements
_PART = 1 << 20  # elements: enough parts that no thread waits long for the slowest


def available_threads() -> int:
    """How many threads can run at once."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_count(threads: int | None, size: int) -> int:
    """How many threads to use: what the caller says, or as many as the size is worth."""
    most = available_threads()
    if threads is None:
        return max(1, min(most, size // _WORTH_A_THREAD))
    return whole_number("threads", threads, 1, most)


def for_each_part(work: Callable[[slice], None], size: int, threads: int) -> None:
    """Call `work` with slices that cover range(size), in so many threads, this one among them."""
    if threads == 1:
        work(slice(0, size))
        return
    starts = queue.SimpleQueue[int]()
    for start in range(0, size, _PART):
        starts.put(start)

    def work_off() -> None:
        while True:
            try:
                start = starts.get_nowait()
            except queue.Empty:
                return
            work(slice(start, min(start + _PART, size)))

    with ThreadPoolExecutor(max_workers=threads - 1) as pool:
        others = [pool.submit(work_off) for _ in range(threads - 1)]
        work_off()
        for done in others:
            done.result()
