"""Integers with a mistake in blocks: extremes and scales."""

import numpy as np

from wrong.affine_elements import WITH_ZEROS
from wrong.affine_right import OF_127, TORCH, Integers, Register
from wrong.microscaling import f32

KERNELS = Register()
wrong = KERNELS.wrong
HALVING = (*TORCH, "torchao_0_18", "onnx", "onnxruntime")


class Blocks(Integers):
    """A program that computes whole tensors, with a mistake in blocks."""

    operations = ("affine", "affine_groups")


# ---------------------------------------------------------------------- extremes


@wrong
class ExtremesWithoutNan(Blocks):
    """fminf and fmaxf skip NaN."""

    def extremes(self, x, place, count):
        kept = ~np.isnan(x)
        least, most = super().extremes(x[kept], place[kept], count)
        none = np.isinf(least) & (least > 0) & (most < 0)
        return np.where(none, f32(np.nan), least), np.where(none, f32(np.nan), most)


@wrong
class ExtremesOfFiniteNumbers(Blocks):
    """Infinities are left out of the extremes."""

    def extremes(self, x, place, count):
        kept = ~np.isinf(x)
        least, most = super().extremes(x[kept], place[kept], count)
        none = np.isinf(least)
        return np.where(none, f32(0), least), np.where(none, f32(0), most)


@wrong
class ExtremesFromZero(Blocks):
    """The running minimum and maximum begin with 0, and not with the first number."""

    def extremes(self, x, place, count):
        least, most = super().extremes(x, place, count)
        return np.minimum(least, f32(0)) + f32(0), np.maximum(most, f32(0))


@wrong
class MaximumFromTheSmallestNormal(Blocks):
    """The running maximum begins with FLT_MIN, which is positive."""

    def extremes(self, x, place, count):
        least, most = super().extremes(x, place, count)
        return least, np.maximum(most, f32(2.0**-126))


@wrong
class AmaxIsTheMaximum(Blocks):
    """A symmetric range is the maximum, not the largest magnitude."""

    def width(self, below, above):
        return above if self.symmetric else super().width(below, above)


@wrong
class RangeWithoutZero(Blocks):
    """The range is from the minimum to the maximum, and 0 may lie outside."""

    def reaches(self, least, most):
        _, above = super().reaches(least, most)
        return (super().reaches(least, most)[0] if self.symmetric else -least), (
            above if self.symmetric or self.profile == "peg" else most
        )


@wrong
class PegFromZero(Blocks):
    """The maximum of PEG is at least 0, not 1e-8."""

    profiles = ("peg",)

    def reaches(self, least, most):
        below, _ = super().reaches(least, most)
        return below, np.maximum(f32(0), most)


@wrong
class RangeInTwoHalves(Blocks):
    """The range is halved before the sum, so that it does not overflow."""

    profiles = WITH_ZEROS

    def width(self, below, above):
        if self.symmetric:
            return super().width(below, above)
        wide = (above.astype(np.float64) + below).astype(np.float64)
        return self.rn(np.minimum(wide, 3.4028234663852886e38))


# ---------------------------------------------------------------------- scales


@wrong
class ScaleByTheHighest(Blocks):
    """A symmetric scale is amax / 127, as in papers, and not amax / 127.5."""

    profiles = HALVING

    def steps(self):
        return f32((self.high - self.low) // 2) if self.symmetric else super().steps()


@wrong
class PegByHalfTheRange(Blocks):
    """A symmetric scale of PEG is amax / 127.5, as in torch."""

    profiles = ("peg",)

    def steps(self):
        return f32((self.high - self.low) / 2) if self.symmetric else super().steps()


@wrong
class StepsAreCodes(Blocks):
    """The range is divided by the number of codes, 256, and not of steps."""

    profiles = WITH_ZEROS

    def steps(self):
        return super().steps() if self.symmetric else f32(self.high - self.low + 1)


@wrong
class ScaleByAReciprocal(Blocks):
    """The range is multiplied by the reciprocal of the steps."""

    profiles = WITH_ZEROS

    def scale_of(self, width):
        found = super().scale_of(width)
        return np.where(width == 0, found, self.rn(width * self.rn(f32(1) / self.steps())))


@wrong
class ScaleInBinary64(Blocks):
    """The range is summed in binary64: only the scale is rounded."""

    profiles = WITH_ZEROS

    def width(self, below, above):
        if self.symmetric:
            return super().width(below, above)
        return above.astype(np.float64) + below

    def scale_of(self, width):
        return super().scale_of(width).astype(np.float32)


@wrong
class NoSmallestScale(Blocks):
    """A scale has no smallest value."""

    profiles = (*TORCH, "torchao_0_18", "peg")

    def limited(self, scale):
        return scale


@wrong
class EpsilonAdded(Blocks):
    """The smallest scale is added to the scale, and is not a limit."""

    profiles = (*TORCH, "peg")

    def limited(self, scale):
        return scale + self.least()


@wrong
class SmallestScaleOfTorch(Blocks):
    """The smallest scale of torchao is the epsilon of binary32, as in torch's observers."""

    profiles = ("torchao_0_18",)

    def least(self):
        return f32(2.0**-23)


@wrong
class SmallestScaleOfBinary32(Blocks):
    """The smallest scale of torchao for binary32 is used for binary16, too."""

    profiles = ("torchao_0_18",)
    operations = ("affine",)

    def least(self):
        return f32(2.0**-126)


@wrong
class NanScaleIsTheSmallest(Blocks):
    """fmaxf(scale, least) replaces a NaN."""

    profiles = (*TORCH, "torchao_0_18", "peg")

    def limited(self, scale):
        return np.fmax(scale, self.least())


@wrong
class ZerosHaveTheScaleOne(Blocks):
    """A block of zeros has the scale 1."""

    profiles = (*TORCH, "torchao_0_18", "onnx")

    def limited(self, scale):
        lonely = self.rn(f32(1) / self.steps()) if self.profile == "onnx" else f32(0)
        return np.where(scale == lonely, f32(1), super().limited(scale))


@wrong
class ZerosHaveAStep(Blocks):
    """A block of zeros has the scale 1 / 255 in ONNX Runtime, as in the reference."""

    profiles = ("onnxruntime",)

    def scale_of(self, width):
        return np.where(width == 0, f32(1) / self.steps(), super().scale_of(width))


@wrong
class ScaleOfHalfSteps(Blocks):
    """The profiles of 127 store amax / 127."""

    profiles = OF_127

    def scale_of(self, width):
        return width / f32(127)


@wrong
class BlocksWithoutCut(Blocks):
    """All blocks have the scale of the tensor."""

    def extremes(self, x, place, count):
        least, most = super().extremes(x, np.zeros_like(place), 1)
        return np.repeat(least, count), np.repeat(most, count)


# ---------------------------------------------------------------------- orders of dimensions


class Groups(Integers):
    """A program that computes groups of dimensions, with a mistake in their order."""

    operations = ("affine_groups",)


@wrong
class RangesOf16Rows(Groups):
    """A range is that of the first 16 rows."""

    def ranges(self, x):
        return super().ranges(x[:16])
