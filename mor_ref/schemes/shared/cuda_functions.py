"""Shared exponents on a GPU: the public function and its record."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mor_ref.cuda.arrays import given, numbers_from, on_gpu_after, on_gpu_of
from mor_ref.cuda.launching import Array
from mor_ref.cuda.records import WithY
from mor_ref.cuda.streams import Moment, now
from mor_ref.definitions.blocks import rows_and_columns
from mor_ref.former_names import FormerAttribute, with_former_name
from mor_ref.schemes.shared import cuda as in_shared
from mor_ref.schemes.shared.definition import shared_kind, shared_profile


@dataclass(frozen=True, eq=False, repr=False)
class Shared(WithY):
    """A tensor in blocks that share an exponent, on a GPU; its fields are those of `Shared`."""

    representation: str
    profile: str
    shared_exponent: Array
    tau: Array
    magnitude: Array
    sign: Array
    codes: Array
    y: Array
    _ready: Moment

    kind = FormerAttribute("representation")

    @property
    def packed(self) -> Array:
        """The bytes of each row: its blocks, one after the other (SHX-007)."""
        with on_gpu_after(self._ready, self.codes) as gpu:
            shape = rows_and_columns(self.codes.shape)
            return in_shared.packed_blocks(
                gpu, self.codes.reshape(shape), self.tau, self.shared_exponent,
                shared_kind(self.representation),
            )  # fmt: skip


@with_former_name("kind", "representation")
def quantize_shared(x: Any, representation: str, *, profile: str = "quark_torch") -> Shared:
    """Quantize `x` in blocks that share an exponent, as `mor_ref.quantize_shared` does."""
    row, profile_rules = shared_kind(representation), shared_profile(profile)
    argument = given(x, "x")
    with on_gpu_of(argument) as gpu:
        numbers = numbers_from(argument)
        fields = in_shared.quantize_shared(gpu, numbers.bits, row, profile_rules)
        ready = now()
    return Shared(
        row.name,
        profile_rules.name,
        fields.shared_exponent,
        fields.tau,
        fields.magnitude.reshape(numbers.shape),
        fields.sign.reshape(numbers.shape),
        fields.code.reshape(numbers.shape),
        fields.y.view(np.float32).reshape(numbers.shape),
        ready,
    )
