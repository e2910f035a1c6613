"""The numbers that are measured on: always the same."""

import functools
from collections.abc import Callable

import ml_dtypes
import numpy as np

BF16 = ml_dtypes.bfloat16


def normal(log2_size: int, dtype: object = np.float32) -> Callable[[], np.ndarray]:
    """Return a function that draws normal numbers, in a square or twice as wide as high."""

    def make() -> np.ndarray:
        random = np.random.default_rng(log2_size)
        shape = (1 << log2_size // 2, 1 << (log2_size - log2_size // 2))
        if dtype == np.float64:
            return random.standard_normal(shape)
        return random.standard_normal(shape, dtype=np.float32).astype(dtype, copy=False)

    return make


def patterns(log2_size: int) -> np.ndarray:
    """Draw numbers of random bits, but neither infinities nor NaNs."""
    bits = np.random.default_rng(1).integers(0, 1 << 32, 1 << log2_size, dtype=np.uint32)
    return np.nan_to_num(bits.view(np.float32), posinf=1.0, neginf=-1.0)


def codes(log2_size: int, count: int = 256) -> np.ndarray:
    """Draw codes of a format that has so many."""
    dtype = np.uint8 if count <= 256 else np.uint16
    return np.random.default_rng(2).integers(0, count, 1 << log2_size, dtype=dtype)


def mixed(log2_size: int) -> Callable[[], np.ndarray]:
    """Return a function that draws bfloat16; some tiles span more binades than a small format."""

    def make() -> np.ndarray:
        x = normal(log2_size)()
        random = np.random.default_rng(3)
        for top in range(0, x.shape[0], 128):
            left = 128 * int(random.integers(x.shape[1] // 128))
            x[top : top + 128, left : left + 128] *= np.exp2(
                random.integers(-30, 30, (128, 128))
            ).astype(np.float32)
        return x.astype(BF16)

    return make


@functools.cache
def random_words(size: int, bits: int) -> np.ndarray:
    """Draw random words of so many bits, in the narrowest type."""
    dtype = np.min_scalar_type((1 << bits) - 1)
    return np.random.default_rng(4).integers(0, 1 << bits, size, dtype=dtype)
