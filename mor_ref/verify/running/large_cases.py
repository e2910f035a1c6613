"""Comparing a large tensor some rows at a time: no array of ours is as large as the tensor.

A candidate is asked once for the whole tensor. Results in files are read strip by strip; the arrays
of a function are its own. Expected bits are computed strip by strip.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mor_ref.arrays import let_go
from mor_ref.golden.model.suite import Case, case_in_memory
from mor_ref.golden.model.views import SEPARATOR
from mor_ref.operations import OPERATIONS
from mor_ref.operations.call import Arrays
from mor_ref.verify.candidates.candidate import NO_REMARKS, Answer, Candidate, NoArray
from mor_ref.verify.candidates.results_directory import read_part
from mor_ref.verify.comparing.compare import problem_of
from mor_ref.verify.comparing.evidence import Evidence, Strip
from mor_ref.verify.comparing.integers import taken
from mor_ref.verify.quantize_by_rows import FieldOf, fields_of, rows_at_once, strips_of


def is_cut(operation: str, case: Case) -> bool:
    """Return whether a case is compared in strips."""
    return rows_at_once(operation, case.parameters, case.arrays["x"].shape) is not None


@dataclass(frozen=True)
class CaseInStrips:
    """A case of a large tensor, without expected fields."""

    operation: str
    case: Case

    def asked_of(self, candidate: Candidate, suite: str) -> Answer | None:
        """Return the answer to the whole case; arrays of files are not read yet."""
        if candidate.is_engine:
            return dict.fromkeys(self._fields)  # computed strip by strip
        return candidate.unread(suite, self.operation, self.case)

    def whole(self) -> Case:
        """Return the case with the fields that the engine computes."""
        case = case_in_memory(self.case)
        found = OPERATIONS[self.operation].engine(case.parameters, case.arrays)
        return replace(case, arrays={**case.arrays, **found})

    def strips(self, candidate: Candidate, answered: Evidence) -> Iterator[Evidence]:
        """Yield the answer to the case strip by strip; it is whole if a field is in a layout."""
        answer = answered.answers[self.case.name]
        if any(SEPARATOR in name for name in answer):
            whole = {name: _whole(array) for name, array in answer.items()}
            yield replace(answered, cases=[self.whole()], answers={self.case.name: whole})
            return
        engine = OPERATIONS[self.operation].engine
        problems = {} if candidate.is_engine else self._problems(answer)
        for first, part in strips_of(self.operation, self.case):
            found = engine(part.parameters, part.arrays)
            places = self._places(first, problems)
            own = found if candidate.is_engine else answer
            arrays = {**part.arrays, **{n: found[n] for n in found if n in places}}
            given = dict(self._given(own, arrays, places, problems))
            yield replace(
                answered,
                cases=[Case(part.name, part.parameters, arrays)],
                answers={part.name: given},
                remarks=answered.remarks if first == 0 else NO_REMARKS,
                strip=Strip(first, {name: places[name] for name in places}),
            )
            let_go(self.case.arrays["x"])

    @cached_property
    def _fields(self) -> Mapping[str, FieldOf]:
        rows, columns = self.case.arrays["x"].shape
        return fields_of(self.operation, self.case.parameters, (rows, columns))

    def _problems(self, answer: Answer) -> dict[str, str]:
        """Return why fields of an answer cannot be compared, from their whole shapes."""
        found, parameters = {}, self.case.parameters
        declared = OPERATIONS[self.operation]
        for name, field in self._fields.items():
            right = np.broadcast_to(np.zeros((), field.dtype), field.shape)
            given: Any = answer.get(name)
            if given is None or (right.size == 1 and np.ndim(given) == 0):
                continue
            size = field.dtype.itemsize
            if isinstance(given, np.ndarray) and given.dtype.kind == "i" and given.itemsize != size:
                given = read_part(given)  # its least integer is looked for
            problem = problem_of(taken(declared.field(name), size, parameters, given), right)
            if problem is not None:
                found[name] = problem
        return found

    def _places(
        self, first: int, problems: Mapping[str, str]
    ) -> dict[str, tuple[int, tuple[int, ...]]]:
        """Return the fields of a strip: the first row in the whole field, and its shape.

        A field of the whole tensor is in the first strip, and so is one that cannot be compared.
        """
        rows = len(self.case.arrays["x"])
        return {
            name: (first // field.rows, field.shape)
            for name, field in self._fields.items()
            if first == 0 or (field.rows < rows and name not in problems)
        }

    def _given(
        self,
        answer: Answer,
        arrays: Arrays,
        places: Mapping[str, tuple[int, tuple[int, ...]]],
        problems: Mapping[str, str],
    ) -> Iterator[tuple[str, Any]]:
        """Yield the fields of an answer to a strip."""
        for name, array in answer.items():
            if name in problems and name in places:
                yield name, NoArray(problems[name])
            elif name in places and isinstance(array, np.ndarray) and array.ndim:
                start, shape = places[name]
                size = len(arrays[name])
                is_own = array.shape == shape and array.shape != arrays[name].shape
                yield name, read_part(array[start : start + size] if is_own else array)
            elif name in places:
                yield name, _whole(array)
            elif name not in self._fields:
                yield name, array


def _whole(given: Any) -> Any:
    """Return a field of an answer; an array of a file is read."""
    return read_part(given) if isinstance(given, np.ndarray) else given
