"""Converted layers: the recipe of each, its state, and its observers."""

import copy
import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import torch
from torch import nn

from mor_ref.api.training import random_words
from mor_ref.definitions.before_blocks import Hadamard
from mor_ref.definitions.roles import Role
from mor_ref.former_names import warn_of
from mor_ref.recipes import Situation, TensorRecipe, Unquantized
from mor_ref.recipes.training import AXES, KIND_OF, OPERANDS, Axis, OperandName, Recipe
from mor_ref.torch import on_cpu
from mor_ref.torch.histories import History
from mor_ref.torch.operator import Results, quantize

SIGNS = len(OPERANDS) * len(AXES)  # the use of the random words of signs (TRN-007)


class Observation(NamedTuple):
    """One quantization of an operand of a layer.

    `statistics` are the int64 of the recipe, named by `recipe.statistics`. `is_recomputed` is
    whether a checkpoint computes the forward pass again. `step` counts calls of `advance`. `x` and
    `y` are the operand and its output: an observer that keeps them keeps their memory.
    `quantization` is what the engine found; None if a GPU has quantized.
    """

    layer: str
    operand: OperandName
    axis: Axis
    tensor_recipe: TensorRecipe
    statistics: torch.Tensor
    step: int
    is_recomputed: bool
    x: torch.Tensor
    y: torch.Tensor
    situation: Situation
    quantization: Any  # on_cpu.Quantization | None: for measures alone

    @property
    def treatment(self) -> TensorRecipe:
        """The former name of `tensor_recipe`."""
        warn_of("Observation.treatment", "Observation.tensor_recipe", 2)
        return self.tensor_recipe


Observer = Callable[[Observation], None]
Memory = dict[str, dict[str, Any]]  # the state of each unit, by its key


@dataclass(eq=False)
class Layer:
    """The recipe and the state of one layer. `name` is the name of the module in its model."""

    name: str
    recipe: Recipe
    seed: int = 0
    step: int = 0
    call: int = 0  # of the backward pass, in the step
    progress: Literal["new", "called", "stepped"] = "new"  # of the step; `advance` begins a new one
    histories: dict[str, History] = field(default_factory=dict)
    memories: dict[str, Memory] = field(default_factory=dict)  # by operand and axis (MOR-016)
    next_memories: dict[str, Memory] = field(default_factory=dict)  # of the step after this
    observers: list[Observer] = field(default_factory=list)

    def __post_init__(self) -> None:
        for operand, _, tensor_recipe in self.recipe.tensor_recipes:
            if tensor_recipe.is_delayed:
                self.histories.setdefault(operand, History())

    def __getstate__(self) -> dict[str, object]:
        """Return the state of a copy: without observers."""
        return {**self.__dict__, "observers": []}

    def quantized(
        self,
        x: torch.Tensor,
        operand: OperandName,
        axis: Axis,
        *,
        call: int = 0,
        records: bool = False,
    ) -> torch.Tensor:
        """Return an operand as the recipe has it; `records` is whether the state hears of it."""
        tensor_recipe = self.recipe.of(operand, axis)
        if isinstance(tensor_recipe, Unquantized):
            return x
        situation, key = None, f"{operand} {axis}"
        if tensor_recipe.is_delayed or tensor_recipe.is_random:
            scale = self.histories[operand].scale if tensor_recipe.is_delayed else 1.0
            situation = Situation(scale, self.purpose(_use(operand, axis), call))
        if tensor_recipe.asks_functions:
            memory = copy.deepcopy(self.memories.get(key, {}))
            situation = Situation(role=Role(self.name, KIND_OF[operand], self.step, memory))
            if records and not _is_recomputed(operand, axis):
                self.next_memories[key] = memory
        if self.observers or tensor_recipe.asks_functions:
            y, statistics = self._observed(x, operand, axis, tensor_recipe, situation)
        else:
            y, statistics = quantize(x, tensor_recipe.text, axis, situation)
        if tensor_recipe.is_delayed and records:
            self.histories[operand].hear(statistics)
        return y

    def _observed(
        self,
        x: torch.Tensor,
        operand: OperandName,
        axis: Axis,
        tensor_recipe: TensorRecipe,
        situation: Situation | None,
    ) -> Results:
        """Quantize, and call the observers; functions are called on the CPU."""
        known, found = situation or Situation(), None
        if x.device.type == "cpu" or tensor_recipe.asks_functions:
            found = on_cpu.quantization(x.cpu(), tensor_recipe, axis, known)
        if found is None:
            y, statistics = quantize(x, tensor_recipe.text, axis, situation)
        else:
            y, statistics = (one.to(x.device) for one in on_cpu.results(found, x.shape))
        seen = Observation(
            self.name, operand, axis, tensor_recipe, statistics, self.step,
            _is_recomputed(operand, axis), x.detach(), y.detach(), known, found,
        )  # fmt: skip
        for observer in self.observers:
            observer(seen)
        return y, statistics

    def purpose(self, use: int, call: int) -> tuple[int, int, int, int, int]:
        """Return the key of the random words of an operand (TRN-007)."""
        return self.seed, self.step, call, number_of(self.name), use

    def signs(self, hadamard: int | Hadamard, call: int) -> int:
        """Return the signs of a Hadamard transform: its own, or those of a step (TRN-009)."""
        if isinstance(hadamard, Hadamard):
            return hadamard.signs
        return int(random_words(self.purpose(SIGNS, call), 1)[0])

    def next_call(self, *, records: bool) -> int:
        """Return the number of a backward pass in its step."""
        call = self.call
        self.call += records
        return call


