"""The public functions of shared exponents, levels and selections on a GPU."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mor_ref.cuda import levels as in_levels
from mor_ref.cuda import packing, selection
from mor_ref.cuda import shared as in_shared
from mor_ref.cuda.arrays import GivenArray, given, numbers_from, on_gpu_after, on_gpu_of
from mor_ref.cuda.device import in_order
from mor_ref.cuda.launching import Array
from mor_ref.cuda.streams import Moment, now
from mor_ref.definitions.blocks import rows_and_columns
from mor_ref.definitions.levels import known_arithmetic, level_kind
from mor_ref.definitions.selection import OUTLIER, check_limit
from mor_ref.definitions.shared import shared_kind, shared_profile


class WithY:
    """A record that has y."""

    y: Array
    _ready: Moment

    def dequantize(self) -> Array:
        """Return y, as float32, on CuPy's current stream."""
        with on_gpu_after(self._ready, self.y):
            return self.y.copy()


@dataclass(frozen=True, eq=False)
class Shared(WithY):
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

    @property
    def packed(self) -> Array:
        """The bytes of each row: its blocks, one after the other (SHX-007)."""
        with on_gpu_after(self._ready, self.codes) as gpu:
            shape = rows_and_columns(self.codes.shape)
            return packing.blocks(
                gpu, self.codes.reshape(shape), self.tau, self.shared_exponent,
                shared_kind(self.kind),
            )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Levels(WithY):
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

    @property
    def packed(self) -> Array:
        """The bytes of each row of codes: of 4, 3 or 2 bits, or five to the base 3 (LVL-008)."""
        with on_gpu_after(self._ready, self.codes) as gpu:
            codes = self.codes.reshape(rows_and_columns(self.codes.shape))
            return packing.levels(gpu, codes, level_kind(self.kind))


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
    argument, others = given(w, "w"), arrays_among(alpha=alpha)
    with on_gpu_of(argument, *others.values()) as gpu:
        numbers = numbers_from(argument)
        height = numbers.bits.array.shape[0]
        if alpha is None:
            first = in_levels.first_alphas(gpu, numbers.bits, of, how)
        else:
            first = words_of(others["alpha"], "float32", height, "rows")
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


def select(x: Any, by: str = "column", limit: float = OUTLIER) -> Array:
    """Return which numbers of `x` keep more bits, as `mor_ref.select` does."""
    value, argument = check_limit(by, limit), given(x, "x")
    with on_gpu_of(argument) as gpu:
        numbers = numbers_from(argument)
        chosen = selection.by_rank if by == "rank" else selection.by_column
        return chosen(gpu, numbers.bits, value).view(np.bool_).reshape(numbers.shape)


def arrays_among(**arguments: Any) -> dict[str, GivenArray]:
    """Return those arguments that are arrays on a GPU."""
    return {
        name: given(one, name)
        for name, one in arguments.items()
        if one is not None and not isinstance(one, float | int)
    }


def words_of(array: GivenArray, dtype: str, count: int, of: str) -> Array:
    """Return an array with an entry for each block or row, as words."""
    if array.dtype != dtype or array.array.size != count:
        raise ValueError(
            f"{array.argument} has {array.array.size} numbers of {array.dtype}; give one of {dtype}"
            f" for each of the {count} {of}"
        )
    kind = np.uint32 if dtype == "float32" else np.int32
    return in_order(array.array, array.argument).view(kind).reshape(-1)
