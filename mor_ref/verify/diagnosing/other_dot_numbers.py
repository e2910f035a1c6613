"""Dot products with other numbers of their profile, other scales and formats, or another c."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mor_ref.definitions.dot import DOT_PROFILES
from mor_ref.definitions.format import FormatError
from mor_ref.definitions.formats import formats
from mor_ref.exact.dot import chunk_length
from mor_ref.operations.call import Arrays, Parameters
from mor_ref.operations.random_products import CHOICES

SCALES = ("scale_a", "scale_b")
IN_BLOCKS = ("choice_a", "choice_b", *SCALES)  # with an entry for each block of K
_ROWS = tuple(DOT_PROFILES[name] for name in DOT_PROFILES.specified)
_NUMBERS: tuple[tuple[str, str, Iterable[int]], ...] = (
    ("chunk", "a chunk length of {}", (1, 2, 4, 8, 16, 32, 64, 128)),
    ("fraction_bits", "F = {}", range(8, 37)),
    ("kept_bits", "results of {} bits behind the leading one", range(7, 24)),
    ("zero_exponent", "e0 = {}", sorted({row.zero_exponent for row in _ROWS if row.is_cut})),
)
_E4M3 = CHOICES.index("e4m3")
_LARGEST_E8M0 = 254  # the code above it is NaN

Changed = Callable[[Parameters, Arrays], Arrays]


def the_same(parameters: Parameters) -> Parameters:
    """Return parameters as they are."""
    return parameters


class Change(NamedTuple):
    """A function that returns other inputs of a case, its words, and other parameters."""

    words: str
    inputs: Changed
    parameters: Callable[[Parameters], Parameters] = the_same


def other_dot_numbers(parameters: Parameters, arrays: Arrays) -> Iterator[Change]:
    """Yield the changes of numbers, c, scales and formats that suit an operation."""
    if "dot_profile" in parameters:
        yield from _of_profiles()
    if "c" in arrays:
        yield Change("with a c of +0", _without_c)
        yield Change("of the last chunk alone, with a c of +0", partial(_last_chunk, False))
        yield Change(
            "of the last chunk alone, with c if it is the first", partial(_last_chunk, True)
        )
        yield Change("with the even elements of K before the odd ones", _even_first)
    if "scale_a" in arrays:
        yield from _of_scales(arrays)
    if "format_a" in parameters:
        for name, other in ("ab", "ba"):
            words = f"with format_{name} for both operands"
            inputs = partial(_in_one_format, name)
            yield Change(words, inputs, partial(_with_one_format, name, other))
    if "choice_a" in arrays:
        yield Change("with each block in e4m3", _in_e4m3)
        yield Change("without the pieces that are upcast", _without_upcast)


def of_blocks(parameters: Parameters, arrays: Arrays, part: slice) -> Arrays:
    """Return inputs with a part of K, and the blocks of that part."""
    block = parameters.get("scale_block", 1)
    blocks = slice(part.start // block, -(-part.stop // block))
    return {
        name: np.ascontiguousarray(array[:, blocks if name in IN_BLOCKS else part])
        if array.ndim == 2
        else array
        for name, array in arrays.items()
    }


def chunk_of(parameters: Parameters) -> int:
    """Return the number of products of a chunk; 0 if all are one."""
    return chunk_length(DOT_PROFILES[parameters["dot_profile"]])


# ---------------------------------------------------------------- profiles


def _of_profiles() -> Iterator[Change]:
    for name, words, values in _NUMBERS:
        for value in values:
            with_it = partial(_with_number, name, value)
            yield Change(f"with {words.format(value)}", _unchanged, with_it)


def _with_number(name: str, value: int, parameters: Parameters) -> Parameters:
    """Return parameters whose profile has this number, if such a profile can exist."""
    row = DOT_PROFILES[parameters["dot_profile"]]
    is_known = row.chunk > 0 and (name == "chunk" or row.is_cut or row.family == "promoted")
    if is_known:
        with contextlib.suppress(FormatError):
            changed: dict[str, Any] = {name: value}
            return {**parameters, "dot_profile": replace(row, **changed)}
    return parameters


def _unchanged(_: Parameters, arrays: Arrays) -> Arrays:
    return arrays


# ---------------------------------------------------------------- c and the order of K


def _without_c(_: Parameters, arrays: Arrays) -> Arrays:
    return {**arrays, "c": np.zeros_like(arrays["c"])}


def _last_chunk(keeps_c: bool, parameters: Parameters, arrays: Arrays) -> Arrays:
    """Return the inputs of the last chunk, as if no chunk took c from the one before."""
    length, k = chunk_of(parameters), arrays["a"].shape[1]
    start = max(k - 1, 0) // length * length if length else 0
    found = of_blocks(parameters, arrays, slice(start, k))
    return found if keeps_c and start == 0 else _without_c(parameters, found)


def _even_first(_: Parameters, arrays: Arrays) -> Arrays:
    found = {name: np.hstack([arrays[name][:, ::2], arrays[name][:, 1::2]]) for name in "ab"}
    return {**arrays, **found}


# ---------------------------------------------------------------- scales


def _of_scales(arrays: Arrays) -> Iterator[Change]:
    yield Change("with scale_a alone", partial(_unscaled, ("scale_b",)))
    yield Change("with scale_b alone", partial(_unscaled, ("scale_a",)))
    yield Change("without scales", partial(_unscaled, SCALES))
    if arrays["scale_a"].ndim == 2:
        for words, place in (
            ("first block of its row", None),
            ("next block", 1),
            ("block before", -1),
        ):
            yield Change(f"with each scale that of the {words}", partial(_of_block, place))
    for bias in (126, 128):
        yield Change(f"with scales of e8m0 of bias {bias}", partial(_biased, 127 - bias))


def _unscaled(names: tuple[str, ...], parameters: Parameters, arrays: Arrays) -> Arrays:
    """Return inputs with some scales of 1."""
    fmt = formats[parameters.get("scale_format", "f32")]
    one = fmt.bias << fmt.mantissa_bits
    return {**arrays, **{name: np.full_like(arrays[name], one) for name in names}}


def _of_block(by: int | None, _: Parameters, arrays: Arrays) -> Arrays:
    """Return inputs with the scales of other blocks; the last one has its own if none is next."""
    count = arrays["scale_a"].shape[1]
    places = np.zeros(count, np.intp) if by is None else np.arange(count) + by
    places = np.clip(places, 0, max(count - 1, 0))
    return {**arrays, **{name: np.ascontiguousarray(arrays[name][:, places]) for name in SCALES}}


def _biased(by: int, parameters: Parameters, arrays: Arrays) -> Arrays:
    """Return inputs whose products of two scales in e8m0 are multiplied by a power of two."""
    if parameters.get("scale_format") != "e8m0":
        return arrays
    a, b = (arrays[name].astype(np.int64) for name in SCALES)
    moved_a = np.clip(a + 2 * by, 0, _LARGEST_E8M0)  # the other scale has what does not fit
    moved_b = np.clip(b + 2 * by - (moved_a - a), 0, _LARGEST_E8M0)
    is_number = np.maximum(a, b) <= _LARGEST_E8M0
    moved = (np.where(is_number, *pair) for pair in ((moved_a, a), (moved_b, b)))
    found = {n: one.astype(arrays[n].dtype) for n, one in zip(SCALES, moved, strict=True)}
    return {**arrays, **found}


# ---------------------------------------------------------------- formats


def _with_one_format(name: str, other: str, parameters: Parameters) -> Parameters:
    return {**parameters, f"format_{other}": parameters[f"format_{name}"]}


def _in_one_format(name: str, parameters: Parameters, arrays: Arrays) -> Arrays:
    """Return inputs whose codes have no more bits than the format."""
    bits = formats[parameters[f"format_{name}"]].bits
    return {**arrays, **{n: arrays[n] & arrays[n].dtype.type((1 << bits) - 1) for n in "ab"}}


def _in_e4m3(_: Parameters, arrays: Arrays) -> Arrays:
    codes = {name: arrays[name] & arrays[name].dtype.type(0xFF) for name in "ab"}
    choices = {n: np.full_like(arrays[n], _E4M3) for n in ("choice_a", "choice_b")}
    return {**arrays, **codes, **choices}


def _without_upcast(_: Parameters, arrays: Arrays) -> Arrays:
    return {**arrays, **{name: np.zeros_like(arrays[name]) for name in ("y_a", "y_b")}}
