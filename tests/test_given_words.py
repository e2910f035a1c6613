"""Random words that are given with a tensor, and stochastic rounding with them."""

import re
import sys

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import mor_ref
from mor_ref import exact, formats
from mor_ref.cli import main
from mor_ref.cuda.host import Host
from mor_ref.cuda.unavailable import CudaError
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.golden.inputs.own_tensors import cases_of
from mor_ref.golden.model.checks import OperationError, check_arrays, check_parameters
from mor_ref.operations import OPERATIONS
from mor_ref.recipes import own_recipe
from mor_ref.verify import own_tensors as own_module
from mor_ref.verify.own_inputs import from_arrays
from mor_ref.verify.own_tensors import verify_on
from mor_ref.verify.reporting.text import suite_lines

RECIPES = [
    "e4m3:gam:8x16",
    "e5m2:e8m0:tensor",
    "e4m3:fp32:row:scale=0.25",
    "mxfp8:rceil",
    "mxfp4",
    "nvfp4:te:16x16",
    "nvfp4:modelopt",
    "nvfp4:compressed_tensors",
    "nvfp4:te_4over6_mae",
    "nvfp4:te_row:columns:amax=2.5",
]


def tensors(bits, rows=20):
    """Return numbers of many magnitudes with zeros and an infinity, and their words."""
    random = np.random.default_rng(7)
    x = random.standard_normal((rows, 70)) * np.exp2(random.integers(-9, 9, (rows, 1)))
    x[0, :20], x[3, 6], x[4], x[5, 1] = -0.0, np.inf, 0, -1e-44
    found = {
        "a": x.astype(np.float32),
        "b": random.standard_normal((2, 3, 33)).astype(ml_dtypes.bfloat16),
    }
    words = {
        f"{name}/random_word": random.integers(0, 1 << bits, tensor.shape, np.uint64)
        for name, tensor in found.items()
    }
    return {**found, **words}


def engine(operation, parameters, inputs):
    return OPERATIONS[operation].engine(parameters, inputs)


def cases(recipe, bits):
    own = own_recipe(f"{recipe}:n_random_bits={bits}")
    return own.asked.operation, list(cases_of(own, from_arrays(tensors(bits), with_words=True)))


@pytest.mark.tier("full", but_one_in=2)
@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("bits", [3, 16, 32])
def test_the_engine_has_the_bits_of_the_exact_model(recipe, bits):
    """QNT-005: every stored field."""
    operation, found = cases(recipe, bits)
    for case in found:
        check_parameters(operation, case.parameters)
        check_arrays(operation, case.parameters, case.arrays)
        right = OPERATIONS[operation].exact(case.parameters, case.arrays)
        for name, array in engine(operation, case.parameters, case.arrays).items():
            assert np.array_equal(array, right[name]), (case.name, name)


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize("recipe", RECIPES)
def test_codes_are_those_of_xs_and_scales_are_those_without_words(recipe):
    """QNT-005, from xs and one encoding at a time."""
    operation, found = cases(recipe, 16)
    model = OPERATIONS[operation]
    for case in found:
        random = model.exact(case.parameters, case.arrays)
        plain = {name: v for name, v in case.parameters.items() if name != "n_random_bits"}
        nearest = model.exact(plain, {"x": case.arrays["x"]})
        same = {name for name in nearest if np.array_equal(nearest[name], random[name])}
        assert case.name == "a" or not {"code", "y"} & same  # a has an infinite amax
        assert {"xs"} | {name for name in nearest if "scale" in name or "mantissa" in name} <= same
        fmt = formats[case.parameters.get("format", "e2m1")]
        drops = getattr(PROFILES.get(case.parameters.get("profile")), "drops_sign_of_zero", False)
        for i, j in np.ndindex(case.arrays["x"].shape):
            xs = float(random["xs"][i, j : j + 1].view(np.float32)[0])
            word = int(case.arrays["random_word"][i, j])
            code = exact.encode(xs, fmt, "sr", SpecialCases(), random_word=word, n_random_bits=16)
            assert random["code"][i, j] == (0 if drops and xs == 0 else code)


