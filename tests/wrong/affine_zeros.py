"""Integers with a mistake in zero points, or in groups of dimensions."""

from typing import ClassVar

import numpy as np

from wrong.affine_blocks import HALVING, Blocks
from wrong.affine_elements import WITH_ZEROS
from wrong.affine_right import TORCH, Integers, Register, ends_of
from wrong.microscaling import f32

KERNELS = Register()
wrong = KERNELS.wrong


class Groups(Integers):
    """A program with groups of dimensions."""

    operations = ("affine_groups",)


# ---------------------------------------------------------------------- zero points


class Zeros(Blocks):
    """A program with zero points of its own."""

    profiles = WITH_ZEROS

    def of(self, exact):
        """Return zero points of a grid that is not symmetric."""
        raise NotImplementedError

    def zero_point(self, exact):
        if self.symmetric:
            return super().zero_point(exact)
        found = np.clip(self.of(np.where(np.isnan(exact), 0, exact)), self.low, self.high)
        return np.where(np.isnan(exact), self.high, found).astype(np.int64)


@wrong
class ZeroPointTruncated(Zeros):
    """A zero point is cast to an integer, not rounded."""

    def of(self, exact):
        return self.low + np.floor(exact)


@wrong
class ZeroPointTiesUp(Zeros):
    """A zero point is floor(exact + 0.5)."""

    def of(self, exact):
        return self.low + np.floor(exact.astype(np.float64) + 0.5)


@wrong
class ZeroPointNotLimited(Zeros):
    """A zero point beyond the grid is kept, as an integer of 32 bits."""

    def zero_point(self, exact):
        if self.symmetric:
            return super().zero_point(exact)
        ends = np.clip(exact, 0, self.high - self.low)
        whole = np.rint(np.where(np.isfinite(exact), exact, ends))
        return np.where(np.isnan(exact), self.high, self.low + whole).astype(np.int64)


@wrong
class ZeroPointFromZero(Zeros):
    """The zero point is not moved by the lowest integer."""

    def of(self, exact):
        return np.rint(exact)


@wrong
class ZeroPointOfTheSum(Zeros):
    """The lowest integer is added before the zero point is rounded: ties of odd ends differ."""

    profiles = WITH_ZEROS

    def of(self, exact):
        return np.rint(self.low - 1 + exact.astype(np.float64)) + 1


@wrong
class ZeroPointFromAbove(Zeros):
    """The zero point is counted from the maximum down."""

    def tensor(self, x):
        place, grid = self.places(x.shape)
        least, most = self.extremes(x, place, grid[0] * grid[1])
        self.above = self.reaches(least, most)[1]
        return super().tensor(x)

    def zero_float(self, below, delta, scale):
        self.scale = delta if self.profile == "peg" else scale
        return super().zero_float(below, delta, scale)

    def of(self, exact):
        found = self.high - np.rint(self.above / self.scale)
        return np.where(np.isnan(found), self.low + np.rint(exact), found)


@wrong
class ZeroPointOfTheReciprocal(Blocks):
    """L is multiplied by the reciprocal of the scale."""

    profiles = WITH_ZEROS

    def zero_float(self, below, delta, scale):
        if self.symmetric:
            return super().zero_float(below, delta, scale)
        return self.rn(below * self.rn(f32(1) / (delta if self.profile == "peg" else scale)))


@wrong
class ZeroPointOfNanIsLow(Blocks):
    """The zero point of NaN is the lowest integer."""

    profiles = WITH_ZEROS

    def zero_point(self, exact):
        found = super().zero_point(exact)
        return found if self.symmetric else np.where(np.isnan(exact), self.low, found)


@wrong
class PegOfTheLimitedScale(Blocks):
    """The zero point of PEG follows from the scale after its limit."""

    profiles = ("peg",)

    def zero_float(self, below, delta, scale):
        return super().zero_float(below, scale, scale)


