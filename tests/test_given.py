"""Amaxes and scales that are given, and blocks along columns."""

import json
import math
import re
import sys
from fractions import Fraction

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import mor_ref
from mor_ref import exact, formats
from mor_ref.analysis.compare_tensor import compare
from mor_ref.cli import main
from mor_ref.cuda.host import Host
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.exact.arithmetic import rn32
from mor_ref.golden.inputs.own_tensors import cases_of
from mor_ref.golden.model.checks import OperationError, check_parameters
from mor_ref.operations import OPERATIONS
from mor_ref.recipes import Nvfp4, OwnRecipe, own_recipe
from mor_ref.verify.own_inputs import from_arrays

AMAXES = [3.5, 0.0, 2.0**-140, float(np.float32(3e38)), float(np.float32(0.3))]


def bits(rows=20, columns=70):
    """Return numbers of many magnitudes, with a row of zeros, an infinity and a NaN."""
    random = np.random.default_rng(3)
    x = random.standard_normal((rows, columns)) * np.exp2(random.integers(-9, 9, (rows, 1)))
    x = x.astype(np.float32)
    x[4], x[6, 3], x[7, 8] = 0, np.inf, np.nan
    return x.view(np.uint32)


def check(operation, parameters, x):
    """Compare the engine and the kernels with the exact model, and return its fields."""
    one = OPERATIONS[operation]
    check_parameters(operation, parameters)
    right = one.exact(parameters, {"x": x})
    for found in (one.engine(parameters, {"x": x}), one.cuda(Host(), parameters, {"x": x})):
        for name, array in found.items():
            assert np.array_equal(array, right[name]), (parameters, name)
    return right


def numbers(array):
    return array.view(np.float32)


@pytest.mark.tier("full", but_one_in=2)
@pytest.mark.parametrize(
    ("profile", "tile"),
    [(name, list(tile)) for name in PROFILES.specified for tile in PROFILES[name].tiles],
)
def test_a_given_amax_of_nvfp4(profile, tile):
    """NVF-013: the global scale follows from it, and the scale of a tile still from the tile."""
    x = bits()
    x[7, 8] = 0  # NVF-007 to NVF-009 are for numbers without NaN
    for amax in AMAXES[: 5 if profile == "te" else 1]:
        parameters = {"profile": profile, "tile": tile, "source": "f32", "amax": amax}
        right = check("nvfp4", parameters, x)
        whole = numbers(right["global_encode_scale"])
        assert whole.size == (20 if profile == "te_row" else 1)
        if profile.startswith("te") and amax == 3.5:
            assert (whole == np.float32(PROFILES[profile].range) / np.float32(3.5)).all()


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize("profile", [name for name in PROFILES.specified if "4over6" not in name])
@pytest.mark.parametrize("scale", [768.0, float(np.float32(0.3)), 2.0**-126, 2.0**127 * 1.5])
def test_a_given_global_scale_of_nvfp4(profile, scale):
    """NVF-014: it is the scale of the profile that comes first, and the other its reciprocal."""
    x = bits()
    x[7, 8] = 0
    for tile in PROFILES[profile].tiles:
        asked = {"profile": profile, "tile": list(tile), "source": "f32", "global_scale": scale}
        right = check("nvfp4", asked, x)
        encode, decode = (numbers(right[f"global_{name}_scale"]) for name in ("encode", "decode"))
        first, second = (decode, encode) if profile in ("torchao", "modelopt") else (encode, decode)
        assert first.size == (20 if profile == "te_row" else 1)
        assert (first == scale).all()
        assert (second == rn32(1 / Fraction(scale))).all()


