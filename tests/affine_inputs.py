"""Inputs of the tests on integers with zero points: numbers at ties, and a few steps away."""

import numpy as np

import mor_ref

PROFILES_OF_127 = ("bnb_int8_row", "switchback_row", "switchback_tensor")


def quantized(x, *arguments, **named):
    """Quantize numbers; a list is of float32."""
    numbers = x if hasattr(x, "dtype") else np.array(x, np.float32)
    if numbers.dtype == np.float64:
        numbers = numbers.astype(np.float32)
    return mor_ref.quantize_affine(numbers, *arguments, **named)


def near_ties(seed, count, scale, highest, dtype=np.float32):
    """Return numbers within three steps of (k + 1/2) * scale, some at integers and far outside."""
    random = np.random.default_rng(seed)
    k = random.integers(-highest - 20, highest + 20, count)
    halves = random.choice([0.5, 0.5, 0.5, 0.5, 0.0], count)
    with np.errstate(all="ignore"):
        x = ((k + halves) * np.float64(scale)).astype(dtype)
    word = np.dtype(f"i{x.dtype.itemsize}")
    moved = x.view(word) + random.integers(-3, 4, count).astype(word)
    return np.where(x == 0, x, moved.view(dtype))
