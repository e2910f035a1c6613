"""The work of `mor-ref exhaustive`, on some chunks of the inputs: codes, SHA-256 and CRC-32."""

import numpy as np

from benchmarks.rows import OURS, Contender, Row, Whole
from mor_ref.golden.all_inputs.digests import (
    CHUNK,
    Case,
    bundled_digests,
    digest_of,
    digested_cases,
    inputs_of,
)
from mor_ref.verify.all_inputs.engine_codes import engine_codes

CHUNKS = range(0x3E, 0x42)  # from 0.125 up to 32
OPERATION = "exhaustive, 2^26 of 2^32, all threads"
FIRST = "e4m3 rne satfinite"


def inputs_of_chunks():
    """Return the inputs, only to count them: the digests make their own."""
    return np.arange(CHUNKS.start * CHUNK, CHUNKS.stop * CHUNK, dtype=np.uint32)


def digesting(case: Case) -> Contender:
    """Return our contender on all threads; its result is compared with the bundled digests."""

    def digest(_):
        return lambda: digest_of(engine_codes(case, inputs_of(chunk)) for chunk in CHUNKS)

    def kept():
        crc32 = bundled_digests()[case.name].crc32[CHUNKS.start : CHUNKS.stop]
        return (np.array(crc32, np.uint32),)

    def bits(found):
        return (np.array(found.crc32, np.uint32),)

    return Contender(digest, bits, kept, makes_numbers=True)


def all_cases():
    """Yield the row of all small formats, roundings without random bits and overflow modes."""
    cases = {case.name: digesting(case) for case in digested_cases() if case.fmt.bits <= 8}
    contenders = {OURS: cases.pop(FIRST)} | cases
    yield Row(OPERATION, inputs_of_chunks, contenders, (Whole(1 << 32, 15),), turns=2)


ROWS = [*all_cases()]
