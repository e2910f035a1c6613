"""Operators on what encoders and decoders compute: numbers, roundings, codes and NaN bits.

Each is called with the right function and its operands, and returns what a wrong program uses.
"""

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from mor_ref.definitions.encoding import Overflow, Rounding, SpecialCases
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.deviations.floating_point import flushed, log2_in_binary32
from mor_ref.exact.arithmetic import nearest_in, rn32, rn32_of_binary64
from mor_ref.exact.decoding import nan_bits
from mor_ref.exact.encoding import floor_log2, in_units_of, with_sign
from mor_ref.mistakes.mistake import Operator
from mor_ref.mistakes.operators_of_blocks import OPERATORS_OF_BLOCKS

_DEFAULT = SpecialCases()
_BF16, _F16, _F32 = formats["bf16"], formats["f16"], formats["f32"]
_LAST_BIT = 23  # of a significand of binary32, below the hidden bit
_INFINITY, _QUIET = 0x7F800000, 0x7FC00000  # in binary32

# ---------------------------------------------------------------------- inputs


def _of_input(change: Callable[[float], float]) -> Callable[..., float]:
    return lambda _, x, *__: change(x) if math.isfinite(x) else x


def _nearest(fmt: Format) -> Callable[..., float]:
    return _of_input(lambda x: nearest_in(x, fmt))


def _cut_to_bits(kept: int) -> Callable[[float], float]:
    """Return a number without the last of the 64 bits of binary64, or of 32 of binary32."""

    def cut(x: float) -> float:
        (word,) = struct.unpack(">Q", struct.pack(">d", x))
        (found,) = struct.unpack(">d", struct.pack(">Q", word >> 64 - kept << 64 - kept))
        return float(found)

    return cut


def _upper_word(_: Any, x: float, *__: Any) -> float:
    """Return a number, or a NaN whose payload may be lost, which is then infinite."""
    return _cut_to_bits(32)(x)


def _flushed_in(fmt: Format) -> Callable[[float], float]:
    smallest = math.ldexp(1.0, fmt.smallest_exponent)
    return lambda x: math.copysign(0.0, x) if abs(x) < smallest else x


THROUGH = (
    Operator("through-bf16", "is rounded to bfloat16 before it is encoded", _nearest(_BF16)),
    Operator("through-f16", "is rounded to binary16 before it is encoded", _nearest(_F16)),
    Operator(
        "cut-to-bf16",
        "is cut to its upper 16 bits, which are bfloat16, before it is encoded",
        _of_input(_cut_to_bits(1 + 11 + 7)),
    ),
)
THROUGH_F32 = (
    Operator(
        "through-f32",
        "in binary64 is rounded to binary32 before it is encoded",
        lambda _, x, *__: rn32_of_binary64(x),
    ),
)
UPPER_WORDS = (
    Operator(
        "of-upper-word",
        "in binary64 loses its lower 32 bits before it is encoded",
        _upper_word,
    ),
)
FLUSHED = (
    Operator("flushed", "is 0 if it is subnormal in binary32", lambda _, x, *__: flushed(x)),
)
FLUSHED_IN_F16 = (
    Operator("flushed-in-f16", "is 0 if it is subnormal in binary16", _of_input(_flushed_in(_F16))),
)
SPECIAL = (
    Operator(
        "special-cases-ignored",
        "overflow and NaN are the default, even if ieee, signed or a profile is asked for",
        lambda *_: _DEFAULT,
    ),
)

# ---------------------------------------------------------------------- the codes of numbers


class _Asked(NamedTuple):
    """What `encode` is asked for: a number and a format, and how."""

    x: float
    fmt: Format
    rounding: Rounding | None = None
    special: SpecialCases = _DEFAULT


def _of_code(change: Callable[[Callable[[float], int], _Asked], int]) -> Callable[..., int]:
    """Return another code of finite numbers; `change` gets what encodes a number as it is asked."""

    def wrong(right: Any, *operands: Any, **random: Any) -> int:
        asked = _Asked(*operands)
        if not math.isfinite(asked.x):
            return int(right(*operands, **random))
        return change(lambda x: int(right(x, *operands[1:], **random)), asked)

    return wrong


def _flushed_below(smallest: Callable[[Format], int]) -> Callable[..., int]:
    """Return an encoder that takes numbers below a power of two as zeros."""

    def change(code_of: Callable[[float], int], asked: _Asked) -> int:
        is_small = abs(asked.x) < math.ldexp(1.0, smallest(asked.fmt))
        return code_of(math.copysign(0.0, asked.x) if is_small else asked.x)

    return _of_code(change)


def _with_half_added(code_of: Callable[[float], int], asked: _Asked) -> int:
    exponent = max(floor_log2(asked.x or 1.0), asked.fmt.smallest_exponent)
    unit = exponent - asked.fmt.mantissa_bits
    units = math.floor(rn32_of_binary64(math.ldexp(abs(asked.x), -unit) + 0.5))
    return code_of(math.copysign(math.ldexp(units, unit), asked.x)) if asked.x else code_of(asked.x)


