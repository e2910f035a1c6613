"""Dot products that differ: the order of sums in f32_pairwise."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from mor_ref.definitions.dot import DotProfile
from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.exact import dot_binary32, dot_terms
from mor_ref.exact.dot_binary32 import product, total
from mor_ref.exact.dot_terms import Chunk, Product

Reference = Callable[..., Any]
_DOMAIN = ("dot",)


def _row(part: list[Product]) -> list[float]:
    """Return the rounded products of a row."""
    return [product(one.a.value, one.b.value) for one in part]


def _pairs(reference: Reference, row: Sequence[float], c: float, profile: DotProfile) -> Chunk:
    """Return the sum of a row of numbers as a tree of neighbours, and c added to it."""
    leaves = [Product(dot_terms.Factor(x, 0), dot_terms.ONE) for x in row]
    found: Chunk = reference(leaves, c, profile)
    return found


@deviation(dot_binary32.f32_pairwise, rules=("DOT-014",), domain=_DOMAIN)
def dot_pairs_in_order(_: Reference, part: list[Product], c: float, profile: DotProfile) -> Chunk:
    """Rounded products are added from the left to the right, c last."""
    del profile
    first, *others = [*_row(part), c]
    return Chunk(None, None, functools.reduce(total, others, first))


@deviation(dot_binary32.f32_pairwise, rules=("DOT-014",), domain=_DOMAIN)
def dot_pairs_from_c_on(
    reference: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """C is added to the first product."""
    first, *others = _row(part) or [-0.0]
    return _pairs(reference, [total(first, c), *others], -0.0, profile)


@deviation(dot_binary32.f32_pairwise, rules=("DOT-014",), domain=_DOMAIN)
def dot_pairs_with_c_first(
    reference: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """C is the first number of the tree, and the first product the second one."""
    return _pairs(reference, [c, *_row(part)], -0.0, profile)


def _sum_of_halves(row: Sequence[float]) -> float:
    """Return the sum of the first half of a row and of the rest, which has one less if odd."""
    if len(row) == 1:
        return row[0]
    half = (len(row) + 1) // 2
    return total(_sum_of_halves(row[:half]), _sum_of_halves(row[half:]))


@deviation(dot_binary32.f32_pairwise, rules=("DOT-014",), domain=_DOMAIN)
def dot_pairs_of_halves(
    reference: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """The tree has the first half of the products on its left, and the rest on its right."""
    return _pairs(reference, [_sum_of_halves(_row(part))] if part else [], c, profile)


@deviation(dot_binary32.f32_pairwise, rules=("DOT-014",), domain=_DOMAIN)
def dot_pairs_of_a_half_and_the_rest(
    reference: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """The second half of a row is added to the first again and again; of an odd row, one stays."""
    row = _row(part)
    while len(row) > 1:
        half = (len(row) + 1) // 2
        sums = [total(x, y) for x, y in zip(row, row[half:], strict=False)]
        row = sums + row[len(sums) : half]
    return _pairs(reference, row, c, profile)


def _filled(row: list[float]) -> list[float]:
    """Return a row with zeros at its end, as long as the next power of two."""
    return row + [0.0] * ((1 << max(len(row) - 1, 0).bit_length()) - len(row))


@deviation(dot_binary32.f32_pairwise, rules=("DOT-014",), domain=_DOMAIN)
def dot_pairs_with_zeros(
    reference: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """Zeros fill the row to a power of two, so that a sum of -0 becomes +0."""
    return _pairs(reference, _filled(_row(part)), c, profile)


@deviation(dot_binary32.f32_pairwise, rules=("DOT-014",), domain=_DOMAIN)
def dot_pairs_of_a_warp(
    reference: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """Zeros fill the row to a power of two; its halves are added again and again, as in a warp."""
    row = _filled(_row(part))
    while len(row) > 1:
        half = len(row) // 2
        row = [total(x, y) for x, y in zip(row[:half], row[half:], strict=True)]
    return _pairs(reference, row, c, profile)


DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))
