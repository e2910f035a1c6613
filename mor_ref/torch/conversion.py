"""Changing the linear layers of a model in place, and back."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, cast

import torch
from torch import nn

from mor_ref.argument_checks import whole_number
from mor_ref.recipes import RecipeLike
from mor_ref.recipes.training import Recipe
from mor_ref.recipes.training_recipes import training_recipe
from mor_ref.torch.chosen_layers import USUALLY_EXCLUDED, Chosen, chosen_layers
from mor_ref.torch.layers import Layer, check_module
from mor_ref.torch.linear import multiplied
from mor_ref.torch.unended_steps import begin


@dataclass(frozen=True)
class LinearLike:
    """Where a layer of one's own has the operands of x @ weight.T + bias.

    `weight` and `bias` are names of attributes. `transposed` is whether the layer computes
    x @ weight + bias, as Conv1D of transformers does.
    """

    weight: str = "weight"
    bias: str = "bias"
    transposed: bool = False


class Converted(nn.Module):
    """A layer that multiplies as its recipe says; a class of each kind of layer is made of it."""

    original: ClassVar[type[nn.Module]]
    operands: ClassVar[LinearLike]
    mor_ref_layer: Layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the output of the layer, with operands as the recipe has them."""
        places, layer = self.operands, self.mor_ref_layer
        weight = self.parameter
        weight = weight.t() if places.transposed else weight
        bias = getattr(self, places.bias, None)
        records = self.training and torch.is_grad_enabled()
        if layer.recipe.has_state or layer.recipe.asks_functions or layer.observers:
            found: torch.Tensor = self._multiplied_between_graphs(x, weight, bias, records=records)
            return found
        return multiplied(x, weight, bias, layer, records=records)

    @property
    def parameter(self) -> torch.Tensor:
        """The weight, as the layer has it."""
        found: torch.Tensor = getattr(self, self.operands.weight)
        return found

    @torch.compiler.disable
    def _multiplied_between_graphs(
        self, x: torch.Tensor, weight: torch.Tensor, bias: "torch.Tensor | None", *, records: bool
    ) -> torch.Tensor:
        """Return the output: graphs have no states of earlier steps, functions and observers."""
        if records and (self.mor_ref_layer.recipe.has_state or self.mor_ref_layer.observers):
            begin(self)
        return multiplied(x, weight, bias, self.mor_ref_layer, records=records)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Return how to make a copy: a class that was made here has no name to find it by."""
        kind = type(self)
        if kind is QuantizedLinear or "original" not in kind.__dict__:
            return super().__reduce_ex__(protocol)
        return _empty, (kind.original, kind.operands), self.__getstate__()

    def extra_repr(self) -> str:
        """Return the description of the layer by torch, and its recipe."""
        return ", ".join(filter(None, (super().extra_repr(), self.mor_ref_layer.recipe.name)))


class QuantizedLinear(Converted, nn.Linear):
    """A converted `nn.Linear`."""

    original = nn.Linear
    operands = LinearLike()


@cache
def _converted(kind: type[nn.Module], operands: LinearLike) -> type[Converted]:
    """Return the class that a layer of a class becomes."""
    if kind is nn.Linear:
        return QuantizedLinear
    fields = {"original": kind, "operands": operands, "__module__": __name__}
    return type(f"Quantized{kind.__name__}", (Converted, kind), fields)


def _empty(kind: Any, operands: LinearLike) -> Converted:
    """Return a converted layer of a class, without parameters and state."""
    found: Converted = object.__new__(_converted(kind, operands))
    return found


def convert(
    model: nn.Module,
    recipe: Recipe | RecipeLike,
    *,
    include: Chosen | None = None,
    exclude: Chosen = USUALLY_EXCLUDED,
    layers: Mapping[type[nn.Module], LinearLike] | None = None,
    seed: int = 0,
) -> tuple[str, ...]:
    """Let the linear layers of a model multiply as a recipe says; return their names.

    The model is changed in place. Its parameters stay the same objects under the same names, so
    that optimizers, checkpoints, tied weights and wrappers are not concerned. Convert before you
    wrap the model with DistributedDataParallel or fully_shard.

    `recipe` is a recipe of training or the name of one, or a recipe of one tensor or its text,
    which quantizes each operand in each direction. `include` and `exclude` are patterns, or a
    function of the name and the module. A pattern matches a name or any part of it between dots:
    ``"lm_head"``, ``"layers.0"``, ``"*proj"``. The default of `exclude` is lm_head. `layers` has
    your own classes, which are converted as well as `nn.Linear`. `seed` is the seed of random bits.

    >>> model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
    >>> convert(model, "mor_tensor", exclude=["2"])
    ('0',)
    >>> model[0]
    QuantizedLinear(in_features=8, out_features=16, bias=True, mor_tensor)
    """
    check_module(model)
    _check_uncompiled(model)
    rules = training_recipe(recipe)
    seed = whole_number("seed", seed, 0, (1 << 63) - 1)
    kinds: dict[type[nn.Module], LinearLike] = {nn.Linear: LinearLike()}
    kinds |= _checked_layers(layers or {})
    there = {name: one for name, one in model.named_modules() if type(one) in kinds}
    if not there:
        raise ValueError(_nothing_to_convert(model))
    wanted = chosen_layers(there, include, exclude)
    for name, layer in wanted.items():
        _check_operands(name, layer, kinds[type(layer)])
    made = {name: Layer(name, rules.for_layer(name), seed) for name in wanted}
    module: Any
    for name, module in wanted.items():
        kind: Any = type(module)
        module.__class__ = _converted(kind, kinds[kind])
        module.mor_ref_layer = made[name]
    return tuple(wanted)


def _check_uncompiled(model: nn.Module) -> None:
    compiler: Any = sys.modules.get("torch._dynamo")  # slow to import: torch.compile has done it
    if compiler and any(isinstance(each, compiler.OptimizedModule) for each in model.modules()):
        raise ValueError(
            "model is compiled, at least in part, and torch.compile changes the names of layers; "
            "convert the model before torch.compile"
        )


def _checked_layers(layers: object) -> dict[type[nn.Module], LinearLike]:
    is_table = isinstance(layers, Mapping) and all(
        isinstance(kind, type) and issubclass(kind, nn.Module) and isinstance(like, LinearLike)
        for kind, like in layers.items()
    )
    if not is_table:
        raise TypeError(
            f"layers is {layers!r}; give a LinearLike for each class, such as "
            "{Conv1D: LinearLike(transposed=True)}"
        )
    found: dict[type[nn.Module], LinearLike] = dict(cast("Any", layers))
    if nn.Linear in found:
        raise ValueError("layers has nn.Linear, which is converted anyway; leave it out")
    return found


def _check_operands(name: str, module: nn.Module, like: LinearLike) -> None:
    kind = type(module).__name__
    weight = getattr(module, like.weight, None)
    if not isinstance(weight, torch.Tensor) or weight.ndim != 2:
        raise ValueError(
            f"layers says that the weight of {kind} is {like.weight!r}, which is "
            f"not a matrix in {name!r}; give LinearLike(weight=...) the name of its matrix"
        )
    if like.bias != LinearLike.bias and not hasattr(module, like.bias):
        raise ValueError(
            f"layers says that the bias of {kind} is {like.bias!r}, which {name!r} does not have; "
            "give LinearLike(bias=...) the name of its bias"
        )
    own = [] if type(module) is nn.Linear else module.named_parameters(recurse=False)
    for other, _ in own:
        if other not in (like.weight, like.bias):
            raise ValueError(
                f"layers says nothing about the parameter {other!r} of {kind}, which would be left "
                "out of the product; give LinearLike(weight=..., bias=...) the names of both"
            )


def _nothing_to_convert(model: nn.Module) -> str:
    if any(isinstance(module, Converted) for module in model.modules()):
        return "model is converted already; call mor_ref.torch.revert first"
    return "model has no nn.Linear; give the classes of its linear layers as layers={...}"


def revert(model: nn.Module) -> None:
    """Undo `convert`: restore the layers of a model; parameters stay as they are.

    >>> model = nn.Sequential(nn.Linear(8, 16))
    >>> names = convert(model, "mor_tensor")
    >>> revert(model)
    >>> model[0]
    Linear(in_features=8, out_features=16, bias=True)
    """
    check_module(model)
    converted: list[Any] = [one for one in model.modules() if isinstance(one, Converted)]
    if not converted:
        raise ValueError("model has no converted layer; there is nothing to take back")
    for module in converted:
        if "original" not in type(module).__dict__:
            raise TypeError(
                f"model has a layer of class {type(module).__name__}: another library has changed "
                "the converted layer; undo this change first"
            )
    for module in converted:
        module.__class__ = type(module).original
        del module.mor_ref_layer
