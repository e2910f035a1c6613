"""Integers with zero points: from extremes to scales, and from numbers to integers and back."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.formats import formats
from mor_ref.definitions.integer_grids import IntegerGrid
from mor_ref.exact.arithmetic import (
    difference,
    nearest_in,
    product,
    quotient,
    rn32,
    rn32_of_binary64,
    total,
)
from mor_ref.exact.blocks import Rows, cells
from mor_ref.exact.errors import ErrorSum, error_sum
from mor_ref.exact.quantization import Element
from mor_ref.exact.step import step
from mor_ref.schemes.affine.definition import SMALLEST_NORMAL, AffineProfile

_TWO_TO_31, _TWO_TO_63 = 2.0**31, 2.0**63
_FORMATS = {name: formats[name] for name in ("bf16", "f16")}
A_127TH = rn32(Fraction(1, 127))
Place = tuple[int, int]


@dataclass(frozen=True)
class ScaleAndZero:
    """A scale and a zero point of a block, if they are given (AFF-006)."""

    scale: float | None = None
    zero_point: float | None = None


@dataclass(frozen=True)
class Choices:
    """The choices of all blocks: the profile, the grid, the symmetry, and the format of x."""

    profile: AffineProfile
    grid: IntegerGrid
    symmetric: bool
    source: str

    @property
    def arithmetic(self) -> str:
        """The format that each operation is rounded to (AFF-002)."""
        return self.source if self.profile.in_own_dtype else "f32"


@dataclass(frozen=True)
class AffineBlock:
    """The fields of a block."""

    minimum: float
    maximum: float
    scale: float
    inverse_scale: float
    zero_float: float
    zero_point: float  # an integer, but for float zeros


@dataclass(frozen=True)
class AffineTensor:
    """The elements of a tensor, and the fields and the error sums of each block."""

    grid: IntegerGrid
    elements: list[list[Element]]
    blocks: dict[Place, AffineBlock]
    error: dict[Place, ErrorSum]


def affine(
    x: Rows, choices: Choices, parts: Partition, given: dict[Place, ScaleAndZero] | None = None
) -> AffineTensor:
    """Quantize a tensor, block by block (AFF-001)."""
    tiles = cells(parts.rows, parts.columns, parts.block)
    ends = {block: extremes([x[i][j] for i, j in places]) for block, places in tiles.items()}
    used = Choices(
        choices.profile, grid_of(list(ends.values()), choices), choices.symmetric, choices.source
    )
    elements = [[Element(0.0, 0, 0.0)] * parts.columns for _ in range(parts.rows)]
    blocks, errors = {}, {}
    for block, places in tiles.items():
        fields = affine_block(*ends[block], used, (given or {}).get(block, ScaleAndZero()))
        blocks[block] = fields
        for i, j in places:
            elements[i][j] = affine_element(x[i][j], fields, used)
        errors[block] = error_sum((x[i][j], elements[i][j].y) for i, j in places)
    return AffineTensor(used.grid, elements, blocks, errors)


@step
def grid_of(ends: list[tuple[float, float]], choices: Choices) -> IntegerGrid:
    """Return the grid that is used (AFF-005)."""
    grid = choices.grid
    if not (choices.profile.sign_by_numbers and choices.symmetric):
        return grid
    has_negative = any(minimum < 0 for minimum, _ in ends)
    return IntegerGrid(f"{'' if has_negative else 'u'}int{grid.bits}", grid.bits, has_negative)


@step
def affine_block(
    minimum: float, maximum: float, choices: Choices, given: ScaleAndZero
) -> AffineBlock:
    """Return the fields of a block (AFF-003 to AFF-006)."""
    low, high = sides(minimum, maximum, choices.profile)
    delta = scale_before_limit(low, high, choices)
    scale = limited(delta, choices)
    if given.scale is not None:
        delta = scale = rounded(given.scale, choices.arithmetic)
    zero_float = zero_before_rounding(low, delta if choices.profile.early_zero else scale, choices)
    zero = zero_point(zero_float, choices) if given.zero_point is None else given.zero_point
    return AffineBlock(minimum, maximum, scale, inverse(scale, choices), zero_float, zero)


@step
def rounded(x: float, arithmetic: str) -> float:
    """Return a binary32 number, rounded to the format of an arithmetic (AFF-002)."""
    return x if arithmetic == "f32" else nearest_in(x, _FORMATS[arithmetic])


def operate(
    operation: Callable[[float, float], float], a: float, b: float, arithmetic: str
) -> float:
    """Return the result of one operation (AFF-002)."""
    return rounded(operation(a, b), arithmetic)


@step
def extremes(numbers: Sequence[float]) -> tuple[float, float]:
    """Return the minimum and the maximum, NaN if one is; a zero is +0 (AFF-003)."""
    if any(map(math.isnan, numbers)):
        return math.nan, math.nan
    return min(numbers, default=0.0) + 0.0, max(numbers, default=0.0) + 0.0


@step
def sides(minimum: float, maximum: float, profile: AffineProfile) -> tuple[float, float]:
    """Return how far a block reaches below zero and above (AFF-003)."""
    if math.isnan(minimum):
        return math.nan, math.nan
    return max(0.0, -minimum), max(rn32_of_binary64(profile.smallest_high), maximum)


@step
def scale_before_limit(low: float, high: float, choices: Choices) -> float:
    """Return the scale of a block before its limit (AFF-004)."""
    profile, grid, arithmetic = choices.profile, choices.grid, choices.arithmetic
    if choices.symmetric:
        width, steps = max(low, high), symmetric_steps(profile, grid)
    else:
        width, steps = operate(total, high, low, arithmetic), float(grid.highest - grid.lowest)
    if math.isnan(low):
        width = math.nan
    if width == 0 and profile.zero_scale != "limit":
        return 1.0 if profile.zero_scale == "one" else operate(quotient, 1.0, steps, arithmetic)
    return width if profile.stores_amax else operate(quotient, width, steps, arithmetic)


@step
def symmetric_steps(profile: AffineProfile, grid: IntegerGrid) -> float:
    """Return the divisor of amax (AFF-004)."""
    return float(grid.highest) if profile.divisor == "highest" else (grid.highest - grid.lowest) / 2


@step
def limited(scale: float, choices: Choices) -> float:
    """Return the scale, or the smallest one of the profile (AFF-004)."""
    smallest = choices.profile.smallest
    least = SMALLEST_NORMAL[choices.arithmetic] if smallest is None else rn32_of_binary64(smallest)
    return scale if math.isnan(scale) else max(scale, least)


@step
def zero_before_rounding(low: float, scale: float, choices: Choices) -> float:
    """Return the steps from the minimum to zero (AFF-005); 0 if the grid is symmetric."""
    return 0.0 if choices.symmetric else operate(quotient, low, scale, choices.arithmetic)


@step
def zero_point(zero_float: float, choices: Choices) -> int:
    """Return the code of zero (AFF-005)."""
    grid, profile = choices.grid, choices.profile
    if choices.symmetric:
        is_even = grid.signed or profile.sign_by_numbers
        middle = (1 << grid.bits - 1) - (grid.bits in profile.low_middle)
        return 0 if is_even else middle
    if math.isnan(zero_float):
        return grid.highest
    steps = rint(zero_float)
    code = operate(total, float(grid.lowest), steps, choices.arithmetic)
    return int(min(max(code, grid.lowest), grid.highest))


@step
def inverse(scale: float, choices: Choices) -> float:
    """Return the factor of numbers (AFF-007)."""
    reciprocal = operate(quotient, 1.0, scale, choices.arithmetic)
    factor = choices.profile.inverse_factor
    return product(float(factor), reciprocal) if factor > 1 else reciprocal


@step
def affine_element(x: float, block: AffineBlock, choices: Choices) -> Element:
    """Quantize a number with the fields of its block (AFF-007 to AFF-009)."""
    xs = scaled(x, block, choices)
    code = integer(xs, block.zero_point, choices)
    return Element(xs, code, restored(code, block, choices))


@step
def scaled(x: float, block: AffineBlock, choices: Choices) -> float:
    """Return xs, the number that is rounded to an integer (AFF-007)."""
    profile, arithmetic = choices.profile, choices.arithmetic
    if profile.application == "fuse":
        return fused(x, block.inverse_scale, float(block.zero_point))
    if profile.application == "divide":
        xs = operate(quotient, x, block.scale, arithmetic)
    else:
        xs = operate(product, x, block.inverse_scale, arithmetic)
    if profile.adds_first:
        return operate(total, xs, float(block.zero_point), arithmetic)
    return operate(product, float(profile.factor), xs, arithmetic) if profile.factor > 1 else xs


@step
def fused(a: float, b: float, c: float) -> float:
    """Return RN32(a * b + c)."""
    if not (math.isfinite(a) and math.isfinite(b)) or a == 0 or b == 0:
        return total(product(a, b), c)
    return rn32(Fraction(a) * Fraction(b) + Fraction(c))


@step
def rint(x: float) -> float:
    """Return the nearest integer, ties to even; infinities and NaN stay (AFF-005, AFF-008)."""
    return float(round(x)) if math.isfinite(x) else x


@step
def integer(xs: float, zero: float, choices: Choices) -> int:
    """Return the code of xs (AFF-008)."""
    profile, grid = choices.profile, choices.grid
    whole = rint(xs)
    if profile.conversion == "cast":
        return cast(whole, grid)
    if profile.conversion == "int32":
        held = int(whole) if -_TWO_TO_31 <= whole < _TWO_TO_31 else -(1 << 31)
        return clamped(float((held + int(zero) + (1 << 31)) % (1 << 32) - (1 << 31)), grid)
    if not profile.zero_in_xs and not math.isnan(whole):
        zero_value = rounded(float(zero), choices.arithmetic)
        whole = operate(total, whole, zero_value, choices.arithmetic)
    if math.isnan(whole):  # the sum is one if the zero point overflows in binary16
        codes = {"lowest": grid.lowest, "highest": grid.highest, "zero": 0}
        return codes[profile.nan_code]
    if profile.conversion == "int64" and whole >= _TWO_TO_63:
        return grid.lowest
    return clamped(whole, grid)


@step
def clamped(whole: float, grid: IntegerGrid) -> int:
    """Return an integer within the grid."""
    return int(min(max(whole, grid.lowest), grid.highest))


@step
def cast(whole: float, grid: IntegerGrid) -> int:
    """Return the lowest bits of a number as int32, 0 if it does not fit int32 (AFF-008)."""
    if not -_TWO_TO_31 <= whole < _TWO_TO_31:
        return 0
    return (int(whole) - grid.lowest) % (1 << grid.bits) + grid.lowest


@step
def restored(code: int, block: AffineBlock, choices: Choices) -> float:
    """Return y, the number that a code stands for, in the format of x (AFF-009)."""
    arithmetic = choices.arithmetic
    if choices.profile.stores_amax:
        return rounded(product(product(block.scale, float(code)), A_127TH), choices.source)
    if choices.profile.float_zeros:  # AFF-012: in binary64
        wide = (code - block.zero_point) * block.scale
        return rounded(rn32_of_binary64(wide), choices.source)
    whole, zero = rounded(float(code), arithmetic), rounded(float(block.zero_point), arithmetic)
    steps = rounded(difference(whole, zero), arithmetic)
    return rounded(rounded(product(steps, block.scale), arithmetic), choices.source)