def _is_recomputed(operand: OperandName, axis: Axis) -> bool:
    """Return whether a checkpoint computes a forward operand in a backward pass."""
    is_forward = axis == "row" and operand != "grad_output"
    return is_forward and torch._C._current_graph_task_id() != -1  # noqa: SLF001, as torch.utils.checkpoint asks


def _use(operand: OperandName, axis: Axis) -> int:
    return len(AXES) * OPERANDS.index(operand) + AXES.index(axis)


def number_of(name: str) -> int:
    """Return the number of a layer (TRN-007): 63 bits of the SHA-256 of its name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 1


def check_module(model: object) -> None:
    """Refuse a model that is not a module of torch."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model is {model!r}; give an nn.Module")


def layers_of(model: nn.Module) -> dict[str, Layer]:
    """Return the converted layers of a model, each once, by the name at their conversion."""
    check_module(model)
    found: dict[str, Layer] = {}
    for module in model.modules():
        layer = module.__dict__.get("mor_ref_layer")
        if layer is not None:
            found[layer.name] = layer
    if not found:
        raise ValueError("model has no converted layer; call mor_ref.torch.convert first")
    return found


def observe(model: nn.Module, observer: Observer) -> AbstractContextManager[object]:
    """Call `observer` with an `Observation` of each quantization, until the result is closed.

    While a model is observed, call `advance(model)` after `optimizer.step()` under every recipe.

    >>> from torch import nn
    >>> from mor_ref.torch import convert
    >>> model, seen = nn.Sequential(nn.Linear(8, 4)), []
    >>> names = convert(model, "mor_tensor")
    >>> with observe(model, seen.append):
    ...     y = model(torch.ones(2, 8))
    >>> [(one.layer, one.operand, one.axis) for one in seen]
    [('0', 'input', 'row'), ('0', 'weight', 'row')]
    """
    layers, until = layers_of(model), ExitStack()
    if not callable(observer):
        raise TypeError(f"observer is {observer!r}; give a function of an Observation")
    for layer in layers.values():
        if not layer.recipe.has_state and not layer.observers:
            layer.progress = "new"  # nobody counted its steps until now
        layer.observers.append(observer)
        until.callback(layer.observers.remove, observer)
    return until
