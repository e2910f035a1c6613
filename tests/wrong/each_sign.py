"""Mistakes that an encoder may have in the results of one sign alone."""

import numpy as np

from wrong.conversions import I64, Layout, cut
from wrong.each_special import is_quiet


def with_results(right, change):
    """Change the codes that the right encoder returns."""

    def encode(parameters, x, *words):
        layout, codes = Layout.table[parameters["format"]], right(parameters, x, *words)
        return change(layout, x, codes.astype(I64)).astype(codes.dtype)

    return encode


def _tiny_without_sign(layout, x, codes):
    """Lose the sign of a number that becomes zero."""
    is_lost = (codes == layout.top) & (x[2] > 0) & ~x[4] & (layout.kind != "fnuz")
    return np.where(is_lost & layout.sign & (not layout.twos), 0, codes)


def _zero_with_sign(layout, x, codes):
    """Set the sign of each negative zero, which is the code of NaN in some formats."""
    return np.where((codes == 0) & x[0] & (x[2] == 0) & layout.sign, layout.top, codes)


def _tiny_with_sign(layout, x, codes):
    return np.where((codes == 0) & x[0] & (x[2] > 0) & ~x[4] & layout.sign, layout.top, codes)


def _finite(x):
    return ~x[3] & ~x[4]


def _magnitude(layout, codes):
    if layout.twos:
        return np.where(codes > layout.largest, 2 * layout.top - codes, codes)
    return np.where(codes == layout.top, codes, codes & layout.top - 1)


def _one_more(negative):
    """Saturate at the code after the largest one, for numbers of one sign."""

    def change(layout, x, codes):
        is_largest = (_magnitude(layout, codes) == layout.largest) & ~x[4]
        after = layout.signed(np.full(codes.shape, layout.largest + 1), x[0])
        return np.where(is_largest & (x[0] == negative), after, codes)

    return change


def _never_the_largest(negative):
    """Overflow at the largest number, for numbers of one sign."""

    def change(layout, x, codes):
        is_largest = (_magnitude(layout, codes) == layout.largest) & _finite(x)
        beyond = layout.signed(np.full(codes.shape, layout.infinity), x[0])
        return np.where(is_largest & (x[0] == negative), beyond, codes)

    return change


def _positive(layout, x, codes):
    """Lose the sign of numbers that overflow or saturate."""
    magnitude = _magnitude(layout, codes)
    return np.where((magnitude >= layout.largest) & ~x[4], magnitude, codes)


def _negative_zero(_, x, codes):
    """Replace numbers below zero by 0."""
    return np.where(x[0] & ~x[4], 0, codes)


def _negative_nan(layout, x, codes):
    return np.where(x[0] & (x[2] > 0) & ~x[4], layout.nan, codes)


def _nan_with_sign(quiet):
    """Keep the sign of only the quiet NaNs, or only the signalling ones."""

    def change(layout, x, codes):
        chosen = x[4] & x[0] & (is_quiet(x) == quiet)
        return np.where(chosen, layout.signed(codes & layout.top - 1, x[0]), codes)

    return change


def _beyond(code_of, negative):
    """Give finite numbers beyond the largest one a code of their own, for one sign."""

    def change(layout, x, codes):
        if layout.powers:
            return codes
        over = (cut(layout, x[1], x[2])[0] > layout.largest) & _finite(x) & (x[0] == negative)
        return np.where(over, layout.signed(np.full(codes.shape, code_of(layout)), x[0]), codes)

    return change


def _infinity(negative):
    """Keep infinities of one sign, also where they should saturate."""

    def change(layout, x, codes):
        beyond = layout.signed(np.full(codes.shape, layout.infinity), x[0])
        return np.where(x[3] & (x[0] == negative), beyond, codes)

    return change


def _without_carry(layout, x, codes):
    """Lose the carry of rounding from the mantissa to the exponent."""
    if layout.powers or layout.twos:
        return codes
    cut_off, mask = cut(layout, x[1], x[2])[0], (1 << layout.m) - 1
    carried = (cut_off & mask == mask) & (codes & layout.top - 1 == cut_off + 1) & _finite(x)
    return np.where(carried, codes - mask - 1, codes)


RESULTS = {
    **{
        f"beyond_the_{'smallest' if negative else 'largest'}_is_{name}": _beyond(code_of, negative)
        for negative in (False, True)
        for name, code_of in (
            ("infinite", lambda layout: layout.infinity),
            ("finite", lambda layout: layout.largest),
        )
    },
    "infinity_overflows": _infinity(negative=False),
    "negative_infinity_overflows": _infinity(negative=True),
    "without_carry": _without_carry,
    "tiny_numbers_lose_their_sign": _tiny_without_sign,
    "zeros_keep_their_sign": _zero_with_sign,
    "tiny_numbers_keep_their_sign": _tiny_with_sign,
    "one_more_than_the_largest": _one_more(negative=False),
    "one_less_than_the_smallest": _one_more(negative=True),
    "never_the_largest": _never_the_largest(negative=False),
    "never_the_smallest": _never_the_largest(negative=True),
    "saturated_without_sign": _positive,
    "negative_numbers_are_zero": _negative_zero,
    "negative_numbers_are_nan": _negative_nan,
    "quiet_nans_keep_their_sign": _nan_with_sign(quiet=True),
    "signalling_nans_keep_their_sign": _nan_with_sign(quiet=False),
}
