"""Quantization to scaled formats, and the sums of relative errors."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.scales import Scaling
from mor_ref.exact.arithmetic import bits_of, difference, product, quotient, total
from mor_ref.exact.encoding import encode
from mor_ref.exact.scales import Scale, amax, group_mantissa, scale_of_block
from mor_ref.exact.step import step

Rows = list[list[float]]

_BF16_IEEE = SpecialCases(overflow="ieee")
_ROUNDS_TO_BF16_INFINITY = 0x7F7F8000  # and every larger magnitude does


@dataclass(frozen=True)
class Element:
    """One number on its way: scaled, encoded, and what the code stands for."""

    xs: float
    code: int
    y: float


@dataclass(frozen=True)
class ErrorTerm:
    """The relative error of one number: d = |x - y|, r = d / |x| up to 1, and u = r * 2^23."""

    d: float
    r: float
    u: int


@dataclass(frozen=True)
class ErrorSum:
    """The errors of a unit, as integers, which any order of summation leaves the same."""

    sum: int = 0
    nonzero: int = 0
    nonfinite: int = 0

    def __add__(self, other: "ErrorSum") -> "ErrorSum":
        return ErrorSum(
            self.sum + other.sum,
            self.nonzero + other.nonzero,
            self.nonfinite + other.nonfinite,
        )


@dataclass(frozen=True)
class Quantized:
    """A quantized tensor. Blocks and groups are keyed by their row and column in the grid."""

    elements: list[list[Element]]
    amax: dict[tuple[int, int], float]
    scale: dict[tuple[int, int], Scale]
    mantissa: dict[tuple[int, int], int]
    error: dict[tuple[int, int], ErrorSum]


@step
def quantize_element(x: float, scale: float, fmt: Format) -> Element:
    """A number under the scale of its block."""
    xs = scaled(x, scale)
    code = encode(xs, fmt, "rne")
    return Element(xs, code, restored(fmt.value(code), scale))


@step
def scaled(x: float, scale: float) -> float:
    """QNT-001."""
    return product(x, scale)


@step
def restored(value: float, scale: float) -> float:
    """QNT-002."""
    return quotient(value, scale)


@step
def to_bf16(y: float) -> int:
    """The bfloat16 code of a number, as fake quantization stores it (QNT-003)."""
    return encode(y, formats["bf16"], "rne", _BF16_IEEE)


@step
def error_term(x: float, y: float) -> ErrorTerm:
    """The error of a finite x that is not zero (ERR-001)."""
    d = abs(difference(x, y))
    r = 1.0 if math.isnan(d) else min(1.0, quotient(d, abs(x)))
    return ErrorTerm(d, r, error_units(r))


@step
def error_units(r: float) -> int:
    """How many units of 2^-23 a relative error is, ties to even (ERR-001)."""
    return bits_of(total(1.0, r)) - bits_of(1.0)


@step
def error_sum(pairs: Iterable[tuple[float, float]]) -> ErrorSum:
    """The errors of a unit's pairs of x and y (ERR-002, ERR-003, ERR-004)."""
    found = ErrorSum()
    for x, y in pairs:
        counts = math.isfinite(x) and x != 0
        lost = not math.isfinite(x) or not abs(y) < _least_lost()
        found += ErrorSum(error_term(x, y).u if counts else 0, counts, lost)
    return found


def _least_lost() -> float:
    """The smallest magnitude that bfloat16 rounds to infinity."""
    return math.ldexp((_ROUNDS_TO_BF16_INFINITY & 0x7FFFFF) | 0x800000, 104)


@step
def in_rows(numbers: list[float], rows: int, columns: int) -> Rows:
    """The rows of a tensor whose numbers are given in row-major order."""
    return [numbers[i * columns : (i + 1) * columns] for i in range(rows)]


@step
def cells(
    rows: int, columns: int, sides: tuple[int, int]
) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """The places of the elements of each tile, row by row, from the top left (BLK-002)."""
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for i in range(rows):
        for j in range(columns):
            found.setdefault((i // sides[0], j // sides[1]), []).append((i, j))
    return found


def quantize(x: Rows, fmt: Format, scaling: Scaling, parts: Partition) -> Quantized:
    """A tensor, block by block (SCL, GAM, QNT and ERR)."""
    blocks = cells(parts.rows, parts.columns, parts.block)
    groups = cells(parts.rows, parts.columns, parts.group)
    amaxes = {block: amax(x[i][j] for i, j in places) for block, places in blocks.items()}
    mantissas = {
        group: group_mantissa(fmt.largest, amax(x[i][j] for i, j in places))
        for group, places in groups.items()
    }
    elements: list[list[Element]] = [
        [Element(0.0, 0, 0.0)] * parts.columns for _ in range(parts.rows)
    ]
    scales, errors = {}, {}
    for block, places in blocks.items():
        i, j = (place * side for place, side in zip(block, parts.block, strict=True))
        shared = mantissas[i // parts.group[0], j // parts.group[1]]
        scales[block] = scale_of_block(scaling, fmt.largest, amaxes[block], shared)
        for i, j in places:
            elements[i][j] = quantize_element(x[i][j], scales[block].value, fmt)
        errors[block] = error_sum((x[i][j], elements[i][j].y) for i, j in places)
    return Quantized(elements, amaxes, scales, mantissas, errors)
