"""Quantization with scales: the public function and its record."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.block_formats import First, RecordOf, outcome_of
from mor_ref.api.border import public
from mor_ref.api.coded_blocks import CodedBlocks
from mor_ref.api.dequantization import Dequantizable, OutcomeOfCodes
from mor_ref.arrays import Bits, Numbers
from mor_ref.counts_in_words import counted
from mor_ref.definitions.block_formulas import scaled_formulas
from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import as_format
from mor_ref.definitions.scales import (
    NOTHING_GIVEN,
    AmaxOrScale,
    Scaling,
    ScalingBlocks,
    given_of,
)
from mor_ref.records import Values
from mor_ref.tracing import untraced

if TYPE_CHECKING:
    from mor_ref.definitions.block_formats import BlockFormat
    from mor_ref.engine.small_tensors import InBlocks
    from mor_ref.engine.strips import TileScales

_MANTISSA = np.uint32(0x007FFFFF)


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

    codes: NDArray[np.uint8]
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

    @property
    def _tile_scales(self) -> "TileScales":
        """The scale of each block, by which numbers of codes are divided (QNT-002)."""
        return self._as_tile_scales(self.scale, divides=True)

    @public
    def in_blocks(self) -> CodedBlocks:
        """Return the codes, and the factor of each block (GEM-003)."""
        scale = self.decode_scale.astype(np.float64).reshape(self.partition.grid)
        return CodedBlocks(self.codes, as_format(self.fmt), self.partition.block, scale)

    @untraced
    def __repr__(self) -> str:
        count, (rows, columns) = math.prod(self.partition.grid), self.partition.block
        blocks = f"{counted(count, 'block')} of {rows}x{columns}"
        return self._described(f"{self.fmt.name}: {self.scaling} scales of {blocks}")


def quantized(
    numbers: Numbers,
    fmt: Format,
    blocks: ScalingBlocks,
    out: Bits | None,
    threads: int | None,
    given: AmaxOrScale = NOTHING_GIVEN,
) -> OutcomeOfCodes[Quantized]:
    """Quantize a tensor with the amax of each block; `out` takes y as bfloat16."""
    cut, scaling, known, _ = blocks
    formulas, record_of = in_blocks_of(fmt, scaling, cut)
    by_name = given_of(formulas.scales[0].name, given)
    return outcome_of(numbers, formulas, cut, out, threads, record_of, given=by_name, amaxes=known)


@lru_cache(maxsize=1024)
def in_blocks_of(
    fmt: Format, scaling: Scaling, cut: Partition
) -> "tuple[BlockFormat, RecordOf[Quantized]]":
    """Return a format with scales of a kind as a block format, and how a record is made."""
    return scaled_formulas(fmt, scaling, cut.block, cut.group), _record_by(scaling, cut)


def _record_by(scaling: Scaling, cut: Partition) -> "RecordOf[Quantized]":
    def values(first: First, tensor: "InBlocks", _: None) -> Values:
        stored, encode = tensor.stored, tensor.scales.encode
        yield from first
        yield tensor.amaxes.view(np.float32)
        yield np.asarray(encode).view(np.float32)  # these formats multiply by it
        yield None if scaling == "fp32" else stored["s"]
        yield stored["m"] & _MANTISSA if scaling == "gam" else None
        yield scaling
        yield cut

    return RecordOf(Quantized, values)
