"""The public functions of `mor_ref.cuda`, on a stand-in for CuPy where there is no GPU.

The stand-in is `kernels.stand_in`: the tests here show the code around the kernels. That the same
holds with CuPy on a GPU is for `make gpu-test` to show.
"""

import re
import sys
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from kernels import needed
from kernels.stand_in import (
    Array,
    CompileException,
    Elsewhere,
    Function,
    Stream,
    Tensor,
    Torch,
    forget,
    in_place_of_cupy,
)
from kernels.tensors import DTYPES, numbers

import mor_ref
import mor_ref.cuda
from mor_ref.cuda import device, nvrtc, ptx, source
from mor_ref.cuda.cache import cached_file
from mor_ref.cuda.device import GpuError
from mor_ref.cuda.nvrtc import NvrtcError
from mor_ref.cuda.unavailable import CudaError
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.definitions.scales import SCALINGS
from mor_ref.policies import POLICIES
from mor_ref.schemes import SCHEMES
from mor_ref.schemes.affine.definition import AFFINE_PROFILES
from mor_ref.schemes.levels.definition import ARITHMETICS, LEVEL_KINDS
from mor_ref.schemes.shared.definition import SHARED_KINDS, SHARED_PROFILES
from mor_ref.verify.candidates.candidate import CandidateError
from mor_ref.verify.candidates.kernels import kernels_named


@pytest.fixture
def cupy(monkeypatch):
    """Yield the stand-in for CuPy."""
    needed.compiler()
    with in_place_of_cupy(monkeypatch) as found:
        yield found


OF_RECORDS = (
    "mor_ref.cuda.functions",
    *(f"mor_ref.schemes.{scheme}.cuda_functions" for scheme in SCHEMES),
)


def same(ours, theirs):
    """Check that a result on a GPU equals the one on the host, bit for bit."""
    if hasattr(ours, "__cuda_array_interface__"):
        theirs = np.asarray(theirs)
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        assert ours.get().tobytes() == np.ascontiguousarray(theirs).tobytes()
    elif isinstance(ours, mor_ref.cuda.ErrorSums):
        for name, value in ours._asdict().items():
            same(value, getattr(theirs, name))
    elif isinstance(ours, dict):
        assert ours.keys() == theirs.keys()
        for name, value in ours.items():
            same(value, theirs[name])
    elif hasattr(ours, "__dataclass_fields__") and type(ours).__module__ in OF_RECORDS:
        same_fields(ours, theirs)
        if hasattr(ours, "dequantize"):
            same(ours.dequantize(), theirs.dequantize())
        if isinstance(getattr(type(ours), "packed", None), property):
            same(ours.packed, theirs.packed)
        if hasattr(ours, "dequantize"):
            same(ours.dequantize(ml_dtypes.bfloat16), theirs.dequantize("bfloat16"))
    else:
        assert ours == theirs


AS_WORDS = {("Affine", "codes"): np.int32, ("Affine", "permutation"): np.uint32}


def same_fields(ours, theirs):
    """Check the fields of a record; on a GPU integers are int32, and have no grid."""
    names = [field.name for field in fields(ours) if not field.name.startswith("_")]
    for name in (*names, *(name for name in ("group_min", "group_max") if hasattr(ours, name))):
        expected = getattr(theirs, name)
        dtype = AS_WORDS.get((type(ours).__name__, name))
        if dtype and expected is not None:
            expected = expected.astype(dtype)
        same(getattr(ours, name), expected)


