"""What can be verified: the engine, a Python function, a program, and a folder of results."""

import importlib
import re
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from mor_ref.golden.model.suite import Case
from mor_ref.golden.store.container import SEPARATOR
from mor_ref.golden.store.files import load_arrays, read_inside
from mor_ref.golden.store.manifest import GoldenError
from mor_ref.operations import OPERATIONS
from mor_ref.operations.operation import Arrays, Parameters
from mor_ref.verify.comparing.compare import NoArray

Answer = Mapping[str, Any]
Operation = Callable[[Parameters, Arrays], Answer]

SECONDS = 60.0  # for a case, unless another time is given
_LONGEST = 1e6  # seconds
_SHOWN = 100  # characters of a name
_SAID = 300  # characters of what an exception says
_FEW = 5  # names of a list
_SUFFIX = ".safetensors"
_NAME = re.compile(r"[!-~]{1,255}")


Ends = Literal["case", "suite", "run"]


class CandidateError(RuntimeError):
    """A candidate that has no answer, and what ends with that: the case, the suite or the run."""

    def __init__(self, message: str, ends: Ends = "case") -> None:
        super().__init__(message)
        self.ends = ends


def is_name(name: object) -> bool:
    """Whether a field can be called so: ASCII without white space, as in the protocol (PRO-002)."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


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
        try:
            return OPERATIONS[operation].engine(case.parameters, case.arrays)
        except (ValueError, TypeError) as error:
            raise GoldenError(
                f"case {case.name!r} of suite {suite!r} cannot be computed ({error}); make the "
                "suite again with mor-ref golden make"
            ) from error


@dataclass(frozen=True)
class PythonFunction:
    """A function of (operation, parameters, inputs) that returns a dict of fields, or None."""

    name: str
    function: Callable[[str, Parameters, Arrays], Answer | None]

    def answer(self, suite: str, operation: str, case: Case) -> Answer | None:
        """What the function returns; whatever it raises is the candidate's failure."""
        where = f"case {case.name!r} of suite {suite!r}"
        try:
            inputs = {name: array.copy() for name, array in case.arrays.items()}
            found = self.function(operation, dict(case.parameters), inputs)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # one that exits, or whose library panics, has no answer
            raise CandidateError(
                f"{self.name} raised {type(error).__name__} on {where}: {_in_a_line(error)}"
                f"{_place_of(error)}"
            ) from error
        if found is not None and not isinstance(found, Mapping):
            raise CandidateError(
                f"{self.name} returned a {type(found).__name__} for {where}; "
                "return a dict of arrays, or None for an operation that it does not have"
            )
        return None if found is None else self._arrays(where, found)

    def _arrays(self, where: str, found: Mapping[Any, Any]) -> Answer:
        """The fields as arrays, None where there is none; a name that is none in quotes."""
        try:
            items = list(found.items())
        except Exception as error:  # somebody's mapping can raise anything
            raise CandidateError(
                f"{self.name} returned a mapping without items for {where} ({_in_a_line(error)}); "
                "return a dict of arrays"
            ) from error
        return {
            name if is_name(name) else ascii(name)[:_SHOWN]: _array(given) for name, given in items
        }


def _array(given: Any) -> Any:
    """What a function gave for a field, as an array."""
    try:
        return None if given is None else np.asarray(given)
    except Exception as error:  # noqa: BLE001 (somebody's array can raise anything)
        return NoArray(_in_a_line(error))


def _in_a_line(error: BaseException) -> str:
    """What somebody's exception says, which may be anything."""
    text = " ".join(str(error).split())
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:_SAID])
    return shown if len(text) <= _SAID else f"{shown}.."


def _place_of(error: BaseException) -> str:
    """The last line of Python on the way to an exception, if that is not here."""
    *_, last = traceback.extract_tb(error.__traceback__)
    if last.filename == __file__:
        return ""
    return f" (line {last.lineno} of {ascii(Path(last.filename).name)[1:-1]}, in {last.name})"


