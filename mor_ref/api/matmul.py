"""Products of matrices, of records and of arrays: the public functions."""

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.border import public
from mor_ref.api.coded_blocks import CodedBlocks
from mor_ref.api.encoding import encode
from mor_ref.api.matmul_operands import Side, is_record, side_of
from mor_ref.api.matmul_segments import (
    Numbers,
    check_array,
    check_format,
    in_segments,
)
from mor_ref.argument_checks import known_name
from mor_ref.definitions.dot import DOT_PROFILES, DotProfile
from mor_ref.definitions.dot_arguments import check_terms, dot_profile
from mor_ref.definitions.formats import formats
from mor_ref.definitions.matmul import BINARY32_FAMILIES, OUTPUTS, TO_QUANTIZE
from mor_ref.records import Transposed

if TYPE_CHECKING:
    from mor_ref.engine.dot_operands import Operand

_QUANTIZERS = {"e8m0": "quantize_mx", "e4m3": "quantize_nvfp4"}  # that have such scales
_RANGE_OF_SCALES = (28, -160, 140)  # of factors in binary32, and of e4m3 times binary32


def transposed(x: Any) -> Transposed:
    """Return the transpose of a record or an array, for `matmul`.

    >>> import mor_ref, numpy as np
    >>> record = mor_ref.quantize_mx(np.ones((4, 64), np.float32), "e4m3")
    >>> mor_ref.transposed(record).shape
    (64, 4)
    """
    if not is_record(x) and not hasattr(x, "shape"):
        raise TypeError(f"x is of type {type(x).__name__}; give a record or an array")
    return x.of if isinstance(x, Transposed) else Transposed(x)


@public
def matmul(
    A: Any,  # noqa: N803  # as the issue and NumPy name matrices
    B: Any,  # noqa: N803
    *,
    profile: str | DotProfile = "exact",
    out: Literal["f32", "bf16", "f16"] = "f32",
    threads: int | None = None,
) -> NDArray[Any]:
    """Return A @ B as matrix instructions compute it, of shape (M, N).

    `A` is (M, K) and `B` is (K, N): records of `mor`, `quantize`, `quantize_mx` or
    `quantize_nvfp4`, or arrays whose dtype is a format. K is the axis of A's rows and of B's
    columns. Blocks with scales lie along K: MX and NVFP4 have them in rows, so the record of B is
    one of B.T, and `transposed(record)` is given. Under the profile exact, scales enter the exact
    sum. Instructions with scales take the scales of their blocks. Else each block of K is a dot
    product from 0, and is added times its scales by a fused operation. Blocks of `mor` in formats
    that the instruction does not multiply are upcast to bfloat16. In the families f32_fma and
    f32_pairwise, y of any record is multiplied. `out` is "f32", or "bf16" or "f16" for codes of
    the rounded result.

    >>> import mor_ref, numpy as np
    >>> x = np.linspace(-3, 3, 128, dtype=np.float32).reshape(4, 32)
    >>> a, b = mor_ref.quantize(x, "e4m3"), mor_ref.quantize(x, "e4m3")
    >>> mor_ref.matmul(a, mor_ref.transposed(b), profile="hopper_fp8").shape
    (4, 4)
    """
    rule = dot_profile(profile)
    known_name("out", out, OUTPUTS)
    a, b = side_of(A, "A"), side_of(B, "B").transposed
    if a.shape[1] != b.shape[1]:
        raise ValueError(
            f"A has {a.shape[1]} columns and B has {b.shape[1]} rows; give the same number, or "
            "transposed(...) of B"
        )
    c = _product(a, b, rule, threads)
    return c if out == "f32" else encode(c, out, overflow="ieee")


def _product(a: Side, b: Side, profile: DotProfile, threads: int | None) -> Numbers:
    """Return the product under the rule of the family (GEM-001)."""
    from mor_ref.engine.matmul import product  # imports Numba

    if profile.family in BINARY32_FAMILIES:
        for side in (a, b):
            check_array(side, profile)
        return product(_binary32_operand(a), _binary32_operand(b), profile, threads)
    a.check_steps("A", b)
    b.check_steps("B", a)
    for side in (a, b):
        side.check_blocks(profile)
    if profile.family == "exact":
        return product(_exact_operand(a), _exact_operand(b), profile, threads)
    if profile.family == "switchback":
        raise ValueError("switchback has scales of its own, which no record has; use dot")
    if a.is_plain and b.is_plain:
        return product(_plain_operand(a, profile), _plain_operand(b, profile), profile, threads)
    if profile.needs_scales:
        return _product_with_scales(a, b, profile, threads)
    return in_segments(a, b, profile, threads)


# ---------------------------------------------------------------------- one dot product


def _plain_operand(side: Side, profile: DotProfile) -> "Operand":
    """Return an array as an operand (GEM-002)."""
    from mor_ref.engine.dot_operands import operand_of

    rung = side.rungs[0]
    if rung is None or profile.needs_scales:
        raise ValueError(f"{profile.name} needs scales, which arrays lack; give records of them")
    check_array(side, profile)
    return operand_of(np.ascontiguousarray(rung.codes), rung.fmt, profile)


