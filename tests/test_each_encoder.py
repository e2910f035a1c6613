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
    """Conversions of NaN and infinity are no mistakes here."""
    with np.errstate(all="ignore"):
        yield


@functools.cache
def searched(source):
    """Inputs at which a mistake shows if it is one: all of 16 bits, or near what formats have."""
    if source in ("bf16", "f16"):
        return opened(np.arange(1 << 16, dtype=np.uint16), source)
    near = [edges_and_random(fmt, Size()) for fmt in formats.values()]
    x = np.unique(np.concatenate([*near, amaxes(), wide(_RANDOM, 0, 5)]))
    if source == "f32":
        return opened(x, source)
    at = x.view(np.float32).astype(np.float64)
    half = at * (1 + 2.0**-24)  # a tie of binary32
    near = [at, np.nextafter(at, 0), np.nextafter(at, np.inf), half, np.nextafter(half, np.inf)]
    small = np.array([5e-324, 2.0**-1022, 2.0**-1060, -(2.0**-1030), 1e300, -1e300])
    return opened(np.concatenate([*near, small]).view(np.uint64), source)


@pytest.mark.tier("full", but=["[e4m3.f32.", "[e5m2.bf16.", "[f32.f64."])
@pytest.mark.parametrize("name", CASES)
def test_the_case_shows_each_mistake(name):
    case = CASES[name]
    source = case.parameters["source"]
    x = opened(case.arrays["x"], source)
    np.testing.assert_array_equal(right(case.parameters, x), case.arrays["code"])
    missed = []
    for mistake, encode in MISTAKES.items():
        if (encode(case.parameters, x) == case.arrays["code"]).all():
            more = searched(source)
            differing = encode(case.parameters, more) != right(case.parameters, more)
            if differing.any():
                missed.append((mistake, int(differing.sum())))
    assert missed == []


@pytest.mark.tier("full", but=["[e4m3.", "[bf16.8"])
@pytest.mark.parametrize("name", STOCHASTIC)
def test_the_case_with_random_bits_shows_each_mistake(name):
    case = STOCHASTIC[name]
    parameters, n = case.parameters, case.parameters["n_random_bits"]
    x, words = opened(case.arrays["x"], "f32"), case.arrays["random_word"].astype(U64)
    np.testing.assert_array_equal(each_stochastic.right(parameters, x, words), case.arrays["code"])
    missed = []
    for mistake, encode in each_stochastic.MISTAKES.items():
        if (encode(parameters, x, words) == case.arrays["code"]).all():
            more = searched("f32")
            random = random_words(more[0].size, 0, 99) >> U64(64 - n)
            for word in (random, random * U64(0), random | U64((1 << n) - 1)):
                expected = each_stochastic.right(parameters, more, word)
                if (encode(parameters, more, word) != expected).any():
                    missed.append(mistake)
    assert missed == []