class Folder:
    """Files of results: SUITE.safetensors with arrays named CASE/FIELD, as in the suites."""

    def __init__(self, path: Path) -> None:
        self.name = f"dir:{path}"
        self._path = path
        self._loaded: tuple[str, dict[str, dict[str, np.ndarray[Any, Any]]]] | None = None
        if not path.is_dir():
            raise CandidateError(f"{path} is no folder; give one with SUITE.safetensors files")
        if not self.suites:
            some = ", ".join(sorted(ascii(file.name)[1:-1] for file in path.iterdir())[:_FEW])
            raise CandidateError(
                f"{path} has no file of results, but {some or 'nothing at all'}; "
                "give one with SUITE.safetensors files"
            )

    @property
    def suites(self) -> list[str]:
        """The suites that there are files for, whether or not there are such suites."""
        return [ascii(file.stem)[1:-1] for file in self._path.glob(f"*{_SUFFIX}")]

    def cases(self, suite: str) -> Collection[str]:
        """The cases that the file of a suite has arrays for, whether or not there are such."""
        return self._of_suite(suite).keys()

    def answer(self, suite: str, operation: str, case: Case) -> Answer | None:
        """The fields that the file of the suite has for the case."""
        del operation
        return self._of_suite(suite).get(case.name)

    def _of_suite(self, suite: str) -> dict[str, dict[str, np.ndarray[Any, Any]]]:
        if self._loaded is None or self._loaded[0] != suite:
            self._loaded = (suite, self._load(suite))
        return self._loaded[1]

    def _load(self, suite: str) -> dict[str, dict[str, np.ndarray[Any, Any]]]:
        """The fields of each case."""
        path = self._path / f"{suite}{_SUFFIX}"
        try:
            arrays = load_arrays(read_inside(self._path, path.name))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise CandidateError(
                f"{path} cannot be read ({error.strerror}); give a file of results, or none",
                ends="suite",
            ) from error
        except ValueError as error:
            raise CandidateError(
                f"{path} is no safetensors file of unsigned integers ({error}); save bit patterns",
                ends="suite",
            ) from error
        found: dict[str, dict[str, np.ndarray[Any, Any]]] = {}
        for key, array in arrays.items():
            case, _, field = key.partition(SEPARATOR)
            if not is_name(case) or not is_name(field):
                raise CandidateError(
                    f"{path} has an array {ascii(key)[:_SHOWN]}; name arrays CASE/FIELD",
                    ends="suite",
                )
            found.setdefault(case, {})[field] = array
        return found


@contextmanager
def opened(text: str, seconds: float = SECONDS) -> Iterator[Candidate]:
    """The candidate that is meant, ended after its use if it is one that runs."""
    candidate = candidate_named(text, seconds)
    with ExitStack() as stack:
        if isinstance(candidate, AbstractContextManager):
            stack.enter_context(candidate)
        yield candidate


def candidate_named(text: str, seconds: float = SECONDS) -> Candidate:
    """The candidate that is meant, by its name or by its kind and where it is.

    `seconds` is how long a program may take for a case.
    """
    if not 0 < seconds <= _LONGEST:
        raise ValueError(
            f"timeout is {seconds}; give a number of seconds above 0, at most {_LONGEST:.0f}"
        )
    if text == "numba":
        return Engine()
    if text in ("cuda", "cuda-host"):
        from mor_ref.verify.candidates.kernels import kernels_named

        return kernels_named(text)
    kind, colon, rest = text.partition(":")
    if kind == "dir" and rest:
        return Folder(Path(rest))
    if kind == "exec" and colon:
        from mor_ref.verify.candidates.program import Program

        return Program(rest, seconds)
    if kind.endswith(".py") or (rest and "/" in kind):
        raise ValueError(
            f"candidate is {text!r}; give module:function, without .py, in the folder of the "
            f"module: {Path(kind).name.removesuffix('.py')}:{rest or 'FUNCTION'}"
        )
    if colon and kind and rest:
        return _python_function(text, kind, rest)
    if text.isidentifier() and Path(f"{text}.py").is_file():
        raise ValueError(f"candidate is {text!r}, a module; give {text}:FUNCTION")
    raise ValueError(
        f"candidate is {text!r}, which is not known; give numba, cuda, cuda-host, "
        "module:function, dir:PATH or exec:PROGRAM"
    )


def _python_function(text: str, module: str, name: str) -> PythonFunction:
    if "" not in sys.path:
        sys.path.insert(0, "")  # modules of the working folder, as with python -m
    try:
        function = getattr(importlib.import_module(module), name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # importing somebody's module can raise anything
        raise CandidateError(f"{text} cannot be imported: {_in_a_line(error)}") from error
    if not callable(function):
        kind = type(function).__name__
        raise CandidateError(f"{text} is of type {kind}, which cannot be called")
    return PythonFunction(text, function)
