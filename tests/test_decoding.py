"""DEC: the engine against the exact model, and there and back again."""

import ml_dtypes
import numpy as np
import pytest
from extras import imported, needs
from hypothesis import given
from hypothesis import strategies as st
from inputs import ALL, UP_TO_16, any_format, by_name, differences

import mor_ref
from mor_ref import exact, fp8lm


@pytest.mark.parametrize("fmt", UP_TO_16, ids=by_name)
def test_every_code(fmt):
    """DEC-001, DEC-002, DEC-003."""
    codes = np.arange(fmt.code_count)
    actual = mor_ref.decode(codes, fmt).view(np.uint32)
    assert differences(codes, actual, [exact.decode(code, fmt) for code in codes.tolist()]) == []


def test_float32_is_itself_but_for_nan():
    """DEC-002."""
    codes = np.arange(0, 1 << 32, 65521, dtype=np.uint32)
    codes = np.concatenate([codes, codes[:512], np.array([0x7F800001, 0xFF800001], np.uint32)])
    is_nan = (codes & 0x7FFFFFFF) > 0x7F800000
    expected = np.where(is_nan, 0x7FFFFFFF, codes)
    assert np.array_equal(mor_ref.decode(codes, "f32").view(np.uint32), expected)


@given(any_format(), st.data())
def test_any_format(fmt, data):
    """DEC-001, DEC-002, DEC-003, for formats of users as well."""
    codes = data.draw(st.lists(st.integers(0, fmt.code_count - 1), min_size=1, max_size=8))
    actual = mor_ref.decode(codes, fmt).view(np.uint32).tolist()
    assert actual == [exact.decode(code, fmt) for code in codes]


@pytest.mark.parametrize("fmt", [fmt for fmt in ALL if fmt.bits <= 16], ids=by_name)
def test_encoding_what_was_decoded_gives_the_code_back(fmt):
    """ENC-002, DEC-001: but for NaNs, and for the integer code that nothing encodes to."""
    nans = {code for codes in fmt.nan_codes for code in codes}
    codes = np.array([code for code in range(fmt.code_count) if code not in nans])
    if fmt.sign == "twos-complement":
        codes = codes[codes != fmt.sign_bit]
    for rounding in ("rtz", "rtp"):
        back = mor_ref.encode(mor_ref.decode(codes, fmt), fmt, rounding=rounding, overflow="ieee")
        assert np.array_equal(back, codes)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64, ">u4"])
def test_codes_of_any_integer_dtype_and_layout(dtype):
    codes = np.arange(16).reshape(4, 4).T.astype(dtype)
    assert (
        mor_ref.decode(codes, "e2m1").tolist()
        == mor_ref.decode(np.arange(16), "e2m1").reshape(4, 4).T.tolist()
    )


def test_shapes():
    assert mor_ref.decode(np.uint8(0x38), "e4m3").shape == ()
    assert mor_ref.decode(np.zeros((3, 0, 2), np.uint8), "e4m3").shape == (3, 0, 2)
    assert mor_ref.decode([], "bf16").dtype == np.float32


@pytest.mark.parametrize(
    ("codes", "fmt", "error", "message"),
    [
        (
            [1, 16],
            "e2m1",
            ValueError,
            "codes holds 16, which does not fit 4 bits; give integers from 0 to 15",
        ),
        ([-1], "e4m3", ValueError, "codes holds -1, which does not fit 8 bits"),
        ([1.0], "e4m3", TypeError, "codes holds the float 1.0; give unsigned integers"),
        ([True], "e4m3", TypeError, "codes holds the bool True"),
        ([[1], [2, 3]], "e4m3", TypeError, "give unsigned integers"),
        ([1 << 40], "f32", ValueError, "codes holds 1099511627776, which does not fit 32 bits"),
        ([1], "e4m5", ValueError, "which is not known; take one of e4m3,"),
    ],
)
def test_wrong_codes_are_refused(codes, fmt, error, message):
    """DEC-004."""
    with pytest.raises(error) as refused:
        mor_ref.decode(codes, fmt)
    assert message in str(refused.value)


