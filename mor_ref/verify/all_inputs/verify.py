"""All 2^32 inputs through a candidate, chunk by chunk, against checksums of the exact model.

A chunk with another checksum is narrowed down to the inputs, in pieces of 2^12, by the codes of the
exact model.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import code_dtype
from mor_ref.golden.all_inputs.digests import (
    CHUNK,
    CHUNKS,
    Case,
    Run,
    bundled_digests,
    exact_chunks,
    exact_codes,
    inputs_of,
    runs,
)
from mor_ref.golden.model import suite
from mor_ref.operations.bits import Unsigned
from mor_ref.verify.candidates.by_name import candidate_named
from mor_ref.verify.candidates.candidate import Candidate, CandidateError
from mor_ref.verify.candidates.fresh_process import outcome_of_candidate
from mor_ref.verify.comparing.compare import problem_of
from mor_ref.verify.comparing.distance import distance, shown
from mor_ref.verify.comparing.integers import of_width
from mor_ref.workers.pools import Workers

ASKED = 1 << 20  # inputs of a question
PIECE = 1 << 12  # inputs that are compared at once
_SHOWN = 8  # mismatches of a chunk


@dataclass(frozen=True)
class Mismatch:
    """An input whose code is not the exact one."""

    input: int
    expected: int
    actual: int
    format: str

    def __str__(self) -> str:
        apart = distance(self.actual, self.expected, self.format)
        return (
            f"x {shown(self.input, 'f32')}: {shown(self.actual, self.format)} where "
            f"{shown(self.expected, self.format)} is expected{f', {apart}' if apart else ''}"
        )


@dataclass(frozen=True)
class ChunkResult:
    """A chunk: whether its checksum is right; if not, how many inputs differ, and the first."""

    number: int
    is_same: bool
    count: int = 0
    first: tuple[Mismatch, ...] = ()

    def __bool__(self) -> bool:
        return self.is_same

    def __str__(self) -> str:
        where = f"inputs from 0x{self.number * CHUNK:08x}, chunk {self.number}"
        if self.is_same:
            return f"{where}: the exact model's checksum"
        return f"{where}: another checksum than the exact, {self.count:,} of {CHUNK:,} differ"


def chunks_named(text: str) -> range:
    """Return the chunks that FIRST or FIRST:END names; END itself is not among them."""
    first, colon, end = text.partition(":")
    try:
        chosen = range(int(first, 0), int(end, 0) if colon else int(first, 0) + 1)
    except ValueError:
        chosen = range(0)
    if not chosen or chosen.start < 0 or chosen.stop > CHUNKS:
        raise ValueError(
            f"chunks is {text!r}; give the number of a chunk of 2^24 inputs, 0 to {CHUNKS - 1}, or "
            "FIRST:END, such as 0x3f:0x41 for the inputs from 0x3f000000 up to 0x41000000"
        )
    return chosen


def verify_chunks(candidate: Candidate, case: Case, chunks: range) -> Iterator[ChunkResult]:
    """Verify chunk after chunk, up to the first that differs."""
    right = zip(chunks, _checksums(case, chunks), strict=True)
    results = (_verified(candidate, case, chunk, checksum) for chunk, checksum in right)
    return _up_to_a_difference(results)


def verify_chunks_by(
    workers: Workers, name: str, seconds: float, case: Case, chunks: range
) -> Iterator[ChunkResult]:
    """Do the same with workers; each opens the candidate of this name for a chunk."""
    right = zip(chunks, _checksums(case, chunks), strict=True)
    here = Path.cwd()
    shards = [(here, name, _verified_by_name, seconds, case, *one) for one in right]
    return _up_to_a_difference(workers.in_order(outcome_of_candidate, shards))


def _checksums(case: Case, chunks: range) -> Iterator[int]:
    """Yield the checksum of each chunk, from the bundled digests; with sr, compute it."""
    bundled = bundled_digests().get(case.name)
    if bundled is not None:
        yield from bundled.crc32[chunks.start : chunks.stop]
    elif case.is_made_when_asked:
        yield from map(zlib.crc32, exact_chunks(case, chunks))
    else:
        raise ValueError(f"format is {case.fmt.name!r}, which has no bundled digests; take another")


def _up_to_a_difference(results: Iterator[ChunkResult]) -> Iterator[ChunkResult]:
    for result in results:
        yield result
        if not result.is_same:
            return


def _verified_by_name(
    name: str, seconds: float, case: Case, chunk: int, checksum: int
) -> ChunkResult:
    with candidate_named(name, seconds) as candidate:
        return _verified(candidate, case, chunk, checksum)


def _verified(candidate: Candidate, case: Case, chunk: int, checksum: int) -> ChunkResult:
    """Compare a chunk of a candidate with the right checksum, and find the inputs that differ."""
    codes = [_asked(candidate, case, inputs) for inputs in _pieces(chunk, ASKED)]
    if _checksum(case, codes) == checksum:
        return ChunkResult(chunk, is_same=True)
    return _narrowed(case, chunk, np.concatenate(codes))


def _pieces(chunk: int, size: int) -> Iterator[range]:
    """Yield the inputs of a chunk, some at a time."""
    for start in inputs_of(chunk)[::size]:
        yield range(start, start + size)


def _asked(candidate: Candidate, case: Case, inputs: range) -> Unsigned:
    """Return the codes that a candidate returns for consecutive inputs."""
    x = np.arange(inputs.start, inputs.stop, dtype=np.uint32)
    operation, arrays = "encode", {"x": x}
    parameters: dict[str, str | int] = {
        "format": case.fmt.name,
        "source": "f32",
        "overflow": case.overflow,
    }
    if case.random is None:
        parameters |= {"rounding": case.rounding, "nan": "canonical"}
    else:
        operation = "encode_stochastic"
        parameters |= {"n_random_bits": case.random.n}
        arrays["random_word"] = np.full(x.size, case.random.word, np.uint32)
    question = suite.Case(f"inputs_from_0x{inputs.start:08x}", parameters, arrays)
    answer = candidate.answer(operation, operation, question)
    if answer is None:
        raise CandidateError(f"{candidate.name} has no answer to {operation} in {case.name}")
    codes = of_width(answer.get("code"), code_dtype(case.fmt).itemsize)
    problem = problem_of(codes, x)
    if problem is not None:
        raise CandidateError(f"{candidate.name}, case {question.name}: code {problem}")
    return np.asarray(codes)


def _checksum(case: Case, codes: list[Unsigned]) -> int | None:
    """Return the CRC-32 of codes as in the digests; None if one has more bits than there are."""
    dtype, crc = code_dtype(case.fmt).newbyteorder("<"), 0
    for some in codes:
        written = some.astype(dtype)
        if not np.array_equal(written, some):
            return None
        crc = zlib.crc32(written.tobytes(), crc)
    return crc


def _narrowed(case: Case, chunk: int, codes: Unsigned) -> ChunkResult:
    ends, count = runs(case), 0
    first: list[Mismatch] = []
    for inputs, there in zip(_pieces(chunk, PIECE), codes.reshape(-1, PIECE), strict=True):
        right = _exact(case, ends, inputs)
        wrong = np.flatnonzero(there != right)
        count += wrong.size
        first += [
            Mismatch(inputs[at], int(right[at]), int(there[at]), case.fmt.name)
            for at in wrong[: _SHOWN - len(first)].tolist()
        ]
    return ChunkResult(chunk, False, count, tuple(first))


def _exact(case: Case, ends: list[Run], inputs: range) -> NDArray[np.unsignedinteger]:
    dtype = code_dtype(case.fmt).newbyteorder("<")
    return np.frombuffer(exact_codes(case, ends, inputs), dtype)
