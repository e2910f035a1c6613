"""What users of NumPy, torch, JAX and ml_dtypes write by habit: it works, or says what to do.

Each row is a call, and the value that it returns or the words that its refusal has.
"""

import datetime as dt
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mor_ref
from mor_ref.cli import listings
from mor_ref.definitions.encoding import ROUNDINGS
from mor_ref.definitions.format_names import DTYPES
from mor_ref.definitions.formats import encoding_profiles
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.policies import POLICIES
from mor_ref.recipes import as_tensor_recipe

X = np.linspace(-3, 3, 64, dtype=np.float32).reshape(2, 32)
AMAX = np.abs(X).max()
Q = mor_ref.quantize(X, "e4m3")
Call = Callable[[], Any]


def _codes(**arguments: Any) -> list[int]:
    codes: list[int] = mor_ref.quantize(X, "e4m3", **arguments).codes.ravel().tolist()
    return codes


# ---------------------------------------------------------------------- one number

_THREE = _codes(amax=3.0)
NUMBERS = [3.0, 3, np.float32(3), np.float64(3), np.float16(3), np.int64(3), np.uint8(3),
           ml_dtypes.bfloat16(3), ml_dtypes.float8_e4m3fn(3), np.array(3.0), np.array(3, np.int8),
           Fraction(3), np.float32([3])[0], AMAX]  # fmt: skip


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: f"{type(number).__name__}-{number}")
def test_a_number_is_one_of_any_library(number: Any) -> None:
    assert _codes(amax=number) == _THREE
    nvfp4 = mor_ref.quantize_nvfp4(X, global_scale=number)
    assert nvfp4 == mor_ref.quantize_nvfp4(X, global_scale=3.0)
    scaled = mor_ref.quantize(X, "e4m3", scaling="fp32", scale=number)
    assert scaled == mor_ref.quantize(X, "e4m3", scaling="fp32", scale=3.0)
    assert (mor_ref.select(X, "column", limit=number) == mor_ref.select(X, limit=3.0)).all()


def test_a_scale_that_numpy_computes() -> None:
    scale = 448 / AMAX
    assert mor_ref.quantize(X, "e4m3", scaling="fp32", scale=scale).scale.item() == scale


REFUSED_NUMBERS: list[tuple[Any, str]] = [
    (0.1, "amax is 0.1, which is not a number of binary32; the nearest is 0.10000000149011612"),
    (np.float64(0.1), "amax is 0.1, which is not a number of binary32"),
    (Fraction(1, 3), "which is not a number of binary32; the nearest is 0.3333333432674408"),
    (1e300, "amax is 1e\\+300, which is no finite number of binary32; give one, such as 3.5"),
    (float("nan"), "amax is nan, which is no finite number of binary32"),
    (10**400, "which is no number of binary32"),
    (-1.0, "amax is -1.0; give a number that is not negative"),
    (X, "amax has the shape 2x32; give one number, or one for each of the 1x1 groups"),
    (["3"], "amax holds text"),
    ("3", "amax is '3'; give a number"),
    (True, "amax is True; give a number"),
    (np.bool_(1), "give a number"),
    (3j, "amax is 3j; give a number"),
]


