"""Integers with a mistake in numbers: how they are scaled, rounded, limited and dequantized."""

from typing import ClassVar

import numpy as np

from wrong.affine_right import DIVIDING, EARLY, OF_127, TORCH, Integers, Register, fused
from wrong.microscaling import f32

KERNELS = Register()
wrong = KERNELS.wrong
MULTIPLYING = ("torch_fake_tensor", "torch_fake_channel_2_13", "torchao_0_18")
SATURATING = (
    "torch_fake_tensor", "torch_quantize", "torchao_0_18", "onnxruntime", "peg",
    "torch_quantize_channel",
)  # fmt: skip
WITH_ZEROS = (*SATURATING, "torch_fake_channel_2_13", "onnx")
ADDING = tuple(name for name in WITH_ZEROS if name not in EARLY)


# ---------------------------------------------------------------------- scaled numbers


@wrong
class DividesByTheScale(Integers):
    """Numbers are divided by the scale, as a reader of the paper would write it."""

    profiles = MULTIPLYING

    def scaled(self, x, scale, inverse, zero):
        return self.rn(x / scale)


@wrong
class MultipliesByTheInverse(Integers):
    """Numbers are multiplied by 1 / scale, which is faster."""

    profiles = ("onnx", "onnxruntime", "peg")

    def scaled(self, x, scale, inverse, zero):
        return x * inverse


@wrong
class FastDivision(Integers):
    """The quotient of -use_fast_math: x times an approximate reciprocal, one step too small."""

    profiles = DIVIDING

    def scaled(self, x, scale, inverse, zero):
        near = x * np.nextafter(f32(1) / scale, f32(0))
        return f32(127) * near if self.profile == "switchback_row" else near


@wrong
class ScaledInBinary64(Integers):
    """xs is computed in binary64, as with Python's floats."""

    profiles = ("torch_fake_tensor", "torch_fake_channel_2_13")

    def scaled(self, x, scale, inverse, zero):
        return (x.astype(np.float64) / scale).astype(np.float32)


@wrong
class ReciprocalInBinary64(Integers):
    """The reciprocal is computed in binary64, and the product is rounded once."""

    profiles = ("torch_fake_tensor", "torch_fake_channel_2_13")

    def scaled(self, x, scale, inverse, zero):
        return (x * (1 / scale.astype(np.float64))).astype(np.float32)


@wrong
class ProductAndSum(Integers):
    """The product is rounded before the zero point is added: no fused multiply-add."""

    profiles = ("torch_quantize",)

    def scaled(self, x, scale, inverse, zero):
        return x * inverse + zero.astype(np.float32)


@wrong
class SumFused(Integers):
    """nvcc contracts the product and the sum with the zero point to a fused multiply-add."""

    profiles = ("torch_quantize_channel",)

    def scaled(self, x, scale, inverse, zero):
        return fused(x, inverse, zero)


@wrong
class FusedOfTheQuotient(Integers):
    """Numbers become x / scale + zero_point, and the quotient is rounded first."""

    profiles = EARLY

    def scaled(self, x, scale, inverse, zero):
        return x / scale + zero.astype(np.float32)


@wrong
class ZeroPointAfterRounding(Integers):
    """The profiles of torch.quantize round first, as fake quantization does."""

    profiles = EARLY

    def codes(self, xs, zero):
        return super().codes(np.rint(xs - zero.astype(np.float32)) + zero.astype(np.float32), zero)


@wrong
class ZeroPointBeforeRounding(Integers):
    """The zero point is added before rounding, in a fused multiply-add."""

    profiles = ("torch_fake_tensor",)

    def codes(self, xs, zero):
        return super().codes(np.where(np.isfinite(xs), np.rint(xs + zero) - zero, xs), zero)


@wrong
class OneProductOf127(Integers):
    """127 / amax is one quotient, as written in the source of bitsandbytes."""

    profiles = ("bnb_int8_row",)

    def inverse(self, scale):
        return f32(127) / scale


@wrong
class FactorOf127First(Integers):
    """x * 127 is divided by amax."""

    profiles = ("switchback_row",)

    def scaled(self, x, scale, inverse, zero):
        return f32(127) * x / scale


@wrong
class FactorOf127InTheInverse(Integers):
    """127 is multiplied into the reciprocal."""

    profiles = ("switchback_tensor",)

    def scaled(self, x, scale, inverse, zero):
        return x * (f32(127) * inverse)


