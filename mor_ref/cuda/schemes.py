"""The public functions of the other schemes on a GPU: integers, shared exponents and levels."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mor_ref.argument_checks import whole_number
from mor_ref.cuda import affine as integers
from mor_ref.cuda import levels as in_levels
from mor_ref.cuda import shared as in_shared
from mor_ref.cuda.arrays import Given, given, numbers_from, on_gpu_after, on_gpu_of
from mor_ref.cuda.device import Gpu, in_order
from mor_ref.cuda.errors import ErrorSums
from mor_ref.cuda.launching import Array
from mor_ref.cuda.streams import Moment, now
from mor_ref.definitions.affine import (
    IntegerGrid,
    affine_cut,
    affine_profile,
    check_float_zeros,
    check_grid,
    check_scales,
    check_zero_points,
    integer_grid,
    with_float_zeros,
)
from mor_ref.definitions.blocks import Cut, Partition
from mor_ref.definitions.levels import known_arithmetic, level_kind
from mor_ref.definitions.shared import shared_kind, shared_profile

_SOURCES = {"bfloat16": "bf16", "float16": "f16"}


class _WithY:
    """A record that has y."""

    y: Array
    _ready: Moment

    def dequantize(self) -> Array:
        """Return y, as float32, on CuPy's current stream."""
        with on_gpu_after(self._ready, self.y):
            return self.y.copy()