CALLS = {
    "encode": [
        ("e4m3", {}),
        ("e8m0", {"rounding": "rtz"}),
        ("e5m2", {"overflow": "ieee", "nan": "signed", "rounding": "rtn"}),
        ("e2m1", {"profile": "ml_dtypes"}),
        ("bf16", {"overflow": "ieee"}),
        ("f32", {}),
    ],
    "quantize": [
        *(("e4m3", {"scaling": scaling, "block": (8, 16)}) for scaling in SCALINGS),
        ("e5m2", {"block": "column", "group": "tensor"}),
        ("e2m1", {"block": (5, 3), "group": (10, 6)}),
        ("e4m3", {}),
        *(("e4m3", {"scaling": scaling, "block": "row", "amax": 3.5}) for scaling in SCALINGS),
        ("e4m3", {"scaling": "fp32", "scale": 0.25}),
    ],
    "quantize_nvfp4": [
        *(((), {"profile": name}) for name in PROFILES),
        ((), {"tile": (16, 16)}),
        *(((), {"profile": name, "amax": 3.5}) for name in ("te", "te_row")),
        *(((), {"profile": name, "global_scale": 3.5}) for name in ("te_row", "torchao")),
    ],
    "quantize_mx": [
        *(
            (element, {"scale_rule": rule})
            for element in ("e4m3", "e2m1", "int8_mx")
            for rule in SCALE_RULES
        ),
        ("e4m3", {"block": 100}),
    ],
    "quantize_affine": [
        *(((), {"profile": name}) for name in AFFINE_PROFILES),
        *(("uint4", {"symmetric": s, "block": (5, 3)}) for s in (True, False)),
        ("int16", {"profile": "torch_quantize", "symmetric": False, "block": "column"}),
        ("uint8", {"profile": "peg", "groups": 5, "permute": "range", "symmetric": False}),
        ("int8", {"profile": "peg", "groups": 25, "permute": "range", "scale": 0.5}),
        ("int8", {"groups": 3}),
        ("int8", {"scale": 0.0129852294921875, "zero_point": -3, "block": "row"}),
        (
            "int8",
            {"profile": "torch_fake_channel_2_13", "scale": 0.013671875, "zero_point": -3.25},
        ),
    ],
    "quantize_shared": [(k, {"profile": p}) for k in SHARED_KINDS for p in SHARED_PROFILES],
    "select": [(by, {"limit": limit}) for by, limit in (("rank", 0.29), ("column", 2.5))],
    "quantize_levels": [(k, {"arithmetic": a}) for k in LEVEL_KINDS for a in ARITHMETICS],
    "mor": [
        *((name, {"block": (16, 32)}) for name in POLICIES),
        ("three_way", {"scaling": "e8m0"}),
        ("tensor", {"threshold": "0.5"}),
        ("nvfp4", {"block": (16, 32), "threshold": {"nvfp4": 0.14, "e4m3": 0.03}}),
    ],
}
EVERY_CALL = [(name, *call) for name, calls in CALLS.items() for call in calls]


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize(("name", "argument", "options"), EVERY_CALL, ids=str)
def test_every_function_gives_what_the_host_gives(cupy, name, argument, options):
    x = numbers("f32")
    arguments = argument if isinstance(argument, tuple) else (argument,)
    ours = getattr(mor_ref.cuda, name)(Array(x), *arguments, **options)
    same(ours, getattr(mor_ref, name)(x, *arguments, **options))
    assert cupy.launches


HOST = {
    "quantize": lambda at, x: at.quantize(x, "e4m3", block=(8, 16)),
    "quantize_nvfp4": lambda at, x: at.quantize_nvfp4(x),
    "quantize_mx": lambda at, x: at.quantize_mx(x, "e4m3"),
    "quantize_affine": lambda at, x: at.quantize_affine(x),
    "quantize_shared": lambda at, x: at.quantize_shared(x, "mx6"),
    "quantize_levels": lambda at, x: at.quantize_levels(x, "seq2"),
    "mor": lambda at, x: at.mor(x, "three_way", block=(8, 16)),
}


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize("make", HOST.values(), ids=HOST)
def test_a_record_on_a_gpu_is_of_the_family_of_those_on_the_host(make, tmp_path):
    x = numbers("f32")
    ours, again, other = (make(mor_ref.cuda, Array(y)) for y in (x, x.copy(), np.zeros_like(x)))
    theirs = make(mor_ref, x)
    assert ours == again
    assert ours != other
    assert ours != theirs
    assert np.asarray(ours).tobytes() == np.asarray(theirs).tobytes()
    assert np.asarray(ours.T).tobytes() == np.ascontiguousarray(np.asarray(theirs).T).tobytes()
    assert (ours.shape, ours.ndim, ours.size, len(ours)) == (x.shape, 2, x.size, len(x))
    assert repr(ours) == f"<{type(ours).__name__} of {'x'.join(map(str, x.shape))} on GPU 0>"
    assert "<svg" in ours._repr_html_()
    if hasattr(ours, "tile"):
        assert ours.tile == theirs.tile
    with pytest.raises(TypeError, match="use .codes" if hasattr(ours, "codes") else "use one of"):
        np.asarray(ours, np.uint8)
    with pytest.raises(TypeError, match="on a GPU has no file; save that of the function"):
        ours.save(tmp_path / "x.npz")


@pytest.mark.usefixtures("cupy")
def test_a_field_in_one_bit_makes_records_on_a_gpu_differ():
    x = numbers("f32")
    ours, other = (mor_ref.cuda.quantize_mx(Array(x), "e4m3") for _ in range(2))
    other.scale.host.ravel()[-1] ^= 1
    assert ours != other


