"""The chapter on encoding: one loop for every format and every rounding.

A number arrives as the bits of a binary32 or binary64 word. A row of words
describes the target format (see `formats`). Every intermediate is cast to `word`: otherwise Numba
widens it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from mor_ref.arrays import Bits, Numbers, RandomWords
from mor_ref.definitions.encoding import RandomBits, Rounding, SpecialCases
from mor_ref.definitions.format import Format
from mor_ref.engine.formats import BINARY32, BINARY64, Source, power_of_two_target_for, target_for
from mor_ref.engine.intrinsics import (
    PREFETCHED,
    float_of,
    prefetch_block,
    shift_left,
    shift_right,
    sign_mask,
    use_full_vectors,
)
from mor_ref.engine.kernel import Direct, integer_kernel, kernel, step
from mor_ref.engine.nearest import grid_of, nearest, with_sign
from mor_ref.engine.parallel import for_each_slice, thread_count
from mor_ref.engine.widening import as_binary16, widen
from mor_ref.processor_modes import follows_ieee_754

_U = np.uint32
_MAGNITUDE = _U(0x7FFFFFFF)

_BLOCK = PREFETCHED  # elements: short enough to be unrolled
_PREFETCH_DISTANCE = 1024  # elements

# Of numbers, codes and random words. The dtypes of numbers and codes are those of a loop, and they
# lie in order.
Loop = Callable[[Bits, Bits, Any], None]

# ---------------------------------------------------------------------- scalar steps


@step
def significand_and_shift(magnitude, target, word):
    """ENC-002: the significand, and how many of its low bits the format drops.

    The exponent above the format's smallest stays in the significand, as it does in a code:
    so rounding carries into it, and the bits that remain after the shift are the code (ENC-004).
    """
    field = min(
        max(word(magnitude & target.infinity_bits), target.hidden_bit), target.smallest_normal
    )
    significand = word(word(magnitude - field) + target.hidden_bit)
    shift = word(target.shift_base - shift_right(field, target.fraction_bits))
    return significand, shift


@step
def rounded(significand, shift, negative, target, word):
    """ENC-003: up if and only if the dropped fraction has reached the threshold."""
    shift = min(shift, target.shift_cap)
    below = shift_right(significand, shift)
    fraction = word(shift_left(significand, word(target.last_bit - shift)) << word(1))
    threshold = word(target.threshold ^ word(negative & target.threshold_negative_flip))
    if word(below & word(1)) != word(0):
        threshold = word(threshold ^ target.threshold_odd_flip)
    return word(below + word(fraction >= threshold))


@step
def rounded_at_random(significand, shift, random_word, n_random_bits, target, word):
    """ENC-005: up if and only if F + r >= 2^n, that is F > 2^n - 1 - r."""
    last_bit = target.last_bit
    if shift <= last_bit:
        fraction = word(shift_left(significand, word(last_bit - shift)) << word(1))
    else:
        fraction = shift_right(significand, min(word(word(shift - last_bit) - word(1)), last_bit))
    first_bits = shift_right(fraction, word(word(last_bit + word(1)) - n_random_bits))
    largest_word = shift_right(word(~word(0)), word(word(last_bit + word(1)) - n_random_bits))
    below = shift_right(significand, min(shift, target.shift_cap))
    return word(below + word(first_bits > word(largest_word - random_word)))


@step
def with_special_cases(code, magnitude, negative, target, exceptions, word):
    """ENC-006 to ENC-012: overflow, infinities, the sign, and NaN."""
    if exceptions is None:
        code = word(min(code, target.cap) | word(negative & target.sign_bit))
        nan = target.nan
    else:
        code = min(code, word(target.cap ^ word(negative & exceptions.cap_negative_flip)))
        code = exceptions.infinity if magnitude == target.infinity_bits else code
        sign_bit = target.sign_bit if code != word(0) else exceptions.negative_zero
        code = word(code | word(negative & sign_bit))
        nan = word(target.nan ^ word(negative & exceptions.nan_negative_flip))
    return nan if magnitude > target.infinity_bits else code


@step
def encoded(bits, target, word):
    """Return the code of a number, for a rounding without random bits."""
    magnitude = word(bits & target.magnitude_mask)
    negative = sign_mask(bits)
    significand, shift = significand_and_shift(magnitude, target, word)
    code = rounded(significand, shift, negative, target, word)
    return with_special_cases(code, magnitude, negative, target, target.exceptions, word)


@step
def encoded_to_nearest(bits, grid):
    """Return the code of a number with rne, by an addition in binary32."""
    magnitude = float_of(_U(bits & _MAGNITUDE))
    code, _ = nearest(magnitude, grid)
    return with_sign(code, magnitude, bits, grid)


@step
def encoded_at_random(bits, random_word, n_random_bits, target, word):
    """Return the code of a number by stochastic rounding."""
    magnitude = word(bits & target.magnitude_mask)
    negative = sign_mask(bits)
    significand, shift = significand_and_shift(magnitude, target, word)
    code = rounded_at_random(significand, shift, random_word, n_random_bits, target, word)
    return with_special_cases(code, magnitude, negative, target, target.exceptions, word)


@step
def encoded_as_power_of_two(bits, target, word):
    """ENC-013, ENC-014: the code of the power of two at or next to |x|."""
    magnitude = word(bits & target.magnitude_mask)
    at_least_smallest = max(magnitude, target.smallest)
    field = shift_right(at_least_smallest, target.fraction_bits)
    # A number from 2^-127 up to the normal ones has its leading one where fractions begin.
    subnormal = word(field == word(0))
    fraction = shift_left(at_least_smallest, word(target.fraction_shift + subnormal))
    code = word(field - target.field_offset)
    threshold = target.threshold if code != word(0) else target.threshold_above_smallest
    code = word(code + word(fraction >= threshold))
    code = target.cap if code > target.largest_code else code
    code = target.infinity if magnitude == target.infinity_bits else code
    code = target.negative if word(sign_mask(bits) & target.has_negative) != word(0) else code
    code = target.zero if magnitude == word(0) else code
    return target.nan if magnitude > target.infinity_bits else code


# ---------------------------------------------------------------------- loops


@integer_kernel
def encode_array(numbers, out, target, word):
    """Write one code for each number."""
    use_full_vectors()
    in_blocks = numbers.size - numbers.size % _BLOCK
    for start in range(0, in_blocks, _BLOCK):
        prefetch_block(numbers, start + _PREFETCH_DISTANCE)
        for i in range(_BLOCK):
            out[start + i] = encoded(widen(numbers[start + i], word), target, word)
    for i in range(in_blocks, numbers.size):
        out[i] = encoded(widen(numbers[i], word), target, word)
    if target.twos_complement_count != word(0):
        to_twos_complement(out, target, word)


@kernel
def encode_array_to_nearest(numbers, out, grid):
    """Write the same codes for rne, satfinite and canonical by an addition (see `nearest`)."""
    use_full_vectors()
    in_blocks = numbers.size - numbers.size % _BLOCK
    for start in range(0, in_blocks, _BLOCK):
        prefetch_block(numbers, start + _PREFETCH_DISTANCE)
        for i in range(_BLOCK):
            out[start + i] = encoded_to_nearest(widen(numbers[start + i], _U), grid)
    for i in range(in_blocks, numbers.size):
        out[i] = encoded_to_nearest(widen(numbers[i], _U), grid)


@integer_kernel
def encode_array_at_random(numbers, random_words, n_random_bits, out, target, word):
    """Write one code for each number and its random word."""
    use_full_vectors()
    in_blocks = numbers.size - numbers.size % _BLOCK
    for start in range(0, in_blocks, _BLOCK):
        prefetch_block(numbers, start + _PREFETCH_DISTANCE)
        prefetch_block(random_words, start + _PREFETCH_DISTANCE)
        for i in range(start, start + _BLOCK):
            bits, random_word = widen(numbers[i], word), word(random_words[i])
            out[i] = encoded_at_random(bits, random_word, n_random_bits, target, word)
    for i in range(in_blocks, numbers.size):
        bits, random_word = widen(numbers[i], word), word(random_words[i])
        out[i] = encoded_at_random(bits, random_word, n_random_bits, target, word)
    if target.twos_complement_count != word(0):
        to_twos_complement(out, target, word)


@integer_kernel
def encode_array_as_powers_of_two(numbers, out, target, word):
    """Write one code of a power of two for each number."""
    use_full_vectors()
    for i in range(numbers.size):
        out[i] = encoded_as_power_of_two(widen(numbers[i], word), target, word)


@step
def to_twos_complement(codes, target, word):
    """ENC-015: from codes of sign and magnitude, in place; none of them is a negative zero."""
    for i in range(codes.size):
        code = word(codes[i])
        if word(code & target.sign_bit) != word(0):
            magnitude = word(code ^ target.sign_bit)
            codes[i] = word(target.twos_complement_count - magnitude)


# ---------------------------------------------------------------------- whole arrays


def encode_into(
    codes: Bits, numbers: Numbers, loop: Loop, words: RandomWords | None, threads: int | None
) -> None:
    """Write the code of each number, with the loop for its dtype."""
    bits, count = numbers.bits, thread_count(threads, codes.size)
    if count == 1:
        loop(bits, codes, words)
        return

    def encode_slice(part: slice) -> None:
        own = None if words is None else RandomWords(words.words[part], words.n)
        loop(bits[part], codes[part], own)

    for_each_slice(encode_slice, codes.size, count)


def shared_words(words: Bits, bits: RandomBits) -> Bits:
    """ENC-017. Return the random words of all elements, from words that several share."""
    random_words = np.zeros((*words.shape, len(bits.places)), np.uint32)
    last = np.uint32(len(bits.ending))
    for k, ranges in enumerate(bits.places):
        places = [
            place
            for first, last in ranges
            for place in (range(first, last + 1) if first < last else range(first, last - 1, -1))
        ]
        for weight, place in enumerate(reversed(places)):
            random_words[..., k] |= (words >> np.uint32(place) & np.uint32(1)) << np.uint32(weight)
    random_words = random_words << last | np.uint32(int(bits.ending or "0", 2))
    return random_words.reshape(*words.shape[:-1], -1)


def loop_for(fmt: Format, rounding: Rounding, special: SpecialCases, dtype: np.dtype[Any]) -> Loop:
    """Return the loop that encodes numbers of a dtype, to be kept for the next call."""
    if dtype == np.float16:
        loop = loop_for(fmt, rounding, special, np.dtype(np.float32))
        return lambda bits, out, words: loop(as_binary16(bits), out, words)
    source = BINARY64 if dtype == np.float64 else BINARY32
    word = source.word
    if fmt.is_power_of_two:
        row = power_of_two_target_for(fmt, rounding, special, source)
        powers = Direct(encode_array_as_powers_of_two, row, word)
        return lambda bits, out, _: powers((), bits, out)
    target = target_for(fmt, rounding, special, source)
    if rounding == "sr":
        return _at_random(target, word)
    by_integers = Direct(encode_array, target, word)
    if not _is_to_nearest(fmt, rounding, special, source):
        return lambda bits, out, _: by_integers((), bits, out)
    by_additions = Direct(encode_array_to_nearest, grid_of(fmt))

    def encode_slice(bits: Bits, out: Bits, _: Any) -> None:
        # The additions are those of IEEE 754, which a mode of the processor may change.
        (by_additions if follows_ieee_754() else by_integers)((), bits, out)

    return encode_slice


def _at_random(target: Any, word: Any) -> Loop:
    by_random_words = Direct(encode_array_at_random, target, word, reads=2)

    def encode_slice(bits: Bits, out: Bits, random: Any) -> None:
        words, n = random
        by_random_words(words.dtype, bits, words, word(n), out)

    return encode_slice


def _is_to_nearest(fmt: Format, rounding: Rounding, special: SpecialCases, source: Source) -> bool:
    """Return whether `nearest` has the same codes, and binary32 has room for its sums."""
    return rounding == "rne" and special == SpecialCases() and fmt.bits <= 8 and source is BINARY32
