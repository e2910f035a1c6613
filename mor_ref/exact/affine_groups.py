"""Groups of dimensions, in the order of their ranges (a part of the chapter on integers)."""

import math
from dataclasses import dataclass

from mor_ref.definitions.blocks import partition
from mor_ref.exact.affine import AffineTensor, Choices, affine, extremes
from mor_ref.exact.arithmetic import difference
from mor_ref.exact.blocks import Rows
from mor_ref.exact.quantization import Element
from mor_ref.exact.step import step


@dataclass(frozen=True)
class AffineGroups:
    """The ranges of dimensions, their order, and the dimensions in this order, quantized."""

    ranges: list[float]
    order: list[int]
    tensor: AffineTensor

    @property
    def elements(self) -> list[list[Element]]:
        """The elements in the order of x."""
        place = {column: j for j, column in enumerate(self.order)}
        return [[row[place[j]] for j in range(len(row))] for row in self.tensor.elements]


def affine_groups(x: Rows, how: Choices, groups: int) -> AffineGroups:
    """Quantize columns in so many groups, in the order of their ranges (AFF-010)."""
    found = ranges([list(column) for column in zip(*x, strict=True)])
    order = by_range(found)
    parts = partition((len(x), len(order)), (len(x), len(order) // groups))
    return AffineGroups(found, order, affine([[row[j] for j in order] for row in x], how, parts))


@step
def ranges(columns: list[list[float]]) -> list[float]:
    """Return the range of each dimension (AFF-010)."""
    found = []
    for numbers in columns:
        low, high = extremes(numbers)
        found.append(difference(high, low))
    return found


@step
def by_range(found: list[float]) -> list[int]:
    """Return the dimensions in the order of their ranges; ties by index, NaN last (AFF-010)."""
    keys = [(math.isnan(r), 0.0 if math.isnan(r) else r, i) for i, r in enumerate(found)]
    return [i for _, _, i in sorted(keys)]
