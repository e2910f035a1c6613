"""Levels on a GPU: the public function and its record."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mor_ref.cuda.arrays import arrays_among, given, numbers_from, on_gpu_after, on_gpu_of, words_of
from mor_ref.cuda.launching import Array
from mor_ref.cuda.records import WithY
from mor_ref.cuda.streams import Moment, now
from mor_ref.definitions.blocks import rows_and_columns
from mor_ref.former_names import FormerAttribute, with_former_name
from mor_ref.schemes.levels import cuda as in_levels
from mor_ref.schemes.levels.definition import known_arithmetic, level_kind


@dataclass(frozen=True, eq=False, repr=False)
class Levels(WithY):
    """Weights as levels on a GPU; its fields are named as in `mor_ref.Levels`."""

    representation: str
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

    kind = FormerAttribute("representation")

    @property
    def packed(self) -> Array:
        """The bytes of each row of codes: of 4, 3 or 2 bits, or five to the base 3 (LVL-008)."""
        with on_gpu_after(self._ready, self.codes) as gpu:
            codes = self.codes.reshape(rows_and_columns(self.codes.shape))
            return in_levels.packed_rows(gpu, codes, level_kind(self.representation))


@with_former_name("kind", "representation")
def quantize_levels(
    w: Any, representation: str, *, alpha: Any = None, arithmetic: str = "f32"
) -> Levels:
    """Quantize weights to levels, as `mor_ref.quantize_levels` does.

    `alpha` is a float32 array on the GPU, with a number for each row.
    """
    row, checked = level_kind(representation), known_arithmetic(arithmetic)
    argument, arrays = given(w, "w"), arrays_among(alpha=alpha)
    with on_gpu_of(argument, *arrays.values()) as gpu:
        numbers = numbers_from(argument)
        height = numbers.bits.array.shape[0]
        if alpha is None:
            first = in_levels.first_alphas(gpu, numbers.bits, row, checked)
        else:
            first = words_of(arrays["alpha"], "float32", height, "rows")
        fields = in_levels.quantize_levels(gpu, numbers.bits, first, row, checked)
        ready = now()

    def shaped(bits: Array) -> Array:
        return bits.view(np.float32).reshape(numbers.shape)

    return Levels(
        row.name,
        checked,
        fields.alpha.view(np.float32),
        shaped(fields.ratio),
        shaped(fields.clipped),
        shaped(fields.level),
        shaped(fields.y),
        shaped(fields.alpha_term),
        fields.inside.reshape(numbers.shape),
        fields.code.reshape(numbers.shape),
        ready,
    )
