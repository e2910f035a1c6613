"""Integers with one rounding too many, or one too few, which shows next to ties."""

import numpy as np

from wrong.affine_blocks import Blocks
from wrong.affine_elements import WITH_ZEROS
from wrong.affine_float_zeros import FloatZeros
from wrong.affine_right import Integers, Register, within
from wrong.microscaling import f32

KERNELS = Register()
wrong = KERNELS.wrong


@wrong
class ZeroPointRoundedAfterTheSum(Blocks):
    """The lowest integer is added to a zero point in the dtype of operations, before rounding."""

    profiles = WITH_ZEROS

    def zero_point(self, exact):
        if self.symmetric:
            return super().zero_point(exact)
        found = within(np.rint(self.rn(f32(self.low) + exact)), self.low, self.high)
        return np.where(np.isnan(found), self.high, found).astype(np.int64)


# ---------------------------------------------------------------------- sums of binary64


@wrong
class FusedInBinary64(Integers):
    """A fused multiply-add is a product and a sum in binary64: the sum is rounded twice."""

    profiles = ("torch_quantize",)

    def scaled(self, x, scale, inverse, zero):
        return (x.astype(np.float64) * inverse + zero).astype(np.float32)


@wrong
class FloatZeroFusedInBinary64(FloatZeros):
    """A fused multiply-add is a product and a sum in binary64: the sum is rounded twice."""

    def scaled(self, x, scale, inverse, zero):
        return (x.astype(np.float64) * inverse + zero).astype(np.float32)


# ---------------------------------------------------------------------- dtypes


class OfNarrowDtypes(Blocks):
    """A program in bfloat16 or binary16, the dtype of x."""

    profiles = ("torchao_0_18",)


@wrong
class IntegersAddedInBinary32(OfNarrowDtypes):
    """The sum of an integer and the zero point is not rounded to bfloat16 or binary16."""

    def codes(self, xs, zero):
        found = within(np.rint(xs) + self.rn(zero), self.low, self.high)
        return np.where(np.isnan(found), self.of_nan(), found).astype(np.int64)


@wrong
class ZeroPointAddedInBinary32(OfNarrowDtypes):
    """The zero point is added as it is stored, not as a number of bfloat16 or binary16."""

    def codes(self, xs, zero):
        found = within(self.rn(np.rint(xs) + f32(zero)), self.low, self.high)
        return np.where(np.isnan(found), self.of_nan(), found).astype(np.int64)


@wrong
class CodeNotRounded(OfNarrowDtypes):
    """On the way back, a code is converted to binary32."""

    def back(self, code, scale, zero):
        return self.rn(self.rn(code.astype(np.float32) - self.rn(zero)) * scale)


@wrong
class DifferenceInIntegers(OfNarrowDtypes):
    """The zero point is subtracted in integers, and the difference is rounded once."""

    def back(self, code, scale, zero):
        return self.rn(self.rn(code - zero) * scale)


@wrong
class WayBackInBinary32(OfNarrowDtypes):
    """The way back is in binary32, and only y is rounded."""

    def back(self, code, scale, zero):
        return (code - zero).astype(np.float32) * scale
