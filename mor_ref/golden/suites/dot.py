"""Dot products: single chunks with their cut sums, and rows of several chunks."""

from collections.abc import Callable, Iterable, Iterator

from mor_ref.definitions.dot import DOT_PROFILES, PERIOD, DotProfile
from mor_ref.definitions.format import Format
from mor_ref.golden.inputs.dot_borders import (
    at_borders,
    filled_after_a_flush,
    flushed,
)
from mor_ref.golden.inputs.dot_lanes import between_periods, reversed_rows
from mor_ref.golden.inputs.dot_long import long_length, long_rows
from mor_ref.golden.inputs.dot_pairs import other_pairs, pairs_of
from mor_ref.golden.inputs.dot_rows import (
    below_e0,
    drawn,
    edges,
    joined,
    nearly_ties,
    signs_and_ends,
    with_a_last_product,
)
from mor_ref.golden.inputs.dot_specials import specials
from mor_ref.golden.inputs.dot_zeros import (
    flushed_by_instructions,
    negative_zeros,
    subnormal_starts,
    tiny_sums,
)
from mor_ref.golden.inputs.found_dots import first_with_numbers_of, with_found_rows
from mor_ref.golden.model.suite import Case, Size, suite
from mor_ref.operations.call import Arrays, Parameters
from mor_ref.operations.dot import formats_of, profile_of

_CHUNKS, _ROWS = 17, 14  # random rows of a case: an eighth of a suite
_SHARE = 6  # of the rows at edges that a case of profiles with chunks has
_WHOLE = ("hopper_fp8", "cdna3_bf16", "cdna3_fp8")  # cases that have all rows at edges
_OF_SUBNORMALS = "hopper_bf16"  # whose products and sums can be subnormal
_LENGTH, _FEW = 37, 4  # of rows that have no chunks
_NEARLY_TIED = (  # profiles that round each product, or each sum of two
    "f32_fma",
    "cdna2_fp16",
    "cdna2_bf16_1k",
    "cdna2_bf16_1k_k8",
    "cdna2_bf16_1k_k4",
    "cdna1_fp32",
    "cdna2_fp32",
    "cdna3_fp32",
)
_LATER = (  # profiles that came later: their cases follow, so that those before are the same
    "volta_fp16_from_f16",
    "turing_fp16_k4",
    "turing_fp16_from_f16_k4",
    "turing_fp16_f16_k4",
    "cdna2_bf16_k4",
    "cdna2_bf16_k2",
    "cdna2_bf16_1k_k8",
    "cdna2_bf16_1k_k4",
)


def _without_scales() -> Iterator[tuple[DotProfile, dict[str, str]]]:
    for name in sorted(DOT_PROFILES.specified, key=_LATER.__contains__):
        profile = DOT_PROFILES[name]
        if profile.needs_scales or profile.family == "int32":
            continue
        for a, b in pairs_of(profile):
            yield profile, {"dot_profile": name, "format_a": a, "format_b": b}


def name_of(parameters: Parameters) -> str:
    """Return the name of a case: its parameters, with dots between them."""
    return ".".join(map(str, parameters.values()))


def _share(profile: DotProfile) -> int:
    """Return which part of the rows at edges the cases of a profile have."""
    return 1 if profile.name in _WHOLE else _SHARE


def _chunk_cases(size: Size) -> Iterator[Case]:
    for n, (profile, parameters) in enumerate(_without_scales()):
        if profile.is_cut:
            of = formats_of(parameters)
            random = drawn("dot", parameters, (_CHUNKS, profile.chunk), size)
            rows = joined(
                edges(profile, of, profile.chunk, n, _share(profile)),
                random,
                at_borders(profile, of, profile.chunk),
            )
            rows = with_found_rows("dot_chunks", parameters, rows)
            yield Case(name_of(parameters), parameters, rows)

    yield from _nearly_tied(("hopper_fp16_f16", "ampere_fp16_f16"))
    for profile in _named_once():
        if profile.is_cut:
            yield _case(profile, "negative_zeros", negative_zeros, profile.chunk)
        if profile.first_c:
            yield _case(profile, "subnormal_c", subnormal_starts, profile.chunk)
    for profile, parameters in _with_other_pairs():
        if profile.is_cut:
            rows = specials(profile, formats_of(parameters), profile.chunk)
            yield special_case(rows, parameters, size)


def _with_other_pairs() -> Iterator[tuple[DotProfile, dict[str, str]]]:
    """Yield each profile without scales, and parameters of its formats, other pairs among them."""
    yield from _without_scales()
    for profile in _named_once():
        for a, b in other_pairs(profile):
            yield profile, {"dot_profile": profile.name, "format_a": a, "format_b": b}


def special_case(rows: Arrays, parameters: Parameters, size: Size) -> Case:
    """Return a case of special rows; pairs of formats without other cases have random ones."""
    if not _is_first(parameters):
        operation = "dot_scaled" if "scale_format" in parameters else "dot"
        rows = joined(rows, drawn(operation, parameters, (_FEW, rows["a"].shape[1]), size))
    return Case(f"{name_of(parameters)}.specials", parameters, rows)


