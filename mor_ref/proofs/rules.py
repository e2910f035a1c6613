"""Rules as terms: codes and numbers of formats, formulas, and the elements of a block format."""

from collections.abc import Callable, Mapping
from fractions import Fraction

from mor_ref.definitions.encoding import ElementRounding, Rounding, SpecialCases, rounding_for
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.formulas import Apply, Computed, Formula, Name, Number, Percentile, parsed
from mor_ref.exact.arithmetic import bits_of as pattern_of
from mor_ref.exact.arithmetic import rn32
from mor_ref.proofs.terms import (
    Term,
    absolute,
    all_of,
    any_of,
    arithmetic,
    bits_of,
    choice,
    count_of,
    is_class,
    is_less,
    is_not,
    negative,
    number,
    number_from_count,
    number_of,
    on_words,
    same,
    true,
    word,
)
from mor_ref.proofs.wrong import WRONG

_MANTISSA_BITS = 23
_NEVER = is_not(true())
_NAN, _INFINITY, _ONE = 0x7FC00000, 0x7F800000, 0x3F800000


class NoTermError(Exception):
    """Something that terms do not say; its text says what."""


def literal(value: Fraction) -> Term:
    """Return the number of binary32 next to a literal."""
    near = rn32(abs(value))
    bits = _INFINITY if near == float("inf") else pattern_of(near)
    return number(bits | (0x80000000 if value < 0 else 0))


def literal_of(x: float) -> Term:
    """Return a number of binary32."""
    return literal(Fraction(x))


def power_of_two(exponent: int) -> Term:
    """Return a power of two that binary32 has."""
    return literal(Fraction(2) ** exponent)


def scaled(x: Term, exponent: int) -> Term:
    """Return a number times a power of two that binary32 may not have; the product is exact."""
    while exponent > 127:
        x, exponent = arithmetic("*", x, power_of_two(127)), exponent - 127
    while exponent < -126:
        x, exponent = arithmetic("*", x, power_of_two(-126)), exponent + 126
    return x if exponent == 0 else arithmetic("*", x, power_of_two(exponent))


# ---------------------------------------------------------------------- formats


def encoded(
    x: Term, fmt: Format, rounding: ElementRounding | Rounding, *, saturates: bool = True
) -> Term:
    """Return the code of a number (ENC-002 to ENC-016)."""
    if fmt.is_power_of_two:
        return _encoded_power(x, fmt, rounding)
    magnitude = absolute(x)
    is_negative = _NEVER if fmt.sign == "none" else is_class("signed", x)
    code = _magnitude(magnitude, fmt, rounding, is_negative)
    above = is_less(word(fmt.largest_code), code)
    infinite = fmt.largest_code
    if not saturates:
        infinite = fmt.canonical_nan_code or fmt.largest_code
        infinite = fmt.infinity_code if fmt.infinity_code is not None else infinite
    stays = _stays_finite(rounding, is_negative)
    beyond = choice(stays, word(fmt.largest_code), word(infinite)) if stays else word(infinite)
    code = choice(is_class("infinite", magnitude), word(infinite), choice(above, beyond, code))
    nan = fmt.largest_code if fmt.canonical_nan_code is None else fmt.canonical_nan_code
    nan = 0 if fmt.sign == "twos-complement" else nan
    return choice(is_class("nan", x), word(nan), _with_sign(code, is_negative, fmt))


def _stays_finite(rounding: str, is_negative: Term) -> Term | None:
    if rounding in ("rtz", "rto"):
        return true()
    if rounding == "rtp":
        return is_negative
    return is_not(is_negative) if rounding == "rtn" else None


def _with_sign(code: Term, is_negative: Term, fmt: Format) -> Term:
    if fmt.sign == "none":
        return code
    if fmt.sign == "twos-complement":
        signed = on_words("&", on_words("-", word(0), code), word(fmt.code_count - 1))
    else:
        signed = on_words("|", code, word(fmt.sign_bit))
    if fmt.specials == "fnuz":
        signed = choice(same(code, word(0)), code, signed)
    return choice(is_negative, signed, code)


