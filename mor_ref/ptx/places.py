"""Places of the variables of a module: those that a kernel uses, and their addresses."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mor_ref.ptx.errors import refusal
from mor_ref.ptx.program import Function, Instruction, Program, Variable

_WORD = re.compile(r"[\w$%]+")
_GAP = 16  # between variables in shared memory, so that an index that is off by one is found


@dataclass(frozen=True)
class SharedMemory:
    """Variables in shared memory: their places, and the size of all without the launch's own."""

    places: dict[str, tuple[int, int]]  # offset and size
    size: int
    dynamic: tuple[str, ...]  # those whose size a launch sets; they begin at `size`


def globals_of(program: Program) -> dict[str, tuple[int, int]]:
    """Return the offset and the size of each variable of the module in its own memory."""
    found: dict[str, tuple[int, int]] = {}
    end = 0
    for variable in program.variables.values():
        if variable.space in ("global", "const"):
            begin = -(-(end + _GAP) // max(16, variable.alignment)) * max(16, variable.alignment)
            found[variable.name] = begin, variable.size
            end = begin + variable.size
    return found


def variables_of(program: Program, functions: Sequence[Function]) -> list[Variable]:
    """Return the variables of the module that functions name, or that such variables name."""
    texts = [
        operand
        for function in functions
        for statement in function.statements
        if isinstance(statement, Instruction)
        for operand in statement.operands
    ]
    named = set[str]()
    while texts:
        new = {word for text in texts for word in _WORD.findall(text)} - named
        named |= new
        found = [program.variables[word] for word in new if word in program.variables]
        texts = [text for variable in found for _, text in variable.initial]
    used = [each for each in program.variables.values() if each.name in named]
    for each in used:
        if each.linking == "extern" and each.space != "shared":
            text = f".extern .{each.space} {each.name}"
            why = "this module does not define it; give a module that does"
            raise refusal(each.line, text, why)
    return used


def own_of(functions: Sequence[Function]) -> list[Variable]:
    """Return the variables in shared memory that functions declare themselves."""
    return [
        statement
        for function in functions
        for statement in function.statements
        if isinstance(statement, Variable) and statement.space == "shared"
    ]


def shared_of(variables: Iterable[Variable]) -> SharedMemory:
    """Return the places of those of the variables that are in shared memory."""
    places, end, dynamic, most = {}, 0, [], 16
    for variable in variables:
        if variable.space != "shared":
            continue
        most = max(most, variable.alignment)
        if not variable.size:
            dynamic.append(variable.name)
            continue
        begin = -(-(end + _GAP) // variable.alignment) * variable.alignment if end else 0
        places[variable.name] = begin, variable.size
        end = begin + variable.size
    size = -(-(end + (_GAP if end else 0)) // most) * most
    return SharedMemory(places, size if dynamic else end, tuple(dynamic))
