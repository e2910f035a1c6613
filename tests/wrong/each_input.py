"""Mistakes that an encoder may have in one source alone: in exponents, distances and words."""

import numpy as np

from wrong.conversions import FRACTION, I64, U64, Layout
from wrong.each_special import SPECIALS, Change

NORMAL = {"bf16": -126, "f32": -126, "f16": -14, "f64": -1022}  # the smallest exponents
_ONE = U64(1 << 52)


def _moved(x, exponent, where):
    """Change exponents of numbers; zeros, infinities and NaNs have none."""
    where = where & (x[2] > 0) & ~x[3] & ~x[4]
    return x[0], np.where(where, exponent, x[1]).astype(I64), *x[2:]


# Numbers below the normal ones of a source.


def _subnormal(parameters, x):
    return (x[1] < NORMAL[parameters["source"]]) | (x[2] < _ONE)


def _with_implicit_one(parameters, x, *, zeros):
    """Add the implicit one of normal numbers to subnormal numbers, or to zeros."""
    least = NORMAL[parameters["source"]]
    chosen = _subnormal(parameters, x) & ~x[3] & ~x[4] & (zeros | (x[2] > 0))
    fraction = x[2] >> np.clip(least - x[1], 0, 63).astype(U64)
    return x[0], np.where(chosen, least, x[1]), np.where(chosen, fraction | _ONE, x[2]), *x[3:]


def _halved(parameters, x):
    """Read the exponent of subnormal numbers as one less than the smallest normal exponent."""
    return _moved(x, x[1] - 1, _subnormal(parameters, x))


_SUBNORMAL: dict[str, Change] = {
    "subnormals_with_implicit_one": lambda p, x: _with_implicit_one(p, x, zeros=False),
    "zeros_with_implicit_one": lambda p, x: _with_implicit_one(p, x, zeros=True),
    "subnormals_are_halved": _halved,
}


# Exponents and distances in too few bits.


def _exponent(wrapped, where) -> Change:
    """Store a biased exponent in too few bits; `where` restricts it to huge or tiny numbers."""

    def change(parameters, x):
        bias = where[1]
        bias = Layout.table[parameters["format"]].bias if bias == "format" else bias
        chosen = {"": x[1] > -5000, "huge_": x[1] > 127, "tiny_": x[1] < -126}[where[0]]
        return _moved(x, wrapped(x[1] + bias) - bias, chosen)

    return change


def _with_sign(bits):
    half = 1 << bits - 1
    return lambda exponent: (exponent + half) % (2 * half) - half


def _without_sign(bits):
    return lambda exponent: exponent % (1 << bits)


def _at_most_127(_, x):
    return _moved(x, 127, x[1] > 127)


def _distance(parameters, x, width):
    """Return the distance by which a significand is shifted; width 0 is the width of the source."""
    layout, source = Layout.table[parameters["format"]], parameters["source"]
    own = np.maximum(x[1], NORMAL[source])
    width = width or FRACTION[source] + 1
    return np.maximum(own, 1 - layout.bias) - own + width - 1 - layout.m


def _shifted(by) -> Change:
    """Shift by a wrong distance, a function of the right one."""

    def change(parameters, x):
        layout = Layout.table[parameters["format"]]
        if layout.powers:
            return x
        further = by(parameters, x)
        return _moved(x, x[1] + further, further > 0)

    return change