def _magnitude(x: Term, fmt: Format, rounding: str, is_negative: Term) -> Term:
    """Return the code of a magnitude, which can be above all codes."""
    unit = fmt.smallest_exponent - fmt.mantissa_bits
    shift = _MANTISSA_BITS - fmt.mantissa_bits
    below = power_of_two(fmt.smallest_exponent)
    in_units = scaled(choice(is_less(x, below), x, number(0)), -unit)
    subnormal = _rounded_count(in_units, rounding, is_negative)
    bits = bits_of(x)
    kept, rest = _parts(bits, shift)
    up = _goes_up(kept, rest, shift, rounding, is_negative)
    kept = on_words("-", kept, word((126 + fmt.smallest_exponent) << fmt.mantissa_bits))
    normal = on_words("+", kept, choice(up, word(1), word(0)))
    return choice(is_less(x, below), subnormal, normal)


def _parts(bits: Term, shift: int) -> tuple[Term, Term]:
    return on_words(">>", bits, word(shift)), on_words("&", bits, word((1 << shift) - 1))


def _goes_up(kept: Term, rest: Term, shift: int, rounding: str, is_negative: Term) -> Term:
    if shift == 0:
        return _NEVER
    half, is_rest = word(1 << (shift - 1)), is_not(same(rest, word(0)))
    is_odd = same(on_words("&", kept, word(1)), word(1))
    above, tie = is_less(half, rest), same(rest, half)
    ways: Mapping[str, Callable[[], Term]] = {
        "rne": lambda: any_of((above, all_of((tie, is_odd)))),
        "rna": lambda: any_of((above, tie)),
        "rnz": lambda: above,
        "rtz": lambda: _NEVER,
        "rtp": lambda: all_of((is_rest, is_not(is_negative))),
        "rtn": lambda: all_of((is_rest, is_negative)),
        "rto": lambda: all_of((is_rest, is_not(is_odd))),
    }
    return ways[rounding]()


def _rounded_count(x: Term, rounding: str, is_negative: Term) -> Term:
    """Return a magnitude as a count, rounded."""
    down, up = count_of(x, "zero"), count_of(x, "up")
    match rounding:
        case "rne":
            return count_of(x, "nearest")
        case "rna":
            return count_of(x, "away")
        case "rtz":
            return down
        case "rtp":
            return choice(is_negative, down, up)
        case "rtn":
            return choice(is_negative, up, down)
        case "rto":
            is_odd = same(on_words("&", down, word(1)), word(1))
            return choice(is_odd, down, up)
    rest = arithmetic("-", x, number_from_count(down))
    return choice(is_less(power_of_two(-1), rest), up, down)


def _check_powers(fmt: Format) -> None:
    """Refuse a format whose values are other powers of two than those of e8m0."""
    if fmt.bias != 127 or fmt.bits != 8:
        raise NoTermError(f"the format {fmt.name}, whose values are other powers of two than e8m0")


def _encoded_power(x: Term, fmt: Format, rounding: str) -> Term:
    """Return the code of a power of two (ENC-013, ENC-014)."""
    _check_powers(fmt)
    own = "rna" if rounding == "rne" else rounding
    magnitude = absolute(x)
    bits = bits_of(magnitude)
    exponent, rest = _parts(bits, _MANTISSA_BITS)
    ways = {
        "rtp": is_not(same(rest, word(0))),
        "rna": is_not(is_less(rest, word(1 << 22))),
        "rtz": _NEVER,
    }
    normal = on_words("+", exponent, choice(ways[own], word(1), word(0)))
    # Between 2^-127 and 2^-126 there are subnormal numbers.
    smallest = power_of_two(-127)
    of_subnormal = {
        "rtp": word(1),
        "rtz": word(0),
        "rna": choice(is_less(magnitude, number(0x00600000)), word(0), word(1)),
    }[own]
    subnormal = choice(is_less(smallest, magnitude), of_subnormal, word(0))
    code = choice(same(exponent, word(0)), subnormal, normal)
    largest = word(fmt.largest_code)
    code = choice(is_less(largest, code), largest, code)
    nan = fmt.canonical_nan_code if fmt.canonical_nan_code is not None else fmt.largest_code
    return choice(is_class("nan", x), word(nan), code)


