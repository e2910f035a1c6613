"""NVIDIA's own conversions, compiled for the CPU from the headers of its runtime wheel."""

import ctypes
import importlib.util
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from inputs import ALL_BF16, ALL_F16, as_float64, differences, edges

import mor_ref
from mor_ref import formats
from mor_ref.catalogue import presets

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
    """The compiled conversions."""
    nvidia = importlib.util.find_spec("nvidia")
    places = [Path(place) for place in nvidia.submodule_search_locations] if nvidia else []
    includes = [found.parent for place in places for found in place.rglob("cuda_fp4.h")]
    compiler = shutil.which("g++") or shutil.which("c++")
    if not includes or not compiler:
        pytest.skip("needs a C++ compiler and the wheels of the peers extra")
    library = tmp_path_factory.mktemp("cuda_headers") / "conversions.so"
    subprocess.run(
        [compiler, "-O1", "-shared", "-fPIC", "-I", includes[0], SOURCE, "-o", library], check=True
    )
    return ctypes.CDLL(str(library))


def converted(library, case, x):
    """The codes that NVIDIA's conversion gives."""
    codes = np.empty(x.size, np.uint16)
    function = getattr(library, f"{case.replace(' ', '_')}_f{x.dtype.itemsize * 8}")
    function(x.ctypes.data_as(ctypes.c_void_p), codes.ctypes.data_as(ctypes.c_void_p), x.size)
    return codes.tolist()


@pytest.mark.parametrize("case", CASES)
def test_host_conversions(headers, case):
    """ENC-001 to ENC-014: from float32 and from float64, on all 16-bit inputs and all edges.

    The conversion of a float64 to 8 bits has other NaNs than that of a float32 and the hardware:
    it keeps the sign, and gives 0x7E in e5m2.
    """
    name, overflow, rounding = case.split()
    fmt = formats[name]
    every = np.concatenate([as_float64(ALL_BF16), as_float64(ALL_F16), edges(fmt, np.float64)])
    doubles = every[~np.isnan(every)] if name in ("e4m3", "e5m2") else every
    for x in (as_float32(every), edges(fmt, np.float32), doubles):
        ours = mor_ref.encode(x, fmt, overflow=overflow, rounding=rounding)
        assert differences(x, ours, converted(headers, case, np.ascontiguousarray(x))) == []


@pytest.mark.parametrize("name", [name for name in presets["cuda"] if name != "f32"])
def test_the_preset(headers, name):
    """ENC-016: what CUDA's headers do by default, or where they offer nothing else."""
    fmt = formats[name]
    (case,) = (
        case
        for case in CASES
        if case.split()[0] == name
        and case.split()[1] == presets["cuda"][name].overflow
        and case.split()[2] in ("rne", "rtp")
    )
    x = edges(fmt, np.float32)
    ours = mor_ref.encode(x, fmt, preset="cuda")
    assert differences(x, ours, converted(headers, case, x)) == []


def as_float32(x):
    with np.errstate(over="ignore", invalid="ignore"):
        return x.astype(np.float32)
