"""Reads the declarations of PTX: `.shared .align 8 .b8 sums[64]` and others."""

import math
import re

from mor_ref.ptx.agreement import is_constant
from mor_ref.ptx.constants import constant_of
from mor_ref.ptx.errors import refusal
from mor_ref.ptx.program import WIDTHS, Variable

_SPACES = ("reg", "param", "shared", "global", "const", "local")
_MOST_BYTES = 1 << 30  # of one variable
_LINKING = ("visible", "weak", "extern", "common")
_WITHOUT_EFFECT = ("managed", "attribute")
_HANDLES = dict.fromkeys(("texref", "surfref", "samplerref"), "u64")  # of parameters
_WORD = re.compile(r"\s*\.(\w+)(?:\s*\((?:[^()]|\([^()]*\))*\))?")
_WHOLE = r"\d\w*"
_ALIGN = re.compile(rf"\s*({_WHOLE})")
_DECLARED = re.compile(
    rf"\s*(?P<name>[\w$%]+)\s*(?:<\s*(?P<count>{_WHOLE})\s*>)?"
    rf"\s*(?P<sides>(?:\[\s*(?:{_WHOLE})?\s*\]\s*)*)"
)


def declared(line: int, text: str) -> list[Variable]:
    """Return the variables of a declaration."""
    plain, equals, initial = text.partition("=")
    space, kind, vector, alignment, linking, at = _words(line, plain)
    if equals and space not in ("global", "const"):
        raise refusal(line, text, "only .global and .const have initial values")
    found = []
    for name in plain[at:].split(","):
        match = _DECLARED.fullmatch(name)
        if not match:
            raise refusal(line, text, "this declaration is not understood")
        bytes_each = max(1, WIDTHS[kind] // 8) * vector
        sides = [
            size_of(line, text, n or "0")
            for n in re.findall(r"\[\s*(\w*)\s*\]", match.group("sides"))
        ]
        if equals and sides and not sides[0]:
            sides[0] = len(split(initial.strip()[1:-1]))
        sizes = sides + [vector] * (vector > 1)
        values = tuple(_values(line, text, initial.strip(), sizes)) if equals else ()
        count = math.prod(sides)
        if bytes_each * count > _MOST_BYTES:
            why = f"it has {bytes_each * count} bytes; at most {_MOST_BYTES} are supported"
            raise refusal(line, text, why)
        found.append(
            Variable(
                line, space, match.group("name"), kind, alignment or bytes_each,
                bytes_each * count, size_of(line, text, match.group("count") or "0"), values,
                linking=linking,
            )
        )  # fmt: skip
    return found


def _words(line: int, text: str) -> tuple[str, str, int, int, str, int]:
    """Return space, type, length of vectors, alignment, directive of linking, and place behind."""
    space, kind, vector, alignment, linking, at, is_pointer = "", "", 1, 0, "", 0, False
    while word := _WORD.match(text, at):
        at, name = word.end(), word.group(1)
        if name in _SPACES and not space:
            space = name
        elif name in WIDTHS or name in _HANDLES:
            kind = _HANDLES.get(name, name)
        elif name in ("v2", "v4", "v8"):
            vector = int(name[1:])
        elif name == "align":
            number, at = _aligned(line, text, at)
            # That of a pointer is of the memory behind it.
            alignment = alignment if is_pointer else number
        elif name == "ptr":
            is_pointer = True
        elif name in _LINKING:
            linking = linking or name
        elif name not in _WITHOUT_EFFECT and not (is_pointer and name in _SPACES):
            raise refusal(line, text, f".{name} is not supported")
    if not space or not kind:
        raise refusal(line, text, "a declaration has a space and a type")
    return space, kind, vector, alignment, linking, at


def _aligned(line: int, text: str, at: int) -> tuple[int, int]:
    """Return the number of `.align`, and the place behind it."""
    number = _ALIGN.match(text, at)
    if number is None:
        raise refusal(line, text, ".align has no number")
    found = size_of(line, text, number.group(1))
    if found.bit_count() != 1:
        raise refusal(line, text, "the number of .align is a power of two")
    return found, number.end()


def size_of(line: int, text: str, number: str) -> int:
    """Return a number of a declaration, which may be in base 16, 8 or 2."""
    constant = constant_of(number) if number[:1].isdigit() else None
    if constant is None or not is_constant(constant, "u64"):
        raise refusal(line, text[:60], f"{number[:40]!r} is not a number of at most 64 bits")
    return int(constant.value)


def _values(
    line: int, whole: str, text: str, sizes: list[int], at: int = 0
) -> list[tuple[int, str]]:
    """Return the initial values of an array and their places; a row may lack some."""
    if not sizes:
        return [(at, text)]
    if not (text.startswith("{") and text.endswith("}")):
        raise refusal(line, whole, "the initial values of a row are not in braces")
    parts = split(text[1:-1])
    if len(parts) > sizes[0]:
        why = f"it has {len(parts)} initial values for {sizes[0]} places"
        raise refusal(line, whole, why)
    step = math.prod(sizes[1:])
    return [
        each
        for k, part in enumerate(parts)
        for each in _values(line, whole, part, sizes[1:], at + k * step)
    ]


def split(text: str) -> tuple[str, ...]:
    """Return the parts of a list: commas inside of brackets separate none."""
    found, depth, begin = list[str](), 0, 0
    for at, letter in enumerate(text):
        if letter in "{[(":
            depth += 1
        elif letter in "}])":
            depth -= 1
        elif letter == "," and not depth:
            found.append(text[begin:at].strip())
            begin = at + 1
    last = text[begin:].strip()
    return (*found, last) if last or found else ()