def decoded(code: Term, fmt: Format) -> Term:
    """Return the number of a code (FMT-001 to FMT-008)."""
    unit = fmt.smallest_exponent - fmt.mantissa_bits
    if fmt.sign == "twos-complement":
        is_negative = is_not(is_less(code, word(fmt.sign_bit)))
        count = choice(is_negative, on_words("-", word(fmt.code_count), code), code)
        value = scaled(number_from_count(count), unit)
        return choice(is_negative, negative(value), value)
    magnitude = on_words("&", code, word((1 << (fmt.bits - (fmt.sign != "none"))) - 1))
    if fmt.is_power_of_two:
        return _decoded_power(magnitude, fmt)
    shift = _MANTISSA_BITS - fmt.mantissa_bits
    biased = on_words("+", magnitude, word((126 + fmt.smallest_exponent) << fmt.mantissa_bits))
    normal = number_of(on_words("<<", biased, word(shift)))
    subnormal = scaled(number_from_count(magnitude), unit)
    value = choice(is_less(magnitude, word(1 << fmt.mantissa_bits)), subnormal, normal)
    if fmt.infinity_code is not None:
        value = choice(same(magnitude, word(fmt.infinity_code)), number(_INFINITY), value)
    is_negative = is_not(same(on_words("&", code, word(fmt.sign_bit)), word(0)))
    if fmt.sign != "none":
        value = choice(is_negative, negative(value), value)
    for codes in fmt.nan_codes:
        first, last = word(codes[0]), word(codes[-1])
        outside = any_of((is_less(code, first), is_less(last, code)))
        value = choice(outside, value, number(_NAN))
    return value


def _decoded_power(code: Term, fmt: Format) -> Term:
    _check_powers(fmt)
    normal = number_of(on_words("<<", code, word(_MANTISSA_BITS)))
    value = choice(same(code, word(0)), power_of_two(-127), normal)
    for codes in fmt.nan_codes:
        value = choice(is_less(code, word(codes[0])), value, number(_NAN))
    return value


# ---------------------------------------------------------------------- formulas


def of_formula(formula: str | Formula, names: Mapping[str, Term]) -> Term:
    """Return the value of a formula, right or wrong, given the numbers of its names (BLF-002)."""
    tree = parsed(formula)
    match tree:
        case Number(value):
            return literal(value)
        case Name(text):
            return names[text]
        case Percentile() as percentile:
            return names[percentile.name]
        case Apply(operator, arguments):
            values = [of_formula(argument, names) for argument in arguments]
            if isinstance(tree, Computed):
                return _known(WRONG, operator)(*values)
            if operator in formats:
                return _in_format(values[0], formats[operator])
            return _known(FUNCTIONS, operator)(*values)


def _known(functions: Mapping[str, Callable[..., Term]], operator: str) -> Callable[..., Term]:
    if operator not in functions:
        raise NoTermError(operator)
    return functions[operator]


def _in_format(x: Term, fmt: Format) -> Term:
    """Return a number rounded to a format as a scale that is stored in it."""
    if fmt == formats["f32"]:
        return x
    return decoded(encoded(x, fmt, rounding_for(fmt, None, SpecialCases())), fmt)


def _pow2(x: Term, turn: Term) -> Term:
    """Return the power of two of the binade of a number, or the next one."""
    magnitude = absolute(x)
    is_small = is_class("subnormal", magnitude)
    grown = bits_of(choice(is_small, arithmetic("*", magnitude, power_of_two(64)), magnitude))
    significand = number_of(on_words("|", on_words("&", grown, word((1 << 23) - 1)), word(_ONE)))
    up = choice(is_less(significand, turn), word(0), word(1 << 23))
    power = number_of(on_words("+", on_words("&", grown, word(_INFINITY)), up))
    power = choice(is_small, arithmetic("*", power, power_of_two(-64)), power)
    is_special = any_of(is_class(kind, x) for kind in ("zero", "infinite", "nan"))
    return choice(is_special, x, choice(is_class("signed", x), negative(power), power))


FUNCTIONS: dict[str, Callable[..., Term]] = {
    **{operator: lambda a, b, operator=operator: arithmetic(operator, a, b) for operator in "+-*/"},
    "square": lambda a: arithmetic("*", a, a),
    "abs": absolute,
    "min": lambda a, b: choice(is_less(b, a), b, a),
    "max": lambda a, b: choice(is_less(a, b), b, a),
    "pow2": _pow2,
    "or": lambda a, b: choice(is_class("zero", a), b, a),
    "if": lambda test, a, b: choice(is_class("zero", test), b, a),
    "<": lambda a, b: choice(is_less(a, b), number(_ONE), number(0)),
    ">": lambda a, b: choice(is_less(b, a), number(_ONE), number(0)),
}
