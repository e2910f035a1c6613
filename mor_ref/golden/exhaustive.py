"""Digests of the codes of all 2^32 binary32 inputs.

The inputs are taken in ascending order of their bits, in 256 chunks of 2^24. A code is written in
the smallest whole number of bytes, lowest byte first. Kept are the SHA-256 of all codes and the
CRC-32 of each chunk.

The expected digests come from `mor_ref.exact` alone. Rounding is monotonic, so that the codes of
ascending magnitudes form runs: `runs` finds the ends of each by bisection, and the codes of a chunk
are the runs written out. `engine_chunks` are the codes that the engine computes, input for input.
"""

import bisect
import functools
import hashlib
import itertools
import json
import struct
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mor_ref import exact
from mor_ref.catalogue import formats
from mor_ref.conventions import (
    DETERMINISTIC_ROUNDINGS,
    OVERFLOWS,
    POWER_OF_TWO_ROUNDINGS,
    Overflow,
    Rounding,
    SpecialCases,
)
from mor_ref.format import Format
from mor_ref.golden import kept_files
from mor_ref.golden.processes import processes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHUNK = 1 << 24
CHUNKS = 256
_INFINITY = 0x7F800000
_NEGATIVE = 0x80000000

Buffer = bytes | memoryview
OnChunk = Callable[[int], None]


class Case(NamedTuple):
    """What is computed for all inputs."""

    fmt: Format
    rounding: Rounding
    overflow: Overflow

    @property
    def name(self) -> str:
        """The case as the kept digests name it."""
        return f"{self.fmt.name} {self.rounding} {self.overflow}"


@dataclass(frozen=True)
class Digest:
    """The SHA-256 of the codes of all inputs, and the CRC-32 of each chunk."""

    sha256: str
    crc32: tuple[int, ...]

    def first_difference(self, other: "Digest") -> int | None:
        """The first chunk in which the two differ, or None if they are the same."""
        if self == other:
            return None
        pairs = zip(self.crc32, other.crc32, strict=True)
        return next((chunk for chunk, (ours, theirs) in enumerate(pairs) if ours != theirs), 0)


class Run(NamedTuple):
    """Inputs from `first` up to the next run's, which all have one code."""

    first: int
    code: int


def digest_of(chunks: Iterable[Buffer], on_chunk: OnChunk = lambda _: None) -> Digest:
    """The digest of the codes in `chunks`; a thread hashes one while the next is made."""
    sha256 = hashlib.sha256()
    crc32 = []
    with ThreadPoolExecutor(max_workers=1) as pool:
        hashed = pool.submit(sha256.update, b"")
        for number, chunk in enumerate(chunks):
            hashed.result()
            hashed = pool.submit(sha256.update, chunk)
            crc32.append(zlib.crc32(chunk))
            on_chunk(number)
        hashed.result()
    return Digest(sha256.hexdigest(), tuple(crc32))


def engine_chunks(case: Case, threads: int | None = None) -> Iterator[Buffer]:
    """The engine's codes of each chunk of inputs."""
    import numpy as np  # the expected digests do without it

    bits = np.arange(CHUNK, dtype=np.uint32)
    for chunk in range(CHUNKS):
        yield _engine_codes(case, bits + np.uint32(chunk * CHUNK), threads)


def engine_codes(case: Case, inputs: range) -> Buffer:
    """The engine's codes of consecutive inputs."""
    import numpy as np

    return _engine_codes(case, np.arange(inputs.start, inputs.stop, dtype=np.uint32), None)


def _engine_codes(case: Case, bits: "NDArray[np.uint32]", threads: int | None) -> Buffer:
    import numpy as np

    from mor_ref.tensors import encode

    codes = encode(
        bits.view(np.float32),
        case.fmt,
        rounding=case.rounding,
        overflow=case.overflow,
        threads=threads,
    )
    return codes.astype(codes.dtype.newbyteorder("<"), copy=False).data.cast("B")


def exact_chunks(case: Case) -> Iterator[bytes]:
    """The exact codes of each chunk of inputs."""
    ends = runs(case)
    for chunk in range(CHUNKS):
        yield exact_codes(case, ends, range(chunk * CHUNK, (chunk + 1) * CHUNK))