@wrong
class RowsBySwitchbackTensor(Integers):
    """Rows are scaled by a reciprocal, as SwitchBack scales tensors."""

    profiles = ("switchback_row",)

    def scaled(self, x, scale, inverse, zero):
        return f32(127) * (x * inverse)


@wrong
class SubnormalNumbersFlushed(Integers):
    """Subnormal numbers and products are zero: the processor flushes them."""

    def scaled(self, x, scale, inverse, zero):
        tiny = f32(2.0**-126)
        found = super().scaled(np.where(np.abs(x) < tiny, f32(0), x), scale, inverse, zero)
        return np.where(np.abs(found) < tiny, f32(0), found)


@wrong
class InverseOfASubnormalScaleFlushed(Integers):
    """A reciprocal that is subnormal is zero."""

    unseen: ClassVar = {"affine_groups": "No scale of it is above 2^126."}

    def inverse(self, scale):
        found = super().inverse(scale)
        return np.where(np.abs(found) < f32(2.0**-126), f32(0), found)


# ---------------------------------------------------------------------- the way back


@wrong
class TwoProducts(Integers):
    """Y is code * scale - zero_point * scale."""

    profiles = WITH_ZEROS

    def back(self, code, scale, zero):
        return code.astype(np.float32) * scale - zero.astype(np.float32) * scale


@wrong
class FusedWayBack(Integers):
    """Y is fma(code, scale, -RN(zero_point * scale)), as a compiler contracts it."""

    profiles = WITH_ZEROS

    def back(self, code, scale, zero):
        return fused(code.astype(np.float32), scale, -(zero.astype(np.float32) * scale))


@wrong
class DividesByTheInverse(Integers):
    """Y is divided by the reciprocal that numbers are multiplied by."""

    profiles = WITH_ZEROS

    def back(self, code, scale, zero):
        return (code - zero).astype(np.float32) / self.inverse(scale)


@wrong
class DividedBy127(Integers):
    """Y is amax * code / 127."""

    profiles = OF_127

    def back(self, code, scale, zero):
        return scale * code.astype(np.float32) / f32(127)


@wrong
class AmaxBy127First(Integers):
    """Y is code times RN(amax / 127)."""

    profiles = OF_127

    def back(self, code, scale, zero):
        return code.astype(np.float32) * (scale / f32(127))


@wrong
class ConstantOfBitsandbytes(Integers):
    """1 / 127^2 is 6.200124e-05, as in int8_mm_dequant, and 127 times it stands for 1 / 127."""

    profiles = OF_127

    def back(self, code, scale, zero):
        return scale * code.astype(np.float32) * f32(127 * 6.200124e-05)


@wrong
class WayBackWithoutZeroPoint(Integers):
    """Y is code * scale."""

    profiles = WITH_ZEROS

    def back(self, code, scale, zero):
        return code.astype(np.float32) * scale


@wrong
class NegativeZerosOfY(Integers):
    """Y of a negative number is never +0: y gets the sign of x."""

    def numbers(self, x, scale, inverse, zero):
        found = super().numbers(x, scale, inverse, zero)
        y = np.where((found["y"] == 0) & (x < 0), f32(-0.0), found["y"])
        return {**found, "y": y}


# ---------------------------------------------------------------------- dtypes


@wrong
class YInBinary32(Integers):
    """Y is not rounded to the dtype of x."""

    operations = ("affine", "affine_groups")

    def stored_y(self, y):
        return y


@wrong
class TorchaoInBinary32(Integers):
    """torchao's operations are in binary32, and only y is rounded."""

    profiles = ("torchao_0_18",)
    operations = ("affine", "affine_groups")

    def rn(self, x):
        return np.asarray(x, np.float32)


@wrong
class TorchInOwnDtype(Integers):
    """torch's operations are rounded to the dtype of x, as in torchao."""

    profiles = TORCH
    operations = ("affine", "affine_groups")

    def scaled(self, x, scale, inverse, zero):
        if self.profile == "torch_quantize":
            return self.stored_y(fused(x, inverse, zero))
        if self.profile == "torch_quantize_channel":
            return self.stored_y(x * inverse + zero.astype(np.float32))
        return self.stored_y(x * inverse)
