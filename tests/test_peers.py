"""Encoders that no one here wrote: each has its profile's codes on all 16-bit inputs and edges."""

import itertools
import math

import ml_dtypes
import numpy as np
import pytest
from extras import imported, needs
from inputs import ALL_BF16, ALL_F16, as_float64, differences, edges
from test_format import ML_DTYPES

import mor_ref
from mor_ref import formats
from mor_ref.definitions.formats import encoding_profiles


def bits_of(array):
    return array.view(f"u{array.dtype.itemsize}")


# ---------------------------------------------------------------------- ml_dtypes


@pytest.mark.tier("full", but=["[e4m3]", "[e8m0]", "[bf16]"])
@pytest.mark.parametrize("name", encoding_profiles["ml_dtypes"])
def test_ml_dtypes(name):
    """ENC-016: from the sources that ml_dtypes rounds once; bfloat16 to itself rounds nothing."""
    fmt = formats[name]
    for x in (ALL_BF16, ALL_F16, edges(fmt, np.float32))[name == "bf16" :]:
        with np.errstate(all="ignore"):
            theirs = bits_of(x.astype(ML_DTYPES[name]))
        ours = mor_ref.encode(x, fmt, profile="ml_dtypes")
        assert differences(x, ours, theirs.tolist()) == [], x.dtype


def as_ml_dtypes_by_value(x):
    """Return the codes of ml_dtypes in e8m0, but those of the cases in which it is by the rules.

    Magnitudes are encoded; 0 and what is below the smallest tie have code 0, and what it has no
    code for, but NaN, is the largest number.
    """
    magnitudes = np.abs(x)
    with np.errstate(all="ignore"):
        codes = magnitudes.astype(ml_dtypes.float8_e8m0fnu).view(np.uint8)
    codes[(codes == 0xFF) & ~np.isnan(x)] = 0xFE
    codes[magnitudes < np.float32(1.5 * 2.0**-127)] = 0
    return codes


def test_powers_of_two_to_nearest_as_ml_dtypes():
    """ENC-013, ENC-014, ENC-016."""
    for x in (ALL_BF16, ALL_F16, edges(formats["e8m0"], np.float32)):
        ours = mor_ref.encode(x, "e8m0", rounding="rne")
        assert differences(x, ours, as_ml_dtypes_by_value(x.astype(np.float32)).tolist()) == []
        with np.errstate(all="ignore"):
            theirs = bits_of(x.astype(ml_dtypes.float8_e8m0fnu))
        ours = mor_ref.encode(x, "e8m0", rounding="rne", profile="ml_dtypes")
        assert differences(x, ours, theirs.tolist()) == []


@pytest.mark.tier("exhaustive")
def test_all_inputs_to_nearest_powers_of_two_as_ml_dtypes():
    """ENC-013, ENC-014, ENC-016: all 2^32 inputs."""
    for first in range(0, 1 << 32, 1 << 24):
        x = np.arange(first, first + (1 << 24), dtype=np.uint32).view(np.float32)
        ours = mor_ref.encode(x, "e8m0", rounding="rne")
        np.testing.assert_array_equal(ours, as_ml_dtypes_by_value(x))
        with np.errstate(all="ignore"):
            theirs = bits_of(x.astype(ml_dtypes.float8_e8m0fnu))
        ours = mor_ref.encode(x, "e8m0", rounding="rne", profile="ml_dtypes")
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.tier("full", but=["[e4m3]"])
@pytest.mark.parametrize("name", encoding_profiles["ml_dtypes"])
def test_ml_dtypes_rounds_a_float64_twice(name):
    """ENC-001: which we do not; what it does is to round to float32 first."""
    fmt = formats[name]
    x = edges(fmt, np.float64)
    with np.errstate(all="ignore"):
        theirs = bits_of(x.astype(ML_DTYPES[name]))
        twice = mor_ref.encode(x.astype(np.float32), fmt, profile="ml_dtypes")
    assert differences(x, twice, theirs.tolist()) == []
    assert differences(x, mor_ref.encode(x, fmt, profile="ml_dtypes"), theirs.tolist()) != []


@pytest.mark.parametrize("name", [name for name in ML_DTYPES if name != "f16"])
def test_decoding_as_ml_dtypes(name):
    """DEC-001."""
    fmt = formats[name]
    codes = np.arange(fmt.code_count).astype(f"u{np.dtype(ML_DTYPES[name]).itemsize}")
    with np.errstate(all="ignore"):
        theirs = codes.view(ML_DTYPES[name]).astype(np.float32)
    ours = mor_ref.decode(codes, fmt)
    both = bits_of(ours), np.where(np.isnan(theirs), 0x7FFFFFFF, bits_of(theirs))
    assert differences(codes, both[0], both[1].tolist()) == []


