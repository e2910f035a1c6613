"""Translates kernels of PTX to C++: a function for each, with its registers as variables."""

import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from mor_ref.ptx.contraction import Flow, contracted, held, is_sum, open_sum
from mor_ref.ptx.errors import PtxError, refusal
from mor_ref.ptx.flow import flow_of
from mor_ref.ptx.instructions import (
    atomics,
    bounded,
    comparisons,
    control,
    conversions,
    copies,
    floats,
    halves,
    integers,
    matrices,
    memory,
    warpgroups,
)
from mor_ref.ptx.instructions.forms import is_form
from mor_ref.ptx.instructions.operands import check_operands
from mor_ref.ptx.names import WORDS, Names, Place, mangled, names_of
from mor_ref.ptx.places import SharedMemory, globals_of, own_of, shared_of, variables_of
from mor_ref.ptx.program import Function, Instruction, Label, Program, Scope, Variable
from mor_ref.ptx.remarks import Undefined, by_options
from mor_ref.ptx.rows import Found, found_in
from mor_ref.ptx.targets import check_target

ROWS = (*integers.ROWS, *floats.ROWS, *conversions.ROWS, *halves.ROWS, *bounded.ROWS)
HANDLERS = {
    **memory.HANDLERS,
    **atomics.HANDLERS,
    **control.HANDLERS,
    **comparisons.HANDLERS,
    **matrices.HANDLERS,
    **warpgroups.HANDLERS,
    **copies.HANDLERS,
}
_MOST_LOCAL = 24 * 1024  # bytes; the stack of a thread has more than twice as many
_LABEL, _INSTRUCTION, _MOVE = " L", "  ", "   "  # the beginnings of lines
_MEETING = re.compile(
    r"(?:shfl|vote|match|redux|elect|bar|barrier|mma|wgmma|(?:ld|st|mov)matrix)\."
)
_ALIGNED_BARRIERS = ("bar.sync", "bar.red", "bar.cta")
_JUMP = re.compile(r"\bgoto \w|\breturn;")


@dataclass(frozen=True)
class Translated:
    """A kernel as C++, its memory, and the instructions whose bits PTX leaves open."""

    source: str
    shared: SharedMemory
    parameters: tuple[int, ...]  # the place of each
    parameters_size: int
    variables: tuple[str, ...]  # of the module, that it may use
    undefined: tuple[Undefined, ...]
    products: int  # that a sum may be rounded with


@functools.cache
def _row(opcode: str, count: int) -> Found | None:
    return found_in(ROWS, opcode, count)


