"""One quantization of a tensor on the CPU, by the engine."""

from functools import lru_cache
from typing import Any

import numpy as np
import torch

from mor_ref.api.policies import Mixed, cuts_of, mix
from mor_ref.arrays import numbers_from
from mor_ref.definitions.blocks import rows_and_columns
from mor_ref.policies import Policy
from mor_ref.torch.quantizers import Axis, Situation, Treatment, turned


def quantized(
    x: torch.Tensor, treatment: Treatment, axis: Axis, situation: Situation
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the numbers in bfloat16, in the shape of x, and the statistics."""
    policy = treatment.policy_in(situation)
    if policy is None:
        y = x.detach().to(torch.bfloat16).clone(memory_format=torch.contiguous_format)
        return y, torch.empty(0, dtype=torch.int64)
    numbers, cut, scaling = numbers_from(x, "x"), treatment.cut, treatment.scales
    sides, is_laid_out_anew = rows_and_columns(numbers.shape), False
    if axis == "column":
        found = turned(policy, cut)
        is_laid_out_anew = found is None
        policy, cut = found or (policy, cut)
    if is_laid_out_anew:
        rows = numbers.bits.view(numbers.dtype).reshape(sides)
        numbers, sides = numbers_from(np.ascontiguousarray(rows.T), "x"), sides[::-1]
    group = tuple(policy.group) if isinstance(policy.group, list) else policy.group
    mixed = mix(numbers, policy, scaling, _cuts(sides, cut, group, policy.unit, scaling), None)
    codes = mixed.output
    if is_laid_out_anew:
        codes = np.ascontiguousarray(codes.reshape(sides).T)
    y = torch.from_numpy(codes.view(np.int16)).view(torch.bfloat16).reshape(x.shape)
    return y, torch.from_numpy(_statistics(policy, mixed))


_cuts = lru_cache(maxsize=1024)(cuts_of)  # a model has few shapes, and the same in each step


def _statistics(policy: Policy, mixed: Mixed) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the integers that `Treatment.statistics` names."""
    amax, amin = mixed.extremes
    lowest = int((amin - np.uint32(1)).min(initial=0xFFFFFFFF)) + 1 & 0xFFFFFFFF  # 0 is for none
    choices = np.bincount(mixed.choice.reshape(-1), minlength=len(policy.names))
    sums = (one.reshape(-1, 3).sum(0).view(np.int64) for one in mixed.sums.values())
    ends = mixed.choice.size, amax.max(initial=0), lowest
    return np.concatenate([ends, choices, *sums], dtype=np.int64, casting="same_kind")
