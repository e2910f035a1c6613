"""Recipes: how one tensor is quantized, as a frozen value, and from a text.

The recipes of training have a recipe for each operand. A tensor of a user has one.
"""

from mor_ref.recipes.catalogue import TENSOR_RECIPES
from mor_ref.recipes.floats import Delayed, Mor, Mx, Nvfp4, Scaled, Unquantized
from mor_ref.recipes.other_representations import Integers, Levels, Mixture, Shared
from mor_ref.recipes.own_recipes import OwnRecipe, own_recipe
from mor_ref.recipes.recipe_text import Table, as_tensor_recipe, short_text, words_or_table
from mor_ref.recipes.rungs import rungs_of
from mor_ref.recipes.tensor_recipe import Situation, TensorRecipe
from mor_ref.representations import Asked

__all__ = [
    "TENSOR_RECIPES",
    "Asked",
    "Delayed",
    "Integers",
    "Levels",
    "Mixture",
    "Mor",
    "Mx",
    "Nvfp4",
    "OwnRecipe",
    "Scaled",
    "Shared",
    "Situation",
    "Table",
    "TensorRecipe",
    "Unquantized",
    "as_tensor_recipe",
    "own_recipe",
    "rungs_of",
    "short_text",
    "words_or_table",
]
