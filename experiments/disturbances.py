"""The null arms: bfloat16 that is disturbed without a recipe."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

LARGEST = 0.045  # relative noise, uniform: its mean magnitude is 2.25 %, E4M3's on smooth data


def nudge(weight: Tensor, seed: int) -> None:
    """Move one number of a weight up by one unit in the last place of bfloat16."""
    with torch.no_grad():
        column = seed % weight.shape[1]
        rounded = weight[0, column].bfloat16()
        weight[0, column] = torch.nextafter(rounded, torch.full_like(rounded, torch.inf))


def add_noise(layers: dict[str, nn.Linear], seed: int) -> None:
    """Disturb the operands of each layer at each step, as a recipe per tensor quantizes them.

    Noise is drawn once for an operand, and both of its products use it.
    """
    for number, layer in enumerate(layers.values()):
        generator = torch.Generator(layer.weight.device).manual_seed(1_000_000 * seed + number)
        layer.forward = _noisy(layer, generator)  # type: ignore[method-assign,assignment]


def _noisy(layer: nn.Linear, generator: torch.Generator) -> Callable[[Tensor], Tensor]:
    def forward(x: Tensor) -> Tensor:
        x, weight = _Noise.apply(x, generator), _Noise.apply(layer.weight, generator)
        y: Tensor = _NoiseOfGradient.apply(functional.linear(x, weight, layer.bias), generator)
        return y

    return forward


def disturbed(x: Tensor, generator: torch.Generator) -> Tensor:
    """Return an operand in bfloat16 with unbiased relative noise."""
    noise = torch.rand(x.shape, generator=generator, device=x.device)
    return (x.bfloat16() * (1 + LARGEST * (2 * noise - 1))).bfloat16()


class _Noise(torch.autograd.Function):
    """Noise on the way forward; the gradient is that of x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, generator: torch.Generator) -> Tensor:
        ctx.dtype = x.dtype
        return disturbed(x, generator)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient.to(ctx.dtype), None


class _NoiseOfGradient(torch.autograd.Function):
    """Noise on the gradient, on its way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, generator: torch.Generator) -> Tensor:
        ctx.generator = generator
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return disturbed(gradient, ctx.generator).to(gradient.dtype), None
