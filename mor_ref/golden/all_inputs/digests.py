"""Digests of the codes of all 2^32 binary32 inputs.

The inputs are taken in ascending order of their bits, in 256 chunks of 2^24. A code is written in
the smallest whole number of bytes, lowest byte first. A digest is the SHA-256 of all codes and
the CRC-32 of each chunk.

The expected digests come from `mor_ref.exact` alone. Rounding is monotonic, so that the codes of
ascending magnitudes form runs: `runs` finds the ends of each by bisection, and the codes of a chunk
are the runs written out. Stochastic rounding is monotonic as well if all inputs have one random
word. There are too many words to bundle a digest for each: the exact model makes it on demand.
"""

import base64
import bisect
import functools
import hashlib
import itertools
import json
import re
import struct
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from mor_ref import exact
from mor_ref.argument_checks import whole_number
from mor_ref.definitions.encoding import (
    DETERMINISTIC_ROUNDINGS,
    OVERFLOWS,
    POWER_OF_TWO_ROUNDINGS,
    Overflow,
    Rounding,
    SpecialCases,
    takes_random_bits,
)
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.golden import bundled_files
from mor_ref.golden.store.manifest import DIGESTS, MANIFEST, read_manifest
from mor_ref.golden.store.suite_files import write_manifest
from mor_ref.whole_files import write_whole
from mor_ref.workers.pools import Workers, processes

CHUNK = 1 << 24
CHUNKS = 256
MOST_BITS = 16  # of a format: those of 32 have as many runs as there are inputs
_INFINITY = 0x7F800000
_NEGATIVE = 0x80000000

Buffer = bytes | memoryview
OnChunk = Callable[[int], None]


class RandomWord(NamedTuple):
    """The random bits of sr, which are the same for every input: a word below 2^n."""

    word: int
    n: int


class Case(NamedTuple):
    """An encoding of all inputs: a format, a rounding and an overflow."""

    fmt: Format
    rounding: Rounding
    overflow: Overflow
    random: RandomWord | None = None  # none but under sr

    @property
    def name(self) -> str:
        """The name of the case in the bundled digests; with sr, which has none, and its word."""
        name = f"{self.fmt.name} {self.rounding} {self.overflow}"
        if self.random is None:
            return name
        return f"{name}, random word {self.random.word:#x} of {self.random.n} bits"

    @property
    def is_made_when_asked(self) -> bool:
        """Whether the expected codes are computed each time, as no digest can be bundled."""
        return self.random is not None and self.fmt.bits <= MOST_BITS


def random_word_for(
    rounding: Rounding, random_word: int | None, n_random_bits: int | None
) -> RandomWord | None:
    """Return the random bits that a rounding takes: None for all roundings but sr."""
    if not takes_random_bits(rounding, random_word=random_word, n_random_bits=n_random_bits):
        return None
    n = whole_number("n_random_bits", n_random_bits, 1, 32)
    return RandomWord(whole_number("random_word", random_word, 0, (1 << n) - 1), n)


@dataclass(frozen=True)
class Digest:
    """The SHA-256 of the codes of all inputs, and the CRC-32 of each chunk."""

    sha256: str
    crc32: tuple[int, ...]

    def first_difference(self, other: "Digest") -> int | None:
        """Return the first chunk in which the two differ, or None if they are the same."""
        if self == other:
            return None
        pairs = zip(self.crc32, other.crc32, strict=True)
        return next((chunk for chunk, (ours, theirs) in enumerate(pairs) if ours != theirs), 0)


class Run(NamedTuple):
    """Inputs from `first` up to the next run's, which all have one code."""

    first: int
    code: int


def digest_of(chunks: Iterable[Buffer], on_chunk: OnChunk = lambda _: None) -> Digest:
    """Return the digest of the codes in `chunks`; hash one while the next is made."""
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


def inputs_of(chunk: int) -> range:
    """Return the inputs of a chunk, as their bits."""
    return range(chunk * CHUNK, (chunk + 1) * CHUNK)


