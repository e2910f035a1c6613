"""Names of earlier versions answer with the names of today."""

import pytest


def test_the_former_names_of_recipes() -> None:
    from mor_ref import recipes, treatments

    with pytest.warns(DeprecationWarning, match="is mor_ref.recipes.TensorRecipe now"):
        assert treatments.Treatment is recipes.TensorRecipe
    with pytest.warns(DeprecationWarning, match="is mor_ref.recipes.own_recipe now"):
        assert treatments.own_recipe is recipes.own_recipe
    with pytest.raises(AttributeError, match="has no attribute 'Recipe'"):
        _ = treatments.Recipe