def _judged_early(code_of: Callable[[float], int], asked: _Asked) -> int:
    is_above = abs(asked.x) > asked.fmt.largest
    return code_of(math.copysign(2 * asked.fmt.largest, asked.x) if is_above else asked.x)


def _judged_by_the_code_below(right: Any, *operands: Any, **random: Any) -> int:
    """Return the largest number for what is rounded up to above it."""
    asked = _Asked(*operands)
    if not math.isfinite(asked.x) or abs(asked.x) >= _next_above(asked.fmt):
        return int(right(*operands, **random))
    return int(right(asked.x, asked.fmt, "sr", SpecialCases(nan=asked.special.nan), **random))


def _next_above(fmt: Format) -> float:
    """Return the number after the largest one, if the format went on."""
    unit = floor_log2(fmt.largest) - fmt.mantissa_bits
    return fmt.largest + math.ldexp(1.0, unit)


def _with_tie_above(code_of: Callable[[float], int], asked: _Asked) -> int:
    is_tie = 2 * abs(asked.x) == asked.fmt.largest + _next_above(asked.fmt)
    return code_of(math.copysign(2 * asked.fmt.largest, asked.x) if is_tie else asked.x)


def _without_carry(code_of: Callable[[float], int], asked: _Asked) -> int:
    code, fmt = code_of(asked.x), asked.fmt
    magnitude = code & ~fmt.sign_bit
    has_carried = magnitude and not magnitude % (1 << fmt.mantissa_bits)
    is_above = has_carried and abs(fmt.value(code)) > abs(asked.x)
    return code - (1 << fmt.mantissa_bits) if is_above else code


def _infinity_as_a_number(right: Any, x: float, fmt: Format, *rest: Any, **random: Any) -> int:
    finite = math.copysign(2 * fmt.largest, x) if math.isinf(x) else x
    return int(right(finite, fmt, *rest, **random))


def _by_conversion(code_of: Callable[[float], int], asked: _Asked) -> int:
    unit = asked.fmt.smallest_exponent - asked.fmt.mantissa_bits
    is_beyond = abs(math.ldexp(asked.x, -unit)) >= 1 << 31
    return code_of(-asked.fmt.largest if is_beyond else asked.x)


SMALL_CODES = (
    Operator(
        "below-smallest-zero",
        "numbers below the smallest one of the format become zero, even those above half of it",
        _flushed_below(lambda fmt: fmt.smallest_exponent - fmt.mantissa_bits),
    ),
    Operator(
        "flushed-before-rounding",
        "numbers below the smallest normal one of the format become zero before they are rounded",
        _flushed_below(lambda fmt: fmt.smallest_exponent),
    ),
)
CARRIES = (
    Operator(
        "carry-lost",
        "a mantissa that is rounded up to 2 becomes 1 without a carry into the exponent",
        _of_code(_without_carry),
    ),
)
ADDED_HALVES = (
    Operator(
        "half-added-in-binary32",
        "under rna, |x| / u + 0.5 is computed in binary32, where the sum is rounded",
        _of_code(_with_half_added),
    ),
)
EARLY = (
    Operator(
        "judged-before-rounding",
        "a number above the largest overflows, even if it would round to the largest",
        _of_code(_judged_early),
    ),
    Operator(
        "tie-overflows",
        "the tie above the largest number overflows, even if the largest is even",
        _of_code(_with_tie_above),
    ),
)
EARLY_AT_RANDOM = (
    Operator(
        "judged-by-code-below",
        "a number that random bits round up from the largest becomes the largest",
        _judged_by_the_code_below,
    ),
)
INFINITE = (
    Operator(
        "infinity-as-number",
        "an infinity is rounded as a number above the largest: under rtz, it becomes the largest",
        _infinity_as_a_number,
    ),
)
INTEGERS = (
    Operator(
        "through-int32",
        "a number of 2^31 units or more is the lowest 32-bit integer, as x86 converts it",
        _of_code(_by_conversion),
    ),
)


# ---------------------------------------------------------------------- signs


def _by_comparison(_: Any, one: float, x: float) -> float:
    return -one if x < 0 else one


def _signed(change: Callable[[int, bool, Format], tuple[int, bool]]) -> Callable[..., int]:
    return lambda right, code, negative, fmt: right(*change(code, negative, fmt), fmt)


def _as_sign_magnitude(right: Any, code: int, negative: bool, fmt: Format) -> int:
    return code | fmt.sign_bit if negative else int(right(code, negative, fmt))