def test_the_global_scale_of_the_tensor_can_be_given():
    """NVF-014 changes nothing if it is the one that follows from amax."""
    x = numbers(bits())
    x[6, 3] = x[7, 8] = 0
    for profile in ("te", "te_2_13", "compressed_tensors", "torchao", "modelopt"):
        right = mor_ref.quantize_nvfp4(x, profile=profile)
        is_decode = profile in ("torchao", "modelopt")
        scale = right.global_decode_scale if is_decode else right.global_encode_scale
        found = mor_ref.quantize_nvfp4(x, profile=profile, global_scale=float(scale))
        assert np.array_equal(found.codes, right.codes)
        assert np.array_equal(found.block_scale, right.block_scale)
        other = mor_ref.quantize_nvfp4(x, profile=profile, global_scale=2 * float(scale))
        assert not np.array_equal(other.block_scale, right.block_scale)


def test_another_global_scale_is_refused():
    x = np.ones(16, np.float32)
    for more, message in (
        ({"amax": 1.0, "global_scale": 2.0}, "amax is 1.0 and global_scale is 2.0; give one of"),
        (
            {"profile": "te_4over6_mae", "global_scale": 2.0},
            "whose errors need the amax; give amax",
        ),
        ({"global_scale": 0.0}, "global_scale is 0.0; give a positive, normal number of binary32"),
    ):
        with pytest.raises(ValueError, match=message):
            mor_ref.quantize_nvfp4(x, **more)
        asked = {"profile": "te", "tile": [1, 16], "source": "f32", **more}
        with pytest.raises(OperationError):
            check_parameters("nvfp4", asked)
    with pytest.raises(ValueError, match="which takes no global_scale"):
        own_recipe("nvfp4:te_4over6_mse:global_scale=2")


def test_the_measured_amax_can_be_given():
    """NVF-013 and SCL-006 change nothing if the given amax is the measured one."""
    x = bits()
    x[6, 3] = 0
    amax = float(np.nanmax(np.abs(numbers(x))))
    for own in (mor_ref.quantize_nvfp4, mor_ref.quantize):
        more = {} if own is mor_ref.quantize_nvfp4 else {"fmt": "e4m3", "block": (4, 8)}
        found, right = own(numbers(x), amax=amax, **more), own(numbers(x), **more)
        assert np.array_equal(found.codes, right.codes)


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize("amax", AMAXES)
@pytest.mark.parametrize("scaling", ["gam", "e8m0", "fp32"])
def test_a_given_amax_of_groups_or_blocks(scaling, amax):
    """SCL-006."""
    x = bits()
    asked = {"format": "e4m3", "scaling": scaling, "block": [4, 16], "group": "tensor"}
    right = check("quantize", {**asked, "source": "f32", "amax": amax}, x)
    magnitudes = np.where(np.isfinite(numbers(x)), np.abs(numbers(x)), 0)
    assert numbers(right["amax"])[0, 0] == magnitudes[:4, :16].max()  # as measured
    if scaling != "gam":
        quotient = 1.0 if not amax else rn32(min(Fraction(448) / Fraction(amax), 2**128 - 2**104))
        scale = 2.0 ** (math.frexp(quotient)[1] - 1) if scaling == "e8m0" else quotient
        assert (numbers(right["scale"]) == min(scale, 2.0**127 * (1 + (scaling == "fp32")))).all()
    elif amax == 3.5:
        assert right["mantissa"].tolist() == [[0]]  # 448 / 3.5 is a power of two


def test_numbers_above_a_given_amax_saturate_but_not_with_gam():
    """SCL-006."""
    x = np.array([[1.0, 64.0, -100.0]], np.float32)
    for scaling, codes in (("fp32", [0x7E, 0x7E, 0xFE]), ("gam", [0x46, 0x76, 0xFB])):
        found = mor_ref.quantize(x, "e4m3", scaling=scaling, amax=1.0)
        assert found.codes.tolist() == [codes]


