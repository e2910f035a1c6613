"""A Python function as a candidate."""

import importlib
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.argument_checks import error_text
from mor_ref.golden.model.suite import Case
from mor_ref.mapped_files import in_memory
from mor_ref.operations.call import Arrays, Parameters
from mor_ref.verify.candidates.candidate import (
    NO_REMARKS,
    Answer,
    Candidate,
    CandidateError,
    NoAnswer,
    NoArray,
    Remarks,
    is_name,
)
from mor_ref.verify.candidates.other_modes import OtherModes

_SHOWN = 100  # characters of a name
_PACKAGE = Path(__file__).parents[2]  # its own lines help no reader of a report
_HOW = "give a function of (operation, parameters, inputs) that returns a dict of fields"
_SAID = 300  # characters of an exception's message


@dataclass(frozen=True)
class PythonFunction(Candidate):
    """A function of (operation, parameters, inputs) that returns a dict of fields, or None."""

    name: str
    function: Callable[[str, Parameters, Arrays], Answer | None]
    modes: OtherModes = field(default_factory=OtherModes, repr=False, compare=False)

    def answer(self, suite: str, operation: str, case: Case) -> Answer | None:
        """Return the fields of the function; an exception is a failure of the candidate.

        They are copied: the function may fill the same arrays when it is called again.
        """
        found = self.unread(suite, operation, case)
        if found is None:
            return None
        return {
            name: given.copy() if isinstance(given, np.ndarray) else given
            for name, given in found.items()
        }

    def unread(self, suite: str, operation: str, case: Case) -> Answer | None:
        """Return the arrays that the function filled, which are compared before its next call."""
        inputs = {name: _to_be_changed(array) for name, array in case.arrays.items()}
        return self.called(suite, operation, replace(case, arrays=inputs))

    def called(self, suite: str, operation: str, case: Case) -> Answer | None:
        """Call the function with the arrays of the case itself, which it may change."""
        where = f"case {case.name!r} of suite {suite!r}"
        try:
            with self.modes.within():  # those of its arrays as well, which may be computed now
                found = self.function(operation, deepcopy(dict(case.parameters)), dict(case.arrays))
                return self._fields(where, found)
        except (KeyboardInterrupt, NoAnswer, CandidateError):
            raise
        except BaseException as error:  # one that exits, or whose library panics, has no answer
            raise self.failed(where, error) from error

    def failed(self, where: str, error: BaseException) -> CandidateError:
        """Return the failure of a candidate that raised an exception."""
        message = _in_a_line(error)
        said = f": {message}" if message else ""
        hint = "" if _takes_three(self.function) else f"; {_HOW}"
        return CandidateError(
            f"{self.name} raised {type(error).__name__} on {where}{said}{_place_of(error)}{hint}"
        )

    def _fields(self, where: str, found: Any) -> Answer | None:
        """Return what the function returned as arrays, None for a field without one."""
        if found is None:
            return None
        if not isinstance(found, Mapping):
            raise CandidateError(
                f"{self.name} returned a {type(found).__name__} for {where}; "
                "return a dict of arrays, or None for an operation that it does not have"
            )
        return self._arrays(where, found)

    def remarks(self) -> Remarks:
        """Return what the function says of its answers since it was asked last."""
        from mor_ref.ptx.candidate import Candidate as Compiled

        if not isinstance(self.function, Compiled):
            return NO_REMARKS
        notes = tuple(self.function.notes())
        said, count = self.function.remarks()
        return Remarks(tuple(said), count, notes)

    def _arrays(self, where: str, found: Mapping[Any, Any]) -> Answer:
        """Return the fields as arrays, None for a field without one; quote all but names."""
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


def _to_be_changed(array: NDArray[Any]) -> NDArray[Any]:
    """Return numbers that a function may change: a copy."""
    found = in_memory(array)
    return array.copy() if found is array else found


def _takes_three(function: Callable[..., Any]) -> bool:
    """Return whether a function can be called with three arguments; True if that is not known."""
    try:
        inspect.signature(function).bind("", {}, {})
    except TypeError:
        return False
    except Exception:  # noqa: BLE001 (somebody's object can raise anything)
        return True
    return True


def _array(given: Any) -> Any:
    """Return a field of the function as an array."""
    try:
        array = None if given is None else np.asarray(given)
    except Exception as error:  # noqa: BLE001 (somebody's array can raise anything)
        return NoArray(f"is not an array ({_in_a_line(error)}); give NumPy arrays")
    if array is None or array.dtype.metadata is None:
        # Somebody's objects may not go between processes, and are compared with nothing.
        return np.full(array.shape, None) if array is not None and array.dtype.hasobject else array
    return np.full(array.shape, None) if array.dtype.kind == "V" else array.view(array.dtype.str)


def _in_a_line(error: BaseException) -> str:
    """Return the text of an exception in one printable line."""
    text = error_text(error)
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:_SAID])
    return shown if len(text) <= _SAID else f"{shown}.."


def _place_of(error: BaseException) -> str:
    """Return the last line of somebody's Python on the way to an exception, if there is one."""
    frames = traceback.extract_tb(error.__traceback__)
    others = [each for each in frames if not Path(each.filename).is_relative_to(_PACKAGE)]
    if not others:
        return ""
    last = others[-1]
    return f" (line {last.lineno} of {ascii(Path(last.filename).name)[1:-1]}, in {last.name})"


def imported_function(text: str, module: str, name: str) -> PythonFunction:
    """Return the function of this name in a module, which is imported."""
    if "" not in sys.path:
        sys.path.insert(0, "")  # modules of the working directory, as with python -m
    modes = OtherModes()
    try:
        with modes.within():  # it may load a library that flushes subnormal numbers
            function = getattr(importlib.import_module(module), name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # importing somebody's module can raise anything
        raise CandidateError(
            f"{text} cannot be imported: {_in_a_line(error)}; give MODULE:FUNCTION of a module "
            "that is installed or in the working directory"
        ) from error
    if not callable(function):
        kind = type(function).__name__
        raise CandidateError(f"{text} is of type {kind}, which cannot be called; give a function")
    return PythonFunction(text, function, modes)
