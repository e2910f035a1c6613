"""What can be verified: the engine, a Python function, a program, and a folder of results."""

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from mor_ref.golden.suite import Arrays, Case, Parameters

Answer = Mapping[str, Any]
Operation = Callable[[Parameters, Arrays], Answer]

SECONDS = 60.0  # for a case, unless another time is given


class CandidateError(RuntimeError):
    """A candidate that cannot be run."""


class Candidate(Protocol):
    """Something that gives its own results for a case, or None where it has none."""

    @property
    def name(self) -> str:
        """What reports call it."""

    def answer(self, suite: str, operation: str, case: Case) -> Answer | None:
        """The candidate's fields of a case, whose arrays are the inputs alone."""


@dataclass(frozen=True)
class Engine:
    """The Numba engine."""

    name: str = "numba"

    def answer(self, suite: str, operation: str, case: Case) -> Answer | None:
        """By the package's own functions."""
        from mor_ref.verify.engine import OPERATIONS

        del suite
        run = OPERATIONS.get(operation)
        return None if run is None else run(case.parameters, case.arrays)


@dataclass(frozen=True)
class PythonFunction:
    """A function of (operation, parameters, inputs) that returns a dict of fields, or None."""

    name: str
    function: Callable[[str, Parameters, Arrays], Answer | None]

    def answer(self, suite: str, operation: str, case: Case) -> Answer | None:
        """What the function returns; whatever it raises is the candidate's failure."""
        del suite
        try:
            found = self.function(operation, dict(case.parameters), dict(case.arrays))
        except Exception as error:
            raise CandidateError(
                f"{self.name} raised {type(error).__name__} on case {case.name!r}: {error}"
            ) from error
        if found is not None and not isinstance(found, Mapping):
            raise CandidateError(
                f"{self.name} returned a {type(found).__name__} for case {case.name!r}; "
                "return a dict of arrays, or None for an operation that it does not have"
            )
        return found


class Folder:
    """Files of results: SUITE.safetensors with arrays named CASE/FIELD, as in the suites."""

    def __init__(self, path: Path) -> None:
        self.name = f"dir:{path}"
        self._path = path
        self._loaded: tuple[str, dict[str, np.ndarray[Any, Any]]] | None = None
        if not path.is_dir():
            raise CandidateError(f"{path} is no folder; give one with SUITE.safetensors files")

    def answer(self, suite: str, operation: str, case: Case) -> Answer | None:
        """The fields that the file of the suite has for the case."""
        del operation
        if self._loaded is None or self._loaded[0] != suite:
            self._loaded = (suite, self._load(suite))
        prefix = f"{case.name}/"
        arrays = self._loaded[1]
        found = {key.removeprefix(prefix): a for key, a in arrays.items() if key.startswith(prefix)}
        return found or None

    def _load(self, suite: str) -> dict[str, np.ndarray[Any, Any]]:
        path = self._path / f"{suite}.safetensors"
        if not path.exists():
            return {}
        try:
            return load_file(path)
        # An attribute is missing where NumPy has no such dtype: small floats are kept as they are.
        except (SafetensorError, OSError, ValueError, KeyError, AttributeError) as error:
            raise CandidateError(
                f"{path} is no safetensors file of unsigned integers ({error}); save bit patterns"
            ) from error


@contextmanager
def opened(text: str, seconds: float = SECONDS) -> Iterator[Candidate]:
    """The candidate that is meant, ended after its use if it is one that runs."""
    candidate = candidate_named(text, seconds)
    with ExitStack() as stack:
        if isinstance(candidate, AbstractContextManager):
            stack.enter_context(candidate)
        yield candidate


def candidate_named(text: str, seconds: float = SECONDS) -> Candidate:
    """The candidate that is meant: numba, module:function, dir:PATH or exec:PROGRAM.

    `seconds` is how long a program may take for a case.
    """
    if text == "numba":
        return Engine()
    kind, colon, rest = text.partition(":")
    if kind == "dir" and rest:
        return Folder(Path(rest))
    if kind == "exec" and colon:
        from mor_ref.verify.program import Program

        return Program(rest, seconds)
    if colon and kind and rest:
        return _python_function(text, kind, rest)
    raise ValueError(
        f"candidate is {text!r}, which is not known; give numba, module:function, dir:PATH or "
        "exec:PROGRAM"
    )


def _python_function(text: str, module: str, name: str) -> PythonFunction:
    if "" not in sys.path:
        sys.path.insert(0, "")  # modules of the working folder, as with python -m
    try:
        function = getattr(importlib.import_module(module), name)
    except Exception as error:  # importing somebody's module can raise anything
        raise CandidateError(f"{text} cannot be imported: {error}") from error
    if not callable(function):
        raise CandidateError(f"{text} is a {type(function).__name__}, which cannot be called")
    return PythonFunction(text, function)
