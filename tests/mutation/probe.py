"""A quick pass over every step of the engine: what a mutant has to survive.

The same comparisons as in the test suite, on fewer inputs and with few compilations, so that
hundreds of mutants can be tried. It is no part of the suite.
"""

import ml_dtypes
import numpy as np
import pytest
from inputs import ALL, differences, edges, exact_codes, roundings_of
from test_encoding import SMALL_NUMBERS, decisive_words, stochastic

import mor_ref
from mor_ref import Format, exact, formats
from mor_ref.definitions.encoding import OVERFLOWS, SpecialCases
from mor_ref.definitions.formats import presets

SMALL = [
    *(fmt for fmt in ALL if fmt.bits <= 8),
    Format("ue4m3", exponent_bits=4, mantissa_bits=3, bias=7, specials="fn", sign="none"),
    Format("e1m6", exponent_bits=1, mantissa_bits=6, bias=1, specials="fnuz"),
    Format(
        "int5", exponent_bits=0, mantissa_bits=4, bias=20, specials="none", sign="twos-complement"
    ),
    Format("tall", exponent_bits=3, mantissa_bits=2, bias=-20),
    Format("ue4m0", exponent_bits=4, mantissa_bits=0, bias=3, specials="none", sign="none"),
]
BLOCK = 64


def probes(fmt, dtype, most=160):
    x = edges(fmt, dtype)
    thinned = x[np.unique(np.linspace(0, x.size - 1, most).astype(int))]
    return np.concatenate([thinned, dtype([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0])])


def check(fmt, x):
    for rounding in roundings_of(fmt):
        for overflow in OVERFLOWS:
            for nan in ("canonical", "signed"):
                special = SpecialCases(overflow=overflow, nan=nan)
                found = mor_ref.encode(x, fmt, rounding=rounding, overflow=overflow, nan=nan)
                assert differences(x, found, exact_codes(x, fmt, rounding, special)) == []


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fmt", SMALL, ids=lambda fmt: fmt.name)
def test_small(fmt, dtype):
    check(fmt, probes(fmt, dtype))


@pytest.mark.parametrize("preset", presets)
def test_presets(preset):
    for name, special in presets[preset].items():
        x = edges(formats[name], np.float32)[:4000]
        found = mor_ref.encode(x, name, preset=preset)
        assert differences(x, found, exact_codes(x, formats[name], special=special)) == []


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_stochastic(dtype):
    for fmt in SMALL:
        if fmt.is_power_of_two:
            continue
        x = np.concatenate([probes(fmt, dtype, 100), SMALL_NUMBERS.astype(dtype)])
        for n in (1, 8, 32):
            words = decisive_words(x, fmt, n)
            found = mor_ref.encode(x, fmt, rounding="sr", random_bits=words, n_random_bits=n)
            assert differences(x, found, stochastic(x, fmt, words, n)) == []


@pytest.mark.parametrize("name", ["bf16", "f16", "f32"])
def test_large(name):
    check(formats[name], probes(formats[name], np.float32))


def test_16_bit_sources_and_every_length_around_a_block():
    for dtype in (ml_dtypes.bfloat16, np.float16):
        for size in (1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5):
            x = np.linspace(-3, 3, size).astype(dtype)
            found = mor_ref.encode(x, "e4m3")
            assert differences(x, found, exact_codes(x, formats["e4m3"])) == []


@pytest.mark.parametrize("fmt", [*SMALL, formats["bf16"], formats["f16"]], ids=lambda fmt: fmt.name)
def test_decode(fmt):
    codes = np.unique(np.linspace(0, fmt.code_count - 1, 3000).astype(int))
    edge = [0, 1, fmt.largest_code, *(c for nans in fmt.nan_codes for c in (nans[0], nans[-1]))]
    codes = np.unique(np.concatenate([codes, edge, [fmt.infinity_code or 0, fmt.sign_bit]]))
    found = mor_ref.decode(codes, fmt).view(np.uint32)
    assert differences(codes, found, [exact.decode(code, fmt) for code in codes.tolist()]) == []
