"""Tiles of matrices for the kernels of matrix instructions, and their results as dot products."""

import numpy as np
from dots import drawn_codes

from mor_ref.arrays import code_dtype
from mor_ref.definitions.formats import formats

NAN = np.uint32(0x7FFFFFFF)


def bits_of_sums(words, one):
    """Return sums as binary32 bits; those of f16 have one NaN."""
    if not one.has_f16_sums:
        return words
    numbers = words.view(np.float16).astype(np.float32)
    return np.where(np.isnan(numbers), NAN, numbers.view(np.uint32))


def in_pairs(a, b, c):
    """Return each row of a with each row of b, and c, as one dot product after the other."""
    tiles, rows, columns = c.shape
    k = a.shape[2]
    one = np.broadcast_to(a[:, :, None], (tiles, rows, columns, k)).reshape(-1, k)
    other = np.broadcast_to(b[:, None], (tiles, rows, columns, k)).reshape(-1, k)
    return one, other, c.astype(np.float32).ravel()


def inputs(one, random, tiles):
    """Return random tiles: any codes, close exponents, small numbers, seldom special ones."""
    special = random.random() < 0.2
    of = [formats[name] for name in one.formats]
    k = one.row_bytes // code_dtype(of[0]).itemsize
    a, b = (
        drawn_codes(random, fmt, (tiles * rows, k), special).reshape(tiles, rows, k)
        for fmt, rows in zip(of, (one.rows, 8), strict=True)
    )
    start = formats["f16" if one.has_f16_sums else "f32"]
    codes = drawn_codes(random, start, (tiles * one.rows * 8, 1), special)
    codes[random.random(codes.shape) < 0.3] = 0
    c = codes.view(np.float16 if one.has_f16_sums else np.float32)
    return a, b, c.reshape(tiles, one.rows, 8)
