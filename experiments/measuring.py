"""Errors and decisions of MoR on the operands of a model in training, which they do not change."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from experiments.runs import LOST, Direction, Setting, rows
from mor_ref import MorResult, mor


class Measurements:
    """Errors and decisions of all operands at some steps of a run.

    A row is a layer, an operand and a direction, in the order of `rows`. An operand has two
    directions if its scales follow the contraction.
    """

    def __init__(self, layers: dict[str, nn.Linear], settings: tuple[Setting, ...]) -> None:
        self._layers, self._settings, self._is_on = layers, settings, False
        self._seen: dict[tuple[str, str], Tensor] = {}
        self.steps: list[int] = []
        self.found: dict[str, list[list[Any]]] = {each.name: [] for each in settings}
        for name, layer in layers.items():
            layer.register_forward_hook(self._watching(name))

    def _watching(self, name: str) -> Any:
        def see(layer: nn.Linear, given: tuple[Tensor], output: Tensor) -> None:
            if self._is_on:
                self._seen[name, "input"] = given[0].detach()
                self._seen[name, "weight"] = layer.weight.detach().clone()
                output.register_hook(lambda gradient: self._see_gradient(name, gradient))

        return see

    def _see_gradient(self, name: str, gradient: Tensor) -> None:
        self._seen[name, "grad_output"] = gradient.detach()

    def watch(self, *, is_due: bool) -> None:
        """Keep the operands of the step that follows, if it is due."""
        self._is_on = is_due and bool(self._settings)

    def take(self, step: int) -> None:
        """Measure the operands that were kept."""
        if self._is_on:
            self.steps.append(step)
            for setting in self._settings:
                self.found[setting.name].append(self._row_of(setting))
            self._seen.clear()
        self._is_on = False

    def _row_of(self, setting: Setting) -> list[Any]:
        return [
            measured(self._seen[name, operand], setting, direction)
            for name, operand, direction in rows(tuple(self._layers), setting)
        ]

    def document(self) -> dict[str, Any]:
        """Return all that was measured, as JSON has it."""
        return {"layers": list(self._layers), "steps": self.steps, "found": self.found}


def measured(x: Tensor, setting: Setting, direction: Direction) -> int | list[int]:
    """Return the integer mean of a tensor's error, or how many blocks took each representation."""
    rounded = x.reshape(-1, x.shape[-1]).to(torch.bfloat16).cpu().contiguous()
    result = mor(
        rounded, setting.policy, block=_block(setting, direction), scaling=setting.scaling,
        threads=1,
    )  # fmt: skip
    if setting.is_by_tensor:
        return integer_mean(result)
    counts: list[int] = np.bincount(result.choice.ravel(), minlength=len(result.ladder)).tolist()
    return counts


def integer_mean(result: MorResult) -> int:
    """Return floor(sum / nonzero): below T * 2^23 if and only if a threshold T accepts."""
    error = result.error["e4m3"]
    total, nonzero = int(error.sum.sum()), int(error.nonzero.sum())
    return LOST if error.nonfinite.any() else total // max(nonzero, 1)


def _block(setting: Setting, direction: Direction) -> Any:
    if setting.cut == "tensor":
        return "tensor"
    return direction if setting.cut == "channel" else (setting.cut, setting.cut)
