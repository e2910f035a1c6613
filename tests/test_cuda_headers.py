"""NVIDIA's own conversions, compiled for the CPU from the headers of its runtime wheel."""

import ctypes
import importlib.util
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from extras import reason
from inputs import ALL_BF16, ALL_F16, as_float64, differences, edges
from kernels import tensors
from kernels.suites import Schedule

import mor_ref
from mor_ref import formats
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.formats import encoding_profiles
from mor_ref.golden.all_inputs.digests import CHUNK, CHUNKS

SOURCE = Path(__file__).with_name("cuda_headers.cpp")
CASES = [
    "e4m3 satfinite rne",
    "e4m3 ieee rne",
    "e5m2 satfinite rne",
    "e5m2 ieee rne",
    "e2m3 satfinite rne",
    "e3m2 satfinite rne",
    "e2m1 satfinite rne",
    "e8m0 satfinite rtp",
    "e8m0 satfinite rtz",
    "e8m0 ieee rtp",
    "e8m0 ieee rtz",
    "bf16 ieee rne",
    "f16 ieee rne",
]


@pytest.fixture(scope="module")
def headers(tmp_path_factory):
    """Compile the conversions of the headers."""
    nvidia = importlib.util.find_spec("nvidia")
    places = [Path(place) for place in nvidia.submodule_search_locations] if nvidia else []
    includes = [found.parent for place in places for found in place.rglob("cuda_fp4.h")]
    compiler = shutil.which("g++") or shutil.which("c++")
    if not includes or not compiler:
        pytest.skip(reason("g++" if includes else "nvidia"))
    library = tmp_path_factory.mktemp("cuda_headers") / "conversions.so"
    subprocess.run(
        [compiler, "-O2", "-shared", "-fPIC", "-I", includes[0], SOURCE, "-o", library], check=True
    )
    return ctypes.CDLL(str(library))


def converted(library, case, x):
    """Return the codes of NVIDIA's conversion."""
    codes = np.empty(x.size, np.uint16)
    function = getattr(library, f"{case.replace(' ', '_')}_f{x.dtype.itemsize * 8}")
    function(x.ctypes.data_as(ctypes.c_void_p), codes.ctypes.data_as(ctypes.c_void_p), x.size)
    return codes.tolist()


@pytest.mark.tier("full", but_one_in=10)
@pytest.mark.parametrize("case", CASES)
def test_host_conversions(headers, case):
    """ENC-001 to ENC-014: from float32 and from float64, on all 16-bit inputs and all edges.

    The conversion of a float64 to 8 bits has other NaNs than that of a float32 and the hardware:
    it keeps the sign, and returns 0x7E in e5m2.
    """
    name, overflow, rounding = case.split()
    fmt = formats[name]
    every = np.concatenate([as_float64(ALL_BF16), as_float64(ALL_F16), edges(fmt, np.float64)])
    doubles = every[~np.isnan(every)] if name in ("e4m3", "e5m2") else every
    for x in (as_float32(every), edges(fmt, np.float32), doubles):
        ours = mor_ref.encode(x, fmt, overflow=overflow, rounding=rounding)
        assert differences(x, ours, converted(headers, case, np.ascontiguousarray(x))) == []


@pytest.mark.parametrize("name", [name for name in encoding_profiles["cuda"] if name != "f32"])
def test_the_preset(headers, name):
    """ENC-016: what CUDA's headers do by default, or where they offer nothing else."""
    fmt = formats[name]
    (case,) = (
        case
        for case in CASES
        if case.split()[0] == name
        and case.split()[1] == encoding_profiles["cuda"][name].overflow
        and case.split()[2] in ("rne", "rtp")
    )
    x = edges(fmt, np.float32)
    ours = mor_ref.encode(x, fmt, profile="cuda")
    assert differences(x, ours, converted(headers, case, x)) == []


def as_float32(x):
    with np.errstate(over="ignore", invalid="ignore"):
        return x.astype(np.float32)


# ---------------------------------------------------------------------- the kernels


def first_difference(library, chunk, case, of_kernel=None):
    """Return the first input of a chunk with another code in a kernel, and both codes."""
    name, overflow, rounding = (of_kernel or case).split()
    bits = np.arange(chunk * CHUNK, (chunk + 1) * CHUNK, dtype=np.uint32)
    x = tensors.Bits(bits, "f32")
    # In one block, whose threads have long loops: most of the time is that of the encoder.
    device, special = Schedule(blocks=1), SpecialCases(overflow=overflow)
    ours = tensors.encoded(device, x, formats[name], rounding, special)
    theirs = np.empty(CHUNK, np.uint16)
    function = getattr(library, f"{case.replace(' ', '_')}_f32")
    function(*(ctypes.c_void_p(array.ctypes.data) for array in (bits, theirs)), CHUNK)
    wrong = np.flatnonzero(ours != theirs)[:1]
    return [(hex(bits[at]), hex(ours[at]), hex(theirs[at])) for at in wrong]


@pytest.mark.tier("exhaustive")
@pytest.mark.parametrize("case", CASES)
def test_all_inputs_through_the_kernels(headers, case):
    """ENC-001 to ENC-014: the codes of all 2^32 numbers."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda chunk: first_difference(headers, chunk, case), range(CHUNKS))
        assert [difference for chunk in found for difference in chunk] == []


@pytest.mark.tier("full", but_one_in=24)
@pytest.mark.parametrize("case", CASES)
def test_a_chunk_with_many_codes_through_the_kernels(headers, case):
    assert first_difference(headers, 0x3F, case) == []


def test_a_difference_is_found(headers):
    """The first number that overflows: 448 is the largest, and a tie above it is 464."""
    case, other = "e4m3 ieee rne", "e4m3 satfinite rne"
    assert first_difference(headers, 0x43, case, other) == [("0x43e80001", "0x7e", "0x7f")]
