"""One quantization of a tensor on the CPU, by the engine."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch

from mor_ref.api.policies import Cuts, Decided, cuts_of, mix
from mor_ref.arrays import Numbers, numbers_from
from mor_ref.definitions.blocks import Cut, rows_and_columns
from mor_ref.policies import Policy
from mor_ref.recipes import Situation, TensorRecipe
from mor_ref.recipes.training import Axis
from mor_ref.torch.directions import turned


class LaidOut(NamedTuple):
    """A matrix as it is quantized: its sides, the policy and the block for it."""

    numbers: Numbers
    sides: tuple[int, int]
    policy: Policy
    cut: Cut
    is_transposed: bool


class Quantization(NamedTuple):
    """A tensor as the engine quantized it."""

    given: LaidOut
    cuts: Cuts
    mixed: Decided
    output: np.ndarray[Any, np.dtype[np.uint16]]


def quantized(
    x: torch.Tensor, tensor_recipe: TensorRecipe, axis: Axis, situation: Situation
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the numbers in bfloat16, in the shape of x, and the statistics."""
    found = quantization(x, tensor_recipe, axis, situation)
    if found is None:
        y = x.detach().to(torch.bfloat16).clone(memory_format=torch.contiguous_format)
        return y, torch.empty(0, dtype=torch.int64)
    return results(found, x.shape)


def quantization(
    x: torch.Tensor, tensor_recipe: TensorRecipe, axis: Axis, situation: Situation
) -> Quantization | None:
    """Quantize with the engine; None if the tensor stays as it is."""
    policy = tensor_recipe.policy_in(situation)
    if policy is None:
        return None
    given = laid_out(x, policy, tensor_recipe, axis)
    cuts = _cuts(given.sides, given.cut, given.policy.group, policy.unit, tensor_recipe.scales)
    output = np.empty(given.numbers.bits.size, np.uint16)
    mixed = mix(given.numbers, given.policy, tensor_recipe.scales, cuts, None, output)
    return Quantization(given, cuts, mixed, output)


def results(found: Quantization, shape: torch.Size) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the numbers in bfloat16, in that shape, and the statistics."""
    given, codes = found.given, found.output
    if given.is_transposed:
        codes = np.ascontiguousarray(codes.reshape(given.sides).T)
    y = torch.from_numpy(codes.view(np.int16)).view(torch.bfloat16).reshape(shape)
    return y, torch.from_numpy(_statistics(given.policy, found.mixed))


def laid_out(x: torch.Tensor, policy: Policy, tensor_recipe: TensorRecipe, axis: Axis) -> LaidOut:
    """Return the matrix whose rows are quantized along an axis of x, and its policy and block."""
    numbers, cut = numbers_from(x, "x"), tensor_recipe.cut
    sides = rows_and_columns(numbers.shape)
    found = (policy, cut) if axis == "row" else turned(policy, cut)
    if found is not None:
        return LaidOut(numbers, sides, *found, is_transposed=False)
    rows = numbers.bits.view(numbers.dtype).reshape(sides)
    anew = numbers_from(np.ascontiguousarray(rows.T), "x")
    return LaidOut(anew, sides[::-1], policy, cut, is_transposed=True)


_cuts = lru_cache(maxsize=1024)(cuts_of)  # a model has few shapes, and the same in each step


def _statistics(policy: Policy, mixed: Decided) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the integers that `TensorRecipe.statistics` names."""
    amax, amin = mixed.extremes
    lowest = int((amin - np.uint32(1)).min(initial=0xFFFFFFFF)) + 1 & 0xFFFFFFFF  # 0 is for none
    choices = np.bincount(mixed.choice.reshape(-1), minlength=len(policy.names))
    sums = (one.reshape(-1, 3).sum(0).view(np.int64) for one in mixed.sums.values())
    ends = mixed.choice.size, amax.max(initial=0), lowest
    return np.concatenate([ends, choices, *sums], dtype=np.int64, casting="same_kind")
