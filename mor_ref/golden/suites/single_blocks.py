"""Single blocks, each a row, with everything that lies between its numbers and their codes."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.definitions.scales import SCALINGS, Scaling
from mor_ref.exact import arithmetic
from mor_ref.golden.inputs.edges import Bits, amaxes, bell, edges_of, values_of
from mor_ref.golden.inputs.extremes import TOPS
from mor_ref.golden.inputs.found_tiles import found_tiles
from mor_ref.golden.inputs.thresholds import (
    BINADES,
    LOGARITHMS,
    SOME_BINADES,
    SOME_STEPS,
    around,
    found_pairs_of_gam,
    hard_amaxes,
    pairs_of_gam,
    pairs_of_tiles,
    turn_of_mx,
)
from mor_ref.golden.model.suite import Case, Field, Size, Suite, expected, given
from mor_ref.golden.suites.nvfp4 import ELEMENTS, SCALE_RULES_OF, boundaries, underflowing
from mor_ref.golden.suites.scales import pairs
from mor_ref.golden.suites.tensors import ELEMENT_FIELDS, SCALE_FIELDS, sum_fields
from mor_ref.operations.bits import f32_bits, numbers_of
from mor_ref.operations.random_words import random_words

TILE = 16
_WIDER = 40  # than a warp
_HUGE = np.array([0x7F7FFFFF, *[0x7F000000] * (TILE - 1)], np.uint32)  # some y are infinite
_ONE_AND_A_HALF = 0x3FC00000
_LAST = (0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x7F800000, 0xFF800000, 0x7FC00000)


def _filled(fmt: Format, amaxes_of_blocks: Bits, width: int, size: Size, stream: int) -> Bits:
    """Blocks of these amaxes, whose other numbers fall on and next to the edges of a format."""
    edges = [bits for bits in edges_of(fmt).tolist() if 0 < bits < f32_bits(fmt.largest)]
    points = numbers_of(np.array(edges, np.uint32), "f32")
    picks = random_words(amaxes_of_blocks.size * width, size.seed, stream).tolist()
    blocks = []
    for n, amax in enumerate(numbers_of(amaxes_of_blocks, "f32")):
        unit = arithmetic.quotient(amax, fmt.largest)
        row = []
        for k in range(width):
            pick = picks[n * width + k]
            bits = f32_bits(arithmetic.product(points[pick % len(points)], unit))
            bits = min(max(bits + (pick >> 20) % 3 - 1, 0), int(amaxes_of_blocks[n]))
            row.append(bits | (pick >> 30 & 1) << 31)
        row[n % width] = int(amaxes_of_blocks[n]) | (n & 1) << 31
        blocks.append(row)
    return np.array(blocks, np.uint32)


def _more(size: Size) -> int:
    """How many times the spread blocks are made, so that they outnumber those at thresholds."""
    return 5 * size.factor - 4


def _with_specials(blocks: Bits) -> Bits:
    """Blocks of which every eighth has a number that is none, a zero or the smallest number."""
    for n in range(7, len(blocks), 8):
        blocks[n, (n + 5) % blocks.shape[1]] = _LAST[n // 8 % len(_LAST)]
    return blocks


def _pairs_of_amaxes(count: int) -> tuple[Bits, Bits]:
    """Amaxes of groups and of blocks in them, spread over those of the single steps."""
    groups, blocks = pairs("gam")
    chosen = np.linspace(0, groups.size - 1, count).astype(int)
    return groups[chosen], blocks[chosen]


def _quantize_cases(size: Size) -> Iterator[Case]:
    for k, name in enumerate(("e4m3", "e5m2", "e2m1", "e2m3", "e3m2")):
        groups, blocks = (
            np.append(amaxes, np.uint32(_ONE_AND_A_HALF))
            for amaxes in _pairs_of_amaxes(64 * _more(size))
        )
        x = _with_specials(_filled(formats[name], blocks, TILE, size, 120 + k))
        extremes, of_groups = _extremes(x[20])
        x = np.concatenate([x, [_HUGE], extremes])
        groups = np.concatenate([groups, _HUGE[:1], of_groups])
        for kind in SCALINGS:
            whole, near = _near_turns(formats[name], kind)
            turning = _filled(formats[name], near, TILE, size, 150 + k)
            yield Case(
                f"{name}.{kind}",
                {"format": name, "scaling": kind, "source": "f32"},
                {"x": np.concatenate([x, turning]), "group_amax": np.append(groups, whole)},
            )
            wide = np.roll(_filled(formats[name], blocks[5::11], _WIDER, size, 190 + k), 33, axis=1)
            yield Case(
                f"{name}.{kind}.{_WIDER}",
                {"format": name, "scaling": kind, "source": "f32"},
                {"x": wide, "group_amax": groups[: blocks.size][5::11]},
            )


def _extremes(usual: Bits) -> tuple[Bits, Bits]:
    """Blocks with a NaN or infinity at their ends, next to the largest numbers, and tiny ones."""
    blocks = []
    for place, bits in ((0, 0x7FC00000), (0, 0xFFFFFFFF), (0, 0x7F800000), (15, 0x7FC00000),
                        (1, 0x7FC00000)):  # fmt: skip
        blocks.append(usual.copy())
        blocks[-1][place] = bits
    for top in (*TOPS, 0xFF7F8000):
        blocks.append(_HUGE - np.uint32(1 << 24))
        blocks[-1][3] = top
    for tiny in (0x005A827A, 0x00100001, 0x00000003):
        blocks.append(np.arange(TILE, dtype=np.uint32) * np.uint32(tiny // TILE))
        blocks[-1][9] = tiny
    x = np.array(blocks, np.uint32)
    magnitudes = x & np.uint32(0x7FFFFFFF)
    return x, np.where(magnitudes < 0x7F800000, magnitudes, 0).max(axis=1).astype(np.uint32)


def _near_turns(fmt: Format, kind: Scaling) -> tuple[Bits, Bits]:
    """Amaxes of groups and blocks, next to which scales of that kind turn."""
    largest = Fraction(fmt.largest)
    if kind == "gam":
        groups, blocks = pairs_of_gam(fmt)
        turns = np.array(around(largest, SOME_BINADES, SOME_STEPS), np.uint32)
        found_in, found = found_pairs_of_gam()
        groups = np.concatenate([groups[::9], turns, found_in])
        return groups, np.concatenate([blocks[::9], turns, found])
    exponents = around(largest, (*BINADES, *LOGARITHMS))
    blocks = np.array(exponents if kind == "e8m0" else hard_amaxes(fmt), np.uint32)
    return blocks, blocks


def _nvfp4_cases(size: Size) -> Iterator[Case]:
    count = 64 * _more(size)
    groups, blocks = _pairs_of_amaxes(count)
    x = _with_specials(_filled(formats["e2m1"], blocks, TILE, size, 130))
    usual = bell(count * TILE, size.seed, 131).reshape(-1, TILE)
    # 1.5 times the scale of this one rounds to 480, above the largest.
    high = np.minimum(bell(TILE, size.seed, 172) & np.uint32(0x7FFFFFFF), np.uint32(0x3F000000))
    high[3] = 0x3F333333
    near, also_near = (tensor.x for tensor in boundaries(size))
    x = np.concatenate([x, usual, [high, near[8], also_near[13]]])
    rest = np.array([0x3F800000, near[0, 0], also_near[0, 0]], np.uint32)
    largest = np.concatenate([groups, np.full(count, 0x40400000 + 0x1234, np.uint32), rest])
    is_nan = ((x & 0x7FFFFFFF) > 0x7F800000).any(axis=1)
    is_infinite = ((x & 0x7FFFFFFF) == 0x7F800000).any(axis=1)
    amax = np.where(is_infinite, np.uint32(0x7F800000), largest)
    for name, profile in PROFILES.items():
        usable = ~is_nan if SCALE_RULES_OF[profile.rule] > "NVF-006" else np.full(len(x), True)
        whole, near = pairs_of_tiles(Fraction(profile.range) / 6)
        turning = _filled(formats["e2m1"], near, TILE, size, 160)
        found_in, found = (
            np.concatenate(side)
            for side in zip(found_tiles(name, "blocks"), found_tiles(name, "tensors"), strict=True)
        )
        yield Case(
            name,
            {"profile": name, "source": "f32"},
            {
                "x": np.concatenate([x[usable], turning, found]),
                "amax": np.concatenate([amax[usable], whole, found_in]),
            },
        )


def _mx_cases(size: Size) -> Iterator[Case]:
    edges = amaxes()
    blocks = edges[np.linspace(0, edges.size - 1, 40 * _more(size)).astype(int)]
    halves = [f32_bits(arithmetic.rn32(v)) for v in values_of(formats["e2m3"])[1:24]]
    blocks = np.concatenate([blocks, np.array(halves, np.uint32) + np.uint32(60 << 23)])
    for k, name in enumerate(ELEMENTS):
        fmt = formats[name]
        usual = _with_specials(_filled(fmt, blocks, 32, size, 140 + k))
        for n, rule in enumerate(SCALE_RULES):
            near = np.array(around(turn_of_mx(fmt, rule)), np.uint32)
            turning = _filled(fmt, near, 32, size, 180 + 4 * k + n)
            x = np.concatenate([usual, _turning_blocks(fmt), turning])
            yield Case(
                f"{name}.{rule}",
                {"format": name, "scale_rule": rule, "source": "f32"},
                {"x": np.concatenate([x, underflowing(fmt)]) if rule == "rceil" else x},
            )


def _turning_blocks(fmt: Format) -> Bits:
    """Blocks whose amax is where a scale rule turns, and one of ties under the scale 1."""
    largest, width = Fraction(fmt.largest), fmt.mantissa_bits - (fmt.sign == "twos-complement")
    amaxes_of_blocks = (
        f32_bits(fmt.largest) + 1,
        f32_bits(2 - 2.0 ** -(width + 1)) - 1,
        0x3F800001,
        f32_bits(arithmetic.rn32(largest * Fraction(3, 2) / 2**127)),
        0x007FFFFF,
        0x00400000,
        0x007F0000,
        0x007F7FFF,
        0x007F8000,
        0x3FFE8000,
    )
    values = values_of(fmt)
    ties = [float(a + b) / 2 for a, b in itertools.pairwise(values[:17])]
    top = 2.0 ** (math.frexp(fmt.largest)[1] - 1)
    signed = [x * sign for sign in (1, -1) for x in (ties * 32)[:16]]
    rows = [[amax, *[amax >> 1] * 31] for amax in amaxes_of_blocks]
    return np.array([*rows, [f32_bits(x) for x in (top, *signed[1:])]], np.uint32)


def _plain(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """The same fields without views: a block has no columns to turn."""
    return tuple(replace(field, views=()) for field in fields)


_PROFILE_RULES = sorted(set(SCALE_RULES_OF.values()))
SUITES = (
    Suite(
        "quantize_blocks",
        "Single blocks quantized with scales of every kind",
        "quantize_block",
        (),
        (
            given("x", "f32", "the numbers of each block"),
            given("group_amax", "f32", "the amax of the group of each"),
            *_plain((*SCALE_FIELDS, *ELEMENT_FIELDS, *sum_fields())),
        ),
        _quantize_cases,
    ),
    Suite(
        "nvfp4_blocks",
        "Single tiles in NVFP4, a case for each profile",
        "nvfp4_block",
        ("NVF-002", "NVF-003"),
        (
            given("x", "f32", "the numbers of each tile"),
            given("amax", "f32", "the amax of the tensor of each"),
            expected("block_amax", "f32", "of the tile", "NVF-002"),
            expected("global_encode_scale", "f32", "of the tensor", "NVF-003"),
            expected("global_decode_scale", "f32", "of the tensor", "NVF-003"),
            *(
                expected(f"{name}.{field}", fmt, f"{meaning} that makes bamax {name}", "NVF-006")
                for name in ("six", "four")
                for field, fmt, meaning in (
                    ("block_scale", "e4m3", "the scale of the candidate"),
                    ("code", "e2m1", "the codes of the candidate"),
                    ("error", "f32", "the error of the candidate"),
                )
            ),
            expected("block_scale", "e4m3", "the stored scale", "NVF-002", *_PROFILE_RULES),
            expected("encode_scale", "f32", "what numbers are multiplied by", *_PROFILE_RULES),
            expected("decode_scale", "f32", "what codes are multiplied by", *_PROFILE_RULES),
            *_plain(
                (
                    expected("xs", "f32", "each number under the scales", "NVF-010"),
                    expected("code", "e2m1", "the codes", "NVF-010"),
                    expected("y", "f32", "what they stand for", "NVF-010"),
                )
            ),
        ),
        _nvfp4_cases,
    ),
    Suite(
        "mx_blocks",
        "Single blocks in MX",
        "mx_block",
        ("MXS-001",),
        (
            given("x", "f32", "the numbers of each block"),
            expected("scale", "e8m0", "the stored scale", *(f"MXS-{k:03}" for k in range(2, 7))),
            expected("xs", "f32", "each number under the scale", "MXS-007"),
            expected("code", "format", "the codes", "MXS-007"),
            expected("y", "f32", "what they stand for", "MXS-008"),
        ),
        _mx_cases,
    ),
)
