"""Instructions with predicates as results: comparisons, and `lop3`."""

import re
from collections.abc import Callable

from mor_ref.ptx.errors import refusal
from mor_ref.ptx.names import Names
from mor_ref.ptx.program import WIDTHS, Instruction
from mor_ref.ptx.remarks import by_options

_SETP = re.compile(
    r"setp\.(?P<cmp>\w+?)(?:\.(?P<join>and|or|xor))?(?:\.(?P<ftz>ftz))?"
    r"\.(?:(?P<t>[busf](?:16|32|64)|bf16)|(?P<pair>b?f16)x2)"
)
_SET = re.compile(
    r"set\.(?P<cmp>\w+?)(?:\.(?P<join>and|or|xor))?(?:\.(?P<ftz>ftz))?"
    r"\.(?P<d>[us](?:16|32)|f32|b?f16(?:x2)?)\.(?:(?P<t>[busf](?:16|32|64)|bf16)|(?P<pair>b?f16)x2)"
)
# ptxas refuses these types of a result with those of operands, and most types with .ftz.
_NO_SET = re.compile(
    r"set\..*\.(?:[us]16\.(?!b?f16$)\w+|f32\.b?f16|f16\.bf16)"
    r"|set\..*\.ftz\.(?:bf16(?:x2)?\.\w+|\w+\.(?!f16(?:x2)?$|f32$)\w+)"
)
_ONES = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}
_OF_FLOATS = {
    "eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan",
}  # fmt: skip
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_JOINED = {"and": "&&", "or": "||", "xor": "!="}


def comparison(of: Instruction, names: Names, words: dict[str, str | None], a: str, b: str) -> str:
    """Return a comparison as C++."""
    kind, how = words["t"] or "", words["cmp"] or ""
    left, right = names.value(a, kind, of), names.value(b, kind, of)
    flags = "FTZ" if words["ftz"] else "0"
    if kind.lstrip("b").startswith("f") and how not in _OF_FLOATS:
        raise refusal(of.line, of.text, f".{how} is not a comparison of floating-point numbers")
    if kind in ("f16", "bf16"):
        found = f"compared_half<Compare::{how}, {kind.upper()}, {flags}>({left}, {right})"
        return by_options(of, found)
    if kind.startswith("f"):
        return by_options(of, f"compared_{kind}<Compare::{how}, {flags}>({left}, {right})")
    how = _UNSIGNED.get(how, how)
    if how not in ("eq", "ne", "lt", "le", "gt", "ge"):
        raise refusal(of.line, of.text, f".{how} is not supported")
    return f"{how}<{kind.replace('b', 'u')}>({left}, {right})"


def _joined(of: Instruction, names: Names, words: dict[str, str | None], found: str) -> str:
    if not words["join"]:
        return found
    return f"(({found}) {_JOINED[words['join']]} bool({names.predicate(of.operands[3], of)}))"


def set_predicate(of: Instruction, names: Names) -> str:
    """Return `setp` as C++: one predicate, or it and the opposite comparison.

    Of two numbers in a register, the second predicate is that of the upper ones.
    """
    match = _SETP.fullmatch(of.opcode)
    if not match:
        raise refusal(of.line, of.text, "it is not supported")
    words = match.groupdict()
    first, _, second = of.operands[0].partition("|")
    if words["pair"]:
        found, other = _of_pair(of, names, words)
    else:
        found, other = comparison(of, names, words, of.operands[1], of.operands[2]), "!x"
    text = f"const bool x = {found}; "
    both = (first.strip(), "x"), (second.strip(), other)
    for target, value in both:
        if target not in ("", "_"):
            text += f"const bool x_{value == 'x'} = {_joined(of, names, words, value)}; "
    for target, value in both:
        if target not in ("", "_"):
            text += f"{names.result(target, of, 'pred').name} = x_{value == 'x'}; "
    return f"{{ {text}}}"


def _of_pair(of: Instruction, names: Names, words: dict[str, str | None]) -> tuple[str, str]:
    """Return the comparisons of the lower and of the upper numbers of two registers as C++."""
    kind, flags = (words["pair"] or "").upper(), "FTZ" if words["ftz"] else "0"
    if words["cmp"] not in _OF_FLOATS:
        raise refusal(of.line, of.text, f".{words['cmp']} is not a comparison of numbers")
    a, b = (names.value(text, "b32", of) for text in of.operands[1:3])
    call = f"compared_half<Compare::{words['cmp']}, {kind}, {flags}>"
    low, high = f"{call}({a} & 0xFFFF, {b} & 0xFFFF)", f"{call}({a} >> 16, {b} >> 16)"
    return by_options(of, low), by_options(of, high)


def set_number(of: Instruction, names: Names) -> str:
    """Return `set` as C++: all ones, or 1.0; for two numbers in a register, two of them."""
    match = _SET.fullmatch(of.opcode)
    words = match.groupdict() if match else {}
    kind, of_pair = words.get("d") or "", f"{words.get('pair')}x2"
    if (
        not match
        or _NO_SET.fullmatch(of.opcode)
        or (kind not in ("u32", "s32", of_pair) if words["pair"] else kind[-2:] == "x2")
    ):
        raise refusal(of.line, of.text, "it is not supported")
    found: tuple[str, ...] = (
        _of_pair(of, names, words)
        if words["pair"]
        else (comparison(of, names, words, *of.operands[1:3]),)
    )
    bits = WIDTHS[kind] // len(found)
    one = _ONES.get(kind.removesuffix("x2"), (1 << bits) - 1)
    each = (
        f"({_joined(of, names, words, text)} ? {one << k * bits:#x}u : 0u)"
        for k, text in enumerate(found)
    )
    return f"{names.result(of.operands[0], of, kind).name} = {' | '.join(each)};"


_LOOKUP = re.compile(r"lop3(?:\.(?P<join>and|or))?\.b32")


def look_up(of: Instruction, names: Names) -> str:
    """Return `lop3` as C++: its bits, and whether any is set, joined with a predicate."""
    match = _LOOKUP.fullmatch(of.opcode)
    first, bar, second = (part.strip() for part in of.operands[0].partition("|"))
    if not match or bool(bar) != bool(match["join"]) or second == "_":
        raise refusal(of.line, of.text, "this form is not supported")
    values = [names.value(text, "b32", of) for text in of.operands[1:5]]
    text = f"const u32 x = lop3({', '.join(values)}); "
    if match["join"]:
        joined = f"x != 0 {_JOINED[match['join']]} bool({names.predicate(of.operands[5], of)})"
        text += f"const bool y = {joined}; {names.result(second, of, 'pred').name} = y; "
    if first != "_" or not bar:
        text += f"{names.result(first, of, 'b32').name} = x; "
    return f"{{ {text}}}"


HANDLERS: dict[str, Callable[[Instruction, Names], str]] = {
    "setp": set_predicate,
    "set": set_number,
    "lop3": look_up,
}
