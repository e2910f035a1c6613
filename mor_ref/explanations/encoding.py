"""The reason for the code of a number: its neighbours, the midpoint and the rule."""

import decimal
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from mor_ref import exact
from mor_ref.addresses import rule_path, see
from mor_ref.definitions.encoding import Rounding, SpecialCases, rounding_for
from mor_ref.definitions.format import Format
from mor_ref.explanations.numerals import binary64_bits
from mor_ref.explanations.text import codes, split_fields


@dataclass(frozen=True)
class Neighbour:
    """A number next to the input; its code is None beyond the largest number of the format."""

    value: Fraction
    code: int | None


@dataclass(frozen=True)
class ExplainedEncoding:
    """An encoding, step by step. Fields that do not apply to the input are None."""

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

    def __str__(self) -> str:
        """Return it in lines, as `mor-ref explain` prints them."""
        rows = list(_rows(self))
        widths = [max(len(row[column]) for row in rows) for column in range(2)]
        shown = (f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}".rstrip() for a, b, c in rows)
        return "\n".join(
            (
                f"{self.fmt.name}, rounding {self.rounding}",
                *shown,
                f"{self.outcome} ({self.rule})",
                see([rule_path(self.rule)]),
            )
        )


@dataclass(frozen=True)
class _Place:
    """The place of |x|: below + rest / whole units, as if the format had no largest number."""

    below: int
    rest: int
    whole: int
    unit: Fraction

    @property
    def fraction(self) -> Fraction:
        return Fraction(self.rest, self.whole)


def explain(
    x: float,
    fmt: Format,
    rounding: Rounding | None = None,
    special: SpecialCases | None = None,
    *,
    random_word: int | None = None,
    n_random_bits: int | None = None,
) -> ExplainedEncoding:
    """Explain the encoding of `x`, computed by the exact model.

    >>> from mor_ref import formats
    >>> found = explain(0.3, formats["e4m3"])
    >>> found.outcome, found.rule, float(found.midpoint)
    ('up in magnitude: the fraction, 0.6 of a unit, is above one half', 'ENC-003', 0.296875)
    """
    cases = special or SpecialCases()
    mode = rounding_for(fmt, rounding, cases)
    code = exact.encode(x, fmt, mode, cases, random_word=random_word, n_random_bits=n_random_bits)
    value = fmt.value(code)
    without_rounding = _without_rounding(x, fmt, cases)
    if without_rounding:
        return ExplainedEncoding(x, fmt, mode, code, value, *without_rounding)
    place = _place(x, fmt)
    random = None if mode != "sr" else (random_word or 0, n_random_bits or 0)
    outcome, rule = _outcome(x, place, fmt, mode, cases, random, value)
    sign = -1 if x < 0 and fmt.sign != "none" else 1
    near, far = (_neighbour(x, count * place.unit, fmt) for count in (place.below, place.below + 1))
    error = Fraction(value) - sign * abs(Fraction(x)) if math.isfinite(value) else None
    return ExplainedEncoding(
        x,
        fmt,
        mode,
        code,
        value,
        outcome,
        rule,
        near,
        far,
        (near.value + far.value) / 2,
        None if error is None else error / place.unit,
    )


def _place(x: float, fmt: Format) -> _Place:
    exponent = fmt.smallest_exponent
    if fmt.sign != "twos-complement":  # its unit is the same everywhere
        exponent = max(exact.floor_log2(abs(x)), exponent)
    unit = exponent - fmt.mantissa_bits
    return _Place(*exact.in_units_of(unit, abs(x)), Fraction(2) ** unit)


def _neighbour(x: float, magnitude: Fraction, fmt: Format) -> Neighbour:
    """Return the number of this magnitude with the sign of x."""
    negative = x < 0 and fmt.sign != "none"
    value = -magnitude if negative else magnitude
    if magnitude > Fraction(fmt.largest):
        return Neighbour(value, None)
    return Neighbour(
        value, exact.encode(math.copysign(magnitude, -1 if negative else 1), fmt, "rtz")
    )


