"""Integers with a mistake in the numbers that each thread has, and in error sums."""

from typing import ClassVar

import numpy as np

from wrong.affine_right import Integers, Register
from wrong.microscaling import f32

KERNELS = Register()
wrong = KERNELS.wrong
SMALL = {"affine": "No tensor of it is so large."}
BLOCKS = ("minimum", "maximum", "scale", "inverse_scale", "zero_float", "zero_point")


class Launch(Integers):
    """A program of whole tensors."""

    operations = ("affine",)


class SomeColumns(Launch):
    """A program that finds extremes only in the first columns of a block."""

    def columns(self, count):
        """Return how many columns count."""
        raise NotImplementedError

    def extremes(self, x, place, count):
        left = self.columns(x.shape[1])
        part = super().extremes(x[:, :left], place[:, :left], count)
        none = np.bincount(place[:, :left].ravel(), minlength=count) == 0
        return [np.where(none, f32(0), end) for end in part]


class UpTo(Launch):
    """A program whose launch ends early."""

    def reached(self, shape):
        """Return the rows and the columns that are reached."""
        raise NotImplementedError

    def numbers(self, x, scale, inverse, zero):
        rows, columns = self.reached(x.shape)
        found = super().numbers(x, scale, inverse, zero)
        there = np.zeros(x.shape, bool)
        there[:rows, :columns] = True
        return {name: np.where(there, field, 0).astype(field.dtype) for name, field in
                found.items()}  # fmt: skip


@wrong
class GridOf16Bits(UpTo):
    """The rows are the second axis of a grid, which ends at 65,535."""

    profiles = ("torch_fake_tensor",)
    unseen: ClassVar = SMALL

    def reached(self, shape):
        return 65535, shape[1]


@wrong
class TwoThousandColumns(UpTo):
    """A block of 1,024 threads has a row, and a thread two numbers."""

    unseen: ClassVar = SMALL

    def reached(self, shape):
        return shape[0], 2048


@wrong
class ThousandRows(UpTo):
    """A block of 1,024 threads has a column, a thread a number."""

    unseen: ClassVar = SMALL

    def reached(self, shape):
        return 1024, shape[1]


@wrong
class RowsOfFour(UpTo):
    """Rows after the last multiple of four are never launched."""

    def reached(self, shape):
        return shape[0] // 4 * 4, shape[1]


@wrong
class ColumnsOfFour(UpTo):
    """Numbers are read four at a time, and the last numbers of a row are omitted."""

    def reached(self, shape):
        return shape[0], shape[1] // 4 * 4


@wrong
class ExtremesOfWholeFours(SomeColumns):
    """Extremes are found in numbers read four at a time; the last numbers of a row do not count."""

    def columns(self, count):
        return count // 4 * 4 or count


@wrong
class ExtremesOf1024(SomeColumns):
    """A block of threads finds extremes only in the first 1,024 numbers of a row."""

    unseen: ClassVar = SMALL

    def columns(self, count):
        return 1024


@wrong
class ExtremesOfOneWarp(SomeColumns):
    """A warp finds extremes: numbers after the 32nd of a row do not count."""

    def columns(self, count):
        return 32


@wrong
class ReadsIntoTheNextRow(Launch):
    """The last block of a row has numbers of the next row, too."""

    def extremes(self, x, place, count):
        least, most = super().extremes(x, place, count)
        high, wide = self.sides(x.shape)
        beyond = -x.shape[1] % wide
        for row in range(high, len(x), high):
            if beyond:
                block, part = int(place[row - high, -1]), x[row, :beyond]
                least[block] = min(least[block], part.min())
                most[block] = max(most[block], part.max())
        return least, most


@wrong
class OutOfBoundsIsZero(Launch):
    """A block at the edge is filled up with zeros, which count in its extremes."""

    def extremes(self, x, place, count):
        least, most = super().extremes(x, place, count)
        high, wide = self.sides(x.shape)
        rows, columns = -(-len(x) // high), -(-x.shape[1] // wide)
        short = np.zeros((rows, columns), bool)
        short[-1] |= len(x) % high > 0
        short[:, -1] |= x.shape[1] % wide > 0
        short = short.ravel()
        return (np.where(short, np.minimum(least, f32(0)), least),
                np.where(short, np.maximum(most, f32(0)), most))  # fmt: skip


@wrong
class ScalesTurned(Launch):
    """The fields of blocks are written column by column."""

    def tensor(self, x):
        found = super().tensor(x)
        return {**found, **{n: found[n].T.reshape(found[n].shape) for n in BLOCKS}}


@wrong
class ScaleOfTheBlockBefore(Launch):
    """Numbers take the scale of the previous block."""

    def places(self, shape):
        place, grid = super().places(shape)
        self.count = grid[0] * grid[1]
        return place, grid

    def numbers(self, x, scale, inverse, zero):
        place, _ = super().places(x.shape)
        first = [np.unique(place, return_index=True)[1]]
        before = np.maximum(place - 1, 0)
        moved = [field.ravel()[first[0]][before] for field in (scale, inverse, zero)]
        return super().numbers(x, *moved)


# ---------------------------------------------------------------------- error sums


class Sums(Integers):
    """A program with error sums of its own."""

    operations = ("affine", "affine_groups")


@wrong
class AbsoluteErrors(Sums):
    """The error is the distance, not divided by |x|."""

    def terms(self, x, y):
        d = np.minimum(np.abs(x - y), f32(1))
        return (f32(1) + np.where(np.isnan(d), f32(1), d)).view(np.uint32) - np.uint32(0x3F800000)


@wrong
class ErrorsBeforeTheDtype(Sums):
    """Errors are computed from y before y is rounded to the dtype of x."""

    def stored_y(self, y):
        self.wide = y
        return super().stored_y(y)

    def sums(self, x, y, place, count):
        return super().sums(x, self.wide, place, count)


@wrong
class ErrorsInBfloat16(Sums):
    """Errors are computed from y in bfloat16."""

    def terms(self, x, y):
        return super().terms(x, np.where(np.isfinite(y), self.cut(y), y))

    @staticmethod
    def cut(y):
        """Return y in bfloat16."""
        word = np.ascontiguousarray(y, np.float32).view(np.uint32)
        near = word + np.uint32(0x7FFF) + (word >> 16 & np.uint32(1))
        return (near & np.uint32(0xFFFF0000)).view(np.float32)


@wrong
class ZerosCount(Sums):
    """nonzero counts zeros, too."""

    def sums(self, x, y, place, count):
        total, _, lost = super().sums(x, y, place, count)
        every = np.zeros(count, np.uint64)
        np.add.at(every, place, np.uint64(1))
        return total, every, lost


@wrong
class NanAloneIsLost(Sums):
    """nonfinite counts NaN alone."""

    def sums(self, x, y, place, count):
        total, nonzero, _ = super().sums(x, y, place, count)
        lost = np.zeros(count, np.uint64)
        np.add.at(lost, place, np.isnan(x).astype(np.uint64))
        return total, nonzero, lost


@wrong
class SumsOf32Bits(Sums):
    """The sum has 32 bits."""

    def sums(self, x, y, place, count):
        total, nonzero, lost = super().sums(x, y, place, count)
        return total & np.uint64(0xFFFFFFFF), nonzero, lost


@wrong
class SumsInBinary32(Sums):
    """The sum is computed in binary32."""

    def sums(self, x, y, place, count):
        total, nonzero, lost = super().sums(x, y, place, count)
        return total.astype(np.float32).astype(np.uint64), nonzero, lost
