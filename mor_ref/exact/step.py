"""Steps of the model. Each can be replaced, to see the results of another behaviour.

The reference never replaces one. `replaced` does so for the calls inside of a `with`, in the
same thread: that is how a wrong or foreign behaviour is modelled as one small change.
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar

from mor_ref.processor_modes import check_processor

_P = ParamSpec("_P")
_R = TypeVar("_R")
Step = Callable[..., Any]
Replacement = tuple[Step, Callable[..., Any]]

_replaced: ContextVar[MappingProxyType[Step, Callable[..., Any]]] = ContextVar(
    "replaced", default=MappingProxyType({})
)
_taken: ContextVar[set[Step] | None] = ContextVar("taken", default=None)


def step(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make a function one that `replaced` can replace.

    Each call checks the modes of its thread: where subnormal numbers are flushed, Python's floats
    lose some.
    """

    @functools.wraps(function)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        check_processor()
        taken = _taken.get()
        if taken is not None:
            taken.add(run)
        found: _R = _replaced.get().get(run, function)(*args, **kwargs)
        return found

    return run


@contextmanager
def replaced(replacements: Sequence[Replacement]) -> Iterator[None]:
    """Compute with some steps replaced: pairs of a step and the function that is called instead.

    The first argument of a replacement is the function that it replaces; the arguments of the step
    follow. If a step has two replacements, the second replaces the first.
    """
    chosen = dict(_replaced.get())
    for name, replacement in replacements:
        chosen[name] = functools.partial(replacement, _now(name, chosen))
    token = _replaced.set(MappingProxyType(chosen))
    try:
        yield
    finally:
        _replaced.reset(token)


@contextmanager
def reached() -> Iterator[set[Step]]:
    """Collect the steps that a `with` takes, even if they are replaced."""
    found = set[Step]()
    token = _taken.set(found)
    try:
        yield found
    finally:
        _taken.reset(token)


def _now(name: Step, chosen: Mapping[Step, Callable[..., Any]]) -> Callable[..., Any]:
    """Return the function that is called for a step."""
    found: Callable[..., Any] | None = chosen.get(name, getattr(name, "__wrapped__", None))
    if found is None:
        raise ValueError(f"{name.__qualname__} is not a step of the model; decorate it with @step")
    return found
