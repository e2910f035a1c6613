"""Amaxes next to which the formulas of a block format turn: a code of a scale changes, or a branch.

Between two amaxes of a grid that differ so, the turn is searched in halves, down to neighbours.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.block_formats import BlockFormat, percentiles_of
from mor_ref.definitions.formats import formats
from mor_ref.definitions.formulas import Apply, Formula, Number, parsed
from mor_ref.exact.arithmetic import FLT_MAX
from mor_ref.exact.block_formats import evaluated, stored
from mor_ref.exact.columns import Column
from mor_ref.golden.inputs.edges import Bits
from mor_ref.operations.bits import f32_array, f32_bits, numbers_of

LARGEST = f32_bits(FLT_MAX)
_WIDEST = 16  # bits of a format whose codes turn: those of binary32 do everywhere
_COMPARED = {"min": ">", "max": "<"}
_ONE, _ZERO = Number(Fraction(1)), Number(Fraction(0))

Amaxes = Mapping[str, Bits]  # of each scale by its name, for some blocks
Turns = NDArray[np.uint32]  # pairs of neighbours, one in a row


def numbers_of_scales(block_format: BlockFormat, formula: str, amaxes: Amaxes) -> dict[str, Column]:
    """Return what formulas name, for blocks of which each scale has an amax.

    `formula` is that of a try. Codes of scales have the names of the scales with a dot in front.
    Percentiles are the amax: so many numbers of a block are equal to it.
    """
    numbers: dict[str, Column] = {}
    count = len(amaxes[block_format.scales[0].name])
    for scale in block_format.scales:
        amax = numbers_of(amaxes[scale.name], "f32")
        numbers |= {"amax": amax, f"amax_{scale.name}": amax}
        numbers |= {percentile.name: amax for percentile in percentiles_of(block_format, scale)}
        t = evaluated(scale.number, numbers, count)
        if scale is block_format.scales[-1]:
            numbers["t"] = t
            t = evaluated(formula, numbers, count)
        codes, numbers[scale.name] = stored(t, scale.fmt, scale.rounding)
        if codes and scale.fmt.bits <= _WIDEST:
            numbers[f".{scale.name}"] = codes
    for name in ("decode", "encode"):
        own = getattr(block_format, name)
        if own is not None:
            numbers[name] = evaluated(own, numbers, count)
    return numbers


def turns(
    block_format: BlockFormat,
    amaxes: Callable[[Bits], Amaxes],
    highest: int,
    most: int,
    steps: int = 1 << 12,
) -> Turns:
    """Return neighbours between which a code of a scale, or a branch of a formula, is another.

    `amaxes` returns those of all scales for amaxes of blocks, of which `highest` is the highest. At
    most so many are returned: those of branches first, and others from all magnitudes. One is
    searched in each of so many steps; 2^12 are 16 in each binade.
    """
    grid = np.unique(np.linspace(0, highest, steps).astype(np.uint32))
    found = []
    for seen in (_branches, _codes):
        signatures = (
            partial(_signature, block_format, formula, seen, amaxes)
            for formula in block_format.tries
        )
        pairs = [_neighbours(signature, grid, most) for signature in signatures]
        found.append(np.unique(np.concatenate(pairs), axis=0))
    branches, codes = found
    first = spread(branches, most // 2)
    return np.concatenate([first, spread(codes, most - len(first))])


def spread(entries: NDArray[Any], most: int) -> NDArray[Any]:
    """Return at most so many entries, from the first to the last."""
    if len(entries) <= most:
        return entries
    chosen: NDArray[Any] = entries[np.linspace(0, len(entries) - 1, most).astype(int)]
    return chosen


def _neighbours(signature: Callable[[Bits], Bits], grid: Bits, most: int) -> Turns:
    """Return neighbours between which a signature changes, at most one pair for each step."""
    seen = signature(grid)
    at = spread(np.flatnonzero((seen[1:] != seen[:-1]).any(axis=1)), most)
    low, high, of_low = grid[at], grid[at + 1], seen[at]
    while (high - low > 1).any():
        middle = low + (high - low) // np.uint32(2)
        is_low = (signature(middle) == of_low).all(axis=1)
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
        high = np.maximum(high, low + 1)
    return np.stack([low, high], axis=1).astype(np.uint32)


_Seen = Callable[[BlockFormat, str, Mapping[str, Column]], Iterable[Column]]


def _signature(
    block_format: BlockFormat,
    formula: str,
    seen: _Seen,
    amaxes: Callable[[Bits], Amaxes],
    bits: Bits,
) -> Bits:
    """Return what is seen at each amax of a block, as a row of bits."""
    numbers = numbers_of_scales(block_format, formula, amaxes(bits))
    columns = [f32_array(column) for column in seen(block_format, formula, numbers)]
    return np.stack(columns or [np.zeros(len(numbers["amax"]), np.uint32)], axis=1)


def _codes(block_format: BlockFormat, _: str, numbers: Mapping[str, Column]) -> Iterator[Column]:
    for scale in block_format.scales:
        if f".{scale.name}" in numbers:
            yield numbers[f".{scale.name}"]


def _branches(
    block_format: BlockFormat, formula: str, numbers: Mapping[str, Column]
) -> Iterator[Column]:
    """Yield what decides in each formula: conditions, powers of two and roundings to formats.

    A formula of an outer scale has its own amax, which the others call by its name.
    """
    for scale in block_format.scales:
        own = {**numbers, "amax": numbers[f"amax_{scale.name}"]}
        yield from _decisions(parsed(scale.number), own)
    for text in (formula, block_format.decode, block_format.encode):
        if text is not None:
            yield from _decisions(parsed(text), numbers)


def _decisions(formula: Formula, numbers: Mapping[str, Column]) -> Iterator[Column]:
    if not isinstance(formula, Apply):
        return
    for argument in formula.arguments:
        yield from _decisions(argument, numbers)
    operator, arguments, count = formula.operator, formula.arguments, len(numbers["amax"])
    is_narrow = operator in formats and formats[operator].bits <= _WIDEST
    if operator in _COMPARED:
        yield evaluated(Apply(_COMPARED[operator], arguments), numbers, count)
    elif operator in ("or", "if"):
        yield evaluated(Apply("if", (arguments[0], _ONE, _ZERO)), numbers, count)
    elif operator in ("<", ">", "pow2") or is_narrow:
        yield evaluated(formula, numbers, count)
