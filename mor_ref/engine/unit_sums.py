"""The chapter on policies: exact sums of units that metrics compare, and of their rows and columns.

Products of two binary32 numbers are summed by their exponents, as integers of 64 bits. These are
added to a sum of 640 bits, 32 of them in each of 20 words.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Bits, Numbers
from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.unit_sums import WORDS, UnitSums
from mor_ref.engine.blocks import Part, binary32_words, for_each_part
from mor_ref.engine.errors import error_of_any
from mor_ref.engine.intrinsics import bits_of, float_of
from mor_ref.engine.kernel import kernel, step
from mor_ref.engine.unrounded_y import Fill

_U = np.uint32
_W = np.uint64
_I = np.int64
_MAGNITUDE = _U(0x7FFFFFFF)
_INFINITY = _U(0x7F800000)
_FRACTION = _W(0x007FFFFF)
_LOW = _I(0xFFFFFFFF)
_EXPONENTS = 512  # of products
_SIGNAL, _NOISE, _ENERGY, _PRODUCT, _NEGATIVE = range(5)
_KINDS = 5  # of sums; a product below 0 is subtracted
_DOUBT = 2.0**-40  # of a comparison in binary64
_BETWEEN_CARRIES = 1 << 16  # products of 48 bits, whose sum fits 64 bits


@step
def split(bits):
    """Return the significand of a finite number as an integer, and how often it is doubled."""
    magnitude = _W(_U(bits) & _MAGNITUDE)
    field = magnitude >> _W(23)
    return (magnitude & _FRACTION) | (min(field, _W(1)) << _W(23)), max(field, _W(1)) - _W(1)


@step
def add_word(word, place, sign, words):
    """MOR-009: add an integer of 32 bits, doubled `place` times, to a sum."""
    shifted = _I(word << _W(place & 31))
    words[place >> 5] += sign * (shifted & _LOW)
    words[(place >> 5) + 1] += sign * (shifted >> _I(32))


@step
def carry(by_exponent, words):
    """Move the sums of products by their exponents to where they cannot overflow."""
    for kind in range(_KINDS):
        sign = _I(-1) if kind == _NEGATIVE else _I(1)
        own = words[min(kind, _PRODUCT)]
        for place in range(_EXPONENTS):
            total = by_exponent[kind, place]
            if total != 0:
                add_word(total & _W(_LOW), place, sign, own)
                add_word(total >> _W(32), place + 32, sign, own)
                by_exponent[kind, place] = _W(0)
        for k in range(WORDS - 1):
            own[k + 1] += own[k] >> _I(32)
            own[k] &= _LOW


@kernel
def sum_unit(x, y, by_exponent, words, extremes):
    """MOR-009: sum the numbers of a unit.

    `extremes` are measured, largest, amax, amin, and the sum of relative errors and its count.
    """
    measured, largest, amax, amin = _W(0), _U(0), _U(0), _INFINITY
    relative, nonzero = _W(0), _W(0)
    for i in range(x.size):
        difference = np.float32(float_of(_U(x[i])) - float_of(_U(y[i])))
        d = _U(bits_of(difference) & _MAGNITUDE)
        (of_x, twice_x), (of_y, twice_y) = split(x[i]), split(y[i])
        by_exponent[_SIGNAL, twice_x + twice_x] += of_x * of_x
        by_exponent[_ENERGY, twice_y + twice_y] += of_y * of_y
        is_negative = _W(_U(_U(x[i]) ^ _U(y[i])) >> _U(31))
        by_exponent[_W(_PRODUCT) + is_negative, twice_x + twice_y] += of_x * of_y
        magnitude = _U(x[i] & _MAGNITUDE)
        amax = max(amax, magnitude)
        if magnitude != 0:
            amin = min(amin, magnitude)
            u, _ = error_of_any(_U(x[i]), _U(y[i]))
            relative += _W(u)
            nonzero += _W(1)
        if d < _INFINITY:
            of_d, twice_d = split(d)
            by_exponent[_NOISE, twice_d + twice_d] += of_d * of_d
            measured += _W(1)
            largest = max(largest, d)
        if i % _BETWEEN_CARRIES == _BETWEEN_CARRIES - 1:
            carry(by_exponent, words)
    carry(by_exponent, words)
    extremes[0], extremes[1], extremes[2] = measured, _W(largest), _W(amax)
    extremes[3], extremes[4], extremes[5] = _W(amin if nonzero else _U(0)), relative, nonzero


def unit_sums(x: Bits, y: Bits) -> UnitSums:
    """Return the sums of finite numbers, given as the bits of binary32."""
    x, y = (np.ascontiguousarray(bits).reshape(-1) for bits in (x, y))
    words, extremes = np.zeros((_KINDS - 1, WORDS), np.int64), np.zeros(6, np.uint64)
    sum_unit(x, y, np.zeros((_KINDS, _EXPONENTS), np.uint64), words, extremes)
    signal, noise, energy, product = map(_integer, words)
    measured, *ends, relative, nonzero = extremes.tolist()
    largest, amax, amin = (float(_U(bits).view(np.float32)) for bits in ends)
    sums = signal, noise, energy, product, largest, amax, amin, relative, nonzero
    return UnitSums(x.size, measured, *sums)


def _integer(words: NDArray[np.int64]) -> int:
    """Return a sum; its last word has the sign."""
    return int.from_bytes(words.astype("<u4").tobytes(), "little", signed=True)


class WithY(Protocol):
    """A tensor with a representation."""

    def fill_of_y(self, units: Partition, choice: NDArray[np.uint8], rung: int) -> Fill:
        """Return the way to y of the units that took a rung (ERR-008)."""


@dataclass(frozen=True, eq=False)
class NumbersOfUnits:
    """x and y of all units of a tensor; they are made when a metric reads the first of them."""

    numbers: Numbers
    units: Partition
    outcome: WithY
    threads: int | None

    def __getitem__(self, place: tuple[int, int]) -> "NumbersOfUnit":
        """Return x and y of the unit in a row and a column of units."""
        return NumbersOfUnit(self, place)

    def cut(self, numbers: Bits, place: tuple[int, int]) -> Bits:
        """Return the part of some numbers that a unit has."""
        (high, wide), (i, j) = self.units.block, place
        return numbers[i * high : (i + 1) * high, j * wide : (j + 1) * wide]

    @cached_property
    def x(self) -> Bits:
        """All numbers, as the bits of binary32."""
        return binary32_words(self.numbers).reshape(self.units.rows, self.units.columns)

    @cached_property
    def y(self) -> Bits:
        """All y, as the bits of binary32."""
        units = self.units
        fill = self.outcome.fill_of_y(units, np.zeros(units.grid, np.uint8), 0)
        y = np.zeros((units.rows, units.columns), np.uint32)

        def write(part: Part) -> None:
            room = np.zeros((part.bottom - part.top) * (part.right - part.left), np.uint32)
            fill(part, room)
            rows, columns = slice(part.top, part.bottom), slice(part.left, part.right)
            y[rows, columns] = room.reshape(part.bottom - part.top, -1)

        for_each_part(write, units.rows, units.columns, self.threads)
        return y


@dataclass(frozen=True, eq=False)
class NumbersOfUnit:
    """x and y of a unit."""

    tensor: NumbersOfUnits
    place: tuple[int, int]

    @property
    def x(self) -> NDArray[np.float32]:
        """The numbers of the unit, in its rows and columns."""
        return self._bits[0].view(np.float32)

    @property
    def y(self) -> NDArray[np.float32]:
        """The numbers under the representation, before any rounding to bfloat16."""
        return self._bits[1].view(np.float32)

    @cached_property
    def sums(self) -> UnitSums:
        """The sums of the unit."""
        return unit_sums(*self._bits)

    @cached_property
    def rows(self) -> tuple[UnitSums, ...]:
        """The sums of each row."""
        return tuple(map(unit_sums, *self._bits))

    def has_small_errors(self, limit: Fraction) -> bool:
        """Return whether the largest d of each row is below a part of its amax (MOR-013).

        Rows whose ratio is not next to the limit in binary64 need no exact comparison.
        """
        x, y = (bits.view(np.float32) for bits in self._bits)
        with np.errstate(all="ignore"):
            d = np.abs(x - y)
        if not np.isfinite(d).all():
            return False
        largest = d.max(axis=1, initial=0).astype(np.float64)
        bound = float(limit) * np.abs(x).max(axis=1, initial=0).astype(np.float64)
        if (largest > bound * (1 + _DOUBT)).any():
            return False
        in_doubt = (largest != 0) & (largest >= bound * (1 - _DOUBT))
        amax = np.abs(x[in_doubt]).max(axis=1, initial=0)
        return all(
            Fraction(float(a)) < limit * Fraction(float(b))
            for a, b in zip(largest[in_doubt], amax, strict=True)
        )

    @cached_property
    def columns(self) -> tuple[UnitSums, ...]:
        """The sums of each column."""
        x, y = self._bits
        return tuple(map(unit_sums, x.T, y.T))

    @cached_property
    def _bits(self) -> tuple[Bits, Bits]:
        """The bits of x and y, copied: a function may change them."""
        x, y = (self.tensor.cut(bits, self.place) for bits in (self.tensor.x, self.tensor.y))
        return x.copy(), y.copy()
