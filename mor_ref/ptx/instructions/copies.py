"""Copies to shared memory that a thread begins and waits for later."""

import re
from collections.abc import Callable

from mor_ref.ptx.constants import number_of
from mor_ref.ptx.errors import refusal
from mor_ref.ptx.instructions.memory import address_of
from mor_ref.ptx.names import Names
from mor_ref.ptx.program import Instruction

_COPY = re.compile(
    r"cp\.async\.c[ag]\.shared(?:::cta)?\.global(?:\.L2::(?:cache_hint|64B|128B|256B))*"
)


def copy(of: Instruction, names: Names) -> str:
    """Return `cp.async` as C++: a copy, the end of a group of them, or a wait for groups."""
    if of.opcode == "cp.async.commit_group":
        return "m.calls->commit(m);"
    if of.opcode == "cp.async.wait_all":
        return "m.calls->wait_for_copies(m, 0, true);"
    if of.opcode == "cp.async.wait_group":
        left = number_of(of.operands[0], "b32")
        if left is None:
            raise refusal(of.line, of.text, "the number of groups is a constant")
        return f"m.calls->wait_for_copies(m, {left}u, false);"
    operands = of.operands[:-1] if "L2::cache_hint" in of.opcode else of.operands
    size = number_of(operands[2], "b32") if len(operands) in (3, 4) else None
    is_small = size != 16 and ".cg." in of.opcode
    if not _COPY.fullmatch(of.opcode) or size not in (4, 8, 16) or is_small:
        raise refusal(of.line, of.text, "this copy is not supported")
    taken = _taken(of, names, operands[3], size) if len(operands) == 4 else f"{size}u"
    to, where = (address_of(of, names, text) for text in operands[:2])
    return f"copy_later<{size}>(m, {to}, {where}, {taken}, {of.line});"


def _taken(of: Instruction, names: Names, text: str, size: int) -> str:
    """Return how many bytes are copied as C++: a number, or none if a predicate is true."""
    register = names.register(text.lstrip("!"))
    if register is not None and register.type == "pred":
        return f"({names.predicate(text, of)} ? 0u : {size}u)"
    return names.value(text, "b32", of)


HANDLERS: dict[str, Callable[[Instruction, Names], str]] = {"cp": copy}
