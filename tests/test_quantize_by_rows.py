"""Quantizing files that may be larger than the memory: by rows, with the same bits."""

import json
import sys

import ml_dtypes
import numpy as np
import pytest
from own_fields import exact_fields
from peak_memory import megabytes_of
from safetensors.numpy import load_file, save_file

import mor_ref
from mor_ref.analysis import stored_tensors
from mor_ref.cli import main
from mor_ref.golden.inputs.own_tensors import cases_of
from mor_ref.recipes import own_recipe
from mor_ref.verify import own_tensors as own_module
from mor_ref.verify import quantize_by_rows
from mor_ref.verify.own_inputs import from_arrays
from mor_ref.verify.reporting import report_files as reports

RECIPES = [
    "mxfp8:rceil",
    "nvfp4",
    "nvfp4:16x16",
    "nvfp4:te_row",
    "nvfp4:te_4over6_mse:16x16",
    "nvfp4:columns:amax=2.5",
    "e4m3:gam:8x16",
    "e4m3:fp32:row",
    "e5m2:e8m0:column",
    "e4m3:gam:tensor",
    "mor:three_way:8x16",
    "mor:nvfp4:row",
]


@pytest.fixture
def run(monkeypatch, capsys):
    """Return a function that quantizes a file, and returns its status and its errors."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["mor-ref", "quantize", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code, capsys.readouterr().err

    return call


def tensors():
    """Return a tensor whose largest number is in its last row, a NaN, and a tensor in bfloat16."""
    x = np.random.default_rng(2).standard_normal((75, 40), dtype=np.float32)
    x[-1, -1], x[5, 5] = 77, np.nan
    return {"x": x, "y": x[:, :33].astype(ml_dtypes.bfloat16), "v": x[0]}


@pytest.mark.tier("full", but_one_in=11)
@pytest.mark.parametrize("recipe", RECIPES)
def test_parts_have_the_bits_of_the_exact_model(run, tmp_path, monkeypatch, recipe):
    save_file(tensors(), tmp_path / "in.safetensors")
    monkeypatch.setattr(quantize_by_rows, "AT_ONCE", 700)
    files = tmp_path / "out.safetensors", tmp_path / "out.npz"
    for out in files:
        assert run(tmp_path / "in.safetensors", "--recipe", recipe, "--out", out) == (0, "")
    own = own_recipe(recipe)
    found, same = load_file(files[0]), np.load(files[1])
    assert {*found} == {*same.files}
    for case in cases_of(own, from_arrays(tensors())):
        right = exact_fields(own.asked.operation, case)
        fields = [name.split("/")[1] for name in found if name.startswith(f"{case.name}/")]
        assert len(fields) > 2
        for field in fields:
            name = f"{case.name}/{field}"
            assert np.array_equal(found[name], right[field]), name
            assert np.array_equal(found[name], same[name]), name


def parts(recipe, tensor):
    """Return how many parts a tensor is quantized in."""
    own = own_recipe(recipe)
    (case,) = cases_of(own, from_arrays({"x": tensor}))
    return len(list(quantize_by_rows.quantized_rows(own.asked.operation, case)))


def test_which_tensors_are_cut(monkeypatch):
    monkeypatch.setattr(quantize_by_rows, "AT_ONCE", 700)
    x = tensors()["x"]
    for recipe, count in {
        "mxfp8:rceil": 5,  # of 17 rows
        "nvfp4:16x16": 5,  # of 16
        "e4m3:gam:8x16": 5,
        "e4m3:fp32:row": 5,
        "e5m2:e8m0:column": 1,
        "e4m3:gam:tensor": 1,
        "mor:three_way:8x16": 1 + 5 + 5,  # the policy, and its rungs
        "nvfp4:amax=3": 5,
    }.items():
        assert parts(recipe, x) == count, recipe
    x[3, 3] = -np.inf  # an amax that cannot be given
    assert parts("nvfp4", x) == 1
    assert parts("e4m3:gam:8x16", x) == 5


@pytest.mark.tier("full")
def test_memory_does_not_grow_with_the_file(tmp_path):
    """A tensor of 96 megabytes more goes through; the memory grows by less than half of that."""

    def megabytes(rows):
        x = np.random.default_rng(0).standard_normal((rows, 2048), dtype=np.float32)
        save_file({"x": x}, tmp_path / "in.safetensors")
        out = "--out", tmp_path / "out.safetensors"
        return megabytes_of("quantize", tmp_path / "in.safetensors", "--recipe", "nvfp4", *out)

    few, many = megabytes(4 << 10), megabytes(16 << 10)
    assert many - few < 48


STRIPS = [
    "mxfp8:rceil",
    "nvfp4",
    "nvfp4:te_row",
    "e4m3:gam:8x16",
    "e4m3:fp32:row",
    "uint4:onnx:1x32",
    "mx9",
    "seq2",
]


def flawed(recipe, case):
    """Return the fields of the exact model, with an entry wrong here and there in each."""
    found = exact_fields(own_recipe(recipe).asked.operation, case)
    wrong = {name: np.array(found[name]) for name in found if name not in ("xs", "d", "r", "u")}
    for array in wrong.values():
        flat = array.reshape(-1)
        flat[:: max(1, flat.size // 20)] ^= 1
    return wrong


def as_json(report):
    """Return all that a report says of the results."""
    said = json.loads(reports.as_json(report))
    for result in said["results"]:
        for one in result["differences"]:
            one["kinds"] = sorted((kind["words"], kind["count"]) for kind in one["kinds"])
            for entry in one["entries"]:  # the amax of the whole tensor is of no strip
                inputs = entry["inputs"]
                entry["inputs"] = [i for i in inputs if "x[0:75, 0:40]" not in i["what"]]
    for result in said["results"]:
        del result["repeats"]  # a tensor in strips is not
    return {name: said[name] for name in ("results", "verdict", "conformance", "unknown")}


@pytest.mark.tier("full", but=["lacking-mxfp8"])
@pytest.mark.parametrize("recipe", STRIPS)
@pytest.mark.parametrize("kind", ["dir", "function", "lacking"])
def test_a_verification_in_strips_says_what_one_of_the_whole_says(
    tmp_path, monkeypatch, recipe, kind
):
    """Places, pictures, inputs, kinds and counts, of arrays in files and of those of a function.

    The expected bits of the whole are those of the exact model.
    """
    x = {"x": tensors()["x"], "v": tensors()["v"]}
    cases = {case.name: case for case in cases_of(own_recipe(recipe), from_arrays(x))}
    wrong = {name: flawed(recipe, case) for name, case in cases.items()}
    if kind == "lacking":  # a field is missing, one has another shape, and one another dtype
        first, second, *_ = [name for name in wrong["x"] if wrong["x"][name].ndim == 2]
        wrong["x"][first], wrong["x"][second] = wrong["x"][first][:-1], wrong["x"][second] * 1.0
        del wrong["x"][[*wrong["x"]][-1]]
    (tmp_path / "in").mkdir()
    save_file(x, tmp_path / "in" / "x.safetensors")
    flat = {f"{name}/{field}": a for name, of in wrong.items() for field, a in of.items()}
    save_file(flat, tmp_path / "own.safetensors")

    def function(_, __, inputs):
        return wrong["v" if len(inputs["x"]) == 1 else "x"]

    candidate = f"dir:{tmp_path}" if kind == "dir" else function
    asked = {"inputs": tmp_path / "in" / "x.safetensors", "recipe": recipe}
    monkeypatch.setattr(own_module, "MOST_DIAGNOSED", 10)
    whole = as_json(mor_ref.verify(candidate, **asked))
    monkeypatch.setattr(quantize_by_rows, "AT_ONCE", 300)
    monkeypatch.setattr(own_module, "_TOGETHER", 1)
    cut = mor_ref.verify(candidate, **asked)
    assert as_json(cut) == whole
    assert cut.verdict == "mismatch"
    assert mor_ref.verify("numba", **asked).verdict == "match"


@pytest.mark.tier("full")
def test_the_memory_of_a_verification_does_not_grow_with_the_tensor(tmp_path):
    """A matrix of four times as many numbers takes no more."""
    peaks = []
    for rows in (2, 8):
        x = np.random.default_rng(0).standard_normal((rows << 10, 1 << 12), np.float32)
        save_file({"x": x.astype(ml_dtypes.bfloat16)}, tmp_path / "in.safetensors")
        out = tmp_path / f"{rows}" / "own.safetensors"
        given = ("--recipe", "e4m3:gam:128x128")
        megabytes_of("quantize", tmp_path / "in.safetensors", *given, "--out", out)
        asked = ("--inputs", tmp_path / "in.safetensors", *given)
        peaks.append(
            [megabytes_of("verify", one, *asked) for one in ("numba", f"dir:{out.parent}")]
        )
    assert all(many - few < 40 for few, many in zip(*peaks, strict=True))


def test_a_function_may_change_large_inputs_of_a_file(tmp_path, monkeypatch):
    """It has a copy: neither the file nor the compared numbers change."""
    monkeypatch.setattr(stored_tensors, "COPIED", 1)
    x = tensors()["x"]
    save_file({"a": x[:3], "x": x[:, :32].copy()}, tmp_path / "x.safetensors")
    before = (tmp_path / "x.safetensors").read_bytes()

    def spoiling(_, parameters, inputs):
        found = mor_ref.quantize_mx(inputs["x"].view(np.float32), parameters["format"])
        inputs["x"][:] = 0
        return {"scale": found.scale, "code": found.codes}

    asked = {"inputs": tmp_path / "x.safetensors", "recipe": "mxfp8"}
    assert mor_ref.verify(spoiling, **asked).verdict == "match"
    assert (tmp_path / "x.safetensors").read_bytes() == before
