"""One quantization of a tensor on the CPU, by the engine."""

from typing import Any

import numpy as np
import torch

from mor_ref.api.policies import MorResult, mor
from mor_ref.arrays import numbers_from
from mor_ref.definitions.blocks import rows_and_columns
from mor_ref.torch.quantizers import Axis, Situation, Treatment, turned


def quantized(
    x: torch.Tensor, treatment: Treatment, axis: Axis, situation: Situation
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the numbers in bfloat16, in the shape of x, and the statistics."""
    policy = treatment.policy_in(situation)
    if policy is None:
        y = x.detach().to(torch.bfloat16).clone(memory_format=torch.contiguous_format)
        return y, torch.empty(0, dtype=torch.int64)
    numbers = numbers_from(x, "x")
    rows = numbers.bits.view(numbers.dtype).reshape(rows_and_columns(numbers.shape))
    cut, is_laid_out_anew = treatment.cut, False
    if axis == "column":
        found = turned(policy, cut)
        is_laid_out_anew = found is None
        policy, cut = found or (policy, cut)
    given = np.ascontiguousarray(rows.T) if is_laid_out_anew else rows
    result = mor(given, policy, block=cut, scaling=treatment.scales)
    codes = np.ascontiguousarray(result.output.T) if is_laid_out_anew else result.output
    y = torch.from_numpy(codes.view(np.int16)).view(torch.bfloat16).reshape(x.shape)
    return y, torch.from_numpy(_statistics(result))


def _statistics(result: MorResult) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the integers that `Treatment.statistics` names."""
    amin = result.amin.view(np.uint32)
    ends = result.amax.view(np.uint32).max(initial=0), amin[amin != 0].min(initial=0xFFFFFFFF)
    lowest = ends[1] if ends[1] != 0xFFFFFFFF else 0
    choices = np.bincount(result.choice.reshape(-1), minlength=len(result.ladder))
    sums = (
        getattr(one, kind).sum()
        for one in result.error.values()
        for kind in ("sum", "nonzero", "nonfinite")
    )
    return np.array([result.choice.size, ends[0], lowest, *choices, *sums], np.int64)