SIGNS = (
    Operator("by-comparison", "is x < 0, which is false for -0", _by_comparison),
    Operator("left-out", "is left out: codes are those of magnitudes", lambda *_: 1.0),
)
ZEROS = (
    Operator(
        "negative-zero-lost",
        "negative results that are zero have the code of +0",
        _signed(lambda code, negative, _: (code, negative and code != 0)),
    ),
)
SUBNORMALS = (
    Operator(
        "subnormals-flushed",
        "results below the smallest normal number become zero",
        _signed(
            lambda code, negative, fmt: (0 if code < 1 << fmt.mantissa_bits else code, negative)
        ),
    ),
)
OF_FNUZ = (
    Operator(
        "fnuz-zero-signed",
        "negative results that are zero have the sign bit in fnuz, which is NaN",
        _as_sign_magnitude,
    ),
)
OF_INTEGERS = (
    Operator(
        "sign-magnitude",
        "negative integers have a sign bit and a magnitude, not two's complement",
        _as_sign_magnitude,
    ),
)

# ---------------------------------------------------------------------- roundings


def _as(mode: Rounding) -> Callable[..., bool]:
    """Return the decision of another rounding."""
    return lambda right, fmt, _, *rest, **known: right(fmt, mode, *rest, **known)


def _ties(go_up: Callable[[bool, bool], bool]) -> Callable[..., bool]:
    """Return a rounding to nearest, whose ties go up by the oddness below and the sign."""

    def wrong(
        _: Any, fmt: Format, mode: Rounding, rest: int, whole: int, *, odd: bool, negative: bool
    ) -> bool:
        del fmt, mode
        return 2 * rest > whole or (2 * rest == whole and go_up(odd, negative))

    return wrong


def _other_way(right: Any, fmt: Format, mode: Rounding, *rest: int, **known: bool) -> bool:
    return bool(right(fmt, "rtn" if mode == "rtp" else "rtp", *rest, **known))


def _by_magnitude(
    right: Any, fmt: Format, mode: Rounding, *rest: int, odd: bool, **_: bool
) -> bool:
    return bool(right(fmt, mode, *rest, odd=odd, negative=mode == "rtn"))


def _to_even(
    _: Any, fmt: Format, mode: Rounding, rest: int, whole: int, *, odd: bool, negative: bool
) -> bool:
    del fmt, mode, whole, negative
    return rest > 0 and odd


TRUNCATED = Operator(
    "truncated", "numbers are cut to the code below instead of rounded", _as("rtz")
)
TIES_AWAY = Operator(
    "ties-away",
    "numbers halfway between two codes go away from zero, not to the even one",
    _as("rna"),
)
_TIES_TOWARD_ZERO = Operator(
    "ties-toward-zero",
    "thresholds are compared with >, so ties take the code below",
    _ties(lambda *_: False),
)
NEAREST = (
    TIES_AWAY,
    TRUNCATED,
    _TIES_TOWARD_ZERO,
    Operator(
        "ties-to-odd", "ties take the odd code, not the even one", _ties(lambda odd, _: not odd)
    ),
    Operator(
        "ties-toward-positive",
        "ties go up as in floor(x + 0.5): away from zero if positive, toward zero if negative",
        _ties(lambda _, negative: not negative),
    ),
    Operator(
        "rounded-away",
        "numbers between two codes take the one above",
        lambda _, __, ___, rest, *____, **_____: rest > 0,
    ),
)
NEAREST_AWAY = (
    Operator("rna-ties-to-even", "under rna, ties take the even code, as under rne", _as("rne")),
    _TIES_TOWARD_ZERO._replace(
        name="rna-ties-toward-zero", words="under rna, ties take the code below"
    ),
    TRUNCATED._replace(name="rna-truncated", words="under rna, numbers are cut to the code below"),
)
TOWARD_ZERO = (Operator("rtz-to-nearest", "under rtz, numbers are rounded to nearest", _as("rne")),)
DIRECTED = (
    Operator(
        "directed-by-magnitude",
        "under rtp and rtn, magnitudes are rounded, whatever the sign",
        _by_magnitude,
    ),
    Operator(
        "directed-other-way", "under rtp, numbers are rounded down, and under rtn up", _other_way
    ),
    TRUNCATED._replace(name="directed-truncated", words="under rtp and rtn, numbers are cut"),
    Operator(
        "directed-to-nearest", "under rtp and rtn, numbers are rounded to nearest", _as("rne")
    ),
)
ODD = (
    TRUNCATED._replace(
        name="odd-truncated", words="under rto, numbers are cut, without a sticky bit"
    ),
    Operator("odd-to-nearest", "under rto, numbers are rounded to nearest", _as("rne")),
    Operator("odd-to-even", "under rto, numbers between two codes take the even one", _to_even),
)
POWERS = (
    TRUNCATED._replace(words="the exponent is cut, even with rtp"),
    Operator(
        "to-nearest", "the exponent is that of the nearest power of two, even with rtp", _as("rna")
    ),
    Operator("rounded-up", "the exponent is rounded up, even with rtz and rna", _as("rtp")),
    _TIES_TOWARD_ZERO._replace(words="under rna, 1.5 * 2^e becomes 2^e"),
)


