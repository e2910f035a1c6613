"""Loads of four numbers that leave the last numbers of a row or a tensor out of an amax."""

import itertools

import numpy as np

from wrong.kernel import Kernel
from wrong.microscaling import LARGEST, Register, in_blocks, magnitude_bits
from wrong.mx_right import scale_codes
from wrong.mx_scales import finished
from wrong.nvfp4_launches import called, quantized
from wrong.nvfp4_parts import ALL, largest

KERNELS = Register()
MISTAKE = "four numbers are loaded at once, and those that are left are not"


def whole_fours(x):
    """Return rows with zeros behind the last whole four of each, if it has one."""
    columns = x.shape[1]
    return np.where(np.arange(columns) < (columns // 4 * 4 or columns), x, np.float32(0))


def global_amax(profile, x, tile):
    """Return a tensor in NVFP4 with the global amax of whole fours."""
    if profile == "te_row":
        amax = np.repeat(largest(whole_fours(x), 1), -(-x.shape[1] // tile[1]))
    else:
        amax = largest(whole_fours(x.reshape(1, -1)))
    return quantized(profile, x, tile, amax)


def block_amax(x, fmt, rule, k):
    """Return a tensor in MX with the amaxes of whole fours of rows."""
    amax = magnitude_bits(in_blocks(whole_fours(x), k)).max(axis=2)
    return finished(x, scale_codes(amax, fmt, rule), fmt, k)


for profile in ALL:
    run = called(global_amax, profile)
    KERNELS.append(Kernel(f"nvfp4.amax_of_whole_fours.{profile}", run, MISTAKE))
for fmt, rule in itertools.product(LARGEST, ("floor", "ceil", "even", "rceil")):
    name = f"amax_of_whole_fours.{fmt}.{rule}"
    KERNELS.mx(name, MISTAKE, (rule,), (fmt,), operations=("mx",))(block_amax)
