"""Shared exponents: the public function and its record."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.border import public_in_every_mode
from mor_ref.api.dequantization import WithY
from mor_ref.api.packing import bit_by_bit
from mor_ref.arrays import Numbers, numbers_from
from mor_ref.counts_in_words import counted
from mor_ref.definitions.blocks import rows_and_columns
from mor_ref.former_names import FormerAttribute, with_former_name
from mor_ref.schemes.shared.definition import (
    BLOCK,
    PAIR,
    SharedKind,
    SharedProfile,
    shared_kind,
    shared_profile,
)
from mor_ref.tracing import untraced

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False, repr=False)
class Shared(WithY):
    """A tensor in blocks of 16 numbers that share an exponent.

    `shared_exponent` has an exponent for each block of a row, and `tau` a shift of 0 or 1 for each
    pair. `sign`, `magnitude`, `codes` and `y` have the shape of x.

    The power of two of `shared_exponent` multiplies the magnitudes: a larger exponent means larger
    numbers.

    >>> import mor_ref, numpy as np
    >>> small, large = (mor_ref.quantize_shared(np.float32([x, 1]), "mx9") for x in (1, 4))
    >>> (large.shared_exponent - small.shared_exponent).tolist(), np.asarray(large).tolist()
    ([[2]], [4.0, 1.0])
    """

    representation: str
    profile: str
    shared_exponent: NDArray[np.uint8]
    tau: NDArray[np.uint8]
    magnitude: NDArray[np.uint8]
    sign: NDArray[np.uint8]
    codes: NDArray[np.uint8]
    y: NDArray[np.float32]

    kind = FormerAttribute("representation")

    @property
    @untraced
    def packed(self) -> NDArray[np.uint8]:
        """The bytes of each row: its blocks, one after the other (SHX-007)."""
        kind = shared_kind(self.representation)
        rows, columns = rows_and_columns(self.codes.shape)
        blocks = -(-columns // BLOCK)
        parts = [self.shared_exponent.reshape(rows, blocks, 1)]
        if kind.shifts:
            parts.append(bit_by_bit(_in_blocks(self.tau, blocks, BLOCK // PAIR), 1))
        codes = self.codes.reshape(rows, columns)
        parts.append(bit_by_bit(_in_blocks(codes, blocks, BLOCK), kind.code_bits))
        return np.concatenate(parts, axis=2).reshape(rows, blocks * kind.block_bytes)

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.codes.shape)) or "scalar"
        blocks = f"{counted(self.shared_exponent.size, 'block')} of {BLOCK}"
        return f"<{shape} as {self.representation}, {self.profile}: {blocks}>"


def _in_blocks(entries: NDArray[np.uint8], blocks: int, n: int) -> NDArray[np.uint8]:
    """Return rows as blocks of n entries; zeros fill the last block."""
    rows, columns = entries.shape
    return np.pad(entries, ((0, 0), (0, blocks * n - columns))).reshape(rows, blocks, n)


@with_former_name("kind", "representation")
@public_in_every_mode
def quantize_shared(
    x: "ArrayLike", representation: str, *, profile: str = "quark_torch", threads: int | None = None
) -> Shared:
    """Quantize `x` to blocks of 16 numbers along its rows that share an exponent.

    `representation` is mx9, mx6 or mx4 (shared microexponents: a pair can have an exponent one
    lower), bfp16, or bfp16_carry. `profile` is "quark_torch" or "quark_onnx".

    >>> import mor_ref, numpy as np
    >>> shared = mor_ref.quantize_shared(np.array([1.0, 0.3, 0.3, -0.1], np.float32), "mx4")
    >>> shared
    <4 as mx4, quark_torch: 1 block of 16>
    >>> shared.shared_exponent.tolist(), shared.tau.tolist(), shared.magnitude.tolist()
    ([[127]], [[0, 1]], [2, 1, 1, 0])
    >>> shared.dequantize().tolist()
    [1.0, 0.5, 0.25, -0.0]
    """
    row, profile_row = shared_kind(representation), shared_profile(profile)
    return shared(numbers_from(x, "x"), row, profile_row, threads)


def shared(
    numbers: Numbers, kind: SharedKind, profile: SharedProfile, threads: int | None
) -> Shared:
    """Quantize a tensor."""
    from mor_ref.schemes.shared.engine import quantize_shared as quantized  # imports Numba

    rows, columns = rows_and_columns(numbers.shape)
    fields = quantized(numbers, (rows, columns), kind, profile, threads)
    shape = numbers.shape
    return Shared(
        kind.name,
        profile.name,
        fields.exponent.reshape(rows, -(-columns // BLOCK)),
        fields.tau.reshape(rows, -(-columns // PAIR)),
        fields.magnitude.reshape(shape),
        fields.sign.reshape(shape),
        fields.code.reshape(shape),
        fields.y.view(np.float32).reshape(shape),
    )