@pytest.mark.parametrize(("number", "words"), REFUSED_NUMBERS, ids=repr)
def test_what_is_no_number_is_refused_in_a_line(number: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^.*{words}") as refused:
        _codes(amax=number)
    assert len(str(refused.value)) < 200


# ---------------------------------------------------------------------- exact inputs

EXACT: list[tuple[Any, list[float]]] = [
    (1, [1]),
    ([1.5, 2], [1.5, 2]),
    ([1, 2, 3], [1, 2, 3]),
    (np.arange(4), [0, 1, 2, 3]),
    (np.arange(4, dtype=np.int8), [0, 1, 2, 3]),
    (np.uint16([65535]), [65535]),
    (
        np.int64([1 << 40, -(1 << 63), -1, 0, (1 << 24) - 1]),
        [2.0**40, -(2.0**63), -1, 0, 2.0**24 - 1],
    ),
    (np.uint64([1 << 63, (1 << 24) - 1 << 40]), [2.0**63, (2.0**24 - 1) * 2**40]),
    ([np.int64(3), 1.5], [3, 1.5]),
    *(
        (np.array([0.5, -2, 1], getattr(ml_dtypes, name)), [0.5, -2, 1])
        for name in DTYPES
        if hasattr(ml_dtypes, name) and "e8m0" not in name
    ),
    (np.array([0.5, 4], ml_dtypes.float8_e8m0fnu), [0.5, 4]),
    (np.array([-3, 7], ml_dtypes.int4), [-3, 7]),
    (np.array([15], ml_dtypes.uint4), [15]),
]


@pytest.mark.parametrize(("x", "values"), EXACT, ids=lambda x: str(getattr(x, "dtype", x)))
def test_what_is_exact_is_taken(x: Any, values: list[float]) -> None:
    expected = mor_ref.encode(np.float64(values), "e5m2").ravel().tolist()
    assert mor_ref.encode(x, "e5m2").ravel().tolist() == expected
    if np.ndim(x):
        codes = mor_ref.quantize(np.atleast_2d(x), "e5m2").codes
        assert (codes == mor_ref.quantize(np.float32([values]), "e5m2").codes).all()


REFUSED: list[tuple[Any, str]] = [
    (
        np.int32([(1 << 24) + 1]),
        "x holds 16777217, which float32 does not have; convert it",
    ),
    ([(1 << 24) + 1, 5], "x holds 16777217, which float32 does not have"),
    ([(1 << 53) + 1, 1.5], "x holds the int 9007199254740993"),
    ("0.3", "x holds text"),
    (["0.3"], "x holds text"),
    ([True, False], "bool"),
    (np.array([True]), "x holds truth values"),
    ([1 + 2j], "complex"),
    (np.array([1j]), "x holds complex numbers"),
    (np.datetime64("2026-01-01"), "x holds dates"),
    ([dt.date(2026, 1, 1)], "x holds objects"),
    ((v for v in [1.0]), "x holds objects"),
    (None, "x holds objects"),
    ({1.0}, "x holds objects"),
]


@pytest.mark.parametrize(("x", "words"), REFUSED, ids=lambda x: type(x).__name__)
def test_what_would_be_rounded_or_is_no_number_is_refused(x: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words) as refused:
        mor_ref.quantize(x, "e4m3")
    assert ("round" in str(refused.value)) == ("does not have" in str(refused.value))


def test_an_encoder_takes_what_binary64_has() -> None:
    odd = (1 << 53) - 1
    assert mor_ref.encode(np.int64([odd]), "f32") == mor_ref.encode(np.float64([odd]), "f32")
    with pytest.raises(TypeError, match="which float64 does not have"):
        mor_ref.encode(np.int64([odd + 2]), "f32")


@pytest.mark.parametrize("name", [name for name in DTYPES if hasattr(ml_dtypes, name)])
def test_codes_may_have_the_dtype_of_their_format(name: str) -> None:
    array = np.array([0.5, 2, 1], getattr(ml_dtypes, name))
    assert mor_ref.decode(array, DTYPES[name]).tolist() == [0.5, 2, 1]
    other = "e5m2" if DTYPES[name] != "e5m2" else "e4m3"
    with pytest.raises(TypeError, match=f"which is {DTYPES[name]}, and the format is '{other}'"):
        mor_ref.decode(array, other)


# ---------------------------------------------------------------------- names of formats

FORMATS: list[tuple[Any, str]] = [
    *((name, fmt) for name, fmt in DTYPES.items() if not name.endswith("_x2")),
    *((name.upper(), fmt) for name, fmt in DTYPES.items() if not name.endswith("_x2")),
    *((f"torch.{name}", fmt) for name, fmt in DTYPES.items() if not name.endswith("_x2")),
    *((getattr(ml_dtypes, n), fmt) for n, fmt in DTYPES.items() if hasattr(ml_dtypes, n)),
    *((np.dtype(getattr(ml_dtypes, n)), fmt) for n, fmt in DTYPES.items() if hasattr(ml_dtypes, n)),
    (np.float16, "f16"),
    (np.dtype("float32"), "f32"),
    *((name.upper(), name) for name in mor_ref.formats),
]


@pytest.mark.parametrize(("given", "name"), FORMATS, ids=str)
def test_a_format_has_any_of_its_names(given: Any, name: str) -> None:
    x = [0.3, -500.0, 1e-9]
    assert mor_ref.encode(x, given).tolist() == mor_ref.encode(x, name).tolist()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("fp8", "did you mean 'e4m3' or 'e5m2'"),
        ("fp4", "did you mean 'e2m1'"),
        ("tf32", "format is 'tf32', which is not known"),
        (float, "which is not known"),
        (np.int8, "which is not known"),
        ("float8", "did you mean 'e4m3' or 'e5m2'"),
    ],
)
def test_a_name_of_several_formats_or_of_none_is_refused(given: Any, words: str) -> None:
    with pytest.raises(mor_ref.UnknownNameError, match=words):
        mor_ref.encode([0.3], given)


