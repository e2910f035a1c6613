"""Random words that any language can make again: SplitMix64 of a counter."""

import numpy as np
from numpy.typing import NDArray

_GOLDEN = 0x9E3779B97F4A7C15


def random_words(count: int, seed: int, stream: int, first: int = 0) -> NDArray[np.uint64]:
    """Return SplitMix64 of a counter, from word `first` on: seed, stream and i determine word i.

    z = (i + 1 + 2^32 * stream + 2^48 * seed) * 0x9E3779B97F4A7C15, then xor-shifts and products.
    """
    start = 1 + first + (stream << 32) + (seed << 48)
    return _split_mix(np.arange(start, start + count, dtype=np.uint64))


def endless_words(first: int, count: int, seed: int, stream: int) -> NDArray[np.uint64]:
    """Return the words from number `first` on of a sequence of 2^64 words.

    Word i is SplitMix64 of the counter k + i, where k is word 0 of `random_words`.
    """
    numbers = np.arange(first, first + count, dtype=np.uint64)
    return _split_mix(random_words(1, seed, stream) + numbers)


def _split_mix(counter: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = counter * np.uint64(_GOLDEN)
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z
