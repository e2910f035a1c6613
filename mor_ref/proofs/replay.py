"""Tensors that have given amaxes, on which the exact model is run with a mistake and without."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.definitions.blocks import partition
from mor_ref.deviations.deviation import applied
from mor_ref.exact import block_formats as exact
from mor_ref.mistakes.mistake import Mistake

Array = np.ndarray[Any, Any]


def differs_for(record: BlockFormat, mistake: Mistake, numbers: Mapping[str, int]) -> bool:
    """Return whether the exact model has other bits with a mistake, for these numbers."""
    tensor = tensor_of(record, numbers)
    if tensor is None:
        return False
    with np.errstate(invalid="ignore"):  # of a signalling NaN
        x, shape = tensor.ravel().astype(float).tolist(), tensor.shape
    right = exact.quantize(x, shape, record)
    with applied(mistake.deviation):
        wrong = exact.quantize(x, shape, record)
    return _bits(right) != _bits(wrong)


def _bits(blocks: exact.Blocks) -> tuple[Any, ...]:
    numbers = [scale.numbers[name] for name, scale in blocks.scales.items()]
    columns = [np.array(column, np.float32).tobytes() for column in (*numbers, blocks.y)]
    return list(blocks.codes), columns


def tensor_of(record: BlockFormat, numbers: Mapping[str, int]) -> Array | None:
    """Return a tensor whose first block has a number and the amaxes; None if there is no room."""
    sides = [scale.over for scale in record.scales if isinstance(scale.over, tuple)]
    shape = (
        1 + max((height for height, _ in sides), default=1),
        1 + max((width for _, width in sides), default=1),
    )
    tensor = np.zeros(shape, np.float32)
    values = {name: np.uint32(bits).view(np.float32) for name, bits in numbers.items()}
    tensor[0, 0] = values["x"]
    taken = {(0, 0)}
    inside = set[tuple[int, int]]()
    for scale in reversed(record.scales):
        amax = values[f"amax_{scale.name}"]
        height, width = partition(shape, scale.over).block
        part = [(i, j) for i in range(min(height, shape[0])) for j in range(min(width, shape[1]))]
        room = [place for place in part if place not in taken and place not in inside]
        if not np.abs(tensor[:height, :width]).max(initial=0) >= amax:
            if not room:
                return None
            tensor[room[0]] = amax
            taken.add(room[0])
        inside |= set(part)
    return tensor
