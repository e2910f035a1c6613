"""Integers with zero points in groups of dimensions, in the order of their ranges (AFF-010)."""

import math
from dataclasses import dataclass

from mor_ref.definitions.blocks import partition
from mor_ref.exact.arithmetic import difference
from mor_ref.exact.blocks import Rows
from mor_ref.exact.quantization import Element
from mor_ref.exact.step import step
from mor_ref.schemes.affine.exact import AffineTensor, Choices, affine, extremes


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


def affine_groups(x: Rows, choices: Choices, groups: int) -> AffineGroups:
    """Sort columns by their ranges, and quantize them in equal groups (AFF-010)."""
    column_ranges = ranges([list(column) for column in zip(*x, strict=True)])
    order = by_range(column_ranges)
    parts = partition((len(x), len(order)), (len(x), len(order) // groups))
    return AffineGroups(
        column_ranges, order, affine([[row[j] for j in order] for row in x], choices, parts)
    )


@step
def ranges(columns: list[list[float]]) -> list[float]:
    """Return the range of each dimension (AFF-010)."""
    widths = []
    for numbers in columns:
        low, high = extremes(numbers)
        widths.append(difference(high, low))
    return widths


@step
def by_range(widths: list[float]) -> list[int]:
    """Return the dimensions in the order of their ranges; ties by index, NaN last (AFF-010)."""
    keys = [(math.isnan(r), 0.0 if math.isnan(r) else r, i) for i, r in enumerate(widths)]
    return [i for _, _, i in sorted(keys)]
