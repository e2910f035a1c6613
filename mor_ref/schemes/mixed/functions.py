"""Mixtures of formats: the public functions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mor_ref.api.border import public
from mor_ref.arrays import numbers_from
from mor_ref.definitions.blocks import CutLike, partition
from mor_ref.definitions.format import Format
from mor_ref.representations import Representation
from mor_ref.schemes.mixed.functions_units import Mixed, measured, mixed, record_of
from mor_ref.schemes.mixed.representation import candidates_from

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@public
def mix_formats(
    x: "ArrayLike",
    candidates: Sequence[str | Format | Representation] = ("int8", "e4m3"),
    *,
    block: CutLike = "tensor",
    threads: int | None = None,
) -> Mixed:
    """Choose for each block of `x` the candidate of the least squared error.

    `candidates` are names of formats, integers such as "int8" or "int4", other representations by
    name, or records such as `MxBlocks("e4m3")`. Of equal errors, the first candidate is taken.
    `block` is "tensor", "row", "column" or a pair (rows, columns). It is also the scaling block of
    formats, with fp32 scales.

    >>> import mor_ref, numpy as np
    >>> mixed = mor_ref.mix_formats(np.linspace(-3, 3, 64, dtype=np.float32).reshape(4, 16))
    >>> mixed
    <4x16 float32: 1 unit of 4x16: int8 100 %, e4m3 0 %>
    >>> {name: int(errors[0, 0]) for name, errors in mixed.squared_error.items()}
    {'int8': 805071662, 'e4m3': 33401818722}
    """
    numbers = numbers_from(x, "x")
    representations = candidates_from(candidates)
    return mixed(numbers, representations, partition(numbers.shape, block), threads)


@public
def mix_layer(
    tensors: "Sequence[ArrayLike]",
    candidates: Sequence[str | Format | Representation] = ("int8", "e4m3"),
    *,
    threads: int | None = None,
) -> tuple[Mixed, ...]:
    """Choose one candidate for all tensors of a layer, such as its weights and activations.

    Each tensor is a unit. The candidate with the least sum of squared errors is chosen, the first
    of several. Each record has the squared errors of its own tensor.

    >>> import mor_ref, numpy as np
    >>> even, steep = np.linspace(-3, 3, 64), np.exp(np.linspace(-9, 9, 64))
    >>> both = mor_ref.mix_layer((even.astype(np.float32), steep.astype(np.float32)))
    >>> [tensor.choice.item() for tensor in both], mor_ref.mix_formats(both[0].y).choice.item()
    ([0, 0], 0)
    """
    from mor_ref.schemes.mixed.engine import least  # imports Numba

    representations = candidates_from(candidates)
    layer = [numbers_from(x, f"tensors[{index}]") for index, x in enumerate(tensors)]
    if not layer:
        raise ValueError("tensors is empty; give the tensors of a layer")
    sums = [
        measured(tensor, representations, partition(tensor.shape, "tensor"), threads)
        for tensor in layer
    ]
    total = [
        sum(int(tensor.errors[k].sum()) for tensor in sums) for k in range(len(representations))
    ]
    choice = total.index(min(total))
    return tuple(
        record_of(
            numbers, representations, tensor, np.full_like(least(tensor.errors), choice), threads
        )
        for numbers, tensor in zip(layer, sums, strict=True)
    )
