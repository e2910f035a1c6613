"""Quantizing tensors that may be larger than the memory: some rows at a time, with the same bits.

The scales of some recipes follow from the amax of the whole tensor. It is measured first, and given
to the engine with each of the parts (NVF-013, SCL-006). After the fields of a policy come those of
its rungs: the codes and scales that a mixed tensor is stored in.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mor_ref.arrays import let_go
from mor_ref.exact.errors import SUMS
from mor_ref.golden.model.suite import Case, case_in_memory
from mor_ref.mapped_files import in_memory
from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import tensor_of
from mor_ref.operations.call import Arrays, Parameters
from mor_ref.operations.fields import bytes_of, format_meant
from mor_ref.operations.shapes import shapes_of, sides_of
from mor_ref.recipes import Asked, rungs_of

AT_ONCE = 1 << 22  # numbers
NOT_OF_RUNGS = ("y", *SUMS)  # the output of a policy, and its own sums, stand for these


class FieldOf(NamedTuple):
    """A field of a tensor: its dtype, its shape, and the rows of x for each of its rows."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    rows: int


def fields_of(
    operation: str, parameters: Parameters, shape: tuple[int, int]
) -> Mapping[str, FieldOf]:
    """Return the fields that are stored for a tensor of this shape, from one number of a group.

    A field of a rung is named RUNG.FIELD.
    """
    one = OPERATIONS[operation]
    inputs = {
        name: np.zeros(
            (1, parameters.get("groups", 1)), f"u{bytes_of(format_meant(field.format, parameters))}"
        )
        for name, field in one.inputs_for(parameters).items()
    }
    sample = one.engine(parameters, inputs)
    shapes, sides = (of("rc", parameters, shape) for of in (shapes_of, sides_of))
    own = {
        name: FieldOf(array.dtype, shapes[axes], sides[axes][0])
        for name, array in sample.items()
        for axes in [one.field(name).axes]
    }
    of_rungs = {
        rung: fields_of(asked.operation, asked.parameters, shape)
        for rung, asked in rungs_of(Asked(operation, parameters)).items()
    }
    return own | {
        name: field for rung, of_it in of_rungs.items() for name, field in _named(rung, of_it)
    }


def _named(rung: str, fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a rung that are stored, with their names."""
    for name, field in fields.items():
        if name not in NOT_OF_RUNGS:
            yield f"{rung}.{name}", field


def quantized_rows(operation: str, case: Case) -> Iterator[tuple[int, Arrays]]:
    """Yield the number of a first row, and the fields of the rows from there on.

    The tensor is whole if it is small, or if its rows depend on each other in another way than by
    an amax. The rungs of a policy come one after the other.
    """
    yield from _of_operation(operation, case)
    for rung, asked in rungs_of(Asked(operation, case.parameters)).items():
        of_it = replace(case, parameters=asked.parameters)
        for first, arrays in _of_operation(asked.operation, of_it):
            yield first, dict(_named(rung, arrays))


def _of_operation(operation: str, case: Case) -> Iterator[tuple[int, Arrays]]:
    engine = OPERATIONS[operation].engine
    for first, strip in strips_of(operation, case):
        yield first, engine(strip.parameters, strip.arrays)
        let_go(case.arrays["x"])


def strips_of(operation: str, case: Case) -> Iterator[tuple[int, Case]]:
    """Yield the number of a first row, and a case of the rows from there on.

    A case has the bits of the whole tensor, as the amax of the tensor is given with it if its rows
    depend on it. The tensor is whole if it is small, or if its rows depend on more.
    """
    x = case.arrays["x"]
    count = rows_at_once(operation, case.parameters, x.shape)
    parameters = None if count is None else _with_amax(operation, case, count)
    if count is None or parameters is None:
        yield 0, case_in_memory(case)
        return
    for first in range(0, len(x), count):
        rows = slice(first, first + count)
        arrays = {name: in_memory(array[rows]) for name, array in case.arrays.items()}
        yield first, Case(case.name, dict(parameters), arrays)


def rows_at_once(operation: str, parameters: Parameters, shape: tuple[int, ...]) -> int | None:
    """Return how many rows a strip of a tensor has; None if the tensor is whole."""
    step = _rows_together(operation, parameters, shape)
    if shape[0] * shape[1] <= AT_ONCE or step is None:
        return None
    return max(step, AT_ONCE // shape[1] // step * step)


def _rows_together(operation: str, parameters: Parameters, shape: tuple[int, ...]) -> int | None:
    """Return how many rows share scales; None if all do, or depend on each other otherwise."""
    if OPERATIONS[operation].needs_all(parameters):
        return None
    rows = sides_of("rc", parameters, shape)["grid"][0]
    return rows if rows < shape[0] else None


def _with_amax(operation: str, case: Case, count: int) -> Parameters | None:
    """Return the parameters, with the amax if parts need it; None if it cannot be given."""
    asked = case.parameters
    if not needs_amax(operation, asked):
        return asked
    amax = amax_of(operation, case, count)
    return {**asked, "amax": amax} if np.isfinite(amax) else None


def needs_amax(operation: str, parameters: Parameters) -> bool:
    """Return whether parts of a tensor depend on its amax, which is not given."""
    whole = OPERATIONS[operation].whole_amax
    is_given = "amax" in parameters or "global_scale" in parameters
    return whole is not None and not is_given and whole.is_needed(parameters)


def amax_of(operation: str, case: Case, count: int = AT_ONCE) -> float:
    """Return the amax of a tensor; so many rows are in memory at a time.

    It is the largest magnitude of finite numbers (SCL-001), or of all but NaN (NVF-002).
    """
    x, largest, whole = case.arrays["x"], 0.0, OPERATIONS[operation].whole_amax
    with_infinity = whole is not None and whole.counts_infinity
    for first in range(0, len(x), count):
        rows = in_memory(x[first : first + count])
        numbers = np.abs(tensor_of(rows, case.parameters["source"]))
        counts = ~np.isnan(numbers) if with_infinity else np.isfinite(numbers)
        largest = max(largest, float(np.max(numbers, initial=0, where=counts)))
        let_go(x)
    return largest
