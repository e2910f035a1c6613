"""Elements whose format is a table: a search among its limits that takes no branch."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.table_format import TableFormat, limits_in_binary32
from mor_ref.engine.intrinsics import bits_of
from mor_ref.engine.kernel import step

_U = np.uint32
_F = np.float32
_I = np.int64
_W = np.uint64
_FEW = 16  # values that registers hold
_INFINITY = _F(np.inf)


class Table(NamedTuple):
    """The values of a table in ascending order, their codes, and the limits between them.

    In a loop it has the place of the `Grid` of other formats. All are filled up to a power of two,
    with limits that no number is above: few values as tuples, of which vectors select. Their codes
    are in two words, of which vectors shift.
    """

    limits: Any
    values: Any
    codes: Any
    half: np.uint32 | None  # of many values
    nan_code: np.uint32
    smallest_field: None = None  # which a grid has


@lru_cache
def table_of(fmt: TableFormat) -> Table:
    """Return the row of a table."""
    size = max(1 << fmt.bits, _FEW)
    left = size - fmt.code_count
    order = [*fmt.order, *[fmt.largest_code] * left]
    limits = np.array([*limits_in_binary32(fmt), *[_INFINITY] * left], _F)
    values, codes = np.array(fmt.values, _F)[order], np.array(order, _U)
    nan_code = _U(fmt.largest_code)
    if size == _FEW:
        ascends = fmt.order == tuple(range(fmt.code_count))
        few = None if ascends else (_in_one_word(order[:8]), _in_one_word(order[8:]))
        return Table(tuple(limits), tuple(values), few, None, nan_code)
    return Table(_ordered_limits(limits), values, codes, _U(size >> 1), nan_code)


def _in_one_word(codes: Sequence[int]) -> np.uint32:
    """Return eight codes of 4 bits in a word, the first in the lowest bits."""
    return _U(sum(code << 4 * place for place, code in enumerate(codes)))


def _ordered_limits(limits: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return integers in the order of numbers that are not NaN; -0 is not among them."""
    bits = limits.view(np.int32).astype(np.int64)
    return np.where(bits < 0, bits ^ _I(0x7FFFFFFF), bits)


@step
def ordered(x):
    """Return the integer of a number that is not NaN."""
    bits = _I(np.int32(bits_of(x)))
    return _I(bits ^ _I(_I(bits >> _I(63)) & _I(0x7FFFFFFF)))


@step
def place_among_few(x, limits):
    """Return which halves of 16 values have the place of a number, from the largest on."""
    a = x > limits[7]
    n0, n1 = limits[8] if a else limits[0], limits[9] if a else limits[1]
    n2, n3 = limits[10] if a else limits[2], limits[11] if a else limits[3]
    n4, n5 = limits[12] if a else limits[4], limits[13] if a else limits[5]
    n6 = limits[14] if a else limits[6]
    b = x > n3
    n0, n1, n2 = n4 if b else n0, n5 if b else n1, n6 if b else n2
    c = x > n1
    return a, b, c, x > (n2 if c else n0)


@step
def selected(entries, place):
    """Return the entry at the place of a number."""
    a, b, c, d = place
    n0, n1 = entries[8] if a else entries[0], entries[9] if a else entries[1]
    n2, n3 = entries[10] if a else entries[2], entries[11] if a else entries[3]
    n4, n5 = entries[12] if a else entries[4], entries[13] if a else entries[5]
    n6, n7 = entries[14] if a else entries[6], entries[15] if a else entries[7]
    n0, n1, n2, n3 = n4 if b else n0, n5 if b else n1, n6 if b else n2, n7 if b else n3
    n0, n1 = n2 if c else n0, n3 if c else n1
    return n1 if d else n0


@step
def code_at(place, codes):
    """Return the code at the place of a number; where codes ascend, it is the place."""
    a, b, c, d = place
    if codes is None:
        code = _U(_U(_U(_U(a) * _U(8)) + _U(_U(b) * _U(4))) + _U(_U(_U(c) * _U(2)) + _U(d)))
    else:
        steps = _U(_U(_U(b) * _U(16)) + _U(_U(_U(c) * _U(8)) + _U(_U(d) * _U(4))))
        code = _U(_U((codes[1] if a else codes[0]) >> steps) & _U(15))
    return code


@step
def looked_up(x, table, half):
    """Return the code of a number, and its value; there is a half of them if there are many."""
    if half is None:
        place = place_among_few(x, table.limits)
        code, value = code_at(place, table.codes), selected(table.values, place)
    else:
        rank, number = _U(0), ordered(x)
        while half > _U(0):
            limit = table.limits[_U(_U(rank + half) - _U(1))]
            is_above = _U(_W(limit - number) >> _W(32))  # all ones, or 0: no branch is taken
            rank, half = _U(rank + _U(half & is_above)), _U(half >> _U(1))
        code, value = table.codes[rank], table.values[rank]
    return code, value


@step
def code_in_table(x, table):
    """BLF-009: the code of a number, and its value; a NaN has those of the largest value."""
    return looked_up(x if x == x else _INFINITY, table, table.half)
