"""MX scale rules, and the formats of elements."""

from typing import Literal, get_args

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import as_format

ScaleRule = Literal["floor", "ceil", "even", "rceil"]
SCALE_RULES: tuple[ScaleRule, ...] = get_args(ScaleRule)


def mx_element(fmt: str | Format) -> Format:
    """Return a format that elements of MX can have; refuse any other (MXS-001)."""
    found = as_format(fmt)
    if found.bits > 8 or found.sign == "none":
        raise ValueError(
            f"format {found.name!r} has {found.bits} bits and sign {found.sign!r}; elements of MX "
            "are signed and of at most 8 bits: e4m3, e5m2, e2m3, e3m2, e2m1 or int8_mx"
        )
    return found