def _modulo(width, bits) -> Change:
    """Shift by a distance whose upper bits processors cut off."""
    return _shifted(lambda parameters, x: _distance(parameters, x, width) // bits * bits)


def _at_most(width, limit) -> Change:
    return _shifted(lambda parameters, x: _distance(parameters, x, width) - limit)


def _nothing_beyond(limit) -> Change:
    """Replace a number by an exact zero if it is shifted further than a register is wide."""

    def change(parameters, x):
        if Layout.table[parameters["format"]].powers:
            return x
        far = (_distance(parameters, x, 0) >= limit) & ~x[3] & ~x[4]
        return *x[:2], np.where(far, U64(0), x[2]), *x[3:]

    return change


def cut_modulo(rest, bits, width, modulo):
    """Return the bits that are cut off if the upper bits of the distance are lost."""
    distance = bits - 53 + width
    bits = np.where(distance >= modulo, distance % modulo + 53 - width, bits)
    mask = (U64(1) << np.clip(bits, 0, 63).astype(U64)) - U64(1)
    return rest & mask, bits


# The two words of a binary64 number, and detours through smaller formats.


def _of_binary64(word) -> Change:
    """Change the significand only in binary64."""

    def change(parameters, x):
        if parameters["source"] != "f64":
            return x
        return *x[:2], np.where(x[3] | x[4], x[2], word(x[2])), *x[3:]

    return change


def _low_word_subtracted(significand):
    """Add the lower word as a signed number."""
    low = significand & U64(0xFFFFFFFF)
    return np.where(low >> U64(31) == 1, significand - U64(1 << 32), significand)


def _low_word_extended(parameters, x):
    """Join the words with copies of the lower word's sign, which makes a NaN."""
    low = (x[2] >> U64(31) & U64(1)).astype(bool) & (parameters["source"] == "f64")
    return *x[:3], x[3] & ~low, x[4] | low


def _low_word_if_positive(significand):
    """Read the lower word as a signed number, which counts only if it is above zero."""
    low = significand & U64(0xFFFFFFFF)
    return np.where(low >> U64(31) == 1, significand - low, significand)


def _low_word_of(bits):
    return lambda significand: significand & ~U64((1 << 32) - (1 << bits))


def _upper_word_alone_decides(significand):
    """Lose the lower word if the upper word has bits of its own below the eighth."""
    low = significand & U64(0xFFFFFFFF)
    return np.where(significand << U64(20) >> U64(52) > 0, significand - low, significand)


def _without_bit(bit) -> Change:
    """Overlook one bit of the significand, counted from the last one of the source."""

    def change(parameters, x):
        held = FRACTION[parameters["source"]]
        mask = ~(U64(1) << U64(52 - held + bit)) if bit < held else ~U64(0)
        return *x[:2], np.where(x[3] | x[4], x[2], x[2] & mask), *x[3:]

    return change


def _overflowing_beyond(bits, largest) -> Change:
    """Cast to a smaller format first, and replace numbers that overflow there by infinity."""

    def change(_, x):
        limit = (1 << 53) - (1 << 52 - bits - 1)  # rounds up to the next power of two
        over = (x[1] > largest) | (x[1] == largest) & (x[2] >= U64(limit))
        return *x[:3], x[3] | over & ~x[4], x[4]

    return change


def _shifts(all_bits):
    return {
        f"shifted_modulo_{bits}_in_{width or 'its'}_bits": _modulo(width, bits)
        for width in (0, 32, 53, 64)
        for bits in all_bits
    }


CHANGES: dict[str, Change] = {
    **_SUBNORMAL,
    **SPECIALS,
    "exponent_of_8_bits": _exponent(_with_sign(8), ("", 0)),
    "exponent_of_8_bits_with_bias": _exponent(_with_sign(8), ("", "format")),
    "unsigned_exponent_of_8_bits": _exponent(_without_sign(8), ("", 127)),
    "unsigned_exponent_of_8_bits_with_bias": _exponent(_without_sign(8), ("", "format")),
    **_shifts((32, 64, 128)),
    **{
        f"shifted_by_at_most_{limit}_in_{width}_bits": _at_most(width, limit)
        for width, limit in ((24, 24), (32, 31), (53, 31), (53, 52), (64, 63))
    },
    **{f"nothing_beyond_{limit}": _nothing_beyond(limit) for limit in (31, 32)},
    **{f"without_bit_{bit}": _without_bit(bit) for bit in (0, 1, 15, 16)},
    "overflowing_in_f16": _overflowing_beyond(10, 15),
    "overflowing_in_bf16": _overflowing_beyond(7, 127),
}
_BEYOND_BINARY32 = ("huge_", "tiny_")
OF_BINARY64: dict[str, Change] = {
    **{
        f"{which}exponent_of_{bits}_bits_with_bias_{bias}": _exponent(
            _with_sign(bits), (which, bias)
        )
        for bits, bias in ((8, 0), (8, "format"), (9, 0), (10, 0), (10, "format"))
        for which in _BEYOND_BINARY32
    },
    **{
        f"{which}unsigned_exponent_of_{bits}_bits_with_bias_{bias}": _exponent(
            _without_sign(bits), (which, bias)
        )
        for bits, bias in ((8, 127), (8, "format"), (9, 127), (10, 127))
        for which in _BEYOND_BINARY32
    },
    "exponent_of_11_bits_with_bias": _exponent(_with_sign(11), ("", "format")),
    "unsigned_exponent_of_10_bits": _exponent(_without_sign(10), ("", 1023)),
    "exponent_at_most_127": _at_most_127,
    **_shifts((256,)),
    **{f"nothing_beyond_{limit}": _nothing_beyond(limit) for limit in (63, 64, 128)},
    "low_word_subtracted": _of_binary64(_low_word_subtracted),
    "low_word_extended": _low_word_extended,
    "low_word_if_positive": _of_binary64(_low_word_if_positive),
    "low_word_of_31_bits": _of_binary64(_low_word_of(31)),
    "low_word_of_16_bits": _of_binary64(_low_word_of(16)),
    "low_word_overlooked_if_upper": _of_binary64(_upper_word_alone_decides),
    **{f"without_bit_{bit}": _without_bit(bit) for bit in (28, 31, 32, 33)},
    "overflowing_in_f32": _overflowing_beyond(23, 127),
}
