"""NVFP4 in each of its profiles, and MX under each of its rules."""

import functools
import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from mor_ref.block_recipes import PROFILES, SCALE_RULES, Nvfp4Profile, ScaleRule
from mor_ref.catalogue import as_format
from mor_ref.exact.arithmetic import rn32
from mor_ref.format import Format
from mor_ref.golden.bits import f32_array, f32_bits, numbers_of
from mor_ref.golden.inputs import (
    Bits,
    amaxes,
    bell,
    edges_of,
    narrowed,
    random_words,
    to_bf16,
    values_of,
)
from mor_ref.golden.suite import Case, Size, Suite, expected, given
from mor_ref.golden.suites.found_narrow import found_cases, found_in_sources
from mor_ref.golden.suites.found_tiles import found_squares, found_tensors
from mor_ref.golden.suites.tensors import Tensor, tensors
from mor_ref.golden.suites.thresholds import SOME_BINADES, around, turn_of_mx

ELEMENTS = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "int8_mx")


def _ladder(size: Size) -> Iterator[Tensor]:
    """Blocks whose largest numbers are edges, in tensors whose largest is larger or huge."""
    edges = amaxes()
    for name, top in (("near", 0x3F9E3779), ("far", 0x7F7FFFFF)):
        chosen = edges[edges <= top][::7]
        bits = bell(chosen.size * 16, size.seed, 90).reshape(-1, 16).copy()
        bits = np.where(bits & 0x7FFFFFFF > chosen[:, None], chosen[:, None] >> 1, bits)
        bits[:, 5] = chosen
        bits[0, 0] = top
        yield Tensor(f"ladder_{name}.f32", "f32", bits.astype(np.uint32))
    data = bell(8 * 64, size.seed, 91).reshape(8, 64)
    yield Tensor("bell.bf16", "bf16", to_bf16(data))


def _exact(size: Size) -> Iterator[Tensor]:
    """Tiles whose scales are powers of two, so that numbers fall on values and ties of e2m1."""
    points = numbers_of(edges_of(as_format("e2m1")), "f32")
    points = [x for x in points if abs(x) <= 6]
    picks = random_words(24 * 16, size.seed, 92).tolist()
    for aim in (2688.0, 1536.0):
        rows = []
        for k in range(24):
            chosen = [points[word % len(points)] for word in picks[16 * k : 16 * k + 15]]
            rows.append([math.ldexp(x, k - 12) for x in (6.0, *chosen)])
        rows[0][0] = aim
        bits = f32_array(x for row in rows for x in row).reshape(-1, 16)
        yield Tensor(f"exact_{aim:.0f}.f32", "f32", bits)


def boundaries(size: Size) -> Iterator[Tensor]:
    """Tiles whose scales fall next to a tie of e4m3, where the order of operations decides."""
    scales = values_of(as_format("e4m3"))
    ties = [(a + b) / 2 for a, b in itertools.pairwise(scales[8:])][::5]
    for n, amax in enumerate((0x3F9E3779, 0x40490FDB)):
        whole = Fraction(numbers_of(np.array([amax], np.uint32), "f32")[0])
        rows = bell(4 * len(ties) * 16, size.seed, 93 + n).reshape(-1, 16).copy()
        for k, tie in enumerate(ties):
            at = f32_bits(rn32(tie * 6 * whole / 2688))
            for step in range(4):
                row = rows[4 * k + step]
                row[:] = np.where(row & 0x7FFFFFFF > at, row & 0x80000000 | at >> 1, row)
                row[3] = at + step - 1
        rows[0, 0] = amax
        yield Tensor(f"boundaries_{n}.f32", "f32", rows)


def infinite_amax(size: Size) -> Tensor:
    """An infinite number makes the global scale 1, so that scales of tiles overflow."""
    rows = bell(96, size.seed, 174).reshape(2, 48).copy()
    for column, bits in ((3, 0x7F800000), (20, 0x45340000), (40, 0x7149F2CA)):
        rows[0, column] = bits
    return Tensor("infinite_amax.f32", "f32", rows)


def _of_far_corners(size: Size) -> Iterator[Tensor]:
    """Tiles whose largest numbers are at their corners, and inside; the last can have one column."""
    x = bell(16 * 64, size.seed, 176).reshape(16, 64) & np.uint32(0xBFFFFFFF)
    for source, columns, places in (
        ("bf16", 64, ((15, 15), (0, 15), (15, 0), (7, 8))), ("f16", 33, ((15, 15), (7, 8), (15, 0))),
    ):  # fmt: skip
        own = x[:, :columns].copy()
        for tile, (row, column) in enumerate(places):
            own[row, 16 * tile + column] = 0x40200000 + (tile << 21)
        yield Tensor(f"corners.{source}", source, narrowed(own, source))


