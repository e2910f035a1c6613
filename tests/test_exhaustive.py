"""All 2^32 float32 inputs: by digest in the exhaustive tier, by sample in every run."""

import struct
import zlib

import pytest
from inputs import SMALL, by_name

from mor_ref import exact, formats
from mor_ref.conventions import OVERFLOWS, SpecialCases
from mor_ref.golden import exhaustive
from mor_ref.golden.exhaustive import CHUNK, Case

IEEE = SpecialCases(overflow="ieee")
SMALL_CASES = [
    Case(fmt, "rtp" if fmt.is_power_of_two else "rne", overflow)
    for fmt in SMALL
    for overflow in OVERFLOWS
]


@pytest.mark.tier("exhaustive")
@pytest.mark.parametrize("case", SMALL_CASES, ids=lambda case: case.name)
def test_all_inputs_of_every_small_format(case):
    """ENC-001 to ENC-015: the engine's codes have the digest of the exact model's."""
    digest = exhaustive.digest_of(exhaustive.engine_chunks(case))
    assert digest == exhaustive.kept_digests()[case.name]


@pytest.mark.parametrize("fmt", SMALL, ids=by_name)
def test_a_chunk_with_many_codes_has_the_kept_checksum(fmt):
    """The kept digests, the exact model and the engine, on 2^24 inputs from 0.5 on."""
    kept = exhaustive.kept_digests()
    for overflow in OVERFLOWS:
        case = Case(fmt, "rtp" if fmt.is_power_of_two else "rne", overflow)
        inputs = range(0x3F * CHUNK, 0x40 * CHUNK)
        codes = exhaustive.engine_codes(case, inputs)
        assert zlib.crc32(codes) == kept[case.name].crc32[0x3F]
        assert codes == exhaustive.exact_codes(case, exhaustive.runs(case), inputs)


def test_digests_are_kept_for_every_case():
    names = [case.name for case in exhaustive.kept_cases()]
    kept = exhaustive.kept_digests()
    assert set(names) ^ set(kept) == set(), "make digests"
    assert all(len(digest.crc32) == exhaustive.CHUNKS for digest in kept.values())
    assert exhaustive.as_json(kept) == (exhaustive.kept_files() / "exhaustive.json").read_text()


def test_the_runs_are_those_of_every_single_input():
    """Bisection rests on rounding being monotonic: around a few ends, look at every input."""
    for name, rounding in (("e4m3", "rne"), ("e2m1", "rto"), ("int8_mx", "rtn"), ("e8m0", "rna")):
        case = Case(formats[name], rounding, "ieee")
        found = exhaustive.runs(case)
        for run in found[:: max(1, len(found) // 8)]:
            window = range(max(0, run.first - 500), min(run.first + 500, 1 << 32))
            singly = [exact.encode(float32(bits), case.fmt, rounding, IEEE) for bits in window]
            assert list(exhaustive.exact_codes(case, found, window)) == singly


def float32(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]
