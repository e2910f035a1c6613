"""Names of a function of PTX in C++: registers, labels and memory, each in its scope."""

import re
from dataclasses import dataclass, field
from typing import TypeVar

from mor_ref.ptx.agreement import is_constant, is_register, type_of_constants
from mor_ref.ptx.assignment import Step, read_early
from mor_ref.ptx.constants import constant_of, mistake_in, number_of
from mor_ref.ptx.contraction import Flow
from mor_ref.ptx.errors import refusal
from mor_ref.ptx.program import WIDTHS, Function, Instruction, Label, Scope, Variable
from mor_ref.ptx.remarks import Undefined

_Named = TypeVar("_Named")

WORDS = {1: "bool", 8: "u8", 16: "u16", 32: "u32", 64: "u64", 128: "u128"}
_NUMBERED = re.compile(r"(.*?)(\d{1,18})")
SPECIAL = {f"%{name}.{axis}": f"m.{name}[{k}]" for name in ("tid", "ntid", "ctaid", "nctaid")
           for k, axis in enumerate("xyz")}  # fmt: skip
SPECIAL |= {f"%clusterid.{axis}": f"m.ctaid[{k}]" for k, axis in enumerate("xyz")}
SPECIAL |= {f"%nclusterid.{axis}": f"m.nctaid[{k}]" for k, axis in enumerate("xyz")}
SPECIAL |= {f"%cluster_ctaid.{axis}": "0u" for axis in "xyz"}
SPECIAL |= {f"%cluster_nctaid.{axis}": "1u" for axis in "xyz"}
SPECIAL |= {
    "%laneid": "m.lane", "%warpid": "m.warp", "%nwarpid": "m.warps", "%smid": "0u", "%nsmid": "1u",
    "%lanemask_eq": "(1u << m.lane)", "%lanemask_lt": "((1u << m.lane) - 1)",
    "%lanemask_le": "((2u << m.lane) - 1)", "%lanemask_gt": "(~0u << m.lane << 1)",
    "%lanemask_ge": "(~0u << m.lane)", "%cluster_ctarank": "0u", "%cluster_nctarank": "1u",
    "%is_explicit_cluster": "0u", "%dynamic_smem_size": "u32(m.dynamic_shared)",
    "%total_smem_size": "u32(m.shared_size)", "WARP_SZ": "32u",
}  # fmt: skip


@dataclass(frozen=True)
class Place:
    """Memory that a name stands for: its C++ address in its space, and the bytes it has.

    `first` is the line of its first declaration in the module.
    """

    space: str
    address: str
    size: int
    first: int = 0


@dataclass(frozen=True)
class Register:
    """A register: its name in C++, and its type in PTX."""

    name: str
    type: str

    @property
    def bits(self) -> int:
        """How wide it is."""
        return WIDTHS[self.type]