@pytest.mark.usefixtures("cupy")
def test_scales_zero_points_and_alphas_on_a_gpu():
    """AFF-006, LVL-003: an entry for each block or row; numbers are checked, arrays are not."""
    x = numbers("f32")
    scale, zero = np.linspace(0.1, 3, len(x), dtype=np.float32), np.arange(len(x), dtype=np.int32)
    ours, theirs = (
        integers(at(x), block="row", scale=at(scale), zero_point=at(zero))
        for integers, at in (
            (mor_ref.cuda.quantize_affine, Array), (mor_ref.quantize_affine, np.asarray),
        )
    )  # fmt: skip
    same(ours, theirs)
    floats, of = (
        zero.astype(np.float32) + np.float32(0.3),
        {"profile": "torch_fake_channel_2_13", "block": "row"},
    )
    ours = mor_ref.cuda.quantize_affine(Array(x), zero_point=Array(floats), **of)
    same(ours, mor_ref.quantize_affine(x, zero_point=floats, **of))
    ours = mor_ref.cuda.quantize_levels(Array(x), "lsq4", alpha=Array(scale))
    same(ours, mor_ref.quantize_levels(x, "lsq4", alpha=scale))
    for given in (0.0, -1.0, 0.05, float("nan")):
        with pytest.raises(ValueError, match="scale is .*(; give|; the nearest)"):
            mor_ref.cuda.quantize_affine(Array(x), scale=given)
    with pytest.raises(ValueError, match="zero_point has numbers that int8 lacks"):
        mor_ref.cuda.quantize_affine(Array(x), zero_point=128)
    with pytest.raises(ValueError, match="zero_point is 1e.39, which is no finite number"):
        mor_ref.cuda.quantize_affine(Array(x), profile=of["profile"], zero_point=1e39)
    with pytest.raises(ValueError, match="scale has 37 numbers of int32; give one of float32"):
        mor_ref.cuda.quantize_affine(Array(x), block="row", scale=Array(zero))
    with pytest.raises(ValueError, match="alpha has 2 numbers of float32; give one of float32 for"):
        mor_ref.cuda.quantize_levels(Array(x), "lsq4", alpha=Array(scale[:2]))


SHAPES = [(), (1,), (33,), (2, 3, 40), (1, 1, 1, 17), (0,), (3, 0), (0, 4)]


def same_of_any_shape(ours, x):
    """Check vectors, folded axes, and tensors without elements (BLK-001)."""
    for name, argument in (("encode", "e4m3"), ("quantize", "e4m3"), ("mor", "three_way")):
        same(getattr(mor_ref.cuda, name)(ours, argument), getattr(mor_ref, name)(x, argument))
    if not x.shape:
        return
    same(mor_ref.cuda.quantize_mx(ours, "e4m3"), mor_ref.quantize_mx(x, "e4m3"))
    same(mor_ref.cuda.quantize_affine(ours), mor_ref.quantize_affine(x))
    same(mor_ref.cuda.quantize_shared(ours, "mx9"), mor_ref.quantize_shared(x, "mx9"))
    same(mor_ref.cuda.quantize_levels(ours, "lsq4"), mor_ref.quantize_levels(x, "lsq4"))
    for profile in ("te", "te_row"):
        found = mor_ref.cuda.quantize_nvfp4(ours, profile=profile)
        same(found, mor_ref.quantize_nvfp4(x, profile=profile))


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shapes(shape):
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32).reshape(shape)
    same_of_any_shape(Array(x), x)


STRIDES = {
    "transposed": lambda x: x.T,
    "every other column": lambda x: x[:, ::2],
    "backwards": lambda x: x[::-1, ::-1],
    "repeated": lambda x: np.broadcast_to(x[:1], x.shape),
    "not aligned": lambda x: x.ravel()[1:],
}


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize("name", [name for name in DTYPES if name != "bf16"])
def test_dtypes_and_strides(name, stride):
    x = STRIDES[stride](numbers(name))
    with np.errstate(over="ignore", under="ignore"):
        same(mor_ref.cuda.encode(Array(x), "e4m3"), mor_ref.encode(x, "e4m3"))
        same(mor_ref.cuda.mor(Array(x), "two_way"), mor_ref.mor(x, "two_way"))


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize("protocol", ["dlpack", "interface"])
def test_arrays_of_other_libraries(protocol):
    x = numbers("f32")
    same(mor_ref.cuda.encode(Elsewhere(x, protocol), "e4m3"), mor_ref.encode(x, "e4m3"))


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize(("name", "dtype"), [("e4m3", "u1"), ("bf16", "u2"), ("f32", "u4")])
def test_codes_are_decoded(name, dtype):
    codes = np.arange(240, dtype=dtype).reshape(12, 20)[:, ::3]
    same(mor_ref.cuda.decode(Array(codes), name), mor_ref.decode(codes, name))


