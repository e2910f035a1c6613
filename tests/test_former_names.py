"""Names of earlier versions answer with the names of today."""

import pytest
from extras import needs
from typer.testing import CliRunner

import mor_ref
import mor_ref.recipes
from mor_ref.cli import app


def test_the_former_names_of_recipes() -> None:
    from mor_ref import recipes, treatments

    with pytest.warns(DeprecationWarning, match="is mor_ref.recipes.TensorRecipe now"):
        assert treatments.Treatment is recipes.TensorRecipe
    with pytest.warns(DeprecationWarning, match="is mor_ref.recipes.own_recipe now"):
        assert treatments.own_recipe is recipes.own_recipe
    with pytest.raises(AttributeError, match="has no attribute 'Recipe'"):
        _ = treatments.Recipe


def test_the_former_name_of_the_profile_of_an_encoder() -> None:
    with pytest.warns(DeprecationWarning, match="argument preset of encode is profile now"):
        codes = mor_ref.encode([float("nan"), -500.0], "e4m3", preset="ml_dtypes")
    assert codes.tolist() == [0x7F, 0xFF]
    assert mor_ref.encode([-500.0], "e4m3").tolist() == [0xFE]
    with pytest.raises(TypeError, match="preset and profile are given"):
        mor_ref.encode([1.0], "e4m3", preset="torch", profile="torch")


def test_the_former_attribute_of_a_recipe() -> None:
    own = mor_ref.recipes.own_recipe("mxfp8")
    with pytest.warns(DeprecationWarning, match="OwnRecipe.treatment is OwnRecipe.tensor_recipe"):
        assert own.treatment is own.tensor_recipe
    assert own == mor_ref.recipes.own_recipe("mxfp8")


@needs("torch")
def test_the_former_names_of_training() -> None:
    from mor_ref import torch as training

    with pytest.warns(DeprecationWarning, match="is mor_ref.torch.TensorRecipe now"):
        assert training.Treatment is training.TensorRecipe
    recipe = training.recipes["mxfp8"]
    with pytest.warns(DeprecationWarning, match="Recipe.treatments is Recipe.tensor_recipes now"):
        assert list(recipe.treatments) == list(recipe.tensor_recipes)


def test_a_former_option_does_the_same_and_names_the_new_one() -> None:
    call = ["explain", "nan", "--format", "e4m3"]
    now = CliRunner().invoke(app, [*call, "--profile", "ml_dtypes"])
    assert now.stderr == ""
    for former in (["--preset", "ml_dtypes"], ["--preset=ml_dtypes"]):
        done = CliRunner().invoke(app, [*call, *former])
        assert done.stdout == now.stdout
        assert done.stderr == (
            "mor-ref: --preset is --profile now; the former name goes in version 0.4\n"
        )