def _subnormal_row() -> Tensor:
    """A row of subnormal numbers, in a tensor whose largest is so small that they have scales."""
    rows = np.repeat(np.array([[0x05800000], [0x007FFFFF]], np.uint32), 16, axis=1)
    return Tensor("subnormal_row.f32", "f32", rows)


def _below_powers_of_two() -> Tensor:
    """Blocks of a number just below a power of two, and of smaller ones of the other sign."""
    rows = []
    for k in range(-3, 4):
        power = 127 + 7 * k << 23
        for steps in (1, 3, 1 << 15, 1 << 17, 1 << 20):
            top = power - steps | (k & 1) << 31
            rows.append([top, *(top - (n << 18) ^ 0x80000000 for n in range(1, 32))])
    return Tensor("ladder_below.f32", "f32", np.array(rows, np.uint32))


def underflowing(fmt: Format) -> Bits:
    """Blocks whose amax / largest underflows to 0 (MXS-006), and just does not.

    There are none for a largest number below 2, under which no quotient is that small.
    """
    last = int(fmt.largest / 2)
    amaxes_of_blocks = (last, last + 1) if last else ()
    blocks = [[amax, *[amax >> 1] * 31] for amax in amaxes_of_blocks]
    return np.array(blocks, np.uint32).reshape(-1, 32)


# The places of a tile: rows that are one number each, and one row. Each is such that its errors,
# added in another order than that of NVF-006, change which candidate is taken.
_TIES = {(16, 16): "-h-q--6-L---s-s-", (1, 16): "6Lss---q-------h"}


def _tied(profile: Nvfp4Profile, tile: tuple[int, int]) -> Tensor:
    """A tile whose two candidates err alike, if the errors are added exactly (NVF-006).

    A number in the next tile makes the scale of the tensor 1, so that the candidates' are 1 and
    1.5. L errs by 1/4 under the one and 3/4 under the other, h and q by 1/2 and 0, s by itself.
    Added in order, the large error of L under 1.5 takes in one s after the other, each lost; under
    1 the errors of s are together before they meet a large one. So 1.5 is taken.
    """
    by_squares = profile.rule == "4over6_mse"
    numbers = {
        "-": 0.0,
        "6": 6.0,
        "L": 3.75,
        "h": 4.5,
        "q": 4.5 if by_squares else 0.0,
        "s": 1.25 * 2.0**-13 if by_squares else 2.0**-25,
    }
    bits = f32_array([*(numbers[place] for place in _TIES[tile]), profile.range])
    return Tensor("tied.f32", "f32", bits.reshape((1, -1) if tile[0] == 1 else (-1, 1)))


def _common(size: Size) -> Iterator[Tensor]:
    yield from tensors(size)
    yield from _ladder(size)


def _nvfp4_cases(profile: Nvfp4Profile, size: Size) -> Iterator[Case]:
    own = (*_exact(size), *boundaries(size), _subnormal_row(), infinite_amax(size))
    for tensor in (*_common(size), *own):
        is_nan = tensor.name.startswith(("nan", "patterns"))
        if profile.rule in ("torchao", "modelopt", "compressed_tensors") and is_nan:
            continue  # these profiles are of tensors without NaN
        for tile in profile.tiles:
            yield _in_nvfp4(tensor, profile, tile)
    if (16, 16) in profile.tiles:
        for tensor in _of_far_corners(size):
            yield _in_nvfp4(tensor, profile, (16, 16))
    for tensor in found_tensors(profile.name):
        yield _in_nvfp4(tensor, profile, (1, 16))
    for tensor in found_squares(profile.name):
        yield _in_nvfp4(tensor, profile, (16, 16))
    for tile in profile.tiles:
        for tensor in found_in_sources(profile.name, tile):
            yield _in_nvfp4(tensor, profile, tile)
    if SCALE_RULES_OF[profile.rule] == "NVF-006":
        for tile in profile.tiles:
            yield _in_nvfp4(_tied(profile, tile), profile, tile)


def _in_nvfp4(tensor: Tensor, profile: Nvfp4Profile, tile: tuple[int, int]) -> Case:
    return Case(
        f"{tensor.name}.{tile[0]}x{tile[1]}",
        {"profile": profile.name, "tile": list(tile), "source": tensor.source},
        {"x": tensor.x},
    )


