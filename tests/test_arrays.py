"""The arguments that the public functions take and refuse, their words, and where they write."""

import threading

import ml_dtypes
import numpy as np
import pytest
from extras import imported, needs
from worker_pools import two_threads

import mor_ref
from mor_ref.engine import parallel
from mor_ref.engine.parallel import for_each_slice

__all__ = ["two_threads"]  # a fixture

X = np.linspace(-500, 500, 60, dtype=np.float32).reshape(3, 4, 5)
CODES = mor_ref.encode(X, "e4m3")


def test_the_result_has_the_shape_of_x_and_the_smallest_unsigned_dtype():
    assert CODES.shape == X.shape
    assert mor_ref.encode(X, "e4m3").dtype == np.uint8
    assert mor_ref.encode(X, "e2m1").dtype == np.uint8
    assert mor_ref.encode(X, "bf16").dtype == np.uint16
    assert mor_ref.encode(X, "f32").dtype == np.uint32
    assert mor_ref.encode(1.0, "e4m3").shape == ()
    assert mor_ref.encode(np.zeros((2, 0, 3)), "e4m3").shape == (2, 0, 3)
    assert mor_ref.encode([], "e4m3").shape == (0,)


@pytest.mark.parametrize(
    "layout",
    [
        lambda x: x.transpose(2, 0, 1).copy().transpose(1, 2, 0),
        np.asfortranarray,
        lambda x: np.repeat(x, 2, axis=1)[:, ::2],
        lambda x: x[::-1].copy()[::-1],
        lambda x: x.astype(">f4"),
        lambda x: np.lib.stride_tricks.as_strided(x, x.shape, x.strides, writeable=False),
        lambda x: (
            np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(x.shape)
        ),
    ],
    ids=["transposed", "fortran", "strided", "reversed", "big-endian", "read-only", "unaligned"],
)
def test_any_layout(layout):
    assert np.array_equal(mor_ref.encode(layout(X), "e4m3"), CODES)


def test_broadcast_arrays():
    x = np.broadcast_to(np.float32(0.3), (4, 3))
    assert mor_ref.encode(x, "e4m3").tolist() == [[0x2A] * 3] * 4


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, ">f8"])
def test_any_float_dtype(dtype):
    x = np.array([1.0, -2.5, 0.0], dtype)
    assert mor_ref.encode(x, "e5m2").tolist() == [0x3C, 0xC1, 0x00]


def test_input_is_left_as_it_was():
    x = X.copy()
    mor_ref.encode(x, "e4m3")
    assert x.flags.writeable
    assert np.array_equal(x, X)


@needs("torch")
def test_torch_tensors():
    torch = imported("torch")
    x = torch.from_numpy(X.copy())
    for tensor in (x, x.to(torch.float64), x.clone().requires_grad_()):
        assert np.array_equal(mor_ref.encode(tensor, "e4m3"), CODES)
    expected = mor_ref.encode(X.astype(ml_dtypes.bfloat16), "e4m3")
    assert np.array_equal(mor_ref.encode(x.to(torch.bfloat16), "e4m3"), expected)
    assert np.array_equal(mor_ref.encode(x.to(torch.bfloat16).mT, "e4m3"), expected.swapaxes(1, 2))
    assert mor_ref.encode(torch.tensor(0.3, dtype=torch.bfloat16), "e4m3").shape == ()
    codes = torch.from_numpy(CODES)
    assert np.array_equal(mor_ref.decode(codes, "e4m3"), mor_ref.decode(CODES, "e4m3"))
    words = torch.zeros(x.shape, dtype=torch.int64)
    sr = mor_ref.encode(x, "e4m3", rounding="sr", random_bits=words, n_random_bits=4)
    assert np.array_equal(sr, mor_ref.encode(X, "e4m3", rounding="rtz"))


