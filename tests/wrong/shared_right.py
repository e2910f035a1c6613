"""Blocks with a shared exponent in vectorized NumPy, in binary64 and without a mistake."""

from collections.abc import Collection, Mapping

import numpy as np

from wrong.kernel import Kernel
from wrong.microscaling import bits, in_blocks, widened

BITS = {"mx9": 7, "mx6": 4, "mx4": 2, "bfp16": 7, "bfp16_carry": 7}
SHIFTS = ("mx9", "mx6", "mx4")


class Register(list):
    """The kernels of a module."""

    def shared(
        self,
        name,
        mistake="",
        kinds: Collection[str] = tuple(BITS),
        profiles: Collection[str] = ("quark_torch", "quark_onnx"),
        operations: Collection[str] = ("shared", "shared_block"),
        unseen: Mapping[str, str] | None = None,
    ):
        """Take a function of (x, kind, profile) that returns the six fields."""

        def take(quantize):
            def run(operation, parameters, inputs):
                kind, profile = parameters.get("kind"), parameters.get("profile")
                if operation not in operations or kind not in kinds or profile not in profiles:
                    return None
                x = widened(inputs["x"], parameters["source"])
                with np.errstate(all="ignore"):
                    exponent, tau, sign, magnitude, code, y = quantize(x, kind, profile)
                    y = np.asarray(y, np.float32)
                return {
                    "shared_exponent": _u8(
                        exponent[:, 0] if operation == "shared_block" else exponent
                    ),
                    "tau": _u8(tau),
                    "sign": _u8(sign),
                    "magnitude": _u8(magnitude),
                    "code": _u8(code),
                    "y": bits(y),
                }

            self.append(Kernel(f"shared.{name}", run, mistake, unseen or {}))
            return quantize

        return take


def _u8(values):
    return (np.asarray(values).astype(np.int64) & 255).astype(np.uint8)


KERNELS = Register()


def fields_of(x):
    """Return the exponent fields of binary32 numbers."""
    return (np.ascontiguousarray(x).view(np.uint32) >> 23 & 255).astype(np.int64)


def whole(values):
    """Return integers, as NumPy rounds: ties to even."""
    return np.rint(values)


def exponents(x, kind, profile, rounded=whole):
    """Return the exponent of each block."""
    e = fields_of(in_blocks(x, 16))
    top = e.max(axis=2) if profile == "quark_onnx" else np.where(e == 255, 0, e).max(axis=2)
    if kind == "bfp16_carry":
        counts = rounded(units(in_blocks(x, 16), top[:, :, None], 0, 7))
        top = top + ((counts.max(axis=2) >= 128) & (top < 254))
    return top


def units(x, e, tau, m):
    """Return numbers in units of their pair, with 0 for infinite, NaN and subnormal numbers."""
    plain = np.where((fields_of(x) == 0) | ~np.isfinite(x), 0, x).astype(np.float64)
    return np.ldexp(plain, (127 - e + tau - 1 + m).astype(np.int32))


def shifts(x, top, kind):
    """Return the shift of each pair."""
    e = fields_of(in_blocks(x, 2))
    pair = np.where(e == 255, 0, e).max(axis=2)
    block = np.repeat(top, 8, axis=1)[:, : pair.shape[1]]
    return np.where((kind in SHIFTS) & (block != 255), np.minimum(block - pair, 1), 0)


def elements(x, top, tau, kind, profile, rounded=whole):
    """Return sign, magnitude, code and y."""
    m, columns = BITS[kind], x.shape[1]
    e = np.repeat(top, 16, axis=1)[:, :columns]
    t = np.repeat(tau, 2, axis=1)[:, :columns]
    most = np.full(x.shape, (1 << m) - 1)
    if kind == "bfp16_carry":
        most = most + (np.signbit(x) & (e < 254))
    magnitude = np.minimum(rounded(np.abs(units(x, e, t, m))), most).astype(np.int64)
    magnitude = np.where(np.isinf(x), (1 << m) - 1, magnitude)
    sign = np.signbit(x) & ~np.isnan(x)
    if profile == "quark_torch":
        sign = sign & (fields_of(x) != 0)
    lost = e == 255
    sign, magnitude = np.where(lost, 0, sign), np.where(lost, 0, magnitude)
    code = np.where(sign, -magnitude, magnitude) & 255
    if kind != "bfp16_carry":
        code = sign << m | magnitude
    size = np.ldexp(magnitude.astype(np.float64), (e - 127 - t + 1 - m).astype(np.int32))
    y = np.where(np.isfinite(x), np.where(sign == 1, -size, size), x)
    return sign, magnitude, code, np.where(lost, np.nan, y).astype(np.float32)


def finished(x, top, kind, profile, tau=None, rounded=whole):
    """Return all fields of a tensor whose blocks have these exponents."""
    tau = shifts(x, top, kind) if tau is None else tau
    return top, tau, *elements(x, top, tau, kind, profile, rounded)


@KERNELS.shared("numpy")
def quantized(x, kind, profile):
    """Return the exponents, the shifts, and the fields of numbers."""
    return finished(x, exponents(x, kind, profile), kind, profile)
