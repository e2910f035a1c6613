"""The conversions of GPUs in kernels: where they are used, and that they change no result."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from inputs import ALL_BF16, ALL_F16, as_float64, edges
from kernels import needed, sources
from kernels.tensors import bits, encoded

from mor_ref import Format, exact, formats
from mor_ref.cuda import decoding, nvrtc, ptx, source
from mor_ref.cuda import structures as rows
from mor_ref.cuda.launching import Bits
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.golden.all_inputs.digests import CHUNK, CHUNKS
from mor_ref.ptx.device import PtxDevice, compiled

CONVERTED = ["e4m3", "e5m2", "e3m2", "e2m3", "e2m1"]
POWERS = {"rtp": "rp", "rtz": "rz"}
BYTES = CONVERTED[:2]  # of sm_89 and later; sm_100 and later have all
ARCHITECTURES = {
    "sm_80": [],
    "sm_89": BYTES,
    "sm_90": BYTES,
    "sm_100": CONVERTED,
    "sm_120": CONVERTED,
}


@pytest.fixture(scope="module", autouse=True)
def _compilers():
    needed.compiler()
    needed.library()


def opcodes(name):
    return {f"cvt.rn.satfinite.{name}x2.f32", f"cvt.rn.f16x2.{name}x2"}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_gpu_uses_the_conversions_that_it_has(architecture):
    there = {
        each
        for program in ("encoding", "decoding")
        for found in ptx.instructions(compiled(program, architecture)).values()
        for each in found
        if each.startswith("cvt") and "x2" in each
    }
    wanted = {each for name in ARCHITECTURES[architecture] for each in opcodes(name)}
    if wanted and "e2m1" in ARCHITECTURES[architecture]:
        wanted |= {f"cvt.{mode}.satfinite.ue8m0x2.f32" for mode in POWERS.values()}
    assert there == wanted


def test_only_rules_with_the_same_result_use_a_conversion():
    """To nearest, ties to even, with saturation and one NaN; a format may have another name."""
    for number, name in enumerate(CONVERTED, 1):
        fmt = formats[name]
        assert rows.encoding(fmt)["conversion"] == rows.nearest(fmt)["conversion"] == number
        assert rows.decoding(fmt)["conversion"] == number
        for rounding in ("rna", "rtz", "rtp", "rtn", "rto", "sr"):
            assert rows.encoding(fmt, rounding)["conversion"] == 0
        for special in (SpecialCases(nan="signed"), SpecialCases(nan=(1, 2))):
            assert rows.encoding(fmt, "rne", special)["conversion"] == 0
    assert rows.encoding(formats["e5m2"], "rne", SpecialCases(overflow="ieee"))["conversion"] == 0
    assert rows.encoding(formats["e4m3"], "rne", SpecialCases(overflow="ieee"))["conversion"] == 0
    mine = Format("mine", exponent_bits=4, mantissa_bits=3, bias=7, specials="fn")
    assert rows.nearest(mine)["conversion"] == 1
    other = Format("e4m3", exponent_bits=4, mantissa_bits=3, bias=8, specials="fn")
    assert rows.nearest(other)["conversion"] == 0
    e8m0 = formats["e8m0"]
    found = {mode: rows.power_encoding(e8m0, mode, SpecialCases())["conversion"] for mode in POWERS}
    assert found == {"rtp": 6, "rtz": 7}
    for rounding, special in (
        ("rne", SpecialCases()),
        ("rtp", SpecialCases(overflow="ieee")),
        ("rtp", SpecialCases(zero_code=1)),
        ("rtz", SpecialCases(negative_code=255)),
    ):
        assert rows.power_encoding(e8m0, rounding, special)["conversion"] == 0


def inputs(fmt):
    """Return numbers of each source, with all of the types of 16 bits."""
    near = edges(fmt, np.float32)
    specials = np.array([0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFC00000], np.uint32)
    yield bits(np.concatenate([near, specials.view(np.float32)]))
    yield Bits(np.arange(1 << 16, dtype=np.uint16), "bf16")
    yield Bits(np.arange(1 << 16, dtype=np.uint16), "f16")
    yield bits(edges(fmt, np.float64))


def wide(x):
    """Return the numbers of a source in binary64."""
    if x.source in ("bf16", "f16"):
        return as_float64(ALL_BF16 if x.source == "bf16" else ALL_F16)
    return as_float64(x.array.view(np.float64 if x.source == "f64" else np.float32))


def expected(x, fmt, rounding):
    """Return the codes of the exact model."""
    return [exact.encode(one, fmt, rounding) for one in wide(x).tolist()]


CASES = [(name, "rne") for name in CONVERTED] + [("e8m0", mode) for mode in POWERS]


@pytest.mark.tier("full", but=["[e4m3-rne]"])
@pytest.mark.parametrize(("name", "rounding"), CASES)
def test_codes_of_the_exact_model(name, rounding):
    """ENC-002 to ENC-014: at and next to all turning points, for all numbers of 16 bits."""
    fmt, device = formats[name], PtxDevice(architecture="sm_100")
    for x in inputs(fmt):
        np.testing.assert_array_equal(
            encoded(device, x, fmt, rounding), expected(x, fmt, rounding), err_msg=x.source
        )


@pytest.mark.tier("full")
@pytest.mark.parametrize("name", CONVERTED)
def test_numbers_of_all_codes(name):
    """DEC-001 to DEC-003; runs of 16 codes, and single ones."""
    fmt = formats[name]
    codes = np.arange(fmt.code_count, dtype=np.uint8)
    wanted = [exact.decode(code, fmt) for code in codes.tolist()]
    for architecture in ("sm_80", "sm_90", "sm_100"):
        device = PtxDevice(architecture=architecture)
        assert decoding.decode(device, codes, fmt).tolist() == wanted
        assert decoding.decode(device, codes[-3:].copy(), fmt).tolist() == wanted[-3:]


# ---------------------------------------------------------------------- faults

FAULTS = {
    "the codes of a pair change places": ('name "x2.f32 %0, %2, %1', 'name "x2.f32 %0, %1, %2'),
    "the wrong format": ('MOR_BYTES(OF_E4M3, "e4m3")', 'MOR_BYTES(OF_E4M3, "e5m2")'),
}


@pytest.mark.tier("full")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_conversion_is_found(fault, tmp_path, monkeypatch):
    old, new = FAULTS[fault]
    folder = sources.changed(tmp_path / "kernels", "conversions.cuh", old, new)
    text = source.flattened("encoding", folder)
    monkeypatch.setattr(source, "flattened", lambda _: text)
    compiled.cache_clear()
    fmt = formats["e4m3"]
    x = bits(edges(fmt, np.float32))
    found = encoded(PtxDevice(architecture="sm_90"), x, fmt)
    compiled.cache_clear()
    assert found.tolist() != expected(x, fmt, "rne")


# ---------------------------------------------------------------------- all inputs


@pytest.mark.tier("exhaustive")
@pytest.mark.parametrize(("name", "rounding"), CASES)
def test_all_inputs(name, rounding):
    """ENC-002 to ENC-014: 2^32 numbers by conversion, and written out for sm_80."""
    fmt = formats[name]
    new, old = (PtxDevice(architecture=one) for one in ("sm_100", "sm_80"))

    def is_same(chunk):
        x = Bits(np.arange(chunk * CHUNK, (chunk + 1) * CHUNK, dtype=np.uint32), "f32")
        return np.array_equal(*(encoded(device, x, fmt, rounding) for device in (new, old)))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        assert all(pool.map(is_same, range(CHUNKS)))


def test_the_newest_targets():
    assert [nvrtc.specific(one) for one in (75, 90, 100, 121)] == ["75", "90", "100a", "121a"]
