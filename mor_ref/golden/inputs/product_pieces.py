"""Rows of A and columns of B that expose the order and the ends of pieces and sums."""

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from mor_ref.definitions.dot import DOT_PROFILES, DotProfile
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.exact.encoding import encode
from mor_ref.golden.inputs.products import Kind
from mor_ref.operations.bits import Unsigned, bits32
from mor_ref.operations.call import Arrays
from mor_ref.operations.random_products import CHOICES, WIDEST, Blocks, operand

Two = tuple[float, float]  # of a and of b
Names = tuple[str, str]  # of formats
_ONE, ONES = 0x3F800000, (1.0, 1.0)
WIDE: Names = ("bf16", "bf16")
_ORDERS = ((16, 1), (-8, 1), (-8, 3), (16, -1)), ((-8, 1), (16, 1), (16, -1), (-8, 3))
# 14245331 * 603 is 2^33 + 1, and 13788017 * 623 is 2^33 - 1. The first one is a reciprocal.
_ABOVE_A_TIE = 0x3396C000, ((32.0, 16.0), (8.0, 8.0), (8.0, 3.0), (3.0, 1.0))
_BELOW_A_TIE = 13788017.0, (*((6.0, 6.0),) * 4, (6.0, 1.5), (2.0, 1.0), (0.5, 1.5))


_OF_12_BITS: tuple[Two, ...] = (*((6.0, 6.0),) * 14, (6.0, 1.5), (0.5, 0.5))
# Sums of bfloat16: a subnormal one, a tiny negative one, two that overflow and may cancel, and
# infinities times 0.
_ENDS_OF_BF16: tuple[dict[int, Two], ...] = (
    {0: (2.0**-70, 2.0**-70)},
    {8: (-(2.0**-100), 2.0**-100)},
    {0: (2.0**64, 2.0**64)},
    {0: (2.0**64, 2.0**63), 1: (2.0**64, 2.0**63)},
    {0: (2.0**64, 2.0**64), 1: (-(2.0**64), 2.0**64)},
    {0: (math.inf, 0.0)},
    {0: (0.0, -math.inf)},
)


class Row(NamedTuple):
    """Pairs of numbers at places of K, with factors or scales of blocks; other factors are 1.

    A number that is an int is a code.
    """

    at: Mapping[int, Two]
    factors: Mapping[int, Two] = {}
    scales: Mapping[int, tuple[int, int]] = {}
    overall: Two = ONES
    of: Names | None = None  # formats of its blocks; None for the formats of the kind


def special_elements(kind: Kind) -> Arrays:
    """Return rows with one special code of A or of B: each NaN and infinity, and subnormal ones.

    Infinities are multiplied by -1, the smallest number and 0, or have a factor of 0. Then come
    upcast blocks with special scales.
    """
    rows: list[Row] = []
    for n in (0, 1):
        named = {kind.formats[n], *kind.others} if kind.record.are_mixed else {kind.formats[n]}
        for name in sorted(named):
            rows += _of_codes(kind, name, n)
        if kind.others:
            rows += _upcast(kind, n)
    if kind.others:
        rows += [Row(at, of=WIDE) for at in _ENDS_OF_BF16]
    return arrays_of(kind, rows)


def placed(n: int, one: float, other: float, of: Names | None = None) -> Row:
    """Return a row with one number of operand n, and one of the other operand."""
    return Row({0: (one, other) if n == 0 else (other, one)}, of=of)


def _of_codes(kind: Kind, name: str, n: int) -> Iterator[Row]:
    """Yield the special codes of a format of operand n; of NaN, times 1."""
    fmt, other = formats[name], kind.formats[1 - n]
    if name == CHOICES[WIDEST]:
        other = name
    names = (name, other) if n == 0 else (other, name)
    profile = DOT_PROFILES[kind.parameters["dot_profile"]]
    if profile.formats and name not in profile.formats:
        return  # only its y counts
    of = names if kind.record.are_mixed else None
    yield placed(n, fmt.sign_bit | 1, 1.0, of)
    if n == 0 and fmt.infinity_code is not None:
        yield Row({k: (code, 1.0) for k, code in enumerate(_infinities(fmt))}, of=of)
    codes = {span[k] for span in fmt.nan_codes for k in (0, -1)}
    for code in sorted({*codes, *([] if fmt.infinity_code is None else _infinities(fmt))}):
        yield placed(n, code, _number_with(code, fmt, formats[other]), of)
        if code == fmt.infinity_code:
            yield placed(n, code, 0.0, of)
        if code == fmt.infinity_code and kind.record.divides and name != CHOICES[WIDEST]:
            scales = (_ONE, 0x7F800000) if n == 0 else (0x7F800000, _ONE)
            yield placed(n, code, 1.0, of)._replace(scales={0: scales})


