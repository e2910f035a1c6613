"""Single steps: scales, quantization, errors and decisions, each on its own."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from mor_ref.catalogue import formats
from mor_ref.exact import arithmetic, quantization
from mor_ref.exact.policies import accepts
from mor_ref.exact.quantization import ErrorSum
from mor_ref.exact.scaling import group_mantissa, scale_of_block
from mor_ref.format import Format
from mor_ref.golden.bits import codes_array, f32_array, f32_bits, numbers_of
from mor_ref.golden.inputs import SPECIALS, Bits, amaxes, bell, edges_of, wide
from mor_ref.golden.suite import Case, Size, Suite, expected, given
from mor_ref.recipes import SCALINGS, FitsRange, MeanRelativeError, NotWorseThan, Scaling

SCALED = ("e4m3", "e5m2", "e2m1", "e2m3", "e3m2")


def _pairs(kind: Scaling) -> tuple[Bits, Bits]:
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
        largest = formats[name].largest
        for kind in SCALINGS:
            groups, blocks = _pairs(kind)
            shared = [
                group_mantissa(largest, a) if kind == "gam" else 0
                for a in numbers_of(groups, "f32")
            ]
            found = [
                scale_of_block(kind, largest, a, m)
                for a, m in zip(numbers_of(blocks, "f32"), shared, strict=True)
            ]
            codes = [0 if scale.exponent_code is None else scale.exponent_code for scale in found]
            yield Case(
                f"{name}.{kind}",
                {"format": name, "scaling": kind},
                {
                    "group_amax": groups,
                    "block_amax": blocks,
                    "mantissa": np.array(shared, np.uint32),
                    "exponent": np.array(codes, np.uint8),
                    "scale": f32_array(scale.value for scale in found),
                },
            )


def _quantize_cases(size: Size) -> Iterator[Case]:
    for name in SCALED:
        fmt = formats[name]
        x, scale = _scaled_inputs(fmt, size)
        elements = [
            quantization.quantize_element(a, b, fmt)
            for a, b in zip(numbers_of(x, "f32"), numbers_of(scale, "f32"), strict=True)
        ]
        yield Case(
            name,
            {"format": name},
            {
                "x": x,
                "scale": scale,
                "xs": f32_array(e.xs for e in elements),
                "code": codes_array([e.code for e in elements], fmt),
                "y": f32_array(e.y for e in elements),
            },
        )


def _scaled_inputs(fmt: Format, size: Size) -> tuple[Bits, Bits]:
    """Numbers that a scale brings next to each edge of a format, and scales at their extremes."""
    edges = [bits for bits in edges_of(fmt).tolist() if not bits >> 31]
    scales = [1.0, 0.75, 149.33332824707031, 1.0606060028076172, 2.0**127, 2.0**-126, 3.0e-38]
    xs, found = [], []
    for number in (fmt.largest / 3.0, fmt.largest / 2.9999, *scales):
        scale = arithmetic.rn32(Fraction(number))
        for edge in numbers_of(np.array(edges[:: max(1, len(edges) // 120)], np.uint32), "f32"):
            if edge - edge == 0:
                bits = f32_bits(arithmetic.quotient(edge, scale))
                for near in (max(bits - 1, 0), bits, min(bits + 1, 0x7F7FFFFF) | 0x80000000):
                    xs.append(near)
                    found.append(f32_bits(scale))
        xs += [*SPECIALS, *bell(32 * size.factor, size.seed, 40).tolist()]
        found += [f32_bits(scale)] * (len(SPECIALS) + 32 * size.factor)
    return np.array(xs, np.uint32), np.array(found, np.uint32)


def _error_cases(size: Size) -> Iterator[Case]:
    pairs = _error_inputs(size)
    x, y = (np.array(column, np.uint32) for column in zip(*pairs, strict=True))
    terms = [
        quantization.error_term(a, b)
        for a, b in zip(numbers_of(x, "f32"), numbers_of(y, "f32"), strict=True)
    ]
    yield Case(
        "all",
        {},
        {
            "x": x,
            "y": y,
            "d": f32_array(t.d for t in terms),
            "r": f32_array(t.r for t in terms),
            "u": np.array([t.u for t in terms], np.uint32),
        },
    )


def _error_inputs(size: Size) -> list[tuple[int, int]]:
    """Finite x that are not zero, and y near them, at ties of u, far away, and infinite."""
    count = 400 * size.factor
    x = [b & 0x7F7FFFFF or 1 for b in (*wide(count, size.seed, 50), *bell(count, size.seed, 51))]
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
                for nonfinite in (0, 1):
                    unit = ErrorSum(total, nonzero, nonfinite)
                    taken = nonfinite == 0 and accepts(
                        MeanRelativeError(written), unit, {}, 1.0, 1.0
                    )
                    rows.append((total, nonzero, nonfinite, limit, 0, 0, 0, taken))
    return _decisions("mean_relative_error", {"metric": "mean_relative_error"}, rows)


def _tie_case() -> Case:
    rows = []
    for yardstick in (0, 1, 1 << 23, (1 << 63) - 1):
        for total in sorted({0, max(yardstick - 1, 0), yardstick, yardstick + 1}):
            unit = ErrorSum(total, 1, 0)
            taken = accepts(
                NotWorseThan("e5m2"), unit, {"e5m2": ErrorSum(yardstick, 1, 0)}, 1.0, 1.0
            )
            rows.append((total, 1, 0, 0, yardstick, 0, 0, taken))
    return _decisions("not_worse_than", {"metric": "not_worse_than"}, rows)


def _range_case(name: str) -> Case:
    fmt = formats[name]
    ratio = Fraction(fmt.largest) / Fraction(fmt.smallest_normal or 1)
    rows = [(0, 0, 0, 0, 0, 0, 0, True)]
    for low in amaxes().tolist():
        amin = numbers_of(np.array([low], np.uint32), "f32")[0]
        at = f32_bits(arithmetic.rn32(Fraction(amin) * ratio))
        for high in {low, max(low, at - 1), max(low, at), max(low, at + 1)}:
            if low and high < 0x7F800000:
                amax = numbers_of(np.array([high], np.uint32), "f32")[0]
                taken = accepts(FitsRange(fmt), ErrorSum(0, 2, 0), {}, amax, amin)
                rows.append((0, 2, 0, 0, 0, high, low, taken))
    return _decisions(f"fits_range.{name}", {"metric": "fits_range", "format": name}, rows)


def _decisions(name: str, parameters: dict[str, str], rows: Sequence[tuple[int, ...]]) -> Case:
    columns = list(zip(*rows, strict=True))
    names = ("sum", "nonzero", "nonfinite", "limit", "yardstick_sum", "amax", "amin", "accepted")
    kinds = ("u8", "u8", "u8", "u4", "u8", "u4", "u4", "u1")
    arrays = {
        field: np.array(column, kind)
        for field, column, kind in zip(names, columns, kinds, strict=True)
    }
    return Case(name, parameters, arrays)


SUITES = (
    Suite(
        "scale_steps",
        "The scale of a block from its amax and its group's",
        "scale",
        (
            "SCL-002",
            "SCL-003",
            "SCL-004",
            "SCL-005",
            *(f"GAM-{k:03}" for k in range(1, 6)),
            *(f"THM-{k:03}" for k in range(1, 6)),
        ),
        (
            given("group_amax", "f32", "the amax of the group"),
            given("block_amax", "f32", "the amax of the block"),
            expected("mantissa", "u32", "the shared mantissa of 23 bits; 0 but under gam"),
            expected("exponent", "e8m0", "the stored exponent; 0 under fp32"),
            expected("scale", "f32", "the scale that numbers are multiplied by"),
        ),
        _scale_cases,
    ),
    Suite(
        "quantize_steps",
        "One number, scaled, encoded and restored",
        "quantize_element",
        ("QNT-001", "QNT-002"),
        (
            given("x", "f32", "the number"),
            given("scale", "f32", "the scale of its block"),
            expected("xs", "f32", "the product of the two"),
            expected("code", "format", "its code"),
            expected("y", "f32", "what the code stands for, divided by the scale"),
        ),
        _quantize_cases,
    ),
    Suite(
        "error_steps",
        "The relative error of one number",
        "error_term",
        ("ERR-001",),
        (
            given("x", "f32", "the number, finite and not zero"),
            given("y", "f32", "what it has become"),
            expected("d", "f32", "their distance"),
            expected("r", "f32", "d / |x|, at most 1"),
            expected("u", "u32", "r * 2^23 as an integer"),
        ),
        _error_cases,
    ),
    Suite(
        "decisions",
        "Acceptance from the sums of a unit",
        "decide",
        ("MOR-001", "MOR-002", "MOR-003", "MOR-004", "ERR-005"),
        (
            given("sum", "u64", "the error sum"),
            given("nonzero", "u64", "how many elements count"),
            given("nonfinite", "u64", "how many elements are lost"),
            given("limit", "u32", "T of mean_relative_error"),
            given("yardstick_sum", "u64", "the error sum under the yardstick"),
            given("amax", "f32", "the largest magnitude"),
            given("amin", "f32", "the smallest magnitude but zero"),
            expected("accepted", "u8", "1 if the metric of the parameters accepts"),
        ),
        _decision_cases,
    ),
)
