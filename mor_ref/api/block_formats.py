"""Block formats: a tensor with the scales of its formulas, and its record."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.before_blocks import NOTHING_KEPT, Kept, stepped, undone
from mor_ref.api.border import public
from mor_ref.api.coded_blocks import CodedBlocks
from mor_ref.api.decoding import decode
from mor_ref.api.dequantization import (
    Dequantizable,
    OutcomeOfCodes,
    OutcomeOfValues,
    Record,
    stored_as,
)
from mor_ref.api.encoding import encode
from mor_ref.api.errors import ErrorSums, error_sums
from mor_ref.api.stochastic import words_given
from mor_ref.arrays import (
    Bits,
    Numbers,
    RandomWords,
    code_dtype,
    described,
    numbers_from,
    room_for,
)
from mor_ref.counts_in_words import counted
from mor_ref.definitions.before_blocks import Hadamard, in_words
from mor_ref.definitions.block_formats import BlockFormat, split_factor
from mor_ref.definitions.blocks import Partition, in_one_block
from mor_ref.definitions.formats import formats
from mor_ref.definitions.scales import NO_SCALES_GIVEN, GivenScales
from mor_ref.definitions.table_format import ElementFormat, TableFormat
from mor_ref.records import Values, made_later
from mor_ref.tracing import untraced

if TYPE_CHECKING:
    from mor_ref.engine.small_tensors import InBlocks
    from mor_ref.engine.strips import TileScales


@dataclass(frozen=True, eq=False, repr=False)
class BlockQuantized(Dequantizable):
    """A tensor in a block format.

    `codes` has the shape of x. `scales` has each scale by its name, with an entry for each of its
    parts, in rows and columns: its code, or the number itself if it is stored in binary32. `factor`
    (float32) multiplies the numbers of the codes of each block; if the format has no `decode`, it
    divides them. Codes and scales are of the numbers after the steps before the blocks (BLF-011),
    and `dequantize` goes back. If a step keeps columns, `kept` has their `columns`, counted from 0,
    and their `codes`.

    >>> import mor_ref, numpy as np
    >>> record = mor_ref.quantize(np.float32([[0.3, -1.1]]), "mxfp8")
    >>> y = mor_ref.decode(record.codes, record.fmt) * record.scale_numbers["s"]
    >>> record.scales["s"].tolist(), y.tolist() == record.dequantize().tolist()
    ([[119]], True)
    """

    scales: Mapping[str, NDArray[Any]]
    factor: NDArray[np.float32]
    block_format: BlockFormat
    kept: Kept = NOTHING_KEPT

    def _dequantized(
        self, dtype: "np.typing.DTypeLike", out: NDArray[Any] | None, threads: int | None
    ) -> NDArray[Any]:
        """Return the numbers of the codes with their scales, with the steps before undone."""
        before = self.block_format.before
        if not before:
            return super()._dequantized(dtype, out, threads)
        y = undone(super()._dequantized(np.float32, None, threads), before, self.kept, threads)
        return stored_as(y, dtype, out, threads)

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

    def in_blocks(self) -> CodedBlocks:
        """Return the codes, and the factor of each block (GEM-003).

        Instructions take the codes of the last scale, if `decode` is its number, or its product
        with a factor of the tensor or of rows. After Hadamard matrices, codes are of the product
        with these; a product of two such records is that of x.
        """
        from mor_ref.engine.dot_operands import numbers_of  # imports Numba

        fmt, before = self.fmt, self.block_format.before
        if not all(isinstance(step, Hadamard) for step in before):
            raise TypeError(
                f"block format {self.block_format.name!r} has {in_words(before)} before its "
                "blocks, so its codes lack the kept columns; give dequantize(), or use profile "
                "f32_fma or f32_pairwise, which take y"
            )
        if isinstance(fmt, TableFormat):
            raise TypeError(
                f"codes of the table {fmt.name!r} are no numbers that products take; give "
                "dequantize(), or use profile f32_fma or f32_pairwise, which take y"
            )
        last, above = self.block_format.scales[-1], split_factor(self.block_format)
        if above is None:
            one = np.float32(1)
            with np.errstate(all="ignore"):
                d = self.factor if self.block_format.decode is not None else one / self.factor
            return CodedBlocks(self.codes, fmt, self.tile, d.astype(np.float64))
        numbers = numbers_of(self.scales[last.name], last.fmt)
        coded = self.codes, fmt, self.tile, numbers, self.scales[last.name], last.fmt
        if not above.name:
            return CodedBlocks(*coded)
        g = self.scale_numbers[above.name].reshape(-1)
        with np.errstate(all="ignore"):
            return CodedBlocks(*coded, np.float32(1) / g if above.divides else g)

    @untraced
    def __repr__(self) -> str:
        rows, columns = self.tile
        blocks = f"{counted(self.factor.size, 'block')} of {rows}x{columns}"
        return self._described(f"{self.block_format.name}: {blocks}")


# What a record has first: its codes, errors, format, source and tile.
First = tuple[NDArray[Any], ErrorSums, ElementFormat, str, tuple[int, int]]


class RecordOf(NamedTuple, Generic[Record]):
    """A kind of records, and the values of its fields, which are made when one is asked for.

    What a mode of the processor could change until then is found `at_once`, from the tensor and its
    shape, and is given to `values`.
    """

    kind: type[Record]
    values: Callable[[First, "InBlocks", Any], Values]
    at_once: Callable[["InBlocks", tuple[int, ...]], Any] | None = None


@functools.cache
def _in_blocks() -> "Callable[..., InBlocks]":
    from mor_ref.engine.block_tensors import in_blocks  # imports Numba

    return in_blocks


def outcome_of(
    numbers: Numbers,
    formulas: BlockFormat,
    units: Partition,
    out: Bits | None,
    threads: int | None,
    record_of: "RecordOf[Record]",
    *,
    given: GivenScales = NO_SCALES_GIVEN,
    amaxes: NDArray[np.uint32] | None = None,
) -> OutcomeOfCodes[Record]:
    """Quantize a tensor, with error sums of the units; `out` takes y as bfloat16.

    Amaxes and scales may be given (BLF-008), and the amaxes of the blocks may be known. `record_of`
    makes the record.
    """
    tensor = _in_blocks()(numbers, formulas, units, out, threads, given, None, amaxes)
    make = functools.partial(_record, numbers, formulas, record_of, tensor)
    fmt, scales = formulas.fmt, tensor.scales
    outcome = tensor.codes, fmt, scales, tensor.sums, make, numbers.shape
    return tuple.__new__(OutcomeOfCodes, outcome)  # its own takes twice as long


def _record(
    numbers: Numbers,
    formulas: BlockFormat,
    record_of: "RecordOf[Record]",
    tensor: "InBlocks",
    codes: Bits,
) -> Record:
    """Return the record of a tensor, with the codes in its shape."""
    (kind, values_of, at_once), (_, dtype, shape) = record_of, numbers  # the bits are not kept
    found = None if at_once is None else at_once(tensor, shape)

    def values() -> Values:
        (rows, columns), source = tensor.scales.tile, described(shape, dtype)
        first = codes, error_sums(tensor.sums), formulas.fmt, source, (rows, columns)
        return values_of(first, tensor, found)

    return made_later(kind, {"codes": codes}, values)


def quantized_whole(
    numbers: Numbers,
    formulas: BlockFormat,
    record_of: "RecordOf[Record]",
    random_bits: object,
    n_random_bits: object,
    out: Bits | None,
    threads: int | None,
    given: GivenScales = NO_SCALES_GIVEN,
    cut: Partition | None = None,
) -> Record:
    """Return the record of a tensor, with random words if they are given; codes go to `out`.

    Its error sums are those of the blocks of a cut; without one, the tensor is a single block.
    """
    shape, dtype = numbers.shape, code_dtype(formulas.fmt)
    units = in_one_block(shape) if cut is None else cut
    words: RandomWords | None = None
    inputs: tuple[Bits, ...] = (numbers.bits,)
    if not random_bits is n_random_bits is None:
        words = words_given(random_bits, n_random_bits, shape, formulas.fmt)
        inputs += (words.words,)
    room, store = room_for(out, shape, dtype, inputs)
    tensor = _in_blocks()(numbers, formulas, units, None, threads, given, room, None, words)
    return _record(numbers, formulas, record_of, tensor, store(room))


def record_in_blocks(block_format: BlockFormat) -> "RecordOf[BlockQuantized]":
    """Return how the record of a tensor in a block format is made."""

    def values(first: First, tensor: "InBlocks", _: None) -> Values:
        stored, scales = tensor.stored, tensor.scales
        yield from first
        yield {
            scale.name: stored[scale.name].view(np.float32)
            if scale.fmt == formats["f32"]
            else stored[scale.name]
            for scale in block_format.scales
        }
        factor = scales.encode if block_format.decode is None else scales.decode
        yield np.asarray(factor).view(np.float32)
        yield block_format
        yield NOTHING_KEPT

    return RecordOf(BlockQuantized, values)


def quantized_after_steps(
    numbers: Numbers,
    block_format: BlockFormat,
    units: Partition,
    threads: int | None,
    given: GivenScales = NO_SCALES_GIVEN,
    random_bits: object = None,
    n_random_bits: object = None,
    out: Bits | None = None,
) -> OutcomeOfValues:
    """Quantize a tensor to a block format with steps before its blocks (BLF-011).

    Its error sums are those of x and y of the units. Codes go to `out`.
    """
    from mor_ref.engine.measuring import measure

    shape, before = numbers.shape, block_format.before
    after_steps = stepped(numbers, before, threads)
    z = numbers_from(after_steps.z.reshape(shape), "x")
    in_formulas: BlockQuantized = quantized_whole(
        z, block_format, record_in_blocks(block_format), random_bits, n_random_bits, out, threads,
        given,
    )  # fmt: skip
    coded = replace(in_formulas, source=numbers.described, kept=after_steps.kept)
    y = numbers_from(coded.dequantize(threads=threads), "y")
    sums = measure(numbers, y, units, threads)
    return OutcomeOfValues(replace(coded, error=error_sums(sums)), y, sums)


def block_quantized(
    numbers: Numbers,
    block_format: BlockFormat,
    units: Partition,
    out: Bits | None,
    threads: int | None,
) -> OutcomeOfCodes[BlockQuantized] | OutcomeOfValues:
    """Quantize a tensor, with error sums of the units; `out` takes y as bfloat16."""
    if block_format.before:
        outcome = quantized_after_steps(numbers, block_format, units, threads)
        if out is not None:
            y = outcome.y.bits.view(np.float32)
            out[:] = encode(y, "bf16", overflow="ieee", threads=threads)
        return outcome
    record_of = record_in_blocks(block_format)
    return outcome_of(numbers, block_format, units, out, threads, record_of)
