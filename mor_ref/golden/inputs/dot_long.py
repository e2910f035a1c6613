"""Long rows of dot products, for loops over K that are right only for a few chunks."""

import numpy as np

from mor_ref.arrays import code_dtype
from mor_ref.definitions.dot import PERIOD, DotProfile
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.golden.inputs.dot_rows import arrays_of, with_scales_of_one
from mor_ref.golden.inputs.found_dots import first_with_numbers_of
from mor_ref.operations.bits import Unsigned
from mor_ref.operations.call import Arrays
from mor_ref.operations.random_words import random_words

_CHUNKS, _PERIODS, _TAIL = 17, 5, 5
_WITHOUT_CHUNK = 333  # products of a family that has no chunks
_NEAR, _FAR = 3, 7  # exponents of numbers above and below 1: for sums in f16, and in binary32
_C_NEAR, _C_FAR = -29.5, -241664.0  # so large that each chunk loses a part of its sum
_FIRST_SEED = 26
# Seeds of rows that have another sum in parts of K than in one; other profiles have seed 0.
_SEEDS = {"exact": 1, "ada_fp8_f16": 1, "hopper_fp8_f16": 2, "blackwell_mxfp8": 4}
_U = np.uint64


def long_length(profile: DotProfile) -> int:
    """Return the length of a long row, whose last chunk and last period are not full."""
    if profile.family == "promoted":
        return _PERIODS * PERIOD + profile.chunk + _TAIL
    tail = min(_TAIL, profile.chunk - 1)
    return _CHUNKS * profile.chunk + tail if profile.chunk else _WITHOUT_CHUNK


def long_codes(
    profile: DotProfile, of: tuple[Format, Format], length: int
) -> tuple[Unsigned, Unsigned]:
    """Return codes of finite numbers of both operands that are near 1 and far from it.

    The numbers have each sign, so that sums cancel, and lose other bits in each order.
    """
    reach = _NEAR if profile.result == "f16" else _FAR
    seed = _SEEDS.get(first_with_numbers_of(profile), 0)
    first, second = (_spread(fmt, length, seed, n, reach) for n, fmt in enumerate(of))
    return first, second


def _spread(fmt: Format, count: int, seed: int, stream: int, reach: int) -> Unsigned:
    """Return codes of random mantissas and signs, with exponents at most `reach` from 0."""
    words = random_words(count, _FIRST_SEED + seed, stream)
    fields = fmt.bias - reach + (words >> _U(40)).astype(np.int64) % (2 * reach + 1)
    highest = fmt.largest_code >> fmt.mantissa_bits
    magnitudes = np.clip(fields, 0, highest).astype(_U) << _U(fmt.mantissa_bits)
    magnitudes |= words & _U((1 << fmt.mantissa_bits) - 1)
    codes = np.minimum(magnitudes, _U(fmt.largest_code)) | (words >> _U(63)) * _U(fmt.sign_bit)
    found: Unsigned = codes.astype(code_dtype(fmt))
    return found


def long_rows(profile: DotProfile, of: tuple[Format, Format], length: int) -> Arrays:
    """Return a row with a long K, and with a c."""
    is_wide = profile.is_cut and profile.start == profile.result == "f32"
    rows = arrays_of([([], _C_FAR if is_wide else _C_NEAR)], profile, of, length)
    codes = long_codes(profile, of, length)
    return {**rows, **{name: x[np.newaxis] for name, x in zip("ab", codes, strict=True)}}


def long_rows_with_scales(
    profile: DotProfile, of: tuple[Format, Format], length: int, scale_format: str, block: int
) -> Arrays:
    """Return such a row with scales of each block."""
    scales = formats[scale_format]
    found = dict(with_scales_of_one(long_rows(profile, of, length), scales, block))
    for n, name in enumerate(("scale_a", "scale_b")):
        codes = _spread(scales, found[name].shape[1], 0, 2 + n, _FAR)
        found[name] = codes[np.newaxis] & ~codes.dtype.type(scales.sign_bit)
    return found
