"""Whole tensors in block formats: their scales, codes and error sums."""

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Bits, Numbers, RandomWords
from mor_ref.definitions.block_formats import BlockFormat, check_functions, element_rule
from mor_ref.definitions.blocks import Partition, partition
from mor_ref.definitions.scales import NO_SCALES_GIVEN, GivenScales
from mor_ref.engine.block_formats import scales_from
from mor_ref.engine.quantization import quantize
from mor_ref.engine.scales import amax_of_blocks
from mor_ref.engine.small_tensors import InBlocks, in_steps, small_tensor
from mor_ref.processor_modes import check_processor


def in_blocks(
    numbers: Numbers,
    record: BlockFormat,
    units: Partition,
    out: Bits | None,
    threads: int | None,
    given: GivenScales = NO_SCALES_GIVEN,
    room: Bits | None = None,
    amaxes: NDArray[np.uint32] | None = None,
    words: RandomWords | None = None,
) -> InBlocks:
    """Quantize a tensor, with error sums of the units; `out` takes y as bfloat16, `room` codes.

    The amaxes of the blocks may be known. Amaxes and numbers of scales may be given (BLF-008). With
    random words, codes are rounded at random (QNT-005), and there is no `out`.
    """
    if record.has_functions:
        check_functions(record)
    if threads is None and not given:
        small = small_tensor(record, units)
        if small is not None:
            check_processor()  # as kernels do that are not called directly
            return in_steps(numbers, small, out, room, amaxes, words)
    cut = partition((units.rows, units.columns), record.block)
    if amaxes is None:
        amaxes = amax_of_blocks(numbers, cut, threads, record.counted)
    scales = scales_from(amaxes, cut, record, threads, given, numbers)
    codes, sums = quantize(
        numbers,
        element_rule(record),
        scales.blocks,
        units,
        out,
        threads,
        room=room,
        words=words,
    )
    return InBlocks(*scales, codes, sums, amaxes)
