"""Recipes: how one tensor is quantized, as a frozen value, and from a text.

A recipe of training has a recipe for each operand. A tensor of a user has one.
"""

from mor_ref.recipes.block_formats import Blocks
from mor_ref.recipes.catalogue import TENSOR_RECIPES
from mor_ref.recipes.floats import Delayed, Mor, Mx, Nvfp4, Scaled, Unquantized
from mor_ref.recipes.own_recipes import OwnRecipe, own_recipe
from mor_ref.recipes.policy_text import policy_text
from mor_ref.recipes.recipe_tables import Table
from mor_ref.recipes.recipe_text import (
    RecipeLike,
    as_block_format,
    as_policy,
    as_tensor_recipe,
    is_recipe,
    short_text,
    words_or_table,
)
from mor_ref.recipes.row import Row
from mor_ref.recipes.rungs import rungs_of
from mor_ref.recipes.tensor_recipe import Situation, TensorRecipe
from mor_ref.recipes.training_recipes import training_recipe
from mor_ref.representations import Asked

__all__ = [
    "TENSOR_RECIPES",
    "Asked",
    "Blocks",
    "Delayed",
    "Mor",
    "Mx",
    "Nvfp4",
    "OwnRecipe",
    "RecipeLike",
    "Row",
    "Scaled",
    "Situation",
    "Table",
    "TensorRecipe",
    "Unquantized",
    "as_block_format",
    "as_policy",
    "as_tensor_recipe",
    "is_recipe",
    "own_recipe",
    "policy_text",
    "rungs_of",
    "short_text",
    "training_recipe",
    "words_or_table",
]
