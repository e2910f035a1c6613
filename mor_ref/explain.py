"""Why a number becomes the code that it becomes: the neighbours, the midpoint and the rule."""

import math
import re
import struct
from dataclasses import dataclass
from fractions import Fraction

from mor_ref import exact
from mor_ref.catalogue import formats
from mor_ref.conventions import Rounding, SpecialCases, rounding_for
from mor_ref.format import Format
from mor_ref.names import UnknownNameError

# The sources that a bit pattern may be of, and the struct codes of its bytes and of its integer.
_SOURCES = {
    "f64": (64, "<d", "<Q"),
    "f32": (32, "<f", "<I"),
    "f16": (16, "<e", "<H"),
    "bf16": (16, "", ""),
}


@dataclass(frozen=True)
class Neighbour:
    """A number of the format next to the input; no code if it lies outside of the format."""

    value: Fraction
    code: int | None


@dataclass(frozen=True)
class Explanation:
    """An encoding, step by step. Fields that make no sense for the input are None."""

    x: float
    fmt: Format
    rounding: Rounding
    code: int
    value: float
    outcome: str
    rule: str
    nearer_zero: Neighbour | None = None
    farther_from_zero: Neighbour | None = None
    midpoint: Fraction | None = None
    error_in_ulp: Fraction | None = None


def parse_number(text: str, source: str | None = None) -> float:
    """A number from a decimal, a hexadecimal float (0x1.8p3) or the 0x bit pattern of `source`.

    Without `source`, 16 hexadecimal digits are a binary64 and 8 are a binary32. A decimal is taken
    as the nearest binary64, and then has to be a number of `source` if one is given.

    >>> parse_number("0x3f800000"), parse_number("0x3f80", "bf16"), parse_number("-0x1.8p1")
    (1.0, 1.0, -3.0)
    """
    if source is not None and source not in _SOURCES:
        raise UnknownNameError("source", source, _SOURCES)
    pattern = re.fullmatch(r"0[xX]([0-9a-fA-F]+)", text.strip())
    if pattern:
        return _from_pattern(pattern[1], source)
    try:
        hexadecimal = re.match(r"[+-]?0[xX].*[.pP]", text.strip())
        x = float.fromhex(text) if hexadecimal else float(text)
    except (ValueError, OverflowError):
        raise ValueError(
            f"value is {text!r}; give a decimal such as 0.3, a hexadecimal float such as 0x1.8p-2, "
            "or a bit pattern such as 0x3f800000"
        ) from None
    if source is not None and source != "f64" and not _is_exact(x, formats[source]):
        raise ValueError(
            f"value is {text!r}, which is no {source} number; leave --source away to take the "
            "nearest binary64, or give its bit pattern"
        )
    return x


def _from_pattern(digits: str, source: str | None) -> float:
    name = source or {16: "f64", 8: "f32"}.get(len(digits))
    if name is None:
        raise ValueError(
            f"value is a bit pattern of {len(digits)} hexadecimal digits; give 16 for binary64 or "
            "8 for binary32, or say with --source which format it is of"
        )
    width, float_code, int_code = _SOURCES[name]
    bits = int(digits, 16)
    if bits >> width:
        raise ValueError(f"value is 0x{digits}, which is not of {width} bits, as {name} is")
    if name == "bf16":
        bits, float_code, int_code = bits << 16, "<f", "<I"
    (x,) = struct.unpack(float_code, struct.pack(int_code, bits))
    return float(x)


def binary64_bits(x: float) -> int:
    """The bit pattern of a number as a binary64."""
    (bits,) = struct.unpack("<Q", struct.pack("<d", x))
    return int(bits)


def _is_exact(x: float, fmt: Format) -> bool:
    return not math.isfinite(x) or fmt.value(exact.encode(x, fmt, "rtz")) == x


