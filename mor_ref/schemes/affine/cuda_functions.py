"""Integers with zero points on a GPU: the public function and its record."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mor_ref.argument_checks import binary32_number, positive_binary32, whole_number
from mor_ref.cuda.arrays import (
    GivenArray,
    arrays_among,
    given,
    numbers_from,
    on_gpu_of,
    words_of,
)
from mor_ref.cuda.device import Gpu
from mor_ref.cuda.errors import ErrorSums
from mor_ref.cuda.launching import Array
from mor_ref.cuda.records import WithY
from mor_ref.cuda.streams import Moment, now
from mor_ref.definitions.blocks import Cut, Partition
from mor_ref.definitions.integer_grids import IntegerGrid, integer_grid
from mor_ref.schemes.affine import cuda as integers
from mor_ref.schemes.affine.definition import (
    affine_cut,
    affine_profile,
    check_grid,
    check_zero_points,
    with_float_zeros,
)

_SOURCES = {"bfloat16": "bf16", "float16": "f16"}


@dataclass(frozen=True, eq=False, repr=False)
class Affine(WithY):
    """A tensor as integers on a GPU; its fields are named as in `mor_ref.Affine`.

    `codes` are int32. There is no `grid`: with the profile peg a symmetric one has a sign if a
    number is negative, which the GPU alone knows.
    """

    profile: str
    symmetric: bool
    minimum: Array
    maximum: Array
    scale: Array
    inverse_scale: Array
    zero_float: Array
    zero_point: Array
    xs: Array
    codes: Array
    y: Array
    error: ErrorSums
    partition: Partition
    range: Array | None
    permutation: Array | None
    _ready: Moment

    @property
    def group_min(self) -> Array | None:
        """The smallest number of each group."""
        return None if self.permutation is None else self.minimum

    @property
    def group_max(self) -> Array | None:
        """The largest number of each group."""
        return None if self.permutation is None else self.maximum


def quantize_affine(
    x: Any,
    grid: str = "int8",
    *,
    profile: str = "torch_fake_tensor",
    block: Cut | None = None,
    symmetric: bool = True,
    scale: Any = None,
    zero_point: Any = None,
    groups: int | None = None,
    permute: str | None = None,
) -> Affine:
    """Quantize `x` to integers, as `mor_ref.quantize_affine` does.

    `scale` and `zero_point` are numbers, or arrays on the GPU with an entry for each block, which
    nobody checks: scales are float32, and zero points int32, or float32 if the profile takes them.
    """
    target, rule = integer_grid(grid), affine_profile(profile)
    check_grid(target, rule, symmetric=symmetric, has_zero_point=zero_point is not None)
    argument, arrays = given(x, "x"), arrays_among(scale=scale, zero_point=zero_point)
    if _is_float(zero_point, arrays.get("zero_point")):
        rule = with_float_zeros(rule)
    with on_gpu_of(argument, *arrays.values()) as gpu:
        numbers = numbers_from(argument)
        cut = affine_cut(numbers.shape, rule, block, groups, permute)
        choices = integers.Choices(rule, target, symmetric, _SOURCES.get(numbers.dtype, "f32"))
        scales = _scales(gpu, scale, arrays.get("scale"), cut)
        zeros = _zeros(gpu, zero_point, arrays.get("zero_point"), target, cut)
        scale_and_zero = integers.ScaleAndZero(
            scales, **{"float_zero" if rule.float_zeros else "zero": zeros}
        )
        order = None
        if permute is None:
            quantized = integers.quantize_affine(gpu, numbers.bits, choices, cut, scale_and_zero)
            error = integers.errors(gpu, numbers.bits, quantized.y, cut)
        else:
            count = math.prod(cut.grid)
            order, quantized, error = integers.quantize_groups(
                gpu, numbers.bits, choices, count, scale_and_zero
            )
        return _affine(choices, quantized, error, cut, order, numbers.shape)


def _affine(
    choices: integers.Choices,
    quantized: integers.Affine,
    error: ErrorSums,
    cut: Partition,
    order: integers.Order | None,
    shape: tuple[int, ...],
) -> Affine:
    blocks = quantized.blocks
    return Affine(
        choices.profile.name,
        choices.symmetric,
        blocks.minimum.view(np.float32),
        blocks.maximum.view(np.float32),
        blocks.scale.view(np.float32),
        blocks.inverse_scale.view(np.float32),
        blocks.zero_float.view(np.float32),
        blocks.zero.view(np.float32) if choices.profile.float_zeros else blocks.zero_point,
        quantized.xs.view(np.float32).reshape(shape),
        quantized.code.reshape(shape),
        quantized.y.view(np.float32).reshape(shape),
        error,
        cut,
        None if order is None else order.range.view(np.float32).reshape(-1),
        None if order is None else order.order.reshape(-1),
        now(),
    )


def _scales(gpu: Gpu, scale: Any, array: GivenArray | None, cut: Partition) -> Array | None:
    count = math.prod(cut.grid)
    if array is not None:
        return words_of(array, "float32", count, "blocks")
    if scale is None:
        return None
    number = positive_binary32("scale", scale, "0.25")
    return gpu.upload(np.full(count, number, np.float32).view(np.uint32))


def _is_float(zero_point: Any, array: GivenArray | None) -> bool:
    return isinstance(zero_point, float) if array is None else array.dtype.startswith("float")


def _zeros(
    gpu: Gpu, zero_point: Any, array: GivenArray | None, grid: IntegerGrid, cut: Partition
) -> Array | None:
    count = math.prod(cut.grid)
    if array is not None:
        dtype = "float32" if _is_float(zero_point, array) else "int32"
        return words_of(array, dtype, count, "blocks")
    if isinstance(zero_point, float):
        zero = binary32_number("zero_point", zero_point, "0.5")
        return gpu.upload(np.full(count, zero, np.float32).view(np.uint32))
    if zero_point is None:
        return None
    number = whole_number("zero_point", zero_point, -(1 << 31), (1 << 31) - 1)
    check_zero_points(number, number, grid)
    return gpu.upload(np.full(count, number, np.int32))