@needs("torch")
def test_torch_tensors_that_are_refused():
    torch = imported("torch")
    for tensor, message in (
        (torch.tensor([(1 << 53) + 1]), "x holds 9007199254740993, which float64 does not have"),
        (torch.zeros(2, device="meta"), "on meta; give a dense one on the CPU"),
        (torch.eye(2).to_sparse(), "layout torch.sparse_coo"),
        (torch.zeros(2, dtype=torch.complex64), "x holds complex numbers"),
    ):
        with pytest.raises(TypeError) as refused:
            mor_ref.encode(tensor, "e4m3")
        assert message in str(refused.value)


@needs("torch")
def test_codes_in_a_float_dtype_of_torch():
    torch = imported("torch")
    codes = torch.from_numpy(CODES)
    y = mor_ref.decode(CODES, "e4m3")
    assert np.array_equal(mor_ref.decode(codes.view(torch.float8_e4m3fn), "e4m3"), y)
    with pytest.raises(TypeError, match="which is e5m2, and the format is 'e4m3'"):
        mor_ref.decode(codes.view(torch.float8_e5m2), "e4m3")
    with pytest.raises(TypeError, match="on meta"):
        mor_ref.decode(codes.view(torch.float8_e4m3fn).to("meta"), "e4m3")


@needs("torch")
def test_numbers_in_a_small_dtype_of_torch():
    torch = imported("torch")
    x = torch.tensor([0.5, -2, 448])
    for dtype in (torch.float8_e4m3fn, torch.int16, torch.int64):
        small = x.to(dtype)
        expected = mor_ref.encode(small.to(torch.float64), "e5m2")
        assert mor_ref.encode(small, "e5m2").tolist() == expected.tolist()
    assert mor_ref.quantize(x[None], "e4m3", amax=torch.tensor(448.0)).amax.item() == 448


WORDS = {"random_bits": np.zeros(3, np.uint8), "n_random_bits": 4}