def explain(
    x: float,
    fmt: Format,
    rounding: Rounding | None = None,
    special: SpecialCases | None = None,
    *,
    random_word: int | None = None,
    n_random_bits: int | None = None,
) -> Explanation:
    """How `x` is encoded, by the exact model.

    >>> found = explain(0.3, formats["e4m3"])
    >>> found.outcome, found.rule, float(found.midpoint)
    ('up in magnitude: the fraction, 0.6 of a unit, is above one half', 'ENC-003', 0.296875)
    """
    cases = special or SpecialCases()
    mode = rounding_for(fmt, rounding, cases)
    code = exact.encode(x, fmt, mode, cases, random_word=random_word, n_random_bits=n_random_bits)
    value = fmt.value(code)
    if not math.isfinite(x) or x == 0:
        outcome, rule = _without_rounding(x, fmt)
        return Explanation(x, fmt, mode, code, value, outcome, rule)
    if fmt.is_power_of_two and abs(x) < fmt.value(0):
        outcome = f"the smallest value: {fmt.name} has nothing below it, and no zero"
        return Explanation(x, fmt, mode, code, value, outcome, "ENC-014")
    near, far = _neighbours(x, fmt)
    unit = far.value - near.value
    fraction = (abs(Fraction(x)) - near.value) / unit
    random = None if random_word is None else (random_word, n_random_bits or 0)
    outcome, rule = _outcome(fraction, value, near, far, fmt, mode, cases, random)
    sign = -1 if x < 0 and fmt.sign != "none" else 1
    return Explanation(
        x,
        fmt,
        mode,
        code,
        value,
        outcome,
        rule,
        Neighbour(sign * near.value, near.code),
        Neighbour(sign * far.value, far.code),
        sign * (near.value + far.value) / 2,
        (Fraction(value) - sign * abs(Fraction(x))) / unit if math.isfinite(value) else None,
    )


def _neighbours(x: float, fmt: Format) -> tuple[Neighbour, Neighbour]:
    """The numbers at or below and above |x|, as if the format went on beyond its largest."""
    exponent = max(exact.floor_log2(abs(x)), fmt.smallest_exponent)
    unit = exponent - fmt.mantissa_bits
    below, _, _ = exact.in_units_of(unit, abs(x))
    near = ((exponent - fmt.smallest_exponent) << fmt.mantissa_bits) + below
    if fmt.is_power_of_two:
        near = exponent - fmt.smallest_exponent

    def neighbour(count: int, code: int) -> Neighbour:
        return Neighbour(count * Fraction(2) ** unit, code if code <= fmt.largest_code else None)

    return neighbour(below, near), neighbour(below + 1, near + 1)


def _without_rounding(x: float, fmt: Format) -> tuple[str, str]:
    if math.isnan(x):
        return "NaN", "ENC-009"
    if math.isinf(x):
        return "an infinite input, which is not rounded", "ENC-008"
    return "zero", "ENC-014" if fmt.is_power_of_two else "ENC-011"


def _outcome(
    fraction: Fraction,
    value: float,
    near: Neighbour,
    far: Neighbour,
    fmt: Format,
    mode: Rounding,
    special: SpecialCases,
    random: tuple[int, int] | None,
) -> tuple[str, str]:
    """Which way it went, why, and the rule that says so."""
    numerator, whole = fraction.as_integer_ratio()
    up = abs(value) == far.value
    if near.code == fmt.largest_code and mode != "sr":
        up = exact.goes_up(mode, numerator, whole, odd=near.code % 2 == 1, negative=value < 0)
    if near.code is None or not math.isfinite(value) or (up and far.code is None):
        where = "saturates" if math.isfinite(value) else "leaves the finite numbers"
        rule = "ENC-006" if special.overflow == "satfinite" else "ENC-007"
        return f"overflow: it rounds above the largest number, {fmt.largest:g}, and {where}", rule
    if fraction == 0:
        return "exact: the format has this number", "ENC-002"
    way = "up" if up else "down"
    rule = "ENC-013" if fmt.is_power_of_two else "ENC-005" if mode == "sr" else "ENC-003"
    return f"{way} in magnitude: {_reason(fraction, mode, random)}", rule


def _reason(fraction: Fraction, mode: Rounding, random: tuple[int, int] | None) -> str:
    share = f"the fraction, {float(fraction):.6g} of a unit,"
    if random is not None:
        word, n = random
        first_bits = (fraction * 2**n).__floor__()
        relation = ">=" if first_bits + word >= 2**n else "<"
        return f"{share} and the random bits give {first_bits} + {word} {relation} 2^{n}"
    if mode not in ("rne", "rna"):
        directions = {
            "rtz": "toward zero",
            "rtp": "toward +infinity",
            "rtn": "toward -infinity",
            "rto": "to the odd code",
        }
        return f"{mode} rounds {share} {directions[mode]}"
    if fraction == Fraction(1, 2):
        return f"{share} is a tie, and {mode} goes {'to the even code' if mode == 'rne' else 'up'}"
    return f"{share} is {'above' if fraction > Fraction(1, 2) else 'below'} one half"
