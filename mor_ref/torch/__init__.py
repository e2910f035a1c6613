"""Training in torch under a recipe: each linear layer quantizes its operands first.

`convert(model, "mor_tensor")` changes the linear layers of a model in place, and `revert` takes it
back. `fake_quantize` is one quantization as an operator of torch. `record` measures the
quantizations of a run, for tables and pictures. They need torch, which is imported when one of
them is first asked for.
"""

import importlib
from typing import TYPE_CHECKING, Any

from mor_ref.former_names import warn_of

if TYPE_CHECKING:
    from mor_ref.recipes import (
        TENSOR_RECIPES,
        Delayed,
        Mor,
        Mx,
        Nvfp4,
        Row,
        Scaled,
        TensorRecipe,
        Unquantized,
    )
    from mor_ref.recipes.training import Operand, Recipe
    from mor_ref.recipes.training_recipes import recipes
    from mor_ref.torch.conversion import LinearLike, convert, revert
    from mor_ref.torch.layers import Observation, observe
    from mor_ref.torch.measures import Measured
    from mor_ref.torch.operator import fake_quantize
    from mor_ref.torch.recording import Recording, record
    from mor_ref.torch.recording_files import to_csv, to_parquet, to_tensorboard
    from mor_ref.torch.recording_pictures import errors_by_operand, heat_map, shares_over_time
    from mor_ref.torch.training_state import advance, load_state, state

_IMPORTED_WHEN_ASKED_FOR = {
    ".conversion": ("LinearLike", "convert", "revert"),
    ".layers": ("Observation", "observe"),
    ".measures": ("Measured",),
    ".operator": ("fake_quantize",),
    ".recording": ("Recording", "record"),
    ".recording_files": ("to_csv", "to_parquet", "to_tensorboard"),
    ".recording_pictures": ("errors_by_operand", "heat_map", "shares_over_time"),
    ".training_state": ("advance", "load_state", "state"),
    "..recipes.training": ("Operand", "Recipe"),
    "..recipes.training_recipes": ("recipes",),
    "..recipes": (
        "TENSOR_RECIPES", "Delayed", "Mor", "Mx", "Nvfp4", "Row", "Scaled", "TensorRecipe",
        "Unquantized",
    ),
}  # fmt: skip
_NOW = {"TREATMENTS": "TENSOR_RECIPES", "Treatment": "TensorRecipe"}  # former names
_MODULE_OF = {name: module for module, names in _IMPORTED_WHEN_ASKED_FOR.items() for name in names}

__all__ = [
    "TENSOR_RECIPES",
    "Delayed",
    "LinearLike",
    "Measured",
    "Mor",
    "Mx",
    "Nvfp4",
    "Observation",
    "Operand",
    "Recipe",
    "Recording",
    "Row",
    "Scaled",
    "TensorRecipe",
    "Unquantized",
    "advance",
    "convert",
    "errors_by_operand",
    "fake_quantize",
    "heat_map",
    "load_state",
    "observe",
    "recipes",
    "record",
    "revert",
    "shares_over_time",
    "state",
    "to_csv",
    "to_parquet",
    "to_tensorboard",
]


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for, as most of them need torch."""
    if name in _MODULE_OF:
        return getattr(importlib.import_module(_MODULE_OF[name], __name__), name)
    if name in _NOW:
        warn_of(f"mor_ref.torch.{name}", f"mor_ref.torch.{_NOW[name]}", 2)
        return getattr(importlib.import_module("mor_ref.recipes"), _NOW[name])
    raise AttributeError(f"module 'mor_ref.torch' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
