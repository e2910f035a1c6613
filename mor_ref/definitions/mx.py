"""MX scale rules, and the formats of elements."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from mor_ref.argument_checks import whole_number
from mor_ref.definitions.catalogue import Catalogue
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import FormatLike, as_format

_NEVER = 1 << 23  # above the 23 bits after the leading one of a binary32 number


@dataclass(frozen=True)
class ScaleRule:
    """One way of finding the scale of a block (MXS-003 to MXS-006).

    p is the exponent of amax, plus one if the 23 bits after its leading one are at least
    `up_from(width)`. `width` is how many bits an element has after its leading one. A rule without
    `up_from` divides amax by the largest number of the elements, as rceil does.
    """

    name: str
    up_from: Callable[[int], int] | None = None

    def __post_init__(self) -> None:
        if not (self.up_from is None or callable(self.up_from)):
            raise TypeError(
                f"up_from is {self.up_from!r}; give a function of the width, such as "
                f"lambda width: {self.up_from!r}"
            )

    def up_from_of(self, fmt: Format) -> int:
        """Return the least 23 bits that count as the next exponent, for elements of a format."""
        width = fmt.mantissa_bits - (fmt.sign == "twos-complement")
        if self.up_from is None:
            return _NEVER
        least = self.up_from(width)
        return whole_number(f"up_from({width}) of scale_rule {self.name!r}", least, 0, _NEVER)

    def turn_of(self, fmt: Format) -> Fraction:
        """Return the amax at which, or above which, the scale of a block becomes larger."""
        if self.up_from is None:
            return Fraction(fmt.largest)
        # Without the last of the 23 bits: ceil turns a step above 1. floor turns at 2, thus at 1.
        return 1 + Fraction(self.up_from_of(fmt) // 2 % (1 << 22), 1 << 22)


SCALE_RULES: Catalogue[ScaleRule] = Catalogue(
    "scale_rule",
    ScaleRule,
    (
        ScaleRule("floor", lambda _: _NEVER),
        ScaleRule("ceil", lambda _: 1),
        ScaleRule("even", lambda width: _NEVER - (1 << (22 - width))),
        ScaleRule("rceil"),
    ),
)


def mx_element(fmt: FormatLike) -> Format:
    """Return a format that elements of MX can have; refuse any other (MXS-001)."""
    element = as_format(fmt)
    if element.bits > 8 or element.sign == "none":
        raise ValueError(
            f"format {element.name!r} has {element.bits} bits and sign {element.sign!r}; elements "
            "of MX are signed and of at most 8 bits: e4m3, e5m2, e2m3, e3m2, e2m1 or int8_mx"
        )
    return element
