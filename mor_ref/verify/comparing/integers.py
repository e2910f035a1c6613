"""Integers of a candidate as the bits of a field, or why they are refused."""

from typing import Any

import numpy as np

from mor_ref.operations.call import Parameters
from mor_ref.operations.fields import Field
from mor_ref.operations.integers import Integers, IntegersError, integers_of
from mor_ref.verify.candidates.candidate import NoArray


def bits_given(field: Field, size: int, parameters: Parameters, given: Any) -> Any:
    """Return integers as the bits of a field, or why they are refused; all else as it is."""
    return _or_why(integers_of(field, size, parameters).bits, given)


def taken(field: Field, size: int, parameters: Parameters, given: Any) -> Any:
    """Return integers viewed as unsigned ones, or why they are refused; all else as it is."""
    return _or_why(integers_of(field, size, parameters).taken, given)


def of_width(given: Any, size: int) -> Any:
    """Return the bits of signed integers of `size` bytes; return all else as it is."""
    is_signed = _is_of_integers(given) and given.dtype.str[1:] == f"i{size}"
    return Integers(size).bits(given) if is_signed else given


def _or_why(read: Any, given: Any) -> Any:
    if not _is_of_integers(given):
        return given
    try:
        return read(given)
    except IntegersError as error:
        return NoArray(str(error))


def _is_of_integers(given: Any) -> bool:
    return isinstance(given, np.ndarray | np.generic) and given.dtype.kind in "iu"
