"""Random inputs of each operation on columns, and which inputs it takes at all."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.golden.inputs.edges import SIGNIFICANDS
from mor_ref.golden.inputs.random_numbers import (
    LAYOUTS,
    Draws,
    Words,
    bits_at,
    magnitudes_of,
    moved,
    numbers,
    share,
)
from mor_ref.golden.model.suite import Arrays, Parameters

_U = np.uint64
_F32 = LAYOUTS["f32"]
_LARGEST = _F32.infinity - 1
_FRACTION = _F32.hidden - 1
_MOST_ELEMENTS = 1 << 40  # of a unit, as ERR-005 has it
_LIMIT_OF_ONE = 1 << 23
_LIMITS = np.array([377487, 1, 838861, 1677722, 419430, 4194304, _LIMIT_OF_ONE], _U)

Found = Mapping[str, Words]
Inside = NDArray[np.bool_]


@dataclass(frozen=True)
class Operation:
    """What makes random inputs, which inputs are taken, and a sentence about these."""

    inputs: Callable[[Parameters, Draws], Found]
    inside: Callable[[Parameters, Arrays], Inside]
    takes: str


# ---------------------------------------------------------------------- encoding and decoding


def _encode(parameters: Parameters, draws: Draws) -> Found:
    target = formats[parameters["format"]]
    return {"x": numbers(draws, 0, target, parameters["source"])}


def _encode_stochastic(parameters: Parameters, draws: Draws) -> Found:
    """Half of the random words are the last that leave the number, the next, or beside these."""
    x = _encode(parameters, draws)["x"]
    n = parameters["n_random_bits"]
    words = draws.words(3)
    fraction = _first_bits_dropped(x, formats[parameters["format"]], n)
    decisive = moved((_U(1) << _U(n)) - fraction, share(bits_at(words, 8, 16), 16, 4), (1 << n) - 1)
    is_decisive = bits_at(words, 0, 1) == 0
    return {"x": x, "random_word": np.where(is_decisive, decisive, words >> _U(64 - n))}


def _first_bits_dropped(x: Words, target: Format, n: int) -> Words:
    """The first n bits of what rounding drops of binary32 numbers."""
    field = np.maximum(bits_at(x, 23, 8), _U(1))
    significand = (x & _U(_FRACTION)) + np.where(bits_at(x, 23, 8) != 0, _U(_F32.hidden), _U(0))
    smallest = _U(max(target.smallest_exponent + _F32.bias, 1))
    shift: Words = _U(23 - target.mantissa_bits) + np.maximum(field, smallest) - field
    rest: Words = significand & ((_U(1) << np.minimum(shift, _U(63))) - _U(1))
    up: Words = np.minimum(np.maximum(_U(n), shift) - shift, _U(32))
    down: Words = np.minimum(np.maximum(_U(n), shift) - _U(n), _U(63))
    first: Words = rest << up >> down
    return first


def _decode(parameters: Parameters, draws: Draws) -> Found:
    return {"code": draws.words(0) >> _U(64 - formats[parameters["format"]].bits)}


def _is_code(parameters: Parameters, arrays: Arrays) -> Inside:
    inside: Inside = arrays["code"] <= formats[parameters["format"]].code_count - 1
    return inside


def _is_random_word(parameters: Parameters, arrays: Arrays) -> Inside:
    inside: Inside = arrays["random_word"] <= (1 << parameters["n_random_bits"]) - 1
    return inside


# ---------------------------------------------------------------------- scales


def _edge_fractions(draws: Draws, stream: int, largest: float) -> Words:
    """Fractions of binary32: those of edges and of the largest value of a format, and any."""
    words = draws.words(stream)
    edges = np.array([*SIGNIFICANDS, *[_significand(largest)] * len(SIGNIFICANDS)], _U)
    at_edge = moved(edges[share(words >> _U(48), 16, edges.size)], bits_at(words, 24, 2), 1 << 24)
    return np.where(bits_at(words, 30, 1) == 0, at_edge, words) & _U(_FRACTION)


def _significand(number: float) -> int:
    return int(math.frexp(number)[0] * 2**24)


def _scale(parameters: Parameters, draws: Draws) -> Found:
    """Amaxes of a group, and of a block in it whose mantissa is the same, a step off, or any."""
    largest = formats[parameters["format"]].largest
    choices = draws.words(0)
    fields = share(choices >> _U(32), 32, 254 + 23).astype(np.int64) - 22
    groups = magnitudes_of(fields, _edge_fractions(draws, 1, largest), _F32)
    below = np.where(bits_at(choices, 0, 1) == 0, bits_at(choices, 8, 2), bits_at(choices, 8, 8))
    own = np.where(
        bits_at(choices, 1, 1) == 0, groups & _U(_FRACTION), _edge_fractions(draws, 2, largest)
    )
    blocks = magnitudes_of(fields - below.astype(np.int64), own, _F32)
    blocks = moved(blocks, share(bits_at(choices, 16, 8), 8, 5), _LARGEST)
    # Now and then there is nothing but zeros in a block, or in all the group.
    blocks = np.where(bits_at(choices, 24, 6) == 0, _U(0), np.minimum(blocks, groups))
    return {"group_amax": np.where(bits_at(choices, 24, 8) == 0, _U(0), groups),
            "block_amax": blocks}  # fmt: skip


def _are_amaxes(_: Parameters, arrays: Arrays) -> Inside:
    inside: Inside = arrays["block_amax"] <= arrays["group_amax"]
    return inside & (arrays["group_amax"] <= _LARGEST)


# ---------------------------------------------------------------------- elements


def _quantize_element(parameters: Parameters, draws: Draws) -> Found:
    """Numbers that a scale brings to where encoders part, or next to it."""
    choices = draws.words(4)
    usual = share(bits_at(choices, 32, 16), 16, 40) + _U(107)
    fields = np.where(bits_at(choices, 0, 1) == 0, usual, share(choices >> _U(48), 16, 254) + _U(1))
    scales = fields << _U(23) | _edge_fractions(draws, 3, formats[parameters["format"]].largest)
    meant = numbers(draws, 0, formats[parameters["format"]], "f32")
    with np.errstate(all="ignore"):
        quotients = _floats(meant & _U(0x7FFFFFFF)) / _floats(scales)
    steps = share(bits_at(choices, 8, 16), 16, 5)
    near = moved(quotients.view(np.uint32).astype(_U), steps, _F32.infinity)
    is_number = (meant & _U(0x7FFFFFFF)) <= _U(_F32.infinity)
    return {"x": np.where(is_number, near | meant & _U(1 << 31), meant), "scale": scales}


def _floats(bits: Words) -> NDArray[np.float32]:
    return bits.astype(np.uint32).view(np.float32)


def _has_a_scale(_: Parameters, arrays: Arrays) -> Inside:
    inside: Inside = (arrays["scale"] >= _F32.hidden) & (arrays["scale"] <= _LARGEST)
    return inside


def _error_term(_: Parameters, draws: Draws) -> Found:
    """Numbers with few bits or any, and what they became: some steps away, far away, or 0."""
    words, choices = draws.words(0), draws.words(1)
    fields = share(choices >> _U(32), 32, 254 + 23).astype(np.int64) - 22
    few = words >> _U(61) << _U(20)  # the ties of u lie at such numbers
    x = magnitudes_of(fields, np.where(bits_at(choices, 0, 1) == 0, few, words), _F32)
    distance = bits_at(words, 24, 32) & ((_U(1) << share(bits_at(choices, 8, 8), 8, 26)) - _U(1))
    y = np.where(bits_at(choices, 1, 1) == 0, x + distance, np.maximum(x, distance) - distance)
    y = np.minimum(y, _U(_F32.infinity))
    # One in sixteen is any number, of any sign.
    is_any = bits_at(choices, 2, 4) == 0
    other = np.minimum(bits_at(words, 24, 31), _U(_F32.infinity)) | bits_at(choices, 16, 1) << _U(
        31
    )
    sign = words >> _U(60) & _U(1)
    y = np.where(is_any, other, y | sign << _U(31))
    return {"x": x | sign << _U(31), "y": y}


def _is_term(_: Parameters, arrays: Arrays) -> Inside:
    magnitude = arrays["x"] & 0x7FFFFFFF
    inside: Inside = (magnitude != 0) & (magnitude <= _LARGEST)
    return inside & ((arrays["y"] & 0x7FFFFFFF) <= _F32.infinity)


# ---------------------------------------------------------------------- decisions


def _decide(parameters: Parameters, draws: Draws) -> Found:
    """Sums at, next to and far from where the metric of the parameters turns."""
    metric, choices = parameters["metric"], draws.words(0)
    nothing = np.zeros(draws.count, _U)
    found: dict[str, Any] = dict.fromkeys(
        ("sum", "nonzero", "nonfinite", "limit", "yardstick_sum", "amax", "amin"), nothing
    )
    found["nonfinite"] = np.where(bits_at(choices, 0, 4) == 0, bits_at(choices, 4, 2), _U(0))
    found["nonzero"] = _of_any_length(draws, 1, 41, 1 << 40)
    steps = share(bits_at(choices, 8, 16), 16, 5)
    if metric == "mean_relative_error":
        found["limit"] = np.where(
            bits_at(choices, 24, 1) == 0,
            _LIMITS[share(bits_at(choices, 25, 7), 7, _LIMITS.size)],
            share(choices >> _U(32), 32, _LIMIT_OF_ONE) + _U(1),
        )
        turn, most = found["limit"] * found["nonzero"], 1 << 63
    else:
        turn, most = _of_any_length(draws, 2, 63, (1 << 63) - 1), 1 << 63
    if metric == "not_worse_than":
        found["yardstick_sum"] = turn
    far = np.minimum(_of_any_length(draws, 3, 63, most), found["nonzero"] << _U(23))
    found["sum"] = np.where(bits_at(choices, 6, 2) == 0, far, moved(turn, steps, most))
    if metric == "fits_range":
        found |= _range(formats[parameters["format"]], draws, steps)
    return found


def _of_any_length(draws: Draws, stream: int, lengths: int, most: int) -> Words:
    """Integers of any number of bits below `lengths`."""
    words = draws.words(stream)
    keep = share(bits_at(words, 0, 16), 16, lengths + 1)
    return np.minimum(words >> _U(1) >> (_U(63) - keep), _U(most))


def _range(fmt: Format, draws: Draws, steps: Words) -> Found:
    """Smallest and largest magnitudes whose ratio is that of the format, or next to it."""
    ratio = fmt.largest / float(fmt.smallest_normal or 1)
    choices = draws.words(4)
    highest = max(2, 254 - math.frexp(ratio)[1])
    fields = share(choices >> _U(32), 32, highest + 22).astype(np.int64) - 22
    amin = magnitudes_of(fields, _edge_fractions(draws, 5, fmt.largest), _F32)
    amin = np.clip(amin, _U(1), _U(_LARGEST))
    with np.errstate(over="ignore"):
        turns = (_floats(amin).astype(np.float64) * ratio).astype(np.float32)
    amax = moved(turns.view(np.uint32).astype(_U), steps, _LARGEST)
    far = np.maximum(amin, bits_at(choices, 0, 31) % _U(_LARGEST))
    amax = np.where(choices >> _U(62) == 0, far, np.maximum(amax, amin))
    return {"amax": amax, "amin": amin}


def _are_sums(parameters: Parameters, arrays: Arrays) -> Inside:
    inside: Inside = arrays["nonzero"] <= _MOST_ELEMENTS
    inside &= arrays["limit"] <= _LIMIT_OF_ONE
    if parameters["metric"] == "fits_range":
        inside &= arrays["amax"] <= _LARGEST
        inside &= arrays["amin"] <= arrays["amax"]
        inside &= (arrays["amin"] != 0) | (arrays["nonzero"] == 0)
    return inside


def _takes_all(_: Parameters, arrays: Arrays) -> Inside:
    return np.ones(next(iter(arrays.values())).shape, np.bool_)


_ANY_NUMBER = "every pattern is taken"
OPERATIONS: Mapping[str, Operation] = {
    "encode": Operation(_encode, _takes_all, _ANY_NUMBER),
    "encode_preset": Operation(_encode, _takes_all, _ANY_NUMBER),
    "encode_stochastic": Operation(
        _encode_stochastic, _is_random_word, "the random word has n_random_bits bits"
    ),
    "decode": Operation(_decode, _is_code, "a code has no more bits than its format"),
    "scale": Operation(
        _scale, _are_amaxes, "both amaxes are finite and not negative, and the block's is no larger"
    ),
    "quantize_element": Operation(
        _quantize_element, _has_a_scale, "a scale is positive, normal and finite"
    ),
    "error_term": Operation(_error_term, _is_term, "x is finite and not zero, and y is no NaN"),
    "decide": Operation(
        _decide,
        _are_sums,
        "nonzero is at most 2^40, limit at most 2^23, and 0 < amin <= amax where a range is tested",
    ),
}
