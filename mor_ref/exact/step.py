"""Steps of the model. Each can be replaced, to see the results of another behaviour.

The reference never replaces one. `replaced` does so for the calls inside of a `with`, in the
same thread: that is how a wrong or foreign behaviour is modelled as one small change.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar, cast

from mor_ref.processor_modes import check_processor

_P = ParamSpec("_P")
_R = TypeVar("_R")
Replacement = tuple[Callable[..., Any], Callable[..., Any]]

_replaced: ContextVar[MappingProxyType[Callable[..., Any], Callable[..., Any]]] = ContextVar(
    "replaced", default=MappingProxyType({})
)


def step(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make a function one that `replaced` can replace.

    Each call checks the modes of its thread: where subnormal numbers are flushed, Python's floats
    lose some.
    """

    @functools.wraps(function)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        check_processor()
        return cast("_R", _replaced.get().get(run, function)(*args, **kwargs))

    return run


@contextmanager
def replaced(replacements: Sequence[Replacement]) -> Iterator[None]:
    """Compute with some steps replaced: pairs of a step and the function that is called instead.

    The first argument of a replacement is the function that it replaces; the arguments of the step
    follow. If a step has two replacements, the second replaces the first.
    """
    chosen = dict(_replaced.get())
    for name, replacement in replacements:
        original = chosen.get(name, getattr(name, "__wrapped__", None))
        if original is None:
            raise ValueError(
                f"{name.__qualname__} is not a step of the model; decorate it with @step"
            )
        chosen[name] = functools.partial(replacement, original)
    token = _replaced.set(MappingProxyType(chosen))
    try:
        yield
    finally:
        _replaced.reset(token)
