"""Mistakes that an encoder with random bits may have in one format and one number of bits."""

import numpy as np

from wrong.conversions import U64, Layout, codes_of, no_number
from wrong.each_encoder import is_below, zeroed
from wrong.each_input import CHANGES, cut_modulo
from wrong.each_sign import RESULTS, with_results


def right(parameters, x, word, up=None):
    """Encode; `up` decides from the bits cut off, their count, the random word and its size."""
    layout, n = Layout.table[parameters["format"]], parameters["n_random_bits"]
    decide = up or _carries
    codes = codes_of(
        layout, x, "sr", parameters["overflow"], lambda rest, bits: decide(rest, bits, word, n)
    )
    return no_number(layout, codes, x, signed=False)


def _fraction(rest, bits, n):
    """Return the first n of the bits that are cut off."""
    away = np.clip(bits - n, 0, 63).astype(U64)
    return rest >> away << np.maximum(n - bits, 0).astype(U64)


def _carries(rest, bits, word, n):
    return _fraction(rest, bits, n) + word >= U64(1 << n)


def _deciding(up):
    return lambda parameters, x, word: right(parameters, x, word, up)


def _rest_modulo(width, modulo):
    return _deciding(
        lambda rest, bits, *random: _carries(*cut_modulo(rest, bits, width, modulo), *random)
    )


def _if_negative(up):
    """Restrict a mistake to numbers below zero."""

    def encode(parameters, x, word):
        return np.where(x[0], right(parameters, x, word, up), right(parameters, x, word))

    return encode


def _of_inputs(change):
    """Change the numbers before they are encoded."""

    def encode(parameters, x, word):
        return right(parameters, change(parameters, x), word)

    return encode


def _zero_below(power):
    def change(parameters, x):
        layout = Layout.table[parameters["format"]]
        return zeroed(x, is_below(x, 1 - layout.bias - layout.m + power))

    return change


def _subnormal_zeroed(parameters, x):
    return zeroed(x, is_below(x, 1 - Layout.table[parameters["format"]].bias))


def _one_bit_less(rest, bits, word, n):
    """Drop the last of the random bits."""
    return _carries(rest, bits, word >> U64(1), n - 1) if n > 1 else _carries(rest, bits, word, n)


def _rounded(rest, bits, word, n):
    half = U64(1) << np.clip(bits - n - 1, 0, 62).astype(U64)
    return _fraction(np.where(bits > n, rest + half, rest), bits, n) + word >= U64(1 << n)


def _nearest(rest, bits, *_):
    return (rest >= U64(1) << np.clip(bits - 1, 0, 62).astype(U64)) & (rest > 0)


def _in_32_bits(rest, bits, word, n):
    total = _fraction(rest, bits, n) + word
    return (total & U64(0xFFFFFFFF) >= U64(1 << n)) if n == 32 else total >= U64(1 << n)


MISTAKES = {
    "below_half_of_the_smallest_is_zero": _of_inputs(_zero_below(-1)),
    "below_the_smallest_is_zero": _of_inputs(_zero_below(0)),
    "subnormal_results_are_zero": _of_inputs(_subnormal_zeroed),
    "zero_without_sign": _of_inputs(lambda _, x: (x[0] & (x[2] > 0), *x[1:])),
    "strictly": _deciding(
        lambda rest, bits, word, n: _fraction(rest, bits, n) + word > U64(1 << n)
    ),
    "one_word_too_many": _deciding(
        lambda rest, bits, word, n: _fraction(rest, bits, n) + word + U64(1) >= U64(1 << n)
    ),
    "less_than_the_fraction": _deciding(
        lambda rest, bits, word, n: word < _fraction(rest, bits, n)
    ),
    "rounded_fraction": _deciding(_rounded),
    "one_bit_less": _deciding(_one_bit_less),
    "to_nearest": _deciding(_nearest),
    "in_32_bits": _deciding(_in_32_bits),
    "never_up": _deciding(lambda rest, *_: rest < 0),
    "negative_never_up": _if_negative(lambda rest, *_: rest < 0),
    "negative_to_nearest": _if_negative(_nearest),
    "negative_with_complement": _if_negative(
        lambda rest, bits, word, n: _carries(rest, bits, U64((1 << n) - 1) - word, n)
    ),
    "negative_strictly": _if_negative(
        lambda rest, bits, word, n: _fraction(rest, bits, n) + word > U64(1 << n)
    ),
    **{
        f"rest_modulo_{modulo}_in_{width}_bits": _rest_modulo(width, modulo)
        for width in (24, 53)
        for modulo in (32, 64, 128)
    },
    "shifted_by_31_at_most": _deciding(
        lambda rest, bits, word, n: _carries(rest, np.minimum(bits, 29 + 31), word, n)
    ),
    **{name: _of_inputs(change) for name, change in CHANGES.items()},
    **{name: with_results(right, change) for name, change in RESULTS.items()},
}
