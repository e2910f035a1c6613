"""Expected values: the results of the exact model, for most inputs once if they are equal.

Rows that are independent of each other are computed once if they are equal. In a tensor, numbers
are: bfloat16 has few, and tensors of a suite share many. The numbers of a large tensor are computed
all at once, which takes less time than to find those that are equal.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mor_ref.deviations import Deviation, applied
from mor_ref.exact import mx, nvfp4, quantization
from mor_ref.exact.errors import error_term
from mor_ref.exact.step import is_replaced, replaced
from mor_ref.golden.model.suite import Case, Suite, question
from mor_ref.golden.model.views import DIGEST, seen, split
from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import Unsigned
from mor_ref.operations.call import Arrays
from mor_ref.operations.parameters import GENERATED, RECIPE
from mor_ref.schemes import in_schemes

# Most of the work, for each number of a tensor; and how many of the first arguments are numbers.
_REMEMBERED: dict[Callable[..., Any], int] = {
    quantization.quantize_element: 2,
    quantization.restored: 2,
    error_term: 2,
    quantization.to_bf16: 1,
    nvfp4.quantize_element: 1,
    nvfp4.restored: 1,
    nvfp4.candidate_value: 4,
    mx.quantize_element: 1,
    mx.restored: 1,
    **{
        step: count
        for module in in_schemes("exact")
        for step, count in getattr(module, "REMEMBERED", {}).items()
    },
}
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
        return [
            (step, _looked_up(results, _REMEMBERED[step]))
            for step, results in self._results.items()
        ]


def _looked_up(results: dict[tuple[Any, ...], Any], numbers: int) -> Callable[..., Any]:
    """Return a replacement of a step whose first arguments are so many numbers."""

    def look_up(reference: Callable[..., Any], *arguments: Any) -> Any:
        result = results.get(arguments)
        if result is None:
            result = reference(*arguments)
            if 0.0 not in arguments[:numbers]:  # equal to -0.0, which has another result
                results[arguments] = result
        return result

    return look_up


def with_expected(suite: Suite, case: Case, memory: Memory | None = None) -> Case:
    """Return a case with the results of the exact model, each field in its view of the suite.

    A memory that several cases share has to be of the same deviations, or of none.
    """
    memory = memory or Memory()
    operation = OPERATIONS[suite.operation]
    if operation.columns is not None and _is_large(suite, case) and not is_replaced():
        memory.computed += case.arrays[GENERATED].size
        results = operation.exact_of_many(case.parameters, case.arrays)
    else:
        with replaced(memory.replacements()), _without_search_for_cycles():
            results = _of_distinct_rows(suite.operation, case, memory)
        memory.forget_if_full()
    arrays = dict(case.arrays)
    for field in suite.fields:
        name, views = split(field.name)
        if field.role == "expected" and name in results:
            arrays[field.name] = seen(results[name], views, case.parameters)
    return Case(case.name, case.parameters, arrays)


@contextmanager
def _without_search_for_cycles() -> Iterator[None]:
    """Let no garbage collection begin: elements are many, and searching them takes a while.

    They are in no cycles, and go as soon as nobody has them.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _is_large(suite: Suite, case: Case) -> bool:
    """Return whether a case is a large tensor, of which a suite has digests, and nothing else."""
    given = set(OPERATIONS[suite.operation].optional) & set(case.parameters)
    return given <= {RECIPE} and any(DIGEST in split(field.name)[1] for field in suite.fields)


def _of_distinct_rows(operation: str, case: Case, memory: Memory) -> Arrays:
    """Compute a case; rows that are independent and equal are computed once."""
    declared = OPERATIONS[operation]
    if not declared.is_by_row:
        memory.computed += distinct_numbers(case)
        return declared.exact(case.parameters, case.arrays)
    rows = len(next(iter(case.arrays.values())))
    if not rows or any(len(array) != rows for array in case.arrays.values()):
        return declared.exact(case.parameters, case.arrays)
    first, places = _distinct_rows([array.reshape(rows, -1) for array in case.arrays.values()])
    memory.computed += len(first)
    distinct = {name: array[first] for name, array in case.arrays.items()}
    results = declared.exact(case.parameters, distinct)
    return {name: array[places] for name, array in results.items()}


def _distinct_rows(columns: list[Unsigned]) -> tuple[list[int], list[int]]:
    """Return the first of equal rows, and for each row the place of its first one among these."""
    first: list[int] = []
    numbers: dict[bytes, int] = {}
    places = []
    for row in range(len(columns[0])):
        content = b"".join(column[row].tobytes() for column in columns)
        places.append(numbers.setdefault(content, len(first)))
        if places[-1] == len(first):
            first.append(row)
    return first, places


def distinct_numbers(case: Case) -> int:
    """Return how many different numbers the first input of a case has: the cost of the case."""
    return np.unique(next(iter(case.arrays.values()))).size


def with_deviation(deviation: Deviation, suite: Suite, case: Case) -> Case:
    """Return a case with the results of the exact model with a deviation."""
    with applied(deviation), np.errstate(over="ignore"):
        return with_expected(suite, question(suite.fields, case))
