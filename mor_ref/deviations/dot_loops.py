"""Dot products that differ: loops over K that lose a part of it, and work outside instructions."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mor_ref.definitions.dot import DotProfile
from mor_ref.definitions.formats import formats
from mor_ref.deviations.deviation import Change, Deviation, deviation
from mor_ref.deviations.domains import DOT_INTEGERS, DOTS, IN_SCALED_DOTS
from mor_ref.deviations.dot import ONE_CHUNK, followed
from mor_ref.deviations.dot_exponents import total
from mor_ref.exact import dot, dot_binary32, dot_terms, matmul
from mor_ref.exact.dot import Scales
from mor_ref.exact.dot_binary32 import product
from mor_ref.exact.dot_terms import Chunk
from mor_ref.exact.matmul import Blocks

Reference = Callable[..., Any]
_BF16 = formats["bf16"]  # of blocks without a scale
Pieces = list[tuple[matmul.Block, matmul.Block]]


def _has_chunks(_a: Any, _b: Any, _c: float, profile: DotProfile, *_: Any) -> bool:
    return dot.chunk_length(profile) > 0


def first_products(
    reference: Reference, k: int, a: Any, b: Any, c: float, profile: DotProfile, *more: Any
) -> list[Chunk]:
    """Return the chunks of the first k products; without one, c stays as it is."""
    found: list[Chunk] = reference(a[:k], b[:k], c, profile, *more) if k else []
    return found or [Chunk(None, None, c)]


def _is_of_chunks(_a: Any, _b: Any, _c: float, profile: DotProfile, *_: Any) -> bool:
    return profile.chunk > 0


@deviation(
    dot.dot_chunks, where=_is_of_chunks, rules=("DOT-003",), domain=DOTS, exemptions=ONE_CHUNK
)
def dot_tail_left_out(
    reference: Reference, a: Any, b: Any, c: float, profile: DotProfile, *more: Any
) -> list[Chunk]:
    """The last products of a row are left out if they do not fill a chunk."""
    length = dot.chunk_length(profile)
    return first_products(reference, len(a) // length * length, a, b, c, profile, *more)


@deviation(dot.dot_chunks, where=_has_chunks, rules=("DOT-003", "DOT-011"), domain=DOTS)
def dot_last_chunk_left_out(
    reference: Reference, a: Any, b: Any, c: float, profile: DotProfile, *more: Any
) -> list[Chunk]:
    """The loop over chunks ends before the last one."""
    length = dot.chunk_length(profile)
    k = max(len(a) - 1, 0) // length * length
    return first_products(reference, k, a, b, c, profile, *more)


def factor_of(scales: Scales | None, k: int) -> float:
    """Return the product of both scales of an element, in binary32; 1 without scales."""
    return 1.0 if scales is None else product(*_both_scales(scales, k))


def _both_scales(scales: Scales, k: int) -> tuple[float, float]:
    """Return the scales of an element."""
    n = k // scales.block
    one, other = (dot_terms.scale(codes[n], scales.fmt).value for codes in (scales.a, scales.b))
    return one, other


@deviation(
    dot.dot_chunks,
    where=_has_chunks,
    rules=("DOT-003",),
    domain=DOTS,
    exemptions=ONE_CHUNK,
)
def dot_k_in_halves(
    reference: Reference,
    a: Any,
    b: Any,
    c: float,
    profile: DotProfile,
    of: Any,
    scales: Scales | None = None,
) -> list[Chunk]:
    """The second half of the chunks is added up from 0 on, apart, and added to the first half."""
    length = dot.chunk_length(profile)
    half = (-(-len(a) // length) + 1) // 2 * length
    ends = (0, half, c), (half, len(a), 0.0)
    found: list[list[Chunk]] = []
    for first, last, start in ends:
        part = slice(first, last)
        own = scales and _of_part(scales, part)
        found.append(reference(a[part], b[part], start, profile, of, own))
    chunks, others = found
    if others:
        chunks = [*chunks[:-1], replace(others[-1], c=total(chunks[-1].c, others[-1].c, profile))]
    return chunks


@deviation(dot.dot_chunks, where=_is_of_chunks, rules=("DOT-003", "DOT-007"), domain=DOTS)
def dot_chunks_added_in_binary32(
    reference: Reference,
    a: Any,
    b: Any,
    c: float,
    profile: DotProfile,
    of: Any,
    scales: Scales | None = None,
) -> list[Chunk]:
    """Each chunk is added up from 0 on, and its result is added to c outside of the instruction."""
    found: list[Chunk] = []
    for k in range(0, len(a), profile.chunk):
        part = slice(k, k + profile.chunk)
        own = scales and _of_part(scales, part)
        found += reference(a[part], b[part], 0.0, profile, of, own)
        value = total(found[-1].c, c, profile)
        found[-1] = followed(found[-1], c, value)
        c = value
    return found


def _takes_scales(*arguments: Any) -> bool:
    return has_scales(*arguments) and arguments[3].family in ("exact", "st_fdpa", "gst_fdpa")


def _blocks_scaled(
    name: str, summary: str, add: Callable[[float, float, float, float], float]
) -> Deviation:
    """Return the deviation of blocks that are added up without their scales, and scaled then."""

    def blocks(
        reference: Reference, a: Any, b: Any, c: float, profile: DotProfile, of: Any, scales: Scales
    ) -> list[Chunk]:
        found: list[Chunk] = []
        for k in range(0, len(a), scales.block):
            part = slice(k, k + scales.block)
            last = reference(a[part], b[part], 0.0, profile, of, None)[-1]
            value = add(*_both_scales(scales, k), last.c, c)
            found.append(followed(last, c, value))
            c = value
        return found

    change = Change(dot.dot_chunks, blocks, _takes_scales)
    return Deviation(name, summary, ("DOT-007", "DOT-009", "DOT-012"), IN_SCALED_DOTS, (change,))


DOT_BLOCKS_SCALED_BY_FMA = _blocks_scaled(
    "dot_blocks_scaled_by_fma",
    "A block is added up without its scales; a fused operation multiplies it and adds c.",
    lambda one, other, partial, c: dot_binary32.fused(product(one, other), partial, c),
)
DOT_BLOCKS_SCALED_UNFUSED = _blocks_scaled(
    "dot_blocks_scaled_unfused",
    "A block is added up without its scales; their product multiplies it, and then c is added.",
    lambda one, other, partial, c: dot_binary32.total(product(product(one, other), partial), c),
)
DOT_BLOCKS_SCALED_ONE_AFTER_THE_OTHER = _blocks_scaled(
    "dot_blocks_scaled_one_after_the_other",
    "A block is added up without its scales; that of a multiplies it, then that of b; c is last.",
    lambda one, other, partial, c: dot_binary32.total(product(product(one, partial), other), c),
)


def _of_part(scales: Scales, part: slice) -> Scales:
    """Return the scales of a part of a row."""
    blocks = slice(part.start // scales.block, -(-part.stop // scales.block))
    return replace(scales, a=scales.a[blocks], b=scales.b[blocks])


def _scales_of(operand: str) -> Deviation:
    """Return the deviation in which the scales of one operand are those of both."""

    def rows(reference: Reference, *arguments: Any) -> Any:
        *others, scales = arguments
        own = getattr(scales, operand)
        return reference(*others, replace(scales, a=own, b=own))

    def pieces(reference: Reference, a: Blocks, b: Blocks) -> Pieces:
        own = [block.scale for block in (a if operand == "a" else b)]
        both = (
            [
                one if one.fmt is _BF16 else replace(one, scale=scale)
                for one, scale in zip(row, own, strict=True)
            ]
            for row in (a, b)
        )
        found: Pieces = reference(*both)
        return found

    return Deviation(
        f"dot_scales_of_{operand}_for_both",
        f"The scales of {operand} are those of both operands, as with the pointer of the other.",
        ("DOT-006", "DOT-020", "GEM-003"),
        (*IN_SCALED_DOTS, *DOT_INTEGERS),
        (Change(dot.dot_chunks, rows, has_scales), Change(matmul.pieces, pieces)),
    )


def has_scales(*arguments: Any) -> bool:
    """Return whether a row has scales."""
    return len(arguments) > 5 and arguments[5] is not None


DOT_SCALES_OF_A_FOR_BOTH, DOT_SCALES_OF_B_FOR_BOTH = map(_scales_of, "ab")

DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))
