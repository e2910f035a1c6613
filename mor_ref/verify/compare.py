"""Where what a candidate gives differs from what a suite expects, bit for bit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.catalogue import formats
from mor_ref.golden.suite import Arrays, Case, Parameters

_SHOWN = 8  # entries of a field
_INTEGERS = ("u8", "u32", "u64")


@dataclass(frozen=True)
class Entry:
    """One entry of a field that differs: where, the bits, and the inputs that lie at its place."""

    index: tuple[int, ...]
    expected: int
    actual: int
    inputs: Mapping[str, int]


@dataclass(frozen=True)
class Difference:
    """A field of a case that differs: in how many of its entries, and the first of them.

    `problem` says why nothing could be compared, and is None where it could.
    """

    case: str
    field: str
    format: str
    count: int
    of: int
    entries: tuple[Entry, ...] = ()
    problem: str | None = None

    def __str__(self) -> str:
        where = f"case {self.case}, field {self.field}"
        if self.problem:
            return f"{where}: {self.problem}"
        first = self.entries[0]
        place = ", ".join(map(str, first.index))
        return (
            f"{where}: {self.count} of {self.of} differ, the first at [{place}]: "
            f"{shown(first.actual, self.format)} where {shown(first.expected, self.format)} "
            "is expected"
        )


def shown(bits: int, fmt: str) -> str:
    """Bits in hexadecimal, and the number that they are of if it is of a format."""
    if fmt in _INTEGERS:
        return str(bits)
    width = -(-formats[fmt].bits // 4)
    return f"0x{bits:0{width}X} ({formats[fmt].value(bits):.9g})"


def inputs_of(case: Case, names: tuple[str, ...]) -> Case:
    """The same case without what is expected."""
    return Case(case.name, case.parameters, {name: case.arrays[name] for name in names})


def differences(
    case: Case, fields: Mapping[str, str], given: Arrays, found: Mapping[str, Any]
) -> Iterator[Difference]:
    """Every expected field of a case that differs; `fields` has the formats of these by name."""
    for name, fmt in fields.items():
        if name in case.arrays:
            meant = _meant(fmt, case.parameters)
            difference = _compare(case, name, meant, given, found.get(name))
            if difference is not None:
                yield difference


def _meant(fmt: str, parameters: Parameters) -> str:
    """The name of a format that a field may leave to the parameters of the case."""
    return str(parameters[fmt]) if fmt in ("format", "source") else fmt


def _compare(case: Case, name: str, fmt: str, given: Arrays, actual: Any) -> Difference | None:
    expected = case.arrays[name]
    problem = _problem(actual, expected)
    if problem is not None:
        return Difference(case.name, name, fmt, expected.size, expected.size, problem=problem)
    bits = np.asarray(actual)
    wrong = np.argwhere(np.atleast_1d(bits != expected))
    if not len(wrong):
        return None
    entries = tuple(
        Entry(tuple(map(int, index)), int(expected[tuple(index)]), int(bits[tuple(index)]), inputs)
        for index in wrong[:_SHOWN]
        for inputs in [_at(given, expected.shape, tuple(index))]
    )
    return Difference(case.name, name, fmt, len(wrong), expected.size, entries)


def _problem(actual: Any, expected: NDArray[Any]) -> str | None:
    if actual is None:
        return "is missing"
    array = np.asarray(actual)
    if array.dtype.kind not in "ui":
        return f"has dtype {array.dtype}; give bit patterns as unsigned integers"
    if array.shape != expected.shape:
        return f"has shape {array.shape}, and {expected.shape} is expected"
    return None


def _at(given: Arrays, shape: tuple[int, ...], index: tuple[int, ...]) -> dict[str, int]:
    """The inputs at a place, of those that have the shape of the field."""
    return {name: int(array[index]) for name, array in given.items() if array.shape == shape}
