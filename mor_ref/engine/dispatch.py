"""From the public functions to the loops: which loop, which row, and how many threads."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Bits, Numbers, RandomWords
from mor_ref.definitions.encoding import Rounding, SpecialCases
from mor_ref.definitions.format import Format
from mor_ref.engine import decoding, encoding
from mor_ref.engine.formats import (
    BINARY32,
    BINARY64,
    Source,
    power_of_two_target_for,
    target_for,
)
from mor_ref.engine.nearest import grid_of
from mor_ref.engine.parallel import for_each_slice, thread_count
from mor_ref.engine.widening import as_binary16
from mor_ref.processor import follows_ieee_754

Loop = Callable[[Bits, Bits, slice], None]  # numbers, codes, and where they are in the whole


def encode_into(
    codes: Bits,
    numbers: Numbers,
    fmt: Format,
    rounding: Rounding,
    special: SpecialCases,
    random_words: RandomWords | None,
    threads: int | None,
) -> None:
    """Write the code of each number."""
    source = BINARY64 if numbers.dtype == np.float64 else BINARY32
    loop = _loop_for(fmt, rounding, special, random_words, source)
    bits = as_binary16(numbers.bits) if numbers.dtype == np.float16 else numbers.bits

    def encode_part(part: slice) -> None:
        loop(bits[part], codes[part], part)

    for_each_slice(encode_part, codes.size, thread_count(threads, codes.size))


def _loop_for(
    fmt: Format,
    rounding: Rounding,
    special: SpecialCases,
    random_words: RandomWords | None,
    source: Source,
) -> Loop:
    word = source.word
    if fmt.is_power_of_two:
        row = power_of_two_target_for(fmt, rounding, special, source)
        return lambda bits, out, _: encoding.encode_array_as_powers_of_two(bits, out, row, word)
    if random_words is None and _is_to_nearest(fmt, rounding, special, source):
        return _to_nearest(fmt)
    target = target_for(fmt, rounding, special, source)
    if random_words is None:
        return lambda bits, out, _: encoding.encode_array(bits, out, target, word)
    words, n = random_words.words, word(random_words.n)
    return lambda bits, out, where: encoding.encode_array_at_random(
        bits, words[where], n, out, target, word
    )


def _to_nearest(fmt: Format) -> Loop:
    """The shorter way by additions, in threads whose additions are those of IEEE 754."""
    grid = grid_of(fmt)

    def encode_part(bits: Bits, out: Bits, _: slice) -> None:
        if follows_ieee_754():
            encoding.encode_array_to_nearest(bits, out, grid)
        else:
            target = target_for(fmt, "rne", SpecialCases(), BINARY32)
            encoding.encode_array(bits, out, target, BINARY32.word)

    return encode_part


def _is_to_nearest(fmt: Format, rounding: Rounding, special: SpecialCases, source: Source) -> bool:
    """Whether the codes are those of `nearest`, which binary32 has room for."""
    return rounding == "rne" and special == SpecialCases() and fmt.bits <= 8 and source is BINARY32


def decode(codes: Bits, fmt: Format) -> NDArray[np.float32]:
    """The binary32 number of each code."""
    bits = np.empty(codes.size, np.uint32)
    if fmt.bits <= 8:
        decoding.look_up(codes, bits, _table(fmt))
    else:
        decoding.decode_array(codes, bits, decoding.layout_of(fmt))
    return bits.view(np.float32)


@functools.lru_cache(maxsize=64)
def _table(fmt: Format) -> NDArray[Any]:
    codes = np.arange(fmt.code_count, dtype=np.uint8)
    codes.flags.writeable = False
    bits = np.empty(codes.size, np.uint32)
    decoding.decode_array(codes, bits, decoding.layout_of(fmt))
    bits.flags.writeable = False
    return bits