def test_float16_as_numpy_but_for_nan():
    """ENC-007: NumPy keeps NaN payloads, and so has no profile."""
    for x in (ALL_BF16, edges(formats["f16"], np.float32), edges(formats["f16"], np.float64)):
        with np.errstate(all="ignore"):
            theirs = bits_of(x.astype(np.float16))
        ours = mor_ref.encode(x, "f16", overflow="ieee")
        is_nan = np.isnan(as_float64(x))
        assert differences(x[~is_nan], ours[~is_nan], theirs[~is_nan].tolist()) == []


# ---------------------------------------------------------------------- torch

TORCH = {
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "e8m0": "float8_e8m0fnu",
    "e4m3fnuz": "float8_e4m3fnuz",
    "e5m2fnuz": "float8_e5m2fnuz",
}


@needs("torch")
@pytest.mark.parametrize("name", encoding_profiles["torch"])
def test_torch(name):
    """ENC-016: from the sources that torch rounds once; a float64 it rounds to float32 first."""
    torch = imported("torch")
    fmt, dtype = formats[name], getattr(torch, TORCH[name])
    bf16 = torch.from_numpy(ALL_BF16.view(np.int16)).view(torch.bfloat16)
    for x in (bf16, torch.from_numpy(ALL_F16), torch.from_numpy(edges(fmt, np.float32))):
        theirs = x.to(dtype).view(torch.uint8).numpy()
        ours = mor_ref.encode(x, fmt, profile="torch")
        assert differences(x, ours, theirs.tolist()) == [], x.dtype


@needs("torch")
@pytest.mark.parametrize("name", encoding_profiles["torch"])
def test_decoding_as_torch(name):
    """DEC-001."""
    torch = imported("torch")
    codes = np.arange(256, dtype=np.uint8)
    theirs = torch.from_numpy(codes).view(getattr(torch, TORCH[name])).to(torch.float32).numpy()
    expected = np.where(np.isnan(theirs), 0x7FFFFFFF, bits_of(theirs))
    assert differences(codes, bits_of(mor_ref.decode(codes, name)), expected.tolist()) == []


@needs("torch")
def test_bfloat16_as_torch_but_for_nan():
    """ENC-007: which NaN torch stores depends on the place of the element, so it has no profile."""
    torch = imported("torch")
    x = edges(formats["bf16"], np.float32)
    x = x[~np.isnan(x)]
    theirs = torch.from_numpy(x).to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)
    assert differences(x, mor_ref.encode(x, "bf16", overflow="ieee"), theirs.tolist()) == []
    nans = torch.full((64,), math.nan)
    stored = nans.to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)
    assert set(stored.tolist()) <= {0x7FC0, 0x7FFF, 0xFFFF}


# ---------------------------------------------------------------------- gfloat

GFLOAT = {
    "e4m3": "format_info_ocp_e4m3",
    "e5m2": "format_info_ocp_e5m2",
    "e2m1": "format_info_ocp_e2m1",
    "e2m3": "format_info_ocp_e2m3",
    "e3m2": "format_info_ocp_e3m2",
    "bf16": "format_info_bfloat16",
    "f16": "format_info_binary16",
    "f32": "format_info_binary32",
}
GFLOAT_ROUNDINGS = {
    "rne": "TiesToEven",
    "rna": "TiesToAway",
    "rtz": "TowardZero",
    "rtp": "TowardPositive",
    "rtn": "TowardNegative",
}


@pytest.mark.tier("full", but=["-rne]"])
@pytest.mark.parametrize("rounding", GFLOAT_ROUNDINGS)
@pytest.mark.parametrize("name", GFLOAT)
def test_gfloat(name, rounding):
    """ENC-003, ENC-006, ENC-007: values, as gfloat has no codes for arrays; NaN aside."""
    gfloat, infos = imported("gfloat"), imported("gfloat.formats")
    fmt, info = formats[name], getattr(infos, GFLOAT[name])
    mode = getattr(gfloat.RoundMode, GFLOAT_ROUNDINGS[rounding])
    # It raises on an overflow of a format without infinity and NaN, if that is not to saturate.
    overflows = ("satfinite",) if fmt.specials == "none" else ("satfinite", "ieee")
    sources = (ALL_BF16, ALL_F16, edges(fmt, np.float32), edges(fmt, np.float64))
    for overflow, x in itertools.product(overflows, sources):
        x64 = as_float64(x)
        numbers = x64[~np.isnan(x64)]
        with np.errstate(all="ignore"):
            theirs = gfloat.round_ndarray(info, numbers, mode, sat=overflow == "satfinite")
        ours = mor_ref.decode(
            mor_ref.encode(numbers, fmt, rounding=rounding, overflow=overflow), fmt
        ).astype(np.float64)
        theirs, ours = (np.where(np.isnan(side), 1e99, side) for side in (theirs, ours))
        same = (theirs == ours) & (np.signbit(theirs) == np.signbit(ours))
        assert list(zip(numbers[~same], ours[~same], theirs[~same], strict=True))[:5] == []
