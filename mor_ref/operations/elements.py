"""Fields that several operations return, as the exact model computes them."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.format import Format
from mor_ref.exact.blocks import Rows, in_rows
from mor_ref.exact.errors import SUMS, ErrorSum, error_term
from mor_ref.exact.quantization import Element
from mor_ref.operations.bits import Unsigned, codes_array, f32_array, numbers_of
from mor_ref.operations.operation import Arrays

Grid = tuple[int, int]
_MOST_WITH_STEPS = 1 << 14  # numbers; the steps of larger tensors would take most of their room


def rows_of(arrays: Arrays, source: str) -> Rows:
    """Return the numbers of the input, row by row."""
    rows, columns = arrays["x"].shape
    return in_rows(numbers_of(arrays["x"], source), rows, columns)


def row_by_row(x: Unsigned) -> Rows:
    """Return the binary32 numbers of each row."""
    return [numbers_of(row, "f32") for row in x]


def listed(entries: dict[Grid, Any], grid: Grid) -> list[Any]:
    """Return the entries of a grid, row by row."""
    return [entries[i, j] for i in range(grid[0]) for j in range(grid[1])]


def sums(error_sums: Iterable[ErrorSum], shape: tuple[int, ...]) -> dict[str, NDArray[np.uint64]]:
    """Return the three sums of each unit."""
    units = list(error_sums)
    return {
        name: np.array([getattr(unit, name) for unit in units], np.uint64).reshape(shape)
        for name in SUMS
    }


def element_fields(
    elements: list[list[Element]], fmt: Format, shape: tuple[int, ...]
) -> dict[str, Unsigned]:
    """Return the scaled numbers of elements, their codes, and the numbers these stand for."""
    flat = [element for row in elements for element in row]
    return {
        "xs": f32_array(e.xs for e in flat).reshape(shape),
        "code": codes_array([e.code for e in flat], fmt).reshape(shape),
        "y": f32_array(e.y for e in flat).reshape(shape),
    }


def has_steps(shape: tuple[int, ...]) -> bool:
    """Return whether a tensor is so small that its suite has xs, d, r and u (VEC-001)."""
    return math.prod(shape) <= _MOST_WITH_STEPS


def tensor_fields(
    elements: list[list[Element]], fmt: Format, shape: tuple[int, ...]
) -> dict[str, Unsigned]:
    """Return the fields of the elements of a tensor, without xs if the tensor is large."""
    by_name = element_fields(elements, fmt, shape)
    return by_name if has_steps(shape) else {"code": by_name["code"], "y": by_name["y"]}


def error_fields(
    x: Rows, elements: list[list[Element]], shape: tuple[int, ...]
) -> dict[str, Unsigned]:
    """Return the error of each element; 0 for an element that does not count."""
    terms = [
        error_term(number, element.y) if math.isfinite(number) and number != 0 else None
        for numbers, row in zip(x, elements, strict=True)
        for number, element in zip(numbers, row, strict=True)
    ]
    return {
        "d": f32_array(0.0 if term is None else term.d for term in terms).reshape(shape),
        "r": f32_array(0.0 if term is None else term.r for term in terms).reshape(shape),
        "u": np.array([0 if term is None else term.u for term in terms], np.uint32).reshape(shape),
    }
