"""Philox 4x32, and which of its words Transformer Engine's kernels take."""

from collections.abc import Sequence
from typing import NamedTuple

from mor_ref.definitions.nvfp4 import TeKernel

_WORD = (1 << 32) - 1


class Philox(NamedTuple):
    """Philox with four words of so many bits, and its constants."""

    bits: int
    multipliers: tuple[int, int]
    steps_of_key: tuple[int, int]

    def block(
        self, counter: Sequence[int], key: Sequence[int], rounds: int
    ) -> tuple[int, int, int, int]:
        """Return the four words of a counter."""
        width, word = self.bits, (1 << self.bits) - 1
        (a, b, c, d), (k, m) = counter, key
        for _ in range(rounds):
            p, q = self.multipliers[0] * a, self.multipliers[1] * c
            a, b, c, d = (q >> width) ^ b ^ k, q & word, (p >> width) ^ d ^ m, p & word
            k, m = (k + self.steps_of_key[0]) & word, (m + self.steps_of_key[1]) & word
        return a, b, c, d


_OF_32_BITS = Philox(32, (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85))


def philox(counter: Sequence[int], key: Sequence[int], rounds: int = 10) -> tuple[int, ...]:
    """Return the four words of a block of Philox 4x32 (NVF-015)."""
    return _OF_32_BITS.block(counter, key, rounds)


def stream_word(seed: int, subsequence: int, offset: int, index: int, rounds: int = 10) -> int:
    """Return a word of a stream of Philox 4x32 (NVF-016)."""
    block = (subsequence << 64) + offset + index // 4
    counter = [block >> 32 * place & _WORD for place in range(4)]
    return philox(counter, (seed & _WORD, seed >> 32), rounds)[index % 4]


def place_of_word(
    kernel: TeKernel, row: int, column: int, columns: int, outputs: str, *, transposed: bool
) -> tuple[int, int]:
    """Return the stream and the index of the word that an element takes (NVF-017)."""
    i, j = row % 128, column % 128
    if kernel.name == "tuned_1d":
        stage = 2 * (i // 64) + j // 64
        if transposed:
            lane = j % 64 // 2
            thread = 32 * ((i % 64 // 16 - lane // 2) % 4) + lane
            index = 16 * stage + 8 + 4 * (j % 2) + i % 16 // 4
        else:
            thread = 4 * (i % 32) + j % 64 // 16
            half = (j % 16 // 8 + i % 8 // 4) % 2
            index = kernel.words_of(outputs) // 4 * stage
            index += 4 * (i % 64 // 32) + 2 * half + j % 8 // 4
    elif transposed:
        thread = 8 * (j // 2 % 32) + i // 16
        index = kernel.words_of(outputs) - 16 + 8 * (j // 64) + 4 * (j % 2) + i % 16 // 4
    else:
        thread = 8 * (i % 32) + j // 16
        index = 4 * (i // 32) + j % 16 // 4
    chunk = row // 128 * -(-columns // 128) + column // 128
    return chunk * kernel.threads + thread, index


def te_random_words(
    shape: tuple[int, int],
    seed: int,
    offset: int,
    kernel: TeKernel,
    outputs: str,
    *,
    transposed: bool,
    rounds: int = 10,
) -> list[list[int]]:
    """Return the words of a matrix, one for four elements next to each other (NVF-017)."""
    rows, columns = shape
    along = [[(row, column) for column in range(columns)] for row in range(rows)]
    if transposed:
        along = [[(row, column) for row in range(rows)] for column in range(columns)]
    return [
        [
            stream_word(seed, subsequence, offset, index, rounds)
            for subsequence, index in (
                place_of_word(kernel, *element, columns, outputs, transposed=transposed)
                for element in line[::4]
            )
        ]
        for line in along
    ]
