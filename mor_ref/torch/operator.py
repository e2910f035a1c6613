"""The operator of torch that quantizes a tensor and returns it as numbers of its own dtype.

Its first result has the shape and the dtype of x. Its second result has the statistics: int64,
with the names that the recipe has for them.
"""

from math import inf
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import forward_ad

from mor_ref.argument_checks import known_name
from mor_ref.recipes import Situation, TensorRecipe
from mor_ref.recipes.recipe_text import tensor_recipe_of_text
from mor_ref.torch.directions import AXES, Axis
from mor_ref.torch.named_recipes import as_recipe
from mor_ref.torch.recipe import OPERANDS, OperandName, Recipe

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
_LARGEST_F16 = torch.finfo(torch.float16).max
_SCHEMA = (
    "(Tensor x, str recipe, str axis, float scale=1.0, int[] purpose=[0, 0, 0, 0, 0])"
    " -> (Tensor, Tensor)"
)
_LIBRARY = torch.library.Library("mor_ref", "DEF")  # as long as this lives, the operator is there
_LIBRARY.define(f"fake_quantize{_SCHEMA}", tags=(torch.Tag.needs_fixed_stride_order,))
_QUALIFIED = "mor_ref::fake_quantize"
Results = tuple[torch.Tensor, torch.Tensor]


def fake_quantize(
    x: torch.Tensor,
    recipe: str | Recipe | TensorRecipe,
    *,
    operand: OperandName = "input",
    axis: Axis = "row",
    scale: float = 1.0,
) -> torch.Tensor:
    """Quantize a tensor, and return its numbers in its own shape and dtype.

    `recipe` is a name, a recipe or a recipe. Of a recipe, `operand` and `axis` say which
    recipe is meant; scales lie along the axis. `scale` is for recipes that take one. x is
    float32, bfloat16 or float16; it is quantized as it is. The gradient goes straight through
    (TRN-004).

    >>> import torch
    >>> fake_quantize(torch.tensor([0.3, -1.1]), "mor_tensor")
    tensor([ 0.2949, -1.1016])
    """
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x is a {type(x).__name__}; give a torch.Tensor")
    known_name("operand", operand, OPERANDS)
    known_name("axis", axis, AXES)
    tensor_recipe = (
        recipe if isinstance(recipe, TensorRecipe) else as_recipe(recipe).of(operand, axis)
    )
    if tensor_recipe.hadamard:
        raise ValueError(
            f"recipe has a Hadamard transform for {operand} by {axis}, which changes the numbers; "
            "give a recipe without this transform"
        )
    if not isinstance(scale, int | float):
        raise TypeError(f"scale is {scale!r}; give a number above 0 that is finite")
    if tensor_recipe.is_delayed and not 0 < scale < inf:
        raise ValueError(f"scale is {scale!r}; give a number above 0 that is finite")
    if not tensor_recipe.is_delayed and scale != 1:
        raise ValueError(f"scale is {scale!r}, but the recipe finds its own; omit scale")
    return quantize(x, tensor_recipe, axis, Situation(scale))[0]


def quantize(
    x: torch.Tensor, tensor_recipe: TensorRecipe, axis: Axis, situation: Situation | None
) -> Results:
    """Return a quantized tensor and its statistics, by the operator."""
    found: Results
    if situation is None:  # torch.compile cannot trace a float if all shapes are dynamic
        found = torch.ops.mor_ref.fake_quantize(x, tensor_recipe.text, axis)
    else:
        found = torch.ops.mor_ref.fake_quantize(
            x, tensor_recipe.text, axis, situation.scale, situation.purpose
        )
    if torch.compiler.is_compiling():
        return found
    # torch.library has no formula of an operator for tangents: they would be zero (TRN-004).
    tangent = forward_ad.unpack_dual(x).tangent
    return found if tangent is None else (forward_ad.make_dual(found[0], tangent), found[1])


def check_dtype(x: torch.Tensor) -> None:
    """Refuse integers, and numbers that would be rounded before they are quantized."""
    if x.dtype not in _DTYPES:
        raise TypeError(
            f"x has dtype {x.dtype}; convert it yourself and give float32, bfloat16 or float16: "
            "mor_ref does not round silently"
        )


def _shape(
    x: torch.Tensor,
    tensor_recipe: str,
    axis: str,
    scale: float = 1.0,
    purpose: "Sequence[int]" = (),
) -> Results:
    """Return empty tensors of the shapes of the results."""
    del axis, scale, purpose
    check_dtype(x)
    count = len(tensor_recipe_of_text(tensor_recipe).statistics)
    return x.new_empty(x.shape), x.new_empty(count, dtype=torch.int64)


def _on_cpu(
    x: torch.Tensor, tensor_recipe: str, axis: Axis, scale: float = 1.0, purpose: Any = (0,) * 5
) -> Results:
    """Quantize with the engine."""
    from mor_ref.torch.on_cpu import quantized

    return _by(quantized, x, tensor_recipe, axis, Situation(scale, tuple(purpose)))


def _on_cuda(
    x: torch.Tensor, tensor_recipe: str, axis: Axis, scale: float = 1.0, purpose: Any = (0,) * 5
) -> Results:
    """Quantize with the kernels, on torch's current stream."""
    from mor_ref.torch.on_cuda import quantized

    return _by(quantized, x, tensor_recipe, axis, Situation(scale, tuple(purpose)))


def _by(
    quantized: "Callable[..., Results]",
    x: torch.Tensor,
    tensor_recipe: str,
    axis: Axis,
    situation: Situation,
) -> Results:
    """Quantize with an implementation."""
    check_dtype(x)
    y, statistics = quantized(x, tensor_recipe_of_text(tensor_recipe), axis, situation)
    return _of_dtype(y, x.dtype), statistics


def _of_dtype(y: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return numbers of bfloat16 in a dtype; none that is finite becomes infinite (TRN-004)."""
    if dtype != torch.float16:
        return y.to(dtype)
    limited = y.float().clamp(-_LARGEST_F16, _LARGEST_F16)
    return torch.where(y.isinf(), y.float(), limited).to(dtype)


def _straight_through(_: Any, gradient: torch.Tensor, __: "torch.Tensor | None") -> Any:
    """Return the gradient of x: that of the result (TRN-004)."""
    return gradient, None, None, None, None


def _refuse_vmap(*_: Any) -> Any:
    raise RuntimeError(
        "fake_quantize is called under torch.vmap, where a tensor has no rows of its own; call it "
        "on the whole tensor, outside of vmap"
    )


_LIBRARY.impl("fake_quantize", _on_cpu, "CPU")
_LIBRARY.impl("fake_quantize", _on_cuda, "CUDA")
torch.library.register_fake(_QUALIFIED, _shape, lib=_LIBRARY)
torch.library.register_autograd(_QUALIFIED, _straight_through, lib=_LIBRARY)
torch.library.register_vmap(_QUALIFIED, _refuse_vmap, lib=_LIBRARY)
