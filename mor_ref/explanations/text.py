"""Codes as text."""

from mor_ref.definitions.format import Format


def codes(fmt: Format, code: int | None) -> str:
    """Return a code in hexadecimal, with as many digits as the format needs."""
    return "-" if code is None else f"0x{code:0{-(-fmt.bits // 4)}X}"


def split_fields(fmt: Format, bits: str) -> str:
    """Return the bits of a code, with a space between its fields."""
    if fmt.sign == "twos-complement":
        return bits
    sign = bool(fmt.sign_bit)
    fields = bits[:sign], bits[sign : sign + fmt.exponent_bits], bits[sign + fmt.exponent_bits :]
    return " ".join(field for field in fields if field)
