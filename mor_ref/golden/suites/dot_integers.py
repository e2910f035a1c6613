"""Dot products of int8 with the epilogue of SwitchBack: ends, scales at the edges, long rows."""

import itertools
from collections.abc import Iterator

import numpy as np

from mor_ref.golden.inputs.edges import SPECIALS
from mor_ref.golden.model.suite import Case, Size, suite
from mor_ref.operations.bits import f32_bits
from mor_ref.operations.call import Arrays
from mor_ref.operations.dot import random_integers
from mor_ref.operations.random_numbers import Draws

_ENDS = (0x00, 0x01, 0xFF, 0x55, 0x7F, 0x80, 0x81)
_ONE = f32_bits(1.0)
_SCALES = (*SPECIALS, _ONE, f32_bits(-3.1), f32_bits(0.3), f32_bits(2.0**-70), f32_bits(-(2.0**70)))
_SUMS = ((0x00, 0x00), (0x7F, 0x7F), (0x80, 0x7F))  # of two equal products
_DRAWN = (("few", 6, 96), ("some", 40, 96), ("long", 1200, 12))  # products and rows
_BESIDE = (-1, 0, 1, 2, 3, 4, 5, 6)  # of a power of two
_WRAPPING = (1 << 17) + 2  # products of -128 with itself whose sum leaves the range by two


def _rows(codes: list[tuple[int, int]], width: int, scales: list[tuple[int, int]]) -> Arrays:
    """Return rows of equal products with their scales."""
    a, b = (np.repeat(np.array(one, np.uint8)[:, np.newaxis], width, axis=1)
            for one in zip(*codes, strict=True))  # fmt: skip
    x, w = (np.array(one, np.uint32) for one in zip(*scales, strict=True))
    return {"a": a, "b": b, "scale_a": x, "scale_b": w}


def _ties(exponent: int) -> Arrays:
    """Return rows whose sums are next to 2^exponent and its opposite: some are ties."""
    squares, rest = divmod(1 << exponent, 127**2)
    rows = []
    for sign, beside in itertools.product((1, -1), _BESIDE):
        a = [127] * squares + [rest // 127, rest % 127 + beside]
        b = [127] * squares + [127, 1]
        rows.append((a, [sign * x for x in b]))
    codes = np.array(rows, np.int8).view(np.uint8)
    scales = np.full(len(rows), _ONE, np.uint32)
    return {"a": codes[:, 0], "b": codes[:, 1], "scale_a": scales, "scale_b": scales}


def _cases(size: Size) -> Iterator[Case]:
    pairs = list(itertools.product(_ENDS, _ENDS))
    yield Case("ends", {}, _rows(pairs, 1, [(_ONE, f32_bits(0.3))] * len(pairs)))
    scales = list(itertools.product(_SCALES, _SCALES))
    sums = [_SUMS[k % len(_SUMS)] for k in range(len(scales))]
    yield Case("scales", {}, _rows(sums, 2, scales))
    for name, width, count in _DRAWN:
        found = random_integers({}, Draws(0, count * size.factor, size.seed + width, width))
        codes = {one: found[one].astype(np.uint8) for one in "ab"}
        numbers = {one: found[one].astype(np.uint32) for one in ("scale_a", "scale_b")}
        yield Case(name, {}, {**codes, **numbers})
    for exponent in (24, 25):
        yield Case(f"beside_2_{exponent}", {}, _ties(exponent))
    yield Case("wrapping", {}, _rows([(0x80, 0x80)], _WRAPPING, [(_ONE, _ONE)]))


INTEGERS = suite(
    "dot_integers",
    "Dot products of int8, with the epilogue of SwitchBack",
    "dot_integers",
    ("DOT-019",),
    _cases,
)
