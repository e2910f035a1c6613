"""Branches, calls, barriers, and the functions of warps."""

import re
from collections.abc import Callable

from mor_ref.ptx.constants import number_of
from mor_ref.ptx.errors import refusal
from mor_ref.ptx.names import WORDS, Names, check_order, mangled
from mor_ref.ptx.program import WIDTHS, Instruction, Variable

Handler = Callable[[Instruction, Names], str]


def branch(of: Instruction, names: Names) -> str:
    """Return a branch as C++; one that goes back may do so for ever."""
    label = names.label(of.operands[0], of)
    if label in names.passed:
        return f"{{ go_round(m, {of.line}); goto {label}; }}"
    return f"goto {label};"


def indexed_branch(of: Instruction, names: Names) -> str:
    """Return a branch by a table as C++."""
    cases = "".join(
        f"case {k}: goto {names.label(target, of)}; "
        for k, target in enumerate(names.table(of.operands[1], of))
    )
    missing = f'default: fail(m, {of.line}, "the table of branches has no such index"); '
    value = names.value(of.operands[0], "u32", of)
    return f"{{ go_round(m, {of.line}); switch ({value}) {{ {cases}{missing}}} }}"


def call(of: Instruction, names: Names) -> str:
    """Return a call as C++: parameters go by the address of their memory."""
    groups = [word[1:-1].split(",") if word.startswith("(") else word for word in of.operands]
    plain = [word for word in groups if isinstance(word, str)]
    if len(plain) != 1:
        raise refusal(of.line, of.text, "a call by an address is not supported")
    place = groups.index(plain[0])
    results, parameters = (
        [word.strip() for group in part for word in group if word.strip()]
        for part in (groups[:place], groups[place + 1 :])
    )
    called = names.functions[plain[0]]
    check_order(plain[0], called.first, of)
    if (len(results), len(parameters)) != (len(called.results), len(called.parameters)):
        many = f"{len(called.results)} results and {len(called.parameters)} parameters"
        raise refusal(of.line, of.text, f"{called.name} has {many}")
    pairs = zip((*results, *parameters), (*called.results, *called.parameters), strict=True)
    given = [_argument(of, names, k, *pair, k < len(results)) for k, pair in enumerate(pairs)]
    before, arguments, after = ("".join(each[k] for each in given) for k in range(3))
    return f"{{ {before}f_{mangled(called.name)}(m, {of.line}{arguments}); {after}}}"


def _argument(
    of: Instruction, names: Names, number: int, word: str, formal: Variable, is_result: bool
) -> tuple[str, str, str]:
    """Return C++ before a call, the address of an argument, and C++ after the call.

    A register, or a constant, goes by memory of its own.
    """
    place = names.place(word, of)
    if place is not None and place.space == "frame":
        if place.size != formal.size:
            why = f"{word} has {place.size} bytes, and {formal.name} has {formal.size}"
            raise refusal(of.line, of.text, why)
        return "", f", (char*){place.address}", ""
    bits = WIDTHS[formal.type]
    if formal.type == "pred" or 8 * formal.size != bits:
        raise refusal(of.line, of.text, f"argument {word!r} is not a .param")
    own = f"argument{number}"
    if is_result:
        target = names.result(word, of, formal.type).name
        return f"{WORDS[bits]} {own} = 0; ", f", (char*)&{own}", f"{target} = {own}; "
    value = names.value(word, formal.type, of)
    return f"{WORDS[bits]} {own} = {value}; ", f", (char*)&{own}", ""


def leave(of: Instruction, names: Names) -> str:
    """Return the end of a function as C++."""
    del of, names
    return "return;"


def fault(of: Instruction, names: Names) -> str:
    """Return a trap as C++."""
    del names
    return f'fail(m, {of.line}, "the kernel stops itself here");'


def nothing(of: Instruction, names: Names) -> str:
    """Return nothing: on a CPU, memory is in order, and there is nothing to wait for."""
    del of, names
    return ";"


_BARRIERS = 16  # of a block
_BARRIER = re.compile(
    r"(?P<name>bar|barrier)(?:\.cta)?(?:\.sync|\.red\.(?P<red>popc|and|or)(?P<before>\.aligned)?"
    r"\.(?:u32|pred))(?P<aligned>\.aligned)?"
)


def barrier(of: Instruction, names: Names) -> str:
    """Return a barrier of all threads of a block as C++."""
    if of.opcode == "bar.warp.sync":
        return f"sync_warp(m, {names.value(of.operands[0], 'b32', of)}, {of.line});"
    match = _BARRIER.fullmatch(of.opcode)
    operands = list(of.operands)
    reduction = match.group("red") if match else None
    if not match:
        raise refusal(of.line, of.text, "this barrier is not supported")
    counted, has_count = "", "false"
    if len(operands) == (4 if reduction else 2):
        count = names.value(operands.pop(2 if reduction else 1), "u32", of)
        counted, has_count = f"check_count(m, {count}, {of.line}); ", "true"
    aligned = match.group("name") == "bar" or match.group("aligned") or match.group("before")
    given = operands[1 if reduction else 0]
    number = names.value(given, "u32", of)
    constant = number_of(given, "b64")
    if constant is not None and constant >= _BARRIERS:
        raise refusal(of.line, of.text, f"a block has the barriers 0 to {_BARRIERS - 1}")
    vote = names.predicate(operands[2], of) if reduction else "false"
    is_aligned = "true" if aligned else "false"
    found = f"barrier(m, {is_aligned}, {has_count}, {number}, {vote}, {of.line})"
    if not reduction:
        return f"{{ {counted}{found}; }}"
    wanted = {"popc": "x.yes", "and": "x.yes == x.all", "or": "x.yes != 0"}[reduction]
    kind = "u32" if reduction == "popc" else "pred"
    target = names.result(operands[0], of, kind).name
    return f"{{ {counted}const Votes x = {found}; {target} = {wanted}; }}"


