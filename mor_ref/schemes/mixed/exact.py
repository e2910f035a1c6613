"""Mixtures of formats: squared errors as integers, and the candidate that has the least."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.scales import Scaling
from mor_ref.exact.arithmetic import units_next_to
from mor_ref.exact.blocks import Rows, cells
from mor_ref.exact.encoding import floor_log2
from mor_ref.exact.errors import absolute_error
from mor_ref.exact.quantization import Element
from mor_ref.exact.scales import amax
from mor_ref.exact.step import step
from mor_ref.schemes.mixed.definition import FRACTION_BITS, LARGEST_ERROR

Place = tuple[int, int]
_ABOVE_ALL = 128  # of an amax that only a deviation has


class Quantizer(Protocol):
    """A representation, as the exact model quantizes with it (MFQ-001)."""

    def exact(self, x: Rows, scaling: Scaling, parts: Partition) -> list[list[Element]]:
        """Return the elements of a tensor."""


@dataclass(frozen=True)
class MixedUnit:
    """A unit: its amax, the squared error of each candidate, and the candidate that it takes."""

    amax: float
    squared_error: list[int]
    choice: int


@dataclass(frozen=True)
class MixedTensor:
    """The elements of a tensor with each candidate, the units, and the elements chosen."""

    tried: list[list[list[Element]]]
    units: dict[Place, MixedUnit]
    elements: list[list[Element]]


def mixed(x: Rows, candidates: Sequence[Quantizer], parts: Partition) -> MixedTensor:
    """Quantize a tensor, unit by unit (MFQ-001, MFQ-006)."""
    tried = [candidate_elements(x, candidate, parts) for candidate in candidates]
    units = {}
    elements = [list(row) for row in tried[0]]
    for unit, places in cells(parts.rows, parts.columns, parts.block).items():
        numbers = [x[i][j] for i, j in places]
        ys = [[elements_tried[i][j].y for i, j in places] for elements_tried in tried]
        units[unit] = mixed_unit(numbers, ys)
        for i, j in places:
            elements[i][j] = tried[units[unit].choice][i][j]
    return MixedTensor(tried, units, elements)


@step
def candidate_elements(x: Rows, candidate: Quantizer, parts: Partition) -> list[list[Element]]:
    """Quantize a tensor with a candidate (MFQ-001)."""
    return candidate.exact(x, "fp32", parts)


def mixed_unit(x: Sequence[float], ys: Sequence[Sequence[float]]) -> MixedUnit:
    """Return the squared errors of a unit, and its choice, given y of each candidate."""
    largest = amax(x)
    errors = [squared_error(zip(x, y, strict=True), largest) for y in ys]
    return MixedUnit(largest, errors, least(errors))


@step
def error_in_units(x: float, y: float, largest: float) -> int:
    """Return the error of a number in units of its unit's binade (MFQ-002)."""
    if not math.isfinite(x) or largest == 0:
        return 0
    d = absolute_error(x, y)
    if not math.isfinite(d):
        return LARGEST_ERROR
    return min(units_next_to(d, binade(largest) - FRACTION_BITS), LARGEST_ERROR)


@step
def binade(largest: float) -> int:
    """Return the exponent of amax, which may be subnormal (MFQ-002)."""
    return floor_log2(largest) if math.isfinite(largest) else _ABOVE_ALL


@step
def squared_error(pairs: Iterable[tuple[float, float]], largest: float) -> int:
    """Return the squared error of pairs of x and y (MFQ-003)."""
    return sum(squared(error_in_units(x, y, largest)) for x, y in pairs)


@step
def squared(u: int) -> int:
    """Return what an error adds (MFQ-003)."""
    return u * u


@step
def least(errors: list[int]) -> int:
    """Return the first candidate of the least squared error (MFQ-004)."""
    return errors.index(min(errors))


@step
def layer_errors(tensors: list[list[int]]) -> list[int]:
    """Return the squared error of each candidate, summed over the tensors of a layer (MFQ-005)."""
    return [sum(errors) for errors in zip(*tensors, strict=True)]
