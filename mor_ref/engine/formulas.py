"""Formulas as steps of kernels: text in which each operator rounds to binary32.

Numbers and formats of a formula are arguments of its kernel, and its names are local variables: the
formulas of many block formats have the same text, and are compiled once.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from mor_ref.definitions.encoding import Rounding, SpecialCases, rounding_for
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.formulas import (
    Apply,
    Formula,
    Name,
    Number,
    Percentile,
    is_own_word,
    parsed,
)
from mor_ref.engine.decoding import layout_of
from mor_ref.engine.formats import BINARY32, power_of_two_target_for, target_for
from mor_ref.engine.nearest import grid_of

_F = np.float32
_NARROW = 8  # bits of the formats that `nearest` takes


class NearestRow(NamedTuple):
    """A narrow format that numbers are rounded to by an addition, and the number of its NaN."""

    grid: Any
    nan: Any


class FormatRow(NamedTuple):
    """A format that numbers are rounded to in any direction, and how its codes are read."""

    target: Any
    layout: Any


class PowerRow(NamedTuple):
    """A format of powers of two, and its first code of NaN."""

    target: Any
    nan_code: Any


def _row_of(fmt: Format, rounding: Rounding, step: str) -> NearestRow | FormatRow | PowerRow:
    """Return a format and a rounding as a step takes them: it is unpacked at each call."""
    usual = SpecialCases()
    if step == "to_nearest":
        grid = grid_of(fmt)
        return NearestRow(grid, _F(fmt.value(int(grid.nan_code))))
    layout = layout_of(fmt)
    if step == "to_power_of_two":
        target = power_of_two_target_for(fmt, rounding, usual, BINARY32)
        return PowerRow(target, layout.first_nan_magnitude)
    return FormatRow(target_for(fmt, rounding, usual, BINARY32), layout)


def _rounding_step(fmt: Format, rounding: Rounding, *, is_negative: bool) -> str:
    """Return the name of the step that rounds numbers to a format, which may be negative."""
    if fmt == formats["f32"]:
        return "stored_in_binary32"
    if fmt.is_power_of_two:
        return "to_power_of_two"
    is_narrow = fmt.bits <= _NARROW and rounding == "rne"
    return "to_nearest" if is_narrow and not is_negative else "to_format"


def format_rounding(fmt: Format, rounding: Rounding | None = None) -> Rounding:
    """Return a rounding, or that of the format."""
    return rounding_for(fmt, rounding, SpecialCases())


# ---------------------------------------------------------------------- text

# The functions of formulas, by the names of the steps of `block_steps`.
_FUNCTIONS = {
    "min": "smaller_of",
    "max": "larger_of",
    "abs": "magnitude_of",
    "square": "square",
    "pow2": "pow2",
    "or": "unless_zero",
}


class Text:
    """The text of formulas, and the numbers and formats that go to it as arguments."""

    def __init__(self, signed: Collection[str] = ()) -> None:
        """`signed` are the names that can be negative."""
        self._signed = signed
        self._numbers: list[np.float32] = []
        self._variables: dict[np.float32, str] = {}  # of the numbers of one formula
        self._rows: list[NearestRow | FormatRow | PowerRow] = []

    @property
    def constants(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        """The numbers, in the order of the variables that have them."""
        return np.array(self._numbers, _F)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that have the numbers."""
        return tuple(f"k{place}" for place in range(len(self._numbers)))

    @property
    def rows(self) -> tuple[NearestRow | FormatRow | PowerRow, ...]:
        """The formats, as `row{place}`."""
        return tuple(self._rows)

    def formula(self, text: str, names: Mapping[str, str]) -> str:
        """Return a formula (BLF-002); `names` are the variables of its names."""
        self._variables = {}
        return self._expression(parsed(text), names)

    def stored(self, text: str, names: Mapping[str, str], fmt: Format, rounding: Rounding) -> str:
        """Return the code and the number of a formula in a format."""
        self._variables = {}
        return self._stored(parsed(text), names, fmt, rounding)

    def _stored(
        self, formula: Formula, names: Mapping[str, str], fmt: Format, rounding: Rounding
    ) -> str:
        expression = self._expression(formula, names)
        step = _rounding_step(fmt, rounding, is_negative=can_be_negative(formula, self._signed))
        if step == "stored_in_binary32":
            return f"stored_in_binary32({expression})"
        self._rows.append(_row_of(fmt, rounding, step))
        return f"{step}({expression}, rows[{len(self._rows) - 1}])"

    def _expression(self, formula: Formula, names: Mapping[str, str]) -> str:
        match formula:
            case Number(value):
                number = nearest_binary32(value)
                if number not in self._variables:
                    self._variables[number] = f"k{len(self._numbers)}"
                    self._numbers.append(number)
                return self._variables[number]
            case Name(text):
                return names[text]
            case Percentile() as percentile:
                return names[percentile.name]
            case Apply("if", (test, body, orelse)):
                asked, a, b = (self._expression(each, names) for each in (test, body, orelse))
                return f"({a} if {asked} != F(0) else {b})"
            case Apply(operator, (argument,)) if operator in formats:
                fmt = formats[operator]
                return f"{self._stored(argument, names, fmt, format_rounding(fmt))}[1]"
            case Apply(operator, arguments):
                texts = [self._expression(argument, names) for argument in arguments]
        return _operation(operator, texts)


def _operation(operator: str, arguments: Sequence[str]) -> str:
    """Return an operation, or a call, whose arguments are texts."""
    if operator in ("<", ">"):
        return f"(F(1) if {arguments[0]} {operator} {arguments[1]} else F(0))"
    if operator in _FUNCTIONS:
        return f"{_FUNCTIONS[operator]}({', '.join(arguments)})"
    if is_own_word(operator):
        return f"F(own_{operator}({', '.join(arguments)}))"
    return f"F({arguments[0]} {operator} {arguments[1]})"


def can_be_negative(formula: Formula, known: Collection[str] = ()) -> bool:
    """Return whether a formula can be negative, or -0, as far as its operators say.

    Amaxes and scales are not negative, but scales whose formula can be; those are `known`.

    >>> can_be_negative(parsed("amax / 6")), can_be_negative(parsed("amax - 6"))
    (False, True)
    """
    match formula:
        case Number(value):
            return value < 0
        case Name(text):
            return text in known
        case Percentile():
            return False
        case Apply("<" | ">" | "abs" | "square", _):
            return False
        case Apply("-", _):
            return True
        case Apply(operator, _) if is_own_word(operator):
            return True
        case Apply("if", (_, *arguments)) | Apply(_, arguments):
            return any(can_be_negative(argument, known) for argument in arguments)


def nearest_binary32(number: Fraction) -> np.float32:
    """Return a number, rounded once, ties to even.

    >>> float(nearest_binary32(Fraction(1, 3))), float(nearest_binary32(Fraction(2) ** 128))
    (0.3333333432674408, inf)
    """
    if number == 0:
        return _F(0)
    numerator, denominator = abs(number.numerator), number.denominator
    exponent = numerator.bit_length() - denominator.bit_length()
    exponent -= Fraction(numerator, denominator) < Fraction(2) ** exponent
    unit = max(exponent, -126) - 23
    units = round(Fraction(numerator, denominator) / Fraction(2) ** unit)  # ties to even
    magnitude = math.inf if units >= 2 ** (128 - unit) else math.ldexp(units, unit)
    return _F(magnitude if number > 0 else -magnitude)