@pytest.mark.parametrize("name", [name for name in DTYPES if hasattr(ml_dtypes, name)])
def test_limits_are_those_of_ml_dtypes(name: str) -> None:
    theirs = ml_dtypes.finfo(getattr(ml_dtypes, name))
    for limits in (mor_ref.finfo(DTYPES[name]), mor_ref.finfo(getattr(ml_dtypes, name))):
        for field in ("bits", "max", "min", "tiny", "smallest_normal", "smallest_subnormal", "eps",
                      "epsneg", "nmant", "nexp", "maxexp", "minexp"):  # fmt: skip
            assert float(getattr(limits, field)) == float(getattr(theirs, field)), field


def test_integers_have_no_limits_of_floats() -> None:
    with pytest.raises(ValueError, match="format 'int8_mx' has integers"):
        mor_ref.finfo("int8_mx")


# ---------------------------------------------------------------------- arguments

ARGUMENTS: list[tuple[Call, Call]] = [
    (lambda: mor_ref.quantize_nvfp4(X, tile=np.array([1, 16])), lambda: mor_ref.quantize_nvfp4(X)),
    (lambda: mor_ref.quantize_nvfp4(X, tile=[1, 16]), lambda: mor_ref.quantize_nvfp4(X)),
    (
        lambda: mor_ref.quantize(X, "e4m3", block=np.array([1, 16])),
        lambda: mor_ref.quantize(X, "e4m3", block=(1, 16)),
    ),
    (
        lambda: mor_ref.quantize(X, "e4m3", block=(np.int64(1), np.int32(16))),
        lambda: mor_ref.quantize(X, "e4m3", block=(1, 16)),
    ),
    (
        lambda: mor_ref.quantize_mx(X, "e4m3", block=np.int64(32)),
        lambda: mor_ref.quantize_mx(X, "e4m3"),
    ),
    (lambda: mor_ref.quantize(X, "E4M3", threads=1000), lambda: mor_ref.quantize(X, "e4m3")),
]


@pytest.mark.parametrize(("call", "meant"), ARGUMENTS)
def test_an_argument_may_be_of_numpy(call: Call, meant: Call) -> None:
    assert call() == meant()


