"""What a suite of golden vectors is: cases of an operation, the bits that go in and come out."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mor_ref.arguments import known_name

Arrays = Mapping[str, NDArray[np.unsignedinteger[Any]]]
Parameters = Mapping[str, Any]
Role = Literal["input", "expected"]


@dataclass(frozen=True)
class Field:
    """An array of a case: what its bits mean, and whether they go in or come out."""

    name: str
    role: Role
    format: str
    meaning: str


@dataclass(frozen=True, eq=False)
class Case:
    """Parameters of the operation, and an array of unsigned integers for each field."""

    name: str
    parameters: Parameters
    arrays: Arrays


@dataclass(frozen=True)
class Size:
    """How much of the random part of a suite is made, and from which seed."""

    factor: int = 1
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Suite:
    """Cases of one operation; the expected arrays come from the exact model."""

    name: str
    title: str
    operation: str
    rules: tuple[str, ...]
    fields: tuple[Field, ...]
    make: Callable[[Size], Iterator[Case]]
    normative: bool = True

    def names(self, role: Role) -> tuple[str, ...]:
        """The fields that go in, or those that come out."""
        return tuple(field.name for field in self.fields if field.role == role)


def expected(name: str, fmt: str, meaning: str) -> Field:
    """A field that comes out."""
    return Field(name, "expected", fmt, meaning)


def given(name: str, fmt: str, meaning: str) -> Field:
    """A field that goes in."""
    return Field(name, "input", fmt, meaning)


def chosen(suites: Mapping[str, Any], names: list[str]) -> list[str]:
    """The names of the suites that are asked for, of all if none is."""
    return [known_name("suite", name, suites) for name in names or suites]
