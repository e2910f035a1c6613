"""Quantization to scaled formats."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.scales import Scaling
from mor_ref.exact.arithmetic import product, quotient
from mor_ref.exact.blocks import Rows, cells
from mor_ref.exact.encoding import encode
from mor_ref.exact.errors import ErrorSum, error_sum
from mor_ref.exact.scales import Scale, amax, group_mantissa, scale_of_block
from mor_ref.exact.step import step

_BF16_IEEE = SpecialCases(overflow="ieee")


Given = float | Sequence[Sequence[float]] | None  # for all blocks, or for each in rows and columns


class Element(NamedTuple):
    """One number: scaled, its code, and the value of the code."""

    xs: float
    code: int
    y: float


@dataclass(frozen=True)
class RandomWords:
    """A random word of n bits for each element, row by row."""

    rows: list[list[int]]
    n: int

    def code(self, xs: float, fmt: Format, place: tuple[int, int]) -> int:
        """Return the code of a scaled number by stochastic rounding (QNT-005)."""
        i, j = place
        return encode(xs, fmt, "sr", random_word=self.rows[i][j], n_random_bits=self.n)


@dataclass(frozen=True)
class ScaledElements:
    """Elements of a tensor, with the scale of each block.

    Blocks and groups are keyed by their row and column in the grid. Without gam, a mantissa is 0.
    """

    elements: list[list[Element]]
    amax: dict[tuple[int, int], float]
    scale: dict[tuple[int, int], Scale]
    mantissa: dict[tuple[int, int], int]


@dataclass(frozen=True)
class MeasuredElements(ScaledElements):
    """Elements of a tensor, with the error sums of each block as well."""

    error: dict[tuple[int, int], ErrorSum]


@step
def quantize_element(x: float, scale: float, fmt: Format) -> Element:
    """Quantize a number with the scale of its block."""
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
    """Return the bfloat16 code of a number, as fake quantization stores it (QNT-003)."""
    return encode(y, formats["bf16"], "rne", _BF16_IEEE)


def element(
    x: float, place: tuple[int, int], scale: float, fmt: Format, words: RandomWords | None
) -> Element:
    """Return an element with the scale of its block, rounded at random if there are words."""
    rounded = quantize_element(x, scale, fmt)
    if words is None:
        return rounded
    code = words.code(rounded.xs, fmt, place)
    return Element(rounded.xs, code, restored(fmt.value(code), scale))


def quantize(
    x: Rows,
    fmt: Format,
    scaling: Scaling,
    parts: Partition,
    given_amax: Given = None,
    given_scale: Given = None,
    words: RandomWords | None = None,
) -> MeasuredElements:
    """Quantize a tensor, and measure it block by block (SCL, GAM, QNT and ERR)."""
    quantized = scaled_elements(x, fmt, scaling, parts, given_amax, given_scale, words)
    errors = {
        block: error_sum((x[i][j], quantized.elements[i][j].y) for i, j in places)
        for block, places in cells(parts.rows, parts.columns, parts.block).items()
    }
    return MeasuredElements(
        quantized.elements, quantized.amax, quantized.scale, quantized.mantissa, errors
    )


def _at(given: Given, place: tuple[int, int]) -> float | None:
    """Return the given number of a block or a group."""
    if given is None or isinstance(given, int | float):
        return given
    return given[place[0]][place[1]]


def scaled_elements(
    x: Rows,
    fmt: Format,
    scaling: Scaling,
    parts: Partition,
    given_amax: Given = None,
    given_scale: Given = None,
    words: RandomWords | None = None,
) -> ScaledElements:
    """Quantize a tensor, block by block (SCL, GAM and QNT).

    A given amax is that of each group with gam scaling, else that of each block (SCL-006). A given
    scale is that of each block (SCL-007). Rows of numbers have one for each. With random words,
    rounding is stochastic (QNT-005).
    """
    blocks = cells(parts.rows, parts.columns, parts.block)
    groups = cells(parts.rows, parts.columns, parts.group)
    amaxes = {block: amax(x[i][j] for i, j in places) for block, places in blocks.items()}
    mantissas = dict.fromkeys(groups, 0)
    if scaling == "gam":
        for group, places in groups.items():
            known = _at(given_amax, group)
            own = amax(x[i][j] for i, j in places) if known is None else known
            mantissas[group] = group_mantissa(fmt.largest, own)
    elements: list[list[Element]] = [
        [Element(0.0, 0, 0.0)] * parts.columns for _ in range(parts.rows)
    ]
    scales = {}
    for block, places in blocks.items():
        i, j = (place * side for place, side in zip(block, parts.block, strict=True))
        shared = mantissas[i // parts.group[0], j // parts.group[1]]
        known = None if scaling == "gam" else _at(given_amax, block)
        own, scale_known = amaxes[block] if known is None else known, _at(given_scale, block)
        scales[block] = (
            scale_of_block(scaling, fmt.largest, own, shared)
            if scale_known is None
            else Scale(scale_known, None)
        )
        scale = scales[block].value
        for i, j in places:
            elements[i][j] = element(x[i][j], (i, j), scale, fmt, words)
    return ScaledElements(elements, amaxes, scales, mantissas)
