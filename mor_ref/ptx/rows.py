"""Rows of the table of instructions: a pattern of opcodes, and the C++ that computes them."""

import functools
import re
from dataclasses import dataclass
from re import Match

MODES = {
    "rn": "even", "rz": "zero", "rm": "down", "rp": "up",
    "rni": "even", "rzi": "zero", "rmi": "down", "rpi": "up",
}  # fmt: skip
_FLAGS = {
    "ftz": "FTZ", "sat": "SAT", "NaN": "NAN_WINS", "abs": "XOR_SIGN",
    "relu": "RELU", "satfinite": "SATFINITE",
}  # fmt: skip
_PAIRS = {"e2m1": "b8"}  # the register of two codes; others have 16 bits
_WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


@dataclass(frozen=True)
class Row:
    """Instructions alike: `types` are those of the result and of the operands.

    In `call` and in `types`, names in braces are groups of the pattern. `{mode}` is C++'s for the
    rounding, and `{flags}` for the modifiers of the groups in `_FLAGS`. `opened` says why PTX
    leaves the bits of the result open, if it does.
    """

    pattern: str
    call: str
    types: tuple[str, ...]
    opened: str = ""


@dataclass(frozen=True)
class Found:
    """A row with the words of one opcode in it."""

    call: str
    types: tuple[str, ...]
    opened: str


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def found_in(rows: tuple[Row, ...], opcode: str, count: int) -> Found | None:
    """Return the row of an opcode with so many operands, else with any, or None."""
    first = None
    for row in rows:
        match = _compiled(row.pattern).fullmatch(opcode)
        if match and (first is None or len(row.types) == count):
            words = _words(match)
            types = tuple(kind.format_map(words) for kind in row.types)
            first = Found(row.call.format_map(words), types, row.opened)
            if len(types) == count:
                return first
    return first


def _words(match: Match[str]) -> dict[str, str]:
    groups = {name: value or "" for name, value in match.groupdict().items()}
    flags = [_FLAGS[name] for name in _FLAGS if groups.get(name)]
    words = {**groups, "flags": " | ".join(flags) or "0"}
    words["mode"] = f"Mode::{MODES[groups.get('mode') or 'rn']}"
    if groups.get("t") in _WIDER:
        words["wide"] = _WIDER[groups["t"]]
    words["upper"] = groups.get("t", "").upper()
    words["f_upper"] = groups.get("f", "").upper()
    words |= {f"packed_{name}": _PAIRS.get(groups.get(name, ""), "b16") for name in "tf"}
    return words
