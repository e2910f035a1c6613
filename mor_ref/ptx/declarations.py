"""Reads the declarations of PTX: `.shared .align 8 .b8 sums[64]` and others."""

import re

from mor_ref.ptx.errors import refusal
from mor_ref.ptx.program import WIDTHS, Variable

_SPACES = ("reg", "param", "shared", "global", "const", "local")
_MOST_BYTES = 1 << 30  # of one variable
_LINKING = {"visible", "weak", "extern", "common", "managed"}
_WORD = re.compile(r"\s*\.(\w+)(?:\s*\([^)]*\))?")
_ALIGN = re.compile(r"\s*(\d{1,18})(?!\d)")
_MOST_DIGITS = 18
_LONG = re.compile(rf"\d{{{_MOST_DIGITS + 1},}}")
_DECLARED = re.compile(
    r"\s*(?P<name>[\w$%]+)\s*(?:<(?P<count>\d+)>)?\s*(?P<sides>(?:\[\s*\d*\s*\]\s*)*)"
)


def declared(line: int, text: str) -> list[Variable]:
    """Return the variables of a declaration."""
    plain, equals, initial = text.partition("=")
    space, kind, vector, alignment, at = _words(line, plain)
    found = []
    for name in plain[at:].split(","):
        match = _DECLARED.fullmatch(name)
        if not match:
            raise refusal(line, text, "this declaration is not understood")
        if _LONG.search(name):
            raise refusal(line, text[:60], f"a number has more than {_MOST_DIGITS} digits")
        bytes_each = max(1, WIDTHS[kind] // 8) * vector
        count = 1
        for side in re.findall(r"\[\s*(\d*)\s*\]", match.group("sides")):
            count *= int(side or 0)
        values = _values(initial) if equals else ()
        if not count and values:
            count = len(values)
        if len(values) > count * vector:
            why = f"it has {len(values)} initial values for {count * vector} places"
            raise refusal(line, text, why)
        if bytes_each * count > _MOST_BYTES:
            why = f"it has {bytes_each * count} bytes; at most {_MOST_BYTES} are supported"
            raise refusal(line, text, why)
        found.append(
            Variable(
                line, space, match.group("name"), kind, alignment or bytes_each,
                bytes_each * count, int(match.group("count") or 0), values,
            )
        )  # fmt: skip
    return found


def _words(line: int, text: str) -> tuple[str, str, int, int, int]:
    """Return the space, the type, the length of vectors, the alignment, and the place behind."""
    space, kind, vector, alignment, at, is_pointer = "", "", 1, 0, 0, False
    while word := _WORD.match(text, at):
        at, name = word.end(), word.group(1)
        if name in _SPACES and not space:
            space = name
        elif name in WIDTHS:
            kind = name
        elif name in ("v2", "v4", "v8"):
            vector = int(name[1:])
        elif name == "align":
            number, at = _aligned(line, text, at)
            if not is_pointer:  # else it is that of the memory behind the pointer
                alignment = number
        elif name == "ptr":
            is_pointer = True
        elif name not in _LINKING and name != "attribute" and not (is_pointer and name in _SPACES):
            raise refusal(line, text, f".{name} is not supported")
    if not space or not kind:
        raise refusal(line, text, "a declaration has a space and a type")
    return space, kind, vector, alignment, at


def _aligned(line: int, text: str, at: int) -> tuple[int, int]:
    """Return the number of `.align`, and the place behind it."""
    number = _ALIGN.match(text, at)
    if number is None:
        raise refusal(line, text, ".align has no number")
    return int(number.group(1)), number.end()


def _values(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.replace("{", "").replace("}", "").split(","))
