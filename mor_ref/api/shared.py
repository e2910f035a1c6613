"""Shared exponents: the public function and its record."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.border import with_hints
from mor_ref.api.packing import bit_by_bit
from mor_ref.api.tracing import untraced
from mor_ref.arrays import Numbers, copied_to, numbers_from
from mor_ref.definitions.blocks import rows_and_columns
from mor_ref.definitions.shared import (
    BLOCK,
    PAIR,
    SharedKind,
    SharedProfile,
    shared_kind,
    shared_profile,
)
from mor_ref.records import NumbersRecord

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False, repr=False)
class Shared(NumbersRecord):
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

    kind: str
    profile: str
    shared_exponent: NDArray[np.uint8]
    tau: NDArray[np.uint8]
    magnitude: NDArray[np.uint8]
    sign: NDArray[np.uint8]
    codes: NDArray[np.uint8]
    y: NDArray[np.float32]

    @untraced
    def dequantize(self, *, out: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
        """Return the numbers of the codes, as float32; NaN and infinities as in y.

        They go to `out`, if that is given.
        """
        return copied_to(out, self.y)

    @property
    def packed(self) -> NDArray[np.uint8]:
        """The bytes of each row: its blocks, one after the other (SHX-007)."""
        kind = shared_kind(self.kind)
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
        return (
            f"<{shape} as {self.kind}, {self.profile}: {self.shared_exponent.size} blocks of "
            f"{BLOCK}>"
        )


def _in_blocks(entries: NDArray[np.uint8], blocks: int, n: int) -> NDArray[np.uint8]:
    """Return rows as blocks of n entries; zeros fill the last block."""
    rows, columns = entries.shape
    return np.pad(entries, ((0, 0), (0, blocks * n - columns))).reshape(rows, blocks, n)


@with_hints
@untraced
def quantize_shared(
    x: "ArrayLike", kind: str, *, profile: str = "quark_torch", threads: int | None = None
) -> Shared:
    """Quantize `x` to blocks of 16 numbers along its rows that share an exponent.

    `kind` is mx9, mx6 or mx4 (shared microexponents: a pair can have an exponent one lower), bfp16,
    or bfp16_carry. `profile` is "quark_torch" or "quark_onnx".

    >>> import mor_ref, numpy as np
    >>> shared = mor_ref.quantize_shared(np.array([1.0, 0.3, 0.3, -0.1], np.float32), "mx4")
    >>> shared
    <4 as mx4, quark_torch: 1 blocks of 16>
    >>> shared.shared_exponent.tolist(), shared.tau.tolist(), shared.magnitude.tolist()
    ([[127]], [[0, 1]], [2, 1, 1, 0])
    >>> shared.dequantize().tolist()
    [1.0, 0.5, 0.25, -0.0]
    """
    row, profile_row = shared_kind(kind), shared_profile(profile)
    return shared(numbers_from(x, "x"), row, profile_row, threads)


def shared(
    numbers: Numbers, kind: SharedKind, profile: SharedProfile, threads: int | None
) -> Shared:
    """Quantize a tensor."""
    from mor_ref.engine.shared import quantize_shared as quantized  # imports Numba

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
