"""Records of a PTX module: its variables, its functions, and their statements."""

from dataclasses import dataclass, field

WIDTHS = {f"{kind}{bits}": bits for kind in "bsu" for bits in (8, 16, 32, 64)}
WIDTHS |= {"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "b128": 128, "pred": 1}
WIDTHS |= {"f16x2": 32, "bf16x2": 32, "u16x2": 32, "s16x2": 32, "f32x2": 64, "tf32": 32}


@dataclass(frozen=True)
class Variable:
    """A declaration: of registers, parameters, or memory of a space.

    `size` is in bytes, and 0 if the launch sets it. `count` is that of `%r<5>`, which declares
    %r0 to %r4, and 0 of a plain name. `first` is the line of the first declaration of its name.
    `linking` is its directive, such as extern, if it has one.
    """

    line: int
    space: str
    name: str
    type: str
    alignment: int
    size: int
    count: int = 0
    initial: tuple[tuple[int, str], ...] = ()  # places and values
    first: int = 0
    linking: str = ""


@dataclass(frozen=True)
class Instruction:
    """An instruction: `opcode` is with its modifiers, and `guard` is a predicate, or empty."""

    line: int
    text: str
    guard: str
    opcode: str
    operands: tuple[str, ...]


@dataclass(frozen=True)
class Label:
    """A place to branch to; `targets` are those of a table of branches."""

    line: int
    name: str
    targets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scope:
    """A brace: it opens or closes a scope of names."""

    line: int
    opens: bool


Statement = Instruction | Label | Scope | Variable


@dataclass(frozen=True)
class Function:
    """A kernel (`.entry`) or a function; one without statements is defined elsewhere.

    `refused` says why it cannot run, if it cannot. `first` is the line of the first declaration of
    its name, and `linking` its directive, such as extern, if it has one.
    """

    line: int
    name: str
    is_entry: bool
    results: tuple[Variable, ...]
    parameters: tuple[Variable, ...]
    statements: tuple[Statement, ...]
    required_threads: tuple[int, ...] = ()
    most_threads: tuple[int, ...] = ()
    refused: str = ""
    first: int = 0
    linking: str = ""


@dataclass(frozen=True)
class Program:
    """A whole module."""

    version: str
    target: str
    variables: dict[str, Variable] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
