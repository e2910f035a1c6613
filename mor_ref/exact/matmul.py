"""Entries of products of matrices: blocks along K with scales, and blocks that are upcast."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from mor_ref.definitions.dot import DOT_PROFILES, DotProfile
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.exact.arithmetic import product, quotient
from mor_ref.exact.dot import Scales, dot
from mor_ref.exact.dot_binary32 import exact_chunk, fused
from mor_ref.exact.dot_terms import Factor, Product, number
from mor_ref.exact.step import step

_BF16 = formats["bf16"]


@dataclass(frozen=True)
class Block:
    """Elements of a row of A or a column of B that share a scale.

    The factor of their numbers is `scale` times `overall`, which all blocks of the row share. If it
    `divides`, it is the reciprocal of the scale instead. `upcast` has their y as codes of bfloat16
    (GEM-004).
    """

    codes: Sequence[int]
    fmt: Format
    scale: float = 1.0
    overall: float = 1.0
    upcast: Sequence[int] = ()
    divides: bool = False


Blocks = Sequence[Block]


def entry(a: Blocks, b: Blocks, profile: DotProfile) -> float:
    """Return the product of a row of A and a column of B (GEM-001)."""
    if profile.family == "exact":
        return exact_entry(a, b, profile)
    if profile.needs_scales:
        return entry_with_scales(a, b, profile)
    c = first_c()
    for a_piece, b_piece in pieces(a, b):
        c = add_piece(a_piece, b_piece, c, profile)
    return c


@step
def first_c() -> float:
    """Return +0, to which the first piece is added: a sum of -0 becomes +0 (GEM-003)."""
    return 0.0


@step
def pieces(a: Blocks, b: Blocks) -> list[tuple[Block, Block]]:
    """Return the pieces of K in order: each ends where a block of A or of B does (GEM-003)."""
    ends = [list(accumulate(len(block.codes) for block in row)) for row in (a, b)]
    places = sorted({0, *ends[0], *ends[1]})
    return list(zip(*(_cut(row, places) for row in (a, b)), strict=True))


def _cut(blocks: Blocks, places: Sequence[int]) -> list[Block]:
    """Return the parts of blocks between places of K; each has the scale of its block."""
    parts, start = [], 0
    for block in blocks:
        end = start + len(block.codes)
        for first, last in pairwise(k for k in places if start <= k <= end):
            part = slice(first - start, last - start)
            parts.append(replace(block, codes=block.codes[part], upcast=block.upcast[part]))
        start = end
    return parts


@step
def decode_scale(block: Block) -> float:
    """Return the factor of the scale of a block alone (GEM-003)."""
    return quotient(1.0, block.scale) if block.divides else block.scale


@step
def factor(block: Block) -> float:
    """Return d of a block: in NVFP4, the product of both scales in binary32 (GEM-003)."""
    return product(decode_scale(block), block.overall)


@step
def add_piece(a: Block, b: Block, c: float, profile: DotProfile) -> float:
    """Add the dot product of a piece, times both factors, to c (GEM-003, GEM-004)."""
    if needs_upcast(a, b, profile):
        a, b = upcast(a), upcast(b)
        profile = wide(profile)
    partial = dot(a.codes, b.codes, 0.0, profile, (a.fmt, b.fmt))
    return scaled_sum(factor(a), factor(b), partial, c)


@step
def scaled_sum(d_a: float, d_b: float, partial: float, c: float) -> float:
    """Return RN32(RN32(d_a * d_b) * partial + c) (GEM-003)."""
    return fused(product(d_a, d_b), partial, c)


@step
def needs_upcast(a: Block, b: Block, profile: DotProfile) -> bool:
    """Return whether a profile lacks a format of a piece (GEM-004)."""
    return bool(profile.formats) and not {a.fmt.name, b.fmt.name} <= set(profile.formats)


@step
def wide(profile: DotProfile) -> DotProfile:
    """Return the profile of the same architecture that multiplies bfloat16 (GEM-004)."""
    return DOT_PROFILES[profile.wide]


@step
def upcast(block: Block) -> Block:
    """Return y of a block, rounded to bfloat16 (GEM-004)."""
    return Block(block.upcast, _BF16)


@step
def exact_entry(a: Blocks, b: Blocks, profile: DotProfile) -> float:
    """Return the exact sum of numbers times factors, rounded once (GEM-003)."""
    terms = []
    for a_piece, b_piece in pieces(a, b):
        scales = [Factor(exact_factor(block), 0) for block in (a_piece, b_piece)]
        for i, j in zip(a_piece.codes, b_piece.codes, strict=True):
            pair = number(i, a_piece.fmt, profile), number(j, b_piece.fmt, profile)
            terms.append(Product(*pair, *scales))
    return exact_chunk(terms, 0.0, profile).c


@step
def exact_factor(block: Block) -> float:
    """Return the factor of a block in exact: binary64 holds the 28 bits of NVFP4 (GEM-003)."""
    return decode_scale(block) * block.overall


@step
def entry_with_scales(a: Blocks, b: Blocks, profile: DotProfile) -> float:
    """Return a dot product whose instruction takes the scales of blocks (GEM-003)."""
    name, size = next(kind for kind in profile.scales if kind[1] >= len(a[0].codes))
    fmt = formats[name]
    codes = [[code_of(block.scale, fmt) for block in row] for row in (a, b)]
    rows = [[code for block in row for code in block.codes] for row in (a, b)]
    scales = Scales(codes[0], codes[1], fmt, size)
    c = dot(rows[0], rows[1], 0.0, profile, (a[0].fmt, b[0].fmt), scales)
    return product(c, product(a[0].overall, b[0].overall))


def code_of(number: float, fmt: Format) -> int:
    """Return the code of a scale, which is a number of its format."""
    if math.isnan(number):
        return fmt.nan_codes[0][0]
    return next(code for code in range(fmt.code_count) if fmt.value(code) == number)