def translated(program: Program, name: str) -> Translated:
    """Return a kernel as C++, with the functions that it calls."""
    entry = program.functions[name]
    functions = [entry, *_called(program, entry)]
    for function in functions:
        if function.refused:
            raise PtxError(function.refused)
    used = variables_of(program, functions)
    shared = shared_of([*used, *own_of(functions)])
    places = _places(program, shared)
    offsets, end = [], 0
    for parameter in entry.parameters:
        begin = -(-end // parameter.alignment) * parameter.alignment
        offsets.append(begin)
        end = begin + parameter.size
    text = ['#include "instructions.h"', "using namespace ptx;"]
    text += [f"{_signature(each)};" for each in functions[1:]]
    undefined: list[Undefined] = []
    flow = flow_of(functions)
    for function in functions:
        own = dict(places)
        for parameter, offset in zip(entry.parameters, offsets, strict=True):
            if function is entry:
                address = f"(m.parameters + {offset})"
                own[parameter.name] = Place("param", address, parameter.size)
        lines, found = _function(function, own, program, flow)
        text += lines
        undefined += found
    text.append('extern "C" __attribute__((visibility("default")))')
    text.append(f"void mor_ptx_kernel(Machine& m) {{ f_{mangled(entry.name)}(m, 0); }}")
    return Translated(
        "\n".join(text) + "\n", shared, tuple(offsets), end, tuple(each.name for each in used),
        tuple(undefined), flow.count,
    )  # fmt: skip


def _places(program: Program, shared: SharedMemory) -> dict[str, Place]:
    """Return the variables of the module in memory, and those in shared memory of functions."""
    places = {
        each: Place("global", f"(m.globals + {offset})", size)
        for each, (offset, size) in globals_of(program).items()
    }
    places |= {each: Place("shared", f"{at}u", size) for each, (at, size) in shared.places.items()}
    places |= {each: Place("shared", f"{shared.size}u", 0) for each in shared.dynamic}
    for each in places.keys() & program.variables.keys():
        places[each] = replace(places[each], first=program.variables[each].first)
    return places


def _called(program: Program, entry: Function) -> list[Function]:
    """Return the functions that a kernel calls, directly or not."""
    found: dict[str, Function] = {}
    waiting = [entry]
    while waiting:
        for statement in waiting.pop().statements:
            if isinstance(statement, Instruction) and statement.opcode.split(".")[0] == "call":
                name = next((each for each in statement.operands if not each.startswith("(")), "")
                function = program.functions.get(name)
                if function is None:
                    raise refusal(statement.line, statement.text, "it calls no function by name")
                if name not in found:
                    found[name] = function
                    waiting.append(function)
    return list(found.values())


def _signature(function: Function) -> str:
    count = len(function.results) + len(function.parameters)
    more = "".join(f", char* a{k}" for k in range(count)) if not function.is_entry else ""
    return f"static void f_{mangled(function.name)}(Machine& m, u32 line{more})"


def _function(
    function: Function, places: dict[str, Place], program: Program, flow: Flow
) -> tuple[list[str], list[Undefined]]:
    if not function.statements and not function.is_entry:
        why = f'"it calls {function.name}, which this module does not have"'
        return [f"{_signature(function)} {{ fail(m, line, {why}); }}"], []
    if not function.is_entry:
        for k, variable in enumerate((*function.results, *function.parameters)):
            if variable.space != "param":
                raise PtxError(f"line {function.line}: {variable.name} is not a .param of memory")
            places[variable.name] = Place("frame", f"u64(a{k})", variable.size)
    names, arrays = names_of(function, places, program.target, flow), list[str]()
    names.version, names.functions = program.version, program.functions
    body = list(_counted(_statements(function, names, arrays)))
    unwritten = names.unwritten()
    begin = "(void)line;" if function.is_entry else "check_stack(m, line);"
    lines = [f"{_signature(function)} {{", f"  {begin}", *arrays]
    for each in names.used.values():
        open_at = unwritten.get(each.name)
        value = f"unwritten<{WORDS[each.bits]}>(m, {open_at.line})" if open_at else "0"
        lines.append(f"  {WORDS[each.bits]} {each.name} = {value};")
    return [*lines, *body, "  return;", "}"], [*names.undefined, *unwritten.values()]


def _counted(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines of C++ that count the instructions of each basic block where it begins.

    Moves do not count: they are names of registers and constants, which an assembler resolves.
    """
    block: list[str] = []
    for line in lines:
        if line.startswith(_LABEL):
            yield from _block(block)
            yield line
            block = []
            continue
        block.append(line)
        if _JUMP.search(line):
            yield from _block(block)
            block = []
    yield from _block(block)


def _block(lines: list[str]) -> Iterator[str]:
    count = sum(not line.startswith(_MOVE) for line in lines)
    if count:
        yield f"{_INSTRUCTION}m.executed += {count};"
    yield from lines


def _statements(function: Function, names: Names, arrays: list[str]) -> Iterator[str]:
    """Yield a line of C++ for each label and each instruction."""
    local = 0
    for place, statement in enumerate(function.statements):
        if isinstance(statement, Scope):
            names.enter(statement)
        elif isinstance(statement, Label):
            if not statement.targets:
                label = names.begin(statement)
                names.passed.add(label)
                yield f" {label}:;"
        elif isinstance(statement, Variable):
            local += _declare(statement, names, arrays)
            if local > _MOST_LOCAL:
                raise PtxError(
                    f"line {statement.line}: {function.name} has {local} bytes of local memory; "
                    f"{_MOST_LOCAL} are supported"
                )
        else:
            names.begin(statement)
            begin = _MOVE if statement.opcode.startswith("mov.") else _INSTRUCTION
            yield f"{begin}{_guarded(statement, names, place)}  // {statement.line}"


def _declare(variable: Variable, names: Names, arrays: list[str]) -> int:
    """Declare registers, or memory of the function; return the bytes of local memory."""
    if variable.space == "reg":
        names.declare(variable)
    if variable.space in ("reg", "shared"):
        return 0
    if variable.space not in ("local", "param"):
        raise PtxError(f"line {variable.line}: .{variable.space} in a function is not supported")
    name = f"memory{len(arrays)}"
    arrays.append(
        f"  alignas({max(16, variable.alignment)}) char {name}[{max(1, variable.size)}] = {{}};"
    )
    kind = "local" if variable.space == "local" else "frame"
    address = f"(u64({name}) - m.local)" if kind == "local" else f"u64({name})"
    names.local[names.scopes[-1], variable.name] = Place(kind, address, variable.size)
    if kind == "local":
        written, frame = f"written{len(arrays)}", f"frame{len(arrays)}"
        arrays.append(f"  u8 {written}[{variable.size // 8 + 1}] = {{}};")
        arrays.append(f"  LocalMemory {frame}(m, {name}, {variable.size}, {written});")
    return variable.size


def _guarded(of: Instruction, names: Names, place: int) -> str:
    text = _translated(of, names)
    if _MEETING.match(of.opcode):
        # Lanes meet in one place if it is aligned, and else wherever the words are equal.
        is_aligned = ".aligned" in of.opcode or of.opcode.startswith(_ALIGNED_BARRIERS)
        call = f"{names.function}:{place}" if is_aligned else of.opcode
        text = f'{{ m.call = "{call}"; {text} }}'
    return f"if ({names.guard(of)}) {text}" if of.guard else text


def _translated(of: Instruction, names: Names) -> str:
    handler = HANDLERS.get(of.opcode.split(".")[0])
    check_operands(of)
    check_target(of, names.target, names.version)
    if handler is not None:
        return handler(of, names)
    operands = [each for operand in of.operands for each in memory.elements(operand)]
    row = _row(of.opcode, len(operands)) if is_form(of.opcode) else None
    if row is None:
        raise refusal(of.line, of.text, _why_not(of.opcode))
    if len(operands) != len(row.types):
        raise refusal(of.line, of.text, f"it has {len(operands)} operands")
    pairs = zip(operands[1:], row.types[1:], strict=True)
    values = [names.value(operand, kind, of) for operand, kind in pairs]
    target = names.result(of.operands[0], of, row.types[0]).name
    function = row.call.replace("END", "end").replace("LINE", str(of.line))
    apart = by_options(of, f"{function}({', '.join(values)})")
    key = names.function, of
    if row.opened:
        names.undefined.append(Undefined(of.line, of.text, row.opened))
        taken = ", ".join([str(of.line), *values])
        return f"{{ const End end = end_at(m, {taken}); {target} = {apart}; }}"
    if key not in names.flow.products and key not in names.flow.sums:
        return f"{target} = {apart};"
    return f"{{ {_joined(of, names, target, values, apart)} }}"


def _joined(of: Instruction, names: Names, target: str, values: list[str], apart: str) -> str:
    """Return a product, or a sum that may be rounded together with one, as C++."""
    flow, key, sides = names.flow, (names.function, of), ""
    if key in flow.sums:
        sides, apart = contracted(of, flow.sums[key], values, apart)
        if is_sum(of.opcode):
            names.undefined.append(open_sum(of, flow.sums[key]))
    if key in flow.products:
        return sides + held(flow.products[key], target, values, apart)
    return f"{sides}{target} = {apart};"


def _why_not(opcode: str) -> str:
    """Return why an instruction is refused: its bits are not defined, or it is not there."""
    if {"approx", "full"} & set(opcode.split(".")):
        return "PTX only bounds its error, so no bits are right, and no model of it runs here"
    if any(_row(f"cvt.{mode}{opcode.removeprefix('cvt')}", 2) for mode in ("rn", "rni")):
        return "it needs a rounding, such as .rn, or .rni to an integer"
    return "this instruction is not supported"
