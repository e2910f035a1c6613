"""Suites of golden vectors: cases of an operation, as bits of inputs and expected values."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from mor_ref.argument_checks import known_name
from mor_ref.golden.model.views import SEPARATOR
from mor_ref.mapped_files import in_memory
from mor_ref.operations import OPERATIONS
from mor_ref.operations.call import Arrays, Parameters
from mor_ref.operations.fields import Field, Fields


@dataclass(frozen=True, eq=False)
class Case:
    """Parameters of the operation, and an array of unsigned integers for each field."""

    name: str
    parameters: Parameters
    arrays: Arrays


def case_in_memory(case: Case) -> Case:
    """Return a case with the numbers of its arrays that are in files."""
    return replace(case, arrays={name: in_memory(one) for name, one in case.arrays.items()})


@dataclass(frozen=True)
class Size:
    """How much of the random part of a suite is made, and from which seed."""

    factor: int = 1
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Suite:
    """Cases of one operation. `questions` have no expected bits: these come from the model.

    Its fields are in the order in which one follows from another. `about` are the rules of the
    suite as a whole; its fields have rules of their own.
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


def suite(
    name: str,
    title: str,
    operation: str,
    about: tuple[str, ...],
    questions: Callable[[Size], Iterator[Case]],
    shown: tuple[str, ...] | None = None,
    *,
    tested: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    normative: bool = True,
    tried: tuple[str, ...] | None = None,
) -> Suite:
    """Return a suite whose fields are those of its operation.

    `shown` are the outputs of its cases, such as "scale", or "scale@sha256_128x128" for the digests
    of its tiles; without it, all are. `tested` has the rules of fields that cases test in part. The
    outputs are those of all representations, or of those that are `tried`.
    """
    declared = OPERATIONS[operation]
    known = declared.outputs if tried is None else declared.outputs_with(tried)
    outputs = {
        name: replace(output, rules=tested.get(name, output.rules))
        for name, output in known.items()
    }
    results = (_result(name, outputs) for name in (outputs if shown is None else shown))
    fields = (*declared.inputs.values(), *results)
    return Suite(name, title, operation, about, fields, questions, normative)


def _result(name: str, outputs: Fields) -> Field:
    """Return an output, or the digests of its tiles."""
    base, _, view = name.partition(SEPARATOR)
    output = outputs[base]
    if not view:
        return output
    meaning = f"{output.words}; the digest of each tile"
    return Field(name, "expected", "u8", output.axes, meaning, ("VEC-010", *output.rules))


def question(fields: Iterable[Field], case: Case) -> Case:
    """Return a case without its expected fields."""
    inputs = {f.name: case.arrays[f.name] for f in fields if f.role == "input"}
    return Case(case.name, case.parameters, inputs)


def chosen(suites: Mapping[str, Any], names: list[str]) -> list[str]:
    """Return the names of suites that were given, each once, or all if none was given."""
    return list(dict.fromkeys(known_name("suite", name, suites) for name in names or suites))
