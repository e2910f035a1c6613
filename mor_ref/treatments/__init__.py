"""Treatments: how one tensor is quantized, as a frozen value, and from a text.

The recipes of training have a treatment for each operand. A tensor of a user has one.
"""

from mor_ref.representations import Asked
from mor_ref.treatments.catalogue import TREATMENTS
from mor_ref.treatments.floats import Delayed, Mor, Mx, Nvfp4, Scaled, Unquantized
from mor_ref.treatments.own_recipes import OwnRecipe, own_recipe
from mor_ref.treatments.recipe_text import Table, as_treatment, short_text, words_or_table
from mor_ref.treatments.rungs import rungs_of
from mor_ref.treatments.schemes import Integers, Levels, Mixture, Shared
from mor_ref.treatments.treatment import Situation, Treatment

__all__ = [
    "TREATMENTS",
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
    "Treatment",
    "Unquantized",
    "as_treatment",
    "own_recipe",
    "rungs_of",
    "short_text",
    "words_or_table",
]