@dataclass
class Names:
    """The names of a function, as the scopes of its statements are gone through in order."""

    function: str
    places: dict[str, Place]  # of the module, and of parameters
    labels: dict[tuple[int, str], str]
    tables: dict[tuple[int, str], Label]
    target: str = ""  # of the module, such as sm_90
    version: str = "9.0"  # of PTX
    flow: Flow = field(default_factory=Flow)
    functions: dict[str, Function] = field(default_factory=dict)  # of the module
    passed: set[str] = field(default_factory=set)  # labels in C++
    steps: list[Step] = field(default_factory=list)
    undefined: list[Undefined] = field(default_factory=list)
    declared: dict[tuple[int, str], Variable] = field(default_factory=dict)
    local: dict[tuple[int, str], Place] = field(default_factory=dict)
    used: dict[str, Register] = field(default_factory=dict)
    scopes: list[int] = field(default_factory=lambda: [0])
    count: int = 0

    def enter(self, scope: Scope) -> None:
        """Open or close a scope."""
        if scope.opens:
            self.count += 1
            self.scopes.append(self.count)
        else:
            self.scopes.pop()

    def declare(self, variable: Variable) -> None:
        """Add registers."""
        key = self.scopes[-1], variable.name + "<" * bool(variable.count)
        if key in self.declared:
            why = f"line {self.declared[key].line} declares it, too"
            name = variable.name + f"<{variable.count}>" * bool(variable.count)
            raise refusal(variable.line, f".reg .{variable.type} {name}", why)
        self.declared[key] = variable

    def register(self, text: str) -> Register | None:
        """Return the register of a name, or None."""
        numbered = _NUMBERED.fullmatch(text)
        for scope in reversed(self.scopes):
            found = self.declared.get((scope, text))
            if found is None and numbered:
                prefix = self.declared.get((scope, numbered.group(1) + "<"))
                if prefix is not None and int(numbered.group(2)) < prefix.count:
                    found = prefix
            if found is not None:
                name = f"r{mangled(text)}_{scope}"
                return self.used.setdefault(name, Register(name, found.type))
        return None

    def place(self, text: str, of: Instruction) -> Place | None:
        """Return the memory of a name, or None."""
        found = self._in_scope(self.local, text) or self.places.get(text)
        if found is not None:
            check_order(text, found.first, of)
        return found

    def _in_scope(self, known: dict[tuple[int, str], _Named], text: str) -> _Named | None:
        """Return what a name is in the innermost scope that has it, or None."""
        return next(
            (known[key] for s in reversed(self.scopes) if (key := (s, text)) in known), None
        )

    def begin(self, statement: Instruction | Label) -> str:
        """Note that a statement begins; return the C++ label that it is, or an empty text."""
        label = self.labels[self.scopes[-1], statement.name] if isinstance(statement, Label) else ""
        self.steps.append(Step(None if isinstance(statement, Label) else statement, label))
        return label

    def label(self, text: str, of: Instruction) -> str:
        """Return the C++ label that an instruction may go to."""
        label = self._in_scope(self.labels, text)
        if label is None:
            raise refusal(of.line, of.text, f"{text} is not a label of this function")
        self.steps[-1].labels.append(label)
        return label

    def table(self, text: str, of: Instruction) -> tuple[str, ...]:
        """Return the labels of a table of branches."""
        table = self._in_scope(self.tables, text)
        if table is None:
            raise refusal(of.line, of.text, f"{text} is not a .branchtargets of this function")
        check_order(text, table.line, of)
        return table.targets

    def value(self, text: str, kind: str, of: Instruction) -> str:
        """Return an operand as C++, an unsigned word as wide as a type of PTX."""
        bits = WIDTHS[kind]
        if kind == "pred":
            return self.predicate(text, of)
        register = self._read(text)
        if register is not None:
            _check_register(text, register, kind, of)
            return register.name if register.bits == bits else f"{WORDS[bits]}({register.name})"
        if text in SPECIAL:
            return f"{WORDS[bits]}({SPECIAL[text]})"
        constant, number = constant_of(text), number_of(text, kind)
        if constant is not None:
            wanted = type_of_constants(kind, of.opcode)
            if not is_constant(constant, wanted) or number is None:
                raise refusal(of.line, of.text, f"{text!r} is not a constant of type .{wanted}")
            return f"{WORDS[bits]}({number:#x}u{'ll' if number >> 32 else ''})"
        base, _, offset = (part.strip() for part in text.partition("+"))
        place = self.place(base, of)
        if place is not None:
            return f"{WORDS[bits]}({self.moved(place.address, offset if '+' in text else '0', of)})"
        raise refusal(of.line, of.text, f"operand {text[:40]!r} {mistake_in(text)}")

    @staticmethod
    def moved(address: str, offset: str, of: Instruction) -> str:
        """Return an address and an offset of bytes, a constant, as C++."""
        constant = constant_of(offset)
        if constant is None or constant.type not in ("s64", "u64"):
            why = mistake_in(offset) if constant is None else "is not an integer"
            raise refusal(of.line, of.text, f"offset {offset[:40]!r} {why}")
        return f"u64({address}) + {number_of(offset, 'b64')}ull"

    def guard(self, of: Instruction) -> str:
        """Return the predicate in front of an instruction as C++: a register or its opposite."""
        if self.register(of.guard.lstrip("!")) is None:
            raise refusal(of.line, of.text, f"{of.guard!r} is not a predicate")
        return self.predicate(of.guard, of)

    def predicate(self, text: str, of: Instruction) -> str:
        """Return a predicate as C++: a register, its opposite, or a constant."""
        number = number_of(text, "b64")
        if number is not None:
            return "true" if number else "false"
        if text.startswith("!"):
            return f"!{self.predicate(text[1:].strip(), of)}"
        register = self._read(text)
        if register is not None and register.type == "pred":
            return register.name
        raise refusal(of.line, of.text, f"{text!r} is not a predicate")

    def _read(self, text: str) -> Register | None:
        register = self.register(text)
        if register is not None:
            self.steps[-1].reads[register.name] = text
        return register

    def unwritten(self) -> dict[str, Undefined]:
        """Return the registers that are read before they are written, by their names in C++."""
        written = set[str]().union(*(step.writes for step in self.steps))
        found = dict[str, Undefined]()
        for name, (text, of) in read_early(self.steps).items():
            if name in written and self.used[name].type == "pred":
                continue  # compilers leave a predicate open where another one decides
            when = "before a write on some way" if name in written else "and never written"
            why = f"register {text} is read {when}, and PTX leaves its bits open; write it first"
            found[name] = Undefined(of.line, of.text, why, always=False)
        return found

    def address(self, text: str, of: Instruction) -> str:
        """Return the first part of an address as C++; in shared memory it may have 32 bits."""
        register = self._read(text)
        is_narrow = register is not None and register.bits == 32
        return f"u64({register.name})" if register and is_narrow else self.value(text, "b64", of)

    def result(self, text: str, of: Instruction, kind: str = "") -> Register:
        """Return the register that a result goes to, of any type if none is given."""
        register = self.register(text)
        if register is None:
            raise refusal(of.line, of.text, f"{text!r} is not a register")
        if kind:
            _check_register(text, register, kind, of)
        self.steps[-1].writes.add(register.name)
        return register


