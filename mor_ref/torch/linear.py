"""The products of a linear layer, forward and backward, of operands as a recipe has them."""

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from mor_ref.api.training import hadamard_sums
from mor_ref.torch.layers import Layer
from mor_ref.torch.operator import check_dtype

_GROUP = 16


class Product(torch.autograd.Function):
    """x @ weight.T of two bfloat16 matrices, and its gradients (TRN-002)."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, layer: Layer, records: bool
    ) -> torch.Tensor:
        """Multiply both operands by row."""
        recipe = layer.recipe
        by_row = layer.quantized(x, "input", "row", records=records)
        weight_by_row = layer.quantized(weight, "weight", "row", records=records)
        ctx.layer, ctx.records = layer, records
        ctx.save_for_backward(
            by_row if recipe.input.column is None else x,
            weight_by_row if recipe.weight.column is None else weight,
        )
        return _product(by_row, weight_by_row.t())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        """Multiply the gradient by row with weight, and by column with x.

        The saved operands have lost what they came from: a gradient has no gradient of its own.
        """
        x, weight = ctx.saved_tensors
        layer, records = ctx.layer, ctx.records
        of_x, of_weight = ctx.needs_input_grad[:2]
        once = layer.recipe.grad_output.column is None
        call = layer.next_call(records=records) if layer.recipe.has_state else 0
        by_row = gradient
        if of_x or once:
            by_row = layer.quantized(gradient, "grad_output", "row", call=call, records=records)
        found_x = found_weight = None
        if of_x:
            if layer.recipe.weight.column is not None:
                weight = layer.quantized(weight, "weight", "column", records=records)
            found_x = _product(by_row, weight)
        if of_weight:
            by_column = by_row if once else gradient
            found_weight = _of_weight(layer, by_column, x, call, records=records)
        return found_x, found_weight, None, None


def _of_weight(
    layer: Layer, gradient: torch.Tensor, x: torch.Tensor, call: int, *, records: bool
) -> torch.Tensor:
    """Return the gradient of the weight; operands that were quantized once are so already."""
    recipe = layer.recipe
    if recipe.input.column is not None and recipe.input.column.hadamard is not None:
        signs = layer.signs(recipe.input.column.hadamard, call)
        gradient, x = transformed(gradient, signs), transformed(x, signs)
    if recipe.grad_output.column is not None:
        gradient = layer.quantized(gradient, "grad_output", "column", call=call, records=records)
    if recipe.input.column is not None:
        x = layer.quantized(x, "input", "column", records=records)
    return _product(gradient.t(), x)


def _product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Multiply two bfloat16 matrices without conversion, also under autocast."""
    with torch.autocast(a.device.type, enabled=False):
        return a @ b


def transformed(x: torch.Tensor, signs: int) -> torch.Tensor:
    """Return the Hadamard transform of the columns of a matrix, 16 rows at a time (TRN-009).

    Rows of zeros make the number of rows a multiple of 16.
    """
    rows, columns = x.shape
    z = torch.nn.functional.pad(x.float(), (0, 0, 0, -rows % _GROUP))
    factors = torch.tensor([-1.0 if signs >> i & 1 else 1.0 for i in range(_GROUP)])
    z = z.reshape(-1, _GROUP, columns) * factors.to(x.device)[:, None]
    hadamard_sums(z)
    return (z * 0.25).reshape(-1, columns).to(torch.bfloat16)


def multiplied(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: "torch.Tensor | None",
    layer: Layer,
    *,
    records: bool,
) -> torch.Tensor:
    """Return x @ weight.T + bias, as a linear layer returns it under autocast and without.

    Operands are rounded to bfloat16 first (TRN-001).
    """
    if torch._C._are_functorch_transforms_active():  # noqa: SLF001, as autograd.Function asks
        raise RuntimeError(
            "a converted linear layer is called under torch.vmap or another transform of "
            "torch.func, where a tensor has no rows of its own; call the layer outside of the "
            "transform, or revert the model"
        )
    check_dtype(x)
    kind = x.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype
    if x.dtype != weight.dtype and not torch.is_autocast_enabled(kind):
        raise TypeError(
            f"x has dtype {x.dtype} and the weight of {layer.name} has {weight.dtype}; convert one "
            "of them, or use torch.autocast"
        )
    rows = x.reshape(-1, x.shape[-1]).to(torch.bfloat16)
    found = Product.apply(rows, weight.to(torch.bfloat16), layer, records)
    y: torch.Tensor = found.to(dtype).reshape(*x.shape[:-1], weight.shape[0])
    return y if bias is None else y + bias.to(dtype)
