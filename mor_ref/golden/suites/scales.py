"""Single steps: scales, quantization and errors, each on its own."""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.scales import SCALINGS, Scaling
from mor_ref.exact import arithmetic
from mor_ref.golden.inputs.edges import SPECIALS, Bits, amaxes, bell, edges_of, values_of, wide
from mor_ref.golden.inputs.thresholds import (
    BINADES,
    LOGARITHMS,
    around,
    found_pairs_of_gam,
    hard_amaxes,
    pairs_of_gam,
)
from mor_ref.golden.model.suite import Case, Size, Suite, expected, given
from mor_ref.operations.bits import f32_bits, numbers_of
from mor_ref.operations.random_numbers import SIGNIFICANDS
from mor_ref.operations.random_words import random_words

SCALED = ("e4m3", "e5m2", "e2m1", "e2m3", "e3m2")


_TOPS = (0x7F333333, 0x7F4CCCCD, 0xFF7FFFFF)


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
            groups, blocks = (
                np.concatenate(sides)
                for sides in zip(pairs(kind), _near_turns(formats[name], kind), strict=True)
            )
            yield Case(
                f"{name}.{kind}",
                {"format": name, "scaling": kind},
                {"group_amax": groups, "block_amax": blocks},
            )


def _near_turns(fmt: Format, kind: Scaling) -> tuple[Bits, Bits]:
    """Amaxes of groups and blocks, next to which scales turn or are hard to round."""
    exponents = around(Fraction(fmt.largest), (*BINADES, *LOGARITHMS))
    turns = np.array([*exponents, *hard_amaxes(fmt)], np.uint32)
    if kind != "gam":
        return turns, turns
    pairs_near = (pairs_of_gam(fmt), found_pairs_of_gam(), (turns, turns))
    groups, blocks = (np.concatenate(side) for side in zip(*pairs_near, strict=True))
    return groups, blocks


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
    for bits, scale in _with_extreme_scales(fmt):
        xs.append(bits)
        found.append(f32_bits(scale))
    return np.array(xs, np.uint32), np.array(found, np.uint32)


def _with_extreme_scales(fmt: Format) -> Iterator[tuple[int, float]]:
    """Quotients of values and scales, which or whose reciprocals are subnormal or nearly so."""
    values = [float(v) for v in values_of(fmt)[1:]]
    exponents = (*range(100, 128, 2), 127, -126, -124, -118, -110)
    for n, exponent in enumerate(exponents):
        for k in range(3):
            significand = SIGNIFICANDS[(5 * n + 7 * k + 4) % len(SIGNIFICANDS)]
            scale = arithmetic.rn32(Fraction(significand) * Fraction(2) ** (exponent - 23))
            for value in values[(n + k) % 7 :: max(1, len(values) // 14)]:
                x = arithmetic.quotient(value, scale)
                if math.isfinite(x):
                    yield f32_bits(x), scale
            for bits in _TOPS if exponent < 0 else ():
                yield bits, scale


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
    pairs += _far_apart(size)
    pairs += [(b, b + 1) for b in (0x3AFFFFFF, 0x3B7FFFFF, 0x10FFFFFF, 0x607FFFFF)]
    pairs += [(1, 0), (1, 2), (3, 2), (one, 0x80000000 | one), (0x7F7FFFFF, 0x7F800000), (1, one)]
    return [(a, b) for a, b in pairs if a & 0x7FFFFFFF and a & 0x7F800000 != 0x7F800000 and b >= 0]


def _far_apart(size: Size) -> Iterator[tuple[int, int]]:
    """Pairs whose distance takes more than 24 bits: y is less than half of x, or of other sign."""
    for k, word in enumerate(random_words(480, size.seed, 52).tolist()):
        field = 127 + (-90, 0, 100)[k % 3]
        below = field - 1 - (word >> 46) % 30
        signs = (0, 0), (1 << 31, 1 << 31), (0, 1 << 31)
        x_sign, y_sign = signs[(word >> 56) % 3]
        yield (
            field << 23 | word & 0x7FFFFF | x_sign,
            below << 23 | word >> 23 & 0x7FFFFF | y_sign,
        )


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
)
