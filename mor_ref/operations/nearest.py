"""Codes that are the nearest to a number: the numbers of a case, as the exact model has them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.definitions.scales import NOTHING_GIVEN, AmaxOrScale, given_of
from mor_ref.definitions.table_format import ElementFormat
from mor_ref.exact.block_formats import quantize, scaled_numbers
from mor_ref.operations.bits import tensor_of
from mor_ref.operations.call import Arrays, Call, Parameters


class Operand(NamedTuple):
    """The numbers that codes of a format were rounded from, one for each code.

    Without `has_negative_zero`, a negative number that becomes zero has the code of +0.
    """

    numbers: NDArray[np.floating[Any]]
    fmt: ElementFormat
    has_negative_zero: bool = True


@dataclass(frozen=True)
class Nearest:
    """The field `code` of an operation, where it is the nearest to a number.

    `operand` returns the numbers of a case, or None if the case rounds in another way. `restore`
    returns y of other codes with the scales of the case, if the operation has y.
    """

    operand: Callable[[Call], Operand | None]
    restore: Callable[[Parameters, Arrays], NDArray[np.uint32]] | None = None


def operand_in_blocks(
    call: Call, formulas: BlockFormat, given: AmaxOrScale = NOTHING_GIVEN
) -> Operand:
    """Return the numbers of a tensor under the scales of its blocks.

    `given` is of the outermost scale.
    """
    by_name = given_of(formulas.scales[0].name, given)
    blocks = quantize(call.flat(), call.shape, formulas, by_name)
    numbers = np.array(scaled_numbers(blocks, formulas), np.float32).reshape(call.shape)
    return Operand(numbers, formulas.fmt, formulas.has_negative_zero)


def operand_of_steps(call: Call) -> Operand:
    """Return the expected field xs, which all cases of steps have."""
    return Operand(tensor_of(call.arrays["xs"], "f32"), call.fmt)
