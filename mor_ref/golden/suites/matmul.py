"""Products of matrices: entries of blocks with scales, of mixed blocks, and of small tiles."""

from collections.abc import Callable, Iterable, Iterator

from mor_ref.golden.inputs.product_edges import edges, smallest_nans, special_scales
from mor_ref.golden.inputs.products import (
    Kind,
    ends_of_cdna3,
    first_sum_of_minus_zero,
    negative_zeros,
    products,
)
from mor_ref.golden.model.suite import Case, Size, Suite, expected, given
from mor_ref.operations.operation import Arrays

_FP8, _MIXED = ("e4m3", "e4m3"), ("e5m2", "bf16", "bf16")
_FP4, _BF16 = ("e2m1", "e2m1"), ("bf16", "bf16")
# The profile, the record, the block, the formats of A and B, formats of some blocks, and K.
_ROWS: tuple[tuple[str, str, int, tuple[str, str], tuple[str, ...], int], ...] = (
    ("exact", "scaled", 32, _FP8, _MIXED, 80),
    ("exact", "mx", 32, ("e4m3", "e2m1"), (), 80),
    ("exact", "nvfp4", 16, _FP4, (), 56),
    ("hopper_fp8", "scaled", 32, _FP8, (), 80),
    ("hopper_fp8", "scaled", 32, _FP8, _MIXED, 80),
    ("hopper_fp8_promoted", "scaled", 128, _FP8, (), 288),
    ("hopper_fp8_promoted", "scaled", 256, _FP8, _MIXED, 272),
    ("ada_fp8", "scaled", 32, ("e4m3", "e5m2"), _MIXED, 72),
    ("blackwell_fp8", "scaled", 32, _FP8, _MIXED, 80),
    ("blackwell_fp8", "mx", 32, ("e4m3", "e2m1"), (), 80),
    ("blackwell_fp8", "nvfp4", 16, _FP4, (), 56),
    ("blackwell_mxfp8", "mx", 32, ("e5m2", "e4m3"), (), 80),
    ("blackwell_mxfp4", "mx", 32, _FP4, (), 144),
    ("blackwell_nvfp4", "nvfp4", 16, _FP4, (), 152),
    ("hopper_bf16", "scaled", 32, _BF16, ("e4m3", "e5m2", "e2m1"), 80),
    ("hopper_fp8_f16", "scaled", 32, _FP8, _MIXED, 80),
    ("rtx_blackwell_fp8", "scaled", 32, ("e5m2", "e4m3"), ("e2m1", "bf16"), 80),
    ("cdna3_fp8", "scaled", 32, _FP8, _MIXED, 80),
)
# Of the families that entries have, with whole chunks of products of -0.
_ZEROS = (
    ("exact", "scaled", 32, _FP8, 64),
    ("hopper_fp8", "scaled", 32, _FP8, 64),
    ("hopper_fp8_promoted", "scaled", 128, _FP8, 256),
    ("hopper_bf16", "scaled", 32, _BF16, 64),
    ("blackwell_mxfp8", "mx", 32, _FP8, 64),
    ("blackwell_nvfp4", "nvfp4", 16, _FP4, 64),
    ("cdna3_fp8", "scaled", 32, _FP8, 64),
)
# Of all families and processors that entries have, with entries at the ends of binary32.
_EDGES = (
    ("exact", "scaled", 32, ("e4m3", "e5m2"), 64),
    ("exact", "mx", 32, _FP8, 64),
    ("exact", "nvfp4", 16, _FP4, 32),
    ("hopper_fp8", "scaled", 64, ("e5m2", "e4m3"), 128),
    ("hopper_fp8_promoted", "scaled", 128, _FP8, 256),
    ("hopper_fp8_f16", "scaled", 64, _FP8, 128),
    ("ada_fp8", "scaled", 32, _FP8, 64),
    ("blackwell_fp8", "scaled", 64, ("e5m2", "e5m2"), 128),
    ("blackwell_fp8", "mx", 32, ("e4m3", "e5m2"), 64),
    ("blackwell_fp8", "nvfp4", 16, _FP4, 32),
    ("rtx_blackwell_fp8", "scaled", 32, ("e5m2", "e4m3"), 64),
    ("hopper_bf16", "scaled", 32, _BF16, 64),
    ("blackwell_mxfp8", "mx", 32, ("e5m2", "e5m2"), 64),
    ("blackwell_nvfp4", "nvfp4", 16, _FP4, 64),
    ("blackwell_mxfp4", "mx", 32, _FP4, 64),
    ("cdna1_bf16", "scaled", 32, _BF16, 64),
    ("cdna3_bf16", "scaled", 32, _BF16, 64),
)
_NANS = (("exact", "scaled"), ("hopper_fp8", "scaled"), ("blackwell_mxfp8", "mx"))
# Of all ways in which scales enter, with a special scale of one operand.
_SCALES = (
    ("exact", "scaled", 32, _FP8, 64),
    ("exact", "mx", 32, _FP8, 64),
    ("exact", "nvfp4", 16, _FP4, 32),
    ("hopper_fp8", "scaled", 32, _FP8, 64),
    ("blackwell_fp8", "mx", 32, _FP8, 64),
    ("blackwell_fp8", "nvfp4", 16, _FP4, 32),
    ("blackwell_mxfp8", "mx", 32, _FP8, 64),
    ("blackwell_mxfp4", "mx", 32, _FP4, 64),
    ("blackwell_nvfp4", "nvfp4", 16, _FP4, 64),
)
_NEGATIVE_SUMS = ("cdna1_bf16", "cdna3_bf16")  # sums can be -0


