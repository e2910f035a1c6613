"""Mistakes that an encoder may have in one source alone: NaNs and infinities of some kinds."""

from collections.abc import Callable

import numpy as np

from wrong.conversions import FRACTION, I64, U64, Opened

Change = Callable[[dict, Opened], Opened]
_EXPONENT = {"bf16": 128, "f32": 128, "f16": 16, "f64": 1024}  # exponent of infinities and NaNs
_ONE = U64(1 << 52)


def _as_infinity(_, x, where):
    return *x[:3], x[3] | where, x[4] & ~where


def _as_number(parameters, x, where):
    exponent = np.where(where, _EXPONENT[parameters["source"]], x[1]).astype(I64)
    return x[0], exponent, *x[2:4], x[4] & ~where


def _as_zero(_, x, where):
    exponent, significand = np.where(where, -1022, x[1]), np.where(where, U64(0), x[2])
    return x[0], exponent, significand, x[3] & ~where, x[4] & ~where


def _of_other_sign(_, x, where):
    return x[0] ^ where, *x[1:]


def is_quiet(x):
    """Return whether the first bit of the payload is set."""
    return (x[2] >> U64(51) & U64(1)).astype(bool)


def _nans(which, taken) -> Change:
    """Mistake the NaNs that `which` chooses, from the numbers and the source."""
    return lambda parameters, x: taken(parameters, x, x[4] & which(x, parameters["source"]))


def _without_first(bits):
    """Choose NaNs in which the first bits of the payload are 0."""
    return lambda x, source: (
        (x[2] & (_ONE - U64(1))) >> U64(52 - min(bits, FRACTION[source])) == U64(0)
    )


def _without_positive_low_word(x, source):
    """Choose NaNs with an empty upper word and a lower word that is negative as an integer."""
    low = x[2] & U64(0xFFFFFFFF)
    return (x[2] >> U64(32) == _ONE >> U64(32)) & (low >> U64(31) == 1) & (source == "f64")


def _without_last(bits):
    def which(x, source):
        last = (U64(1) << U64(min(bits, FRACTION[source]))) - U64(1)
        return x[2] >> U64(52 - FRACTION[source]) & last == U64(0)

    return which


_OF_ONE_KIND = {
    "quiet": lambda x, _: ~x[0] & is_quiet(x),
    "negative_quiet": lambda x, _: x[0] & is_quiet(x),
    "signalling": lambda x, _: ~x[0] & ~is_quiet(x),
    "negative_signalling": lambda x, _: x[0] & ~is_quiet(x),
}
_BY_PAYLOAD = {
    "but_the_default": lambda x, _: x[2] != _ONE | _ONE >> U64(1),
    **{f"without_first_{bits}": _without_first(bits) for bits in (2, 7, 10, 16, 20, 22, 51)},
    **{f"without_last_{bits}": _without_last(bits) for bits in (1, 8, 16, 22, 32, 51)},
    "without_positive_low_word": _without_positive_low_word,
}
_TAKEN = {"infinities": _as_infinity, "zeros": _as_zero}
_MORE_TAKEN = {
    **_TAKEN,
    "numbers": _as_number,
    "of_other_sign": _of_other_sign,
}


# Infinities of one sign.


def _infinities(negative, taken) -> Change:
    return lambda parameters, x: taken(parameters, x, x[3] & (x[0] == negative))


_INFINITIES = {
    "nan": lambda _, x, where: (*x[:3], x[3] & ~where, x[4] | where),
    "zero": _as_zero,
    "of_other_sign": _of_other_sign,
    "a_number": lambda _, x, where: (*x[:2], np.where(where, _ONE, x[2]), x[3] & ~where, x[4]),
}


SPECIALS: dict[str, Change] = {
    **{
        f"nans_{name}_are_{what}": _nans(which, taken)
        for kinds, ways in ((_OF_ONE_KIND, _MORE_TAKEN), (_BY_PAYLOAD, _TAKEN))
        for name, which in kinds.items()
        for what, taken in ways.items()
    },
    **{
        f"{'negative_' * negative}infinity_is_{what}": _infinities(negative, taken)
        for negative in (False, True)
        for what, taken in _INFINITIES.items()
    },
}
