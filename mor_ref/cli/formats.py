"""`mor-ref formats`: the catalogue as a table, or one format down to its codes."""

import json
import math
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mor_ref.cli.show import console_of_some_width
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import as_format, formats
from mor_ref.explanations.text import codes, split_fields

_CODES_SHOWN = 256  # larger formats show the special codes only


def run(name: str | None, *, as_json: bool) -> None:
    """Print the catalogue, or one format."""
    console = console_of_some_width()
    if as_json:
        every = [record(fmt) for fmt in formats.values()]
        rows: Any = every if name is None else record(as_format(name))
        print(json.dumps(rows, indent=1))
    elif name is not None:
        _print_format(as_format(name), console)
    else:
        console.print(_catalogue())


def number(value: float | None) -> str:
    """Return a number as text: exactly, and a small power of two as 2^n."""
    if value is None:
        return "-"
    if math.isnan(value):
        return "NaN"
    mantissa, exponent = math.frexp(value)
    is_short = len(f"{value:g}") <= 6 and float(f"{value:g}") == value
    if abs(mantissa) == 0.5 and not is_short:
        return f"{'-' if value < 0 else ''}2^{exponent - 1}"
    return repr(value).removesuffix(".0")


def record(fmt: Format) -> dict[str, Any]:
    """Return the JSON record of a format."""
    return {
        "name": fmt.name,
        "bits": fmt.bits,
        "sign": fmt.sign,
        "exponent_bits": fmt.exponent_bits,
        "mantissa_bits": fmt.mantissa_bits,
        "bias": fmt.bias,
        "specials": fmt.specials,
        "largest": fmt.largest,
        "smallest_normal": fmt.smallest_normal,
        "smallest_subnormal": fmt.smallest_subnormal,
        "largest_code": fmt.largest_code,
        "infinity_code": fmt.infinity_code,
        "nan_codes": [[found[0], found[-1]] for found in fmt.nan_codes],
        "values": _hexadecimal_values(fmt) if fmt.code_count <= _CODES_SHOWN else None,
    }


def _hexadecimal_values(fmt: Format) -> list[str]:
    """Return the value of each code as a hexadecimal float, as JSON has no infinity or NaN."""
    return [fmt.value(code).hex() for code in range(fmt.code_count)]


def nans(fmt: Format) -> str:
    """Return the NaN codes as text: +- for both signs, ..+ for a range."""
    if not fmt.nan_codes:
        return "-"
    both_signs = "+-" if len(fmt.nan_codes) == 2 else ""
    return both_signs + codes(fmt, fmt.nan_codes[0][0]) + "..+" * (len(fmt.nan_codes[0]) > 1)


def _catalogue() -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("name", "layout", "bias", "largest", "normal", "subnormal", "infinity", "NaN"):
        is_number = heading in ("bias", "largest", "normal", "subnormal")
        table.add_column(heading, justify="right" if is_number else "left", no_wrap=True)
    for fmt in formats.values():
        largest = number(fmt.largest)
        table.add_row(
            fmt.name,
            fmt.describe_layout(),
            str(fmt.bias),
            largest if len(largest) < 9 else f"{fmt.largest:.4g}",
            number(fmt.smallest_normal),
            number(fmt.smallest_subnormal),
            codes(fmt, fmt.infinity_code),
            nans(fmt),
        )
    table.caption = (
        "normal, subnormal: the smallest of each; ..+: and all codes above; +-: with both signs"
    )
    table.caption_justify = "left"
    return table


def _print_format(fmt: Format, console: Console) -> None:
    facts = Table(box=None, show_header=False, pad_edge=False)
    for label, value in (
        ("bits, top first", _bit_fields(fmt)),
        ("bias", str(fmt.bias)),
        ("largest", f"{number(fmt.largest)} ({codes(fmt, fmt.largest_code)})"),
        ("smallest normal", number(fmt.smallest_normal)),
        ("smallest subnormal", number(fmt.smallest_subnormal)),
        ("infinity", codes(fmt, fmt.infinity_code)),
        ("NaN", nans(fmt)),
    ):
        facts.add_row(label, value)
    console.print(Text.assemble((fmt.name, "bold"), f"  {fmt.describe_layout()}"))
    console.print(facts)
    console.print()
    if fmt.code_count <= _CODES_SHOWN:
        console.print(_values(fmt, console.width))
    else:
        console.print(f"{fmt.code_count:,} codes are too many to list; mor_ref.decode decodes any.")


def _bit_fields(fmt: Format) -> str:
    if fmt.sign == "twos-complement":
        return "I" * fmt.bits
    return split_fields(
        fmt, "S" * bool(fmt.sign_bit) + "E" * fmt.exponent_bits + "M" * fmt.mantissa_bits
    )


def _values(fmt: Format, width: int) -> Table:
    """Return every code with its value, in as many columns as fit the width."""
    cells = [(codes(fmt, code), number(fmt.value(code))) for code in range(fmt.code_count)]
    widths = [max(map(len, column)) for column in zip(("code", "value"), *cells, strict=True)]
    cell_width = sum(widths) + 4
    columns = max(1, width // cell_width)
    length = -(-len(cells) // columns)
    table = Table(box=None, pad_edge=False)
    for _ in range(columns):
        table.add_column("code", style="dim", no_wrap=True)
        table.add_column("value", justify="right", no_wrap=True)
    for row in range(length):
        table.add_row(*(text for cell in cells[row::length] for text in cell))
    return table