def _number_with(code: int, fmt: Format, other: Format) -> float:
    """Return the number that a special code is multiplied by."""
    if fmt.infinity_code is None or code not in _infinities(fmt):
        return 1.0
    return -1.0 if code == fmt.infinity_code else other.smallest_subnormal or 1.0


def _infinities(fmt: Format) -> tuple[int, int]:
    """Return the codes of both infinities."""
    code = fmt.infinity_code or 0
    return code, code | fmt.sign_bit


def _upcast(kind: Kind, n: int) -> Iterator[Row]:
    """Yield blocks of operand n whose y is NaN, infinite or subnormal, times bfloat16."""
    narrow = next(name for name in (kind.formats[n], *kind.others) if name != CHOICES[WIDEST])
    of: Names = (narrow, CHOICES[WIDEST]) if n == 0 else (CHOICES[WIDEST], narrow)
    for scale in (0x7FC00000, 0, 0x80000000, 0x7E800000):
        other = {0x7E800000: 2.0**90, 0: -(2.0**-10), 0x80000000: 2.0**-133}.get(scale, 2.0**-10)
        pair = (2.0**-6, other) if n == 0 else (other, 2.0**-6)
        scales = {0: (scale, _ONE) if n == 0 else (_ONE, scale)}
        yield Row(dict.fromkeys(range(kind.width), pair), {}, scales, of=of)


def several_pieces(kind: Kind) -> Arrays:
    """Return rows of pieces that expose their order, or whose sums overflow or are nearly ties."""
    size, is_narrow = kind.parameters["scale_block"], kind.formats != WIDE
    profile = DOT_PROFILES[kind.parameters["dot_profile"]]
    if profile.family == "exact":
        return arrays_of(kind, [*_above_a_tie_of_exact(kind, size)])
    rows: list[Row] = []
    if kind.width > 3 * size:
        rows += [_of_powers(kind, one) for one in _ORDERS]
    rows.append(_infinite(kind))
    if is_narrow and kind.record.name != "mx":
        rows.append(_near_a_tie(kind, size))
    if kind.record.element:
        rows.append(Row(dict(enumerate(_OF_12_BITS))))
    else:
        rows.append(_in_one_piece(kind, profile))
    if kind.others:
        rows += [_in_one_piece(kind, profile)._replace(of=WIDE)] if is_narrow else []
    return arrays_of(kind, rows)


