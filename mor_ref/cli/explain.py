"""`mor-ref explain`: one number, its neighbours, and the rule that chose between them."""

import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from mor_ref.addresses import on_site, rule_path
from mor_ref.definitions.encoding import rounding_for
from mor_ref.definitions.formats import as_format, special_cases_for
from mor_ref.explanations.encoding import ExplainedEncoding, Neighbour, explain
from mor_ref.explanations.numerals import parse_number


def explainer(
    fmt_name: str,
    *,
    rounding: str | None,
    overflow: str | None,
    nan: str | None,
    profile: str | None,
    source: str | None,
    random_word: int | None,
    n_random_bits: int | None,
) -> Callable[[str], ExplainedEncoding]:
    """Return what explains the encoding of a number as it was typed, under these options."""
    fmt = as_format(fmt_name)
    cases = special_cases_for(fmt, overflow, nan, profile)
    mode = rounding_for(fmt, rounding, cases)

    def explained(text: str) -> ExplainedEncoding:
        return explain(
            parse_number(text, source),
            fmt,
            mode,
            cases,
            random_word=random_word,
            n_random_bits=n_random_bits,
        )

    return explained


def run(value: str, explained: Callable[[str], ExplainedEncoding], *, as_json: bool) -> None:
    """Print the encoding of a number."""
    found = explained(value)
    if as_json:
        print(json.dumps(_record(found), indent=1))
    else:
        print(found)


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