HINTS: list[tuple[Call, str]] = [
    (lambda: mor_ref.encode(X, "e4m3", overflow="saturate"), "did you mean 'satfinite'"),
    (lambda: mor_ref.encode(X, "e4m3", overflow="inf"), "did you mean 'ieee'"),
    (lambda: mor_ref.encode(X, "e4m3", rounding="stochastic"), "did you mean 'sr'"),
    (lambda: mor_ref.quantize_nvfp4(X, profile="transformer_engine"), "did you mean 'te'"),
    (
        lambda: mor_ref.quantize_mx(X, "e4m3", block_size=32),
        "no argument 'block_size'; give block$",
    ),
    (lambda: mor_ref.quantize_nvfp4(X, group_size=16), r"give tile, which is a pair \(rows, col"),
    (
        lambda: mor_ref.quantize(X, "e4m3", axis=0),
        "quantize has no argument 'axis'; give block, which is 'tensor', 'row', 'column' or a pair",
    ),
    (lambda: mor_ref.quantize_mx(X, "e4m3", seed=1), "give random_bits and n_random_bits"),
    (lambda: mor_ref.quantize(X, "e4m3", rounding="sr"), "give random_bits and n_random_bits"),
    (lambda: mor_ref.encode(X, "e4m3", rounding_mode="sr"), "give rounding, which is 'rne', 'rtz'"),
    (lambda: mor_ref.quantize(X, "e4m3", device="cuda"), "leave it out, .* computes on the CPU"),
    (lambda: mor_ref.quantize(X, "e4m3", "row"), "takes x and fmt by place, and is given 3 .* by"),
    (lambda: mor_ref.verify(max, "e4m3"), "verify takes candidate by place, .* give inputs, re"),
    (lambda: mor_ref.verify(max, input=X, recipe="e4m3"), "no argument 'input'; give inputs$"),
    (lambda: mor_ref.verify(max), "^verify.. missing 2 .*'inputs' and 'recipe'"),
    (lambda: mor_ref.encode(X, dtype="e4m3"), "encode has no argument 'dtype'; give fmt$"),
    (
        lambda: mor_ref.encode(X, "e4m3", saturate=True),
        "no argument 'saturate'; give overflow, which is 'satfinite' or 'ieee'$",
    ),
    (lambda: mor_ref.encode(X, "e4m3", overflow=True), "did you mean 'satfinite'"),
    (lambda: mor_ref.encode(X, "e4m3", overflow=False), "did you mean 'ieee'"),
    (lambda: mor_ref.encode(X, "e4m3", rounding="even"), "did you mean 'rne'"),
    (lambda: mor_ref.encode(X, "e4m3", rounding="up"), "did you mean 'rtp' or 'rna'"),
    (lambda: mor_ref.quantize(X, "e4m3", scaling="float32"), "did you mean 'fp32'"),
    (lambda: mor_ref.quantize(X, "e4m3", scaling="ue8m0"), "did you mean 'e8m0'"),
    (lambda: mor_ref.quantize(X, "e4m3", block="per_row"), "did you mean 'row'"),
    (lambda: mor_ref.quantize(X, "e4m3", block="per-channel"), "did you mean 'row' or 'column'"),
    (lambda: mor_ref.quantize(X, "int8"), r"call mor_ref.quantize_affine\(x, 'int8'\)"),
    (lambda: mor_ref.quantize(X, np.int8), r"call mor_ref.quantize_affine\(x, 'int8'\)"),
    (lambda: mor_ref.quantize(X, "mor"), r"is a policy; call mor_ref.mor\(x, 'tensor'\)"),
    (lambda: mor_ref.quantize(X, "mor:three_way"), r"call mor_ref.mor\(x, 'three_way'\)"),
    (lambda: mor_ref.quantize_mxfp4(X), r"call mor_ref.quantize_mx\(x, 'e2m1'\)"),
    (lambda: mor_ref.quantize_mxfp8(X), r"call mor_ref.quantize_mx\(x, 'e4m3'\)"),
    (lambda: mor_ref.mor(X, "mor_three_way"), "did you mean 'three_way'"),
    (lambda: mor_ref.mor(X, "Three-Way"), "did you mean 'three_way'"),
    (lambda: mor_ref.mor(X, "mor:3way"), "policy is '3way', which is not known"),
    (lambda: as_tensor_recipe("mor_three_way"), "give mor:three_way:gam:128x128"),
    (lambda: as_tensor_recipe("mor-three-way"), "did you mean 'mor:three_way'"),
    (lambda: as_tensor_recipe("e4m3:row:fp16"), "'fp16' is not known; give a word for scaling"),
    (lambda: as_tensor_recipe("fp8"), "recipe is 'fp8', which is not known"),
    (lambda: mor_ref.save("x.npz", X), "call the method of the record"),
    (lambda: np.asarray(Q, np.uint8), "dtype is uint8, but as an array, .* use .codes"),
    (lambda: np.asarray(Q, copy=False), "copy is False, but the numbers .*; leave copy out"),
    (lambda: np.asarray(Q.error), "is not one array; give one of its fields: sum, nonzero"),
    (lambda: mor_ref.dequantize(X), "call the method of the record"),
    (lambda: Q.data, "'Quantized' object has no attribute 'data'; use .codes$"),
    (lambda: Q.y, r"use .dequantize\(\)$"),
    (lambda: Q.scales, "use .scale$"),
    (lambda: mor_ref.quantize(X, "mxfp8").scale, "use .scales$"),
    (lambda: mor_ref.quantize_nvfp4(X).scale, "use .block_scale$"),
    (lambda: Q.nonsense, "'Quantized' object has no attribute 'nonsense'$"),
    (lambda: mor_ref.E4M3, r"give functions the name 'e4m3'; mor_ref.formats\['e4m3'\]"),
    (lambda: mor_ref.float8_e5m2, "give functions the name 'e5m2'"),
    (lambda: mor_ref.NVFP4, r"call mor_ref.quantize\(x, 'nvfp4'\)"),
    (lambda: mor_ref.quantise(X), "did you mean 'quantize'"),
    (lambda: mor_ref.nonsense, "has no attribute 'nonsense'$"),
]