@pytest.mark.usefixtures("cupy")
def test_random_bits():
    """ENC-005."""
    x, words = numbers("f32"), np.random.default_rng(1).integers(0, 256, (37, 75), np.uint32)
    options = {"rounding": "sr", "n_random_bits": 8}
    found = mor_ref.cuda.encode(Array(x), "e4m3", random_bits=Array(words), **options)
    same(found, mor_ref.encode(x, "e4m3", random_bits=words, **options))


# ---------------------------------------------------------------------- torch, and streams


@pytest.fixture
def torch(monkeypatch):
    """Put the stand-in in the place of torch."""
    monkeypatch.setitem(sys.modules, "torch", Torch)
    return Torch


def places(launches):
    """Return the GPUs and streams of launches."""
    return {(launch.gpu, launch.stream) for launch in launches}


def test_tensors_of_torch_go_to_their_gpu_and_stream(cupy, torch):
    x = numbers("bf16")
    ours = mor_ref.cuda.mor(Tensor(x[:, ::3], torch.bfloat16), "three_way")
    assert places(cupy.launches) == {(1, 0xABC)}
    same(ours, mor_ref.mor(x[:, ::3], "three_way"))
    assert cupy.cuda.get_current_stream().name == "the current one"


def test_arrays_of_cupy_go_to_their_gpu_and_the_current_stream(cupy):
    found = mor_ref.cuda.quantize(Array(numbers("f32"), device=3), "e4m3")
    assert places(cupy.launches) == {(3, "the current one")}
    cupy.launches.clear()
    with cupy.cuda.Device(3), cupy.cuda.Stream("another"):
        found.dequantize()
    assert places(cupy.launches) == {(3, "another")}


def test_the_current_streams_are_those_that_the_user_has_chosen(cupy, torch, monkeypatch):
    """Whether by `use` or by `with`, on any GPU, and also after a failure."""
    x = numbers("f32")
    there = [Array(x, device=0), Array(x, device=1), Tensor(x, torch.float32)]
    first = cupy.cuda.Stream("first").use()
    with cupy.cuda.Device(1), cupy.cuda.Stream("entered"):
        second = cupy.cuda.Stream("second").use()
        for given in there:
            mor_ref.cuda.quantize(given, "e4m3").dequantize()
            assert cupy.cuda.get_current_stream() is second
        monkeypatch.setattr(cupy, "empty", raises(MemoryError("none")))
        for given in there:
            with pytest.raises(GpuError, match="too little memory"):
                mor_ref.cuda.quantize(given, "e4m3")
            assert cupy.cuda.get_current_stream() is second
        monkeypatch.setattr(cupy, "from_dlpack", raises(ValueError("no such dtype")))
        with pytest.raises(TypeError, match="no such dtype"):
            mor_ref.cuda.quantize(there[-1], "e4m3")
        assert cupy.cuda.get_current_stream() is second
    assert cupy.cuda.get_current_stream() is first


RESULTS = {
    "quantize": lambda x: mor_ref.cuda.quantize(x, "e4m3"),
    "quantize_nvfp4": mor_ref.cuda.quantize_nvfp4,
    "quantize_mx": lambda x: mor_ref.cuda.quantize_mx(x, "e4m3"),
    "quantize_affine": mor_ref.cuda.quantize_affine,
    "quantize_shared": lambda x: mor_ref.cuda.quantize_shared(x, "mx6"),
    "quantize_levels": lambda x: mor_ref.cuda.quantize_levels(x, "seq2"),
}


@pytest.mark.parametrize("name", RESULTS)
def test_dequantize_waits_for_the_stream_that_wrote_the_codes(cupy, torch, name):
    found = RESULTS[name](Tensor(numbers("f32"), torch.float32))
    writing = set(cupy.launches)
    cupy.launches.clear()
    found.dequantize()
    assert places(cupy.launches) == {(1, "the current one")}
    assert all(launch.before >= writing for launch in cupy.launches)


@pytest.mark.parametrize("name", RESULTS)
def test_memory_of_codes_is_not_used_again_before_dequantize_has_read_them(cupy, torch, name):
    """Memory that is let go of goes back to the stream that wrote it, and the next array
    of that stream may take it at once.
    """
    x = Tensor(numbers("f32"), torch.float32)
    with cupy.cuda.Device(1), cupy.cuda.Stream("another"):
        RESULTS[name](x).dequantize()
    reading = {launch for launch in cupy.launches if launch.stream == "another"}
    cupy.launches.clear()
    RESULTS[name](x)
    assert reading
    assert places(cupy.launches) == {(1, 0xABC)}
    assert all(launch.before >= reading for launch in cupy.launches)


