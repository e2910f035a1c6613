"""The operator of torch that quantizes a tensor and returns it as numbers of its own dtype.

Its first result has the shape and the dtype of x. Its second result has the statistics: int64,
with the names that the recipe has for them.
"""

from math import inf
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import forward_ad

from mor_ref.argument_checks import known_name
from mor_ref.definitions.roles import Role
from mor_ref.recipes import RecipeLike, Situation
from mor_ref.recipes.recipe_tables import tensor_recipe_of_text
from mor_ref.recipes.training import AXES, KIND_OF, OPERANDS, Axis, OperandName, Recipe
from mor_ref.recipes.training_recipes import recipe_of_operand

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
_ROLES = {operand: Role(kind=kind) for operand, kind in KIND_OF.items()}
Results = tuple[torch.Tensor, torch.Tensor]


def fake_quantize(
    x: torch.Tensor,
    recipe: Recipe | RecipeLike,
    *,
    operand: OperandName = "input",
    axis: Axis = "row",
    scale: float = 1.0,
) -> torch.Tensor:
    """Quantize a tensor, and return its numbers in its own shape and dtype.

    `recipe` is a recipe of training or the name of one, or a recipe of one tensor or its text, such
    as "mor:tensor". Of
    a recipe of training, `operand` and `axis` say which recipe is meant; scales lie along the axis.
    `scale` is for recipes that take one. x is float32, bfloat16 or float16; it is quantized as it
    is. The gradient goes straight through (TRN-004).

    >>> import torch
    >>> fake_quantize(torch.tensor([0.3, -1.1]), "mor_tensor")
    tensor([ 0.2949, -1.1016])
    """
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x is a {type(x).__name__}; give a torch.Tensor")
    known_name("operand", operand, OPERANDS)
    known_name("axis", axis, AXES)
    described: Callable[..., tuple[str, bool, bool]] = (
        _described_by_text if isinstance(recipe, str) else _described
    )
    text, is_transformed, is_delayed = described(recipe, operand, axis)
    if is_transformed:
        raise ValueError(
            f"recipe has a Hadamard transform for {operand} by {axis}, which changes the numbers; "
            "give a recipe without this transform"
        )
    if not isinstance(scale, int | float):
        raise TypeError(f"scale is {scale!r}; give a number above 0 that is finite")
    if is_delayed and not 0 < scale < inf:
        raise ValueError(f"scale is {scale!r}; give a number above 0 that is finite")
    if not is_delayed and scale != 1:
        raise ValueError(f"scale is {scale!r}, but the recipe finds its own; omit scale")
    return quantize(x, text, axis, Situation(scale))[0]


def _described(
    recipe: Recipe | RecipeLike, operand: OperandName, axis: Axis
) -> tuple[str, bool, bool]:
    """Return the text of the recipe of an operand, and whether it is transformed and delayed."""
    tensor_recipe = recipe_of_operand(recipe, operand, axis).for_tensor(_ROLES[operand])
    return tensor_recipe.text, tensor_recipe.hadamard is not None, tensor_recipe.is_delayed


def _described_by_text(text: str, operand: OperandName, axis: Axis) -> tuple[str, bool, bool]:
    return _described(text, operand, axis)


# torch.compile cannot trace how a text is read: it calls this while it traces. The mark is that of
# torch.compiler.assume_constant_result, which imports the whole compiler.
_described_by_text._dynamo_marked_constant = True  # type: ignore[attr-defined]  # noqa: SLF001


def quantize(x: torch.Tensor, text: str, axis: Axis, situation: Situation | None) -> Results:
    """Return a tensor as the text of its recipe says, and its statistics, by the operator."""
    found: Results
    if situation is None:  # torch.compile cannot trace a float if all shapes are dynamic
        found = torch.ops.mor_ref.fake_quantize(x, text, axis)
    else:
        found = torch.ops.mor_ref.fake_quantize(x, text, axis, situation.scale, situation.purpose)
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
