"""A number format: a row of numbers, and its properties.

`Format` holds the row and refuses rows that cannot exist. The rows of the
built-in formats are in `mor_ref.definitions.formats`; nothing here knows one of them.
"""

import math
import operator
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Literal, get_args

from mor_ref.argument_checks import fault_of_name, shown, whole_number

Sign = Literal["sign-magnitude", "none", "twos-complement"]
Specials = Literal["ieee", "fn", "fnuz", "none"]

# Every value of a format is a binary32 value, for decoding returns binary32 (FMT-010).
_BINARY32_MANTISSA_BITS = 23
_BINARY32_LARGEST_EXPONENT = 127
_MOST_BITS_KEPT = 16  # of a format whose numbers are kept once they are known
_BINARY32_SMALLEST_EXPONENT = -126  # of a normal number; powers of two may reach half of it


class FormatError(ValueError):
    """A format that cannot exist was asked for."""


@dataclass(frozen=True)
class Format:
    """A number format of at most 32 bits, whose values are all binary32 values.

    `specials` says which codes are not finite numbers: "ieee" keeps the top
    exponent for infinities and NaNs, "fn" keeps the code of all ones for NaN, "fnuz" keeps the
    code of negative zero for NaN, "none" keeps nothing. `sign` says how a negative number is
    written: "sign-magnitude", "twos-complement" (then there are no exponent bits), or "none".

    >>> nibble = Format("nibble", exponent_bits=2, mantissa_bits=1, bias=1, specials="none")
    >>> nibble.largest, nibble.smallest_subnormal, nibble.code_count
    (6.0, 0.5, 16)
    """

    name: str
    _: KW_ONLY
    exponent_bits: int
    mantissa_bits: int
    bias: int
    specials: Specials = "ieee"
    sign: Sign = "sign-magnitude"

    def __post_init__(self) -> None:
        for field in ("exponent_bits", "mantissa_bits", "bias"):  # integers of NumPy and others
            given = getattr(self, field)
            if not isinstance(given, bool):
                with suppress(TypeError):
                    object.__setattr__(self, field, operator.index(given))
        for what_is_wrong in (_wrong_field, _impossible_layout, _outside_binary32):
            problem = what_is_wrong(self)
            if problem:
                raise FormatError(f"format {shown(self.name)} cannot exist: {problem}")

    def __hash__(self) -> int:
        return hash(self.name)  # looked up for each number, and formats of one name are rare

    # ------------------------------------------------------------------ layout

    @cached_property
    def bits(self) -> int:
        """The width of a code."""
        return (self.sign != "none") + self.exponent_bits + self.mantissa_bits

    @cached_property
    def code_count(self) -> int:
        """How many codes there are, those that are not numbers included."""
        return 1 << self.bits

    @cached_property
    def sign_bit(self) -> int:
        """The bit that says negative, as a mask; 0 for a format without sign."""
        return 0 if self.sign == "none" else 1 << (self.bits - 1)

    @cached_property
    def is_power_of_two(self) -> bool:
        """Whether every value is a power of two, zero not among them: no mantissa, no sign."""
        return self.mantissa_bits == 0

    # ------------------------------------------------------------------ special codes

    @cached_property
    def infinity_code(self) -> int | None:
        """The code of +infinity, or None (FMT-003)."""
        if self.specials != "ieee":
            return None
        return ((1 << self.exponent_bits) - 1) << self.mantissa_bits

    @cached_property
    def nan_codes(self) -> tuple[range, ...]:
        """The codes that are NaN, as ascending ranges: one for each sign (FMT-003 to FMT-006)."""
        magnitudes = 1 << (self.exponent_bits + self.mantissa_bits)
        if self.specials == "none":
            return ()
        if self.specials == "fnuz":
            return (range(self.sign_bit, self.sign_bit + 1),)
        first = magnitudes - 1 if self.infinity_code is None else self.infinity_code + 1
        positive = range(first, magnitudes)
        if self.sign == "none":
            return (positive,)
        return (positive, range(first + self.sign_bit, magnitudes + self.sign_bit))

    @cached_property
    def canonical_nan_code(self) -> int | None:
        """The NaN that this reference writes: all ones without the sign (FMT-011); None if none."""
        return self.nan_codes[0][-1] if self.nan_codes else None

    # ------------------------------------------------------------------ values

    @cached_property
    def smallest_exponent(self) -> int:
        """The exponent of the smallest normal number: 1 - bias; -bias for powers of two."""
        return -self.bias if self.is_power_of_two else 1 - self.bias

    @cached_property
    def largest_code(self) -> int:
        """The code of the largest finite number."""
        if self.infinity_code is not None:
            return self.infinity_code - 1
        return (1 << (self.exponent_bits + self.mantissa_bits)) - 1 - (self.specials == "fn")

    @cached_property
    def largest(self) -> float:
        """The largest finite number."""
        return self.value(self.largest_code)

    @property
    def smallest_normal(self) -> float | None:
        """The smallest normal number; None for integers, which have no exponent."""
        return math.ldexp(1.0, self.smallest_exponent) if self.exponent_bits else None

    @property
    def smallest_subnormal(self) -> float | None:
        """The smallest positive number below the normal ones; None if code 0 is not zero."""
        return None if self.is_power_of_two else self.value(1)

    def value(self, code: int) -> float:
        """Return the number that `code` stands for, exactly (FMT-001 to FMT-008).

        >>> from mor_ref import formats
        >>> formats["e4m3"].value(0x7E), formats["e2m1"].value(0x8), formats["int8_mx"].value(0x80)
        (448.0, -0.0, -2.0)
        """
        known = self._known_values.get(code) if type(code) is int else None
        if known is None:
            code = whole_number(f"code of {self.name}", code, 0, self.code_count - 1)
            known = self._value(code)
            if self.bits <= _MOST_BITS_KEPT:
                self._known_values[code] = known
        return known

    @cached_property
    def _known_values(self) -> dict[int, float]:
        """The numbers of the codes that were asked for."""
        return {}

    def _value(self, code: int) -> float:
        for codes in self.nan_codes:
            if code in codes:
                return math.nan
        negative = bool(code & self.sign_bit)
        if self.sign == "twos-complement":  # FMT-008
            count = code - (self.code_count if negative else 0)
            return math.ldexp(count, self.smallest_exponent - self.mantissa_bits)
        magnitude = self._magnitude(code & ~self.sign_bit)
        return -magnitude if negative else magnitude

    def _magnitude(self, code: int) -> float:
        if code == self.infinity_code:
            return math.inf
        if self.is_power_of_two:  # FMT-007
            return math.ldexp(1.0, code - self.bias)
        exponent_field, mantissa = divmod(code, 1 << self.mantissa_bits)
        # FMT-001; a field of zero has no hidden bit and the exponent of a field of one (FMT-002).
        hidden = (1 << self.mantissa_bits) if exponent_field else 0
        exponent = max(exponent_field, 1) - self.bias
        return math.ldexp(hidden + mantissa, exponent - self.mantissa_bits)

    def describe_layout(self) -> str:
        """Return the fields of a code from the top bit, such as "S1 E4 M3"; I is an integer."""
        if self.sign == "twos-complement":
            return f"I{self.bits}"
        fields = [("S", self.bits - self.exponent_bits - self.mantissa_bits)]
        fields += [("E", self.exponent_bits), ("M", self.mantissa_bits)]
        return " ".join(f"{letter}{width}" for letter, width in fields if width)