def drawn(cupy, x, words):
    """Return the launches that encode some numbers at random."""
    cupy.launches.clear()
    options = {"rounding": "sr", "n_random_bits": 8}
    mor_ref.cuda.encode(x, "e4m3", random_bits=words, **options)
    return set(cupy.launches)


def words_of(cupy):
    """Make random bits of CuPy on GPU 1; return them and the launches that write them."""
    cupy.launches.clear()
    return mor_ref.cuda.encode(Array(numbers("f32"), device=1), "f32"), set(cupy.launches)


def test_random_bits_of_cupy_for_a_tensor_of_torch(cupy, torch):
    """They are read after they were written, and before others are written in their place."""
    words, writing = words_of(cupy)
    reading = drawn(cupy, Tensor(numbers("f32"), torch.float32), words)
    assert places(reading) == {(1, 0xABC)}
    assert all(launch.before >= writing for launch in reading)
    _, writing = words_of(cupy)
    assert places(writing) == {(1, "the current one")}
    assert all(launch.before >= reading for launch in writing)


def test_random_bits_of_torch_for_an_array_of_cupy(cupy, torch):
    """Also of a copy of them, in order, that torch makes, and nobody else holds."""
    x = numbers("f32")
    words = Tensor(np.zeros((75, 37), np.uint32).T, "torch.uint32")
    reading = drawn(cupy, Array(x, device=1), words)
    assert places(reading) == {(1, "the current one")}
    (writing,) = (each for launch in reading for each in launch.before if each.stream == 0xABC)
    assert writing.kernel == "contiguous"
    others = drawn(cupy, Tensor(x, torch.float32), words)
    assert all(launch.before >= reading for launch in others)


@pytest.mark.parametrize("protocol", ["dlpack", "interface"])
def test_memory_of_other_libraries_is_read_before_they_have_it_back(cupy, protocol):
    """They know nothing of a stream of CuPy's."""
    x, words = numbers("f32"), np.zeros((37, 75), np.uint32)
    mor_ref.cuda.mor(Elsewhere(x, protocol), "two_way")
    assert set(cupy.launches) <= Stream.done
    assert drawn(cupy, Array(x), Elsewhere(words, protocol)) <= Stream.done
    assert not drawn(cupy, Array(x), Array(words)) <= Stream.done


@pytest.mark.parametrize("protocol", ["dlpack", "interface"])
def test_arrays_of_other_libraries_go_to_their_gpu(cupy, protocol):
    x = Elsewhere(numbers("f32"), protocol, device=2)
    mor_ref.cuda.mor(x, "two_way")
    mor_ref.cuda.decode(Elsewhere(np.ones(3, np.uint8), protocol, device=2), "e4m3")
    assert {launch.gpu for launch in cupy.launches} == {2}


def test_nothing_comes_to_the_host(cupy, monkeypatch):
    """A policy from end to end; the ladder, which is not of the tensor, goes the other way."""

    def refuse(_):
        raise AssertionError("an array came to the host")

    monkeypatch.setattr(cupy, "asnumpy", refuse)
    mor_ref.cuda.mor(Array(numbers("f32")), "nvfp4", block=(16, 32)).output.size  # noqa: B018


# ---------------------------------------------------------------------- refusals


