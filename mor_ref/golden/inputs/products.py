"""Rows of A and columns of B in blocks with scales: for dot products, and for a small tile."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.dot import GROUP as DOT_GROUP
from mor_ref.definitions.formats import formats
from mor_ref.definitions.matmul import RECORD_KINDS, RecordKind
from mor_ref.exact.encoding import encode
from mor_ref.golden.inputs.dot_rows import drawn, joined
from mor_ref.golden.model.suite import Size
from mor_ref.operations.bits import Unsigned
from mor_ref.operations.call import Arrays, Parameters
from mor_ref.operations.random_products import (
    CHOICES,
    WIDEST,
    Blocks,
    operand,
    to_bf16,
    values_of_choices,
)
from mor_ref.operations.random_words import random_words

_ROWS = 20  # of dot products
_LAST = 6  # rows that can have special codes
_NAN, _INFINITY = 0x7FC00000, 0x7F800000
_SPECIAL_SCALES = (_NAN, _INFINITY, 0x00000000, 0x00000001)  # of the last rows
_ONE = 0x3F800000
_FIRST = 8  # first row with scales at an end
# e8m0 codes for a whole row: products around 2^-150, subnormal ones, an overflow, 2^-127 * 2^127,
# and scales of 2^-159.
_ENDS_OF_MX = ((52, 52), (62, 62), (254, 254), (0, 254), (47, 48), (47, 48))
# Numbers in the order a, b, a, b, in the rows with scales of 2^-159: a sum that e0 makes exact, and
# a small negative one.
_BELOW_E0 = ((32.0, 32.0, 0.5, -0.5), (-32.0, 16.0, 0.0, 0.0))
_CANCELLING = slice(_FIRST + 8, _FIRST + 10)  # rows whose large groups cancel
# Masks of codes. A bfloat16 number is in y, and its code is drawn as FP8.
_MASKS = np.array([min(formats[fmt].code_count, 256) - 1 for fmt in CHOICES], np.uint32)
_LARGE, _SMALL = 0x7E, 1  # codes of e4m3
_FAR = (0x60000000, 0x60800000)  # 2^65 and 2^66, whose reciprocals have a subnormal product


def _drawn(fmt: str) -> str:
    """Return the format in which codes are drawn: FP8 for bfloat16, whose numbers are in y."""
    return "e4m3" if fmt == CHOICES[WIDEST] else fmt


class Kind(NamedTuple):
    """The parameters and formats of the blocks of both operands, and the length of a row."""

    parameters: Parameters
    formats: tuple[str, str]
    others: tuple[str, ...]  # formats that some blocks have instead
    width: int

    @property
    def record(self) -> RecordKind:
        """The kind of record."""
        return RECORD_KINDS[self.parameters["record"]]


def products(kind: Kind, size: Size, stream: int) -> Arrays:
    """Return rows of a case; the first and the last two are a tile."""
    of = {f"format_{name}": _drawn(fmt) for name, fmt in zip("ab", kind.formats, strict=True)}
    asked = {"dot_profile": "exact", **of}
    if not kind.others and not kind.parameters["dot_profile"].startswith("cdna"):
        asked["dot_profile"] = _drawn_by(kind)
    rows = drawn("dot", asked, (_ROWS, kind.width), size)
    found = {name: rows[name].astype(np.uint32) for name in "ab"}
    count = len(rows["a"])
    blocks = -(-kind.width // kind.parameters["scale_block"])
    for n, name in enumerate("ab"):
        words = random_words(count * blocks, size.seed, 200 + 10 * stream + n).reshape(count, -1)
        found |= _scaled(kind, name, _at_edges(kind, name, found[name]), words)
    return joined(found, _tile(found))


def every_other(rows: Arrays) -> Arrays:
    """Return every other row."""
    return {name: array[::2] for name, array in rows.items()}


def first_rows(rows: Arrays) -> Arrays:
    """Return the first two rows."""
    return {name: array[:2] for name, array in rows.items()}


def negative_zeros(kind: Kind) -> Arrays:
    """Return rows whose products are all -0; in the second row, the first sum becomes -0.

    Its scales have the factors 2^-127 and 2^-22, and its next products are -0.
    """
    found: dict[str, Unsigned] = {}
    count = kind.width // kind.parameters["scale_block"]
    for name, fmt, number in zip("ab", kind.formats, (0.0, -1.0), strict=True):
        codes = np.full((2, kind.width), encode(number, formats[_drawn(fmt)]), np.uint32)
        scale = np.full((2, count), _ONE, np.uint32)
        if kind.record.divides and fmt != CHOICES[WIDEST]:
            codes[1, 0], scale[1, 0] = (1, 0x7F000000) if name == "a" else (codes[0, 0], 0x4A800000)
        choice = np.full((2, count), CHOICES.index(fmt), np.uint8)
        ones = np.full(2, _ONE, np.uint32)
        blocks = Blocks(choice, scale, ones, kind.parameters["scale_block"], kind.record)
        found |= operand(name, codes, blocks)
    return found


def first_sum_of_minus_zero(kind: Kind) -> Arrays:
    """Return rows of two blocks in bfloat16 whose sums are +0 or -0, and one that cancels.

    On CDNA 1 and 3, a product of -2^-200 in the last chunk becomes -0. In the last row, 2^-60
    follows numbers that cancel; CDNA 1 keeps it.
    """
    zero, tiny, small = (0.0, 0.0), 2.0**-100, 2.0**-30
    positive = [zero] * kind.parameters["scale_block"]
    negative = [*positive[1:], (-tiny, tiny)]
    rows = (
        [*negative, *negative],
        [*positive, *negative],
        [*negative, *positive],
        [(1.0, 1.0), zero, (-1.0, 1.0), (small, small)],
    )
    return _blocks_of_bf16(kind, rows)


def ends_of_cdna3(kind: Kind) -> Arrays:
    """Return blocks in bfloat16: products of 2^128 that cancel, a small sum, a c, and zeros.

    No c hides the small sum in the second row; its last bit is behind the 32 that are kept. In the
    third row, c is cut. In the last two rows, a zero times a large number has no exponent.
    """
    one, far, tie, low = (1.0, 1.0), 2.0**64, 2.0**-12, 2.0**-16
    first, later = [one, *[(0.0, 0.0)] * 7], [(tie, tie), (low, low)]
    rows = (
        [(far, far), (-far, far)],
        [*first, *later],
        [(-1.0, 1.0), (-(2.0**-6), 2.0**-6), *first[2:], (128.0, 128.0)],
        [(2.0**100, 0.0), (2.0**-30, 2.0**-30)],
        [(0.0, 2.0**100), (2.0**-30, 2.0**-30)],
    )
    return _blocks_of_bf16(kind, rows)


def _blocks_of_bf16(kind: Kind, rows: tuple[list[tuple[float, float]], ...]) -> Arrays:
    """Return rows of bfloat16 blocks that begin with these pairs of numbers."""
    found: dict[str, Unsigned] = {}
    count = -(-kind.width // kind.parameters["scale_block"])
    for n, name in enumerate("ab"):
        numbers = np.zeros((len(rows), kind.width), np.float32)
        for row, pairs in zip(numbers, rows, strict=True):
            row[: len(pairs)] = [pair[n] for pair in pairs]
        codes = to_bf16(numbers)
        found |= {name: codes.astype(np.uint32), f"y_{name}": codes}
        for field, fill, dtype in (("choice", WIDEST, np.uint8), ("scale", _ONE, np.uint32)):
            found[f"{field}_{name}"] = np.full((len(rows), count), fill, dtype)
        found[f"overall_{name}"] = np.full(len(rows), _ONE, np.uint32)
    return found


def _at_edges(kind: Kind, name: str, codes: Unsigned) -> Unsigned:
    """Return codes whose rows at edges are subnormal, cancel, or have a sum below e0."""
    found = codes.copy()
    fmt = formats[kind.formats["ab".index(name)]]
    sign = np.uint32(fmt.sign_bit if name == "b" else 0)
    found[_CANCELLING, DOT_GROUP : 2 * DOT_GROUP] = found[_CANCELLING, :DOT_GROUP] ^ sign
    if fmt.bits < 8:
        return found
    if name == "a":
        found[_FIRST + 6 : _FIRST + 8] &= np.uint32(0x87)
    if not formats[kind.record.scale_format].mantissa_bits:  # smaller scales than FP8 and FP4 have
        for row, numbers in enumerate(_BELOW_E0):
            found[_FIRST + 4 + row] = 0
            found[_FIRST + 4 + row, :2] = [encode(x, fmt) for x in numbers["ab".index(name) :: 2]]
    return found


def _drawn_by(kind: Kind) -> str:
    """Return the profile without scales at whose cuts the codes are drawn."""
    return {"blackwell_mxfp8": "blackwell_fp8"}.get(
        kind.parameters["dot_profile"],
        "blackwell_fp8" if "e2m1" in (kind.record.element, *kind.formats)
        else kind.parameters["dot_profile"],
    )  # fmt: skip


def _tile(rows: Arrays) -> Arrays:
    """Return the two entries that make a tile of those of the first two rows."""
    return {name: array[[0, 1] if name.endswith("a") else [1, 0]] for name, array in rows.items()}


def _scaled(kind: Kind, name: str, codes: Unsigned, words: NDArray[np.uint64]) -> Arrays:
    """Return the fields of an operand with these codes; a word decides for each block."""
    record, block = kind.record, kind.parameters["scale_block"]
    usual = CHOICES.index(kind.formats["ab".index(name)])
    choice = np.full(words.shape, usual, np.uint8)
    for n, other in enumerate(kind.others):
        taken = (words >> np.uint64(8) & np.uint64(7)) == n
        choice[taken] = CHOICES.index(other)
    scale, overall = _scales(record, "ab".index(name), words)
    blocks = Blocks(choice, scale, overall, block, record)
    each = blocks.each(codes.shape[1])
    codes = codes & _MASKS[each]
    is_lost = ~np.isfinite(values_of_choices(codes, each))
    is_lost[-_LAST:] = False
    codes = np.where(is_lost, codes & np.uint32(0xBF), codes)  # a smaller exponent
    return operand(name, codes, blocks)


def _scales(record: RecordKind, n: int, words: NDArray[np.uint64]) -> tuple[Unsigned, Unsigned]:
    """Return the scales of blocks and rows in operand n, as binary32 bits."""
    near = (words >> np.uint64(40)) % np.uint64(9)
    ones = np.full(len(words), _ONE, np.uint32)
    if record.divides:
        fractions = words >> np.uint64(12) & np.uint64(0x7FFFFF)
        scale = ((123 + near) << np.uint64(23) | fractions).astype(np.uint32)
        scale[_FIRST] = _FAR[n]
        for row, special in enumerate(_SPECIAL_SCALES):
            scale[-1 - row, 0] = special
        return scale, ones
    if not formats[record.scale_format].mantissa_bits:
        codes = 123 + near
        codes[:_FIRST:2] = 107 + (words[:_FIRST:2] >> np.uint64(32)) % np.uint64(40)
        for row, ends in enumerate(_ENDS_OF_MX):
            codes[_FIRST + row] = ends[n]
        codes[_CANCELLING, 0], codes[_CANCELLING, 1:] = 142, 127
        codes[-2, 0], codes[-1, -1] = 255, 0
        return np.array(_numbers(record.scale_format, codes)), ones
    codes = 0x30 + (words >> np.uint64(40)) % np.uint64(40)
    codes[_CANCELLING, :2] = _LARGE
    codes[_CANCELLING, 2:] = _SMALL + (near[_CANCELLING, 2:] & np.uint64(1))
    codes[-2, 0], codes[-1, -1] = 0x7F, 0
    overall = 0x3C000000 + (words[:, 0] & np.uint64(0x3FFFFFF))
    return np.array(_numbers(record.scale_format, codes)), overall.astype(np.uint32)


def _numbers(fmt: str, codes: NDArray[np.uint64]) -> Unsigned:
    """Return the binary32 bits of codes."""
    values = [[formats[fmt].value(int(code)) for code in row] for row in codes]
    bits: Unsigned = np.array(values, np.float32).view(np.uint32)
    return np.where(np.isnan(values), np.uint32(0x7FFFFFFF), bits)
