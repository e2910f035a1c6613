"""Integers with scales that are stored in few bits, are powers of two, or have another limit."""

import numpy as np

from wrong.affine_blocks import Blocks
from wrong.affine_precisions import narrow
from wrong.affine_right import Register
from wrong.microscaling import f32

KERNELS = Register()
wrong = KERNELS.wrong


@wrong
class ScaleInBinary16(Blocks):
    """A scale is stored in binary16, in which a large one is infinite."""

    def limited(self, scale):
        return narrow(super().limited(scale), np.float16)


class PowerOfTwo(Blocks):
    """A program whose scales are powers of two."""

    def power(self, scale):
        """Return the exponents of scales."""
        raise NotImplementedError

    def limited(self, scale):
        scale = super().limited(scale)
        is_number = np.isfinite(scale) & (scale > 0)
        powers = np.exp2(self.power(np.where(is_number, scale, 1).astype(np.float64)))
        return np.where(is_number, powers.astype(np.float32), scale)


@wrong
class ScaleUpToAPowerOfTwo(PowerOfTwo):
    """A scale is 2^ceil(log2(scale))."""

    def power(self, scale):
        share, exponent = np.frexp(scale)
        return exponent - (share == 1 / 2)


@wrong
class ScaleToTheNearestPowerOfTwo(PowerOfTwo):
    """A scale is 2^rint(log2(scale))."""

    def power(self, scale):
        return np.rint(np.log2(scale))


class AtLeast(Blocks):
    """A program with another smallest scale in all profiles."""

    limit = 1e-5

    def least(self):
        return f32(self.limit)


@wrong
class ScaleAtLeast1e5(AtLeast):
    """The smallest scale is 1e-5."""


@wrong
class ScaleAtLeastEps(AtLeast):
    """The smallest scale is np.finfo(np.float32).eps."""

    profiles = ("torchao_0_18", "onnx", "onnxruntime", "peg", "bnb_int8_row", "switchback_row",
                "switchback_tensor")  # fmt: skip
    limit = np.finfo(np.float32).eps


@wrong
class RangeAtLeast1e5(Blocks):
    """The range or the amax of a block is at least 1e-5, as in clamp(min=1e-5)."""

    def width(self, below, above):
        return np.maximum(super().width(below, above), f32(1e-5))
