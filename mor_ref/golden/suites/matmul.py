"""Products of matrices: entries of blocks with scales, of mixed blocks, and of small tiles."""

from collections.abc import Callable, Iterable, Iterator

from mor_ref.definitions.dot import DOT_PROFILES, PERIOD
from mor_ref.golden.inputs.product_chunks import several_chunks
from mor_ref.golden.inputs.product_edges import edges, special_scales
from mor_ref.golden.inputs.product_long import long_products
from mor_ref.golden.inputs.product_pieces import several_pieces, special_elements
from mor_ref.golden.inputs.products import (
    Kind,
    ends_of_cdna3,
    every_other,
    first_rows,
    first_sum_of_minus_zero,
    negative_zeros,
    products,
)
from mor_ref.golden.model.suite import Case, Size, suite
from mor_ref.operations.call import Arrays

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
# Of all kinds of records with scales, with a special scale of one operand.
_SCALES = (
    ("exact", "scaled", 32, _FP8, 16),
    ("exact", "mx", 32, _FP8, 16),
    ("exact", "nvfp4", 16, _FP4, 16),
    ("hopper_fp8", "scaled", 32, _FP8, 16),
    ("hopper_fp8_promoted", "scaled", 128, _FP8, 16),
    ("hopper_fp8_f16", "scaled", 32, _FP8, 16),
    ("ada_fp8", "scaled", 32, _FP8, 16),
    ("blackwell_fp8", "scaled", 32, _FP8, 16),
    ("blackwell_fp8", "mx", 32, _FP8, 16),
    ("blackwell_fp8", "nvfp4", 16, _FP4, 16),
    ("rtx_blackwell_fp8", "scaled", 32, _FP8, 16),
    ("blackwell_mxfp8", "mx", 32, _FP8, 16),
    ("blackwell_mxfp4", "mx", 32, _FP4, 16),
    ("blackwell_nvfp4", "nvfp4", 16, _FP4, 16),
)
# Of all kinds: the profile, the record, the block, the formats of A and B, and others of blocks.
_OTHERS = ("e5m2", "bf16")
_KINDS: tuple[tuple[str, str, int, tuple[str, str], tuple[str, ...]], ...] = (
    ("exact", "scaled", 32, _FP8, _OTHERS),
    ("exact", "mx", 32, _FP8, ()),
    ("exact", "mx", 32, ("e5m2", "e5m2"), ()),
    ("exact", "nvfp4", 16, _FP4, ()),
    ("hopper_fp8", "scaled", 32, _FP8, _OTHERS),
    ("hopper_fp8_promoted", "scaled", 128, _FP8, _OTHERS),
    ("hopper_fp8_f16", "scaled", 32, _FP8, _OTHERS),
    ("ada_fp8", "scaled", 32, _FP8, _OTHERS),
    ("blackwell_fp8", "scaled", 32, _FP8, _OTHERS),
    ("blackwell_fp8", "mx", 32, ("e4m3", "e5m2"), ()),
    ("blackwell_fp8", "mx", 32, ("e5m2", "e4m3"), ()),
    ("blackwell_fp8", "nvfp4", 16, _FP4, ()),
    ("rtx_blackwell_fp8", "scaled", 32, _FP8, _OTHERS),
    ("hopper_bf16", "scaled", 32, _BF16, _FP8),
    ("cdna1_bf16", "scaled", 32, _BF16, _FP8),
    ("cdna3_bf16", "scaled", 32, _BF16, _FP8),
    ("cdna3_fp8", "scaled", 32, _BF16, _FP8),
    ("blackwell_mxfp8", "mx", 32, ("e4m3", "e5m2"), ()),
    ("blackwell_mxfp8", "mx", 32, ("e5m2", "e4m3"), ()),
    ("blackwell_mxfp4", "mx", 32, _FP4, ()),
    ("blackwell_nvfp4", "nvfp4", 16, _FP4, ()),
)
_NEGATIVE_SUMS = ("cdna1_bf16", "cdna3_bf16")  # sums can be -0
_FIRST = tuple((profile, "scaled", 32, _BF16, 64) for profile in _NEGATIVE_SUMS)
_ENDS = tuple((profile, "scaled", 32, _BF16, 32) for profile in ("cdna3_fp8", "cdna3_bf16"))
# Entries with a long K: one piece of many instructions, many pieces, or instructions with scales.
_LONG = (
    ("exact", "scaled", 32, _FP8, 333),
    ("hopper_fp8", "scaled", 1024, _FP8, 549),
    ("hopper_fp8", "scaled", 32, _FP8, 549),
    ("hopper_fp8_promoted", "scaled", 1024, _FP8, 677),
    ("ada_fp8", "scaled", 512, _FP8, 277),
    ("hopper_bf16", "scaled", 512, _BF16, 277),
    ("blackwell_mxfp8", "mx", 32, _FP8, 549),
    ("blackwell_nvfp4", "nvfp4", 16, _FP4, 1093),
    ("cdna3_bf16", "scaled", 512, _BF16, 141),
    ("rtx_blackwell_fp8", "scaled", 512, _BF16, 141),
)
# Of profiles that upcast blocks of FP4: half of the blocks are such blocks.
_UNITS = ("hopper_fp8", "hopper_fp8_promoted", "hopper_fp8_f16", "ada_fp8", "cdna3_fp8")