def exact_chunks(case: Case, chunks: range | None = None) -> Iterator[bytes]:
    """Yield the exact codes of each of these chunks of inputs, or of all."""
    ends = runs(case)
    for chunk in range(CHUNKS) if chunks is None else chunks:
        yield exact_codes(case, ends, inputs_of(chunk))


def exact_codes(case: Case, ends: list[Run], inputs: range) -> bytes:
    """Return the codes of consecutive inputs, written out from the runs."""
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
    """Return the runs of equal codes over all inputs, in ascending order of the inputs' bits."""
    special = SpecialCases(overflow=case.overflow)
    random = (
        {"random_word": case.random.word, "n_random_bits": case.random.n} if case.random else {}
    )

    @functools.cache
    def code_of(bits: int) -> int:
        (x,) = struct.unpack("<f", struct.pack("<I", bits))
        return exact.encode(x, case.fmt, case.rounding, special, **random)

    def ends_between(low: int, high: int) -> Iterator[int]:
        """Yield the inputs in (low, high] whose code differs from that of the input before."""
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


# ---------------------------------------------------------------------- bundled digests

_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, RecursionError, struct.error)


def bundled_digests(path: Path | None = None) -> dict[str, Digest]:
    """Return the digests that are bundled with the package, by the name of their case."""
    return digests_in((path or bundled_files() / DIGESTS).read_bytes())


def digests_in(content: bytes) -> dict[str, Digest]:
    """Return the digests in the content of a file, or raise a ValueError that says why not."""
    try:
        found = {
            name: Digest(entry["sha256"], _words_in(entry["crc32"]))
            for name, entry in json.loads(content).items()
        }
    except _UNREADABLE as error:
        raise ValueError("it is not JSON with a sha256 and a crc32 for each case") from error
    for name, digest in found.items():
        if not isinstance(digest.sha256, str) or not re.fullmatch("[0-9a-f]{64}", digest.sha256):
            raise ValueError(f"the sha256 of {name[:100]!a} is not of 64 digits")
        if len(digest.crc32) != CHUNKS:
            raise ValueError(f"the crc32 of {name[:100]!a} is not of {CHUNKS} chunks")
    if as_json(found).encode("ascii") != content:
        raise ValueError("it is written otherwise than here")
    return found


def _words_in(text: str) -> tuple[int, ...]:
    content = base64.b64decode(text, validate=True)
    return struct.unpack(f"<{len(content) // 4}I", content)


def _as_base64(words: tuple[int, ...]) -> str:
    return base64.b64encode(struct.pack(f"<{len(words)}I", *words)).decode("ascii")


def as_json(digests: dict[str, Digest]) -> str:
    """Return the digests as the text of a file, the same on every machine."""
    entries = {
        name: {"sha256": digest.sha256, "crc32": _as_base64(digest.crc32)}
        for name, digest in sorted(digests.items())
    }
    return json.dumps(entries, indent=1) + "\n"


def digested_cases() -> list[Case]:
    """Return the cases that a release has digests of: every built-in format of up to 16 bits."""
    return [
        Case(fmt, rounding, overflow)
        for fmt in map(formats.__getitem__, formats.specified)
        if fmt.bits <= MOST_BITS
        for rounding in (POWER_OF_TWO_ROUNDINGS if fmt.is_power_of_two else DETERMINISTIC_ROUNDINGS)
        for overflow in OVERFLOWS
    ]


def expected_digest(case: Case) -> Digest:
    """Return the digest of the codes of the exact model."""
    return digest_of(exact_chunks(case))


def make(path: Path, workers: Workers) -> None:
    """Write the digests of all these cases, from the exact model alone; it takes an hour.

    A manifest next to them is brought up to date.
    """
    cases = digested_cases()
    digests = workers.in_order(expected_digest, [(case,) for case in cases])
    text = as_json({case.name: digest for case, digest in zip(cases, digests, strict=True)})
    write_whole(path, text.encode("ascii"))
    if (path.parent / MANIFEST).exists():
        manifest = read_manifest(path.parent)
        write_manifest(path.parent, manifest["suites"], manifest["made_with"])


if __name__ == "__main__":
    make(Path(sys.argv[1]), processes())
