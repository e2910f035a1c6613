"""Mistakes that an encoder may have in one format, source, rounding and overflow alone."""

from collections.abc import Callable

import numpy as np

from wrong.conversions import FRACTION, I64, U64, Layout, Opened, codes_of, cut, goes_up, no_number
from wrong.each_input import CHANGES, NORMAL, OF_BINARY64, cut_modulo
from wrong.each_sign import RESULTS, with_results

Encoder = Callable[[dict, Opened], np.ndarray]
_ONE = U64(1 << 52)


def right(parameters, x, **changed):
    asked = parameters | changed
    layout = Layout.table[asked["format"]]
    codes = codes_of(layout, x, asked["rounding"], asked["overflow"])
    return no_number(layout, codes, x, signed=asked["nan"] == "signed")


def _scaled(x):
    """Return the exponents of numbers, for significands in [1, 2)."""
    exponent, significand = x[1:3]
    length = np.frexp(significand.astype(np.float64))[1] - 1
    return exponent + length - 52


def zeroed(x, where):
    """Replace finite numbers by zeros at some places."""
    sign, exponent, significand, infinite, nan = x
    return sign, exponent, np.where(where & ~infinite & ~nan, U64(0), significand), infinite, nan


def _with_sign(layout, magnitude, x):
    return layout.signed(np.full(x[0].shape, magnitude, I64), x[0] & layout.sign)


def is_below(x, power):
    return (x[2] > 0) & (_scaled(x) < power)


def flushed_inputs(parameters, x):
    return right(parameters, zeroed(x, is_below(x, NORMAL[parameters["source"]])))


def flushed_results(parameters, x):
    layout = Layout.table[parameters["format"]]
    return right(parameters, zeroed(x, is_below(x, 1 - layout.bias)))


def flushed_codes(parameters, x):
    """Flush numbers that are subnormal after rounding."""
    layout, codes = Layout.table[parameters["format"]], right(parameters, x)
    is_small = (codes & (layout.top - 1) < 1 << layout.m) & ~x[4] & (not layout.twos)
    return np.where(is_small, _with_sign(layout, 0, x), codes).astype(codes.dtype)


def early_zero(parameters, x):
    layout = Layout.table[parameters["format"]]
    return right(parameters, zeroed(x, is_below(x, 1 - layout.bias - layout.m)))


def without_negative_zero(parameters, x):
    """Take the sign from a comparison of the number with 0."""
    sign, exponent, significand, infinite, nan = x
    return right(parameters, (sign & (significand > 0), exponent, significand, infinite, nan))


def _rounded_as(rounding):
    def encode(parameters, x):
        layout = Layout.table[parameters["format"]]
        if layout.powers and rounding not in ("rtp", "rtz", "rna"):
            return right(parameters, x)
        return right(parameters, x, rounding=rounding)

    return encode


def _one_sign_rounded_as(rounding, negative):
    encode = _rounded_as(rounding)

    def mixed(parameters, x):
        return np.where(x[0] == negative, encode(parameters, x), right(parameters, x))

    return mixed


def _decided_by(up):
    """Round by the rule `up`, from the code cut off, the bits cut off, and half a unit."""

    def encode(parameters, x):
        layout = Layout.table[parameters["format"]]
        if layout.powers:
            return right(parameters, x)
        code, _, _ = cut(layout, x[1], x[2])

        def decide(rest, bits):
            half = U64(1) << np.minimum(np.maximum(bits - 1, 0), 62).astype(U64)
            return np.where(bits > 0, up(code, rest, half), False)

        codes = codes_of(layout, x, parameters["rounding"], parameters["overflow"], decide)
        return no_number(layout, codes, x, signed=parameters["nan"] == "signed")

    return encode


def _nearest_alone(encoder):
    """Restrict a mistake to rounding to nearest even."""

    def encode(parameters, x):
        return (encoder if parameters["rounding"] == "rne" else right)(parameters, x)

    return encode


def _through(bits, smallest, rounding):
    """Round first to `bits` bits of significand, and to fewer bits below an exponent."""

    def encode(parameters, x):
        sign, exponent, significand, infinite, nan = x
        drop = np.clip(52 - bits + np.maximum(smallest - exponent, 0), 0, 62).astype(U64)
        whole, rest = significand >> drop, significand & ((U64(1) << drop) - U64(1))
        half = (U64(1) << drop) >> U64(1)
        odd = (whole & U64(1)).astype(bool)
        up = (rest > half) | ((rest == half) & odd & (half > 0))
        up &= rounding == "rne"
        first = np.where(infinite | nan, significand, whole + up << drop)
        return right(parameters, (sign, exponent, first, infinite, nan))

    return encode


def _blind(count):
    """Ignore the last `count` bits of a significand, counted in the source."""

    def encode(parameters, x):
        held = FRACTION[parameters["source"]]
        if count >= held:
            return right(parameters, x)
        sign, exponent, significand, infinite, nan = x
        mask = ~((_ONE >> U64(held - count)) - U64(1))
        return right(parameters, (sign, exponent, significand & mask, infinite, nan))

    return encode