def test_a_block_with_a_nan():
    """QNT-005: the scale is NaN (MXS-002), and so is every y."""
    x = np.array([[np.nan, 1, -3, 0]], np.float32).view(np.uint32)
    asked = {"format": "e2m1", "scale_rule": "floor", "block": 4, "source": "f32"}
    case = {**asked, "n_random_bits": 8}, {"x": x, "random_word": np.full((1, 4), 9, np.uint32)}
    for found in (OPERATIONS["mx"].exact(*case), OPERATIONS["mx"].engine(*case)):
        assert (found["scale"].tolist(), found["code"].tolist()) == ([[0xFF]], [[7] * 4])
        assert found["y"].tolist() == [[0x7FFFFFFF] * 4]


def test_a_quotient_is_rounded_once():
    """QNT-005: 41 / 41 is 1, and the product with the rounded reciprocal of 41 is below 1."""
    x = np.array([[246, 123, 82, 41] * 4], np.float32).view(np.uint32)
    words = {"x": x, "random_word": np.zeros_like(x)}
    asked = {"profile": "modelopt", "tile": [1, 16], "source": "f32", "amax": 2688.0 * 41}
    for by in (OPERATIONS["nvfp4"].exact, OPERATIONS["nvfp4"].engine):
        found = by({**asked, "n_random_bits": 32}, words)
        assert found["block_scale"].tolist() == [[0x38]]  # 1
        assert found["code"].tolist() == [[7, 5, 4, 2] * 4]  # 6, 3, 2, 1


def test_public_functions_take_words():
    """QNT-005: half of the words round half an ulp up; the lowest words round down."""
    x = np.full((1, 64), 1.25, np.float32)  # between 1 and 1.5
    x[0, ::16] = 6
    for quantize, arguments in (
        (mor_ref.quantize, ("e2m1",)),
        (mor_ref.quantize_mx, ("e2m1",)),
        (mor_ref.quantize_nvfp4, ()),
    ):
        lowest = quantize(x, *arguments, random_bits=np.zeros_like(x, np.uint8), n_random_bits=1)
        highest = quantize(x, *arguments, random_bits=np.ones_like(x, np.uint8), n_random_bits=1)
        assert lowest.codes[0, 1] + 1 == highest.codes[0, 1]
        assert lowest.dequantize()[0, 1] < 1.25 < highest.dequantize()[0, 1]
        assert lowest.error.overall > 0
        assert np.array_equal(lowest.codes[0, ::16], highest.codes[0, ::16])
    with pytest.raises(ValueError, match="random_bits is not given; give random_bits and n_random"):
        mor_ref.quantize_mx(x, "e2m1", n_random_bits=4)
    with pytest.raises(ValueError, match="give a word for each element"):
        mor_ref.quantize_mx(x, "e2m1", random_bits=[1], n_random_bits=4)


def test_kernels_refuse_words():
    """QNT-005 has no kernel."""
    for recipe in ("e4m3:gam:8x16", "mxfp8", "nvfp4"):
        operation, (case, _) = cases(recipe, 8)
        with pytest.raises(CudaError, match="the kernels of tensors round to nearest; verify"):
            OPERATIONS[operation].cuda(Host(), case.parameters, case.arrays)
    report = verify_on("cuda-host", tensors(8), "mxfp8:n_random_bits=8")
    assert report.verdict == "failed"


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ("mor:tensor:n_random_bits=3", "which takes no n_random_bits; a format with its scales"),
        ("nvfp4:n_random_bits=33", "n_random_bits is 33"),
        ("nvfp4:n_random_bits=0", "n_random_bits is 0"),
        ("nvfp4:n_random_bits=x", "n_random_bits is 'x'; give a whole number, 1 to 32"),
        (
            "nvfp4:n_random_bits=3:n_random_bits=3",
            "where n_random_bits is given twice; give it once",
        ),
        ('{ representation = "mx", n_random_bits = "3" }', "n_random_bits is '3'"),
    ],
)
def test_another_recipe_is_refused(recipe, message):
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        own_recipe(recipe)


