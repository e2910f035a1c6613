"""The shared part of a code base of MX and MoR in NumPy: bit views, casts, blocks, and a register.

All of it is right. It takes its formats from ml_dtypes, and its rules from the specification.
"""

from collections.abc import Collection, Mapping

import ml_dtypes
import numpy as np

from wrong.kernel import Kernel

LARGEST = {
    "e4m3": 448.0,
    "e5m2": 57344.0,
    "e2m3": 7.5,
    "e3m2": 28.0,
    "e2m1": 6.0,
    "int8_mx": 127 / 64,
}
LAST = {"e4m3": 8, "e5m2": 15, "e2m3": 2, "e3m2": 4, "e2m1": 2, "int8_mx": 0}
"""The exponent of the largest number of each format of elements."""
FRACTION = {"e4m3": 3, "e5m2": 2, "e2m3": 3, "e3m2": 2, "e2m1": 1, "int8_mx": 6}
"""The bits behind the leading one."""
NOT_A_NUMBER = {"e4m3": 0x7F, "e5m2": 0x7F, "e2m3": 0x1F, "e3m2": 0x1F, "e2m1": 7, "int8_mx": 0}
"""The code of a NaN."""
FLT_MAX = np.float32(np.finfo(np.float32).max)

_TYPES = {
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
}
_TABLES = {
    name: np.arange(256, dtype=np.uint8).view(kind).astype(np.float32)
    for name, kind in _TYPES.items()
    if name in ("e4m3", "e5m2")
}


def f32(*values):
    """Return one or more binary32 numbers."""
    return np.float32(values[0]) if len(values) == 1 else np.array(values, np.float32)


def widened(x, source):
    """Return the binary32 numbers of a tensor of bit patterns."""
    if source == "bf16":
        return (x.astype(np.uint32) << 16).view(np.float32)
    return x.view(np.float16).astype(np.float32) if source == "f16" else x.view(np.float32)


def flushed(x):
    """Replace subnormal numbers by zeros with their sign."""
    return np.where(np.abs(x) < f32(2.0**-126), np.copysign(f32(0), x), x)


def bits(x):
    """Return the bit patterns of binary32 numbers, with one NaN."""
    return np.where(np.isnan(x), np.uint32(0x7FFFFFFF), np.ascontiguousarray(x).view(np.uint32))


def magnitude_bits(x):
    """Return the bit patterns of |x|, which are ordered as the numbers are, with NaN above all."""
    return np.ascontiguousarray(x).view(np.uint32) & np.uint32(0x7FFFFFFF)


def power(exponent):
    """Return 2^exponent in binary32, from -149 to 127."""
    return np.ldexp(1.0, exponent).astype(np.float32)


def encoded(x, fmt):
    """Return the codes of binary32 numbers with rne, satfinite and canonical."""
    largest = LARGEST[fmt]
    with np.errstate(all="ignore"):
        if fmt == "int8_mx":
            steps = np.nan_to_num(np.clip(np.rint(x * f32(64)), -127, 127), nan=0)
            return steps.astype(np.int8).view(np.uint8)
        near = np.clip(np.where(np.isnan(x), f32(0), x), -largest, largest)
        codes = near.astype(_TYPES[fmt]).view(np.uint8)
    return np.where(np.isnan(x), np.uint8(NOT_A_NUMBER[fmt]), codes)


def decoded(codes, fmt):
    """Return the numbers of codes."""
    if fmt == "int8_mx":
        return codes.view(np.int8).astype(np.float32) / f32(64)
    if fmt in _TABLES:
        return _TABLES[fmt][codes]
    return codes.view(_TYPES[fmt]).astype(np.float32)


def in_blocks(x, k):
    """Return rows of blocks of k numbers, the last one of a row filled with zeros."""
    rows, columns = x.shape
    padded = np.zeros((rows, -(-columns // k) * k), x.dtype)
    padded[:, :columns] = x
    return padded.reshape(rows, -(-columns // k), k)


def spread(of_blocks, k, columns):
    """Repeat the values of blocks for each of their numbers."""
    return np.repeat(of_blocks, k, axis=1)[:, :columns]


def to_bf16(x):
    """Return the codes of binary32 numbers in bf16 with rne, ieee and canonical."""
    pattern = np.ascontiguousarray(x).view(np.uint32)
    near = (pattern + np.uint32(0x7FFF) + (pattern >> 16 & np.uint32(1))) >> 16
    return np.where(np.isnan(x), np.uint32(0x7FFF), near).astype(np.uint16)


class Register(list):
    """The kernels of a module."""

    def mx(
        self,
        name,
        mistake="",
        rules: Collection[str] = ("floor", "ceil", "even", "rceil"),
        formats: Collection[str] = tuple(LARGEST),
        sources: Collection[str] = ("bf16", "f16", "f32"),
        operations: Collection[str] = ("mx", "mx_block"),
        unseen: Mapping[str, str] | None = None,
    ):
        """Take a function of (x, format, rule, k) that returns scale, xs, code and y."""

        def take(quantize):
            def run(operation, parameters, inputs):
                if (
                    operation not in operations
                    or parameters["scale_rule"] not in rules
                    or parameters["format"] not in formats
                    or parameters["source"] not in sources
                ):
                    return None
                x = widened(inputs["x"], parameters["source"])
                k = parameters.get("block", x.shape[1])
                with np.errstate(all="ignore"):
                    scale, xs, code, y = quantize(
                        x, parameters["format"], parameters["scale_rule"], k
                    )
                scale = scale.astype(np.uint8)
                return {
                    "scale": scale[:, 0] if operation == "mx_block" else scale,
                    "xs": bits(xs),
                    "code": code.astype(np.uint8),
                    "y": bits(y),
                }

            self.append(Kernel(f"mx.{name}", run, mistake, unseen or {}))
            return quantize

        return take

    def launch(self, name, mistake, unseen: Mapping[str, str] | None = None):
        """Take a kernel of whole tensors."""
        return self.mx(name, mistake, operations=("mx",), unseen=unseen)

    def mor(
        self,
        name,
        mistake="",
        policies: Collection[str] = ("tensor", "two_way", "three_way", "nvfp4"),
        unseen: Mapping[str, str] | None = None,
    ):
        """Take a function of (bit patterns, parameters) that returns fields."""

        def take(function):
            def run(operation, parameters, inputs):
                if operation != "mor" or parameters["policy"] not in policies:
                    return None
                with np.errstate(all="ignore"):
                    return function(inputs["x"], parameters)

            self.append(Kernel(f"mor.{name}", run, mistake, unseen or {}))
            return function

        return take

    def decide(self, name, mistake="", metric=None):
        """Take a function of (inputs, format) that returns a condition."""

        def take(function):
            def run(operation, parameters, inputs):
                if operation != "decide" or metric not in (None, parameters["metric"]):
                    return None
                with np.errstate(all="ignore"):
                    accepted = function(inputs, parameters)
                return {"accepted": np.asarray(accepted).astype(np.uint8)}

            self.append(Kernel(f"decide.{name}", run, mistake))
            return function

        return take
