"""Random bits as the instructions of a GPU take them, against the exact model and PTX."""

import numpy as np
import pytest
from kernels import needed
from ptx_programs import program

import mor_ref
from mor_ref import exact, formats
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.formats import random_bits
from mor_ref.exact.encoding import random_words
from mor_ref.ptx import Module

ROWS = random_bits["cuda"]
SHARED = np.array(
    [0, 0xFFFFFFFF, 0x00010000, 0x80000001, 0x12345678, 0x00FF00FF, 0x0F0FA5A5, 0xFFFE0001],
    np.uint32,
)


def numbers(count):
    x = np.random.default_rng(5).normal(size=(count, 8)) * np.exp2(np.arange(-4, 4))
    return np.ascontiguousarray(x.T.reshape(8, count), np.float32)


@pytest.mark.parametrize("name", ROWS)
def test_codes_with_shared_words(name):
    """ENC-017: those of ENC-005 with the words of the exact model."""
    bits, fmt = ROWS[name], formats[name]
    x = numbers(len(bits.places))
    found = mor_ref.encode(
        x, name, rounding="sr", random_bits=SHARED[:, None], n_random_bits="cuda"
    )
    for row, codes, word in zip(x.tolist(), found.tolist(), SHARED.tolist(), strict=True):
        words = random_words(word, bits)
        assert codes == [
            exact.encode(
                value, fmt, "sr", SpecialCases(), random_word=own, n_random_bits=bits.count
            )
            for value, own in zip(row, words, strict=True)
        ]


def test_places_of_bits():
    """By hand: the lowest and the highest bit of a word, and the words of its elements."""
    wanted = {
        "bf16": ([1, 0], [0, 0x8000]),
        "f16": ([1, 0], [0, 0]),
        "e4m3": ([1, 0x8000, 0, 0], [0, 0, 0x8000, 1]),
        "e2m1": ([1, 0x8000, 0, 0], [0, 0, 0x8000, 1]),
    }
    for name, (of_lowest, of_highest) in wanted.items():
        assert random_words(1, ROWS[name]) == of_lowest
        assert random_words(1 << 31, ROWS[name]) == of_highest
    assert random_words(1 << 8, ROWS["e2m1"]) == [0, 0, 1, 0x8000]
    assert random_words(1 << 16, ROWS["e2m1"]) == [0x100, 0x80, 0, 0]


@pytest.mark.parametrize("name", ROWS)
def test_codes_of_the_instruction(name):
    """ENC-017: `cvt.rs` of PTX; its first operand is the last element in memory."""
    needed.compiler()
    count, bits = len(ROWS[name].places), formats[name].bits
    x = numbers(count)
    types = ("b32", *["f32"] * count, "b32")
    words = "" if count == 2 else ".satfinite"
    text = program(f"cvt.rs{words}.{name}x{count}.f32", types, vector=count == 4)
    arrays = [x[:, k].view(np.uint32).astype(np.uint64) for k in reversed(range(count))]
    out = np.zeros(8, np.uint64)
    Module(text, undefined="nearest")["run"][8, 1](out, *arrays, SHARED.astype(np.uint64))
    side = 8 if bits == 6 else bits
    codes = mor_ref.encode(
        x, name, rounding="sr", random_bits=SHARED[:, None], n_random_bits="cuda"
    )
    assert out.tolist() == [
        sum(code << side * k for k, code in enumerate(row)) for row in codes.tolist()
    ]


def test_refusals_of_shared_words():
    x, given = np.zeros((2, 8), np.float32), {"rounding": "sr", "n_random_bits": "cuda"}
    for array, fmt, words, message in (
        (x, "e8m0", SHARED[:1], "rounding is 'sr', which e8m0 does not admit"),
        (x, "int8_mx", SHARED[:1], "n_random_bits is 'cuda', which has no bits for the"),
        (x, "e4m3", SHARED[:4], r"random_bits has shape \(4,\), but 4 elements .* give \(2, 2\)"),
        (x[:, :6], "e4m3", SHARED[:4], "give a multiple of 4 in the last dimension of x"),
    ):
        with pytest.raises(ValueError, match=message):
            mor_ref.encode(array, fmt, random_bits=words, **given)
    with pytest.raises(ValueError, match="n_random_bits is 'rocm'"):
        mor_ref.encode(x, "e4m3", rounding="sr", random_bits=SHARED, n_random_bits="rocm")