def test_texts_and_tables_mean_the_same():
    table = own_recipe(
        '{ representation = "nvfp4", n_random_bits = 16, axis = "columns", amax = 2 }'
    )
    assert table.text == "nvfp4:te:1x16:columns:amax=2.0:n_random_bits=16"
    assert own_recipe(table.text) == table


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a/random_word": None}, "named a/random_word"),
        ({"a/random_word": np.zeros((70, 20), np.uint8)}, "give a word for each number"),
        ({"a/random_word": np.full((20, 70), 16, np.uint8)}, "which does not fit 4 bits"),
        ({"a/random_word": np.zeros((20, 70), np.float32)}, "give unsigned integers"),
    ],
)
def test_other_words_are_refused(change, message):
    given = {name: a for name, a in {**tensors(4), **change}.items() if a is not None}
    with pytest.raises((ValueError, TypeError), match=message):
        mor_ref.verify(engine, inputs=given, recipe="mxfp8:n_random_bits=4")


def test_a_case_without_its_words_is_refused():
    operation, (case, _) = cases("mxfp8", 8)
    with pytest.raises(OperationError, match="has no random_word, which its parameters ask for"):
        check_arrays(operation, case.parameters, {"x": case.arrays["x"]})


# ---------------------------------------------------------------------- the commands


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["mor-ref", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code, capsys.readouterr().out


def late(operation, parameters, inputs):
    """Take the word of the element to the left, as a kernel with a wrong index does."""
    words = np.roll(inputs["random_word"], 1, axis=1)
    return engine(operation, parameters, {**inputs, "random_word": words})


@pytest.mark.parametrize(
    "recipe", ["nvfp4:columns:n_random_bits=16", "e4m3:gam:8x16:n_random_bits=5"]
)
def test_the_commands_take_words(monkeypatch, capsys, tmp_path, recipe):
    own = own_recipe(recipe)
    bits = own.n_random_bits
    given = {
        name: a.astype(np.uint32) if a.dtype == np.uint64 else a
        for name, a in tensors(bits).items()
    }
    save_file(given, tmp_path / "mine.safetensors")
    out = tmp_path / "results" / "own.safetensors"
    out.parent.mkdir()
    inputs = tmp_path / "mine.safetensors"
    assert run(monkeypatch, capsys, "quantize", inputs, "--recipe", recipe, "--out", out)[0] == 0
    found = load_file(out)
    for case in cases_of(own, from_arrays(given, with_words=True)):
        right = OPERATIONS[own.asked.operation].exact(case.parameters, case.arrays)
        assert np.array_equal(found[f"{case.name}/code"], right["code"])
    arguments = ("--inputs", inputs, "--recipe", recipe)
    for candidate in ("numba", f"dir:{out.parent}"):
        status, printed = run(monkeypatch, capsys, "verify", candidate, *arguments)
        assert (status, printed.startswith("own: match")) == (0, True)


def test_words_in_another_file(monkeypatch, capsys, tmp_path):
    given = tensors(8)
    np.save(tmp_path / "x.npy", given["a"])
    name = str(tmp_path / "x.npy")
    np.savez(tmp_path / "words.npz", **{f"{name}/random_word": given["a/random_word"]})
    np.savez(tmp_path / "more.npz", b=np.ones(3, np.float32), **{"b/random_word": np.ones(3, "u1")})
    files = [w for f in ("x.npy", "words.npz", "more.npz") for w in ("--inputs", tmp_path / f)]
    recipe = "mxfp4:n_random_bits=8"
    assert run(monkeypatch, capsys, "verify", "numba", *files, "--recipe", recipe)[0] == 0


@pytest.mark.tier("full")
def test_large_tensors_and_corners_have_their_words(monkeypatch):
    monkeypatch.setattr(own_module, "LARGEST_SMALL", 8)
    for recipe in ("nvfp4:n_random_bits=12", "mxfp8:columns:n_random_bits=12"):
        assert mor_ref.verify(engine, inputs=tensors(12), recipe=recipe).verdict == "match"
        report = mor_ref.verify(late, inputs=tensors(12), recipe=recipe)
        assert report.verdict == "mismatch"
        assert [one.suite for one in report.results] == ["own", "own_corners"]


@pytest.mark.tier("full")
def test_a_report_shows_the_word_of_an_element():
    report = mor_ref.verify(late, inputs=tensors(8), recipe="mxfp8:n_random_bits=8")
    (result,) = report.results
    shown = " ".join(suite_lines(result, report.diagnosis.suites[0]))
    assert re.search(r"; x\[0, (\d+)\] is \S+ \(\S+\); random_word\[0, \1\] is \d+", shown)
