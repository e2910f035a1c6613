"""How scaled numbers become the codes of elements."""

from dataclasses import dataclass

from mor_ref.definitions.encoding import ElementRounding
from mor_ref.definitions.format import Format
from mor_ref.definitions.table_format import ElementFormat, TableFormat


@dataclass(frozen=True)
class ElementRule:
    """The format of elements, and what ties and zeros become (BLF-004, BLF-014).

    With `drops_sign_of_zero`, -0 has the code 0; without `has_negative_zero`, so does each negative
    number that becomes zero.
    """

    fmt: ElementFormat
    rounding: ElementRounding = "rne"
    drops_sign_of_zero: bool = False
    has_negative_zero: bool = True

    @property
    def format_at_random(self) -> Format:
        """The format that numbers are rounded to at random (QNT-005); some elements have none."""
        if not isinstance(self.fmt, TableFormat):
            if self.rounding == "rne" and self.has_negative_zero:
                return self.fmt
            elements = f"{self.fmt.name} with ties or zeros of their own"
        else:
            elements = f"values of the table {self.fmt.name!r}"
        raise TypeError(
            f"random_bits are given, and the elements are {elements}, which are not rounded at "
            "random; leave random_bits out"
        )
