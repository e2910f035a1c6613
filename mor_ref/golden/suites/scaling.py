"""Single steps: scales, quantization, errors and decisions, each on its own."""

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from mor_ref.catalogue import formats
from mor_ref.exact import arithmetic
from mor_ref.format import Format
from mor_ref.golden.bits import f32_bits, numbers_of
from mor_ref.golden.inputs import SPECIALS, Bits, amaxes, bell, edges_of, values_of, wide
from mor_ref.golden.suite import Case, Size, Suite, expected, given
from mor_ref.recipes import SCALINGS, MeanRelativeError, Scaling

SCALED = ("e4m3", "e5m2", "e2m1", "e2m3", "e3m2")


def pairs(kind: Scaling) -> tuple[Bits, Bits]:
    """Amaxes of groups and of blocks in them, also a step to each side of equal mantissas."""
    edges = amaxes()
    if kind != "gam":
        return edges, edges
    groups, blocks = [], []
    some = edges[:: max(1, edges.size // 40)].tolist()
    for group in some:
        near = [
            group - 1,
            group,
            *((group & 0x7FFFFF) + (e << 23) + k for e in (1, 126, 127) for k in (-1, 0, 1)),
        ]
        for block in {*some, *near}:
            if 0 <= block <= group:
                groups.append(group)
                blocks.append(block)
    return np.array(groups, np.uint32), np.array(blocks, np.uint32)


def _scale_cases(_: Size) -> Iterator[Case]:
    for name in SCALED:
        for kind in SCALINGS:
            groups, blocks = pairs(kind)
            yield Case(
                f"{name}.{kind}",
                {"format": name, "scaling": kind},
                {"group_amax": groups, "block_amax": blocks},
            )


def _quantize_cases(size: Size) -> Iterator[Case]:
    for name in SCALED:
        x, scale = _scaled_inputs(formats[name], size)
        yield Case(name, {"format": name}, {"x": x, "scale": scale})


def _scaled_inputs(fmt: Format, size: Size) -> tuple[Bits, Bits]:
    """Numbers that a scale brings next to each edge of a format, and scales at their extremes."""
    edges = [bits for bits in edges_of(fmt).tolist() if not bits >> 31]
    scales = [1.0, 0.75, 149.33332824707031, 1.0606060028076172, 2.0**127, 2.0**-126, 3.0e-38]
    xs: list[int] = []
    found: list[int] = []
    for number in (fmt.largest / 3.0, fmt.largest / 2.9999, *scales):
        scale = arithmetic.rn32(Fraction(number))
        stride = 1 if scale == 1 else max(1, len(edges) // 120)  # all that there are once
        for edge in numbers_of(np.array(edges[::stride], np.uint32), "f32"):
            if math.isfinite(edge):
                bits = f32_bits(arithmetic.quotient(edge, scale))
                above = min(bits + 1, 0x7F7FFFFF) | 0x80000000
                near = (max(bits - 1, 0), bits, bits | 0x80000000, above)
                xs += near
                found += [f32_bits(scale)] * len(near)
        for bits in _rounding_to_ties(fmt, scale):
            xs += [bits, bits | 0x80000000]
            found += [f32_bits(scale)] * 2
        xs += [*SPECIALS, *bell(32, size.seed, 40).tolist()]
        found += [f32_bits(scale)] * (len(SPECIALS) + 32)
    return np.array(xs, np.uint32), np.array(found, np.uint32)


def _rounding_to_ties(fmt: Format, scale: float) -> list[int]:
    """Numbers whose product with a scale is no tie of a format, but becomes one by rounding."""
    values = values_of(fmt)
    found = []
    for tie in ((a + b) / 2 for a, b in itertools.pairwise(values)):
        near = f32_bits(arithmetic.rn32(tie / Fraction(scale)))
        around = [bits for bits in (near - 1, near, near + 1) if 0 < bits < 0x7F800000]
        for bits, x in zip(around, numbers_of(np.array(around, np.uint32), "f32"), strict=True):
            product = Fraction(x) * Fraction(scale)
            if product != tie and arithmetic.rn32(product) == tie:
                found.append(bits)
    return found


def _error_cases(size: Size) -> Iterator[Case]:
    x, y = (np.array(column, np.uint32) for column in zip(*_error_inputs(size), strict=True))
    yield Case("all", {}, {"x": x, "y": y})


def _error_inputs(size: Size) -> list[tuple[int, int]]:
    """Finite x that are not zero, and y near them, at ties of u, far away, and infinite."""
    random = (*wide(400, size.seed, 50), *bell(400, size.seed, 51))
    x = [b & 0x7F7FFFFF or 1 for b in random]
    pairs = []
    for k, bits in enumerate(map(int, x)):
        off = (1 << (k % 23)) * (1 if k % 2 else -1)
        pairs.append((bits, min(max(bits + off, 0), 0x7F800000)))
        pairs.append((bits | 0x80000000, min(bits + (off >> 1), 0x7F7FFFFF) | 0x80000000))
    one = 0x3F800000
    for k in range(64):  # d at and next to half a step of 2^-23
        pairs += [(one, one + k), (one, one - k), (one | 1, one - 2 * k), (0x40400000, one + k)]
    pairs += [(1, 0), (1, 2), (3, 2), (one, 0x80000000 | one), (0x7F7FFFFF, 0x7F800000), (1, one)]
    return [(a, b) for a, b in pairs if a & 0x7FFFFFFF and a & 0x7F800000 != 0x7F800000 and b >= 0]


def _decision_cases(_: Size) -> Iterator[Case]:
    yield _mean_case()
    yield _tie_case()
    for name in ("e5m2", "e4m3", "bf16"):
        yield _range_case(name)


def _mean_case() -> Case:
    rows = []
    for written in ("0.045", "0.05", "0.2", "1", "0.00000012"):
        limit = MeanRelativeError(written).limit
        for nonzero in (0, 1, 2, 255, 1 << 14, (1 << 32) + 1, 1 << 40):
            at = limit * nonzero
            for total in sorted({0, max(at - 1, 0), at, at + 1, nonzero << 23}):
                rows += [(total, nonzero, lost, limit, 0, 0, 0) for lost in (0, 1)]
    return _decisions("mean_relative_error", {"metric": "mean_relative_error"}, rows)


def _tie_case() -> Case:
    rows = []
    for yardstick in (0, 1, 1 << 23, (1 << 32) + 5, (1 << 63) - 1):
        for total in sorted({0, max(yardstick - 1, 0), yardstick, yardstick + 1}):
            rows += [(total, 1, lost, 0, yardstick, 0, 0) for lost in (0, 1)]
    return _decisions("not_worse_than", {"metric": "not_worse_than"}, rows)


def _range_case(name: str) -> Case:
    fmt = formats[name]
    ratio = Fraction(fmt.largest) / Fraction(fmt.smallest_normal or 1)
    rows = [(0, 0, 0, 0, 0, 0, 0)]
    for low in amaxes().tolist():
        amin = numbers_of(np.array([low], np.uint32), "f32")[0]
        at = f32_bits(arithmetic.rn32(Fraction(amin) * ratio))
        for high in sorted({low, max(low, at - 1), max(low, at), max(low, at + 1)}):
            if low and high < 0x7F800000:
                rows += [(0, 2, lost, 0, 0, high, low) for lost in (0, 1)]
    return _decisions(f"fits_range.{name}", {"metric": "fits_range", "format": name}, rows)


def _decisions(name: str, parameters: dict[str, str], rows: Sequence[tuple[int, ...]]) -> Case:
    columns = list(zip(*rows, strict=True))
    names = ("sum", "nonzero", "nonfinite", "limit", "yardstick_sum", "amax", "amin")
    kinds = ("u8", "u8", "u8", "u4", "u8", "u4", "u4")
    arrays = {
        field: np.array(column, kind)
        for field, column, kind in zip(names, columns, kinds, strict=True)
    }
    return Case(name, parameters, arrays)


_GAM = tuple(f"GAM-{k:03}" for k in range(2, 6))
SUITES = (
    Suite(
        "scale_steps",
        "The scale of a block from its amax and its group's",
        "scale",
        tuple(f"THM-{k:03}" for k in range(1, 6)),
        (
            given("group_amax", "f32", "the amax of the group"),
            given("block_amax", "f32", "the amax of the block"),
            expected("mantissa", "u32", "the shared mantissa; 0 but under gam", "GAM-001"),
            expected("exponent", "e8m0", "the stored exponent; 0 under fp32", "SCL-005", *_GAM),
            expected(
                "scale",
                "f32",
                "the scale that numbers are multiplied by",
                "SCL-002",
                "SCL-004",
                "GAM-005",
            ),
        ),
        _scale_cases,
    ),
    Suite(
        "quantize_steps",
        "One number, scaled, encoded and restored",
        "quantize_element",
        (),
        (
            given("x", "f32", "the number"),
            given("scale", "f32", "the scale of its block"),
            expected("xs", "f32", "the product of the two", "QNT-001"),
            expected("code", "format", "its code", "QNT-001", "ENC-003", "ENC-007"),
            expected("y", "f32", "what the code stands for, divided by the scale", "QNT-002"),
        ),
        _quantize_cases,
    ),
    Suite(
        "error_steps",
        "The relative error of one number",
        "error_term",
        (),
        (
            given("x", "f32", "the number, finite and not zero"),
            given("y", "f32", "what it has become"),
            expected("d", "f32", "their distance", "ERR-001"),
            expected("r", "f32", "d / |x|, at most 1", "ERR-001"),
            expected("u", "u32", "r * 2^23 as an integer", "ERR-001"),
        ),
        _error_cases,
    ),
    Suite(
        "decisions",
        "Acceptance from the sums of a unit",
        "decide",
        ("ERR-005",),
        (
            given("sum", "u64", "the error sum"),
            given("nonzero", "u64", "how many elements count"),
            given("nonfinite", "u64", "how many elements are lost"),
            given("limit", "u32", "T of mean_relative_error"),
            given("yardstick_sum", "u64", "the error sum under the yardstick"),
            given("amax", "f32", "the largest magnitude"),
            given("amin", "f32", "the smallest magnitude but zero"),
            expected(
                "accepted",
                "u8",
                "1 if the metric of the parameters accepts",
                *(f"MOR-{k:03}" for k in range(1, 5)),
            ),
        ),
        _decision_cases,
    ),
)
