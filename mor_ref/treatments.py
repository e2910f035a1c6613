"""The former name of `mor_ref.recipes`, whose names answer with a warning."""

from typing import Any

from mor_ref import recipes
from mor_ref.former_names import warn_of

_NOW = {
    "TREATMENTS": "TENSOR_RECIPES",
    "Treatment": "TensorRecipe",
    "as_treatment": "as_tensor_recipe",
}


def __getattr__(name: str) -> Any:
    """Return what has another name now."""
    now = _NOW.get(name, name)
    if now not in recipes.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn_of(f"mor_ref.treatments.{name}", f"mor_ref.recipes.{now}", 2)
    return getattr(recipes, now)
