"""A case of a suite with all that an assertion needs to compare it and to name a cause."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from mor_ref.argument_checks import known_name
from mor_ref.golden.model.suite import Case
from mor_ref.golden.store.manifest import read_manifest
from mor_ref.golden.store.suite_files import read_suite
from mor_ref.mistakes.catalogue import id_of
from mor_ref.operations.bits import Unsigned
from mor_ref.operations.fields import Field
from mor_ref.verify.comparing.names_given import fields_of


@dataclass(frozen=True, eq=False)
class SuiteCase:
    """A case of a suite: inputs for a kernel, and the bits that are expected of it.

    A case of a record has a suite without a name.
    `fields` are those of the suite, and `witnesses` the case and the field at which the suite
    exposes each deviation.
    """

    suite: str
    operation: str
    case: Case
    fields: list[Field]
    witnesses: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the case in its suite."""
        return self.case.name

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters of the operation, as a copy."""
        return copy.deepcopy(self.case.parameters)

    @property
    def inputs(self) -> dict[str, Unsigned]:
        """The bit patterns that go in, as copies that may be changed."""
        return self._of("input")

    @property
    def expected(self) -> dict[str, Unsigned]:
        """The bit patterns that are expected, as copies."""
        return self._of("expected")

    def _of(self, role: str) -> dict[str, Unsigned]:
        names = [one.name for one in self.fields if one.role == role]
        return {name: self.case.arrays[name].copy() for name in names if name in self.case.arrays}

    def __str__(self) -> str:
        return f"case {self.name} of {self.suite}" if self.suite else "the expected record"

    def __repr__(self) -> str:
        return f"<case {self.name} of {self.suite}: {self.operation}>"


def suite_case(directory: Path, suite: str, name: str) -> SuiteCase:
    """Return a case of a suite of a directory."""
    entry = read_manifest(directory)["suites"][suite]
    cases = _cases(directory, suite)
    witnesses = {id_of(key): (at["case"], at["field"]) for key, at in entry["kills"].items()}
    case = cases[known_name("case", name, cases)]
    return SuiteCase(suite, entry["operation"], case, fields_of(entry), witnesses)


@lru_cache(maxsize=1)  # tests come suite by suite, and large suites fill the memory
def _cases(directory: Path, suite: str) -> dict[str, Case]:
    entry = read_manifest(directory)["suites"][suite]
    return {case.name: case for case in read_suite(directory, suite, entry)}