@wrong
class LateZeroPoints(Blocks):
    """The zero point follows from the scale before its limit, as in PEG."""

    profiles = (*TORCH, "torchao_0_18")

    def zero_float(self, below, delta, scale):
        return super().zero_float(below, delta, delta)


@wrong
class MiddleOfCodes(Blocks):
    """The zero point of a symmetric uint4 is 8 in torch, too."""

    profiles = TORCH

    def middle(self):
        return 0 if self.low < 0 else (self.high + 1) // 2


@wrong
class MiddleRoundedDown(Blocks):
    """The zero point of a symmetric uint8 is 127."""

    def middle(self):
        return 0 if self.low < 0 or self.profile == "peg" else self.high // 2


@wrong
class MiddleIsZero(Blocks):
    """A symmetric grid has the zero point 0, with or without a sign."""

    profiles = HALVING

    def middle(self):
        return 0


@wrong
class PegWithASign(Blocks):
    """A symmetric grid of PEG has a sign, also if no number is negative."""

    profiles = ("peg",)
    unseen: ClassVar = {"affine_large": "Each of its tensors has a negative number."}

    def choose_grid(self, least):
        if self.symmetric:
            self.grid = self.grid.removeprefix("u")
            self.low, self.high = ends_of(self.grid)


@wrong
class PegAsAsked(Blocks):
    """PEG takes the grid that is asked for, with or without a sign."""

    profiles = ("peg",)

    def choose_grid(self, least):
        """Keep the grid."""


# ---------------------------------------------------------------------- groups


@wrong
class RangesOfAmax(Groups):
    """Dimensions are sorted by their largest magnitude."""

    def ranges(self, x):
        return np.abs(x).max(axis=0)


@wrong
class RangesWithZero(Groups):
    """The range of a dimension includes 0."""

    def ranges(self, x):
        return np.maximum(x.max(axis=0), f32(0)) - np.minimum(x.min(axis=0), f32(0))


@wrong
class RangesWithoutNan(Groups):
    """A NaN does not count in the range of its dimension."""

    def ranges(self, x):
        return np.fmax.reduce(x, axis=0) - np.fmin.reduce(x, axis=0)


@wrong
class Descending(Groups):
    """The largest range comes first."""

    def order(self, ranges):
        return np.argsort(-ranges, kind="stable")


@wrong
class TiesReversed(Groups):
    """Dimensions of equal range are in reversed order."""

    def order(self, ranges):
        return len(ranges) - 1 - np.argsort(ranges[::-1], kind="stable")


@wrong
class NanFirst(Groups):
    """A NaN sorts below every number."""

    def order(self, ranges):
        return np.argsort(np.where(np.isnan(ranges), f32(-1), ranges), kind="stable")


@wrong
class NotPermuted(Groups):
    """Groups have neighbouring dimensions."""

    def order(self, ranges):
        return np.arange(len(ranges))


@wrong
class Inverted(Groups):
    """The permutation is the inverse one."""

    def order(self, ranges):
        return np.argsort(np.argsort(ranges, kind="stable"), kind="stable")


@wrong
class SortedByTheFirstToken(Groups):
    """Dimensions are sorted by the magnitudes of the first token."""

    def ranges(self, x):
        return np.abs(x[0])


@wrong
class SortInBlocksOf1024(Groups):
    """A block of threads sorts 1,024 dimensions; the others stay behind them."""

    def order(self, ranges):
        first = np.argsort(ranges[:1024], kind="stable")
        return np.concatenate([first, np.arange(1024, len(ranges))])[: len(ranges)]


@wrong
class Strided(Groups):
    """Dimension j of the order is in group j % K."""

    def order(self, ranges):
        count = self.parameters["groups"]
        return np.argsort(ranges, kind="stable").reshape(-1, count).T.reshape(-1)


@wrong
class LeftInOrder(Groups):
    """Numbers stay in the order of the groups: they are not moved back."""

    def groups(self, x):
        found = super().groups(x)
        order = found["permutation"][0]
        return {**found, **{n: found[n][:, order] for n in ("xs", "code", "y")}}