@pytest.mark.parametrize("dtype", [complex, object, str, float, bool, "M8[s]"])
def test_an_empty_array_of_another_dtype_is_refused(dtype):
    """DEC-004."""
    with pytest.raises(TypeError, match="codes has dtype"):
        mor_ref.decode(np.zeros(0, dtype), "e4m3")


def test_a_small_float_dtype_is_not_mistaken_for_codes():
    """DEC-004."""
    with pytest.raises(TypeError, match=r"which is e5m2, and the format is 'e4m3'"):
        mor_ref.decode(np.zeros(2, ml_dtypes.float8_e5m2), "e4m3")


@needs("torch")
def test_flush_to_zero_in_the_processor_changes_nothing():
    """DEC-001: another library may have set it."""
    torch = imported("torch")
    codes = np.arange(1, 1 << 7)
    subnormals = (codes.astype(np.uint32) << 12).view(np.float32)
    encoded = mor_ref.encode(subnormals, "bf16")
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush subnormals")
    try:
        after = mor_ref.decode(codes, "bf16").view(np.uint32)
        encoded_after = mor_ref.encode(subnormals, "bf16", threads=1)
    finally:
        torch.set_flush_denormal(False)
    assert np.array_equal(encoded, encoded_after)
    assert encoded.any()
    assert np.array_equal(after, codes.astype(np.uint32) << 16)


@pytest.mark.parametrize("name", ["e4m3", "bf16", "e8m0"])
def test_numbers_go_to_out(name):
    """Also if it is not in order, or lies over the codes; threads change no bit."""
    codes = np.random.default_rng(3).integers(0, 256, (1024, 1024), np.uint8)
    codes = codes.astype(np.uint16) if name == "bf16" else codes
    wanted = mor_ref.decode(codes, name, threads=1).view(np.uint32)
    for out in (np.empty(codes.shape, np.float32), np.empty(codes.shape[::-1], np.float32).T):
        assert mor_ref.decode(codes, name, out=out) is out
        assert np.array_equal(out.view(np.uint32), wanted)
    over = np.zeros(codes.shape, np.float32)
    inside = over.view(codes.dtype)[:, : codes.shape[1]]
    inside[...] = codes
    assert mor_ref.decode(inside, name, out=over) is over
    assert np.array_equal(over.view(np.uint32), wanted)
    for out in (np.empty(codes.shape, np.float64), np.empty(3, np.float32)):
        with pytest.raises(ValueError, match="give dtype float32 and shape"):
            mor_ref.decode(codes, name, out=out)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_dequantized_numbers_go_to_out(dtype):
    """QNT-002, NVF-010, MXS-008; also if out is not in order."""
    x = np.random.default_rng(4).standard_normal((64, 128)).astype(np.float32)
    for record in (
        mor_ref.quantize(x, "e4m3", block=(16, 32)),
        mor_ref.quantize_mx(x, "e2m1"),
        mor_ref.quantize_nvfp4(x),
        mor_ref.quantize(x, "e5m2"),
    ):
        wanted = record.dequantize(dtype)
        for out in (np.empty(x.shape, dtype), np.empty(x.shape[::-1], dtype).T):
            assert record.dequantize(dtype, out=out) is out
            assert out.tobytes() == np.ascontiguousarray(wanted).tobytes()
        with pytest.raises(ValueError, match="out has dtype"):
            record.dequantize(dtype, out=np.empty(x.shape, np.float16))


def test_room_for_y_of_all_representations():
    """Records that hold y copy it to `out`, and refuse room of another shape."""
    x = np.random.default_rng(2).standard_normal((4, 32)).astype(np.float32)
    records = (
        mor_ref.quantize_affine(x),
        mor_ref.quantize_levels(x, "seq2"),
        mor_ref.quantize_shared(x, "mx9"),
        mor_ref.mix_formats(x),
        fp8lm.cast(x, 64.0),
        fp8lm.shared_scale([x, x]),
    )
    for record in records:
        out = np.zeros_like(x)
        assert record.dequantize(out=out) is out
        np.testing.assert_array_equal(out, record.y)
        assert not np.shares_memory(record.dequantize(), record.y)
        with pytest.raises(ValueError, match="out"):
            record.dequantize(out=out[:2])