def _without_rounding(x: float, fmt: Format, special: SpecialCases) -> tuple[str, str] | None:
    """Return the outcome and the rule of an input that is not rounded, or None."""
    if math.isnan(x):
        if isinstance(special.nan, tuple):
            return "NaN, as the profile stores it", "ENC-016"
        signed = special.nan == "signed" and math.copysign(1, x) < 0
        return "NaN", "ENC-010" if signed else "ENC-009"
    if x < 0 and special.negative_code is not None:
        return "a negative number, as the profile stores it", "ENC-016"
    if math.isinf(x):
        return "an infinite input, which is not rounded", "ENC-008"
    if x == 0:
        if special.zero_code is not None:
            return "zero, as the profile stores it", "ENC-016"
        return "zero", "ENC-014" if fmt.is_power_of_two else "ENC-011"
    if fmt.is_power_of_two and abs(x) < fmt.value(0):
        return f"the smallest value: {fmt.name} has nothing below it, and no zero", "ENC-014"
    return None


def _outcome(
    x: float,
    place: _Place,
    fmt: Format,
    mode: Rounding,
    special: SpecialCases,
    random: tuple[int, int] | None,
    becomes: float,
) -> tuple[str, str]:
    """Return the direction of the rounding with its reason, and the rule."""
    negative = x < 0 and fmt.sign != "none"
    is_odd = place.below % 2 == 1 and not fmt.is_power_of_two
    is_lowest = fmt.is_power_of_two and abs(x) < 2 * fmt.value(0)
    if place.rest and is_lowest and special.above_smallest_goes_up and mode == "rna":
        return "up: the profile rounds up a magnitude above the smallest value", "ENC-016"
    if random is not None:
        up = exact.goes_up_at_random(place.rest, place.whole, *random)
    else:
        up = exact.goes_up(mode, place.rest, place.whole, odd=is_odd, negative=negative)
    if (place.below + up) * place.unit > Fraction(fmt.largest):
        where = "saturates" if math.isfinite(becomes) else "leaves the finite numbers"
        rule = "ENC-006" if special.overflow == "satfinite" else "ENC-007"
        return f"overflow: it rounds above the largest number, {fmt.largest:g}, and {where}", rule
    if not place.rest:
        return "exact: the format has this number", "ENC-002"
    rule = "ENC-013" if fmt.is_power_of_two else "ENC-005" if mode == "sr" else "ENC-003"
    way = "up" if up else "down"
    return f"{way} in magnitude: {_reason(place.fraction, mode, random)}", rule


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


def _rows(explained: ExplainedEncoding) -> Iterator[tuple[str, str, str]]:
    fmt, x, code = explained.fmt, explained.x, explained.code
    yield "input", f"{x!r}", x.hex()
    yield "", "", f"0x{binary64_bits(x):016x} as binary64"
    yield "code", codes(fmt, code), split_fields(fmt, f"{code:0{fmt.bits}b}")
    yield "value", f"{explained.value!r}", explained.value.hex()
    for label, neighbour in (
        ("nearer zero", explained.nearer_zero),
        ("farther from zero", explained.farther_from_zero),
    ):
        if neighbour is not None:
            is_outside = neighbour.code is None
            place = "outside of the format" if is_outside else codes(fmt, neighbour.code)
            yield label, _decimal(neighbour.value), place
    if explained.midpoint is not None:
        yield "midpoint", _decimal(explained.midpoint), ""
    if explained.error_in_ulp is not None:
        yield "error", f"{float(explained.error_in_ulp):+.6g} ulp", ""


def _decimal(value: Fraction) -> str:
    """Return a decimal of at most 17 digits; a longer one ends in two dots."""
    own = decimal.Context(prec=17, rounding=decimal.ROUND_HALF_EVEN)  # and not that of a caller
    with decimal.localcontext(own) as context:
        shown = decimal.Decimal(value.numerator) / decimal.Decimal(value.denominator)
        is_exact = not context.flags[decimal.Inexact]
        return f"{shown:g}" if is_exact else f"{shown:.9g}.."
