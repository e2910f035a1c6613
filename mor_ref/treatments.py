"""The former name of `mor_ref.recipes`; its names answer with a warning until version 0.4."""

import warnings
from typing import Any

from mor_ref import recipes

_NOW = {
    "TREATMENTS": "TENSOR_RECIPES",
    "Treatment": "TensorRecipe",
    "as_treatment": "as_tensor_recipe",
}


def __getattr__(name: str) -> Any:
    """Return what has another name now, with a warning that says it."""
    now = _NOW.get(name, name)
    if now not in recipes.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(
        f"mor_ref.treatments.{name} is mor_ref.recipes.{now} now; the old name goes in version 0.4",
        DeprecationWarning,
        stacklevel=2,
    )
    return getattr(recipes, now)
