"""One quantization of a tensor on a GPU, by the kernels, on torch's current stream.

The memory of the results is CuPy's, which torch holds. No GPU has run this module yet.
"""

from typing import Any

import torch
from torch.utils.dlpack import from_dlpack

from mor_ref.cuda.functions import mor
from mor_ref.definitions.blocks import rows_and_columns
from mor_ref.recipes import Situation, TensorRecipe
from mor_ref.recipes.training import Axis
from mor_ref.torch import on_cpu
from mor_ref.torch.directions import turned


def quantized(
    x: torch.Tensor, tensor_recipe: TensorRecipe, axis: Axis, situation: Situation
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the numbers in bfloat16, in the shape of x, and the statistics."""
    policy = tensor_recipe.policy_in(situation)
    if policy is None:
        y = x.detach().to(torch.bfloat16).clone(memory_format=torch.contiguous_format)
        return y, x.new_empty(0, dtype=torch.int64)
    if policy.compares_on_host:
        y, statistics = on_cpu.quantized(x.detach().cpu(), tensor_recipe, axis, situation)
        return y.to(x.device), statistics.to(x.device)
    if x.numel() == 0:
        return x.to(torch.bfloat16), x.new_zeros(len(tensor_recipe.statistics), dtype=torch.int64)
    rows = x.detach().reshape(rows_and_columns(tuple(x.shape)))
    cut, is_laid_out_anew = tensor_recipe.cut, False
    if axis == "column":
        found = turned(policy, cut)
        is_laid_out_anew = found is None
        policy, cut = found or (policy, cut)
    given = rows.T.contiguous() if is_laid_out_anew else rows
    scaling = tensor_recipe.scales if policy.uses_scaling else None
    result = mor(given, policy, block=cut, scaling=scaling)
    codes = from_dlpack(result.output.view("int16")).view(torch.bfloat16)
    y = codes.T.contiguous() if is_laid_out_anew else codes
    return y.reshape(x.shape), _statistics(result)


def _statistics(result: Any) -> torch.Tensor:
    """Return the integers that `TensorRecipe.statistics` names, without waiting for the GPU."""
    amax, amin, choice = (
        from_dlpack(array.view(kind)).reshape(-1).to(torch.int64)
        for array, kind in (
            (result.amax, "int32"),
            (result.amin, "int32"),
            (result.choice, "uint8"),
        )
    )
    lowest = torch.where(amin == 0, 0x7FFFFFFF, amin).amin()
    choices = [(choice == k).sum() for k in range(len(result.ladder))]
    sums = [
        from_dlpack(getattr(one, kind).view("int64")).sum()
        for one in result.error.values()
        for kind in ("sum", "nonzero", "nonfinite")
    ]
    units = torch.full_like(lowest, choice.numel())
    ends = amax.amax(), torch.where(lowest == 0x7FFFFFFF, 0, lowest)
    return torch.stack([units, *ends, *choices, *sums])
