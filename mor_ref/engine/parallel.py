"""Splitting a loop over the elements of an array among threads.

Kernels let go of the GIL, so plain threads do. An element's result depends on that element alone:
the bits are the same for any number of threads.
"""

import os
import queue
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from mor_ref.argument_checks import whole_number

Item = TypeVar("Item")

_WORTH_A_THREAD = 1 << 18  # elements
_MOST = 1 << 16  # threads that can be asked for
_SLICE = 1 << 20  # elements: enough slices that no thread waits long for the slowest

_is_alone = ContextVar("_is_alone", default=True)  # of a thread: workers may be threads, too


def available_threads() -> int:
    """Return the number of threads that can run at once."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread unless the caller says how many: other workers share the machine."""
    before = _is_alone.set(False)
    try:
        yield
    finally:
        _is_alone.reset(before)


def thread_count(threads: int | None, size: int) -> int:
    """Return the number of threads to use: the caller's, or as many as the size is worth.

    At most one thread for each processor is used: programs go from one machine to another.
    """
    if threads is not None:
        return min(whole_number("threads", threads, 1, _MOST), available_threads())
    worth = size // _WORTH_A_THREAD
    return 1 if worth <= 1 or not _is_alone.get() else min(worth, available_threads())


def for_each_slice(work: Callable[[slice], None], size: int, threads: int) -> None:
    """Call `work` with slices that cover range(size)."""
    if threads == 1:
        work(slice(0, size))
        return
    slices = (slice(start, min(start + _SLICE, size)) for start in range(0, size, _SLICE))
    for_each(work, slices, threads)


def for_each(work: Callable[[Item], None], items: Iterable[Item], threads: int) -> None:
    """Call `work` with each item, in `threads` threads, this one among them."""
    if threads == 1:
        for item in items:
            work(item)
        return
    waiting = queue.SimpleQueue[Item]()
    for item in items:
        waiting.put(item)

    def work_off() -> None:
        while True:
            try:
                item = waiting.get_nowait()
            except queue.Empty:
                return
            work(item)

    with ThreadPoolExecutor(max_workers=threads - 1) as pool:
        workers = [pool.submit(work_off) for _ in range(threads - 1)]
        work_off()
        for worker in workers:
            worker.result()
