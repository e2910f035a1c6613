"""Records as values: equal by their bits, and the numbers that they stand for as arrays."""

import io

import ml_dtypes
import numpy as np
import pytest

import mor_ref
from mor_ref import exact, formats, fp8lm
from mor_ref.records import NumbersRecord, Record

X = np.random.default_rng(7).standard_normal((6, 32), dtype=np.float32)

MAKE = {
    "quantize": lambda x: mor_ref.quantize(x, "e4m3", block=(2, 8)),
    "quantize fp32": lambda x: mor_ref.quantize(x, "e5m2", scaling="fp32"),
    "quantize_mx": lambda x: mor_ref.quantize_mx(x, "e2m1"),
    "quantize_nvfp4": mor_ref.quantize_nvfp4,
    "quantize_affine": lambda x: mor_ref.quantize_affine(x, "int8"),
    "quantize_levels": lambda x: mor_ref.quantize_levels(x, "seq2"),
    "quantize_shared": lambda x: mor_ref.quantize_shared(x, "mx9"),
    "mix_formats": lambda x: mor_ref.mix_formats(x, ["int8", "e4m3"]),
    "mor": lambda x: mor_ref.mor(x, "three_way", block=(2, 8)),
    "cast": lambda x: fp8lm.cast(x, 8.0),
    "shared_scale": lambda x: fp8lm.shared_scale([x, 2 * x]),
}
OF_MANY = {
    "error sums": lambda x: mor_ref.quantize(x, "e4m3").error,
    "scale": lambda x: fp8lm.scale(abs(x).ravel()),
    "adam": lambda x: fp8lm.adam(fp8lm.begin_adam(x), x),
    "dot_chunks": lambda x: mor_ref.dot_chunks(*[mor_ref.encode(x, "e4m3")] * 2),
    "history": lambda x: fp8lm.history(fp8lm.History((0.0, 1.0)), float(x[0, 0] ** 2)),
    "auto_scale": lambda x: fp8lm.auto_scale(fp8lm.AutoScale(float(abs(x[0, 0]))), [0x30]),
}


def bits_of(x):
    return np.ascontiguousarray(x).view(np.uint8).tobytes()


@pytest.mark.parametrize("make", (MAKE | OF_MANY).values(), ids=MAKE | OF_MANY)
def test_records_are_equal_by_their_bits(make):
    one, same, other = make(X), make(X.copy()), make(X * np.float32(1.5))
    assert isinstance(one, Record)
    assert one == same
    assert not one != same  # noqa: SIM202  (its own operator)
    assert one != other
    assert one != 3
    assert one is not None


def test_the_sign_of_zero_is_a_bit_and_a_nan_equals_itself():
    zero, minus, nan, again = (
        fp8lm.Scale(*[np.float32([number])] * 5) for number in (0.0, -0.0, np.nan, np.nan)
    )
    assert zero != minus
    assert nan == again


def test_records_of_other_kinds_are_not_equal():
    found = mor_ref.quantize(X, "e4m3")
    assert found != mor_ref.quantize(X, "e4m3", block="row")
    assert found != mor_ref.quantize_mx(X, "e4m3")
    assert mor_ref.mor(X) != mor_ref.mor(X, threshold=0.2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(found)


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_a_record_is_the_array_of_its_numbers(make):
    found = make(X)
    assert isinstance(found, NumbersRecord)
    y = found.dequantize()
    assert y.dtype == np.float32
    assert y.shape == X.shape
    assert bits_of(np.asarray(found)) == bits_of(y)
    assert np.asarray(found, np.float64).dtype == np.float64
    assert np.array_equal(np.asarray(found, np.float64), y)
    assert bits_of(np.array(found, copy=True)) == bits_of(y)
    assert np.array_equal(X - found, X - y)
    with pytest.raises(ValueError, match="copy is False, but the numbers of a record of type"):
        np.asarray(found, copy=False)
    file = io.BytesIO()
    np.save(file, found)
    file.seek(0)
    assert bits_of(np.load(file)) == bits_of(y)


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
@pytest.mark.parametrize("dtype", [np.uint8, np.int32, bool, ml_dtypes.int4])
def test_a_record_is_not_cast_to_integers(make, dtype):
    """They would be neither its codes nor its numbers."""
    found = make(X)
    field = r"use \.codes$" if hasattr(found, "codes") else r"use one of \.\w+, \.\w+"
    said = f"^dtype is {np.dtype(dtype).name}, but as an array, a record of type .*; {field}"
    with pytest.raises(TypeError, match=said):
        np.asarray(found, dtype)


@pytest.mark.parametrize("make", OF_MANY.values(), ids=OF_MANY)
def test_a_record_of_many_arrays_is_never_pickled_by_numpy(make):
    with pytest.raises(TypeError, match="is not one array; give one of its fields: "):
        np.asarray(make(X))
    with pytest.raises(TypeError, match="is not one array"):
        np.save(io.BytesIO(), make(X))


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_the_output_of_mor_as_numbers(dtype):
    found = mor_ref.mor(X, "three_way", block=(2, 8))
    right = [exact.decode(int(code), formats["bf16"]) for code in found.output.flat]
    y = found.dequantize(dtype)
    assert y.dtype == dtype
    assert y.astype(np.float32).view(np.uint32).ravel().tolist() == right


def test_which_way_a_scale_goes():
    """The scale multiplies x; its rounded reciprocal is exact for a power of two alone."""
    found = mor_ref.quantize(X, "e4m3", scaling="fp32", block=(2, 8))
    assert np.array_equal(found.decode_scale, np.float32(1) / found.scale)
    assert found.decode_scale.shape == found.scale.shape
    wide = np.repeat(np.repeat(found.scale, 2, axis=0), 8, axis=1)
    values = mor_ref.decode(found.codes, "e4m3")
    assert np.array_equal(values / wide, found.dequantize())
    assert not np.allclose(values * wide, X, rtol=0.1)
    powers = mor_ref.quantize(X, "e4m3", scaling="e8m0")
    assert np.array_equal(
        mor_ref.decode(powers.codes, "e4m3") * powers.decode_scale, powers.dequantize()
    )