X = Array(np.ones((4, 4), np.float32))
REFUSED = [
    (lambda: mor_ref.cuda.encode(np.ones(3), "e4m3"), "x is a ndarray, which lies on the host; "),
    (lambda: mor_ref.cuda.encode([1.0], "e4m3"), "x is a list, which lies on the host; give a"),
    (
        lambda: mor_ref.cuda.encode(object(), "e4m3"),
        "x is a object, not an array on a GPU (A D",
    ),
    (
        lambda: mor_ref.cuda.encode(Elsewhere(np.ones(3, ">f4"), "interface"), "e4m3"),
        "x is a Elsewhere, not an array on a GPU (CuPy does not support the big-endian byte-order)",
    ),
    (
        lambda: mor_ref.cuda.encode(Array(np.ones(3, np.int32)), "e4m3"),
        "x has dtype int32; convert it yourself and give float64 or float32 or float16 or bfloat16",
    ),
    (lambda: mor_ref.cuda.decode(X, "e4m3"), "codes has dtype float32; give uint8"),
    (
        lambda: mor_ref.cuda.encode(X, "e4m3", rounding="sr"),
        "rounding is 'sr', which needs random_bits; give random_bits and n_random_bits",
    ),
    (
        lambda: mor_ref.cuda.encode(X, "e4m3", n_random_bits=4),
        "n_random_bits is given, but rounding is 'rne', which takes none",
    ),
    (
        lambda: mor_ref.cuda.encode(
            X, "e4m3", rounding="sr", n_random_bits=4, random_bits=Array(np.ones(4, np.uint32))
        ),
        "random_bits has shape (4,), but x has (4, 4); give a word for each element",
    ),
    (
        lambda: mor_ref.cuda.encode(
            X,
            "e4m3",
            rounding="sr",
            n_random_bits=4,
            random_bits=Array(np.ones((4, 4), np.uint32), device=1),
        ),
        "random_bits lies on GPU 1, but x on GPU 0; give both on one",
    ),
    (lambda: mor_ref.cuda.quantize(X, "bf16"), "format 'bf16' has 16 bits"),
    (lambda: mor_ref.cuda.quantize(X, "e4m3", scaling="mx"), "scaling is 'mx'"),
    (lambda: mor_ref.cuda.quantize(X, "e4m3", block=(3, 3), group=(4, 2)), "group is (4, 2)"),
    (lambda: mor_ref.cuda.quantize_nvfp4(X, profile="nv"), "profile is 'nv'"),
    (lambda: mor_ref.cuda.quantize_mx(X, "e4m3", block=0), "block is 0"),
    (lambda: mor_ref.cuda.mor(X, "best"), "policy is 'best'"),
    *(
        (
            lambda name=name: RESULTS[name](X).dequantize(np.float16),
            "dtype is float16; give float32, or bfloat16 of ml_dtypes",
        )
        for name in ("quantize", "quantize_nvfp4", "quantize_mx")
    ),
]


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_is_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        call()


@pytest.mark.usefixtures("cupy")
def test_tensors_of_torch_on_the_host_are_refused(torch):
    x = Tensor(np.ones(3, np.float32), torch.float32)
    x.device, x.is_cuda = SimpleNamespace(type="cpu"), False
    with pytest.raises(TypeError, match=r"x is a torch tensor of layout .*; give a dense one on a"):
        mor_ref.cuda.encode(x, "e4m3")


def test_without_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    forget()
    with pytest.raises(
        GpuError, match=r"mor_ref.cuda needs CuPy, .*; pip install 'mor-ref\[gpu\]'"
    ):
        mor_ref.cuda.encode(X, "e4m3")


def test_without_a_gpu(cupy, monkeypatch):
    monkeypatch.setattr(cupy, "is_available", lambda: False)
    with pytest.raises(GpuError, match="needs an NVIDIA GPU, and CuPy sees none; check the driver"):
        mor_ref.cuda.mor(X)


def raises(error):
    def call(*_, **__):
        raise error

    return call


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("is_available", RuntimeError("cudaErrorInsufficientDriver"), "cannot use the GPU (cudaE"),
        ("empty", MemoryError("Out of memory"), "too little memory left (Out of memory); free"),
        (
            "empty",
            RuntimeError("cudaErrorIllegalAddress"),
            "of the GPU cannot be used (cudaE",
        ),
        (
            "RawModule",
            RuntimeError("CUDA_ERROR_INVALID_IMAGE"),
            "of scales cannot be loaded or run (CUDA_ERROR_INVALID_IMAGE); update the driver if",
        ),
    ],
    ids=str,
)
def test_errors_of_cupy_are_explained(cupy, monkeypatch, name, error, message):
    monkeypatch.setattr(cupy, name, raises(error))
    with pytest.raises(GpuError, match=re.escape(message)):
        mor_ref.cuda.quantize(X, "e4m3")


@pytest.mark.usefixtures("torch")
def test_tensors_that_cupy_does_not_take(cupy, monkeypatch):
    monkeypatch.setattr(cupy, "from_dlpack", raises(ValueError("no such dtype")))
    with pytest.raises(TypeError, match=r"x is a Tensor, not an array on a GPU \(no such dtype\)"):
        mor_ref.cuda.encode(Tensor(np.ones(3, np.float32), Torch.float32), "e4m3")


