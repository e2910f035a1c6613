"""The border of the public functions: what holds for each of them, whatever it computes."""

import functools
import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Literal, ParamSpec, TypeVar, get_args, get_origin

from mor_ref.counts_in_words import joined
from mor_ref.former_names import renamed
from mor_ref.processor_modes import check_processor, in_usual_modes
from mor_ref.tracing import TRACER, untraced

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
    "input": ("x", "inputs"),
    "mode": ("rounding", "policy"),
    "out_dtype": ("fmt",),
    "granularity": ("block", "tile"),
    "n_bits": ("n_random_bits",),
    "recipe": ("profile", "policy"),
    "round_mode": ("rounding",),
    "rounding": ("random_bits",),
    "rounding_mode": ("rounding",),
    "saturate": ("overflow",),
    "saturation": ("overflow",),
    "scale_mode": ("scale_rule", "scaling"),
    "scaling_mode": ("scale_rule", "scaling"),
    "seed": ("random_bits",),
    "stochastic": ("random_bits", "rounding"),
    "tile_size": ("tile", "block"),
}
# What to do about an argument, where a name alone would lead to the next error.
_INSTEAD = {
    "device": "leave it out, as this function computes on the CPU",
    "random_bits": "give random_bits and n_random_bits for rounding at random, such as "
    "np.random.default_rng(0).integers(1 << 16, size=np.shape(x), dtype=np.uint32) and 16",
}

_FORMER = {"encode": ("preset", "profile")}  # arguments of functions: a former name, and today's


def public(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make a function public: one that users call.

    It refuses to compute in a thread whose modes of the processor could change a bit, and
    torch.compile calls it as it is. An argument that it does not have is refused with the one that
    is meant.
    """
    return _public(function, check_processor)


def public_in_every_mode(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make a function public whose results no mode of the processor changes."""
    return _public(function, None)


def called_as(name: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Let a method be called as a public function is, whose name errors have."""

    def named(method: Callable[_P, _R]) -> Callable[_P, _R]:
        method.__qualname__ = name

        @functools.wraps(method)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            try:
                return method(*args, **kwargs)
            except TypeError:
                bound = functools.partial(method, args[0])  # type: ignore[arg-type]  # self
                _refuse_call(bound, args[1:], kwargs, name)
                raise

        return call

    return named


def _public(function: Callable[_P, _R], check_modes: Callable[[], None] | None) -> Callable[_P, _R]:
    traced = untraced(function if check_modes is None else in_usual_modes(function))

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            if TRACER in sys.modules:
                return traced(*args, **kwargs)
            if check_modes is not None:
                check_modes()
            return function(*args, **kwargs)
        except TypeError:
            former = _FORMER.get(function.__name__, ("", ""))
            if former[0] not in kwargs:
                _refuse_call(function, args, kwargs, function.__name__)
                raise
        # Only a call with a former name comes here: others do not pay for it.
        return call(*args, **renamed(function.__name__, kwargs, *former, 3))

    return call


def _refuse_call(
    function: Callable[..., Any], args: Collection[object], given: Mapping[str, object], name: str
) -> None:
    """Refuse an argument that a function does not have, with those that may be meant."""
    known = inspect.signature(function).parameters
    unknown = [argument for argument in given if argument not in known]
    if unknown:
        raise TypeError(f"{name} has no argument {unknown[0]!r}; {_instead_of(unknown[0], known)}")
    by_place = [
        name
        for name, parameter in known.items()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    if len(args) > len(by_place):
        rest = [argument for argument in known if argument not in by_place]
        raise TypeError(
            f"{name} takes {joined(by_place, 'and')} by place, and is given {len(args)} "
            f"arguments; give {joined(rest)} by name"
        )


def _instead_of(argument: str, known: Mapping[str, inspect.Parameter]) -> str:
    """Return what to do in place of giving an argument."""
    meant: list[str] = []
    asked: tuple[str, ...] = (argument,)
    while asked and not meant:  # such as rounding_mode, which is rounding, or else random_bits
        asked = tuple(name for other in asked for name in _ARGUMENTS.get(other, ()))
        meant = [name for name in asked if name in known]
    if not meant:
        return _INSTEAD.get(argument, f"give {joined([*known])}")
    if len(meant) > 1:
        return f"give {joined(meant)}"
    values = joined(list(_values(known[meant[0]].annotation)))
    return _INSTEAD.get(meant[0], f"give {meant[0]}{f', which is {values}' if values else ''}")


def _values(annotation: Any) -> Iterator[str]:
    """Yield the values of an argument that is one of some words, or else a pair of sides."""
    parts = get_args(annotation)
    if get_origin(annotation) is Literal:
        yield from map(repr, parts)
    elif annotation == tuple[int, int]:
        yield "a pair (rows, columns)"
    else:
        for part in parts:
            yield from _values(part)
