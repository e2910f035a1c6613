"""Integers with a mistake in zero points that are not integers."""

import numpy as np

from wrong.affine_right import Integers, Register, fused, kernel_of

KERNELS = Register()
wrong = KERNELS.wrong


class FloatZeros(Integers):
    """Zero points are numbers of binary32."""

    operations = ("affine_float_zero",)

    def element(self, inputs):
        scale, zero = (inputs[name].view(np.float32) for name in ("scale", "zero_point"))
        inverse = self.inverse(scale)
        return {
            "inverse_scale": inverse,
            **self.numbers(inputs["x"].view(np.float32), scale, inverse, zero),
        }

    def scaled(self, x, scale, inverse, zero):
        return fused(x, inverse, zero)

    def codes(self, xs, zero):
        return super().codes(xs, np.float32(0))

    def back(self, code, scale, zero):
        return ((code - zero.astype(np.float64)) * scale).astype(np.float32)


KERNELS.append(kernel_of(FloatZeros, "float_zeros"))


@wrong
class FloatZeroRounded(FloatZeros):
    """A zero point becomes an integer first, as in a tensor of int32."""

    def numbers(self, x, scale, inverse, zero):
        return super().numbers(x, scale, inverse, np.rint(zero))


@wrong
class FloatZeroAddedLater(FloatZeros):
    """The product is rounded before the zero point is added."""

    def scaled(self, x, scale, inverse, zero):
        return x * inverse + zero


@wrong
class FloatZeroAfterRounding(FloatZeros):
    """Numbers are rounded before the zero point is added, and once more after it."""

    def codes(self, xs, zero):
        return super().codes(np.rint(xs - zero) + zero, zero)


@wrong
class FloatZeroOfTheQuotient(FloatZeros):
    """Numbers are divided by the scale, not multiplied by the reciprocal."""

    def scaled(self, x, scale, inverse, zero):
        return fused(x / scale, np.ones_like(x), zero)


@wrong
class FloatZeroBackInBinary32(FloatZeros):
    """The way back is in binary32."""

    def back(self, code, scale, zero):
        return (code.astype(np.float32) - zero) * scale


@wrong
class FloatZeroBackInTwoProducts(FloatZeros):
    """The way back is code * scale - zero_point * scale, in binary64."""

    def back(self, code, scale, zero):
        wide = scale.astype(np.float64)
        return (code.astype(np.float32) * scale - zero * wide).astype(np.float32)


@wrong
class FloatZeroSaturates(FloatZeros):
    """A number beyond 64 bits has the highest code, as in fake quantization of a tensor."""

    def codes(self, xs, zero):
        return Integers.codes(self, np.minimum(xs, np.float32(2.0**40)), np.float32(0))


@wrong
class FloatZeroNanIsZero(FloatZeros):
    """NaN has the code 0."""

    def of_nan(self):
        return 0