# What a message says to call, so that following it works.
CALLS: list[tuple[str, Call]] = [
    ("mse", lambda: np.mean((np.float64(X) - mor_ref.quantize(X, "e4m3")) ** 2)),
    ("fake_quantize", lambda: mor_ref.quantize(X, "e4m3").dequantize()),
    ("cast", lambda: mor_ref.decode(mor_ref.encode(X, "e4m3"), "e4m3")),
    ("nextafter", lambda: mor_ref.decode(mor_ref.encode(X, "e4m3") + 1, "e4m3")),
    ("list_formats", lambda: list(mor_ref.formats)),
    ("get_format", lambda: mor_ref.formats["e4m3"]),
    ("pack", lambda: mor_ref.layouts.packed(mor_ref.encode(X, "e2m1"))),
    ("unpack", lambda: mor_ref.layouts.plain(Q.codes[:, ::2], "packed", Q.shape)),
    ("iinfo", lambda: ml_dtypes.iinfo("int4")),
    ("quantize_int4", lambda: mor_ref.quantize_affine(X, "int4")),
    (
        "quantize",
        lambda: mor_ref.quantize(
            X,
            "e4m3",
            random_bits=np.random.default_rng(0).integers(
                1 << 16, size=np.shape(X), dtype=np.uint32
            ),
            n_random_bits=16,
        ),
    ),
]


@pytest.mark.parametrize(("name", "call"), CALLS)
def test_what_a_message_says_to_call_works(name: str, call: Call) -> None:
    if name != "quantize":
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'; .*"):
            getattr(mor_ref, name)
    assert call() is not None


@pytest.mark.parametrize(("call", "words"), HINTS)
def test_a_habit_of_another_library_leads_to_what_is_meant(call: Call, words: str) -> None:
    with pytest.raises((TypeError, ValueError, AttributeError), match=words):
        call()


def test_a_hint_is_for_a_wrong_argument_alone() -> None:
    with pytest.raises(TypeError, match="required positional argument|missing"):
        mor_ref.quantize_mx(X)  # type: ignore[call-arg]


# ---------------------------------------------------------------------- one answer at every door

RECIPES: list[tuple[str, str]] = [
    ("e4m3", "e4m3:gam:tensor"),
    ("e4m3:fp32", "e4m3:fp32:tensor"),
    ("e4m3:128x128", "e4m3:gam:128x128"),
    ("E4M3:fp32:row", "e4m3:fp32:row"),
    ("float8_e5m2", "e5m2:gam:tensor"),
    ("torch.float8_e4m3fn:row", "e4m3:gam:row"),
    ("tensor", "mor:tensor"),
    ("three_way:64x64", "mor:three_way:64x64"),
    ("nvfp4", "nvfp4:te:1x16"),
]


@pytest.mark.parametrize(("given", "full"), RECIPES)
def test_a_recipe_means_what_the_function_means(given: str, full: str) -> None:
    assert as_tensor_recipe(given) == as_tensor_recipe(full)


