"""Integers with a step in another precision: narrower, wider, or without subnormal numbers."""

from typing import ClassVar

import ml_dtypes
import numpy as np

from wrong.affine_blocks import Blocks
from wrong.affine_codes import Rounded
from wrong.affine_elements import WITH_ZEROS
from wrong.affine_right import OF_127, Integers, Register
from wrong.affine_zeros import Zeros
from wrong.microscaling import f32

KERNELS = Register()
wrong = KERNELS.wrong


def narrow(x, dtype):
    """Round to a narrow dtype, and return binary32."""
    return np.asarray(x, np.float32).astype(dtype).astype(np.float32)


def flushed(x):
    """Return numbers without subnormal ones."""
    return np.where(np.abs(x) < f32(2.0**-126), np.copysign(f32(0), x), x)


# ---------------------------------------------------------------------- narrower


@wrong
class XsInBfloat16(Integers):
    """A number is scaled in bfloat16."""

    def scaled(self, x, scale, inverse, zero):
        return narrow(super().scaled(x, scale, inverse, zero), ml_dtypes.bfloat16)


@wrong
class XsInBinary16(Integers):
    """A number is scaled in binary16, in which a large one is infinite."""

    def scaled(self, x, scale, inverse, zero):
        return narrow(super().scaled(x, scale, inverse, zero), np.float16)


@wrong
class ScaleInBfloat16(Blocks):
    """A scale is stored in bfloat16."""

    def limited(self, scale):
        return narrow(super().limited(scale), ml_dtypes.bfloat16)


@wrong
class ZeroFloatInBfloat16(Blocks):
    """The steps to zero are computed in bfloat16, before they are rounded."""

    profiles = WITH_ZEROS

    def zero_point(self, exact):
        return super().zero_point(narrow(exact, ml_dtypes.bfloat16))


@wrong
class ExtremesInBfloat16(Blocks):
    """Extremes are found in bfloat16, and a large one becomes its largest number."""

    def extremes(self, x, place, count):
        ends = super().extremes(x, place, count)
        top = f32(float.fromhex("0x1.fep127"))
        return [np.where(np.isfinite(end), np.clip(narrow(end, ml_dtypes.bfloat16), -top, top), end)
                for end in ends]  # fmt: skip


# ---------------------------------------------------------------------- wider


@wrong
class FactorOf127InBinary64(Integers):
    """The profiles of 127 scale a number in binary64, and round it once."""

    profiles = OF_127

    def scaled(self, x, scale, inverse, zero):
        return (f32(127).astype(np.float64) * x / scale).astype(np.float32)


@wrong
class BackInBinary64(Integers):
    """Y of the profiles of 127 is computed in binary64."""

    profiles = OF_127

    def back(self, code, scale, zero):
        return (scale.astype(np.float64) * code / 127).astype(np.float32)


@wrong
class ZeroPointOfTheExactScale(Blocks):
    """The zero point is computed in binary64, from a scale that is not rounded."""

    profiles = tuple(name for name in WITH_ZEROS if name != "torchao_0_18")

    def zero_float(self, below, delta, scale):
        if self.symmetric:
            return super().zero_float(below, delta, scale)
        wide = self.wide / self.steps()
        near = (below / np.where(wide.astype(np.float32) == delta, wide, scale)).astype(np.float32)
        return np.where(scale == delta, near, super().zero_float(below, delta, scale))

    def width(self, below, above):
        self.wide = above.astype(np.float64) + below
        return super().width(below, above)


# ---------------------------------------------------------------------- subnormal numbers


@wrong
class InputsFlushed(Blocks):
    """Subnormal numbers are read as zeros."""

    def tensor(self, x):
        return super().tensor(flushed(x))


@wrong
class ScaleFlushed(Blocks):
    """A subnormal scale is zero before it is limited."""

    unseen: ClassVar = {"affine_groups": "No scale of its profiles is subnormal."}

    def scale_of(self, width):
        return flushed(super().scale_of(width))


@wrong
class YFlushed(Integers):
    """A subnormal y is zero."""

    unseen: ClassVar = {"affine_groups": "No scale of its profiles is subnormal."}

    def stored_y(self, y):
        return flushed(super().stored_y(y))


# ---------------------------------------------------------------------- roundings and ends


@wrong
class TiesUp(Rounded):
    """Ties go up."""

    def whole(self, xs):
        near = np.where(np.abs(xs) < f32(2.0**23), xs, 0).astype(np.float64)
        return np.where(np.abs(xs) < f32(2.0**23), np.floor(near + 0.5), xs).astype(np.float32)


@wrong
class ZeroPointHalfAdded(Zeros):
    """A zero point is floorf(exact + 0.5f)."""

    def of(self, exact):
        return self.low + np.floor(exact + f32(0.5))


@wrong
class ZeroPointTiesAway(Zeros):
    """A zero point is rounded after the sum, and its ties go away from zero."""

    def of(self, exact):
        total = self.low + exact.astype(np.float64)
        return np.copysign(np.floor(np.abs(total) + 0.5), total)


@wrong
class SignedAmax(Blocks):
    """The amax of a symmetric range is the largest number, which may be negative."""

    def tensor(self, x):
        place, grid = self.places(x.shape)
        self.most = self.extremes(x, place, grid[0] * grid[1])[1]
        return super().tensor(x)

    def width(self, below, above):
        return self.most if self.symmetric else super().width(below, above)


@wrong
class ExtremesOfBits(Blocks):
    """Extremes are found among the bits as integers with a sign: -2 is above -1."""

    def extremes(self, x, place, count):
        word = np.ascontiguousarray(x, np.float32).view(np.int32)
        least, most = (np.full(count, end, np.int32) for end in (2**31 - 1, -(2**31)))
        np.minimum.at(least, place, word)
        np.maximum.at(most, place, word)
        right = super().extremes(x, place, count)
        ends = zip(right, (least, most), strict=True)
        return [np.where(np.isnan(r), r, end.view(np.float32)) + f32(0) for r, end in ends]


@wrong
class EndsExchanged(Blocks):
    """The ends of a block of negative numbers are exchanged: magnitudes are compared."""

    def extremes(self, x, place, count):
        least, most = super().extremes(x, place, count)
        return np.where(most < 0, most, least), np.where(most < 0, least, most)