def _mx_cases(size: Size) -> Iterator[Case]:
    common = (tensor for tensor in _common(size) if not tensor.name.startswith("bell"))
    for tensor in (*common, _below_powers_of_two()):
        for k, name in enumerate(ELEMENTS):
            for n, rule in enumerate(SCALE_RULES):
                if tensor.name.startswith("ladder") or (k + n) % 2 == 0:
                    yield _in_mx(tensor, name, rule, 32)
    for name in ELEMENTS:
        for rule in SCALE_RULES:
            yield _in_mx(_turning(as_format(name), rule), name, rule, 32)
    yield _in_mx(next(_ladder(size)), "e4m3", "rceil", 16)
    ragged = next(tensor for tensor in tensors(size) if tensor.name == "5x37.f32")
    for name, rule, block in (
        ("e4m3", "floor", 16), ("e5m2", "even", 8), ("e2m1", "ceil", 64), ("e3m2", "rceil", 5),
    ):  # fmt: skip
        yield _in_mx(ragged, name, rule, block)
    for name in ELEMENTS:
        blocks = underflowing(as_format(name))
        if blocks.size:
            yield _in_mx(Tensor("underflowing.f32", "f32", blocks), name, "rceil", 32)
    yield from found_cases("mx")


def _turning(fmt: Format, rule: ScaleRule) -> Tensor:
    """Blocks whose amaxes are next to where their scale turns, and one of zeros (MXS-002)."""
    amaxes_of_blocks = [0, *around(turn_of_mx(fmt, rule), SOME_BINADES, (-1, 0, 1)), 0x7F800000]
    if rule == "rceil":  # a quotient that is subnormal
        amaxes_of_blocks.append(f32_bits(rn32(Fraction(fmt.largest) * 3 / 2**128)))
    if rule == "even":  # half of a step is added to a number, and not to the bits of a subnormal
        amaxes_of_blocks += [0x007F0000, 0x007F7FFF, 0x007F8000]
    tops = np.array(amaxes_of_blocks, np.uint32)[:, np.newaxis]
    x = tops - tops // 64 * (1 + np.arange(32, dtype=np.uint32) % 5)
    rows = np.arange(len(x))
    x[rows, (20 + 11 * rows) % 32] = tops[:, 0]  # in another lane of each
    return Tensor("turning.f32", "f32", x | (np.arange(32, dtype=np.uint32) % 2 << 31))


def _in_mx(tensor: Tensor, name: str, rule: ScaleRule, block: int) -> Case:
    return Case(
        f"{tensor.name}.{name}.{rule}.{block}",
        {"format": name, "scale_rule": rule, "block": block, "source": tensor.source},
        {"x": tensor.x},
    )


SCALE_RULES_OF = {
    "te": "NVF-004",
    "te_2_13": "NVF-005",
    "4over6_mae": "NVF-006",
    "4over6_mse": "NVF-006",
    "torchao": "NVF-007",
    "modelopt": "NVF-008",
    "compressed_tensors": "NVF-009",
}


def is_normative(profile: Nvfp4Profile) -> bool:
    """Whether a profile is of kernels, and not another library's quantizer."""
    return profile.rule not in ("torchao", "modelopt", "compressed_tensors")


def _nvfp4_suite(profile: Nvfp4Profile) -> Suite:
    own = SCALE_RULES_OF[profile.rule]
    whole = "NVF-003" if is_normative(profile) else own
    return Suite(
        f"nvfp4_{profile.name}",
        f"Tensors in NVFP4, profile {profile.name}",
        "nvfp4",
        ("NVF-001", "NVF-012") if profile.per_row else ("NVF-001",),
        (
            given("x", "source", "the tensor"),
            expected("global_encode_scale", "f32", "of the tensor, or of each row", whole),
            expected("global_decode_scale", "f32", "of the tensor, or of each row", whole),
            expected(
                "block_scale", "e4m3", "for each tile", "NVF-002", own,
                views=("transposed", "replicated", "swizzled_128x4"),
            ),
            expected("xs", "f32", "each number under the scales", "NVF-010"),
            expected(
                "code", "e2m1", "the codes, one in a byte", "NVF-010",
                views=("transposed", "packed"),
            ),
            expected("y", "f32", "what the codes stand for", "NVF-010"),
            expected(
                "packed", "u8", "the codes, the even one of a pair in the low nibble", "NVF-011"
            ),
        ),
        functools.partial(_nvfp4_cases, profile),
        normative=is_normative(profile),
    )  # fmt: skip


SUITES = (
    *(_nvfp4_suite(profile) for profile in PROFILES.values()),
    Suite(
        "mx",
        "Tensors in MX formats under four scale rules",
        "mx",
        ("MXS-001",),
        (
            given("x", "source", "the tensor"),
            expected(
                "scale", "e8m0", "for each block", *(f"MXS-{k:03}" for k in range(2, 7)),
                views=("transposed", "swizzled_128x4"),
            ),
            expected("xs", "f32", "each number under the scale of its block", "MXS-007"),
            expected("code", "format", "the codes", "MXS-007", views=("transposed", "packed")),
            expected("y", "f32", "what the codes stand for", "MXS-008"),
        ),
        _mx_cases,
    ),
)  # fmt: skip
