"""Calls in loops: what follows from arguments alone is made once, and stays right."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ml_dtypes
import numba
import numpy as np
import pytest
from records import (
    SOURCES,
    adversarial,
    differing,
    engine_mor,
    engine_mx,
    engine_nvfp4,
    engine_quantize,
    exact_mor,
    exact_mx,
    exact_nvfp4,
    exact_quantize,
)

import mor_ref
from mor_ref import exact
from mor_ref.api import encoding
from mor_ref.arrays import numbers_from, room_for, unsigned_from
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.engine import dot_exact, small_tensors
from mor_ref.engine.amaxes import find_extremes
from mor_ref.engine.decoding import decode_array
from mor_ref.engine.encoding import encode_array, encode_array_to_nearest
from mor_ref.engine.formats import BINARY32, target_for
from mor_ref.engine.kernel import Direct
from mor_ref.engine.quantization import quantize_part
from mor_ref.tracing import TRACER

X = np.float32([0.3, -1.1, 464, 1e-9, -0.0])


def codes_of(fmt, rounding="rne"):
    return [exact.encode(float(x), fmt, rounding) for x in X]


def test_a_plan_is_made_once():
    mor_ref.encode(X, "e4m3", rounding="rtz")
    made = encoding._plans.count
    for _ in range(3):
        found = mor_ref.encode(X, "e4m3", rounding="rtz")
    assert encoding._plans.count == made
    assert found.tolist() == codes_of(mor_ref.formats["e4m3"], "rtz")


def test_each_dtype_has_its_loop():
    """The kernel of one dtype never sees the numbers of another."""
    for dtype in (np.float32, np.float64, np.float16, np.float32, np.int8, np.float64):
        found = mor_ref.encode(np.arange(5).astype(dtype), "e5m2")
        assert found.tolist() == mor_ref.encode(np.arange(5.0), "e5m2").tolist()


def test_a_format_that_is_added_again_has_its_own_plan():
    made = {}
    for bias in (3, 5):
        mine = mor_ref.Format("again", exponent_bits=3, mantissa_bits=2, bias=bias, specials="none")
        mor_ref.formats["again"] = mine
        try:
            assert mor_ref.encode(X, "again").tolist() == codes_of(mine)
            made[bias] = mor_ref.decode(mor_ref.encode(X, "again"), "again").tolist()
        finally:
            del mor_ref.formats["again"]
    assert made[3] != made[5]
    with pytest.raises(mor_ref.UnknownNameError, match="format is 'again'"):
        mor_ref.encode(X, "again")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rounding": "up"}, "rounding is 'up', which is not known"),
        ({"rounding": ["rne"]}, "rounding is \\['rne'\\], which is not known"),
        ({"overflow": {}}, "overflow is {}, which is not known"),
        ({"nan": 3}, "nan is 3, which is not known"),
        ({"profile": "nosuch"}, "profile is 'nosuch', which is not known"),
        ({"profile": "cuda", "nan": "signed"}, "a profile sets the codes of overflow and of NaN"),
    ],
)
def test_a_wrong_option_is_refused_each_time(options, words):
    for _ in range(3):
        with pytest.raises(ValueError, match=words):
            mor_ref.encode(X, "e4m3", **options)


def kind_of(*arrays):
    """Return what tells these arrays apart, as callers of compiled functions find it."""
    return tuple(part for array in arrays for part in (array.dtype, array.flags.num))


def arrays_in_odd_places():
    whole = np.zeros(41, np.uint8)
    yield "not aligned", whole[1:].view(np.float32)[:10]
    yield "every other", np.arange(20, dtype=np.float32)[::2]
    yield "backwards", np.arange(10, dtype=np.float32)[::-1]
    yield "columns", np.arange(20, dtype=np.float32).reshape(4, 5).T
    yield "another byte order", np.arange(10, dtype=">f4")
    yield "read-only", np.broadcast_to(np.float32(3), 10)
    yield "a number", np.float32(3)
    yield "none", np.empty((0, 3), np.float32)


@pytest.mark.parametrize(("name", "x"), [*arrays_in_odd_places()])
def test_numbers_and_codes_may_lie_anywhere(name, x):
    del name
    found = mor_ref.encode(x, "e4m3")
    right = [exact.encode(float(number), mor_ref.formats["e4m3"]) for number in np.ravel(x)]
    assert found.ravel().tolist() == right
    assert found.shape == np.shape(x)
    codes = np.zeros(x.size + 1, np.uint8)[1:].reshape(x.shape)
    codes[...] = found
    for given in (codes, codes[::-1] if codes.ndim else codes, codes.T, codes.astype(">u2")):
        y = mor_ref.decode(given, "e4m3")
        right = [mor_ref.formats["e4m3"].value(int(code)) for code in np.ravel(given)]
        assert y.ravel().tolist() == right


def test_results_go_to_places_that_are_not_aligned():
    """The compiled functions take aligned arrays, so these get a copy."""
    room = np.zeros(2 * X.size + 1, np.uint8)
    out = room[1:].view(np.uint16)
    assert mor_ref.encode(X, "bf16", out=out) is out
    assert out.tolist() == codes_of(mor_ref.formats["bf16"])
    room = np.zeros(4 * X.size + 1, np.uint8)
    y = room[1:].view(np.float32)
    assert mor_ref.decode(out, "bf16", out=y) is y
    assert y.tolist() == mor_ref.decode(out, "bf16").tolist()


def test_compiled_functions_take_aligned_arrays_alone():
    x = np.zeros(41, np.uint8)[1:].view(np.float32)
    assert not x.flags.aligned
    assert numbers_from(x, "x").bits.flags.aligned
    assert unsigned_from(x.view(np.uint32), 32, np.dtype(np.uint32), "codes").flags.aligned
    out = np.zeros(21, np.uint8)[1:].view(np.uint16)
    assert not out.flags.aligned
    assert room_for(out, out.shape, out.dtype, [])[0].flags.aligned


def test_a_kernel_is_compiled_for_each_dtype_of_numbers():
    """Bits of bfloat16 are half as wide as those of binary32."""
    target = target_for(mor_ref.formats["e4m3"], "rne", SpecialCases(), BINARY32)
    direct = Direct(encode_array, target, np.uint32)
    for x in (X, X.astype(ml_dtypes.bfloat16), X):
        numbers, codes = numbers_from(x, "x"), np.empty(x.size, np.uint8)
        direct(kind_of(numbers.bits, codes), numbers.bits, codes)
        assert codes.tolist() == mor_ref.encode(x.astype(np.float64), "e4m3").tolist()


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros(10, np.uint32)[::2],
        np.zeros(10, np.uint32)[::-1],
        np.zeros(41, np.uint8)[1:].view(np.uint32),
        np.zeros(10, ">u4"),
        np.zeros((2, 6), np.uint32).T,
        np.zeros(10, "M8[s]"),
    ],
    ids=["every other", "backwards", "not aligned", "byte order", "columns", "dates"],
)
def test_a_direct_call_refuses_arrays_that_its_kernel_would_read_wrongly(wrong):
    target = target_for(mor_ref.formats["e4m3"], "rne", SpecialCases(), BINARY32)
    direct = Direct(encode_array, target, np.uint32)
    x, codes = np.zeros(10, np.uint32), np.zeros(10, np.uint8)
    direct(kind_of(x, codes), x, codes)
    for _ in range(2):
        with pytest.raises(TypeError, match="lies in no order that kernels take"):
            direct(kind_of(wrong, codes), wrong, codes)


def test_a_direct_call_tells_kinds_of_arrays_apart():
    """A function for each dtype, and none that writes where it must not."""
    target = target_for(mor_ref.formats["e4m3"], "rne", SpecialCases(), BINARY32)
    direct = Direct(encode_array, target, np.uint32)
    x, codes = X.view(np.uint32), np.zeros(X.size, np.uint8)
    direct(kind_of(x, codes), x, codes)
    wide = np.zeros(X.size, np.uint16)
    direct(kind_of(x, wide), x, wide)
    assert wide.tolist() == codes.tolist() == codes_of(mor_ref.formats["e4m3"])
    codes[:] = 0
    codes.flags.writeable = False
    with pytest.raises(numba.TypingError):
        direct(kind_of(x, codes), x, codes)
    assert not codes.any()


def test_arrays_that_can_be_written_have_the_functions_of_others():
    """Kernels only read what is given, so none is compiled a second time."""
    x, codes = np.arange(10, dtype=np.float32), np.arange(20, dtype=np.uint8).reshape(2, 10)
    calls = {
        encode_array_to_nearest: lambda: mor_ref.encode(x, "e4m3"),
        decode_array: lambda: mor_ref.decode(codes, "e4m3"),
        find_extremes: lambda: mor_ref.quantize(x, "e4m3"),
        quantize_part: lambda: mor_ref.quantize(x, "e4m3"),
        dot_exact.exact: lambda: mor_ref.dot(codes, codes),
    }
    for kernel, call in calls.items():
        x.flags.writeable = codes.flags.writeable = True
        found = call()
        count = len(kernel.signatures)
        x.flags.writeable = codes.flags.writeable = False
        again = call()
        assert len(kernel.signatures) == count
        assert np.array_equal(again, found)


QUANTIZED = [
    ("e4m3", {}),
    ("e5m2", {"scaling": "fp32"}),
    ("e2m1", {"scaling": "e8m0", "block": (1, 8)}),
    ("e3m2", {"block": (2, 5), "group": (4, 10)}),
    ("e4m3fnuz", {"block": "column"}),
    ("e2m3", {"block": (1, 1), "group": "row"}),
]
FLOATS = {
    **{
        f"{fmt} {options}": (
            lambda x, fmt=fmt, options=options, **more: engine_quantize(x, fmt, **options, **more),
            lambda x, fmt=fmt, options=options: exact_quantize(x, fmt, **options),
        )
        for fmt, options in QUANTIZED
    },
    **{
        f"mx {fmt} {rule} {block}": (
            lambda x, own=(fmt, rule, block), **more: engine_mx(
                x, own[0], scale_rule=own[1], block=own[2], **more
            ),
            lambda x, own=(fmt, rule, block): exact_mx(x, *own),
        )
        for fmt, rule, block in [("e4m3", "floor", 32), ("int8_mx", "rceil", 5)]
    },
    **{
        f"nvfp4 {profile} {tile}": (
            lambda x, own=(profile, tile), **more: engine_nvfp4(
                x, profile=own[0], tile=own[1], **more
            ),
            lambda x, own=(profile, tile): exact_nvfp4(x, *own),
        )
        for profile, tile in [("te", (16, 16)), ("te_row", (1, 16)), ("te_4over6_mse", (1, 16))]
    },
    "mor": (
        lambda x, **more: engine_mor(x, "two_way", block=(2, 8), **more),
        lambda x: exact_mor(x, "two_way", block=(2, 8)),
    ),
}
TIES = np.float32([[0.0, -0.0, 17.0, 19.0, -21.0, 2.5, 3.5, -0.75, 1e-45, -1e-40, 448, 464, 480]])
INPUTS = {
    "ties, zeros and subnormals": TIES,
    "NaN and infinities": np.float32([[np.nan, -np.inf, np.inf, 1, -3, 0], [1, 2, 3, 4, 5, 6]]),
    "zeros": np.zeros((3, 20), np.float32),
    "the largest": np.full((2, 17), 3.4028235e38, np.float32),
    "empty": np.zeros((0, 7), np.float32),
    "a number": np.float32(-1.1).reshape(()),
    **{f"random {seed}": adversarial((5, 37), seed) for seed in range(3)},
}


@pytest.mark.parametrize("name", FLOATS)
def test_small_tensors_are_those_of_the_exact_model(name):
    """With a number of threads, they go the way of all others."""
    engine, exact_records = FLOATS[name]
    for x in INPUTS.values():
        for dtype in SOURCES:
            with np.errstate(all="ignore"):
                own = x.astype(dtype)
            right = exact_records(own)
            for threads in ({}, {}, {"threads": 1}):
                assert differing(engine(own, **threads), right) == {}, (x, dtype, threads)


@pytest.mark.parametrize("name", FLOATS)
def test_numbers_of_tensors_may_lie_anywhere(name):
    engine, exact_records = FLOATS[name]
    for place, x in arrays_in_odd_places():
        if x.ndim == 0:
            x = np.asarray(x)  # noqa: PLW2901  # for the exact model
        plain = np.array(x, np.float32, order="C")
        assert differing(engine(x), exact_records(plain)) == {}, place


@pytest.mark.parametrize("name", ["e4m3 {}", "mx e4m3 floor 32", "nvfp4 te (16, 16)"])
def test_codes_of_tensors_go_anywhere(name):
    """A place that kernels do not take gets a copy, also where it is that of the numbers."""
    engine, exact_records = FLOATS[name]
    x = adversarial((4, 8), 5)
    right = exact_records(x)["codes"]
    own = x.copy()
    places = [
        np.zeros((4, 16), np.uint8)[:, ::2],
        np.zeros((8, 4), np.uint8).T,
        np.zeros((4, 8), np.uint8)[::-1],
        own.view(np.uint8).reshape(-1)[:32].reshape(4, 8),
    ]
    for out in places:
        source = own if np.may_share_memory(out, own) else x
        engine(source, out=out)
        assert out.ravel().tolist() == right
    locked = np.zeros((4, 8), np.uint8)
    locked.flags.writeable = False
    with pytest.raises(ValueError, match="out"):
        engine(x, out=locked)
    assert not locked.any()


def test_threads_that_call_at_once_get_their_own_results():
    """Plans and compiled functions are shared, and nothing that is written to."""
    shapes = [(5, 37), (1, 128), (16, 16), (3, 64)]
    tensors = [adversarial(shape, 40 + k) for k, shape in enumerate(shapes)]
    names = [name for name in FLOATS if name != "mor"]
    jobs = [(name, x) for x in tensors for name in names]
    right = [FLOATS[name][1](x) for name, x in jobs]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            found = [pool.submit(FLOATS[name][0], x) for name, x in jobs]
            for future, expected in zip(found, right, strict=True):
                assert differing(future.result(), expected) == {}


def types_of(arguments):
    """Return Numba's types of arguments; of arrays, whether they can be written does not count."""
    types = map(numba.typeof, arguments)
    return [own.copy(readonly=True) if isinstance(own, numba.types.Array) else own for own in types]