@dataclass(frozen=True, eq=False)
class Affine(_WithY):
    """A tensor as integers on a GPU; its fields are named as in `mor_ref.Affine`.

    `codes` are int32. There is no `grid`: under the profile peg a symmetric one has a sign if a
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
    ranges: Array | None
    permutation: Array | None
    _ready: Moment


@dataclass(frozen=True, eq=False)
class Shared(_WithY):
    """A tensor in blocks that share an exponent, on a GPU; its fields are those of `Shared`."""

    kind: str
    profile: str
    shared_exponent: Array
    tau: Array
    magnitude: Array
    sign: Array
    codes: Array
    y: Array
    _ready: Moment


@dataclass(frozen=True, eq=False)
class Levels(_WithY):
    """Weights as levels on a GPU; its fields are named as in `mor_ref.Levels`."""

    kind: str
    arithmetic: str
    alpha: Array
    ratio: Array
    clipped: Array
    level: Array
    y: Array
    alpha_term: Array
    inside: Array
    codes: Array
    _ready: Moment


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
    of, by = integer_grid(grid), affine_profile(profile)
    check_grid(of, by, symmetric=symmetric, has_zero_point=zero_point is not None)
    argument, others = given(x, "x"), _arrays_among(scale=scale, zero_point=zero_point)
    if _is_float(zero_point, others.get("zero_point")):
        by = with_float_zeros(by)
    with on_gpu_of(argument, *others.values()) as gpu:
        numbers = numbers_from(argument)
        cut = affine_cut(numbers.shape, by, block, groups, permute)
        how = integers.How(by, of, symmetric, _SOURCES.get(numbers.dtype, "f32"))
        scales = _scales(gpu, scale, others.get("scale"), cut)
        zeros = _zeros(gpu, zero_point, others.get("zero_point"), of, cut)
        known = integers.Given(scales, **{"float_zero" if by.float_zeros else "zero": zeros})
        order = None
        if permute is None:
            found = integers.quantize_affine(gpu, numbers.bits, how, cut, known)
            error = integers.errors(gpu, numbers.bits, found.y, cut)
        else:
            count = math.prod(cut.grid)
            order, found, error = integers.quantize_groups(gpu, numbers.bits, how, count, known)
        return _affine(how, found, error, cut, order, numbers.shape)


def _affine(
    how: integers.How,
    found: integers.Affine,
    error: ErrorSums,
    cut: Partition,
    order: integers.Order | None,
    shape: tuple[int, ...],
) -> Affine:
    blocks = found.blocks
    return Affine(
        how.profile.name,
        how.symmetric,
        blocks.minimum.view(np.float32),
        blocks.maximum.view(np.float32),
        blocks.scale.view(np.float32),
        blocks.inverse_scale.view(np.float32),
        blocks.zero_float.view(np.float32),
        blocks.zero.view(np.float32) if how.profile.float_zeros else blocks.zero_point,
        found.xs.view(np.float32).reshape(shape),
        found.code.reshape(shape),
        found.y.view(np.float32).reshape(shape),
        error,
        cut,
        None if order is None else order.range.view(np.float32).reshape(-1),
        None if order is None else order.order.reshape(-1),
        now(),
    )


def quantize_shared(x: Any, kind: str, *, profile: str = "quark_torch") -> Shared:
    """Quantize `x` in blocks that share an exponent, as `mor_ref.quantize_shared` does."""
    of, by = shared_kind(kind), shared_profile(profile)
    argument = given(x, "x")
    with on_gpu_of(argument) as gpu:
        numbers = numbers_from(argument)
        found = in_shared.quantize_shared(gpu, numbers.bits, of, by)
        ready = now()
    return Shared(
        of.name,
        by.name,
        found.shared_exponent,
        found.tau,
        found.magnitude.reshape(numbers.shape),
        found.sign.reshape(numbers.shape),
        found.code.reshape(numbers.shape),
        found.y.view(np.float32).reshape(numbers.shape),
        ready,
    )


def quantize_levels(w: Any, kind: str, *, alpha: Any = None, arithmetic: str = "f32") -> Levels:
    """Quantize weights to levels, as `mor_ref.quantize_levels` does.

    `alpha` is a float32 array on the GPU, with a number for each row.
    """
    of, how = level_kind(kind), known_arithmetic(arithmetic)
    argument, others = given(w, "w"), _arrays_among(alpha=alpha)
    with on_gpu_of(argument, *others.values()) as gpu:
        numbers = numbers_from(argument)
        height = numbers.bits.array.shape[0]
        if alpha is None:
            first = in_levels.first_alphas(gpu, numbers.bits, of, how)
        else:
            first = _words(others["alpha"], "float32", height, "rows")
        found = in_levels.quantize_levels(gpu, numbers.bits, first, of, how)
        ready = now()

    def shaped(bits: Array) -> Array:
        return bits.view(np.float32).reshape(numbers.shape)

    return Levels(
        of.name,
        how,
        found.alpha.view(np.float32),
        shaped(found.ratio),
        shaped(found.clipped),
        shaped(found.level),
        shaped(found.y),
        shaped(found.alpha_term),
        found.inside.reshape(numbers.shape),
        found.code.reshape(numbers.shape),
        ready,
    )


def _arrays_among(**arguments: Any) -> dict[str, Given]:
    """Return those arguments that are arrays on a GPU."""
    return {
        name: given(one, name)
        for name, one in arguments.items()
        if one is not None and not isinstance(one, float | int)
    }


def _words(array: Given, dtype: str, count: int, of: str) -> Array:
    """Return an array with an entry for each block or row, as words."""
    if array.dtype != dtype or array.array.size != count:
        raise ValueError(
            f"{array.argument} has {array.array.size} numbers of {array.dtype}; give one of {dtype}"
            f" for each of the {count} {of}"
        )
    kind = np.uint32 if dtype == "float32" else np.int32
    return in_order(array.array, array.argument).view(kind).reshape(-1)


def _scales(gpu: Gpu, scale: Any, array: Given | None, cut: Partition) -> Array | None:
    count = math.prod(cut.grid)
    if array is not None:
        return _words(array, "float32", count, "blocks")
    if scale is None:
        return None
    with np.errstate(over="ignore"):
        number = np.float32(scale)
    check_scales(float(number), float(number))
    return gpu.upload(np.full(count, number).view(np.uint32))


def _is_float(zero_point: Any, array: Given | None) -> bool:
    return isinstance(zero_point, float) if array is None else array.dtype.startswith("float")


def _zeros(
    gpu: Gpu, zero_point: Any, array: Given | None, grid: IntegerGrid, cut: Partition
) -> Array | None:
    count = math.prod(cut.grid)
    if array is not None:
        dtype = "float32" if _is_float(zero_point, array) else "int32"
        return _words(array, dtype, count, "blocks")
    if isinstance(zero_point, float):
        with np.errstate(over="ignore"):
            zero = np.float32(zero_point)
        check_float_zeros(float(zero), float(zero))
        return gpu.upload(np.full(count, zero).view(np.uint32))
    if zero_point is None:
        return None
    number = whole_number("zero_point", zero_point, -(1 << 31), (1 << 31) - 1)
    check_zero_points(number, number, grid)
    return gpu.upload(np.full(count, number, np.int32))
