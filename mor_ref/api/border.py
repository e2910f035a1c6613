"""The border of the public functions: what holds for each of them, whatever it computes."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar

from mor_ref.api.tracing import untraced
from mor_ref.processor_modes import in_usual_modes

_P = ParamSpec("_P")
_R = TypeVar("_R")

# Arguments of other libraries, and the names here of what is meant.
_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "axis": ("block",),
    "block_shape": ("block",),
    "block_size": ("block", "tile"),
    "dtype": ("fmt", "dtype"),
    "elem_dtype": ("fmt",),
    "format": ("fmt",),
    "group_size": ("block", "tile", "group"),
    "mode": ("rounding", "policy"),
    "out_dtype": ("fmt",),
    "recipe": ("profile", "policy"),
    "round_mode": ("rounding",),
    "rounding_mode": ("rounding",),
    "saturate": ("overflow",),
    "scale_mode": ("scale_rule", "scaling"),
    "scaling_mode": ("scale_rule", "scaling"),
    "seed": ("random_bits",),
    "stochastic": ("random_bits", "rounding"),
    "tile_size": ("tile", "block"),
}


def public(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make a function public: one that users call.

    It refuses to compute in a thread whose modes of the processor could change a bit, and
    torch.compile calls it as it is. `encode`, `decode` and `quantize_shared`, which are right in
    every mode, need no check of modes.
    """
    return with_hints(untraced(in_usual_modes(function)))


def with_hints(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make a function say which of its arguments is meant by one that it does not have."""
    known = inspect.signature(function).parameters

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except TypeError:
            unknown = [name for name in kwargs if name not in known]
            if not unknown:
                raise
            meant = [name for name in _ARGUMENTS.get(unknown[0], ()) if name in known]
            names = meant or [*known]
            raise TypeError(
                f"{function.__name__} has no argument {unknown[0]!r}; give "
                f"{', '.join(names[:-1])}{' or ' if names[1:] else ''}{names[-1]}"
            ) from None

    return call
