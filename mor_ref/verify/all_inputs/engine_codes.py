"""The engine's codes of all 2^32 binary32 inputs, chunk by chunk."""

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.encoding import encode
from mor_ref.arrays import code_dtype
from mor_ref.golden.all_inputs.digests import (
    CHUNK,
    CHUNKS,
    Buffer,
    Case,
    RandomWord,
    exact_chunks,
    exact_codes,
    inputs_of,
    runs,
)
from mor_ref.workers.pools import Workers


def engine_chunks(case: Case, threads: int | None = None) -> Iterator[Buffer]:
    """Yield the engine's codes of each chunk of inputs."""
    for chunk in range(CHUNKS):
        yield engine_codes(case, inputs_of(chunk), threads)


def engine_codes(case: Case, inputs: range, threads: int | None = None) -> Buffer:
    """Return the engine's codes of consecutive inputs."""
    codes = encode(
        np.arange(inputs.start, inputs.stop, dtype=np.uint32).view(np.float32),
        case.fmt,
        rounding=case.rounding,
        overflow=case.overflow,
        random_bits=_repeated(case.random, len(inputs)) if case.random else None,
        n_random_bits=case.random.n if case.random else None,
        threads=threads,
    )
    return codes.astype(codes.dtype.newbyteorder("<"), copy=False).data.cast("B")


@functools.lru_cache(maxsize=1)
def _repeated(random: RandomWord, count: int) -> NDArray[np.unsignedinteger]:
    """Return the word for each input, in the narrowest dtype: there is less to read."""
    dtype = next(d for d in (np.uint8, np.uint16, np.uint32) if random.n <= 8 * d().itemsize)
    return np.full(count, random.word, dtype)


class Coded(NamedTuple):
    """Codes of a chunk as a worker sends them: where runs of equal codes begin, and each code.

    There are few runs, as rounding is monotonic.
    """

    starts: NDArray[np.uint32]
    codes: NDArray[np.unsignedinteger]


def coded(case: Case, chunk: int, threads: int | None) -> Coded:
    """Return the engine's codes of a chunk of inputs."""
    written = engine_codes(case, inputs_of(chunk), threads)
    codes = np.frombuffer(written, code_dtype(case.fmt).newbyteorder("<"))
    starts = np.flatnonzero(np.concatenate(([True], codes[1:] != codes[:-1])))
    return Coded(starts.astype(np.uint32), codes[starts])


def chunks_of_workers(
    case: Case, workers: Workers, threads: int | None, chunks: Sequence[int] = range(CHUNKS)
) -> Iterator[Buffer]:
    """Yield the engine's codes of each chunk of inputs, as workers compute them."""
    shards = [(case, chunk, threads) for chunk in chunks]
    for found in workers.in_order(coded, shards):
        lengths = np.diff(found.starts, append=CHUNK)
        yield np.repeat(found.codes, lengths).data.cast("B")


class ComparedWithExact:
    """Chunks of codes, compared with the exact model; `first_wrong` is the first that differs."""

    def __init__(self, case: Case, chunks: Iterable[Buffer]) -> None:
        self._pairs = zip(chunks, exact_chunks(case), strict=True)
        self.first_wrong: int | None = None

    def __iter__(self) -> Iterator[Buffer]:
        for number, (codes, right) in enumerate(self._pairs):
            if self.first_wrong is None and _differing(codes, right).size:
                self.first_wrong = number
            yield codes


def _differing(codes: Buffer, right: Buffer) -> NDArray[np.intp]:
    """Return the places of the bytes that differ."""
    return np.flatnonzero(np.frombuffer(codes, np.uint8) != np.frombuffer(right, np.uint8))


def describe_difference(case: Case, chunk: int) -> str:
    """Return a sentence on the first input of a chunk whose code is not the exact one."""
    inputs = inputs_of(chunk)
    ours, theirs = engine_codes(case, inputs), exact_codes(case, runs(case), inputs)
    width = -(-case.fmt.bits // 8)
    differing = _differing(ours, theirs)
    if not differing.size:
        return (
            f"differs from the bundled digest in chunk {chunk}, where engine and exact model agree"
        )
    element = int(differing[0]) // width
    codes = [
        int.from_bytes(side[element * width : (element + 1) * width], "little")
        for side in (ours, theirs)
    ]
    return (
        f"differs from the exact model, first at input 0x{inputs.start + element:08x}: "
        f"the engine returns {codes[0]:#x}, the exact model {codes[1]:#x}"
    )