def _cases(size: Size) -> Iterator[Case]:
    for stream, (profile, record, block, of, others, width) in enumerate(_ROWS):
        parameters = {"dot_profile": profile, "record": record, "scale_block": block}
        mixed = ("mixed",) if others else ()
        name = ".".join((profile, record, str(block), *of, *mixed))
        yield Case(name, parameters, products(Kind(parameters, of, others, width), size, stream))
    yield from _of_kinds(_ZEROS, "negative_zeros", negative_zeros)
    yield from _of_kinds(_EDGES, "edges", edges)
    parameters = {"dot_profile": "cdna3_fp8", "record": "scaled", "scale_block": 32}
    kind = Kind(parameters, _BF16, (), 32)
    yield Case("cdna3_fp8.scaled.32.bf16.bf16.ends", parameters, ends_of_cdna3(kind))
    for profile in _NEGATIVE_SUMS:
        parameters = {"dot_profile": profile, "record": "scaled", "scale_block": 32}
        arrays = first_sum_of_minus_zero(Kind(parameters, _BF16, (), 64))
        yield Case(f"{profile}.scaled.32.bf16.bf16.first", parameters, arrays)
    for profile, record in _NANS:
        parameters = {"dot_profile": profile, "record": record, "scale_block": 32}
        arrays = smallest_nans(Kind(parameters, ("e5m2", "e5m2"), (), 32))
        yield Case(f"{profile}.{record}.32.e5m2.e5m2.nan", parameters, arrays)
    yield from _of_kinds(_SCALES, "scales", special_scales)


def _of_kinds(
    kinds: Iterable[tuple[str, str, int, tuple[str, str], int]],
    ending: str,
    arrays_of: Callable[[Kind], Arrays],
) -> Iterator[Case]:
    """Yield a case of each kind, without mixed blocks."""
    for profile, record, block, of, width in kinds:
        parameters = {"dot_profile": profile, "record": record, "scale_block": block}
        name = ".".join((profile, record, str(block), *of, ending))
        yield Case(name, parameters, arrays_of(Kind(parameters, of, (), width)))


ENTRIES = Suite(
    "matmul",
    "Entries of products of matrices",
    "matmul",
    ("GEM-001", "GEM-003", "GEM-004"),
    (
        given("a", "u32", "the codes of a row of A"),
        given("b", "u32", "those of a column of B"),
        given("y_a", "bf16", "y of each element of A, rounded to bfloat16"),
        given("y_b", "bf16", "that of each element of B"),
        given("choice_a", "u8", "the format of each block of A: 0 e4m3, 1 e5m2, 2 e2m1, 3 bf16"),
        given("choice_b", "u8", "that of each block of B"),
        given("scale_a", "f32", "the scale of each block of A, as the record has it"),
        given("scale_b", "f32", "that of each block of B"),
        given("overall_a", "f32", "the global decode scale of the row of A; 1 if it has none"),
        given("overall_b", "f32", "that of the column of B"),
        expected("result", "f32", "the entry", "GEM-001", "GEM-003", "GEM-004"),
    ),
    _cases,
)
