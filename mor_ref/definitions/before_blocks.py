"""Steps before the blocks of a block format: what is no formula, as records with names."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from mor_ref.argument_checks import known_name, real_number, whole_number
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import as_format, formats

STEP = "step"  # the key of a table that says which step it is
_LARGEST_SIZE = 1 << 14
_STORED = ("f32", "bf16")
_FLT_MAX = math.ldexp(2**24 - 1, 104)
OUTLIER = 6.0  # the usual limit of LLM.int8


@dataclass(frozen=True)
class Hadamard:
    """Runs of numbers along the rows, each multiplied by a Hadamard matrix (BLF-012).

    `size` is the length of a run, a power of two. `signs` are bits, or their text in hexadecimal:
    bit i negates number i of each run before. The results are in binary32, or rounded to bfloat16:
    `stored`.

    >>> Hadamard(16, "0xace1").signs == 0xACE1
    True
    """

    size: int
    signs: int = 0
    stored: str | Format = "f32"
    name: ClassVar[str] = "hadamard"

    def __post_init__(self) -> None:
        size = whole_number("size", self.size, 2, _LARGEST_SIZE)
        if size & size - 1:
            raise ValueError(f"size is {size}, which is no power of two; give one, such as 16")
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "signs", _signs(self.signs, size))
        stored = as_format(self.stored)
        if stored not in (formats[name] for name in _STORED):
            raise ValueError(f"stored is {stored.name}; give one of {', '.join(_STORED)}")
        object.__setattr__(self, "stored", stored)

    @property
    def fmt(self) -> Format:
        """The format of the results."""
        return as_format(self.stored)

    def __str__(self) -> str:
        """Return the step in words, for messages."""
        signs = f" with signs 0x{self.signs:x}" if self.signs else ""
        rounded = "" if self.fmt == formats["f32"] else f" in {self.fmt.name}"
        return f"{self.name} {self.size}{signs}{rounded}"


@dataclass(frozen=True)
class KeptColumns:
    """Columns with a magnitude of at least `limit`, kept aside in another format (BLF-013).

    `stored` is the format of their codes; in binary32, their numbers stay as they are.

    >>> KeptColumns(6.0, "bf16").fmt.name
    'bf16'
    """

    limit: float = OUTLIER
    stored: str | Format = "f32"
    name: ClassVar[str] = "kept_columns"

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", outlier_limit(self.limit))
        fmt = as_format(self.stored)
        if fmt.sign == "none":
            raise ValueError(
                f"stored is {fmt.name}, which has no sign; give a format with one, such as bf16"
            )
        object.__setattr__(self, "stored", fmt)

    @property
    def fmt(self) -> Format:
        """The format of the kept numbers."""
        return as_format(self.stored)

    def __str__(self) -> str:
        """Return the step in words, for messages."""
        return f"{self.name} {self.limit:g} in {self.fmt.name}"


def outlier_limit(limit: object) -> float:
    """Return the limit of outliers, a positive number that is finite in binary32 (BLF-013)."""
    value = real_number("limit", limit, "6.0")
    if not 0 < value <= _FLT_MAX:
        raise ValueError(f"limit has to be positive and finite by column: got {limit!r}; give 6.0")
    return value


Step = Hadamard | KeptColumns
STEPS: Mapping[str, type[Hadamard] | type[KeptColumns]] = {
    step.name: step for step in (Hadamard, KeptColumns)
}


def _signs(given: object, size: int) -> int:
    """Return bits that are given as a whole number, or as a text in hexadecimal."""
    try:
        signs = int(given, 16) if isinstance(given, str) else given
    except ValueError:
        signs = None
    if not isinstance(signs, int) or isinstance(signs, bool) or signs < 0 or signs >> size:
        raise ValueError(
            f"signs is {given!r}; give a bit for each of {size} numbers, such as 0x5 or '0x5'"
        )
    return signs


def step_of(table: object) -> Step:
    """Return the step of a table, such as that of its text."""
    if isinstance(table, Hadamard | KeptColumns):
        return table
    if not isinstance(table, Mapping) or STEP not in table:
        names = " or ".join(f'{{ {STEP} = "{name}", ... }}' for name in STEPS)
        raise ValueError(f"a step of before is {table!r}; give a table such as {names}")
    kind = STEPS[known_name(f"{STEP} of before", table[STEP], STEPS)]
    known = [own.name for own in fields(kind)]
    given = {name: value for name, value in table.items() if name != STEP}
    for name in given:
        known_name(f"a key of step {kind.name}", name, known)
    if kind is Hadamard and "size" not in given:
        raise ValueError(f"step {kind.name} has no size; give a power of two, such as 16")
    stored = given.get("stored")
    if isinstance(stored, Mapping):
        given["stored"] = Format(**stored)
    return kind(**given)


def table_of_step(step: Step) -> dict[str, Any]:
    """Return the name and the fields of a step, without those that are usual."""
    if isinstance(step, Hadamard):
        own: dict[str, Any] = {"size": step.size}
        own |= {"signs": f"0x{step.signs:x}"} if step.signs else {}
    else:
        own = {"limit": step.limit}
    stored = {} if step.fmt == formats["f32"] else {"stored": step.fmt}
    return {STEP: step.name, **own, **stored}


def wrong_steps(before: Sequence[object]) -> str | None:
    """Return why there cannot be these steps; None if there can."""
    for step in before:
        if not isinstance(step, Hadamard | KeptColumns):
            return f"a step of before is {step!r}; give steps such as Hadamard(16)"
    if sum(isinstance(step, KeptColumns) for step in before) > 1:
        return "it keeps columns twice; give one step kept_columns"
    return None


def kept_by(before: Sequence[Step]) -> KeptColumns | None:
    """Return the step that keeps columns, if there is one."""
    return next((step for step in before if isinstance(step, KeptColumns)), None)


def in_words(before: Sequence[Step]) -> str:
    """Return steps in words.

    >>> in_words((KeptColumns(6.0, "bf16"), Hadamard(16)))
    'kept_columns 6 in bf16, hadamard 16'
    """
    return ", ".join(map(str, before)) or "no steps"