def _wrong_field(fmt: Format) -> str | None:
    """Return the fault of a single field, or None."""
    fault = fault_of_name(fmt.name)
    if fault:
        return fault
    for field in ("exponent_bits", "mantissa_bits", "bias"):
        number = getattr(fmt, field)
        if not isinstance(number, int) or isinstance(number, bool):
            return f"{field} is {shown(number)}; give an int"
        if not (-1000 if field == "bias" else 0) <= number <= 1000:
            return f"{field} is out of all bounds; give widths from 0 on that add up to 32 at most"
    for field, kinds in (("specials", get_args(Specials)), ("sign", get_args(Sign))):
        if getattr(fmt, field) not in kinds:
            return f"{field} is {shown(getattr(fmt, field))}; give one of {', '.join(kinds)}"
    return None


def _impossible_layout(fmt: Format) -> str | None:
    """Return the reason why these fields do not make a format together, or None."""
    if fmt.sign == "twos-complement":
        if fmt.exponent_bits or fmt.specials != "none":
            return (
                "a two's complement format is an integer times a power of two; "
                'give exponent_bits=0 and specials="none"'
            )
        return None if fmt.mantissa_bits else "mantissa_bits is 0, so its only value is 0; give 1"
    if fmt.exponent_bits == 0:
        return 'exponent_bits is 0; give at least 1, or sign="twos-complement" for an integer'
    if fmt.mantissa_bits == 0 and (fmt.sign != "none" or fmt.specials not in ("fn", "none")):
        return (
            "without mantissa bits it has neither a zero nor an even neighbour; give mantissa_bits "
            'of at least 1, or sign="none" with specials "fn" or "none" for powers of two'
        )
    if fmt.specials == "ieee" and fmt.exponent_bits == 1:
        return 'specials="ieee" takes the only exponent of a normal number; give 2 exponent bits'
    if fmt.specials == "fnuz" and fmt.sign == "none":
        return 'specials="fnuz" needs a negative zero to be NaN; give sign="sign-magnitude"'
    return None


def _outside_binary32(fmt: Format) -> str | None:
    """Return the reason why some value is not a binary32 value, or None."""
    if fmt.mantissa_bits > _BINARY32_MANTISSA_BITS:
        return f"mantissa_bits is {fmt.mantissa_bits}, but binary32 has 23; give at most 23"
    if fmt.exponent_bits > 8:
        return f"exponent_bits is {fmt.exponent_bits}, but binary32 has 8; give at most 8"
    lowest = fmt.smallest_exponent
    limit = _BINARY32_SMALLEST_EXPONENT - fmt.is_power_of_two
    if lowest < limit:
        return f"its smallest normal value is 2^{lowest}, below 2^{limit}; give a smaller bias"
    largest_code = fmt.sign_bit if fmt.sign == "twos-complement" else fmt.largest_code
    exponent = (largest_code >> fmt.mantissa_bits) - fmt.bias
    if exponent > _BINARY32_LARGEST_EXPONENT:
        return f"its largest exponent is {exponent}, above binary32's 127; give a larger bias"
    return None
