"""Dot products of blocks with scales."""

from collections.abc import Callable, Iterator

from mor_ref.definitions.dot import DOT_PROFILES, DotProfile
from mor_ref.golden.inputs.dot_borders import at_borders_with_scales
from mor_ref.golden.inputs.dot_lanes import reversed_rows
from mor_ref.golden.inputs.dot_pairs import OF_ANY, other_pairs, pairs_of
from mor_ref.golden.inputs.dot_rows import drawn, joined, with_a_small_sum
from mor_ref.golden.inputs.dot_specials import specials_with_scales
from mor_ref.golden.inputs.dot_zeros import negative_scales, negative_zeros_with_scales
from mor_ref.golden.model.suite import Case, Size, Suite, expected, given
from mor_ref.golden.suites.dot import INPUTS, name_of, special_case
from mor_ref.operations.dot import formats_of
from mor_ref.operations.operation import Arrays

_DRAWN = 38  # random rows of a case
_MORE = 7  # products, so that no whole vector fills a row
_SCALES_OF_EXACT = (("e8m0", 32), ("e4m3", 16), ("f32", 128), ("bf16", 8))


def _with_scales() -> Iterator[tuple[DotProfile, dict[str, str], str, int]]:
    """Yield each profile with scales, parameters of its formats, and a format and a block."""
    for name in DOT_PROFILES.specified:
        profile = DOT_PROFILES[name]
        if profile.family == "switchback" or not (profile.scales or profile.family == "exact"):
            continue
        admitted = profile.scales or _SCALES_OF_EXACT
        for a, b in pairs_of(profile) if profile.scales else OF_ANY[:3]:
            for fmt, block in admitted:
                yield profile, {"dot_profile": name, "format_a": a, "format_b": b}, fmt, block


def _scaled_cases(size: Size) -> Iterator[Case]:
    for profile, parameters, fmt, block in _with_scales():
        length = 2 * max(profile.chunk, block) + 3 * block // 4 + _MORE
        both = {**parameters, "scale_format": fmt, "scale_block": block}
        count = _DRAWN // 2 if profile.family == "st_fdpa" else _DRAWN
        rows = drawn("dot_scaled", both, (count, length), size)
        of = formats_of(parameters)
        if fmt == "e8m0":
            rows = with_a_small_sum(rows, of)
        if profile.chunk:
            rows = joined(rows, at_borders_with_scales(profile, of, length, fmt, block))
        yield Case(name_of(both), both, rows)
    for profile in dict.fromkeys(profile for profile, *_ in _with_scales()):
        yield _zeros_with_scales(profile, "negative_zeros", negative_zeros_with_scales)
        if profile.family == "promoted":
            yield _zeros_with_scales(profile, "negative_scales", negative_scales)
    yield from _special_cases_with_scales(size)


def _special_cases_with_scales(size: Size) -> Iterator[Case]:
    """Yield cases of subnormal and special numbers, of other pairs of formats too."""
    cases = [*_with_scales()]
    for profile in dict.fromkeys(profile for profile, *_ in cases):
        fmt, block = (profile.scales or _SCALES_OF_EXACT)[0]
        for a, b in other_pairs(profile):
            of_pair = {"dot_profile": profile.name, "format_a": a, "format_b": b}
            cases.append((profile, of_pair, fmt, block))
    for profile, parameters, fmt, block in cases:
        both = {**parameters, "scale_format": fmt, "scale_block": block}
        length = max(profile.chunk, block)
        rows = specials_with_scales(profile, formats_of(parameters), length, fmt, block)
        yield special_case(rows, both, size)
    for profile, parameters, fmt, block in _with_scales():
        a, b = parameters["format_a"], parameters["format_b"]
        if profile.chunk and (a, b) == pairs_of(profile)[0]:
            both = {**parameters, "scale_format": fmt, "scale_block": block}
            length = 2 * max(profile.chunk, block)
            rows = specials_with_scales(profile, formats_of(parameters), length, fmt, block)
            yield Case(f"{name_of(both)}.reversed", both, reversed_rows(rows))


def _zeros_with_scales(profile: DotProfile, name: str, rows_of: Callable[..., Arrays]) -> Case:
    """Return a case of whole chunks of products of -0, in the first formats of a profile."""
    fmt, block = (profile.scales or _SCALES_OF_EXACT)[0]
    a, b = pairs_of(profile)[0]
    parameters = {"dot_profile": profile.name, "format_a": a, "format_b": b}
    both = {**parameters, "scale_format": fmt, "scale_block": block}
    rows = rows_of(profile, formats_of(both), max(profile.chunk, block), fmt, block)
    return Case(f"{name_of(both)}.{name}", both, rows)


SCALED = Suite(
    "dot_scaled",
    "Dot products of blocks with scales",
    "dot_scaled",
    ("DOT-002", "DOT-006"),
    (
        *INPUTS,
        given("scale_a", "scale_format", "the codes of the scales of the blocks of a"),
        given("scale_b", "scale_format", "those of b"),
        expected(
            "exponent", "u32",
            "the largest exponent of the last chunk, in two's complement; 0 in exact and promoted",
            "DOT-004",
        ),
        expected(
            "cut_sum", "u64", "the sum of cut terms of the last chunk, in two's complement",
            "DOT-007", "DOT-009",
        ),
        expected("result", "f32", "the last c", "DOT-001", "DOT-008", "DOT-011", "DOT-012"),
    ),
    _scaled_cases,
)  # fmt: skip
