"""Philox 4x32, in a loop over its blocks."""

import numpy as np

from mor_ref.arrays import Bits
from mor_ref.engine.kernel import integer_kernel

_U, _W = np.uint32, np.uint64
_FIRST, _SECOND = _W(0xD2511F53), _W(0xCD9E8D57)
_STEP_OF_FIRST, _STEP_OF_SECOND = _U(0x9E3779B9), _U(0xBB67AE85)
_HALF = _W(32)


@integer_kernel
def fill_blocks(counters, first_key, second_key, rounds, out):
    """NVF-015: write the words of the block of each counter."""
    for i in range(counters.shape[0]):
        a, b, c, d = counters[i, 0], counters[i, 1], counters[i, 2], counters[i, 3]
        key, other_key = first_key, second_key
        for _ in range(rounds):
            p, q = _W(_FIRST * _W(a)), _W(_SECOND * _W(c))
            a, b = _U(_U(_U(q >> _HALF) ^ b) ^ key), _U(q)
            c, d = _U(_U(_U(p >> _HALF) ^ d) ^ other_key), _U(p)
            key, other_key = _U(key + _STEP_OF_FIRST), _U(other_key + _STEP_OF_SECOND)
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = a, b, c, d


def blocks(counters: Bits, key: Bits, rounds: int) -> Bits:
    """Return the words of the block of each counter (NVF-015)."""
    out = np.empty_like(counters)
    fill_blocks(counters, key[0], key[1], rounds, out)
    return out
