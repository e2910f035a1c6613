"""`mor-ref explain`: one number, its neighbours, and the rule that chose between them."""

import decimal
import json
import math
from fractions import Fraction
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mor_ref.addresses import on_site, rule_path, see
from mor_ref.cli.show import codes, console_of_some_width, split_fields
from mor_ref.definitions.encoding import Rounding, rounding_for
from mor_ref.definitions.formats import as_format, special_cases_for
from mor_ref.explain.encoding import ExplainedEncoding, Neighbour, explain
from mor_ref.explain.numerals import binary64_bits, parse_number


def run(
    value: str,
    fmt_name: str,
    *,
    rounding: str | None,
    overflow: str | None,
    nan: str | None,
    profile: str | None,
    source: str | None,
    random_word: int | None,
    n_random_bits: int | None,
    as_json: bool,
) -> None:
    """Print the encoding of a number."""
    fmt = as_format(fmt_name)
    cases = special_cases_for(fmt, overflow, nan, profile)
    mode: Rounding = rounding_for(fmt, rounding, cases)
    found = explain(
        parse_number(value, source),
        fmt,
        mode,
        cases,
        random_word=random_word,
        n_random_bits=n_random_bits,
    )
    if as_json:
        print(json.dumps(_record(found), indent=1))
    else:
        _print(found, console_of_some_width())


def _record(found: ExplainedEncoding) -> dict[str, Any]:
    def exactly(value: Fraction | None) -> str | None:
        return None if value is None else str(value)

    def neighbour(value: Neighbour | None) -> dict[str, Any] | None:
        return None if value is None else {"value": exactly(value.value), "code": value.code}

    return {
        "x": found.x.hex(),
        "format": found.fmt.name,
        "rounding": found.rounding,
        "code": found.code,
        "value": found.value if math.isfinite(found.value) else str(found.value),
        "outcome": found.outcome,
        "rule": found.rule,
        "address": on_site(rule_path(found.rule)),
        "nearer_zero": neighbour(found.nearer_zero),
        "farther_from_zero": neighbour(found.farther_from_zero),
        "midpoint": exactly(found.midpoint),
        "error_in_ulp": exactly(found.error_in_ulp),
    }


def _print(found: ExplainedEncoding, console: Console) -> None:
    fmt = found.fmt
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row("input", f"{found.x!r}", found.x.hex())
    table.add_row("", "", f"0x{binary64_bits(found.x):016x} as binary64")
    table.add_row(
        "code",
        Text(codes(fmt, found.code), "bold"),
        split_fields(fmt, f"{found.code:0{fmt.bits}b}"),
    )
    table.add_row("value", f"{found.value!r}", found.value.hex())
    for label, neighbour in (
        ("nearer zero", found.nearer_zero),
        ("farther from zero", found.farther_from_zero),
    ):
        if neighbour is not None:
            place = "outside of the format"
            if neighbour.code is not None:
                place = codes(fmt, neighbour.code)
            table.add_row(label, _decimal(neighbour.value), place)
    if found.midpoint is not None:
        table.add_row("midpoint", _decimal(found.midpoint), "")
    if found.error_in_ulp is not None:
        table.add_row("error", f"{float(found.error_in_ulp):+.6g} ulp", "")
    console.print(Text.assemble((fmt.name, "bold"), f", rounding {found.rounding}"))
    console.print(table)
    console.print(f"{found.outcome} ({found.rule})", soft_wrap=True)
    console.print(see([rule_path(found.rule)]), soft_wrap=True)


def _decimal(value: Fraction) -> str:
    """Return a decimal of at most 17 digits; a longer one ends in two dots."""
    with decimal.localcontext(prec=17) as context:
        shown = decimal.Decimal(value.numerator) / decimal.Decimal(value.denominator)
        is_exact = not context.flags[decimal.Inexact]
    return f"{shown:g}" if is_exact else f"{shown:.9g}.."