def test_suites_end_with_a_sentence_if_there_is_no_memory(cupy, monkeypatch):
    kernels = kernels_named("cuda")
    monkeypatch.setattr(cupy, "asarray", raises(MemoryError("Out of memory")))
    case = SimpleNamespace(arrays={"code": np.zeros(1, np.uint8)}, parameters={"format": "e4m3"})
    with pytest.raises(CandidateError, match="the GPU has too little memory left"):
        kernels.answer("decode", "decode", case)


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.setenv("MOR_REF_CACHE", str(tmp_path))
    monkeypatch.setattr(Path, "replace", raises(OSError("no space left")))
    with pytest.raises(CudaError, match=r"cannot be stored in .* \(no space left\); set MOR_REF_"):
        cached_file("kernel", lambda: b"")
    assert list(tmp_path.iterdir()) == []


def test_a_cache_that_cannot_be_looked_into(tmp_path, monkeypatch):
    monkeypatch.setenv("MOR_REF_CACHE", str(tmp_path / "of another user"))
    monkeypatch.setattr(Path, "glob", raises(PermissionError("permission denied")))
    with pytest.raises(
        CudaError, match=r"stored in .*other user \(permission denied\); set MOR_REF"
    ):
        cached_file("kernel", lambda: b"")


def test_what_cannot_be_made_is_no_fault_of_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MOR_REF_CACHE", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="no compiler"):
        cached_file("kernel", raises(FileNotFoundError("no compiler")))


FAILURES_OF_NVRTC = [
    RuntimeError('Failure finding "libnvrtc.so"'),
    CompileException("cannot open source file cuda_fp16.h"),
]