@pytest.mark.parametrize("scale", [17.25, 2.0**-126, 2.0**127])
def test_a_given_scale(scale):
    """SCL-007."""
    x = bits()
    asked = {"format": "e5m2", "scaling": "fp32", "block": [4, 16], "group": "tensor"}
    right = check("quantize", {**asked, "source": "f32", "scale": scale}, x)
    assert (numbers(right["scale"]) == scale).all()
    assert not right["exponent"].any()
    assert not right["mantissa"].any()
    number = float(numbers(x)[0, 0])
    code = exact.encode(exact.arithmetic.product(number, scale), formats["e5m2"], "rne")
    assert right["code"][0, 0] == code


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"amax": -1.0}, "amax is -1.0; give a number that is not negative"),
        (
            {"amax": 0.3},
            "amax is 0.3, which is not a number of binary32; the nearest is",
        ),
        ({"amax": math.inf}, "amax is inf, which is no finite number of binary32; give"),
        ({"amax": 1.0, "scale": 2.0}, "amax is 1.0 and scale is 2.0; give one of them"),
        ({"scale": 2.0, "scaling": "gam"}, "scale is given with scaling 'gam'; give scaling 'fp3"),
        ({"scale": 0.0}, "scale is 0.0; give a positive, normal number of binary32"),
        (
            {"scale": 1e-40},
            "scale is 1e-40, which is not a number of binary32; the nearest is",
        ),
    ],
)
def test_what_cannot_be_given(given, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        mor_ref.quantize(np.ones(3, np.float32), "e4m3", **{"scaling": "fp32", **given})


def test_a_manifest_with_another_amax_is_refused():
    asked = {"profile": "te", "tile": [1, 16], "source": "f32"}
    for amax in ("3.5", None, True, 0.3, [1.0]):
        with pytest.raises(OperationError, match="another parameter amax than a finite number"):
            check_parameters("nvfp4", {**asked, "amax": amax})


MEANT = {
    "nvfp4:amax=3.5": OwnRecipe(Nvfp4(), amax=3.5),
    "nvfp4:columns:amax=0x40600000": OwnRecipe(Nvfp4(), "columns", 3.5),
    '{ representation = "nvfp4", axis = "columns", amax = 0.3 }': OwnRecipe(
        Nvfp4(), "columns", float(np.float32(0.3))
    ),
    '{"representation": "nvfp4", "amax": {"a": 1, "b": 2.5}}': OwnRecipe(
        Nvfp4(), amax={"a": 1, "b": 2.5}
    ),
}


@pytest.mark.parametrize("text", MEANT)
def test_a_text_means_a_recipe(text):
    recipe = own_recipe(text)
    assert recipe == MEANT[text]
    if not isinstance(recipe.amax, dict):
        assert own_recipe(recipe.text) == recipe


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mxfp8:amax=1", "recipe is mxfp8_e4m3:floor:32, which takes no amax; nvfp4 takes amax, a"),
        ("e4m3:gam:row:scale=1", "which takes no scale"),
        ("e4m3:fp32:row:amax=1:scale=1", "amax and scale are both given; give one of them"),
        ("nvfp4:amax=x", "amax is 'x'; give a number such as amax=3.5, or a table of numbers"),
        ("nvfp4:amax=1e99", "amax is '1e99'; give a number such as amax=3.5"),
        ("nvfp4:amax=-1", "amax is -1.0; give a number that is not negative"),
        ("nvfp4:range=1", "recipe is 'nvfp4:range=1', where 'range=1' is not known; give"),
        ("nvfp4:Columns", "where 'Columns' is not known; did you mean 'columns'?"),
        ("nvfp4:columns:columns", "where columns is given twice; give it once"),
        ("nvfp4:amax=1:amax=2", "where amax is given twice; give it once"),
        (
            '{ representation = "nvfp4", axis = "diagonal" }',
            "axis is 'diagonal'; give rows or columns",
        ),
        ('{ representation = "mor", x = 1 }', "a key of recipe is 'x', which is not known"),
    ],
)
def test_another_text_is_refused(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        own_recipe(text)


def test_numbers_by_the_names_of_tensors():
    recipe = own_recipe('{"representation": "nvfp4", "amax": {"a": 1, "b": 2.5}}')
    ones = np.ones((2, 16), np.float32)
    found = cases_of(recipe, from_arrays({"b": ones, "a": ones}))
    found = {case.name: case.parameters["amax"] for case in found}
    assert found == {"a": 1.0, "b": 2.5}
    said = "tensor 'c' has no amax in the recipe, whose numbers have the names of tensors; give one"
    with pytest.raises(ValueError, match=said):
        list(cases_of(recipe, from_arrays({"c": ones})))


@pytest.mark.tier("full")
def test_a_candidate_without_the_given_amax_is_found():
    def measuring(operation, parameters, inputs):
        own = {name: value for name, value in parameters.items() if name != "amax"}
        return OPERATIONS[operation].engine(own, inputs)

    x = {"x": np.random.default_rng(0).standard_normal((4, 64), dtype=np.float32)}
    report = mor_ref.verify(measuring, inputs=x, recipe="nvfp4:amax=5")
    assert report.verdict == "mismatch"
    assert mor_ref.verify("numba", inputs=x, recipe="nvfp4:amax=5").verdict == "match"


@pytest.mark.parametrize("recipe", ["mxfp8:rceil", "nvfp4:amax=3.5", "e4m3:gam:4x8"])
def test_blocks_along_columns_are_those_of_the_transposed_tensor(tmp_path, monkeypatch, recipe):
    x = np.random.default_rng(1).standard_normal((3, 12, 40), dtype=np.float32)
    save_file({"x": x}, tmp_path / "x.safetensors")
    save_file({"x": np.ascontiguousarray(x.reshape(36, 40).T)}, tmp_path / "turned.safetensors")
    found = []
    for source, text in (("x", f"{recipe}:columns"), ("turned", recipe)):
        out, y = tmp_path / "out.safetensors", tmp_path / "y.safetensors"
        for command, given, written in (
            ("quantize", tmp_path / f"{source}.safetensors", out),
            ("dequantize", out, y),
        ):
            arguments = ["mor-ref", command, str(given), "--recipe", text, "--out", str(written)]
            monkeypatch.setattr(sys, "argv", arguments)
            with pytest.raises(SystemExit) as end:
                main()
            assert end.value.code == 0
        found.append((load_file(out), load_file(y)["x"]))
    (codes, y), (right, turned) = found
    assert codes.keys() == right.keys()
    assert all(np.array_equal(codes[name], right[name]) for name in codes)
    assert y.shape == (36, 40)
    assert np.array_equal(y, turned.T)


def test_a_kernel_that_leaves_codes_in_their_places_gives_them_transposed():
    def along_columns(operation, parameters, inputs):
        found = dict(OPERATIONS[operation].engine(parameters, inputs))
        return {"scale": found["scale"], "code@transposed": found["code"].T.copy()}

    x = np.random.default_rng(1).standard_normal((64, 20), dtype=np.float32)
    report = mor_ref.verify(along_columns, inputs={"x": x}, recipe="mxfp8:columns")
    assert report.verdict == "match"


@pytest.mark.parametrize(
    ("more", "words"),
    [({}, ""), ({"amax": 3.5, "axis": "columns"}, ":columns:amax=3.5")],
)
def test_a_recipe_is_words_or_a_table(more, words):
    """A table is a mapping, or a text of JSON or TOML, with braces or with a line for each key."""
    table = {"representation": "nvfp4", "profile": "te", **more}
    lines = [f"{key} = {json.dumps(value)}" for key, value in table.items()]
    texts = (json.dumps(table), "{ " + ", ".join(lines) + " }", "\n# by hand\n" + "\n".join(lines))
    for given in (table, *texts):
        assert own_recipe(given) == own_recipe(f"nvfp4{words}")
    if not more:
        x = np.float32([[1, 2, 3, 5]])
        assert {*compare(x, [table])} == {"nvfp4:te:1x16"}
        assert mor_ref.verify("numba", inputs={"x": x}, recipe=table).verdict == "match"
