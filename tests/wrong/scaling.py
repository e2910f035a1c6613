"""Scales of blocks and of groups, as ports of GPU kernels compute them."""

import numpy as np

from wrong.kernel import Kernel
from wrong.porting import LARGEST, Task, dispatch, finished, floats, pattern, two_to

F32 = np.float32
_FLT_MAX = np.finfo(F32).max


def port(scales):
    """Return the entry of a kernel that computes mantissa, exponent and scale."""

    def scale(parameters, inputs):
        largest = F32(LARGEST[parameters["format"]])
        amaxes = floats(inputs["group_amax"]), floats(inputs["block_amax"])
        found = scales(parameters["scaling"], largest, *amaxes)
        if found is None:
            return None
        mantissa, exponent, scale = found
        return {
            "mantissa": mantissa.astype(np.uint32),
            "exponent": exponent.astype(np.uint8),
            "scale": pattern(scale),
        }

    def quantize(parameters, inputs):
        task = Task.of(parameters, inputs)
        amax = task.amax()
        group_amax = task.amax_of_groups(amax)
        own = scales(task.scaling, task.largest, group_amax, group_amax)
        if own is None:
            return None
        of_blocks = task.of_blocks(group_amax)
        _, exponent, scale = scales(task.scaling, task.largest, of_blocks, amax)
        return finished(task, scale, amax=amax, mantissa=own[0], exponent=exponent)

    return dispatch(scale=scale, quantize=quantize, quantize_block=quantize)


def _ideal(largest, amax):
    """Return mantissa and unbounded exponent of the quotient, for amax > 0."""
    low, power = np.frexp(amax)
    low = (low * 2).astype(F32)  # in [1, 2)
    quotient = largest / low
    bits = quotient.view(np.uint32)
    return bits & 0x7FFFFF, (bits >> 23).astype(np.int32) - 127 - (power - 1)


def right(scaling, largest, group_amax, block_amax):
    mantissa, e = _ideal(largest, np.where(block_amax > 0, block_amax, F32(1)))
    none = np.zeros_like(mantissa)
    if scaling == "fp32":
        with_top = mantissa | np.uint32(0x3F800000)
        scale = np.ldexp(with_top.view(F32), np.minimum(e, 128))
        scale = np.minimum(scale, _FLT_MAX)
        return none, none, np.where(block_amax > 0, scale, F32(1))
    if scaling == "e8m0":
        e = np.where(block_amax > 0, np.minimum(e, 127), 0)
        return none, e + 127, two_to(e)
    shared, _ = _ideal(largest, np.where(group_amax > 0, group_amax, F32(1)))
    shared = np.where(group_amax > 0, shared, np.uint32(0))
    e = np.where(block_amax > 0, np.minimum(e - (shared > mantissa), 127), 0)
    return shared, e + 127, np.ldexp((shared | np.uint32(0x3F800000)).view(F32), e)


def log2_in_binary64(scaling, largest, _, block_amax):
    if scaling != "e8m0":
        return None
    quotient = largest.astype(np.float64) / np.where(block_amax > 0, block_amax, largest)
    e = np.minimum(np.floor(np.log2(quotient)), 127).astype(np.int32)
    return np.zeros_like(e), e + 127, two_to(e)


KERNELS = [Kernel("scale_of_the_rules", port(right)), Kernel("log2_64", port(log2_in_binary64))]
