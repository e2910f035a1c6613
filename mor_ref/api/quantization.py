"""Quantization with scales: the public function and its record."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.border import public
from mor_ref.api.coded_blocks import CodedBlocks
from mor_ref.api.dequantization import Dequantizable, OutcomeOfCodes
from mor_ref.api.errors import error_sums
from mor_ref.api.stochastic import at_random, given_words, inputs_of
from mor_ref.api.tracing import untraced
from mor_ref.argument_checks import known_name
from mor_ref.arrays import Bits, Numbers, numbers_from, room_for
from mor_ref.definitions.blocks import Cut, Partition, partition
from mor_ref.definitions.format import Format
from mor_ref.definitions.scales import (
    NOTHING_GIVEN,
    SCALINGS,
    AmaxOrScale,
    Scaling,
    ScalingBlocks,
    check_group,
    given_for,
    scaled_format,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False, repr=False)
class Quantized(Dequantizable):
    """A tensor quantized to a scaled format.

    `codes` has the shape of x. `amax`, `scale` (float32) and `error` have an entry for each block.
    With gam and e8m0 scaling, so has `scale_exponent` (uint8: exponent + 127). With gam scaling,
    `scale_mantissa` (uint32) has an entry for each group.

    `scale` multiplies x, so the numbers of the codes are divided by it; `decode_scale` is its
    reciprocal, rounded to float32: exact for powers of two alone.

    >>> import mor_ref, numpy as np
    >>> quantized = mor_ref.quantize(np.float32([[0.3, -1.1]]), "e4m3", scaling="fp32")
    >>> y = mor_ref.decode(quantized.codes, "e4m3") / quantized.scale
    >>> y.tolist() == quantized.dequantize().tolist() == np.asarray(quantized).tolist()
    True
    """

    amax: NDArray[np.float32]
    scale: NDArray[np.float32]
    scale_exponent: NDArray[np.uint8] | None
    scale_mantissa: NDArray[np.uint32] | None
    scaling: Scaling
    partition: Partition

    @property
    @public
    def decode_scale(self) -> NDArray[np.float32]:
        """RN32(1 / scale) of each block, as kernels of matrix products take it (GEM-003).

        `dequantize` divides by `scale`, which rounds once; a product with this rounds twice.
        """
        from mor_ref.engine.matmul import decode_scales  # imports Numba

        return decode_scales(self.scale).reshape(self.scale.shape)

    @public
    def in_blocks(self) -> CodedBlocks:
        """Return the codes, and the factor of each block (GEM-003)."""
        scale = self.decode_scale.astype(np.float64).reshape(self.partition.grid)
        return CodedBlocks(self.codes, self.fmt, self.partition.block, scale)

    @untraced
    def __repr__(self) -> str:
        count, (rows, columns) = math.prod(self.partition.grid), self.partition.block
        blocks = f"{count} blocks of {rows}x{columns}"
        return self._described(f"{self.fmt.name}: {self.scaling} scales of {blocks}")


@public
def quantize(
    x: "ArrayLike",
    fmt: str | Format,
    *,
    scaling: Scaling = "gam",
    block: Cut = "tensor",
    group: Cut = "tensor",
    amax: float | None = None,
    scale: float | None = None,
    random_bits: "ArrayLike | None" = None,
    n_random_bits: int | None = None,
    out: Bits | None = None,
    threads: int | None = None,
) -> Quantized:
    """Quantize `x` to a format of 8 bits or fewer, with a scale for each block.

    `scaling` is "gam" (an exponent for each block, one mantissa for each group), "e8m0" (powers of
    two) or "fp32". `block` and `group` are "tensor", "row", "column" or a pair (rows, columns);
    leading axes are folded into rows. Groups need gam, and hold whole blocks. `amax` replaces the
    amax of each group with gam scaling, else of each block. `scale` replaces the scale of each
    block; it needs "fp32". With `random_bits` and `n_random_bits`, as `encode` has them,
    the codes are rounded with "sr". The codes go to `out`, if it is given.

    >>> import mor_ref, numpy as np
    >>> x = np.linspace(-3, 3, 64, dtype=np.float32).reshape(4, 16)
    >>> quantized = mor_ref.quantize(x, "e4m3", block=(2, 8))
    >>> quantized
    <4x16 float32 as e4m3: gam scales of 4 blocks of 2x8, mean relative error 2.17 %, 0 non-finite>
    >>> quantized.scale_exponent.tolist(), quantized.scale_mantissa.tolist()
    ([[134, 134], [134, 134]], [[1398101]])
    """
    target = scaled_format(fmt)
    known_name("scaling", scaling, SCALINGS)
    numbers = numbers_from(x, "x")
    cut = partition(numbers.shape, block, group)
    check_group(cut, group, scaling)
    given = given_for(scaling, amax, scale)
    from mor_ref.engine.scales import amax_of_blocks  # imports Numba

    blocks = ScalingBlocks(cut, scaling, amax_of_blocks(numbers, cut, threads))
    words = given_words(random_bits, n_random_bits, numbers.shape)
    codes, store = room_for(out, numbers.shape, np.dtype(np.uint8), inputs_of(numbers, words))
    outcome = quantized(numbers, target, blocks, None, threads, given, codes)
    return at_random(outcome, numbers, words, cut, threads, store)


def quantized(
    numbers: Numbers,
    fmt: Format,
    blocks: ScalingBlocks,
    out: Bits | None,
    threads: int | None,
    given: AmaxOrScale = NOTHING_GIVEN,
    room: Bits | None = None,
) -> OutcomeOfCodes[Quantized]:
    """Quantize a tensor with the amax of each block; `out` takes y as bfloat16, `room` codes."""
    from mor_ref.engine.blocks import Sides
    from mor_ref.engine.quantization import quantize as quantize_numbers
    from mor_ref.engine.scales import BlockScales, scales_for
    from mor_ref.engine.strips import TileScales

    cut, scaling, amax, _ = blocks
    if given.scale is None:
        block_scales = scales_for(scaling, amax, fmt, cut, given.amax)
    else:  # SCL-007 and TRN-006
        block_scales = BlockScales(
            np.full_like(amax, np.float32(given.scale).view(np.uint32)), None, None
        )
    scales = TileScales(Sides(*cut.block), block_scales.scale, None)
    codes, sums = quantize_numbers(numbers, fmt, scales, cut, out, threads, room=room)

    def record() -> Quantized:
        return Quantized(
            codes.reshape(numbers.shape),
            error_sums(sums),
            fmt,
            numbers.described,
            scales,
            amax.view(np.float32),
            block_scales.scale.view(np.float32),
            block_scales.exponent,
            block_scales.mantissa,
            scaling,
            cut,
        )

    return OutcomeOfCodes(codes, fmt, scales, sums, record)