def shuffle(of: Instruction, names: Names) -> str:
    """Return a shuffle as C++."""
    match = re.fullmatch(r"shfl\.sync\.(up|down|bfly|idx)\.b32", of.opcode)
    if not match:
        raise refusal(of.line, of.text, "it is not supported")
    values = ", ".join(names.value(each, "b32", of) for each in of.operands[1:])
    return _two(of, names, f"shuffle<Shuffle::{match.group(1)}>(m, {values}, {of.line})")


def _two(of: Instruction, names: Names, found: str) -> str:
    target, _, predicate = (word.strip() for word in of.operands[0].partition("|"))
    text = f"const Shuffled x = {found}; "
    if target != "_":
        text += f"{names.result(target, of, 'b32').name} = x.value; "
    if predicate not in ("", "_"):
        text += f"{names.result(predicate, of, 'pred').name} = x.in_range; "
    return f"{{ {text}}}"


def elect(of: Instruction, names: Names) -> str:
    """Return the choice of a lane as C++."""
    return _two(of, names, f"elected(m, {names.value(of.operands[1], 'b32', of)}, {of.line})")


def vote(of: Instruction, names: Names) -> str:
    """Return a vote of a warp as C++."""
    match = re.fullmatch(r"vote\.sync\.(?:(all|any|uni)\.pred|ballot\.b32)", of.opcode)
    if not match:
        raise refusal(of.line, of.text, "it is not supported")
    mask = names.value(of.operands[2], "b32", of)
    condition = names.predicate(of.operands[1], of)
    text = f"const u32 mask = {mask}, x = ballot(m, {condition}, mask, {of.line}); "
    found = {"all": "x == mask", "any": "x != 0", "uni": "x == mask || !x", None: "x"}
    target = names.result(of.operands[0], of, "pred" if match.group(1) else "b32").name
    return f"{{ {text}{target} = {found[match.group(1)]}; }}"


def match_lanes(of: Instruction, names: Names) -> str:
    """Return a search for equal values in a warp as C++."""
    match = re.fullmatch(r"match\.(any|all)\.sync\.(b32|b64)", of.opcode)
    if not match:
        raise refusal(of.line, of.text, "it is not supported")
    value, mask = (
        names.value(of.operands[1], match.group(2), of),
        names.value(of.operands[2], "b32", of),
    )
    found = f"match_{match.group(1)}(m, {value}, {mask}, {of.line})"
    if match.group(1) == "all":
        return _two(of, names, found)
    return f"{names.result(of.operands[0], of, 'b32').name} = {found};"


def reduce_lanes(of: Instruction, names: Names) -> str:
    """Return a reduction in a warp as C++."""
    match = re.fullmatch(
        r"redux\.sync\.(?:(add|min|max)\.([us]32)|(and|or|xor)\.b32)", of.opcode
    ) or re.fullmatch(r"redux\.sync\.(min|max)(\.abs)?(\.NaN)?\.(f32)", of.opcode)
    if not match:
        raise refusal(of.line, of.text, "it is not supported")
    if match.lastindex == 4:
        flags = "NAN_WINS" if match.group(3) else "0"
        value = names.value(of.operands[1], "f32", of)
        if match.group(2):
            value = f"abs_f32({value})"
        call_it = f"{match.group(1)}_f32<{flags}>(a, b)"
    else:
        operation = (
            f"{match.group(1)}<{match.group(2)}>" if match.group(1) else f"{match.group(3)}_<u32>"
        )
        value, call_it = names.value(of.operands[1], "b32", of), f"u32({operation}(a, b))"
    mask = names.value(of.operands[2], "b32", of)
    found = f"reduced<u32>(m, {value}, {mask}, {of.line}, [](u32 a, u32 b) {{ return {call_it}; }})"
    return f"{names.result(of.operands[0], of, 'b32').name} = {found};"


def undefined(of: Instruction, names: Names) -> str:
    """Refuse what a GPU answers as it happens to be."""
    del names
    raise refusal(of.line, of.text, "its result depends on how a GPU schedules threads")


HANDLERS: dict[str, Handler] = {
    "bra": branch,
    "brx": indexed_branch,
    "call": call,
    "ret": leave,
    "exit": leave,
    "trap": fault,
    "brkpt": nothing,
    "bar": barrier,
    "barrier": barrier,
    "shfl": shuffle,
    "elect": elect,
    "vote": vote,
    "match": match_lanes,
    "redux": reduce_lanes,
    "activemask": undefined,
    "membar": nothing,
    "fence": nothing,
    "nanosleep": nothing,
    "prefetch": nothing,
    "prefetchu": nothing,
    "pmevent": nothing,
    "applypriority": nothing,
    "setmaxnreg": nothing,
    "griddepcontrol": nothing,
}
