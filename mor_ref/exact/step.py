"""Steps of the model. Each can be replaced, to compute with another behaviour.

The reference never replaces one. `replaced` does so for the calls inside of a `with`, in the
same thread: that is how a wrong or foreign behaviour is modelled as one small change.
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, ParamSpec, TypeVar

from mor_ref.processor_modes import check_processor

_P = ParamSpec("_P")
_R = TypeVar("_R")
Step = Callable[..., Any]
Replacement = tuple[Step, Callable[..., Any]]


class _Changes(NamedTuple):
    """The steps that are replaced inside of a `with`, and a set that collects those taken."""

    replaced: Mapping[Step, Callable[..., Any]]
    taken: set[Step] | None


_STEPS: dict[Step, Callable[..., Any]] = {}
_changes: ContextVar[_Changes | None] = ContextVar("changes", default=None)


def step(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make a function a step, which `replaced` can replace.

    Each call checks the modes of its thread: where subnormal numbers are flushed, Python's floats
    lose some. Inside of a `with` of this module, its beginning and its end check them.
    """

    @functools.wraps(function)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        changes = _changes.get()
        if changes is None:
            check_processor()
            return function(*args, **kwargs)
        replacements, taken = changes
        if taken is not None:
            taken.add(run)
        chosen = replacements.get(run, function)
        result: _R = chosen(*args, **kwargs) if kwargs else chosen(*args)
        return result

    _STEPS[run] = function
    return run


@contextmanager
def replaced(replacements: Sequence[Replacement]) -> Iterator[None]:
    """Compute with some steps replaced: pairs of a step and the function that is called instead.

    The first argument of a replacement is the function that it replaces; the arguments of the step
    follow. If a step has two replacements, the second replaces the first.
    """
    before = _changes.get() or _Changes({}, None)
    chosen = dict(before.replaced)
    for target, replacement in replacements:
        chosen[target] = functools.partial(replacement, _called_function(target, chosen))
    with _changed(before._replace(replaced=chosen)):
        yield


def is_replaced() -> bool:
    """Return whether some step is replaced, or those taken are collected."""
    return _changes.get() is not None


@contextmanager
def reached() -> Iterator[set[Step]]:
    """Collect the steps that a `with` takes, even if they are replaced."""
    steps = set[Step]()
    before = _changes.get() or _Changes({}, None)
    with _changed(before._replace(taken=steps)):
        yield steps


@contextmanager
def _changed(changes: _Changes) -> Iterator[None]:
    check_processor()
    token = _changes.set(changes)
    try:
        yield
    finally:
        _changes.reset(token)
    check_processor()


def _called_function(target: Step, chosen: Mapping[Step, Callable[..., Any]]) -> Callable[..., Any]:
    """Return the function that is called for a step."""
    function: Callable[..., Any] | None = chosen.get(target, _STEPS.get(target))
    if function is None:
        raise ValueError(
            f"{target.__qualname__} is not a step of the model; decorate it with @step"
        )
    return function
