"""One text, one recipe: on the command line, in functions, and in training (TRN-003)."""

import itertools
import re
import warnings

import ml_dtypes
import numpy as np
import pytest
from extras import needs
from typer.testing import CliRunner

import mor_ref
from mor_ref.analysis.recipes import OF_ALL_REPRESENTATIONS, USUAL, recipes_from
from mor_ref.cli import app
from mor_ref.definitions.formats import Format, formats
from mor_ref.recipes import (
    Mor,
    Mx,
    Nvfp4,
    as_tensor_recipe,
    own_recipe,
    training_recipe,
)
from mor_ref.recipes.training import AXES, OPERANDS, Operand, Recipe
from mor_ref.recipes.training_recipes import recipes
from mor_ref.representations import as_representation, known_names

TEXTS = sorted({*USUAL, *OF_ALL_REPRESENTATIONS, "e4m3", "three_way", "mor:tensor:tensor",
                "nvfp4:te:1x16", "mxfp4:ceil:16", '{"representation": "mx", "scale_rule": "rceil"}',
                'representation = "integers"\ngrid = "int4"'})  # fmt: skip
CHANGED = {"mxfp8": ("mxfp8_e4m3:floor:32", "mxfp8:rceil"), "nvfp4": ("nvfp4:te:1x16", "nvfp4_2d")}


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_means_the_same_in_training(text):
    """All that `compare` takes, for each operand, forward and backward."""
    (compared,) = recipes_from([text])
    with warnings.catch_warnings():
        if text in CHANGED:
            warnings.simplefilter("ignore", FutureWarning)
        recipe = recipes[text]
    assert {recipe.of(*place) for place in itertools.product(OPERANDS, AXES)} == {
        compared.tensor_recipe
    }
    assert recipe.input.quantized == "each"
    assert Recipe.from_text(str(recipe)) == recipe


def test_no_name_of_training_is_a_text_of_one_tensor():
    for name, recipe in recipes.items():
        with pytest.raises(ValueError, match=f"recipe is '{name}', a recipe of training"):
            as_tensor_recipe(name)
        assert training_recipe(name) is recipe


@pytest.mark.parametrize(
    ("name", "consists_of"),
    [
        ("mor_tensor", "mor:tensor:gam:tensor for each operand; give mor:tensor:gam:tensor"),
        ("mor_block", "mor:tensor:gam:128x128 for each operand; give mor:tensor:gam:128x128"),
        ("bf16", "bfloat16 for each operand; give a recipe of one tensor, such as e4m3:gam"),
        (
            "fp8_current",
            (
                "e4m3:fp32:tensor for input and weight, e5m2:fp32:tensor for grad_output; give "
                "e4m3:fp32:tensor or e5m2:fp32:tensor"
            ),
        ),
        (
            "nvfp4_2d",
            (
                "nvfp4:te:1x16 for input and grad_output, nvfp4:te:16x16 for weight; give "
                "nvfp4:te:1x16 or nvfp4:te:16x16"
            ),
        ),
    ],
)
def test_the_command_line_says_what_a_recipe_of_training_consists_of(tmp_path, name, consists_of):
    np.save(tmp_path / "x.npy", np.ones((4, 32), np.float32))
    for command in ("compare", "analyze", "quantize"):
        out = ["--out", f"{tmp_path}/q.npz"] if command == "quantize" else []
        call = [command, f"{tmp_path}/x.npy", "--recipe", name, *out]
        error = CliRunner().invoke(app, call).exception
        assert str(error).startswith(
            f"recipe is '{name}', a recipe of training (TRN-003): {consists_of}"
        )


def test_texts_that_are_named_in_an_error_are_those_of_its_operands():
    for recipe in recipes.values():
        with pytest.raises(ValueError, match="a recipe of training") as raised:
            as_tensor_recipe(recipe.name)
        for text in str(raised.value).rpartition("; give ")[2].split(" or "):
            if "such as" not in text and "e4m3:gam" not in str(raised.value):
                parts = {tensor_recipe for *_, tensor_recipe in recipe.tensor_recipes}
                assert as_tensor_recipe(text) in parts


@pytest.mark.parametrize("text", CHANGED)
def test_a_text_whose_meaning_changed_in_training_warns(text):
    now, before = CHANGED[text]
    says = f"recipe '{text}' means {now} here, too; earlier, it was {before}"
    with pytest.warns(FutureWarning, match=says) as caught:
        assert recipes[text].weight.row == as_tensor_recipe(now)
    assert caught[0].filename == __file__
    assert recipes[now].weight.row == as_tensor_recipe(text)


