"""Dot products that differ: matrix instructions that add up as a loop on a CPU does."""

from collections.abc import Callable
from typing import Any

from mor_ref.definitions.dot import DotProfile
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.formats import formats
from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.deviations.domains import DOT_INTEGERS, DOTS
from mor_ref.exact import dot as dot_of_codes
from mor_ref.exact import dot_binary32, dot_nvidia
from mor_ref.exact.dot_terms import Chunk, Product
from mor_ref.exact.encoding import encode


@deviation(
    dot_nvidia.t_fdpa, dot_nvidia.gst_fdpa, rules=("DOT-007", "DOT-009", "DOT-010"), domain=DOTS
)
def dot_added_in_binary32(
    _: Callable[..., Any], part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """Products are added to c one after the other, in binary32, and none is cut, as on a CPU."""
    for one in part:
        a, b = one.a.value * one.scale_a.value, one.b.value * one.scale_b.value
        c = dot_binary32.fused(a, b, c)
    return Chunk(0, 0, _rounded(c, profile.result))


@deviation(
    dot_of_codes.dot_chunks,
    rules=("DOT-007", "DOT-009", "DOT-010", "DOT-013"),
    domain=(*DOTS, *DOT_INTEGERS),
    exemptions={"dot_integers": "Sums of integers are not rounded."},
)
def dot_added_in_binary64(
    right: Callable[..., Any], a: Any, b: Any, c: float, profile: DotProfile, *others: Any
) -> list[Chunk]:
    """Products are added to c one after the other, in binary64, and the sum is rounded once."""
    if profile.family in ("exact", "int32", "switchback"):
        return right(a, b, c, profile, *others)  # type: ignore[no-any-return]
    for one in dot_of_codes.products_of(a, b, profile, *others):
        c += (one.a.value * one.scale_a.value) * (one.b.value * one.scale_b.value)
    return [Chunk(0, 0, _rounded(c, profile.result))]


def _rounded(c: float, name: str) -> float:
    """Return c in the format of a result, which has infinities."""
    fmt = formats[name]
    return fmt.value(encode(c, fmt, "rne", SpecialCases(overflow="ieee")))


DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))
