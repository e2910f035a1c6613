"""Loads of four numbers, which omit the last numbers of a row or a tensor from an amax."""

import itertools

import numpy as np

from wrong.kernel import Kernel
from wrong.microscaling import LARGEST, Register, in_blocks, magnitude_bits
from wrong.mx_right import scale_codes
from wrong.mx_scales import finished
from wrong.nvfp4_launches import called, global_amax, quantized
from wrong.nvfp4_parts import ALL

KERNELS = Register()
MISTAKE = "four numbers are loaded at once, and those that are left are not"


def whole_fours(x):
    """Return rows with zeros after the last whole four, if a row has one."""
    columns = x.shape[1]
    return np.where(np.arange(columns) < (columns // 4 * 4 or columns), x, np.float32(0))


def amax_of_whole_fours(profile, x, tile):
    """Return a tensor in NVFP4 with the global amax of whole fours."""
    seen = whole_fours(x if profile == "te_row" else x.reshape(1, -1))
    return quantized(profile, x, tile, global_amax(profile, seen))


def block_amax(x, fmt, rule, k):
    """Return a tensor in MX with the amaxes of whole fours in rows."""
    amax = magnitude_bits(in_blocks(whole_fours(x), k)).max(axis=2)
    return finished(x, scale_codes(amax, fmt, rule), fmt, k)


for profile in ALL:
    run = called(amax_of_whole_fours, profile)
    KERNELS.append(Kernel(f"nvfp4.amax_of_whole_fours.{profile}", run, MISTAKE))
for fmt, rule in itertools.product(LARGEST, ("floor", "ceil", "even", "rceil")):
    name = f"amax_of_whole_fours.{fmt}.{rule}"
    KERNELS.mx(name, MISTAKE, (rule,), (fmt,), operations=("mx",))(block_amax)