@pytest.fixture
def types_of_steps(monkeypatch):
    """Let each step of small tensors compare the types of its arguments with the first ones."""
    seen, compile_for = [], small_tensors.compiled_for

    def compiled_for_checked(kernel, arguments, given):
        function, expected = compile_for(kernel, arguments, given), types_of(arguments)
        seen.append(function)

        def call(*own):
            assert types_of(own) == expected
            return function(*own)

        return call

    def forget():
        small_tensors.small_tensor.cache_clear()
        small_tensors._kernels_of.cache_clear()

    forget()
    monkeypatch.setattr(small_tensors, "compiled_for", compiled_for_checked)
    yield seen
    forget()


def test_calls_of_one_kind_have_arguments_of_one_type(monkeypatch, types_of_steps):
    """A kind tells what was given apart, and Numba's types of all arguments follow."""
    types, call = {}, Direct.__call__

    def compared(direct, kind, *arguments):
        seen = types_of((*arguments, *direct.row))
        _, first = types.setdefault((id(direct), kind), (direct, seen))
        assert first == seen, direct.kernel
        return call(direct, kind, *arguments)

    monkeypatch.setattr(Direct, "__call__", compared)
    words = np.arange(5 * 37, dtype=np.uint8).reshape(5, 37)
    for x in [*INPUTS.values(), words.view(np.int8).astype(np.float32)]:
        for dtype in SOURCES:
            with np.errstate(all="ignore"):
                own = x.astype(dtype)
            for engine, _ in FLOATS.values():
                engine(own)
                engine(np.asfortranarray(own))
            for fmt in ("e4m3", "e8m0", "bf16", "int8_mx"):
                mor_ref.decode(mor_ref.encode(own, fmt), fmt)
            mor_ref.quantize(own, "mxfp8")
            if own.size:
                mor_ref.quantize(own, "e4m3", out=np.empty(own.shape, np.uint8))
            for n, word in enumerate((np.uint8, np.uint16, np.uint32)):
                given = {"random_bits": np.full(own.shape, n, word), "n_random_bits": 5 + n}
                mor_ref.quantize(own, "e4m3", **given)
    rows = np.arange(64, dtype=np.uint8).reshape(2, 32)
    for profile in ("exact", "hopper_fp8", "f32_fma"):
        for codes in (rows, rows[:, ::2], rows.T):
            fmt = ("e4m3", "e4m3") if profile != "f32_fma" else ("f32", "f32")
            mor_ref.dot(codes, codes, formats=fmt, profile=profile)
    assert len({direct.kernel for direct, _ in types.values()}) > 5
    assert len(types_of_steps) > 20


