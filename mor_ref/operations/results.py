"""Results as bits: what a declared field says of its entries."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.operations.bits import Unsigned, f32_array
from mor_ref.operations.fields import Field, Fields, bytes_of, format_meant
from mor_ref.operations.shapes import Shape


def each(records: Iterable[Any], *names: str) -> dict[str, Any]:
    """Return attributes of records, a result each; rows of records are joined, places are kept.

    >>> each([[1j, 2], [3]], "real", "imag")
    {'real': [0.0, 2, 3], 'imag': [1.0, 0, 0]}
    """
    if isinstance(records, Mapping):
        return {name: _attributes(records, name) for name in names}
    entries = _flat(records)
    return {name: list(map(attrgetter(name), entries)) for name in names}


def _attributes(records: Mapping[Any, Any], name: str) -> dict[Any, Any]:
    return {place: getattr(record, name) for place, record in records.items()}


def in_bits(
    results: Mapping[str, Any],
    fields: Fields,
    parameters: Mapping[str, Any],
    shapes: Mapping[str, Shape],
) -> dict[str, Unsigned]:
    """Return results as arrays of bits, given the shape of each kind of axes.

    A result is an array, or its entries: in rows, by their places, or one after another. Numbers
    are in binary32, and integers that are negative in two's complement. Unsigned integers of an
    array are bits already.
    """
    return {
        name: _shaped(_bits(_listed(result, shape), fields[name], parameters), shape)
        for name, result in results.items()
        for shape in (shapes[fields[name].axes],)
    }


def _listed(result: Any, shape: Shape) -> Any:
    """Return the entries of a grid row by row; there may be others outside of it."""
    if isinstance(result, Mapping):
        return [result[place] for place in np.ndindex(*shape)]
    return result


def _shaped(bits: Unsigned, shape: Shape) -> Unsigned:
    return bits.reshape(shape) if bits.ndim else np.full(shape, bits)


def attribute(record: Any, path: str) -> Any:
    """Return what a record has at a path such as "error.sum"; None if it has nothing there.

    A path goes through attributes and keys. A method at its end is called.
    """
    value = record
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    return value() if callable(value) else value


def _bits(result: Any, field: Field, parameters: Mapping[str, Any]) -> Unsigned:
    """Return the entries of a result as bits."""
    dtype = np.dtype(f"u{bytes_of(format_meant(field.format, parameters))}")
    if isinstance(result, np.ndarray | np.generic):
        return _bits_of(np.asarray(result), dtype)
    if isinstance(result, int):
        return np.array(result, dtype)
    entries = _flat(result)
    if field.format == "f32":
        return f32_array(entries)
    try:
        return np.array(entries, dtype)
    except OverflowError:  # integers below zero
        return np.array(entries, np.int64).astype(dtype)


def _bits_of(numbers: NDArray[Any], dtype: np.dtype[Any]) -> Unsigned:
    """Return the bits of an array of numbers, or of integers."""
    if numbers.dtype.kind in "fV":
        return np.ascontiguousarray(numbers).view(dtype)
    return numbers.astype(dtype, copy=False)


def _flat(entries: Any) -> Sequence[Any]:
    """Return entries one after another."""
    if isinstance(entries, array):
        return entries
    values = list(entries)
    while values and type(values[0]) in (list, tuple):
        values = [value for row in values for value in row]
    return values