def _cases(size: Size) -> Iterator[Case]:
    for stream, (profile, record, block, of, others, width) in enumerate(_ROWS):
        kind = _kind(profile, record, block, of, width, others)
        yield _case(kind, "mixed" if others else "", products(kind, size, stream))
    for profile in _NEGATIVE_SUMS:
        kind = _kind(profile, "scaled", 16, _BF16, 33, ("e4m3", "e5m2", "e2m1"))
        yield _case(kind, "mixed", every_other(products(kind, size, len(_ROWS))))
    yield from _of_kinds(_ZEROS, "negative_zeros", negative_zeros)
    yield from _of_kinds(_EDGES, "edges", edges)
    yield from _of_kinds(_ENDS, "ends", ends_of_cdna3)
    yield from _of_kinds(_FIRST, "first", first_sum_of_minus_zero)
    yield from _of_kinds(_SCALES, "scales", special_scales)
    yield from _of_sums()
    yield from _of_kinds(_LONG, "long", long_products)
    for stream, profile in enumerate(_UNITS, len(_ROWS) + 1):
        kind = _kind(profile, "scaled", 16, _FP8, 41, ("e2m1",) * 4)
        yield _case(kind, "units", first_rows(products(kind, size, stream)))


def _of_sums() -> Iterator[Case]:
    """Yield cases of special elements, of several pieces, and of several chunks."""
    seen: set[tuple[str, str]] = set()
    for profile, record, block, of, others in _KINDS:
        own = DOT_PROFILES[profile]
        rule = DOT_PROFILES[own.wide] if of == _BF16 else own
        kind = _kind(profile, record, block, of, 16, others)
        if of != _FP4:
            yield _case(kind, "elements", special_elements(kind))
        if (profile, record) in seen:
            continue  # another pair of formats has only other elements
        seen.add((profile, record))
        if rule.needs_scales:
            kind = kind._replace(width=3 * rule.chunk + 8)
            yield _case(kind, "chunks", several_chunks(kind))
            continue
        kind = kind._replace(width=block + 8 if rule.family == "promoted" else 3 * block + 1)
        yield _case(kind, "pieces", several_pieces(kind))
        if record == "scaled" and rule.family != "exact":
            width = 4 * rule.chunk + (rule.chunk + 1) // 2
            whole = 2 * PERIOD if rule.family == "promoted" else width
            kind = _kind(profile, record, whole, of, width, others)
            yield _case(kind, "chunks", several_chunks(kind))


def _of_kinds(
    kinds: Iterable[tuple[str, str, int, tuple[str, str], int]],
    ending: str,
    arrays_of: Callable[[Kind], Arrays],
) -> Iterator[Case]:
    """Yield a case of each kind, without mixed blocks."""
    for row in kinds:
        kind = _kind(*row)
        yield _case(kind, ending, arrays_of(kind))


def _kind(
    profile: str,
    record: str,
    block: int,
    of: tuple[str, str],
    width: int,
    others: tuple[str, ...] = (),
) -> Kind:
    parameters = {"dot_profile": profile, "record": record, "scale_block": block}
    return Kind(parameters, of, others, width)


def _case(kind: Kind, ending: str, arrays: Arrays) -> Case:
    """Return a case, which has the name of its kind and an ending, if there is one."""
    names = [*map(str, kind.parameters.values()), *kind.formats, *([ending] if ending else [])]
    return Case(".".join(names), kind.parameters, arrays)


ENTRIES = suite(
    "matmul", "Entries of products of matrices", "matmul", ("GEM-001", "GEM-003", "GEM-004"), _cases
)
