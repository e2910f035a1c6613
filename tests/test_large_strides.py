"""Tensors whose rows lie more than 2^31 bytes apart: no offset in the engine has 32 bits."""

import ml_dtypes
import numpy as np
import pytest

import mor_ref

exhaustive = pytest.mark.tier("exhaustive")
PERIOD, ROWS, BYTES = 512, 2, (1 << 31) + 2048  # of each row


def first_columns(dtype):
    """Return the columns that all others repeat; the second row is larger than the first."""
    x = np.random.default_rng(11).standard_normal((ROWS, PERIOD), dtype=np.float32)
    x[1] *= 3
    return x.astype(dtype)


def repeated(few):
    x = np.empty((ROWS, BYTES // few.itemsize), few.dtype)
    x.reshape(ROWS, -1, PERIOD)[...] = few[:, np.newaxis, :]
    return x


@pytest.fixture(scope="module")
def few():
    return first_columns(ml_dtypes.bfloat16)


@pytest.fixture(scope="module")
def many(few):
    return repeated(few)


def repeats(array, of):
    """Return whether an array is another one, repeated along its columns."""
    periods = array.reshape(ROWS, -1, of.shape[1])
    return all((periods[i] == of[i]).all() for i in range(ROWS))


@pytest.mark.tier("full")
def test_binary32():
    """Rows of binary32 have half as many numbers, which every full run can afford."""
    few = first_columns(np.float32)
    many = repeated(few)
    assert repeats(mor_ref.encode(many, "e4m3"), mor_ref.encode(few, "e4m3"))
    found, wanted = (mor_ref.mor(x, block="tensor") for x in (many, few))
    assert np.array_equal(found.choice, wanted.choice)
    assert repeats(found.output, wanted.output)


@exhaustive
def test_encode(many, few):
    assert repeats(mor_ref.encode(many, "e4m3"), mor_ref.encode(few, "e4m3"))


@exhaustive
@pytest.mark.parametrize("block", ["tensor", "row"])
def test_quantize(many, few, block):
    found, wanted = (mor_ref.quantize(x, "e4m3", block=block) for x in (many, few))
    assert np.array_equal(found.scale_exponent, wanted.scale_exponent)
    assert np.array_equal(found.amax, wanted.amax)
    assert repeats(found.codes, wanted.codes)
    times = np.uint64(many.shape[1] // PERIOD)
    assert np.array_equal(found.error.sum, wanted.error.sum * times)
    assert np.array_equal(found.error.nonzero, wanted.error.nonzero * times)


@exhaustive
def test_quantize_mx(many, few):
    found, wanted = (mor_ref.quantize_mx(x, "e2m1", scale_rule="even") for x in (many, few))
    assert repeats(found.scale, wanted.scale)
    assert repeats(found.codes, wanted.codes)


@exhaustive
def test_quantize_nvfp4(many, few):
    found, wanted = (mor_ref.quantize_nvfp4(x) for x in (many, few))
    assert repeats(found.block_scale, wanted.block_scale)
    assert repeats(found.codes, wanted.codes)


@exhaustive
def test_mor(many, few):
    found, wanted = (mor_ref.mor(x, block="tensor") for x in (many, few))
    assert np.array_equal(found.choice, wanted.choice)
    assert repeats(found.output, wanted.output)
