"""Random words as Transformer Engine makes them: Philox 4x32, and the words of its kernels."""

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.border import public_in_every_mode
from mor_ref.argument_checks import known_name, whole_number
from mor_ref.arrays import Bits, unsigned_from
from mor_ref.definitions.blocks import rows_and_columns
from mor_ref.definitions.nvfp4 import TE_KERNELS, TeKernel

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_WORD = np.dtype(np.uint32)
_CHUNK = 128  # the rows and the columns of a chunk
_MOST_ROUNDS = 64
_LARGEST = (1 << 64) - 1
_OUTPUTS = ("rows", "columns", "both")

Index = NDArray[np.int64]


@public_in_every_mode
def philox4x32(counter: "ArrayLike", key: "ArrayLike", *, rounds: int = 10) -> Bits:
    """Return the blocks of Philox 4x32: four words of 32 bits for each counter.

    `counter` has four words in its last dimension, the lowest first, and `key` has two. cuRAND and
    torch count blocks in the first two words, and have the subsequence in the others; the key is
    their seed.

    >>> import mor_ref
    >>> [hex(word) for word in mor_ref.philox4x32([0, 0, 0, 0], [0, 0]).tolist()]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    from mor_ref.engine.philox import blocks  # imports Numba

    counters = unsigned_from(counter, 32, _WORD, "counter")
    keys = unsigned_from(key, 32, _WORD, "key")
    for name, words, count in (("counter", counters, 4), ("key", keys, 2)):
        if words.shape[-1:] != (count,) or (name == "key" and words.ndim > 1):
            raise ValueError(
                f"{name} has shape {words.shape}; give {count} words"
                f"{' in its last dimension' if name == 'counter' else ''}"
            )
    rounds = whole_number("rounds", rounds, 1, _MOST_ROUNDS)
    return blocks(counters.reshape(-1, 4), keys, rounds).reshape(counters.shape)


@public_in_every_mode
def te_random_words(
    shape: tuple[int, ...],
    seed: int,
    offset: int = 0,
    *,
    kernel: Literal["tuned_1d", "vector_blockwise"] = "tuned_1d",
    outputs: Literal["rows", "columns", "both"] = "rows",
    transposed: bool = False,
    rounds: int = 10,
) -> Bits:
    """Return the random words with which Transformer Engine rounds a tensor to NVFP4.

    `seed` and `offset` are those of the kernel's state of the generator. Each word is of four
    elements next to each other: give it as `random_bits`, with "te" for `n_random_bits` as the
    kernels round without `cvt.rs`, or with "cuda" as PTX has that instruction. `kernel` is
    "tuned_1d", which takes bfloat16 if both sides are multiples of 32, or "vector_blockwise", which
    takes the rest. `outputs` says what the kernel writes: the tensor in "rows", its transpose
    ("columns"), or "both". With `transposed`, the words are those of the transpose. Leading axes
    are folded into rows.

    >>> import mor_ref, numpy as np
    >>> x = np.random.default_rng(0).standard_normal((64, 32), dtype=np.float32)
    >>> words = mor_ref.te_random_words(x.shape, seed=1234)
    >>> words.shape, hex(words[0, 0])
    ((64, 8), '0x2090b348')
    >>> mor_ref.quantize_nvfp4(x, random_bits=words, n_random_bits="te").codes[0, :8].tolist()
    [6, 15, 12, 13, 5, 9, 1, 9]
    """
    rules = TE_KERNELS[known_name("kernel", kernel, TE_KERNELS)]
    if known_name("outputs", outputs, _OUTPUTS) not in rules.outputs:
        raise ValueError(
            f"outputs is {outputs!r}, which kernel {kernel!r} does not write; "
            f"take one of {', '.join(rules.outputs)}"
        )
    if transposed == (outputs == "rows") and outputs != "both":
        raise ValueError(
            f"transposed is {transposed}, but outputs is {outputs!r}; "
            f"give transposed={not transposed}, or outputs='both'"
        )
    rows, columns = rows_and_columns(shape)
    if rows % rules.multiple or columns % rules.multiple:
        raise ValueError(
            f"shape is {shape}, with {rows} rows and {columns} columns; "
            f"give multiples of {rules.multiple}, as kernel {kernel!r} takes no others"
        )
    seed, offset = (
        whole_number(name, value, 0, _LARGEST)
        for name, value in (("seed", seed), ("offset", offset))
    )
    i, j = np.ogrid[0:rows:4, :columns] if transposed else np.ogrid[:rows, 0:columns:4]
    place = _in_tuned_1d if kernel == "tuned_1d" else _in_vector_blockwise
    thread, index = place(rules, i % _CHUNK, j % _CHUNK, outputs, transposed=transposed)
    stream = (i // _CHUNK * -(-columns // _CHUNK) + j // _CHUNK) * rules.threads + thread
    counters = _counters(stream, offset, index // 4)
    blocks = philox4x32(counters, [seed & 0xFFFFFFFF, seed >> 32], rounds=rounds)
    words = np.take_along_axis(blocks, (index % 4 + 0 * stream)[..., None], axis=-1)[..., 0]
    return words.T.copy() if transposed else words.reshape(*shape[:-1], -1)


def _counters(stream: Index, offset: int, block: Index) -> Bits:
    """Return the counters of blocks of streams (NVF-016): block, offset and stream are one sum."""
    low = np.uint64(offset) + block.astype(np.uint64)
    high = stream.astype(np.uint64) + (low < np.uint64(offset))
    low, high = np.broadcast_arrays(low, high)
    return np.stack([low, high], axis=-1).astype("<u8").view("<u4").astype(_WORD, copy=False)


def _in_tuned_1d(
    kernel: TeKernel, i: Index, j: Index, outputs: str, *, transposed: bool
) -> tuple[Index, Index]:
    """Return the thread, and the index in its stream, of elements of a chunk (NVF-017)."""
    stage = kernel.words_of(outputs) // 4 * (i // 64 * 2 + j // 64)
    if transposed:
        lane = j // 2 % 32
        thread = (i // 16 - lane // 2) % 4 * 32 + lane
        return thread, stage + 8 + j % 2 * 4 + i // 4 % 4
    swizzled = (j // 8 ^ i // 4) & 1
    return i % 32 * 4 + j // 16 % 4, stage + i // 32 % 2 * 4 + swizzled * 2 + j // 4 % 2


def _in_vector_blockwise(
    kernel: TeKernel, i: Index, j: Index, outputs: str, *, transposed: bool
) -> tuple[Index, Index]:
    """Return the thread, and the index in its stream, of elements of a chunk (NVF-017)."""
    if transposed:
        first = kernel.words if outputs == "both" else 0
        return j // 2 % 32 * 8 + i // 16, first + j // 64 * 8 + j % 2 * 4 + i // 4 % 4
    return i % 32 * 8 + j // 16, i // 32 * 4 + j // 4 % 4
