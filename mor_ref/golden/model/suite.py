"""Suites of golden vectors: cases of an operation, as bits of inputs and expected values."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from mor_ref.argument_checks import known_name
from mor_ref.operations.operation import Arrays, Parameters

Role = Literal["input", "expected"]


@dataclass(frozen=True)
class Field:
    """An array of a case: what its bits mean, whether they go in or come out, and by which rules.

    The fields of a suite are in the order in which one follows from another. `views` are the other
    layouts that a kernel may give it in.
    """

    name: str
    role: Role
    format: str
    meaning: str
    rules: tuple[str, ...] = ()
    views: tuple[str, ...] = ()


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
    """Cases of one operation. `questions` have no expected bits: these come from the model.

    `about` are the rules of the suite as a whole; its fields have rules of their own.
    """

    name: str
    title: str
    operation: str
    about: tuple[str, ...]
    fields: tuple[Field, ...]
    questions: Callable[[Size], Iterator[Case]]
    normative: bool = True

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that the suite is about."""
        named = [*self.about, *(rule for field in self.fields for rule in field.rules)]
        return tuple(sorted(set(named)))


def expected(name: str, fmt: str, meaning: str, *rules: str, views: tuple[str, ...] = ()) -> Field:
    """Return a field that an operation computes."""
    return Field(name, "expected", fmt, meaning, rules, views)


def given(name: str, fmt: str, meaning: str) -> Field:
    """Return a field that an operation takes."""
    return Field(name, "input", fmt, meaning)


def question(fields: Iterable[Field], case: Case) -> Case:
    """Return a case without its expected fields."""
    inputs = {f.name: case.arrays[f.name] for f in fields if f.role == "input"}
    return Case(case.name, case.parameters, inputs)


def chosen(suites: Mapping[str, Any], names: list[str]) -> list[str]:
    """Return the names of suites that were given, each once, or all if none was given."""
    return list(dict.fromkeys(known_name("suite", name, suites) for name in names or suites))
