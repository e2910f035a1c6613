"""What the commands share of showing things to people."""

from rich.console import Console

from mor_ref.format import Format

_NARROWEST = 80  # columns


def console_of_some_width() -> Console:
    """A console that is never so narrow that a table loses something: lines run over instead."""
    console = Console()
    return console if console.width >= _NARROWEST else Console(width=_NARROWEST)


def codes(fmt: Format, code: int | None) -> str:
    """A code in hexadecimal, as many digits as the format has."""
    return "-" if code is None else f"0x{code:0{-(-fmt.bits // 4)}X}"


def split_fields(fmt: Format, bits: str) -> str:
    """The bits of a code, a space between its fields."""
    if fmt.sign == "twos-complement":
        return bits
    sign = bool(fmt.sign_bit)
    fields = bits[:sign], bits[sign : sign + fmt.exponent_bits], bits[sign + fmt.exponent_bits :]
    return " ".join(field for field in fields if field)
