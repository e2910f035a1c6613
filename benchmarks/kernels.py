"""The engine's kernels: which there are, and how long each takes in a call."""

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.dispatcher import Dispatcher

from mor_ref.engine import block_formats
from mor_ref.engine.kernel import engine_modules

REST = "rest"
OF_FORMULAS = "kernels of formulas"  # whose names are digests


class Spent:
    """The processor time of each kernel in seconds, and how often each was called as what.

    A kernel is compiled once for each signature, and its loops may differ among them.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: dict[str, Counter[tuple[Any, ...]]] = defaultdict(Counter)


def is_kernel(value: object) -> bool:
    """Return whether a value is a kernel: unlike a step, it releases the GIL."""
    return isinstance(value, Dispatcher) and bool(value.targetoptions.get("nogil"))


def kernels() -> dict[str, Dispatcher]:
    """Return all kernels by name, which no two have."""
    named = [
        (name, value)
        for module in engine_modules()
        for name, value in vars(sys.modules[module]).items()
        if is_kernel(value) and value.py_func.__module__ == module
    ]
    twice = [name for name, times in Counter(name for name, _ in named).items() if times > 1]
    if twice:
        raise ValueError(f"kernels of one name: {', '.join(twice)}; give each its own")
    return dict(named)


@contextmanager
def timed_kernels() -> Iterator[Spent]:
    """Add up the time of each kernel while the context is open."""
    spent = Spent()
    replaced = [
        (vars(sys.modules[module]), name)
        for module in engine_modules()
        for name, value in vars(sys.modules[module]).items()
        if is_kernel(value)
    ]
    originals = [(place, name, place[name]) for place, name in replaced]
    for place, name, original in originals:
        place[name] = _timed(original, spent, name)
    kernel_of = block_formats.kernel_of

    def timed_kernel_of(*arguments: Any, **options: Any) -> block_formats.ScaleKernel:
        rule = kernel_of(*arguments, **options)
        return rule._replace(run=_timed(rule.run, spent, OF_FORMULAS))

    originals.append((vars(block_formats), "kernel_of", kernel_of))
    vars(block_formats)["kernel_of"] = timed_kernel_of
    try:
        yield spent
    finally:
        for place, name, original in originals:
            place[name] = original


def _timed(kernel: Dispatcher, spent: Spent, name: str) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        start = time.thread_time()
        try:
            return kernel(*arguments)
        finally:
            spent.seconds[name] += time.thread_time() - start
            spent.calls[name][tuple(map(kernel.typeof_pyval, arguments))] += 1

    return call


def steps_of(call: Callable[[], Any], rounds: int) -> Spent:
    """Return the best time of each kernel in a call among some rounds, and the remainder as REST.

    It is processor time: a busy machine stretches it less.
    """
    call()
    found = []
    for _ in range(rounds):
        with timed_kernels() as spent:
            start = time.thread_time()
            call()
            whole = time.thread_time() - start
        spent.seconds[REST] = whole - sum(spent.seconds.values())
        found.append(spent)
    return min(found, key=lambda spent: sum(spent.seconds.values()))
