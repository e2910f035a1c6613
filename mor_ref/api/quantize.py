"""Quantization with scales, or in a block format: the public function."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, overload

from mor_ref.api.block_formats import (
    BlockQuantized,
    RecordOf,
    quantized_after_steps,
    quantized_whole,
    record_in_blocks,
)
from mor_ref.api.border import public
from mor_ref.api.given_scales import Given, GivenOfScales, given_by_name, given_for_blocks
from mor_ref.api.plans import Plans
from mor_ref.api.quantization import Quantized, in_blocks_of
from mor_ref.argument_checks import UnknownNameError, hint_of, spelling, text_of
from mor_ref.arrays import Bits, numbers_from
from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.definitions.blocks import CutLike, Partition, in_one_block, is_plain, partition
from mor_ref.definitions.catalogue import INTEGERS
from mor_ref.definitions.format import Format
from mor_ref.definitions.format_names import OTHER_NAMES
from mor_ref.definitions.formats import FormatLike, as_format, formats
from mor_ref.definitions.scales import (
    NO_SCALES_GIVEN,
    Scaling,
    check_group,
    scaled_format,
    scaling_or_usual,
)
from mor_ref.recipes import as_block_format, is_recipe
from mor_ref.representations import names_taken, other_names

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@overload
def quantize(
    x: "ArrayLike",
    fmt: BlockFormat,
    *,
    amax: GivenOfScales | None = None,
    scale: GivenOfScales | None = None,
    random_bits: "ArrayLike | None" = None,
    n_random_bits: int | str | None = None,
    out: Bits | None = None,
    threads: int | None = None,
) -> BlockQuantized: ...


@overload
def quantize(
    x: "ArrayLike",
    fmt: FormatLike,
    *,
    scaling: Scaling | None = None,
    block: CutLike | None = None,
    group: CutLike | None = None,
    amax: Given | None = None,
    scale: Given | None = None,
    random_bits: "ArrayLike | None" = None,
    n_random_bits: int | str | None = None,
    out: Bits | None = None,
    threads: int | None = None,
) -> Quantized: ...


@public
def quantize(
    x: "ArrayLike",
    fmt: FormatLike | BlockFormat,
    *,
    scaling: Scaling | None = None,
    block: CutLike | None = None,
    group: CutLike | None = None,
    amax: GivenOfScales | None = None,
    scale: GivenOfScales | None = None,
    random_bits: "ArrayLike | None" = None,
    n_random_bits: int | str | None = None,
    out: Bits | None = None,
    threads: int | None = None,
) -> Quantized | BlockQuantized:
    """Quantize `x` to a format of 8 bits or fewer, with a scale for each block.

    If `fmt` is a block format, or its name, its text in TOML or the text of a recipe that is one,
    its formulas have the scales, and the record is a `BlockQuantized`. Then `amax` replaces the
    amax of the outermost scale, and `scale` its number; a dict gives them by the names of scales.
    Scaling, block and group are of other formats.

    `scaling` is "gam" (the default: an exponent for each block, one mantissa for each group),
    "e8m0" (powers of two) or "fp32". `block` and `group` are "tensor" (the default), "row",
    "column" or a pair (rows, columns); leading axes are folded into rows. Groups need gam, and hold
    whole blocks. `amax` replaces the amax of each group with gam scaling, else of each block.
    `scale` replaces the scale of each block; it needs "fp32". Both may have a number for each, such
    as a scale for each row. With `random_bits` and `n_random_bits`, as `encode` has them, the codes
    are rounded with "sr". The codes go to `out`, if it is given.

    >>> import mor_ref, numpy as np
    >>> x = np.linspace(-3, 3, 64, dtype=np.float32).reshape(4, 16)
    >>> quantized = mor_ref.quantize(x, "e4m3", block=(2, 8))
    >>> quantized
    <4x16 float32 as e4m3: gam scales of 4 blocks of 2x8, mean relative error 2.17 %, 0 non-finite>
    >>> quantized.scale_exponent.tolist(), quantized.scale_mantissa.tolist()
    ([[134, 134], [134, 134]], [[1398101]])
    """
    block_format, target, kind = _plans(fmt, scaling)
    if block_format is not None:
        _refuse_scales(block_format, {"scaling": scaling, "block": block, "group": group})
        return _in_block_format(
            x, block_format, amax, scale, random_bits, n_random_bits, out, threads
        )
    numbers = numbers_from(x, "x")
    block, group = "tensor" if block is None else block, "tensor" if group is None else group
    in_cut = _kept_cuts if is_plain(block) and is_plain(group) else _in_cut
    formulas, own, cut = in_cut(target, kind, numbers.shape, block, group)  # type: ignore[arg-type]  # plain
    by_name = NO_SCALES_GIVEN
    if not amax is scale is None:
        given = given_for_blocks(kind, amax, scale, cut)  # type: ignore[arg-type]  # as above
        by_name = {formulas.scales[0].name: given}
    return quantized_whole(
        numbers, formulas, own, random_bits, n_random_bits, out, threads, by_name, cut
    )


def _plan(
    fmt: FormatLike | BlockFormat, scaling: Scaling | None
) -> tuple[BlockFormat | None, Any, Any]:
    """Return the block format that is given, or else the format and its kind of scales."""
    block_format = block_format_given(fmt)
    if block_format is not None:
        return block_format, None, None
    target = scaled_format(fmt)  # type: ignore[arg-type]  # no block format
    return None, target, scaling_or_usual(scaling)


_plans = Plans(_plan)


def _in_cut(
    fmt: Format, scaling: Scaling, shape: tuple[int, ...], block: CutLike, group: CutLike
) -> tuple[BlockFormat, RecordOf[Quantized], Partition]:
    """Return the formulas of a tensor of that shape, its record, and how it is cut."""
    cut = partition(shape, block, group)
    check_group(cut, group, scaling)
    return *in_blocks_of(fmt, scaling, cut), cut


_kept_cuts = lru_cache(maxsize=1024)(_in_cut)  # those of calls in a loop


def block_format_given(fmt: object) -> BlockFormat | None:
    """Return the block format that is given, by itself or by a text; None if it is a format."""
    if isinstance(fmt, BlockFormat | Mapping):
        return as_block_format(fmt)
    try:
        as_format(fmt)
    except UnknownNameError as error:
        if isinstance(fmt, str) and (is_recipe(fmt) or fmt.endswith((".toml", ".json"))):
            return as_block_format(fmt)
        instead = _other_function(fmt) or _representation_meant(fmt)
        if not instead:
            raise
        raise UnknownNameError(f"format is {fmt!r}, which {instead}") from error
    return None


def _other_function(fmt: object) -> str | None:
    """Return which other function quantizes to what is given; None if none is known to."""
    from mor_ref.policies import POLICIES, Policy

    if isinstance(fmt, Policy):
        return f"is the policy {fmt.name!r}; call mor_ref.mor(x, policy)"
    if re.fullmatch(INTEGERS, spelling(fmt)):
        return f"has integers; call mor_ref.quantize_affine(x, {spelling(fmt)!r})"
    head, _, rest = text_of(fmt).lower().partition(":")
    policy = (rest or "tensor") if head == "mor" else head
    return f"is a policy; call mor_ref.mor(x, {policy!r})" if policy in POLICIES else None


def _representation_meant(fmt: object) -> str:
    """Return which representation is meant, if a format is not; nothing if none is near."""
    if hint_of(fmt, formats, OTHER_NAMES):
        return ""
    hint = hint_of(fmt, names_taken(), other_names())
    return f"is not known; {hint}".rstrip() if hint else ""


def _refuse_scales(block_format: BlockFormat, given: Mapping[str, object]) -> None:
    """Refuse arguments for what formulas say."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name} is {value!r}, but the formulas of block format {block_format.name!r} "
                f"have its scales; omit {name}, or give another block format"
            )


def _in_block_format(
    x: "ArrayLike",
    block_format: BlockFormat,
    amax: GivenOfScales | None,
    scale: GivenOfScales | None,
    random_bits: "ArrayLike | None",
    n_random_bits: int | str | None,
    out: Bits | None,
    threads: int | None,
) -> BlockQuantized:
    numbers = numbers_from(x, "x")
    given = given_by_name(block_format, amax, scale, numbers.shape)
    if block_format.before:
        units = in_one_block(numbers.shape)
        outcome = quantized_after_steps(
            numbers, block_format, units, threads, given, random_bits, n_random_bits, out
        )
        record: BlockQuantized = outcome.record
        return record
    record_of = record_in_blocks(block_format)
    return quantized_whole(
        numbers, block_format, record_of, random_bits, n_random_bits, out, threads, given
    )