@pytest.mark.parametrize("failure", FAILURES_OF_NVRTC, ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_without_nvrtc(cupy, monkeypatch, name, failure):
    """CuPy's own kernels need it as well, and more; nothing needs those before ours."""
    monkeypatch.setattr(nvrtc, "version", raises(NvrtcError("NVRTC was not found")))
    monkeypatch.setattr(cupy, "compile", raises(failure))
    argument, options = CALLS[name][0]
    arguments = argument if isinstance(argument, tuple) else (argument,)
    with pytest.raises(NvrtcError, match="NVRTC was not found"):
        getattr(mor_ref.cuda, name)(X, *arguments, **options)


@pytest.mark.parametrize("failure", FAILURES_OF_NVRTC, ids=str)
def test_arrays_with_strides_where_cupy_cannot_compile(cupy, monkeypatch, failure):
    monkeypatch.setattr(cupy, "compile", raises(failure))
    message = r"CuPy cannot copy x into C's order \(.*\); give .*: pip install 'mor-ref\[gpu\]'"
    with pytest.raises(GpuError, match=message):
        mor_ref.cuda.encode(Array(np.ones((4, 4), np.float32).T[1:]), "e4m3")
    with pytest.raises(GpuError, match=r"CuPy cannot copy codes into C's order"):
        mor_ref.cuda.decode(Array(np.ones((4, 4), np.uint8)[:, ::2]), "e4m3")


@pytest.mark.usefixtures("torch")
def test_an_error_of_a_kernel_before_is_not_one_of_the_argument(cupy, monkeypatch):
    failure = cupy.cuda.runtime.CUDARuntimeError("cudaErrorIllegalAddress")
    message = re.escape("of the GPU cannot be used (cudaErrorIllegalAddress); an error of a kernel")
    monkeypatch.setattr(cupy, "from_dlpack", raises(failure))
    monkeypatch.setattr(cupy, "asarray", raises(failure))
    x = numbers("f32")
    for given in (Elsewhere(x, "dlpack"), Elsewhere(x, "interface"), Tensor(x, Torch.float32)):
        with pytest.raises(GpuError, match=message):
            mor_ref.cuda.encode(given, "e4m3")


@pytest.mark.usefixtures("cupy")
def test_errors_of_torch_are_of_the_gpu_or_of_the_argument(torch, monkeypatch):
    """A nested tensor has no strides to be contiguous with, and an old torch no name for some."""
    x = Tensor(numbers("f32"), torch.float32)

    def refused_with(failure):
        monkeypatch.setattr(Tensor, "contiguous", raises(failure))
        with pytest.raises((GpuError, TypeError)) as refused:
            mor_ref.cuda.encode(x, "e4m3")
        return str(refused.value)

    of_gpu = "the GPU has too little memory left (CUDA out of memory); free"
    assert refused_with(torch.OutOfMemoryError("CUDA out of memory")).startswith(of_gpu)
    of_gpu = "memory of the GPU cannot be used (CUDA error)"
    assert refused_with(torch.AcceleratorError("CUDA error")).startswith(of_gpu)
    of_argument = "x is a Tensor, not an array on a GPU (NestedTensorImpl doesn't support sizes)"
    nested = RuntimeError("NestedTensorImpl doesn't support sizes")
    assert refused_with(nested).startswith(of_argument)
    monkeypatch.delattr(torch, "AcceleratorError")
    assert refused_with(nested).startswith(of_argument)


@pytest.mark.parametrize(
    ("step", "kind", "name"),
    [
        ("encode", "Stream", "synchronize"),
        ("encode", "Stream", "wait_event"),
        ("encode", "Event", "record"),
        ("dequantize", "Stream", "wait_event"),
        ("dequantize", "Event", "record"),
    ],
)
def test_errors_of_streams_are_explained(cupy, monkeypatch, step, kind, name):
    """Where they wait for others, and the host for them, an error of a kernel before may show."""
    x, words = numbers("f32"), np.zeros((37, 75), np.uint32)
    steps = {
        "encode": lambda: drawn(cupy, Elsewhere(x, "dlpack"), Array(words)),
        "dequantize": mor_ref.cuda.quantize(Array(x), "e4m3").dequantize,
    }
    failure = cupy.cuda.runtime.CUDARuntimeError("cudaErrorIllegalAddress")
    monkeypatch.setattr(getattr(cupy.cuda, kind), name, raises(failure))
    with pytest.raises(GpuError, match=r"of the GPU cannot be used \(cudaErrorIllegalAddress\)"):
        steps[step]()


def test_what_was_launched_before_a_failure_still_reads(cupy, torch, monkeypatch):
    """So the stream that wrote waits for it, and a library that lent the memory as well."""
    x, launch = numbers("f32"), Function.__call__
    found = mor_ref.cuda.quantize(Tensor(x, torch.float32), "e4m3")

    def launch_and_fail(*arguments):
        launch(*arguments)
        raise RuntimeError("cudaErrorLaunchTimeout")

    monkeypatch.setattr(Function, "__call__", launch_and_fail)
    for call in (found.dequantize, lambda: mor_ref.cuda.encode(Elsewhere(x, "dlpack"), "e4m3")):
        cupy.launches.clear()
        with pytest.raises(GpuError, match="cudaErrorLaunchTimeout"):
            call()
        waits = Stream.done if call != found.dequantize else Stream.done_before[1, 0xABC]
        assert waits >= set(cupy.launches) > set()


# ---------------------------------------------------------------------- programs


@pytest.fixture
def architectures(monkeypatch):
    monkeypatch.setattr(nvrtc, "architectures", lambda: (75, 90))
    monkeypatch.setattr(nvrtc, "version", lambda: (13, 1))


@pytest.mark.usefixtures("architectures")
def test_gpus_that_nvrtc_does_not_know():
    with pytest.raises(GpuError, match="capability 7.0, and NVRTC 13.1 compiles for 7.5 and later"):
        device.cubin("scales", 70)
    with pytest.raises(GpuError, match="capability 10.0, which NVRTC 13.1 does not know; pip"):
        device.cubin("scales", 100)


@pytest.mark.tier("full")
def test_the_ptx_is_checked_before_anything_is_loaded(monkeypatch):
    needed.library()
    assert device.cubin("scales", 90)[:4] == b"\x7fELF"
    wrong = 'extern "C" __global__ void kernel(float* a) { a[0] = a[0] * a[1] + a[2]; }'
    monkeypatch.setattr(source, "flattened", lambda _: wrong)
    monkeypatch.setattr(nvrtc, "ARITHMETIC", ())
    monkeypatch.setattr(nvrtc.compiled, "__defaults__", ((),))
    with pytest.raises(ptx.PtxError, match=r"scales: kernel kernel holds fma.rn.f32, .* loaded"):
        device.cubin("scales", 90)


def test_a_program_is_compiled_once(cupy, monkeypatch):
    """And again for another NVRTC, GPU, standard of C++, or check of its PTX."""
    names = []
    monkeypatch.setattr(device, "cached_file", lambda name, _: names.append(name) or name)
    for version, gpu in (((13, 0), "90"), ((13, 1), "90"), ((13, 1), "100")):
        monkeypatch.setattr(nvrtc, "version", lambda version=version: version)
        monkeypatch.setattr(cupy.cuda.Device, "compute_capability", gpu)
        device._module.cache_clear()
        for _ in range(2):
            mor_ref.cuda.encode(X, "e4m3")
    monkeypatch.setattr(nvrtc, "LANGUAGE", ("--std=c++20", *nvrtc.LANGUAGE[1:]))
    device._module.cache_clear()
    device._module("encoding", 100)
    monkeypatch.setattr(ptx, "__file__", __file__)
    device._module.cache_clear()
    device._module("encoding", 100)
    assert len(set(names)) == len(names) == 5
    assert all(re.fullmatch(r"encoding-[0-9a-f]{24}\.cubin", name) for name in names)
