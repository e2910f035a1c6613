"""The chapter on policies: decisions from integer sums, and the output that follows from them."""

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Bits, Numbers, in_order
from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.table_format import ElementFormat
from mor_ref.engine.blocks import Part, Place, for_each_part, words_of
from mor_ref.engine.decoding import decoded, layout_of_elements
from mor_ref.engine.dequantization import restored
from mor_ref.engine.encoding import encoded
from mor_ref.engine.formats import BINARY32, target_for
from mor_ref.engine.intrinsics import bits_of, float_of, use_full_vectors
from mor_ref.engine.kernel import Direct, integer_kernel, kernel, step
from mor_ref.engine.quantization import as_bf16, sign_of_bf16
from mor_ref.engine.scales import Extremes
from mor_ref.engine.strips import TileScales, over_units, units_in
from mor_ref.processor_modes import check_processor

_U = np.uint32
_W = np.uint64
_TRUTH = np.dtype(np.bool_)
_BF16 = formats["bf16"]

Errors = NDArray[np.uint64]  # sum, nonzero and nonfinite along the last axis
Accepted = NDArray[np.bool_]


@integer_kernel
def accept_means(errors, limits, accepted):
    """MOR-002: sum < T * nonzero, or nothing counts; both sides fit 64 bits (ERR-005)."""
    sums, units = errors.reshape(-1, 3), accepted.reshape(-1)
    for n in range(units.size):
        limit = limits[n if limits.size > 1 else 0]
        units[n] = sums[n, 0] < limit * sums[n, 1] or sums[n, 1] == _W(0)


@integer_kernel
def take_rung(choice, accepted, errors, rung, fallback):
    """MOR-001: note the rung of units that are left, that it accepts, and that lose nothing.

    All are left to the first rung.
    """
    sums, units, own = errors.reshape(-1, 3), accepted.reshape(-1), choice.reshape(-1)
    for n in range(own.size):
        if rung == 0:
            own[n] = fallback
        if own[n] == fallback and units[n] and sums[n, 2] == _W(0):
            own[n] = rung


_accept_means, _take_rung = Direct(accept_means), Direct(take_rung, reads=0)


def is_below(errors: Errors, limit: int | NDArray[np.uint64]) -> Accepted:
    """MOR-002 for units: which of their means are below T / 2^23."""
    own, accepted = in_order(errors), np.empty(errors.shape[:-1], _TRUTH)
    limits = _one_limit(limit) if type(limit) is int else np.array(limit, _W, ndmin=1).reshape(-1)
    _accept_means(own.ndim, own, limits, accepted)
    return accepted


@functools.lru_cache
def _one_limit(limit: int) -> NDArray[np.uint64]:
    return np.array([limit], _W)


def note_accepted(
    choice: NDArray[np.uint8], accepted: Accepted, errors: Errors, rung: int, fallback: int
) -> None:
    """MOR-001: give the units that are left a rung if it accepts them and they lose nothing.

    All are left to rung 0, whatever `choice` holds.
    """
    own, units = in_order(errors), in_order(accepted)
    _take_rung((own.ndim, units.dtype), choice, units, own, rung, fallback)


@integer_kernel
def accept_smaller_sums(errors, others, accepted):
    """MOR-003: sum <= sum of the yardstick."""
    sums, yardsticks, units = errors.reshape(-1, 3), others.reshape(-1, 3), accepted.reshape(-1)
    for n in range(units.size):
        units[n] = sums[n, 0] <= yardsticks[n, 0]


_accept_smaller_sums = Direct(accept_smaller_sums, reads=2)


def is_not_worse(errors: Errors, yardstick: Errors) -> Accepted:
    """MOR-003: a tie accepts."""
    own, other = in_order(errors), in_order(yardstick)
    accepted = np.empty(errors.shape[:-1], _TRUTH)
    _accept_smaller_sums((own.ndim, other.ndim), own, other, accepted)
    return accepted