def _of_few_bits(count: int) -> Callable[..., tuple[int, int, int]]:
    """Return a fraction that is cut to some bits."""

    def wrong(right: Any, unit: int, magnitude: float) -> tuple[int, int, int]:
        below, rest, whole = right(unit, magnitude)
        return below, (rest << count) // whole, 1 << count

    return wrong


FRACTIONS = (
    Operator("of-1-bit", "is cut to 1 bit: what is just above a tie is one", _of_few_bits(1)),
    Operator("of-2-bits", "is cut to 2 bits, without a sticky bit", _of_few_bits(2)),
    Operator("of-8-bits", "is cut to 8 bits, without a sticky bit", _of_few_bits(8)),
)

# ---------------------------------------------------------------------- random bits


def _rounded_fraction(_: Any, rest: int, whole: int) -> int:
    return (2 * rest + whole) // (2 * whole)


def _of_32_bits(_: Any, rest: int, whole: int, word: int, n: int) -> bool:
    del n
    return (rest << 32) // whole + word >= 1 << 32


def _below_the_fraction(_: Any, rest: int, whole: int, word: int, n: int) -> bool:
    return word < (rest << n) // whole


def _in_binary32(_: Any, rest: int, whole: int, word: int, n: int) -> bool:
    fraction, uniform = (rn32(Fraction(a, b)) for a, b in ((rest, whole), (word, 1 << n)))
    return rn32_of_binary64(fraction + uniform) >= 1


def _in_binary64(_: Any, rest: int, whole: int, word: int, n: int) -> bool:
    return float(Fraction(rest, whole)) + math.ldexp(word, -n) >= 1


