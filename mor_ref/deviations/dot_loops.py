"""Dot products that differ: loops over K that lose a part of it, and work outside instructions."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mor_ref.definitions.dot import PERIOD, DotProfile
from mor_ref.definitions.formats import formats
from mor_ref.deviations.deviation import Change, Deviation, deviation
from mor_ref.deviations.domains import DOT_INTEGERS, DOTS, IN_DOT, IN_PRODUCTS, IN_SCALED_DOTS
from mor_ref.deviations.dot import ONE_CHUNK, followed
from mor_ref.deviations.dot_exponents import total
from mor_ref.exact import dot, dot_binary32, dot_terms, matmul
from mor_ref.exact.dot import Scales
from mor_ref.exact.dot_terms import Chunk
from mor_ref.exact.matmul import Blocks

Reference = Callable[..., Any]
_BF16 = formats["bf16"]  # of blocks without a scale
Pieces = list[tuple[matmul.Block, matmul.Block]]


def _has_chunks(_a: Any, _b: Any, _c: float, profile: DotProfile, *_: Any) -> bool:
    return dot.chunk_length(profile) > 0


def _is_promoted(_a: Any, _b: Any, _c: float, profile: DotProfile, *_: Any) -> bool:
    return profile.family == "promoted"


def _first(
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
    return _first(reference, len(a) // length * length, a, b, c, profile, *more)


@deviation(dot.dot_chunks, where=_has_chunks, rules=("DOT-003", "DOT-011"), domain=DOTS)
def dot_last_chunk_left_out(
    reference: Reference, a: Any, b: Any, c: float, profile: DotProfile, *more: Any
) -> list[Chunk]:
    """The loop over chunks ends before the last one."""
    length = dot.chunk_length(profile)
    k = max(len(a) - 1, 0) // length * length
    return _first(reference, k, a, b, c, profile, *more)


@deviation(dot.dot_chunks, where=_is_promoted, rules=("DOT-011",), domain=IN_DOT)
def dot_promoted_tail_left_out(
    reference: Reference, a: Any, b: Any, c: float, profile: DotProfile, *more: Any
) -> list[Chunk]:
    """The last products are lost if they are less than 128: their sum is never promoted."""
    return _first(reference, len(a) // PERIOD * PERIOD, a, b, c, profile, *more)


@deviation(
    dot.dot_chunks,
    where=_is_promoted,
    rules=("DOT-011",),
    domain=IN_DOT,
)
def dot_promoted_tail_added_by_instructions(
    reference: Reference, a: Any, b: Any, c: float, profile: DotProfile, of: Any, *scales: Any
) -> list[Chunk]:
    """The last products are added to c as in t_fdpa, without scales, if they are less than 128."""
    k = len(a) // PERIOD * PERIOD
    found = _first(reference, k, a, b, c, profile, of, *scales)
    if k < len(a):
        plain = replace(profile, family="t_fdpa", scales=())
        last = reference(a[k:], b[k:], found[-1].c, plain, of, None)[-1]
        found.append(Chunk(None, None, last.c))
    return found


@deviation(
    dot.dot_chunks,
    where=_is_promoted,
    rules=("DOT-011",),
    domain=IN_DOT,
    exemptions=dict.fromkeys(("dot", *IN_PRODUCTS), "Without scales, both factors are 1."),
)
def dot_promoted_tail_without_scales(
    reference: Reference, a: Any, b: Any, c: float, profile: DotProfile, of: Any, *scales: Any
) -> list[Chunk]:
    """The last products are added up and then added to c, without scales, if less than 128."""
    k = len(a) // PERIOD * PERIOD
    found = _first(reference, k, a, b, c, profile, of, *scales)
    if k < len(a):
        last = reference(a[k:], b[k:], 0.0, profile, of, None)[-1]
        found.append(Chunk(None, None, dot_binary32.total(last.c, found[-1].c)))
    return found


@deviation(dot.dot_chunks, where=_is_promoted, rules=("DOT-011",), domain=IN_DOT)
def dot_promoted_sums_go_on(
    reference: Reference,
    a: Any,
    b: Any,
    c: float,
    profile: DotProfile,
    of: Any,
    scales: Scales | None = None,
) -> list[Chunk]:
    """A partial sum goes on from the one before, which is in c already, and not from 0."""
    plain, partial, found = replace(profile, family="t_fdpa", scales=()), 0.0, []
    for k in range(0, len(a), PERIOD):
        part = slice(k, k + PERIOD)
        partial = reference(a[part], b[part], partial, plain, of, None)[-1].c
        c = dot_binary32.fused(_factor(scales, k), partial, c)
        found.append(Chunk(None, None, c))
    return found


def _factor(scales: Scales | None, k: int) -> float:
    """Return the product of both scales of an element, in binary32; 1 without scales."""
    if scales is None:
        return 1.0
    n = k // scales.block
    both = (dot_terms.scale(codes[n], scales.fmt).value for codes in (scales.a, scales.b))
    return dot_binary32.product(*both)


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
    return _has_scales(*arguments) and arguments[3].family in ("st_fdpa", "gst_fdpa")


@deviation(dot.dot_chunks, where=_takes_scales, rules=("DOT-007", "DOT-009"), domain=IN_SCALED_DOTS)
def dot_blocks_scaled_by_fma(
    reference: Reference, a: Any, b: Any, c: float, profile: DotProfile, of: Any, scales: Scales
) -> list[Chunk]:
    """A block is added up without its scales; a fused operation multiplies it and adds c."""
    found: list[Chunk] = []
    for k in range(0, len(a), scales.block):
        part = slice(k, k + scales.block)
        last = reference(a[part], b[part], 0.0, profile, of, None)[-1]
        value = dot_binary32.fused(_factor(scales, k), last.c, c)
        found.append(followed(last, c, value))
        c = value
    return found


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
        (Change(dot.dot_chunks, rows, _has_scales), Change(matmul.pieces, pieces)),
    )


def _has_scales(*arguments: Any) -> bool:
    return len(arguments) > 5 and arguments[5] is not None


DOT_SCALES_OF_A_FOR_BOTH, DOT_SCALES_OF_B_FOR_BOTH = map(_scales_of, "ab")

DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))