def test_a_format_is_quantized_alike_as_a_recipe(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    _printed("quantize", f"{tmp_path}/x.npy", "--recipe", "e4m3", "--out", f"{tmp_path}/q.npz")
    fields = {name.rpartition("/")[2]: array for name, array in np.load(tmp_path / "q.npz").items()}
    assert (fields["code"] == Q.codes).all()
    assert (fields["exponent"] == Q.scale_exponent).all()


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_has_its_name_of_recipes(policy: str) -> None:
    assert mor_ref.mor(X, f"mor:{policy}") == mor_ref.mor(X, policy)


# ---------------------------------------------------------------------- results

RESULTS: list[tuple[Call, Any]] = [
    (lambda: Q.shape, (2, 32)),
    (lambda: Q.ndim, 2),
    (lambda: Q.size, 64),
    (lambda: len(Q), 2),
    (lambda: np.shape(Q), (2, 32)),
    (lambda: np.ndim(Q), 2),
    (lambda: np.size(Q), 64),
    (lambda: Q.T.shape, (32, 2)),
    (lambda: bool(Q), True),
    (lambda: np.asarray(Q).tolist(), Q.dequantize().tolist()),
    (lambda: np.array(Q, np.float64).tolist(), Q.dequantize().tolist()),
    (lambda: np.abs(Q).max(), np.abs(Q.dequantize()).max()),
    (lambda: np.allclose(Q, X, atol=0.2), True),
    (lambda: (X - Q).shape, (2, 32)),
    (lambda: np.asarray(Q.T).tolist(), Q.dequantize().T.tolist()),
    (lambda: mor_ref.quantize(X, "e4m3") == Q, True),
    (lambda: mor_ref.quantize(X, "e5m2") != Q, True),
    (lambda: Q.dequantize("bfloat16").dtype.name, "bfloat16"),
    (lambda: Q.packed.nbytes, 64),
    (lambda: mor_ref.quantize_mx(X, "e2m1").packed.nbytes, 32),
    (lambda: mor_ref.encode(Q, "e4m3").shape, (2, 32)),
    (lambda: mor_ref.matmul(Q, Q.T).shape, (2, 2)),
    (lambda: "1 block of 2x32" in repr(Q), True),
]


@pytest.mark.parametrize(("call", "value"), RESULTS)
def test_a_result_is_like_an_array_of_its_numbers(call: Call, value: Any) -> None:
    assert call() == value


@pytest.mark.parametrize("ending", ["npz", "safetensors"])
def test_a_result_is_saved_and_loaded(ending: str, tmp_path: Path) -> None:
    Q.save(tmp_path / f"q.{ending}")
    assert mor_ref.load(tmp_path / f"q.{ending}") == Q


# ---------------------------------------------------------------------- the command line

LISTS = {
    "recipes": "mxfp8:rceil",
    "profiles": "te_4over6_mse",
    "policies": "three_way",
    "roundings": "rne",
}


def _printed(*arguments: str) -> str:
    command = [sys.executable, "-m", "mor_ref", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("what", LISTS)
def test_a_list_has_a_line_for_each(what: str) -> None:
    rows = json.loads(_printed(what, "--json"))
    assert LISTS[what] in rows
    assert all(rows.values())
    text = _printed(what)
    assert all(name in text for name in rows)


def test_lists_are_those_of_the_catalogues() -> None:
    assert list(listings.roundings()) == list(ROUNDINGS)
    assert list(listings.policies()) == list(POLICIES)
    assert set(PROFILES) | set(encoding_profiles) <= set(listings.profiles())
    for rule in SCALE_RULES:
        assert listings.profiles()[rule] == f"MX: a scale rule, as in mxfp8:{rule}"
        assert as_tensor_recipe(f"mxfp8:{rule}").scale_rule == rule  # type: ignore[attr-defined]
    for name in listings.recipes():
        assert as_tensor_recipe(name).text


def test_the_version_and_help_are_where_people_look() -> None:
    assert _printed("-V") == _printed("--version") == f"mor-ref {mor_ref.__version__}\n"
    assert "NUMBER" in _printed("help", "explain")
    assert "Commands" in _printed("help")


def _refused(directory: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "mor_ref", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=directory)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


PROGRAM = "python -m mor_ref"
TYPED: list[tuple[str, str]] = [
    ("encode e4m3 0.3", f"give it with --format: {PROGRAM} encode 0.3 --format e4m3\n"),
    ("encode e4m3 -- -1 -inf", f"{PROGRAM} encode --format e4m3 -- -1 -inf\n"),
    ("encode e4m3", f"{PROGRAM} encode - --format e4m3\n"),
    ("explain 0.3 float8_e5m2", f"{PROGRAM} explain 0.3 --format float8_e5m2\n"),
    ("decode e4m3 0x38", f"{PROGRAM} decode 0x38 --format e4m3\n"),
    ("encode -f e4m3 -0.3", "encode has no option -f; give --format\n"),
    ("encode 0.3 --fmt=e4m3 --saturate", "no option --fmt or --saturate; give --format and --over"),
    ("encode 0.3 --format e4m3 --seed 1", "give --random-word (the random bits, not a seed) with"),
    ("encode 0.3 --format e4m3 --nonsense", f"{PROGRAM} encode --help lists its options\n"),
    ("quantize x.npy --recipe mxfp8 -o q.npz", "quantize has no option -o; give --out\n"),
    ("quantize x.npy --format e4m3", "quantize has no option --format; give --recipe and --out\n"),
    ("quantize x.npy mxfp4 --out q.npz", f"{PROGRAM} quantize x.npy --out q.npz --recipe mxfp4\n"),
    (
        "compare x.npy mxfp8 nvfp4",
        f"{PROGRAM} compare x.npy --recipe mxfp8 --recipe nvfp4\n",
    ),
    ("compare x.npy --recipe mxfp8,nvfp4", "its own option: --recipe mxfp8 --recipe nvfp4\n"),
    ("compare x.npy --recipes mxfp8", "give --recipe, once for each recipe\n"),
    ("compare x.npy nothing", "nothing ends in ''; give a file"),
    ("verify mine:f --format e4m3", "verify has no option --format; give --recipe and --inputs F"),
    (
        "verify mine.so --symbol f",
        "verify has no option --symbol; give CANDIDATE as module:function",
    ),
    ("verify ./mine.so", "candidate is './mine.so', a library; give module:function"),
    ("verify codes.npy", "candidate is 'codes.npy', a file of results; give dir:DIRECTORY"),
    ("golden --format e4m3", "golden has no option --format; mor-ref golden make mxfp8 --out DIR"),
    ("golden make --format e4m3 -o v", "no option --format or -o; give SUITE and --out\n"),
    ("list", "there is no command 'list'; mor-ref formats, recipes,"),
    ("finfo e4m3", "there is no command 'finfo'; mor-ref formats e4m3 shows a format"),
    ("neighbours 0.3", "mor-ref explain NUMBER --format e4m3 shows"),
]


@pytest.mark.parametrize(("typed", "words"), TYPED)
def test_a_habit_of_another_program_leads_to_what_is_meant(
    typed: str, words: str, tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "codes.npy", Q.codes)
    (tmp_path / "mine.so").touch()
    assert words in _refused(tmp_path, *typed.split())


def test_a_file_with_the_name_of_a_recipe_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "mxfp8").mkdir()
    np.save(tmp_path / "mxfp8" / "x.npy", X)
    command = [sys.executable, "-m", "mor_ref", "compare", "mxfp8", "--recipe", "nvfp4"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "1 tensor" in done.stdout


def test_a_function_of_other_arguments_is_told_what_it_gets() -> None:
    report = mor_ref.verify(lambda x: x, inputs={"x": X}, recipe="e4m3")  # type: ignore[arg-type, misc]
    assert "give a function of (operation, parameters, inputs)" in str(report)


LONG = {
    "block": lambda: mor_ref.quantize(X, "e4m3", block=[[1] * 1000] * 1000),
    "a side of a block": lambda: mor_ref.quantize_mx(X, "e4m3", block=10**3000),
    "tile": lambda: mor_ref.quantize_nvfp4(X, tile=[1] * 10_000),
    "tile as an array": lambda: mor_ref.quantize_nvfp4(X, tile=np.arange(10_000)),
    "tile as a matrix": lambda: mor_ref.quantize_nvfp4(X, tile=np.array([[1, 16]])),
    "format": lambda: mor_ref.encode(X, "x" * 10_000),
    "format as a list": lambda: mor_ref.encode(X, ["e4m3"] * 10_000),
    "format as an array": lambda: mor_ref.encode(X, np.zeros((30, 30))),
    "name": lambda: replace(mor_ref.formats["e4m3"], name=["a"] * 10_000),
    "bias": lambda: replace(mor_ref.formats["e4m3"], bias=[1] * 10_000),
    "exponent_bits": lambda: replace(mor_ref.formats["e4m3"], exponent_bits=np.arange(1000)),
    "rounding": lambda: mor_ref.encode(X, "e4m3", rounding="x" * 10_000),
}


@pytest.mark.parametrize("call", LONG.values(), ids=LONG)
def test_a_message_is_short_however_long_the_argument_is(call):
    with pytest.raises((TypeError, ValueError)) as refused:
        call()
    assert len(str(refused.value)) < 800
    assert re.search("; (give|take|profile|did you mean)", str(refused.value))


@pytest.mark.parametrize("tile", [(True, 16), (1.0, 16.0)])
def test_sides_of_a_tile_are_integers_as_those_of_blocks_are(tile):
    with pytest.raises(TypeError, match="a side of tile is .*; give an int from 1"):
        mor_ref.quantize_nvfp4(X, tile=tile)
    assert mor_ref.quantize_nvfp4(X, tile=np.array([1, 16])) == mor_ref.quantize_nvfp4(X)


@pytest.mark.parametrize("c", [0.5, np.float32(0.5), np.array(0.5), [0.5]])
def test_a_dot_product_of_vectors_takes_a_number_as_c(c):
    assert mor_ref.dot([[56]], [[56]], c=c).tolist() == [1.5]
    if np.ndim(c) == 0:
        assert mor_ref.dot([56], [56], c=c) == np.float32(1.5)
