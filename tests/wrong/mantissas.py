"""Group Amax Mantissa as somebody would write it from the paper, and wrong in a comparison."""

from dataclasses import replace

import numpy as np

from wrong.kernel import Kernel
from wrong.porting import by_format, two_to
from wrong.scaling import port

F32 = np.float32
_FLT_MAX = np.finfo(F32).max


def _split(scale):
    """Return mantissa field and exponent of a binary32 scale."""
    bits = scale.view(np.uint32)
    return bits & np.uint32(0x7FFFFF), (bits >> 23).astype(np.int32) - 127


def _one_for_zero(amax):
    return np.where(amax > 0, amax, F32(1))


def _double(largest, amax):
    """Return mantissa and exponent of the quotient in binary64; rounding it again is harmless."""
    low, power = np.frexp(largest.astype(np.float64) / _one_for_zero(amax))
    bits = (low * 2).astype(F32).view(np.uint32)
    return bits & np.uint32(0x7FFFFF), power - 1 + (bits >> 30).astype(np.int32)


def _rebuilt(mantissa, e, block_amax, group_amax):
    mantissa = np.where(group_amax > 0, mantissa, np.uint32(0))
    e = np.where(block_amax > 0, np.minimum(e, 127), 0)
    return mantissa, e + 127, np.ldexp((mantissa | np.uint32(0x3F800000)).view(F32), e)


def through_binary64(scaling, largest, group_amax, block_amax):
    if scaling != "gam":
        return None
    shared, _ = _double(largest, group_amax)
    own, e = _double(largest, block_amax)
    return _rebuilt(shared, e - (shared > own), block_amax, group_amax)


def equal_too(scaling, largest, group_amax, block_amax):
    if scaling != "gam":
        return None
    shared, _ = _double(largest, group_amax)
    own, e = _double(largest, block_amax)
    return _rebuilt(shared, e - (shared >= own), block_amax, group_amax)


def capped_before(scaling, largest, group_amax, block_amax):
    if scaling != "gam":
        return None
    shared, _ = _double(largest, group_amax)
    own, e = _double(largest, block_amax)
    return _rebuilt(shared, np.minimum(e, 127) - (shared > own), block_amax, group_amax)


def in_binary32(scaling, largest, group_amax, block_amax):
    """Divide once in binary32, so that the scale of a tiny amax is FLT_MAX."""
    if scaling != "gam":
        return None
    group, block = (
        np.minimum(largest / _one_for_zero(amax), _FLT_MAX) for amax in (group_amax, block_amax)
    )
    shared, _ = _split(group)
    own, e = _split(block)
    return _rebuilt(shared, e - (shared > own), block_amax, group_amax)


def by_trial(scaling, largest, group_amax, block_amax):
    """Subtract one from e if the largest element would overflow with the rebuilt scale."""
    if scaling != "gam":
        return None
    shared, _ = _double(largest, group_amax)
    _, e = _double(largest, block_amax)
    significand = (shared | np.uint32(0x3F800000)).view(F32)
    low, power = np.frexp(block_amax)
    top, highest = np.frexp(largest)
    product = np.ldexp(low * significand, power + e)
    return _rebuilt(shared, e - (product > np.ldexp(top, highest)), block_amax, group_amax)


def by_ratio(scaling, largest, group_amax, block_amax):
    """Compare the quotient of the two significands with 1."""
    if scaling != "gam":
        return None
    shared, _ = _double(largest, group_amax)
    own, e = _double(largest, block_amax)
    ratio = (shared + np.uint32(1 << 23)).astype(F32) * (
        F32(1) / (own + np.uint32(1 << 23)).astype(F32)
    )
    return _rebuilt(shared, e - (ratio > 1), block_amax, group_amax)


def signed_difference(scaling, largest, group_amax, block_amax):
    """Compare decode scales: amax / largest, whose mantissas are ordered the other way round."""
    if scaling != "gam":
        return None
    shared, _ = _double(largest, group_amax)
    _, e = _double(largest, block_amax)
    group, _ = np.frexp(group_amax)
    block, _ = np.frexp(block_amax)
    return _rebuilt(shared, e - (group < block), block_amax, group_amax)


def log2f_exponents(scaling, largest, group_amax, block_amax):
    if scaling != "gam":
        return None
    shared, _ = _double(largest, group_amax)
    own, _ = _double(largest, block_amax)
    quotient = largest.astype(np.float64) / _one_for_zero(block_amax)
    e = np.floor(np.log2(quotient).astype(F32)).astype(np.int32)
    return _rebuilt(shared, e - (shared > own), block_amax, group_amax)


def truncated(scaling, largest, group_amax, block_amax):
    """Cut the mantissa out of the quotient's binary64 bits."""
    if scaling != "gam":
        return None
    bits = (largest.astype(np.float64) / _one_for_zero(group_amax)).view(np.uint64)
    shared = (bits >> np.uint64(29) & np.uint64(0x7FFFFF)).astype(np.uint32)
    own, e = _double(largest, block_amax)
    return _rebuilt(shared, e - (shared > own), block_amax, group_amax)


