"""Quantizing files that may be larger than the memory: by rows, with the same bits."""

import sys

import ml_dtypes
import numpy as np
import pytest
from own_fields import exact_fields
from peak_memory import megabytes_of
from safetensors.numpy import load_file, save_file

from mor_ref.cli import main
from mor_ref.golden.inputs.own_tensors import cases_of
from mor_ref.treatments import own_recipe
from mor_ref.verify import by_rows
from mor_ref.verify.own_inputs import from_arrays

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


@pytest.mark.parametrize("recipe", RECIPES)
def test_parts_have_the_bits_of_the_exact_model(run, tmp_path, monkeypatch, recipe):
    save_file(tensors(), tmp_path / "in.safetensors")
    monkeypatch.setattr(by_rows, "AT_ONCE", 700)
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
    return len(list(by_rows.by_rows(own.asked.operation, case)))


def test_which_tensors_are_cut(monkeypatch):
    monkeypatch.setattr(by_rows, "AT_ONCE", 700)
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