@pytest.mark.parametrize(
    ("x", "arguments", "error", "message"),
    [
        (
            [1.0],
            {"fmt": "e4m33"},
            ValueError,
            "format is 'e4m33', which is not known; take one of e4m3,",
        ),
        ([1.0], {"fmt": None}, ValueError, "format is None, which is not known"),
        (
            np.array([(1 << 53) + 1]),
            {},
            TypeError,
            "x holds 9007199254740993, which float64 does not have; convert it yourself and give",
        ),
        ([(1 << 53) + 1, 0.5], {}, TypeError, "x holds the int 9007199254740993; give float64"),
        ([[0.5], [True]], {}, TypeError, "x holds the bool True"),
        ([np.float32(1), np.bool_(1)], {}, TypeError, "x holds an array or scalar of bool"),
        ([np.ma.masked, 0.5], {}, TypeError, "x holds a MaskedConstant; give one array"),
        ([True], {}, TypeError, "x holds the bool True"),
        ([1j], {}, TypeError, "x holds the complex 1j"),
        (np.array([1j]), {}, TypeError, "x holds complex numbers (dtype complex128)"),
        ([None], {}, TypeError, "x holds objects (dtype object)"),
        (["1.0"], {}, TypeError, "x holds text (dtype <U3)"),
        ([[1.0], [1.0, 2.0]], {}, TypeError, "x is not an array"),
        (np.zeros(2, np.longdouble), {}, TypeError, "x has dtype float128"),
        (np.ma.masked_array([1.0], [True]), {}, TypeError, "x is a masked array"),
        (
            [1.0],
            {"rounding": "rnd"},
            ValueError,
            "rounding is 'rnd', which is not known; take one of rne,",
        ),
        ([1.0], {"overflow": "saturate"}, ValueError, "overflow is 'saturate'"),
        ([1.0], {"overflow": ""}, ValueError, "overflow is '', which is not known"),
        ([1.0], {"nan": ""}, ValueError, "nan is '', which is not known"),
        ([1.0], {"nan": "quiet"}, ValueError, "nan is 'quiet'"),
        ([1.0], {"profile": "jax"}, ValueError, "profile is 'jax'"),
        ([1.0], {"profile": []}, ValueError, "profile is []"),
        ([1.0], {"profile": "cuda", "overflow": "ieee"}, ValueError, "overflow is given too"),
        ([1.0], {"profile": "cuda", "nan": "signed"}, ValueError, "nan is given too"),
        ([1.0], {"profile": "torch", "fmt": "e2m1"}, ValueError, "it covers e4m3, e5m2, e8m0"),
        ([1.0], {"fmt": "e8m0", "rounding": "rto"}, ValueError, "give one of rtp, rtz, rna"),
        (
            [1.0],
            {"rounding": "sr"},
            ValueError,
            "which needs random_bits; give random_bits and n_random",
        ),
        (
            [1.0],
            {"rounding": "sr", "random_bits": [1]},
            ValueError,
            "rounding is 'sr', which needs n_random_bits",
        ),
        (
            [1.0] * 3,
            WORDS,
            ValueError,
            "random_bits is given, but rounding is 'rne', which takes none",
        ),
        ([1.0], {"n_random_bits": 4}, ValueError, "n_random_bits is given, but rounding is 'rne'"),
        (
            [1.0],
            {"rounding": "sr"} | WORDS,
            ValueError,
            "random_bits has shape (3,), but x has (1,)",
        ),
        (
            [1.0],
            {"rounding": "sr", "random_bits": [16], "n_random_bits": 4},
            ValueError,
            "random_bits holds 16, which does not fit 4 bits; give integers from 0 to 15",
        ),
        (
            [1.0],
            {"rounding": "sr", "random_bits": [-1], "n_random_bits": 32},
            ValueError,
            "random_bits holds -1",
        ),
        (
            [1.0],
            {"rounding": "sr", "random_bits": [0.5], "n_random_bits": 4},
            TypeError,
            "random_bits holds the float 0.5; give unsigned integers",
        ),
        (
            [1.0] * 3,
            {"rounding": "sr"} | WORDS | {"n_random_bits": 33},
            ValueError,
            "give an int from 1 to 32",
        ),
        (
            [1.0] * 3,
            {"rounding": "sr"} | WORDS | {"n_random_bits": 4.0},
            TypeError,
            "give an int from 1",
        ),
        ([1.0], {"threads": 0}, ValueError, "threads is 0; give an int from 1 to"),
        ([1.0], {"threads": 1 << 20}, ValueError, "threads is 1048576; give"),
        ([1.0], {"threads": 1.5}, TypeError, "threads is 1.5; give an int from 1"),
        ([1.0], {"out": [0]}, TypeError, "out is of type list; give a numpy.ndarray of uint8"),
        (
            [1.0],
            {"out": np.zeros(1, np.int8)},
            ValueError,
            "out has dtype int8 and shape (1,); give dtype uint8",
        ),
        ([1.0], {"out": np.zeros(2, np.uint8)}, ValueError, "give dtype uint8 and shape (1,)"),
    ],
)
def test_wrong_input_is_refused_with_a_sentence(x, arguments, error, message):
    with pytest.raises(error) as refused:
        mor_ref.encode(x, **({"fmt": "e4m3"} | arguments))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_users_format_has_no_preset():
    e4m3 = mor_ref.Format("e4m3", exponent_bits=4, mantissa_bits=3, bias=8, specials="fn")
    with pytest.raises(ValueError, match="says nothing of the format 'e4m3'"):
        mor_ref.encode([1.0], e4m3, profile="cuda")


# ---------------------------------------------------------------------- out


def test_out_is_filled_and_returned():
    out = np.full(X.shape, 0xAA, np.uint8)
    assert mor_ref.encode(X, "e4m3", out=out) is out
    assert np.array_equal(out, CODES)


