"""Block formats: a tensor with the scales of its formulas, and its record."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.border import public
from mor_ref.api.decoding import decode
from mor_ref.api.dequantization import Dequantizable, OutcomeOfCodes, Record
from mor_ref.api.errors import ErrorSums, error_sums
from mor_ref.api.stochastic import at_random, given_words, inputs_of
from mor_ref.api.tracing import untraced
from mor_ref.arrays import Bits, Numbers, code_dtype, room_for
from mor_ref.counts_in_words import counted
from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.definitions.blocks import Partition, partition
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.scales import NO_SCALES_GIVEN, GivenScales

if TYPE_CHECKING:
    from mor_ref.engine.block_formats import FormatScales
    from mor_ref.engine.strips import TileScales


@dataclass(frozen=True, eq=False, repr=False)
class BlockQuantized(Dequantizable):
    """A tensor in a block format.

    `codes` has the shape of x. `scales` has each scale by its name, with an entry for each of its
    parts, in rows and columns: its code, or the number itself if it is stored in binary32. `factor`
    (float32) multiplies the numbers of the codes of each block; if the format has no `decode`, it
    divides them.

    >>> import mor_ref, numpy as np
    >>> record = mor_ref.quantize(np.float32([[0.3, -1.1]]), "mxfp8")
    >>> y = mor_ref.decode(record.codes, record.fmt) * record.scale_numbers["s"]
    >>> record.scales["s"].tolist(), y.tolist() == record.dequantize().tolist()
    ([[119]], True)
    """

    scales: Mapping[str, NDArray[Any]]
    factor: NDArray[np.float32]
    block_format: BlockFormat

    @property
    @public
    def scale_numbers(self) -> dict[str, NDArray[np.float32]]:
        """The numbers of the scales (float32) by name."""
        return {
            scale.name: self.scales[scale.name]
            if scale.fmt == formats["f32"]
            else decode(self.scales[scale.name], scale.fmt)
            for scale in self.block_format.scales
        }

    @property
    def _tile_scales(self) -> "TileScales":
        """The factor of each block."""
        return self._as_tile_scales(self.factor, divides=self.block_format.decode is None)

    @untraced
    def __repr__(self) -> str:
        rows, columns = self.tile
        blocks = f"{counted(self.factor.size, 'block')} of {rows}x{columns}"
        return self._described(f"{self.block_format.name}: {blocks}")


# What a record has first: its codes, errors, format, source and tile. And how it is made of that.
First = tuple[NDArray[Any], ErrorSums, Format, str, tuple[int, int]]
RecordOf = Callable[[First, "FormatScales"], Record]


def outcome_of(
    numbers: Numbers,
    formulas: BlockFormat,
    units: Partition,
    out: Bits | None,
    threads: int | None,
    record_of: "RecordOf[Record]",
    *,
    given: GivenScales = NO_SCALES_GIVEN,
    room: Bits | None = None,
) -> OutcomeOfCodes[Record]:
    """Quantize a tensor, with error sums of the units; `out` takes y as bfloat16, `room` codes.

    Amaxes and scales may be given (BLF-008). `record_of` makes the record.
    """
    from mor_ref.engine.block_tensors import in_blocks  # imports Numba

    fmt = formulas.fmt
    scales, codes, sums, _ = in_blocks(numbers, formulas, units, out, threads, given, room)

    def record(shaped: Bits) -> Record:
        sides = scales.blocks.tile
        tile = sides.rows, sides.columns
        first = shaped, error_sums(sums), fmt, numbers.described, tile
        return record_of(first, scales)

    return OutcomeOfCodes(codes, fmt, scales.blocks, sums, record, numbers.shape)


def quantized_whole(
    numbers: Numbers,
    formulas: BlockFormat,
    record_of: "RecordOf[Record]",
    random_bits: object,
    n_random_bits: object,
    out: Bits | None,
    threads: int | None,
    given: GivenScales = NO_SCALES_GIVEN,
) -> Record:
    """Return the record of a tensor, with random words if they are given; codes go to `out`."""
    units = partition(numbers.shape, "tensor")
    words = given_words(random_bits, n_random_bits, numbers.shape)
    dtype, drops = code_dtype(formulas.fmt), formulas.drops_sign_of_zero
    room, store = room_for(out, numbers.shape, dtype, inputs_of(numbers, words))
    outcome = outcome_of(numbers, formulas, units, None, threads, record_of, given=given, room=room)
    return at_random(outcome, numbers, words, units, threads, store, drops_sign_of_zero=drops)


def record_in_blocks(block_format: BlockFormat) -> "RecordOf[BlockQuantized]":
    """Return how the record of a tensor in a block format is made."""

    def record(first: First, scales: "FormatScales") -> BlockQuantized:
        blocks = scales.blocks
        factor = blocks.encode if block_format.decode is None else blocks.decode
        by_name = {
            scale.name: scales.codes[scale.name].view(np.float32)
            if scale.fmt == formats["f32"]
            else scales.codes[scale.name]
            for scale in block_format.scales
        }
        return BlockQuantized(*first, by_name, np.asarray(factor).view(np.float32), block_format)

    return record


def block_quantized(
    numbers: Numbers,
    block_format: BlockFormat,
    units: Partition,
    out: Bits | None,
    threads: int | None,
) -> OutcomeOfCodes[BlockQuantized]:
    """Quantize a tensor, with error sums of the units; `out` takes y as bfloat16."""
    record_of = record_in_blocks(block_format)
    return outcome_of(numbers, block_format, units, out, threads, record_of)
