"""Expected values: the results of the exact model, for most inputs once if they are equal.

Rows that are independent of each other are computed once if they are equal. In a tensor, numbers
are: bfloat16 has few, and tensors of a suite share many. The numbers of a large tensor are computed
all at once, which takes less time than to find those that are equal.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from mor_ref.deviations import Deviation, applied
from mor_ref.exact import mx, nvfp4, quantization, shared
from mor_ref.exact.errors import error_term
from mor_ref.exact.step import is_replaced, replaced
from mor_ref.golden.model.suite import Case, Suite, question
from mor_ref.golden.model.views import DIGEST, seen, split
from mor_ref.operations import OPERATIONS
from mor_ref.operations.operation import Arrays
from mor_ref.operations.parameters import GENERATED, RECIPE

# Most of the work, for each number of a tensor.
_REMEMBERED = (
    quantization.quantize_element,
    quantization.restored,
    error_term,
    quantization.to_bf16,
    nvfp4.quantize_element,
    nvfp4.restored,
    nvfp4.candidate_value,
    mx.quantize_element,
    mx.restored,
    shared.element,
)
_MOST_REMEMBERED = 1 << 18  # results of a step, some 50 MB


class Memory:
    """The results of steps by their arguments, and how many inputs were computed."""

    def __init__(self) -> None:
        self.computed = 0
        self._results: dict[Callable[..., Any], dict[tuple[Any, ...], Any]] = {
            step: {} for step in _REMEMBERED
        }

    def forget_if_full(self) -> None:
        """Forget the results of steps that have many."""
        for results in self._results.values():
            if len(results) > _MOST_REMEMBERED:
                results.clear()

    def replacements(self) -> list[tuple[Callable[..., Any], Callable[..., Any]]]:
        """Return the steps, each with a function that looks its result up first."""
        return [(step, self._looked_up(results)) for step, results in self._results.items()]

    def _looked_up(self, results: dict[tuple[Any, ...], Any]) -> Callable[..., Any]:
        def look_up(reference: Callable[..., Any], number: float, *others: Any) -> Any:
            if number == 0 or 0.0 in others:  # 0.0 and -0.0 are equal, but their results are not
                return reference(number, *others)
            key = (number, *others)
            result = results.get(key)
            if result is None:
                result = results[key] = reference(number, *others)
            return result

        return look_up


def with_expected(suite: Suite, case: Case, memory: Memory | None = None) -> Case:
    """Return a case with the results of the exact model, each field in its view of the suite.

    A memory that several cases share has to be of the same deviations, or of none.
    """
    memory = memory or Memory()
    many = OPERATIONS[suite.operation].columns
    if many is not None and _is_large(suite, case) and not is_replaced():
        memory.computed += case.arrays[GENERATED].size
        results = many(case.parameters, case.arrays)
    else:
        with replaced(memory.replacements()):
            results = _of_distinct_rows(suite.operation, case, memory)
        memory.forget_if_full()
    arrays = dict(case.arrays)
    for field in suite.fields:
        name, views = split(field.name)
        if field.role == "expected" and name in results:
            arrays[field.name] = seen(results[name], views, case.parameters)
    return Case(case.name, case.parameters, arrays)


def _is_large(suite: Suite, case: Case) -> bool:
    """Return whether a case is a large tensor, of which a suite has digests, and nothing else."""
    given = set(OPERATIONS[suite.operation].optional) & set(case.parameters)
    return given <= {RECIPE} and any(DIGEST in split(field.name)[1] for field in suite.fields)


def _of_distinct_rows(operation: str, case: Case, memory: Memory) -> Arrays:
    """Compute a case; rows that are independent and equal are computed once."""
    declared = OPERATIONS[operation]
    if not declared.is_by_row:
        memory.computed += _numbers(case)
        return declared.exact(case.parameters, case.arrays)
    rows = len(next(iter(case.arrays.values())))
    if not rows or any(len(array) != rows for array in case.arrays.values()):
        return declared.exact(case.parameters, case.arrays)
    columns = [array.reshape(rows, -1) for array in case.arrays.values()]
    joined = np.concatenate([column.astype(np.uint64) for column in columns], axis=1)
    _, first, places = np.unique(joined, axis=0, return_index=True, return_inverse=True)
    memory.computed += len(first)
    distinct = {name: array[first] for name, array in case.arrays.items()}
    results = declared.exact(case.parameters, distinct)
    return {name: array[places.reshape(-1)] for name, array in results.items()}


def _numbers(case: Case) -> int:
    return np.unique(next(iter(case.arrays.values()))).size


def with_deviation(deviation: Deviation, suite: Suite, case: Case) -> Case:
    """Return a case with the results of the exact model with a deviation."""
    with applied(deviation):
        return with_expected(suite, question(suite.fields, case))
