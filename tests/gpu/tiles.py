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
    k = one.row_bytes * (2 if one.packs else 1) // code_dtype(of[0]).itemsize
    a, b = (
        drawn_codes(random, fmt, (tiles * rows, k), special).reshape(tiles, rows, k)
        for fmt, rows in zip(of, (one.rows, 8), strict=True)
    )
    start = formats["f16" if one.has_f16_sums else "f32"]
    codes = drawn_codes(random, start, (tiles * one.rows * 8, 1), special)
    codes[random.random(codes.shape) < 0.3] = 0
    c = codes.view(np.float16 if one.has_f16_sums else np.float32)
    return a, b, c.reshape(tiles, one.rows, 8)


def scales_of(one, random, tiles):
    """Return the codes of the scales of random tiles, (tiles, rows, blocks): near 1, and any."""
    name, block = one.scales
    fmt, k = formats[name], one.row_bytes * (2 if one.packs else 1)
    near = (fmt.bias << fmt.mantissa_bits) + (1 << fmt.mantissa_bits) * 4
    found = []
    for rows in (one.rows, 8):
        shape = (tiles, rows, k // block)
        codes = near - random.integers(0, 8 << fmt.mantissa_bits, shape)
        anywhere = random.integers(0, fmt.code_count - (fmt.sign_bit or 0), shape)
        is_any = random.random((tiles, 1, 1)) < 0.2
        found.append(np.where(is_any, anywhere, codes).astype(np.uint8))
    return found


def words_of_scales(codes):
    """Return a word for each row, with the scales of its blocks from the lowest byte on."""
    rows = np.zeros((*codes.shape[:2], 4), np.uint8)
    rows[..., : codes.shape[2]] = codes
    return rows.view(np.uint32)[..., 0]