@needs("torch")
def test_functions_of_torch_take_texts_and_warn_their_caller():
    import torch
    from torch import nn

    from mor_ref.torch import convert, fake_quantize

    x, bf16 = torch.randn(4, 64), ml_dtypes.bfloat16
    for text, given in (
        ("mxfp8:rceil", {"scale_rule": "rceil"}),
        ("mxfp4:ceil", {"scale_rule": "ceil", "fmt": "e2m1"}),
    ):
        y = mor_ref.quantize_mx(x, **{"fmt": "e4m3", **given}).dequantize(bf16)
        assert np.array_equal(fake_quantize(x, text).numpy(), y)
    y = mor_ref.quantize_nvfp4(x).dequantize(bf16)
    for operand in OPERANDS:
        assert np.array_equal(fake_quantize(x, "nvfp4:te:1x16", operand=operand).numpy(), y)
    for given in ("mor:tensor", Mor("tensor"), {"representation": "mor"}):
        model = nn.Sequential(nn.Linear(8, 8))
        convert(model, given)
        assert model[0].mor_ref_layer.recipe.of("weight", "column") == Mor("tensor")
    model = nn.Sequential(nn.Linear(8, 8))
    for call in (lambda: fake_quantize(x, "mxfp8"), lambda: convert(model, "mxfp8")):
        with pytest.warns(FutureWarning, match="earlier, it was mxfp8:rceil") as caught:
            call()
        assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mor_tenser", "did you mean 'mor_tensor'.*, or give a text of a recipe, such as mxfp8"),
        ("mor:tensr", "where 'tensr' is not known; did you mean 'tensor'"),
        ("mor_tensor:64x64", "whose first word 'mor_tensor' is a recipe of training"),
        ("nvfp4:columns", "where 'columns' is of one tensor; omit it, as training quantizes"),
        ("e4m3:amax=3.5", "where 'amax=3.5' is of one tensor; omit it"),
    ],
)
def test_what_training_does_not_take_is_refused(text, message):
    with pytest.raises(KeyError, match=message):
        recipes[text]


def test_a_recipe_of_training_has_no_name_of_one_tensor(monkeypatch):
    monkeypatch.setattr(recipes, "_rows", dict(recipes))
    monkeypatch.setattr(formats, "_rows", dict(formats))
    operand = Operand(Mx())
    for name in ("mxfp8", "three_way", "int4", "te"):
        with pytest.raises(ValueError, match="has the name of a recipe of one tensor"):
            recipes[name] = Recipe(name, operand, operand, operand)
    recipes["mine"] = Recipe("mine", operand, operand, Operand(Nvfp4()))
    with pytest.raises(ValueError, match="recipe is 'mine', a recipe of training"):
        as_tensor_recipe("mine")
    with pytest.raises(ValueError, match="'mine' has the name of a recipe"):
        formats["mine"] = Format("mine", exponent_bits=3, mantissa_bits=3, bias=4, specials="fn")


@pytest.mark.parametrize("text", TEXTS)
def test_the_text_of_a_recipe_is_its_str(text):
    tensor_recipe = as_tensor_recipe(text)
    assert as_tensor_recipe(str(tensor_recipe)) == tensor_recipe
    assert str(tensor_recipe) == tensor_recipe.text


@pytest.mark.parametrize(
    "given",
    [
        "nvfp4:columns:amax=3.5",
        "e4m3:fp32:tensor:n_random_bits=8",
        {
            "representation": "nvfp4",
            "axis": "columns",
            "amax": {"layer.0.input": 4.5, 'a "b"': 1e-5},
        },
        {"representation": "scaled", "scale": {"x": 0.25}, "n_random_bits": 4},
    ],
)
def test_the_text_of_an_own_recipe_is_its_str(given):
    own = own_recipe(given)
    assert own_recipe(str(own)) == own
    assert "OwnRecipe" not in str(own)


def test_only_names_that_are_taken_are_offered():
    for call in (as_tensor_recipe, as_representation):
        for wrong in ("x9", "e8m", "bf", "f", "bfloat"):
            with pytest.raises(ValueError, match="is not known") as raised:
                call(wrong)
            offered = re.findall("[a-z][a-z0-9_.]+", str(raised.value).rpartition("take ")[2])
            assert not {"bf16", "e8m0", "f16", "f32", "int8_mx"} & set(offered)
            names = set(offered) & set(known_names())
            assert all(as_tensor_recipe(name) for name in names)
            assert len(names) > 1 or wrong == "x9"
    with pytest.raises(ValueError, match="format 'f16' has 16 bits"):
        as_tensor_recipe("f16")