def test_out_of_any_layout():
    room = np.full((5, 4, 6), 0xAA, np.uint8)
    out = room.T[::2]
    assert mor_ref.encode(X, "e4m3", out=out) is out
    assert np.array_equal(out, CODES)
    assert (room.T[1::2] == 0xAA).all()


def test_out_in_the_memory_of_x():
    """At its start and at its end, where codes would be written over numbers not yet read."""
    for start in (0, 3 * X.size):
        x = X.copy()
        out = x.reshape(-1).view(np.uint8)[start : start + x.size].reshape(x.shape)
        mor_ref.encode(x, "e4m3", out=out)
        assert np.array_equal(out, CODES)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, ">u2", np.uint32, np.int64])
def test_random_bits_of_every_width_are_the_same_words(dtype):
    words = np.arange(X.size).reshape(X.shape) % 64
    found, expected = (
        mor_ref.encode(X, "e2m1", rounding="sr", random_bits=words.astype(d), n_random_bits=6)
        for d in (dtype, np.uint32)
    )
    assert np.array_equal(found, expected)
    with pytest.raises(ValueError, match=r"random_bits holds 64, which does not fit 6 bits"):
        mor_ref.encode(
            X, "e2m1", rounding="sr", random_bits=(words + 5).astype(dtype), n_random_bits=6
        )


def test_out_in_the_memory_of_the_random_bits():
    words = np.arange(60, dtype=np.uint32).reshape(X.shape)
    expected = mor_ref.encode(X, "bf16", rounding="sr", random_bits=words, n_random_bits=6)
    out = words.reshape(-1).view(np.uint16)[60:].reshape(X.shape)
    mor_ref.encode(X, "bf16", rounding="sr", random_bits=words, n_random_bits=6, out=out)
    assert np.array_equal(out, expected)


def test_out_that_has_no_room_of_its_own_is_refused():
    for out, error, message in (
        (np.ma.zeros(2, np.uint8), TypeError, "out is of type MaskedArray; give a numpy.ndarray"),
        (np.broadcast_to(np.uint8(0), 2), ValueError, "out is read-only"),
        (
            np.lib.stride_tricks.as_strided(np.zeros(1, np.uint8), (2,), (0,)),
            ValueError,
            "out has elements at the same address; give an array with room for each",
        ),
    ):
        with pytest.raises(error) as refused:
            mor_ref.encode([1.0, 2.0], "e4m3", out=out)
        assert message in str(refused.value)


AT_RANDOM = {"random_bits": np.arange(256).reshape(8, 32) % 64, "n_random_bits": 6}
QUANTIZERS = {
    "quantize": lambda x, out: mor_ref.quantize(x, "e4m3", block=(4, 8), out=out),
    "quantize, sr": lambda x, out: mor_ref.quantize(x, "e4m3", **AT_RANDOM, out=out),
    "quantize_mx": lambda x, out: mor_ref.quantize_mx(x, "e2m1", out=out),
    "quantize_mx, sr": lambda x, out: mor_ref.quantize_mx(x, "e4m3", **AT_RANDOM, out=out),
    "quantize_nvfp4": lambda x, out: mor_ref.quantize_nvfp4(x, out=out),
    "quantize_nvfp4, sr": lambda x, out: mor_ref.quantize_nvfp4(x, **AT_RANDOM, out=out),
    "mor": lambda x, out: mor_ref.mor(x, "two_way", block=(4, 8), out=out),
}


