"""The engine's kernels: which there are, and how long each takes in a call."""

import importlib
import pkgutil
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.dispatcher import Dispatcher

import mor_ref.engine
from mor_ref.engine import nvfp4

REST = "rest"


class Spent:
    """The processor time of each kernel in seconds, and how often each was called as what.

    A kernel is compiled once for each signature, and its loops may differ among them.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: dict[str, Counter[tuple[Any, ...]]] = defaultdict(Counter)


def load_engine() -> None:
    """Import all modules of the engine."""
    for module in pkgutil.iter_modules(mor_ref.engine.__path__):
        importlib.import_module(f"mor_ref.engine.{module.name}")


def engine_modules() -> Iterator[Any]:
    """Yield the modules that hold kernels, their own or others'."""
    for name in sorted(sys.modules):
        if name.startswith("mor_ref.engine."):
            yield sys.modules[name]


def is_kernel(value: object) -> bool:
    """Return whether a value is a kernel: unlike a step, it releases the GIL."""
    return isinstance(value, Dispatcher) and bool(value.targetoptions.get("nogil"))


def kernels() -> dict[str, Dispatcher]:
    """Return all kernels by name."""
    load_engine()
    return {
        name: value
        for module in engine_modules()
        for name, value in vars(module).items()
        if is_kernel(value) and value.py_func.__module__ == module.__name__
    }


@contextmanager
def timed_kernels() -> Iterator[Spent]:
    """Add up the time of each kernel while the context is open."""
    spent = Spent()
    replaced = [
        (vars(module), name)
        for module in engine_modules()
        for name, value in vars(module).items()
        if is_kernel(value)
    ]
    replaced += [(nvfp4._LOOPS, rule) for rule in nvfp4._LOOPS]  # noqa: SLF001  # a table of kernels
    originals = [(place, name, place[name]) for place, name in replaced]
    for place, name, original in originals:
        place[name] = _timed(original, spent)
    try:
        yield spent
    finally:
        for place, name, original in originals:
            place[name] = original


def _timed(kernel: Dispatcher, spent: Spent) -> Callable[..., Any]:
    name = kernel.py_func.__name__

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