PACKAGE = f"{Path(mor_ref.__file__).parent}/"  # not torch, which may lie in a directory mor_ref
# Calls of Python functions in one call, at most: more mean that a plan is made again, or that work
# came back that does not belong into each call.
LIMITS = {
    "encode": (lambda x: mor_ref.encode(x, "e4m3"), 12),
    "decode": (lambda x: mor_ref.decode(x.view(np.uint8), "e4m3"), 12),
    "quantize": (lambda x: mor_ref.quantize(x, "e4m3"), 24),
    "mx": (lambda x: mor_ref.quantize_mx(x, "e4m3"), 20),
    "nvfp4": (mor_ref.quantize_nvfp4, 26),
    "mor": (mor_ref.mor, 50),
    "dot": (lambda x: mor_ref.dot(x.view(np.uint8)[None, :], x.view(np.uint8)[None, :]), 20),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_call_makes_few_calls(monkeypatch, name):
    """Where torch traces nothing: it is left out of each call if another test has imported it."""
    monkeypatch.delitem(sys.modules, TRACER, raising=False)
    call, most = LIMITS[name]
    x = np.linspace(-3, 3, 128, dtype=np.float32)
    call(x)
    made = []

    def count(frame, event, argument):
        del argument
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            made.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        call(x)
    finally:
        sys.setprofile(before)
    assert len(made) <= most, made


@pytest.mark.parametrize(
    "call",
    [
        lambda x: mor_ref.quantize(x, "e4m3"),
        lambda x: mor_ref.quantize_mx(x, "e4m3"),
        mor_ref.quantize_nvfp4,
        lambda x: mor_ref.mor(x, "three_way"),
    ],
    ids=["quantize", "quantize_mx", "quantize_nvfp4", "mor"],
)
def test_other_lengths_have_the_same_kernels(call):
    """The sides of blocks are told, so that a token more costs no kernel."""
    x = np.random.default_rng(3).standard_normal(400, dtype=np.float32)
    call(x[:77])
    call(x[:90])
    before = small_tensors._kernels_of.cache_info().misses
    for length in range(91, 99):
        call(x[:length])
    assert small_tensors._kernels_of.cache_info().misses == before