def _binary32_operand(side: Side) -> "Operand":
    """Return an operand as binary32 numbers: y of records (GEM-002)."""
    from mor_ref.engine.dot_operands import Operand, binary32_of

    (rung,) = side.rungs if side.is_plain else (None,)
    of_codes = (side.as_f32(), formats["f32"]) if rung is None else (rung.codes, rung.fmt)
    return Operand(binary32_of(*of_codes), formats["f32"])


def _exact_operand(side: Side) -> "Operand":
    """Return an operand whose scales lie in blocks as long as all blocks of K share (GEM-003)."""
    from mor_ref.engine.dot_operands import Operand, Range, binary32_of, operand_of, scales_of

    rows, columns = side.shape
    rungs = {int(n): _or_bf16(side.rungs[n], side) for n in np.unique(side.choice)}
    block = math.gcd(side.unit[1], *(rung.tile[1] for rung in rungs.values()))
    starts = np.arange(0, columns, block)
    choice = np.array([side.chosen(int(k)) for k in starts], np.uint8).reshape(starts.size, rows).T
    words, scale = np.zeros(side.shape, np.uint32), np.ones((rows, starts.size))
    for index, rung in rungs.items():
        takes = choice == index
        scale[takes] = _factors(rung, starts)[takes]
        everywhere = np.repeat(takes, block, axis=1)[:, :columns]
        words[everywhere] = binary32_of(rung.codes, rung.fmt)[everywhere]
    operand = Operand(words, formats["f32"])
    if len(rungs) == 1:  # whose numbers have fewer bits
        (rung,) = rungs.values()
        operand = operand_of(rung.codes, rung.fmt, DOT_PROFILES["exact"])
    if all(rung.scale is None for rung in rungs.values()):
        return operand
    scales = scales_of(scale, block, 0)
    return Operand(operand.entries, operand.fmt, scales, Range(*_RANGE_OF_SCALES))


def _factors(rung: CodedBlocks, starts: NDArray[Any]) -> NDArray[np.float64]:
    """Return the exact factor of each row at places of K (GEM-003)."""
    if rung.scale is None:
        return np.ones((len(rung.codes), starts.size))
    factors = rung.spread_to_rows(rung.scale[:, starts // rung.tile[1]])
    return factors * rung.overall_by_row().astype(np.float64)[:, None]


def _or_bf16(rung: CodedBlocks | None, side: Side) -> CodedBlocks:
    """Return a rung, or the numbers of all units as bfloat16."""
    whole = (max(side.shape[0], 1), max(side.shape[1], 1))
    return CodedBlocks(side.as_bf16(), formats["bf16"], whole) if rung is None else rung


# ---------------------------------------------------------------------- scales of instructions


def _product_with_scales(a: Side, b: Side, profile: DotProfile, threads: int | None) -> Numbers:
    """Return the product of two records whose scales the instruction takes (GEM-003)."""
    from mor_ref.engine.dot_operands import operand_of
    from mor_ref.engine.matmul import multiply_by_scales, product

    rungs = [_rung_with_scales(*side, profile) for side in (("A", a), ("B", b))]
    if rungs[0].tile[1] != rungs[1].tile[1]:
        raise ValueError(
            f"A has scales for {rungs[0].tile[1]} elements along K and B for {rungs[1].tile[1]}; "
            "quantize both in the same blocks"
        )
    check_terms(profile, (rungs[0].fmt, rungs[1].fmt), rungs[0].scale_format)
    operand_a, operand_b = (
        operand_of(
            np.ascontiguousarray(rung.codes),
            rung.fmt,
            profile,
            np.ascontiguousarray(rung.spread_to_rows(rung.codes_of_scale)),
            rung.scale_format,
            rung.tile[1],
        )
        for rung in rungs
        if rung.codes_of_scale is not None
    )
    c = product(operand_a, operand_b, profile, threads)
    if any(rung.overall is not None for rung in rungs):
        multiply_by_scales(c, *(rung.overall_by_row() for rung in rungs))
    return c


def _rung_with_scales(argument: str, side: Side, profile: DotProfile) -> CodedBlocks:
    """Return the codes of a record whose scales the instruction takes, or refuse it."""
    rung = side.rungs[0] if len(side.rungs) == 1 else None
    name = rung.scale_format.name if rung and rung.scale_format else None
    if rung is None or name not in {known for known, _ in profile.scales}:
        wanted = " or ".join(dict.fromkeys(_QUANTIZERS.get(fmt, fmt) for fmt, _ in profile.scales))
        raise ValueError(
            f"{profile.name} takes the scales of {wanted} alone; give two records with "
            "such scales, or another profile"
        )
    check_format(rung.fmt, profile)
    sizes = [size for _, size in profile.scales]
    if rung.tile[1] not in {*sizes, *(min(size, max(side.shape[1], 1)) for size in sizes)}:
        next_step = TO_QUANTIZE if rung.tile[1] == 1 else f"give block={sizes[0]} to quantize_mx"
        count = f"{rung.tile[1]} element{'s' * (rung.tile[1] != 1)}"
        raise ValueError(
            f"{argument} has scales for {count} along K, but {profile.name} takes them for "
            f"{' or '.join(map(str, sizes))}; {next_step}"
        )
    return rung