def test_out_of_quantizers():
    """The field of the record is `out`: in C order, with gaps, and in the memory of x."""
    numbers = np.random.default_rng(5).standard_normal((8, 32), np.float32)
    numbers[:4] *= np.float32(2) ** np.arange(-40, 24, 2, dtype=np.float32)
    for name, run in QUANTIZERS.items():
        field, dtype = ("output", np.uint16) if name == "mor" else ("codes", np.uint8)
        wanted, given = run(numbers, None), numbers.copy()
        own, gaps = np.empty((8, 32), dtype), np.empty((32, 24), dtype)
        shared = given.view(dtype)[:, -32:]
        for out, x in ((own, numbers), (gaps.T[::3], numbers), (shared, given)):
            found = run(x, out)
            assert getattr(found, field) is out, name
            np.testing.assert_array_equal(out, getattr(wanted, field), name)
            if name != "mor":
                np.testing.assert_array_equal(found.dequantize(), wanted.dequantize(), name)
                np.testing.assert_array_equal(found.error.nonzero, wanted.error.nonzero, name)
        with pytest.raises(ValueError, match=r"out has dtype uint64 and shape \(8, 32\); give"):
            run(numbers, own.astype(np.uint64))


def test_out_stays_as_it_was_when_something_is_wrong():
    out = np.full(X.shape, 0xAA, np.uint8)
    for wrong in ({"threads": 1 << 20}, {"rounding": "sr"}, {"profile": "nobody"}):
        with pytest.raises(ValueError, match="is"):
            mor_ref.encode(X, "e4m3", out=out, **wrong)
        assert (out == 0xAA).all()
    out.flags.writeable = False
    with pytest.raises(ValueError, match="out is read-only"):
        mor_ref.encode(X, "e4m3", out=out)


# ---------------------------------------------------------------------- threads


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 200_001])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.usefixtures("two_threads")
def test_any_number_of_threads_gives_the_same_bits(size, dtype):
    x = np.random.default_rng(size).standard_normal(size).astype(dtype)
    words = np.random.default_rng(1).integers(0, 1 << 9, size, dtype=np.uint32)
    sr = {"rounding": "sr", "random_bits": words, "n_random_bits": 9}
    for arguments in ({}, {"rounding": "rto"}, sr):
        one = mor_ref.encode(x, "e3m2", threads=1, **arguments)
        two = mor_ref.encode(x, "e3m2", threads=2, **arguments)
        assert np.array_equal(one, two)


def test_more_threads_than_processors_are_asked_for(monkeypatch):
    """Programs go from a large machine to a small one."""
    monkeypatch.setattr(parallel, "available_threads", lambda: 2)
    assert [parallel.thread_count(threads, 1) for threads in (1, 2, 3, 64)] == [1, 2, 2, 2]


@pytest.mark.tier("full", but=["[float16]"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.usefixtures("two_threads")
def test_every_part_has_its_own_random_words(dtype):
    """ENC-005: in parts for threads."""
    size = (5 << 19) + 321
    x = np.random.default_rng(3).standard_normal(size, dtype=np.float32).astype(dtype)
    words = np.random.default_rng(4).integers(0, 1 << 9, size, dtype=np.uint32)

    def encode(where, threads):
        return mor_ref.encode(
            x[where],
            "e3m2",
            rounding="sr",
            random_bits=words[where],
            n_random_bits=9,
            threads=threads,
        )

    pieces = [encode(slice(start, start + 1000), 1) for start in range(0, size, 1000)]
    for threads in (1, 2):
        assert np.array_equal(encode(slice(None), threads), np.concatenate(pieces))


def test_a_failure_in_any_thread_is_raised():
    for failing in range(4):

        def work(part, failing=failing):
            if part.start == failing << 20:
                raise MemoryError(part.start)

        with pytest.raises(MemoryError, match=str(failing << 20)):
            for_each_slice(work, 4 << 20, 2)


def test_callers_may_be_threads_themselves():
    x = np.random.default_rng(0).standard_normal(1 << 20).astype(np.float32)
    expected = mor_ref.encode(x, "e4m3", threads=1)
    found = []

    def call():
        found.append(mor_ref.encode(x, "e4m3"))

    callers = [threading.Thread(target=call) for _ in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(found) == 6
    assert all(np.array_equal(codes, expected) for codes in found)