def _of_powers(kind: Kind, numbers: tuple[tuple[int, int], ...]) -> Row:
    """Return a row in which each piece is a number times a power of two."""
    size, is_wide = kind.parameters["scale_block"], kind.formats == WIDE
    at: dict[int, Two] = {}
    factors: dict[int, Two] = {}
    for k, (exponent, number) in enumerate(numbers):
        a, b = 2.0 ** (exponent // 2), 2.0 ** (exponent - exponent // 2)
        one, other = (1.5, 2.0) if number == 3 else (float(number), 1.0)
        at[k * size] = (one * a, other * b) if is_wide else (one, other)
        factors[k] = ONES if is_wide else (a, b)
    return Row(at, factors)


def _infinite(kind: Kind) -> Row:
    """Return two infinite pieces of opposite signs."""
    size, is_wide = kind.parameters["scale_block"], kind.formats == WIDE
    number = 2.0**64 if is_wide else 4.0
    at: dict[int, Two] = {k * size: (sign * number, number) for k, sign in enumerate((1, -1))}
    if is_wide:
        return Row(at)
    if kind.record.has_overall:
        return Row(at, overall=(2.0**64, 2.0**64))
    return Row(at, dict.fromkeys(range(2), (2.0**64, 2.0**64)))


def _near_a_tie(kind: Kind, size: int) -> Row:
    """Return two pieces whose sum differs from a tie by a part that binary64 loses."""
    if kind.record.has_overall:
        factor, of_fp4 = _BELOW_A_TIE
        at = {0: (4.0, 4.0)} | {size + k: pair for k, pair in enumerate(of_fp4)}
        return Row(at, {0: (2.0**8, 2.0**8), 1: (2.0**-6, 2.0**-6)}, overall=(factor, 1.0))
    scale, pairs = _ABOVE_A_TIE
    at = {0: ONES} | {size + k: pair for k, pair in enumerate(pairs)}
    return Row(at, {0: (2.0**28, 2.0**29)}, {1: (scale, _ONE)})


def _in_one_piece(kind: Kind, profile: DotProfile) -> Row:
    """Return two pieces with equal factors; one instruction for both would round differently."""
    size = kind.parameters["scale_block"]
    length = min(profile.chunk, size // 2)
    small = (2.0**-9, 2.0**-9) if "e2m1" not in kind.formats else (0.5, 0.5)
    last = min(size + length, kind.width - 1)
    return Row({0: (8.0, 8.0), size: small, last: (2 * small[0], small[1])})


def _above_a_tie_of_exact(kind: Kind, size: int) -> Iterator[Row]:
    """Yield sums that are above or below a tie by a part that 53, 64 or more bits lose."""
    if kind.record.has_overall:  # the product of both scales of rows is 1 - 2^-44
        overall = (1 + 2.0**-22, 1 - 2.0**-22)
        at = dict.fromkeys(range(size), (4.0, 4.0))
        at |= {size: (2.0, 1.5), 2 * size: (0.5, 0.5)}
        yield Row(at, {0: (2.0**8, 2.0**8), 2: (2.0**-9, 2.0**-9)}, overall=overall)
        return
    for sign, far in ((1, 64), (-1, 64), (1, 100)):
        at = {0: (1.0, 1.0), size: (1.0, 1.0), 2 * size: (sign * 1.0, 1.0)}
        first = 1.0 if sign > 0 else 1.5
        yield Row(
            {**at, 0: (first, 1.0), 1: (0.0, 0.0)},
            {1: (2.0**-12, 2.0**-12), 2: (2.0 ** -(far // 2), 2.0 ** -(far // 2))},
        )


def arrays_of(kind: Kind, rows: list[Row]) -> Arrays:
    """Return the fields of rows, filled up with zeros."""
    size = kind.parameters["scale_block"]
    shape = len(rows), -(-kind.width // size)
    found: dict[str, Unsigned] = {}
    for n, name in enumerate("ab"):
        codes = np.zeros((len(rows), kind.width), np.uint32)
        choice, scale = np.zeros(shape, np.uint8), np.full(shape, _ONE, np.uint32)
        for r, row in enumerate(rows):
            fmt = formats[(row.of or kind.formats)[n]]
            choice[r] = CHOICES.index(fmt.name)
            for k, pair in row.at.items():
                codes[r, k] = _code(pair[n], fmt)
            scale[r] = _scales(kind, row, n, shape[1])
        overall = bits32(np.array([row.overall[n] for row in rows], np.float32))
        is_wide = np.repeat(choice == WIDEST, size, axis=1)[:, : kind.width]
        blocks = Blocks(choice, scale, overall, size, kind.record)
        found |= operand(name, np.where(is_wide, 0, codes), blocks)
        for field in (name, f"y_{name}"):
            found[field] = np.where(is_wide, codes, found[field]).astype(found[field].dtype)
    return found


def _scales(kind: Kind, row: Row, n: int, count: int) -> Unsigned:
    """Return the bits of the scales of a row of operand n."""
    factors = np.array([row.factors.get(k, ONES)[n] for k in range(count)])
    found = bits32((1 / factors if kind.record.divides else factors).astype(np.float32)).copy()
    for k, scales in row.scales.items():
        found[k] = scales[n]
    return found


def _code(number: float, fmt: Format) -> int:
    """Return the code of a number; an int is a code already."""
    if isinstance(number, int):
        return number
    code = encode(number, fmt, "rne", SpecialCases(overflow="ieee"))
    if not math.isclose(fmt.value(code), number, rel_tol=0):
        raise ValueError(f"{fmt.name} lacks {number}; give a number of the format")
    return code
