"""Keeping torch.compile out of the work of NumPy and Numba."""

import functools
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")
TRACER = "torch._dynamo"


def untraced(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make a function one that torch.compile calls as it is, between two graphs.

    Traced, its NumPy arrays would become tensors, which no kernel takes. torch is not imported for
    this: an absent library traces nothing.
    """
    disabled: list[Callable[_P, _R]] = []  # the function as torch leaves it alone, once it is made

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        tracer = sys.modules.get(TRACER)
        if tracer is None:
            return function(*args, **kwargs)
        if not disabled:
            disabled.append(tracer.disable(function))
        return disabled[0](*args, **kwargs)

    return call
