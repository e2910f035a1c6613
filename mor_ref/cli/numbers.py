"""`mor-ref encode` and `mor-ref decode`: single numbers and codes, with what their bits mean."""

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TextIO

from mor_ref.cli.formats import number
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import as_format
from mor_ref.explanations.decoding import ExplainedCode, explain_code
from mor_ref.explanations.encoding import ExplainedEncoding, Neighbour
from mor_ref.explanations.text import codes, split_fields

STDIN = "-"
_WIDTH = 12  # of a number as it was typed: most are shorter


def run_encode(
    given: list[str], explained: Callable[[str], ExplainedEncoding], *, as_json: bool
) -> None:
    """Print the code of each number."""

    def encoded(text: str) -> tuple[str, dict[str, Any]]:
        encoding = explained(text)
        code, fmt = encoding.code, encoding.fmt
        return f"{text:<{_WIDTH}}  {_bits(code, fmt)}", {"number": text, **_record(code, fmt)}

    _print(map(encoded, _words(given, sys.stdin)), as_json=as_json)


def run_decode(given: list[str], fmt_name: str, *, as_json: bool) -> None:
    """Print the number of each code, and the numbers next to it."""
    fmt = as_format(fmt_name)

    def decoded(text: str) -> tuple[str, dict[str, Any]]:
        found = explain_code(_code(text, fmt), fmt)
        near = {"below": _neighbour(found.below), "above": _neighbour(found.above)}
        line = f"{_bits(found.code, fmt)}{_between(found)}"
        return line, {**_record(found.code, fmt), **near}

    _print(map(decoded, _words(given, sys.stdin)), as_json=as_json)


def _words(given: Iterable[str], stream: TextIO) -> Iterator[str]:
    """Yield the numbers that are given, and for - those of the lines of a stream."""
    for text in given:
        if text == STDIN:
            for line in stream:
                yield from line.split()
        else:
            yield text


def _print(rows: Iterable[tuple[str, dict[str, Any]]], *, as_json: bool) -> None:
    """Print a line for each, at once: somebody may wait for it at the end of a pipe."""
    if as_json:
        print(json.dumps([record for _, record in rows], indent=1))
        return
    for line, _ in rows:
        print(line, flush=True)


def _code(text: str, fmt: Format) -> int:
    try:
        code = int(text, 0)
    except ValueError:
        raise ValueError(
            f"CODE is {text!r}; give a code of {fmt.name}, such as {codes(fmt, 1)}, 1 or 0b1; to "
            "decode a file, give --out as well"
        ) from None
    if not 0 <= code < fmt.code_count:
        highest = codes(fmt, fmt.code_count - 1)
        raise ValueError(f"CODE is {text}; {fmt.name} has the codes {codes(fmt, 0)} to {highest}")
    return code


def _bits(code: int, fmt: Format) -> str:
    bits = split_fields(fmt, f"{code:0{fmt.bits}b}")
    return f"{codes(fmt, code)}  {bits}  {number(fmt.value(code))}"


def _record(code: int, fmt: Format) -> dict[str, Any]:
    value = fmt.value(code)
    shown = value if math.isfinite(value) else str(value)
    return {"format": fmt.name, "code": code, "bits": f"{code:0{fmt.bits}b}", "value": shown}


def _neighbour(one: Neighbour | None) -> dict[str, Any] | None:
    return None if one is None else {"value": float(one.value), "code": one.code}


def _between(found: ExplainedCode) -> str:
    """Say which numbers are next to one."""

    def said(one: Neighbour) -> str:
        return f"{number(float(one.value))} ({codes(found.fmt, one.code)})"

    if found.below and found.above:
        return f"  between {said(found.below)} and {said(found.above)}"
    if found.below:
        return f"  the largest, above {said(found.below)}"
    if found.above:
        return f"  the smallest, below {said(found.above)}"
    return ""