def check_order(name: str, first: int, of: Instruction) -> None:
    """Refuse a name that is declared later than it is used."""
    if first > of.line:
        raise refusal(of.line, of.text, f"{name} is declared later, in line {first}")


def _check_register(text: str, register: Register, kind: str, of: Instruction) -> None:
    if not is_register(register.type, kind, of.opcode):
        why = f"{text!r} is a register of type .{register.type}, and the operand has type .{kind}"
        raise refusal(of.line, of.text, why)


_MANGLED = {"_": "__", "$": "_d", "%": "_p"}


def mangled(name: str) -> str:
    """Return a name of PTX as one of C++; no two have the same."""
    return "".join(_MANGLED.get(letter, letter) for letter in name)


def names_of(
    function: Function, places: dict[str, Place], target: str, flow: Flow | None = None
) -> Names:
    """Return the names of a function before its first statement; its labels are known."""
    labels: dict[tuple[int, str], str] = {}
    tables: dict[tuple[int, str], Label] = {}
    scopes, count = [0], 0
    for statement in function.statements:
        if isinstance(statement, Scope):
            count += statement.opens
            scopes = [*scopes, count] if statement.opens else scopes[:-1]
        elif isinstance(statement, Label):
            key = scopes[-1], statement.name
            if key in labels or key in tables:
                raise refusal(statement.line, f"{statement.name}:", "this label is there twice")
            if statement.targets:
                tables[key] = statement
            else:
                labels[key] = f"L{mangled(statement.name)}_{scopes[-1]}"
    return Names(function.name, places, labels, tables, target, flow=flow or Flow())
