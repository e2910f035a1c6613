"""Integers with a mistake in codes: roundings, limits, conversions and NaN."""

from typing import ClassVar

import numpy as np

from wrong.affine_elements import SATURATING, WITH_ZEROS
from wrong.affine_right import EARLY, OF_127, Integers, Register, to_int32, within
from wrong.microscaling import f32

KERNELS = Register()
wrong = KERNELS.wrong


# ---------------------------------------------------------------------- codes


class Rounded(Integers):
    """A program that rounds in another way."""

    def whole(self, xs):
        """Return integers next to xs."""
        return np.rint(xs)

    def codes(self, xs, zero):
        return super().codes(self.whole(xs), zero)


@wrong
class TiesAway(Rounded):
    """roundf takes ties away from zero."""

    def whole(self, xs):
        size = np.abs(xs)
        up = np.where(size < f32(2.0**23), np.floor(size.astype(np.float64) + 0.5), size)
        return np.copysign(up, xs).astype(np.float32)


@wrong
class HalfAdded(Rounded):
    """floorf(xs + 0.5) rounds up in ties, and twice just below them."""

    def whole(self, xs):
        return np.floor(xs + f32(0.5))


@wrong
class Truncated(Rounded):
    """A cast cuts the digits behind the point."""

    def whole(self, xs):
        return np.trunc(xs)


@wrong
class ClampedBeforeRounding(Integers):
    """xs is limited to the grid without the zero point, then rounded, then moved."""

    profiles = SATURATING

    def codes(self, xs, zero):
        return super().codes(within(xs, self.low, self.high), zero)


@wrong
class DifferenceOfTheGrid(Integers):
    """The difference of a code and the zero point is an integer of the grid, and wraps."""

    profiles = WITH_ZEROS

    def back(self, code, scale, zero):
        difference = (code - zero - self.low) % (self.high - self.low + 1) + self.low
        return super().back(difference + zero, scale, zero)


@wrong
class WithoutTheLowest(Integers):
    """The range is -127 to 127: the lowest code of a signed grid is never used."""

    profiles = WITH_ZEROS

    def codes(self, xs, zero):
        return np.maximum(super().codes(xs, zero), self.low + (self.low < 0))


@wrong
class Wraps(Integers):
    """A cast to the dtype of codes in place of saturation: codes outside of the grid wrap."""

    profiles = WITH_ZEROS

    def codes(self, xs, zero):
        whole = np.rint(xs) + (0 if self.profile in EARLY else zero)
        fits = np.abs(whole) < 2.0**31
        span = self.high - self.low + 1
        return (np.where(fits, whole, 0).astype(np.int64) - self.low) % span + self.low


@wrong
class NotLimited(Integers):
    """Codes outside of the grid stay, in 32 bits: amax has the code 128 in int8."""

    profiles = SATURATING

    def codes(self, xs, zero):
        kept = self.low, self.high
        self.low, self.high = -(2**31), 2**31 - 1
        found = super().codes(xs, zero)
        self.low, self.high = kept
        return np.where(np.isnan(xs), super().codes(xs, zero), np.clip(found, -(2**31), 2**31 - 1))


@wrong
class SaturatesAt127(Integers):
    """The profiles of 127 saturate, and do not wrap."""

    profiles = OF_127

    def codes(self, xs, zero):
        found = within(np.rint(xs), -128, 127)
        return np.where(np.isnan(found), 0, found).astype(np.int64)


@wrong
class GridOfEightBits(Integers):
    """All grids are limited as int8 or uint8 are."""

    profiles = WITH_ZEROS

    def codes(self, xs, zero):
        kept = self.low, self.high
        self.low, self.high = (-128, 127) if self.low < 0 else (0, 255)
        found = super().codes(xs, zero)
        self.low, self.high = kept
        return found


@wrong
class NanIsTheLowest(Integers):
    """NaN has the lowest code, as fmaxf(NaN, low) is low."""

    profiles = ("torch_quantize", "torch_quantize_channel", "torchao_0_18", "peg")

    def of_nan(self):
        return self.low


@wrong
class NanIsTheHighest(Integers):
    """NaN has the highest code: the comparison with it is false."""

    profiles = SATURATING[:1] + SATURATING[2:]

    def of_nan(self):
        return self.high


@wrong
class NanIsZero(Integers):
    """NaN has the code 0, as in __float2int_rn."""

    profiles = ("torch_fake_tensor", "torch_quantize", "onnxruntime")

    def of_nan(self):
        return 0


@wrong
class NanIsTheZeroPoint(Integers):
    """NaN becomes 0 before it is quantized, as in nan_to_num."""

    unseen: ClassVar = dict.fromkeys(
        ("affine", "affine_groups", "affine_large"),
        "The scale of a block with a NaN is NaN, and so is xs.",
    )

    def scaled(self, x, scale, inverse, zero):
        return super().scaled(np.where(np.isnan(x), f32(0), x), scale, inverse, zero)


@wrong
class SaturatesInInt64(Integers):
    """Numbers beyond 64 bits have the highest code, as on Arm."""

    unseen: ClassVar = dict.fromkeys(
        ("affine", "affine_large"), "No number is so many scales of its block."
    )
    profiles = ("torch_fake_channel_2_13",)

    def codes(self, xs, zero):
        return super().codes(np.minimum(xs, f32(2.0**62)), zero)


@wrong
class SaturatesInInt32(Integers):
    """Numbers beyond 32 bits saturate, as on Arm and on a GPU."""

    profiles = ("onnx",)

    def codes(self, xs, zero):
        held = np.clip(np.nan_to_num(np.rint(xs), nan=0.0).astype(np.float64), -(2**31), 2**31 - 1)
        wrapped = (held.astype(np.int64) + zero).astype(np.int32).astype(np.int64)
        return np.clip(wrapped, self.low, self.high)


@wrong
class ThroughInt32(Integers):
    """Numbers become int before they are limited: those that do not fit become -2^31."""

    profiles = SATURATING

    def codes(self, xs, zero):
        whole = to_int32(np.rint(xs))
        return np.clip(whole + (0 if self.profile in EARLY else zero), self.low,
                       self.high)  # fmt: skip


@wrong
class ZeroPointInInt64(Integers):
    """The zero point is added in 64 bits: nothing wraps."""

    profiles = ("onnx",)

    def codes(self, xs, zero):
        return np.clip(to_int32(np.rint(xs)) + zero, self.low, self.high)