def _is_first(parameters: Parameters) -> bool:
    """Return whether a pair of formats is one of those that all cases of a profile have."""
    pair = parameters["format_a"], parameters["format_b"]
    return pair in pairs_of(profile_of(parameters))


def _named_once() -> Iterator[DotProfile]:
    """Yield each profile without scales once, and not for each pair of formats."""
    yield from dict.fromkeys(profile for profile, _ in _without_scales())


def _case(
    profile: DotProfile,
    name: str,
    rows: Callable[[DotProfile, tuple[Format, Format], int], Arrays],
    length: int,
) -> Case:
    """Return a case of the first formats of a profile."""
    a, b = pairs_of(profile)[0]
    parameters = {"dot_profile": profile.name, "format_a": a, "format_b": b}
    found = rows(profile, formats_of(parameters), length)
    return Case(f"{name_of(parameters)}.{name}", parameters, found)


def _nearly_tied(names: Iterable[str]) -> Iterator[Case]:
    """Yield cases of sums next to ties: they came later, and so are the last ones."""
    for name in names:
        profile = DOT_PROFILES[name]
        (a, b), *_ = pairs_of(profile) if profile.formats else (("f32", "f32"),)
        parameters = {"dot_profile": name, "format_a": a, "format_b": b}
        rows = nearly_ties(profile, formats_of(parameters), profile.chunk or _FEW)
        yield Case(f"{name_of(parameters)}.nearly_tied", parameters, rows)


def _row_cases(size: Size) -> Iterator[Case]:
    for n, (profile, parameters) in enumerate(_without_scales()):
        if profile.family == "promoted":
            length = PERIOD + profile.chunk + 5
        else:
            tail = min(profile.chunk - 1, 3 * profile.chunk // 4 + 1)  # an odd number
            length = 2 * profile.chunk + tail if profile.chunk else _LENGTH
        of = formats_of(parameters)
        is_whole = profile.name in _WHOLE or profile.name == _OF_SUBNORMALS
        step = 3 if is_whole else 4 * _SHARE if profile.is_cut else _SHARE
        random = drawn("dot", parameters, (_ROWS, length), size)
        rows = joined(
            edges(profile, of, length, n, step), signs_and_ends(profile, of, length), random
        )
        if profile.name == _OF_SUBNORMALS:
            rows = joined(rows, below_e0(profile, of, length))
        if profile.chunk:
            rows = joined(rows, at_borders(profile, of, length))
        if profile.family == "ftz_mul_add":
            rows = joined(rows, filled_after_a_flush(profile, of, length))
        if profile.family == "f32_pairwise":
            rows = joined(rows, with_a_last_product(profile, of, length))
        rows = with_found_rows("dot", parameters, rows)
        yield Case(name_of(parameters), parameters, rows)
    yield from _nearly_tied(_NEARLY_TIED)
    for profile, parameters in _without_scales():
        if profile.family == "ftz_mul_add":
            rows = flushed(profile, formats_of(parameters))
            yield Case(f"{name_of(parameters)}.flushed", parameters, rows)
    yield from _later_row_cases(size)


def _later_row_cases(size: Size) -> Iterator[Case]:
    """Yield cases of zeros with signs, of a c in f16, of several instructions, and of a long K."""
    for profile in _named_once():
        length = PERIOD if profile.family == "promoted" else 2 * profile.chunk or _FEW
        yield _case(profile, "negative_zeros", negative_zeros, length)
        if profile.first_c:
            yield _case(profile, "subnormal_c", subnormal_starts, 2 * profile.chunk)
        if profile.flushed_every and profile.formats == ("bf16",):
            length = 2 * profile.flushed_every
            yield _case(profile, "instructions", flushed_by_instructions, length)
    for profile, parameters in _with_other_pairs():
        rows = specials(profile, formats_of(parameters), 2 * profile.chunk or _FEW)
        if profile.chunk and _is_first(parameters):
            rows = joined(rows, reversed_rows(rows))
        yield special_case(rows, parameters, size)
        if profile.family == "promoted":
            rows = between_periods(profile, formats_of(parameters))
            yield Case(f"{name_of(parameters)}.periods", parameters, rows)
    cdna1 = DOT_PROFILES["cdna1_bf16"]  # no sum of products of f16 is that small
    yield _case(cdna1, "tiny_sums", tiny_sums, 4 * cdna1.chunk)
    for profile in _named_once():
        if profile.name == first_with_numbers_of(profile):
            yield _case(profile, "long", long_rows, long_length(profile))


CHUNKS = suite(
    "dot_chunks",
    "Single chunks of dot products",
    "dot",
    ("DOT-002", "DOT-005"),
    _chunk_cases,
    tested={"result": ("DOT-008", "DOT-010", "DOT-017")},
)
ROWS = suite(
    "dot",
    "Dot products of several chunks",
    "dot",
    ("DOT-002", "DOT-003"),
    _row_cases,
    ("result",),
    tested={"result": ("DOT-001", *(f"DOT-{k:03}" for k in range(10, 19)))},
)
