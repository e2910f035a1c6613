"""Each mistake of an encoder is found in each format, source, rounding and overflow by itself."""

import functools

import numpy as np
import pytest
from wrong import each_stochastic
from wrong.conversions import U64, opened
from wrong.each_encoder import MISTAKES, right

from mor_ref.definitions.formats import formats
from mor_ref.golden import load
from mor_ref.golden.inputs.edges import amaxes, edges_and_random, wide
from mor_ref.golden.model.suite import Size
from mor_ref.operations.random_words import random_words

CASES = {case.name: case for case in load("encode")}
STOCHASTIC = {case.name: case for case in load("encode_stochastic")}
_RANDOM = 50_000


@pytest.fixture(autouse=True)
def quiet():
    """Ignore warnings: here, conversions of NaN and infinity are not mistakes."""
    with np.errstate(all="ignore"):
        yield


def every_exponent(source):
    """Return every exponent of both signs, and NaNs: each with one bit of the fraction."""
    dtype, fields, bits = {"f32": (np.uint32, 1 << 9, 23), "f64": (np.uint64, 1 << 12, 52)}[source]
    single = [1 << bit for bit in range(bits)]
    fractions = np.array([0, *single, (1 << bits) - 1], dtype)
    return (np.arange(fields, dtype=dtype)[:, None] << dtype(bits) | fractions).ravel()


@functools.cache
def searched(source):
    """Return inputs that show mistakes: all of 16 bits, or near the numbers of formats."""
    if source in ("bf16", "f16"):
        return opened(np.arange(1 << 16, dtype=np.uint16), source)
    near = [edges_and_random(fmt, Size()) for fmt in formats.values()]
    x = np.unique(np.concatenate([*near, amaxes(), wide(_RANDOM, 0, 5)]))
    if source == "f32":
        return opened(np.union1d(x, every_exponent(source)), source)
    at = x.view(np.float32).astype(np.float64)
    half = at * (1 + 2.0**-24)  # a tie of binary32
    near = [at, np.nextafter(at, 0), np.nextafter(at, np.inf), half, np.nextafter(half, np.inf)]
    words = [number.view(np.uint64) for number in near]
    lower = words[0] | np.uint64(1 << 31)  # negative as a word with a sign
    return opened(np.concatenate([*words, lower, every_exponent(source)]), source)


@pytest.mark.tier("full", one_in=3, but=["[e5m2.bf16."])
@pytest.mark.parametrize("name", CASES)
def test_the_case_shows_each_mistake(name):
    case = CASES[name]
    source = case.parameters["source"]
    x = opened(case.arrays["x"], source)
    np.testing.assert_array_equal(right(case.parameters, x), case.arrays["code"])
    missed, expected = [], None
    for mistake, encode in MISTAKES.items():
        if (encode(case.parameters, x) == case.arrays["code"]).all():
            if expected is None:
                more = searched(source)
                expected = right(case.parameters, more)
            differing = encode(case.parameters, more) != expected
            if differing.any():
                missed.append((mistake, int(differing.sum())))
    assert missed == []


@pytest.mark.tier("full", one_in=3, but=["[bf16.8"])
@pytest.mark.parametrize("name", STOCHASTIC)
def test_the_case_with_random_bits_shows_each_mistake(name):
    case = STOCHASTIC[name]
    parameters, n = case.parameters, case.parameters["n_random_bits"]
    x, words = opened(case.arrays["x"], "f32"), case.arrays["random_word"].astype(U64)
    np.testing.assert_array_equal(each_stochastic.right(parameters, x, words), case.arrays["code"])
    more = searched("f32")
    random = random_words(more[0].size, 0, 99) >> U64(64 - n)
    tried = (random, random * U64(0), random | U64((1 << n) - 1))
    expected = [each_stochastic.right(parameters, more, word) for word in tried]
    missed = []
    for mistake, encode in each_stochastic.MISTAKES.items():
        if (encode(parameters, x, words) == case.arrays["code"]).all():
            for word, codes in zip(tried, expected, strict=True):
                if (encode(parameters, more, word) != codes).any():
                    missed.append(mistake)
    assert missed == []
