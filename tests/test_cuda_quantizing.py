"""Quantizing on a device: rounding by one addition, tables of values, and sums in 32 bits."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from inputs import edges
from kernels import needed
from kernels.suites import Schedule
from kernels.tensors import Bits, bits, encoded

from mor_ref import Format, formats
from mor_ref.cuda import decoding, quantization
from mor_ref.cuda.host import Host
from mor_ref.definitions.blocks import partition
from mor_ref.golden.all_inputs.digests import CHUNK, CHUNKS

EXTREME = [
    Format("highest", exponent_bits=4, mantissa_bits=3, bias=-112, specials="none"),
    Format("highest_ieee", exponent_bits=5, mantissa_bits=2, bias=-97),
    Format("lowest", exponent_bits=4, mantissa_bits=3, bias=127, specials="fn"),
    Format("widest", exponent_bits=6, mantissa_bits=1, bias=-64, specials="fnuz"),
    Format("many_bits", exponent_bits=1, mantissa_bits=6, bias=1, specials="fnuz"),
    Format("int5", exponent_bits=0, mantissa_bits=4, bias=20, specials="none",
           sign="twos-complement"),
    Format("high_int8", exponent_bits=0, mantissa_bits=7, bias=-120, specials="none",
           sign="twos-complement"),
]  # fmt: skip
SCALED = [fmt for fmt in formats.values() if fmt.bits <= 8 and fmt.sign != "none"]


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    needed.compiler()


@pytest.mark.parametrize("fmt", [*SCALED, *EXTREME], ids=lambda fmt: fmt.name)
def test_one_addition_rounds_as_the_encoder_does(fmt):
    """ENC-002 to ENC-012 under rne, satfinite and canonical, and DEC-001 to DEC-003."""
    device, random = Host(), np.random.default_rng(8)
    x = np.concatenate([
        edges(fmt, np.float32),
        random.integers(0, 1 << 32, 5000, dtype=np.uint32).view(np.float32),
        np.float32([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45]),
    ]).astype(np.float32)  # fmt: skip
    ones = np.full(x.shape, np.float32(1).view(np.uint32))
    found = quantization.quantize_steps(device, fmt, x.view(np.uint32), ones)
    expected = encoded(device, bits(x), fmt)
    np.testing.assert_array_equal(found["code"], expected)
    np.testing.assert_array_equal(found["y"], decoding.decode(device, expected, fmt))


@pytest.mark.parametrize("block", [(4, 16), (8, 32), (64, 512)], ids=str)
def test_a_table_of_values_is_as_good_as_a_division(block):
    """QNT-001 and QNT-002: teams of every size give the same y, that of a step."""
    device, fmt = Host(), formats["e4m3"]
    x = np.random.default_rng(9).standard_normal((128, 1024)).astype(np.float32)
    parts = partition(x.shape, block)
    found = quantization.quantize(device, bits(x), fmt, "gam", parts)
    scale = np.repeat(np.repeat(found.scales.scale, block[0], 0), block[1], 1)
    steps = quantization.quantize_steps(
        device, fmt, x.view(np.uint32).ravel(), np.ascontiguousarray(scale).ravel()
    )
    np.testing.assert_array_equal(found.codes.ravel(), steps["code"])
    y = quantization.dequantize(device, found, fmt, parts)
    np.testing.assert_array_equal(y.ravel(), steps["y"])


@pytest.mark.parametrize(
    "shape",
    [(1, 1 << 15), (1, (1 << 15) + 1), (1, 65), (20_001, 1), (5461, 3), (4, 4097), (129, 127)],
    ids=str,
)
@pytest.mark.parametrize("cut", [(1 << 20, 1 << 20), (31, 33), (8, 8)], ids=str)
def test_the_largest_sums_fit(shape, cut):
    """ERR-002: every element has an error of 1, and 32 bits are enough for those of a thread."""
    x = np.full(shape, 2.0**-40, np.float32)
    x[:: cut[0], :: cut[1]] = 1.0
    parts = partition(shape, cut)
    error = quantization.quantize(Host(), bits(x), formats["e2m1"], "e8m0", parts).error
    assert error.nonzero.sum() == x.size
    alone = np.count_nonzero(x == 1.0)
    np.testing.assert_array_equal(error.sum, (error.nonzero - np.uint64(1)) << np.uint64(23))
    assert error.nonzero.size == alone


# ---------------------------------------------------------------------- all inputs

OF_HARDWARE = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "int8_mx")


def differences_in(chunk, name):
    """Return how many inputs of a chunk have other codes by one addition than by the encoder."""
    device = Schedule(blocks=1)  # whose threads have long loops: most of the time is theirs
    x = np.arange(chunk * CHUNK, (chunk + 1) * CHUNK, dtype=np.uint32)
    ones = np.full(CHUNK, np.float32(1).view(np.uint32))
    found = quantization.quantize_steps(device, formats[name], x, ones)["code"]
    return int(np.count_nonzero(found != encoded(device, Bits(x, "f32"), formats[name])))


@pytest.mark.tier("full")
@pytest.mark.parametrize("chunk", [0x3F, 0xBF])
def test_a_chunk_with_many_codes_by_one_addition(chunk):
    assert differences_in(chunk, "e4m3") == 0


@pytest.mark.tier("exhaustive")
@pytest.mark.parametrize("name", OF_HARDWARE)
def test_all_inputs_by_one_addition(name):
    """ENC-002 to ENC-012: the codes of all 2^32 numbers, as the encoder has them."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        assert sum(pool.map(lambda chunk: differences_in(chunk, name), range(CHUNKS))) == 0
