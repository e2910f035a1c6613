"""Dot products of codes, as matrix instructions add them up."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from mor_ref.definitions.dot import PERIOD, DotProfile
from mor_ref.definitions.format import Format
from mor_ref.exact.dot_amd import c_of_chunk, e_fdpa, ftz_mul_add, gtr_fdpa, tr_fdpa
from mor_ref.exact.dot_binary32 import exact_chunk, f32_fma, f32_pairwise, int32, switchback
from mor_ref.exact.dot_nvidia import gst_fdpa, promoted, t_fdpa
from mor_ref.exact.dot_terms import ZERO, Chunk, Product, number, scale
from mor_ref.exact.step import step

FAMILIES: Mapping[str, Callable[[list[Product], float, DotProfile], Chunk]] = {
    "exact": exact_chunk,
    "f32_fma": f32_fma,
    "f32_pairwise": f32_pairwise,
    "t_fdpa": t_fdpa,
    "st_fdpa": t_fdpa,
    "gst_fdpa": gst_fdpa,
    "promoted": promoted,
    "e_fdpa": e_fdpa,
    "ftz_mul_add": ftz_mul_add,
    "tr_fdpa": tr_fdpa,
    "gtr_fdpa": gtr_fdpa,
    "int32": int32,
    "switchback": switchback,
}


@dataclass(frozen=True)
class Scales:
    """The codes of the scales of two rows; each scales `block` elements."""

    a: Sequence[int]
    b: Sequence[int]
    fmt: Format
    block: int


def dot(
    a: Sequence[int],
    b: Sequence[int],
    c: float,
    profile: DotProfile,
    fmts: tuple[Format, Format],
    scales: Scales | None = None,
) -> float:
    """Return c plus the products of two rows of codes (DOT-001)."""
    chunks = dot_chunks(a, b, c, profile, fmts, scales)
    return chunks[-1].c if chunks else c


@step
def dot_chunks(
    a: Sequence[int],
    b: Sequence[int],
    c: float,
    profile: DotProfile,
    fmts: tuple[Format, Format],
    scales: Scales | None = None,
) -> list[Chunk]:
    """Return the chunks of a dot product (DOT-003)."""
    chunks: list[Chunk] = []
    length = chunk_length(profile)
    products = products_of(a, b, profile, fmts, scales)
    for n, part in enumerate(in_chunks(products, profile)):
        c = c_of_chunk(c, n * length, profile)
        chunks.append(FAMILIES[profile.family](part, c, profile))
        c = chunks[-1].c
        if profile.first_c:
            profile = replace(profile, first_c="")
    return chunks


def products_of(
    a: Sequence[int],
    b: Sequence[int],
    profile: DotProfile,
    fmts: tuple[Format, Format],
    scales: Scales | None,
) -> list[Product]:
    """Return the products of two rows (DOT-002)."""
    factors_a, factors_b = (
        {code: number(code, fmt, profile) for code in set(codes)}
        for codes, fmt in zip((a, b), fmts, strict=True)
    )
    pairs = [(factors_a[i], factors_b[j]) for i, j in zip(a, b, strict=True)]
    if scales is None:
        return [Product(*pair) for pair in pairs]
    factors = ([scale(code, scales.fmt) for code in codes] for codes in (scales.a, scales.b))
    scale_pairs = list(zip(*factors, strict=True))
    return [Product(*pair, *scale_pairs[k // scales.block]) for k, pair in enumerate(pairs)]


@step
def chunk_length(profile: DotProfile) -> int:
    """Return the number of products of a chunk (DOT-003); 0 if all products form one chunk."""
    return {"f32_fma": 1, "promoted": PERIOD}.get(profile.family, profile.chunk)


@step
def in_chunks(products: list[Product], profile: DotProfile) -> list[list[Product]]:
    """Return the products in chunks, in order, the last one filled with zeros (DOT-003)."""
    length = chunk_length(profile)
    if length == 0:
        return [products]
    parts = [products[k : k + length] for k in range(0, len(products), length)]
    return [part + [Product(ZERO, ZERO)] * (length - len(part)) for part in parts]