def exact_codes(case: Case, ends: list[Run], inputs: range) -> bytes:
    """The codes of consecutive inputs, written out from the runs."""
    width = -(-case.fmt.bits // 8)
    here = bisect.bisect_right(ends, inputs.start, key=lambda run: run.first) - 1
    parts, start = [], inputs.start
    while start < inputs.stop:
        after = ends[here + 1].first if here + 1 < len(ends) else inputs.stop
        stop = min(after, inputs.stop)
        parts.append(ends[here].code.to_bytes(width, "little") * (stop - start))
        here, start = here + 1, stop
    return b"".join(parts)


def runs(case: Case) -> list[Run]:
    """The runs of equal codes over all inputs, in ascending order of the inputs' bits."""
    special = SpecialCases(overflow=case.overflow)

    @functools.cache
    def code_of(bits: int) -> int:
        (x,) = struct.unpack("<f", struct.pack("<I", bits))
        return exact.encode(x, case.fmt, case.rounding, special)

    def ends_between(low: int, high: int) -> Iterator[int]:
        """The inputs in (low, high] whose code differs from that of the input before."""
        if code_of(low) == code_of(high):
            return
        if high - low == 1:
            yield high
            return
        middle = (low + high) // 2
        yield from ends_between(low, middle)
        yield from ends_between(middle, high)

    found = [Run(0, code_of(0))]
    for sign in (0, _NEGATIVE):
        infinity = sign | _INFINITY
        finite_ends = ends_between(sign, infinity - 1)
        # Any NaN stands for all of a sign: a payload is not looked at.
        for first in itertools.chain((sign,), finite_ends, (infinity, infinity + 1)):
            if code_of(first) != found[-1].code:
                found.append(Run(first, code_of(first)))
    return found


def describe_difference(case: Case, found: Digest, kept: Digest) -> str:
    """One sentence on the first input whose code is not the exact one."""
    chunk = found.first_difference(kept) or 0
    inputs = range(chunk * CHUNK, (chunk + 1) * CHUNK)
    ours, theirs = engine_codes(case, inputs), exact_codes(case, runs(case), inputs)
    width = -(-case.fmt.bits // 8)
    at = next(
        (i for i, pair in enumerate(zip(ours, theirs, strict=True)) if len(set(pair)) > 1), None
    )
    if at is None:
        return f"differs from the kept digest in chunk {chunk}, where engine and exact model agree"
    element = at // width
    codes = [
        int.from_bytes(side[element * width : (element + 1) * width], "little")
        for side in (ours, theirs)
    ]
    return (
        f"differs from the kept digest, first at input 0x{inputs.start + element:08x}: "
        f"the engine gives {codes[0]:#x}, the exact model {codes[1]:#x}"
    )


# ---------------------------------------------------------------------- kept digests


def kept_digests(path: Path | None = None) -> dict[str, Digest]:
    """The digests that are kept with the package, by the name of their case."""
    text = (path or kept_files() / "exhaustive.json").read_text(encoding="ascii")
    return {
        name: Digest(entry["sha256"], tuple(int(crc, 16) for crc in entry["crc32"].split()))
        for name, entry in json.loads(text).items()
    }


def as_json(digests: dict[str, Digest]) -> str:
    """The digests as the text of a file, the same on every machine."""
    entries = {
        name: {"sha256": digest.sha256, "crc32": " ".join(f"{crc:08x}" for crc in digest.crc32)}
        for name, digest in sorted(digests.items())
    }
    return json.dumps(entries, indent=1) + "\n"


def kept_cases() -> list[Case]:
    """The cases whose digests are kept: every format of 16 bits or fewer."""
    return [
        Case(fmt, rounding, overflow)
        for fmt in formats.values()
        if fmt.bits <= 16
        for rounding in (POWER_OF_TWO_ROUNDINGS if fmt.is_power_of_two else DETERMINISTIC_ROUNDINGS)
        for overflow in OVERFLOWS
    ]


def expected_digest(case: Case) -> Digest:
    """The digest that the exact model asks for."""
    return digest_of(exact_chunks(case))


def make(path: Path, executor: Executor) -> None:
    """Write the digests of all kept cases, from the exact model alone; it takes an hour."""
    from mor_ref.golden.files import write_whole

    cases = kept_cases()
    digests = zip(cases, executor.map(expected_digest, cases), strict=True)
    text = as_json({case.name: digest for case, digest in digests})
    write_whole(path, text.encode("ascii"))


if __name__ == "__main__":
    with processes() as executor:
        make(Path(sys.argv[1]), executor)