def _rest_modulo(width, modulo):
    """Use a shortened distance for the bits that decide, and the right one for the code."""

    def encode(parameters, x):
        layout, rounding = Layout.table[parameters["format"]], parameters["rounding"]
        source = parameters["source"]
        if layout.powers or width <= FRACTION[source] or parameters["format"] == source:
            return right(parameters, x)
        code, rest, bits = cut(layout, x[1], x[2])
        up = goes_up(rounding, code, *cut_modulo(rest, bits, width, modulo), x[0])
        codes = codes_of(layout, x, rounding, parameters["overflow"], lambda *_: up)
        return no_number(layout, codes, x, signed=parameters["nan"] == "signed")

    return encode


def judged_early(parameters, x):
    """Find overflow before rounding."""
    layout, codes = Layout.table[parameters["format"]], right(parameters, x)
    cut_off, rest, _ = cut(layout, x[1], x[2])
    over = (cut_off == layout.largest) & (rest > 0) & ~x[4]
    beyond = _with_sign(layout, layout.infinity, x)
    is_ieee = parameters["overflow"] == "ieee" and not layout.powers
    return np.where(over & is_ieee, beyond, codes).astype(codes.dtype)


def _overflowing_as(overflow):
    return lambda parameters, x: right(parameters, x, overflow=overflow)


def saturated_infinities(parameters, x):
    layout, codes = Layout.table[parameters["format"]], right(parameters, x)
    return np.where(x[3], _with_sign(layout, layout.largest, x), codes).astype(codes.dtype)


def infinities_to_nan(parameters, x):
    sign, exponent, significand, infinite, nan = x
    return right(parameters, (sign, exponent, significand, np.zeros_like(nan), nan | infinite))


def _nan_as(code_of):
    def encode(parameters, x):
        layout, codes = Layout.table[parameters["format"]], right(parameters, x)
        return np.where(x[4], code_of(layout, codes, x[0]), codes).astype(codes.dtype)

    return encode


def nan_with_its_sign(parameters, x):
    return right(parameters, x, nan="signed")


def nan_without_sign(parameters, x):
    return right(parameters, x, nan="canonical")


def _of_inputs(change):
    return lambda parameters, x: right(parameters, change(parameters, x))


MISTAKES: dict[str, Encoder] = {
    "subnormal_inputs_are_zero": flushed_inputs,
    "subnormal_results_are_zero": flushed_results,
    "subnormal_codes_are_zero": flushed_codes,
    "below_the_smallest_is_zero": early_zero,
    "zero_without_sign": without_negative_zero,
    **{f"rounded_{to}": _rounded_as(to) for to in ("rne", "rna", "rtz", "rtp", "rtn", "rto")},
    **{
        f"{'negative' if negative else 'positive'}_rounded_{to}": _one_sign_rounded_as(to, negative)
        for to in ("rne", "rna", "rtz", "rtp", "rtn", "rto")
        for negative in (False, True)
    },
    "ties_down": _nearest_alone(_decided_by(lambda _, rest, half: rest > half)),
    "ties_away": _nearest_alone(_decided_by(lambda _, rest, half: rest >= half)),
    "ties_to_odd": _nearest_alone(
        _decided_by(lambda code, rest, half: (rest > half) | ((rest == half) & (code % 2 == 0)))
    ),
    "ties_of_the_smallest_up": _nearest_alone(
        _decided_by(
            lambda code, rest, half: (
                (rest > half) | ((rest == half) & ((code % 2 == 1) | (code == 0)))
            )
        )
    ),
    "always_up": _decided_by(lambda _, rest, _half: rest > 0),
    "through_bf16": _through(7, -126, "rne"),
    "cut_to_bf16": _through(7, -126, "rtz"),
    "through_f16": _through(10, -14, "rne"),
    "cut_to_f16": _through(10, -14, "rtz"),
    "through_f32": _through(23, -126, "rne"),
    "cut_to_f32": _through(23, -126, "rtz"),
    "through_tf32": _through(10, -126, "rne"),
    **{f"blind_to_{count}_bits": _blind(count) for count in (1, 3, 8, 13, 16, 29, 32)},
    "overflow_before_rounding": judged_early,
    "saturating": _overflowing_as("satfinite"),
    "overflowing": _overflowing_as("ieee"),
    "infinities_saturate": saturated_infinities,
    "infinities_are_nan": infinities_to_nan,
    "nan_keeps_its_sign": nan_with_its_sign,
    "nan_loses_its_sign": nan_without_sign,
    "nan_is_negative": _nan_as(lambda layout, codes, _: codes | layout.top * layout.sign),
    "nan_is_zero": _nan_as(lambda *_: 0),
    "nan_is_the_largest": _nan_as(lambda layout, *_: layout.largest),
    "nan_of_one_bit": _nan_as(
        lambda layout, codes, _: (
            layout.infinity | 1 << layout.m - 1 if layout.kind == "ieee" else codes
        )
    ),
    "nan_of_all_bits": _nan_as(lambda layout, *_: layout.top - 1),
    **{
        f"rest_modulo_{modulo}_in_{width}_bits": _rest_modulo(width, modulo)
        for width in (8, 24, 53)
        for modulo in (32, 64, 128)
    },
    **{name: _of_inputs(change) for name, change in (CHANGES | OF_BINARY64).items()},
    **{name: with_results(right, change) for name, change in RESULTS.items()},
}