RANDOM = (
    Operator(
        "word-of-32-bits",
        "the random bits are added at the lower end of a fraction of 32 bits",
        _of_32_bits,
    ),
    Operator(
        "word-below-fraction",
        "a number goes up if its word is below F: as often as it should, but for other words",
        _below_the_fraction,
    ),
    Operator("in-binary32", "f + r / 2^n is computed in binary32, and rounded", _in_binary32),
    Operator("in-binary64", "f + r / 2^n is computed in binary64, and rounded", _in_binary64),
)
LARGEST = (
    Operator(
        "with-equals",
        "holds for the largest number as well, which is infinite with ieee",
        lambda _, code, largest: code >= largest,
    ),
)
THRESHOLDS = (
    Operator("without-equals", "F + r > 2^n rounds up, not F + r >= 2^n", lambda _, a, b: a > b),
    Operator(
        "one-less", "F + r >= 2^n - 1 rounds up: one word too many", lambda _, a, b: a >= b - 1
    ),
)
FS = (
    Operator("rounded", "is the fraction rounded to n bits, not cut", _rounded_fraction),
    Operator(
        "rounded-up", "is the fraction rounded up to n bits, not cut", lambda _, a, b: -(-a // b)
    ),
)
SUMS = (
    Operator(
        "in-32-bits",
        "is computed in 32 bits, where it overflows with n = 32",
        lambda _, a, b: (a + b) % (1 << 32),
    ),
)
WORDS = (
    Operator(
        "of-upper-bits",
        "is the upper n bits of 32, where the lower n are given",
        lambda _, word, _rest, _whole, n: word >> 32 - n,
    ),
    Operator(
        "complemented",
        "is 2^n - 1 - r: numbers go up for other words",
        lambda _, word, _rest, _whole, n: (1 << n) - 1 - word,
    ),
)


def _dropped(x: float, fmt: Format) -> tuple[int, int, int]:
    """Return the unit of a code, and the bits of a significand of binary32 below it, as a count."""
    smallest = _F32.smallest_exponent
    exponent = max(floor_log2(x), smallest) if x else smallest
    unit = max(exponent, fmt.smallest_exponent) - fmt.mantissa_bits
    count = unit - exponent + _LAST_BIT
    significand, _, _ = in_units_of(exponent - _LAST_BIT, x)
    return unit, significand & ((1 << count) - 1), count


def _by_bits(goes_up: Callable[..., bool]) -> Callable[..., int]:
    """Return an encoder of binary32 that decides by dropped bits, their count, a word and n."""

    def wrong(right: Any, x: float, fmt: Format, *rest: Any, **random: Any) -> int:
        if not math.isfinite(x) or fmt.mantissa_bits >= _LAST_BIT or rn32_of_binary64(x) != x:
            return int(right(x, fmt, *rest, **random))
        word, n = random["random_word"], random["n_random_bits"]
        unit, bits, count = _dropped(abs(x), fmt)
        up = goes_up(bits, count, word, n, _LAST_BIT - fmt.mantissa_bits)
        units, _, _ = in_units_of(unit, abs(x))
        # Between two codes, all bits of a word lead to the one above.
        number = math.copysign(math.ldexp(units + up / 2, unit), x)
        return int(right(number, fmt, *rest, random_word=(1 << n) - 1, n_random_bits=n))

    return wrong


def _first_bits(bits: int, count: int, n: int) -> int:
    return bits >> max(count - n, 0) << max(n - count, 0)


def _as_normal(bits: int, count: int, word: int, n: int, normal: int) -> bool:
    aligned = word << normal - n if normal > n else word >> n - normal
    return bits + aligned >= 1 << count


def _modulo_32(bits: int, count: int, word: int, n: int, _: int) -> bool:
    away = count - n & 31 if count > n else 0
    return (bits >> away << max(n - count, 0)) + word >= 1 << n


def _at_most_31(bits: int, count: int, word: int, n: int, _: int) -> bool:
    return _first_bits(bits, min(count, 31), n) + word >= 1 << n


def _unaligned(bits: int, count: int, word: int, n: int, _: int) -> bool:
    return (bits >> max(count - n, 0)) + word >= 1 << min(n, count)


ALIGNED = (
    Operator(
        "word-aligned-as-normal",
        "the random bits are added where a normal number ends, also if the result is subnormal",
        _by_bits(_as_normal),
    ),
    Operator(
        "shift-modulo-32",
        "the dropped bits are shifted by a distance modulo 32, as processors do",
        _by_bits(_modulo_32),
    ),
    Operator(
        "shift-at-most-31", "the dropped bits are shifted by 31 bits at most", _by_bits(_at_most_31)
    ),
    Operator(
        "word-unaligned",
        "dropped bits that are fewer than the random bits are not aligned with them",
        _by_bits(_unaligned),
    ),
)

# ---------------------------------------------------------------------- overflow


def _overflow_of(overflow: Overflow) -> Callable[..., int]:
    """Return the code of an overflow or an infinity under another rule."""
    return lambda right, *step: int(right(*step[:-1], SpecialCases(overflow=overflow)))


def _first_kept(right: Any, code: int, negative: bool, fmt: Format, *rest: Any) -> int:
    is_first = code == fmt.largest_code + 1
    return with_sign(code, negative, fmt) if is_first else int(right(code, negative, fmt, *rest))


def _wrapped(right: Any, code: int, negative: bool, fmt: Format, *rest: Any) -> int:
    del right, rest
    return with_sign(code % (fmt.sign_bit or fmt.code_count), negative, fmt)


def _in_direction(mode: Rounding) -> Callable[..., int]:
    return lambda right, code, negative, fmt, _, special: int(
        right(code, negative, fmt, mode, special)
    )


def _of_magnitude(right: Any, code: int, negative: bool, fmt: Format, *rest: Any) -> int:
    return with_sign(int(right(code, False, fmt, *rest)), negative, fmt)


def _unsigned(right: Any, code: int, _: bool, fmt: Format, *rest: Any) -> int:
    return int(right(code, False, fmt, *rest))


def _lowest(right: Any, code: int, negative: bool, fmt: Format, *rest: Any) -> int:
    return fmt.sign_bit if negative else int(right(code, negative, fmt, *rest))


def _nan_for_infinity(right: Any, negative: bool, fmt: Format, special: SpecialCases) -> int:
    code = fmt.canonical_nan_code
    return int(right(negative, fmt, special)) if code is None else code


NOT_SATURATED = (
    Operator(
        "not-saturated",
        "an overflow becomes infinity or NaN, even with satfinite, in formats that have one",
        _overflow_of("ieee"),
    ),
)
SATURATED = (
    Operator(
        "saturated",
        "an overflow becomes the largest number, even with ieee",
        _overflow_of("satfinite"),
    ),
)
FIRST_KEPT = (
    Operator(
        "first-above-kept",
        "only numbers above the next code saturate: 464 becomes NaN in e4m3, not 448",
        _first_kept,
    ),
)
WRAPPED = (
    Operator("wrapped", "an overflow has the lower bits of the code that it would have", _wrapped),
)
DIRECTIONS = (
    Operator(
        "direction-ignored",
        "overflow ignores the direction of a rounding: with ieee, even rtz goes to infinity",
        _in_direction("rne"),
    ),
)
SIGNS_OF_OVERFLOWS = (
    Operator(
        "direction-of-magnitude",
        "with ieee, every overflow is infinite under rtp and none under rtn, whatever the sign",
        _of_magnitude,
    ),
)
NANS_OF_OVERFLOWS = (Operator("nan-without-sign", "an overflow to NaN has no sign", _unsigned),)
LOWEST = (
    Operator(
        "lowest-reached",
        "negative numbers of int8_mx reach the code 0x80, which the reference never writes",
        _lowest,
    ),
)
NOT_SATURATED_INFINITIES = (
    Operator(
        "not-saturated",
        "stays infinite or becomes NaN, even with satfinite, in formats that have one",
        _overflow_of("ieee"),
    ),
)
SATURATED_INFINITIES = (
    Operator("saturated", "becomes the largest number, even with ieee", _overflow_of("satfinite")),
)
INFINITIES = (Operator("nan", "becomes NaN", _nan_for_infinity),)
NEITHER_SATURATED = NOT_SATURATED[0]._replace(
    words="overflows and infinities become infinity or NaN, even with satfinite, in formats that "
    "have one"
)
BOTH_SATURATED = SATURATED[0]._replace(
    words="overflows and infinities become the largest number, even with ieee"
)

# ---------------------------------------------------------------------- NaN


def _nan_as(code_of: Callable[[Format, int], int]) -> Callable[..., int]:
    """Return another code of a NaN, given the format and the right one."""
    return lambda right, x, fmt, special: code_of(fmt, int(right(x, fmt, special)))


def _lowest_number(fmt: Format, _: int = 0) -> int:
    return with_sign(fmt.largest_code, fmt.sign != "none", fmt)


def _of_one_bit(fmt: Format, code: int) -> int:
    first = fmt.mantissa_bits - 1
    return (fmt.infinity_code or 0) | 1 << first | code & fmt.sign_bit


def _of_all_bits(fmt: Format, code: int) -> int:
    return fmt.code_count - 1 if fmt.sign == "none" else fmt.sign_bit - 1 | code & fmt.sign_bit


def _sign_kept(right: Any, x: float, fmt: Format, _: SpecialCases) -> int:
    return int(right(x, fmt, SpecialCases(nan="signed")))


def _upper_half(x: float) -> int:
    """Return the upper 16 bits of binary32, of a NaN of binary64."""
    (word,) = struct.unpack(">Q", struct.pack(">d", x))
    return int(word >> 48 & 0x8000 | 0x7F80 | word >> 45 & 0x7F)


def _rounded_payload(_: Any, x: float, *__: Any) -> int:
    """Return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 of the bits of binary32."""
    (word,) = struct.unpack(">Q", struct.pack(">d", x))
    bits = word >> 32 & 0x80000000 | 0x7F800000 | word >> 29 & 0x7FFFFF
    return int((bits + 0x7FFF + (bits >> 16 & 1) & 0xFFFFFFFF) >> 16)


KEPT_SIGNS = (Operator("nan-sign-kept", "a NaN keeps its sign, even with canonical", _sign_kept),)
LOST_SIGNS = (
    Operator(
        "nan-sign-lost",
        "a NaN has no sign, even with signed",
        lambda right, x, fmt, _: right(x, fmt, _DEFAULT),
    ),
)
NEGATIVE_NANS = (
    Operator(
        "nan-negative",
        "every NaN has the canonical code with the sign bit: 0xFF in e4m3 and e5m2",
        _nan_as(lambda fmt, code: code | fmt.sign_bit),
    ),
)
NANS_OF_IEEE = (
    Operator(
        "nan-of-one-bit",
        "a NaN is the infinity with the first bit of the mantissa: 0x7FC0 in bf16, 0x7E in e5m2",
        _nan_as(_of_one_bit),
    ),
    Operator(
        "nan-infinite",
        "a NaN becomes the infinity: its payload is lost",
        _nan_as(lambda fmt, code: (fmt.infinity_code or 0) | code & fmt.sign_bit),
    ),
)
NANS_OF_BF16 = (
    Operator(
        "nan-payload-truncated",
        "a NaN in bf16 is the upper half of its bits: infinity, if the payload is in the lower",
        lambda _, x, *__: _upper_half(x),
    ),
    Operator(
        "nan-payload-rounded",
        "a NaN in bf16 is rounded as a number, (bits + 0x7FFF + (bits >> 16 & 1)) >> 16",
        _rounded_payload,
    ),
)
NANS = (
    Operator(
        "nan-clamped",
        "a NaN becomes the negative largest number, as min(max(x, -largest), largest) makes it",
        _nan_as(_lowest_number),
    ),
    Operator(
        "nan-largest",
        "a NaN becomes the largest number, as max(min(x, largest), -largest) makes it",
        _nan_as(lambda fmt, _: fmt.largest_code),
    ),
)
NANS_OF_FLOATS = (
    Operator("nan-zero", "a NaN has the code 0", _nan_as(lambda *_: 0)),
    Operator(
        "nan-of-all-bits", "a NaN has all bits of exponent and mantissa", _nan_as(_of_all_bits)
    ),
)
SIGNED_NANS = Operator(
    "nan-negative",
    "a NaN of an overflow, or with the sign of its input, always has the sign bit",
    lambda right, *step: _negative_if_signed(int(right(*step)), *step),
)


def _negative_if_signed(code: int, first: Any, fmt: Format, special: SpecialCases) -> int:
    """Return the code of a NaN of an infinity or, if NaNs have signs, of a NaN, as negative."""
    is_signed = isinstance(first, bool) or special.nan == "signed"
    is_nan = any(code in codes for codes in fmt.nan_codes)
    return code | fmt.sign_bit if is_signed and is_nan else code


# ---------------------------------------------------------------------- powers of two


def _logarithm(log2: Callable[[float], float]) -> Callable[..., int]:
    """Return the code of e8m0 by a logarithm that is rounded."""

    def wrong(right: Any, x: float, fmt: Format, mode: Rounding, special: SpecialCases) -> int:
        if not math.isfinite(x) or x == 0 or (x < 0 and special.negative_code is not None):
            return int(right(x, fmt, mode, special))
        rounded = {"rtp": math.ceil, "rtz": math.floor}.get(mode, round)
        return min(max(rounded(log2(abs(x))) + fmt.bias, 0), fmt.largest_code)

    return wrong


def _by_field(right: Any, x: float, fmt: Format, mode: Rounding, special: SpecialCases) -> int:
    """Return the code from the bits of binary32, as if a subnormal number had a hidden bit."""
    number = x if special.negative_code is not None else abs(x)
    if not 0 < number < _F32.value(1 << 23):
        return int(right(x, fmt, mode, special))
    bits = int(math.ldexp(number, 149))
    added = {"rtp": (1 << 23) - 1, "rna": 1 << 22}.get(mode, 0)
    return bits + added >> 23


def _where_zero(code_of: Callable[[Format], int]) -> Callable[..., int]:
    return lambda right, x, fmt, *rest: code_of(fmt) if x == 0 else int(right(x, fmt, *rest))


def _negative_as_zero(right: Any, x: float, fmt: Format, *rest: Any) -> int:
    return int(right(0.0 if x < 0 else x, fmt, *rest))


LOGARITHMS = (
    Operator(
        "log2-in-binary32",
        "the exponent is a logarithm in binary32, rounded to an integer",
        _logarithm(log2_in_binary32),
    ),
    Operator(
        "log2-in-binary64",
        "the exponent is a logarithm in binary64, rounded to an integer",
        _logarithm(math.log2),
    ),
    Operator(
        "of-bits",
        "the code is the exponent field of binary32, rounded as bits, also if it is subnormal",
        _by_field,
    ),
)
ZEROS_OF_POWERS = (
    Operator(
        "zero-one", "zero becomes 1, not the smallest number", _where_zero(lambda fmt: fmt.bias)
    ),
    Operator(
        "zero-nan",
        "zero becomes NaN, not the smallest number",
        _where_zero(lambda fmt: fmt.code_count - 1),
    ),
)
NEGATIVE_POWERS = (
    Operator(
        "negative-smallest",
        "negative numbers count as 0, not as their magnitudes",
        _negative_as_zero,
    ),
)

# ---------------------------------------------------------------------- decoding


def _bits(value: float) -> int:
    return int.from_bytes(struct.pack(">f", value))


def _decoded(change: Callable[[int, int, Format], float | None]) -> Callable[..., int]:
    """Return other numbers of some codes, given a magnitude, its sign and its format."""

    def wrong(right: Any, code: int, fmt: Format) -> int:
        value = change(code & ~fmt.sign_bit, code & fmt.sign_bit, fmt)
        if value is None:
            return int(right(code, fmt))
        if math.isnan(value):
            return nan_bits(value)
        return _bits(math.copysign(value, -1 if code & fmt.sign_bit else 1))

    return wrong


def _number_of(magnitude: int, fmt: Format, hidden: int = 1) -> float:
    """Return the number of an exponent field and a mantissa, as if all codes had one."""
    field, mantissa = divmod(magnitude, 1 << fmt.mantissa_bits)
    return math.ldexp(
        mantissa + (hidden << fmt.mantissa_bits), field - fmt.bias - fmt.mantissa_bits
    )


def _is_subnormal(magnitude: int, fmt: Format) -> bool:
    return bool(fmt.exponent_bits) and 0 < magnitude < 1 << fmt.mantissa_bits


def _zero_for_subnormals(magnitude: int, _: int, fmt: Format) -> float | None:
    return 0.0 if _is_subnormal(magnitude, fmt) else None


def _with_hidden_bit(magnitude: int, _: int, fmt: Format) -> float | None:
    return _number_of(magnitude, fmt) if _is_subnormal(magnitude, fmt) else None


def _halved(magnitude: int, _: int, fmt: Format) -> float | None:
    return _number_of(magnitude, fmt, 0) if _is_subnormal(magnitude, fmt) else None


def _nan_as_number(magnitude: int, sign: int, fmt: Format) -> float | None:
    is_nan = magnitude and math.isnan(fmt.value(sign | magnitude))
    return _number_of(magnitude, fmt) if is_nan else None


def _specials_of_ieee(magnitude: int, _: int, fmt: Format) -> float | None:
    field, mantissa = divmod(magnitude, 1 << fmt.mantissa_bits)
    if field < (1 << fmt.exponent_bits) - 1:
        return None
    return math.nan if mantissa else math.inf


def _specials_of_fn(magnitude: int, sign: int, fmt: Format) -> float | None:
    if magnitude == 0 and sign:
        return 0.0
    return math.nan if magnitude == fmt.sign_bit - 1 else None


def _as_magnitude(magnitude: int, _: int, fmt: Format) -> float:
    return fmt.value(magnitude)


def _payload_shifted(_: Any, code: int, fmt: Format) -> int:
    magnitude, sign = code & ~fmt.sign_bit, (code & fmt.sign_bit) << 32 - fmt.bits
    mantissa = magnitude % (1 << fmt.mantissa_bits)
    return sign | 0x7F800000 | mantissa << 23 - fmt.mantissa_bits


def _with_payload(right: Any, code: int, fmt: Format) -> int:
    is_nan = math.isnan(fmt.value(code))
    return _payload_shifted(right, code, fmt) if is_nan else int(right(code, fmt))


DECODED_SUBNORMALS = (
    Operator(
        "subnormals-zero",
        "codes of subnormal numbers stand for zero",
        _decoded(_zero_for_subnormals),
    ),
    Operator(
        "subnormals-with-hidden-bit",
        "codes of subnormal numbers are read with the hidden bit and an exponent one lower",
        _decoded(_with_hidden_bit),
    ),
    Operator(
        "subnormals-halved",
        "codes of subnormal numbers are read with the exponent -B, not 1 - B",
        _decoded(_halved),
    ),
)
DECODED_INTEGERS = (
    Operator(
        "sign-magnitude",
        "codes in two's complement are read as a sign bit and a magnitude",
        _decoded(_as_magnitude),
    ),
)
DECODED_NANS = (
    Operator(
        "nan-as-number",
        "the codes of NaN decode to ordinary numbers: 0x7F is 480 in e4m3",
        _decoded(_nan_as_number),
    ),
)
DECODED_PAYLOADS = (
    Operator("nan-payload-kept", "a NaN keeps the sign and the payload of its code", _with_payload),
)
DECODED_AS_IEEE = (
    Operator(
        "specials-of-ieee",
        "the codes of the top exponent are infinities and NaN, as in IEEE formats",
        _decoded(_specials_of_ieee),
    ),
)
DECODED_AS_FN = (
    Operator(
        "specials-of-fn",
        "a code of all ones is NaN, and the code of -0 is -0, in a format of kind fnuz",
        _decoded(_specials_of_fn),
    ),
)
DECODED_POWERS = (
    Operator(
        "by-shift",
        "e8m0 is decoded as code << 23: 0 becomes 0.0, and 255 infinity",
        lambda _, code, __: code << 23,
    ),
    Operator(
        "nan-infinite",
        "the code 255 of e8m0 is the power of two 2^128, which is infinite",
        lambda right, code, fmt: _INFINITY if code == fmt.code_count - 1 else right(code, fmt),
    ),
    Operator(
        "zero-for-smallest",
        "the code 0 of e8m0 is 0, as subnormal numbers are flushed",
        lambda right, code, fmt: 0 if code == 0 else right(code, fmt),
    ),
)
_VALUES = {one.name: one for one in OPERATORS_OF_BLOCKS["value"]}
LOWEST_VALUES = (_VALUES["lowest-as-next"],)
SPECIAL_VALUES = (
    _VALUES["infinities-nan"]._replace(words="the code of an infinity stands for NaN"),
    _VALUES["nan-zero"]._replace(words="the codes of NaN stand for 0"),
)
NAN_BITS = (
    Operator(
        "nan-7fc00000",
        "every NaN in binary32 is 0x7FC00000: the quiet NaN of a constant, and of Arm",
        lambda *_: _QUIET,
    ),
    Operator(
        "nan-ffc00000",
        "every NaN in binary32 is 0xFFC00000: the one that x86 makes",
        lambda *_: 0x80000000 | _QUIET,
    ),
)


def _without_sign(right: Any, *operands: Any) -> Any:
    """Return what a code stands for without the sign of a zero: bits, or a number with a scale."""
    first, rest = operands[0], operands[1:]
    if isinstance(first, float):
        return right(first or 0.0, *rest)
    bits = right(*operands)
    return 0 if bits == 0x80000000 else bits


NEGATIVE_ZERO = Operator(
    "negative-zero-lost",
    "the code of -0 stands for +0: its sign is lost on the way back from codes",
    _without_sign,
)
