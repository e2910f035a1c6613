"""Dot products of blocks with scales."""

from collections.abc import Callable, Iterator

from mor_ref.definitions.dot import DOT_PROFILES, DotProfile
from mor_ref.golden.inputs.dot_borders import at_borders_with_scales
from mor_ref.golden.inputs.dot_lanes import reversed_rows
from mor_ref.golden.inputs.dot_long import long_length, long_rows_with_scales
from mor_ref.golden.inputs.dot_pairs import OF_ANY, Pair, other_pairs, pairs_of
from mor_ref.golden.inputs.dot_rows import drawn, joined, with_a_small_sum
from mor_ref.golden.inputs.dot_specials import specials_with_scales
from mor_ref.golden.inputs.dot_zeros import negative_scales, negative_zeros_with_scales
from mor_ref.golden.inputs.found_dots import first_with_numbers_of, with_found_rows
from mor_ref.golden.model.suite import Case, Size, suite
from mor_ref.golden.suites.dot import name_of, special_case
from mor_ref.operations.call import Arrays, Parameters
from mor_ref.operations.dot import formats_of, profile_of

_DRAWN = 12  # random rows of a case
_MORE = 7  # products, so that no whole vector fills a row
_SCALES_OF_EXACT = (("e8m0", 32), ("e4m3", 16), ("f32", 128), ("bf16", 8))


def _with_scales() -> Iterator[tuple[DotProfile, Parameters]]:
    """Yield each profile with scales, and parameters of its formats, scales and blocks."""
    for name in DOT_PROFILES.specified:
        profile = DOT_PROFILES[name]
        if profile.family == "switchback" or not (profile.scales or profile.family == "exact"):
            continue
        for of in pairs_of(profile) if profile.scales else OF_ANY[:3]:
            for scales in _admitted(profile):
                yield profile, _parameters(profile, of, scales)


def _admitted(profile: DotProfile) -> tuple[tuple[str, int], ...]:
    """Return the formats of scales that the cases of a profile have, with their blocks."""
    return profile.scales or _SCALES_OF_EXACT


def _parameters(profile: DotProfile, of: Pair, scales: tuple[str, int]) -> Parameters:
    return {
        "dot_profile": profile.name,
        "format_a": of[0],
        "format_b": of[1],
        "scale_format": scales[0],
        "scale_block": scales[1],
    }


def _rows(rows_of: Callable[..., Arrays], both: Parameters, length: int) -> Arrays:
    """Return rows of a function for parameters, with a length."""
    scales = both["scale_format"], both["scale_block"]
    return rows_of(profile_of(both), formats_of(both), length, *scales)


def _scaled_cases(size: Size) -> Iterator[Case]:
    for profile, both in _with_scales():
        block = both["scale_block"]
        length = 2 * _whole(profile, both) + 3 * block // 4 + _MORE
        count = _DRAWN // 2 if profile.family == "st_fdpa" else _DRAWN
        rows = drawn("dot_scaled", both, (count, length), size)
        if both["scale_format"] == "e8m0":
            rows = with_a_small_sum(rows, formats_of(both))
        if profile.chunk:
            rows = joined(rows, _rows(at_borders_with_scales, both, length))
        rows = with_found_rows("dot_scaled", both, rows)
        yield Case(name_of(both), both, rows)
    for profile in dict.fromkeys(profile for profile, _ in _with_scales()):
        yield _zeros_with_scales(profile, "negative_zeros", negative_zeros_with_scales)
        if profile.family == "promoted":
            yield _zeros_with_scales(profile, "negative_scales", negative_scales)
    yield from _special_cases_with_scales(size)


def _whole(profile: DotProfile, both: Parameters) -> int:
    """Return the least length of whole chunks and blocks."""
    return max(profile.chunk, int(both["scale_block"]))


def _special_cases_with_scales(size: Size) -> Iterator[Case]:
    """Yield cases of subnormal and special numbers, of other pairs of formats too."""
    cases = [*_with_scales()]
    for profile in dict.fromkeys(profile for profile, _ in cases):
        own = _admitted(profile)[0]
        cases += [(profile, _parameters(profile, of, own)) for of in other_pairs(profile)]
    for profile, both in cases:
        rows = _rows(specials_with_scales, both, _whole(profile, both))
        yield special_case(rows, both, size)
    for profile, both in _with_scales():
        if profile.chunk and (both["format_a"], both["format_b"]) == pairs_of(profile)[0]:
            rows = _rows(specials_with_scales, both, 2 * _whole(profile, both))
            yield Case(f"{name_of(both)}.reversed", both, reversed_rows(rows))
    for profile in dict.fromkeys(profile for profile, _ in cases):
        if profile.name == first_with_numbers_of(profile):
            both = _parameters(profile, pairs_of(profile)[0], _admitted(profile)[0])
            rows = _rows(long_rows_with_scales, both, long_length(profile))
            yield Case(f"{name_of(both)}.long", both, rows)


def _zeros_with_scales(profile: DotProfile, name: str, rows_of: Callable[..., Arrays]) -> Case:
    """Return a case of whole chunks of products of -0, in the first formats of a profile."""
    both = _parameters(profile, pairs_of(profile)[0], _admitted(profile)[0])
    return Case(f"{name_of(both)}.{name}", both, _rows(rows_of, both, _whole(profile, both)))


SCALED = suite(
    "dot_scaled",
    "Dot products of blocks with scales",
    "dot_scaled",
    ("DOT-002", "DOT-006"),
    _scaled_cases,
)