def fits_range(errors: Errors, extremes: Extremes, fmt: Format) -> Accepted:
    """MOR-004: amax <= amin * ratio; the product of two binary32 numbers is exact in binary64."""
    check_processor()  # as kernels do that are not called directly
    own, accepted = in_order(errors), np.empty(errors.shape[:-1], _TRUTH)
    ratio = fmt.largest / float(fmt.smallest_normal or 1)
    amax, amin = map(in_order, extremes)
    _accept_ranges((own.ndim, amax.ndim), own, amax, amin, ratio, accepted)
    return accepted


@kernel
def accept_ranges(errors, amax, amin, ratio, accepted):
    """MOR-004: amax <= amin * ratio, or nothing counts."""
    sums, highest, lowest = errors.reshape(-1, 3), amax.reshape(-1), amin.reshape(-1)
    units = accepted.reshape(-1)
    for n in range(units.size):
        most = np.float64(float_of(lowest[n])) * ratio
        units[n] = np.float64(float_of(highest[n])) <= most or sums[n, 1] == _W(0)


_accept_ranges = Direct(accept_ranges, reads=3)


# ---------------------------------------------------------------------- output


@step
def keep_row(x, encode, decode, target, out):
    """MOR-006: a bfloat16 is copied, with all its bits; another number is encoded once."""
    use_full_vectors()
    for i in range(x.size):
        out[i] = x[i] if target is None else encoded(_U(x[i]), target, _U)
    return 0


@step
def render_row(codes, encode, decode, layout, out):
    """QNT-002 and QNT-003 for one row of a strip that holds no NaN."""
    use_full_vectors()
    for i in range(codes.size):
        value = float_of(decoded(_U(codes[i]), layout))
        y = bits_of(restored(value, encode, decode, i))
        out[i] = _U(as_bf16(_U(y & _U(0x7FFFFFFF))) | sign_of_bf16(y))
    return 0


_keep_rows = over_units(keep_row)


@kernel
def keep_part(x, place, out, room, part, bounds, units, target):
    """Write the units of a part that no rung has accepted."""
    _keep_rows(x, place, out, room, part, bounds, units, target)


_render_rows = over_units(render_row)


@kernel
def render_part(codes, out, room, part, bounds, units, layout):
    """Write the units of a part that a rung has accepted."""
    _render_rows(codes, room, out, room, part, bounds, units, layout)


def keep(
    numbers: Numbers,
    partition: Partition,
    choice: NDArray[np.uint8],
    fallback: int,
    out: Bits,
    threads: int | None,
) -> None:
    """Write the units that stay bfloat16 (MOR-006)."""
    if fallback not in choice.tobytes():
        return
    columns = partition.columns
    target = None if numbers.is_bf16 else _to_bf16()
    room = Place(0, 0, columns)

    def keep_one(part: Part) -> None:
        units, bounds = units_in(part, partition, choice, fallback)
        keep_part(*words_of(numbers, columns, part), out, room, part, bounds, units, target)

    for_each_part(keep_one, partition.rows, partition.columns, threads)


@functools.cache
def _to_bf16() -> Any:
    return target_for(_BF16, "rne", SpecialCases(overflow="ieee"), BINARY32)


def render(
    codes: Bits,
    fmt: ElementFormat,
    scales: TileScales,
    partition: Partition,
    choice: NDArray[np.uint8],
    rung: int,
    out: Bits,
    threads: int | None,
) -> None:
    """Write the units that a rung has accepted, as bfloat16 (QNT-003)."""
    if rung not in choice.tobytes():
        return
    layout, room = layout_of_elements(fmt), Place(0, 0, partition.columns)

    def render_one(part: Part) -> None:
        units, bounds = units_in(part, partition, choice, rung, scales)
        render_part(codes, out, room, part, bounds, units, layout)

    for_each_part(render_one, partition.rows, partition.columns, threads)
