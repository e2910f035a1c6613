"""Tensors whose rows lie more than 2^31 bytes apart: no offset in the engine has 32 bits."""

import ml_dtypes
import numpy as np
import pytest

import mor_ref

pytestmark = pytest.mark.tier("exhaustive")
PERIOD, ROWS, COLUMNS = 512, 2, (1 << 30) + 512  # of bfloat16: each row has 2^31 + 1024 bytes


@pytest.fixture(scope="module")
def few():
    """Some columns, which all others repeat; the second row is larger than the first."""
    x = np.random.default_rng(11).standard_normal((ROWS, PERIOD), dtype=np.float32)
    x[1] *= 3
    return x.astype(ml_dtypes.bfloat16)


@pytest.fixture(scope="module")
def many(few):
    x = np.empty((ROWS, COLUMNS), few.dtype)
    x.reshape(ROWS, -1, PERIOD)[...] = few[:, np.newaxis, :]
    return x


def repeats(array, of):
    """Whether an array is another one, repeated along its columns."""
    periods = array.reshape(ROWS, -1, of.shape[1])
    return all((periods[i] == of[i]).all() for i in range(ROWS))


def test_encode(many, few):
    assert repeats(mor_ref.encode(many, "e4m3"), mor_ref.encode(few, "e4m3"))


@pytest.mark.parametrize("block", ["tensor", "row"])
def test_quantize(many, few, block):
    found, wanted = (mor_ref.quantize(x, "e4m3", block=block) for x in (many, few))
    assert np.array_equal(found.scale_exponent, wanted.scale_exponent)
    assert np.array_equal(found.amax, wanted.amax)
    assert repeats(found.codes, wanted.codes)
    times = np.uint64(COLUMNS // PERIOD)
    assert np.array_equal(found.error.sum, wanted.error.sum * times)
    assert np.array_equal(found.error.nonzero, wanted.error.nonzero * times)


def test_quantize_mx(many, few):
    found, wanted = (mor_ref.quantize_mx(x, "e2m1", scale_rule="even") for x in (many, few))
    assert repeats(found.scale, wanted.scale)
    assert repeats(found.codes, wanted.codes)


def test_quantize_nvfp4(many, few):
    found, wanted = (mor_ref.quantize_nvfp4(x) for x in (many, few))
    assert repeats(found.block_scale, wanted.block_scale)
    assert repeats(found.codes, wanted.codes)


def test_mor(many, few):
    found, wanted = (mor_ref.mor(x, block="tensor") for x in (many, few))
    assert np.array_equal(found.choice, wanted.choice)
    assert repeats(found.output, wanted.output)
