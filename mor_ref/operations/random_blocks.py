"""Random blocks at which quantizers differ: next to the amaxes at which scales turn, and to ties.

Each row has one of five styles. Most rows have values and midpoints of the format at the scale of
the block, and numbers next to them; the others have numbers of any magnitude, numbers next to amax,
few numbers, or zeros alone. One number has the amax of the row, at any place and of any sign. One
row in four has one special number; half of them are infinities and NaNs.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.format import Format
from mor_ref.operations.random_numbers import (
    LAYOUTS,
    Draws,
    Words,
    bits_at,
    edge_fractions,
    magnitudes_of,
    moved,
    share,
)

Floats = NDArray[np.float64]
_U = np.uint64
_F32 = LAYOUTS["f32"]
_DEEPEST = 40  # binades below amax
_USUAL_ONES = np.arange(_F32.bias - 24, _F32.bias + 25)  # exponent fields; below 1: subnormal
_ALL = np.arange(-22, 255)
_ENDS = np.array([*range(-22, -5), *[*range(-5, 5), 253, 254, 254] * 3])
_USUAL, _ANY_MAGNITUDE, _NEXT_TO_AMAX, _FEW, _ZEROS = range(5)
_STYLES = np.repeat(np.arange(5), (20, 5, 3, 3, 1))
# The first seven are finite, and NaNs are quiet, signalling and all ones.
_SPECIALS = np.array(
    [0, 1, _F32.hidden - 1, _F32.hidden, 0, 1, _F32.hidden - 1,
     _F32.infinity, _F32.infinity, _F32.infinity,
     _F32.infinity + 1, 0x7FC00000, 0x7FFFFFFF, 0x7FA00001],
    np.uint64,
)  # fmt: skip
_FINITE = 7


def amaxes_at(draws: Draws, stream: int, fractions: Sequence[int], largest: float) -> Words:
    """Draw amaxes next to these fractions and powers of two, edges, and any; use three streams.

    Half of them are within 24 binades of 1, a quarter is of any binade, and a quarter next to the
    subnormal numbers, in them, or in the last two binades.
    """
    choices, words = draws.words(stream), draws.words(stream + 1)
    which, place = bits_at(choices, 0, 2), bits_at(choices, 32, 16)
    usual, anywhere, ends = (
        binades[share(place, 16, binades.size)] for binades in (_USUAL_ONES, _ALL, _ENDS)
    )
    fields = np.where(which < 2, usual, np.where(which == 2, anywhere, ends))
    points = np.array([*fractions, 0, _F32.hidden - 1], _U)
    turns = points[share(words >> _U(32), 32, points.size)]
    is_turn = bits_at(choices, 2, 2) != 0
    chosen = np.where(is_turn, turns, edge_fractions(draws, stream + 2, largest))
    magnitudes = magnitudes_of(fields, chosen, _F32)
    return moved(magnitudes, share(bits_at(choices, 8, 16), 16, 5), _F32.largest)


def filled(draws: Draws, stream: int, fmt: Format, amaxes: Words, units: Floats) -> Words:
    """Draw rows of these amaxes; `units` are their decode scales, about. Use three streams.

    Rows of zeros have another amax.
    """
    per_number, choices = draws.per_number(), draws.words(stream)
    shape = (draws.count, draws.width)
    tops, unit = amaxes[:, np.newaxis], units[:, np.newaxis]
    style = _STYLES[share(bits_at(choices, 0, 16), 16, _STYLES.size)][:, np.newaxis]
    words, more = (per_number.words(stream + k).reshape(shape) for k in (1, 2))
    at_points = _points(fmt, words, more, unit)
    anywhere = _below(tops, words, more)
    close = moved(tops, share(bits_at(more, 24, 16), 16, 5), _F32.largest)
    few = np.where(bits_at(more, 40, 3) == 0, at_points, _U(0))
    x = np.select(
        [style == k for k in (_USUAL, _ANY_MAGNITUDE, _NEXT_TO_AMAX, _FEW)],
        [at_points, anywhere, close, few],
        _U(0),
    )
    x = np.minimum(x, tops)
    place = share(bits_at(choices, 16, 16), 16, draws.width)
    rows = np.arange(draws.count)
    x[rows, place] = np.where(style[:, 0] == _ZEROS, _U(0), amaxes)
    signed: Words = x | bits_at(words, 63, 1) << _U(31)
    return signed


def with_a_special(
    draws: Draws, stream: int, x: Words, amaxes: Words, *, with_nan: bool = True
) -> Words:
    """Put a special number into one row of four; half are infinite or NaN, or at most the amax."""
    words = draws.words(stream)
    finite = _SPECIALS[:_FINITE][share(bits_at(words, 0, 16), 16, _FINITE)]
    infinite = _SPECIALS[_FINITE:] if with_nan else _SPECIALS[_FINITE:][:1]
    lost = infinite[share(bits_at(words, 0, 16), 16, infinite.size)]
    special = np.where(bits_at(words, 16, 1) == 0, np.minimum(finite, amaxes), lost)
    place = share(bits_at(words, 32, 16), 16, draws.width)
    rows, signs = np.arange(draws.count), bits_at(words, 17, 1) << _U(31)
    with_special = x.copy()
    with_special[rows, place] = np.where(
        bits_at(words, 18, 2) == 0, special | signs, x[rows, place]
    )
    return with_special


def values_of(bits: Words) -> Floats:
    """Return the binary32 numbers of patterns."""
    return bits.astype(np.uint32).view(np.float32).astype(np.float64)


def bits_of(values: Floats) -> Words:
    """Return the patterns of finite binary32 numbers that are nearest to these magnitudes."""
    with np.errstate(all="ignore"):
        bits = values.astype(np.float32).view(np.uint32)
    return np.minimum(bits, np.uint32(_F32.largest)).astype(_U)


def amaxes_of(x: NDArray[Any], most: int) -> NDArray[Any]:
    """Return the largest magnitude of each row among those up to `most`, or 0."""
    magnitudes = x & x.dtype.type(0x7FFFFFFF)
    amaxes: NDArray[Any] = np.where(magnitudes <= most, magnitudes, 0).max(axis=1, initial=0)
    return amaxes


@functools.cache
def points_of(fmt: Format) -> Floats:
    """Return the positive values of a format and their midpoints, the largest value last."""
    positive = {v for v in map(fmt.value, range(fmt.code_count)) if 0 < v <= fmt.largest}
    values = np.array(sorted(positive))
    below = np.concatenate([[0.0], values[:-1]])
    points = np.sort(np.concatenate([values, (values + below) / 2]))
    points.setflags(write=False)
    return points


def fraction_of(value: float) -> int:
    """Return the 23 bits after the leading one of a positive number of binary32."""
    return int(bits_of(np.array([value]))[0]) & (_F32.hidden - 1)


def _points(fmt: Format, words: Words, more: Words, unit: Floats) -> Words:
    """Return values and midpoints of the format times the unit, and numbers next to them."""
    points = points_of(fmt)
    at_points = bits_of(points[share(bits_at(words, 0, 32), 32, points.size)] * unit)
    steps = share(bits_at(more, 0, 16), 16, 5)
    # One in four is some bits away, as a product that is rounded once more can be.
    far = at_points ^ (_U(1) << share(bits_at(more, 16, 8), 8, 20))
    is_at = bits_at(more, 48, 2)
    near = np.where(is_at == 1, moved(at_points, steps, _F32.largest), far)
    return np.where(is_at >= 2, at_points, near)


def _below(tops: Words, words: Words, more: Words) -> Words:
    """Return numbers of any magnitude from that of amax down to some binades below."""
    fields = (tops >> _U(23)).astype(np.int64)
    depth = share(bits_at(more, 0, 16), 16, _DEEPEST + 1).astype(np.int64)
    return np.where(tops == 0, _U(0), magnitudes_of(np.maximum(fields - depth, -22), words, _F32))
