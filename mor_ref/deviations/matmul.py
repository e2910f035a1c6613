"""Products of matrices that differ: other factors, other pieces, other upcasts."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from mor_ref.definitions.dot import DOT_PROFILES, DotProfile
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.formats import formats
from mor_ref.deviations.deviation import Change, Deviation, deviation
from mor_ref.deviations.domains import IN_PRODUCTS
from mor_ref.exact import dot_binary32, matmul
from mor_ref.exact.arithmetic import product, quotient
from mor_ref.exact.encoding import encode
from mor_ref.exact.matmul import Block, Blocks

Reference = Callable[..., Any]
Pieces = list[tuple[Block, Block]]
_BF16 = formats["bf16"]


@deviation(matmul.scaled_sum, rules=("GEM-003",), domain=IN_PRODUCTS)
def matmul_unfused(_: Reference, one: float, other: float, partial: float, c: float) -> float:
    """The scaled partial sum is rounded before it is added to c."""
    return dot_binary32.total(dot_binary32.product(product(one, other), partial), c)


@deviation(matmul.scaled_sum, rules=("GEM-003",), domain=IN_PRODUCTS)
def matmul_one_factor_after_the_other(
    _: Reference, one: float, other: float, partial: float, c: float
) -> float:
    """The factor of A multiplies the partial sum, and the fused operation has the factor of B."""
    return dot_binary32.fused(other, dot_binary32.product(one, partial), c)


@deviation(matmul.scaled_sum, rules=("GEM-003",), domain=IN_PRODUCTS)
def matmul_unfused_one_factor_after_the_other(
    _: Reference, one: float, other: float, partial: float, c: float
) -> float:
    """The partial sum is multiplied by the factor of A, then by the factor of B, both rounded."""
    inner = dot_binary32.product(one, partial)
    return dot_binary32.total(dot_binary32.product(inner, other), c)


@deviation(matmul.first_c, rules=("GEM-003",), domain=IN_PRODUCTS)
def matmul_stores_the_first_sum(_: Reference) -> float:
    """The first scaled partial sum is stored, not added to +0, so that it can be -0."""
    return -0.0


@deviation(matmul.pieces, rules=("GEM-003",), domain=IN_PRODUCTS)
def matmul_pieces_reversed(reference: Reference, a: Blocks, b: Blocks) -> Pieces:
    """Pieces are taken from the last one on."""
    found: Pieces = reference(a, b)[::-1]
    return found


_SCALED = matmul.pieces, matmul.entry_with_scales  # steps that read the scales of blocks


@deviation(*_SCALED, rules=("GEM-003",), domain=IN_PRODUCTS)
def matmul_first_scale_for_all(reference: Reference, a: Blocks, b: Blocks, *profile: Any) -> Any:
    """All blocks of a row have the scale of its first one."""
    return reference(*map(_with_first_scale, (a, b)), *profile)


def _with_first_scale(row: Blocks) -> Blocks:
    """Return blocks with the first scale of a block that has one; bfloat16 blocks have none."""
    first = next((block.scale for block in row if block.fmt is not _BF16), 1.0)
    return [b if b.fmt is _BF16 else replace(b, scale=first) for b in row]


@deviation(*_SCALED, rules=("GEM-003",), domain=IN_PRODUCTS)
def matmul_scales_of_the_other_operand(
    reference: Reference, a: Blocks, b: Blocks, *profile: Any
) -> Any:
    """The scales of B lie in reverse along K, as in a transposed array of scales."""
    other = [replace(one, scale=last.scale) for one, last in zip(b, reversed(b), strict=True)]
    return reference(a, other, *profile)


@deviation(matmul.exact_factor, rules=("GEM-003",), domain=IN_PRODUCTS)
def matmul_exact_with_rounded_factors(_: Reference, block: Block) -> float:
    """In exact, the factor of a block of NVFP4 is rounded."""
    return matmul.factor(block)


@deviation(matmul.decode_scale, rules=("GEM-003",), domain=IN_PRODUCTS)
def matmul_scales_not_inverted(_: Reference, block: Block) -> float:
    """Sums are multiplied by the scales of records, which multiplied their numbers."""
    return block.scale


def _divided(
    reference: Reference, one: Block, other: Block, c: float, profile: DotProfile
) -> float:
    """Return c plus the dot product of a piece, divided by both scales."""
    if not one.divides or not other.divides or matmul.needs_upcast(one, other, profile):
        return float(reference(one, other, c, profile))
    partial = reference(replace(one, scale=1.0), replace(other, scale=1.0), -0.0, profile)
    return dot_binary32.total(quotient(partial, product(one.scale, other.scale)), c)


def _exact_quotient(reference: Reference, block: Block) -> float | Fraction:
    is_usual = block.divides and math.isfinite(block.scale) and block.scale
    return 1 / Fraction(block.scale) if is_usual else float(reference(block))


@deviation(matmul.add_piece, rules=("GEM-003",), domain=IN_PRODUCTS)
def matmul_reciprocal_of_both_scales(
    reference: Reference, one: Block, other: Block, c: float, profile: DotProfile
) -> float:
    """The factor of a partial sum is the reciprocal of the product of both scales."""
    if not (one.divides and other.divides):
        return float(reference(one, other, c, profile))
    both = product(one.scale, other.scale)
    return float(reference(replace(one, scale=both), replace(other, scale=1.0), c, profile))


MATMUL_DIVIDED_BY_SCALES = Deviation(
    "matmul_divided_by_scales",
    "Sums are divided by the product of both scales, not multiplied by their reciprocals.",
    ("GEM-003",),
    IN_PRODUCTS,
    (Change(matmul.add_piece, _divided), Change(matmul.exact_factor, _exact_quotient)),
)


def _is_known(_one: Block, _other: Block, profile: DotProfile) -> bool:
    return bool(profile.wide)


@deviation(matmul.needs_upcast, where=_is_known, rules=("GEM-004",), domain=IN_PRODUCTS)
def matmul_upcasts_everything(_: Reference, one: Block, other: Block, profile: DotProfile) -> bool:
    """Every piece is upcast to bfloat16."""
    del one, other, profile
    return True


@deviation(matmul.upcast, rules=("GEM-004",), domain=IN_PRODUCTS)
def matmul_upcast_blocks_keep_their_scale(reference: Reference, block: Block) -> Block:
    """An upcast block is y, and is multiplied by its factor once more."""
    found: Block = reference(block)
    return replace(found, scale=block.scale, overall=block.overall, divides=block.divides)


@deviation(matmul.upcast, rules=("GEM-004",), domain=IN_PRODUCTS)
def matmul_factors_of_upcast_blocks_come_later(_: Reference, block: Block) -> Block:
    """The numbers of codes are upcast, which is exact, and the factors multiply their sum."""
    codes = [
        encode(block.fmt.value(code), _BF16, "rne", SpecialCases(overflow="ieee"))
        for code in block.codes
    ]
    return replace(block, codes=codes, fmt=_BF16)


@deviation(matmul.wide, rules=("GEM-004",), domain=IN_PRODUCTS)
def matmul_upcasts_for_ampere(_: Reference, profile: DotProfile) -> DotProfile:
    """Upcast blocks are multiplied as on Ampere, whatever the architecture."""
    del profile
    return DOT_PROFILES["ampere_bf16"]


def _of_blocks_alone(reference: Reference, a: Blocks, b: Blocks, profile: DotProfile) -> float:
    plain = [[replace(block, overall=1.0) for block in row] for row in (a, b)]
    return float(reference(*plain, profile))


MATMUL_WITHOUT_THE_OVERALL_SCALE = Deviation(
    "matmul_without_the_overall_scale",
    "The scales of whole tensors do not count.",
    ("GEM-003",),
    IN_PRODUCTS,
    (
        Change(matmul.factor, lambda _, block: matmul.decode_scale(block)),
        Change(matmul.exact_factor, lambda _, block: matmul.decode_scale(block)),
        Change(matmul.entry_with_scales, _of_blocks_alone),
    ),
)


@deviation(matmul.entry_with_scales, rules=("GEM-003",), domain=IN_PRODUCTS)
def matmul_one_overall_scale_after_the_other(
    reference: Reference, a: Blocks, b: Blocks, profile: DotProfile
) -> float:
    """The global decode scale of A multiplies the result, then the one of B does."""
    plain = [[replace(block, overall=1.0) for block in row] for row in (a, b)]
    return product(product(reference(*plain, profile), a[0].overall), b[0].overall)


DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))