def smaller_of_two(scaling, largest, group_amax, block_amax):
    """Take the block's own ideal scale if the rebuilt scale is above it."""
    if scaling != "gam":
        return None
    shared, _ = _double(largest, group_amax)
    own, e = _double(largest, block_amax)
    return _rebuilt(np.minimum(shared, own), e, block_amax, group_amax)


def exponent_of_the_group(scaling, largest, group_amax, block_amax):
    """Give a block of zeros the exponent of its group."""
    if scaling != "gam":
        return None
    block_amax = np.where(block_amax > 0, block_amax, group_amax)
    shared, _ = _double(largest, group_amax)
    own, e = _double(largest, block_amax)
    return _rebuilt(shared, e - (shared > own), block_amax, group_amax)


def zeros_without_mantissa(scaling, largest, group_amax, block_amax):
    """Give a block of zeros the scale 1."""
    if scaling != "gam":
        return None
    mantissa, exponent, scale = through_binary64(scaling, largest, group_amax, block_amax)
    return mantissa, exponent, np.where(block_amax > 0, scale, F32(1))


def e_of_the_rounded(scaling, largest, group_amax, block_amax):
    """Round the exponent up from a decode scale in binary32."""
    if scaling != "gam":
        return None
    shared, _ = _double(largest, group_amax)
    own, _ = _double(largest, block_amax)
    decode, power = np.frexp(block_amax / largest)
    e = np.where(decode == F32(0.5), 1, 0) - power
    return _rebuilt(shared, e - (shared > own), block_amax, group_amax)


def floor_log_base_e_of_gam(scaling, largest, group_amax, block_amax):
    """Take the exponent from a natural logarithm in binary64."""
    if scaling != "gam":
        return None
    shared, _ = _double(largest, group_amax)
    own, _ = _double(largest, block_amax)
    quotient = largest.astype(np.float64) / _one_for_zero(block_amax)
    e = np.floor(np.log(quotient) / np.log(2.0)).astype(np.int32)
    return _rebuilt(shared, e - (shared > own), block_amax, group_amax)


def mantissa_of_the_epsilon(scaling, largest, group_amax, block_amax):
    """Clamp the amax of a group to 2^-126, as a guard against a division by zero."""
    if scaling != "gam":
        return None
    shared, _ = _double(largest, np.maximum(group_amax, two_to(-126)))
    own, e = _double(largest, block_amax)
    return _rebuilt(shared, e - (shared > own), block_amax, np.ones_like(group_amax))


KERNELS = [
    Kernel("gam_through_binary64", port(through_binary64)),
    *by_format(Kernel("equal_too", port(equal_too), "equal mantissas decrement"), ("e4m3", "e2m1")),
    *by_format(
        Kernel("capped_before", port(capped_before), "e is capped before the decrement"),
        ("e4m3", "e3m2"),
    ),
    Kernel("gam_in_binary32", port(in_binary32), "a tiny amax has the mantissa of FLT_MAX"),
    *(
        # The groups of the large suite show this mistake as well.
        replace(one, unseen={}) if one.name == "by_trial_e5m2" else one
        for one in by_format(
            Kernel(
                "by_trial",
                port(by_trial),
                "decrements where RN32(amax * scale) is above largest",
            )
        )
    ),
    *by_format(
        Kernel("by_ratio", port(by_ratio), "mantissas are compared by a rounded quotient"),
        ("e4m3", "e2m1", "e3m2"),
    ),
    Kernel("by_amaxes", port(signed_difference), "significands of amax are compared, not scales"),
    *by_format(
        Kernel(
            "gam_log2f",
            port(log2f_exponents),
            "the exponent is floor(log2f(largest / amax))",
        ),
        ("e4m3", "e2m1"),
    ),
    Kernel("gam_truncated", port(truncated), "the shared mantissa is cut, not rounded"),
    Kernel("smaller_of_two", port(smaller_of_two), "a block keeps its own mantissa if smaller"),
    Kernel(
        "zeros_of_the_group",
        port(exponent_of_the_group),
        "zeros have their group's exponent",
    ),
    Kernel("zeros_have_one", port(zeros_without_mantissa), "a block of zeros has the scale 1"),
    *by_format(
        Kernel(
            "e_of_the_rounded",
            port(e_of_the_rounded),
            "e is computed from RN32(amax / largest)",
        ),
        ("e4m3",),
    ),
    *by_format(
        Kernel(
            "gam_log_base_e",
            port(floor_log_base_e_of_gam),
            "log(q) / log(2) is below k where q is 2^k",
        ),
        ("e4m3",),
    ),
    Kernel("epsilon", port(mantissa_of_the_epsilon), "an amax below 2^-126 counts as 2^-126"),
]
