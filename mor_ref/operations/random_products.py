"""Random entries of products of matrices: rows of dot products in blocks with formats and scales.

Blocks of records with scales in binary32 have any format that the profile multiplies or upcasts,
and one block in eight has a scale with any bits. Scales are near 1 in most rows.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.dot import DOT_PROFILES, DotProfile
from mor_ref.definitions.formats import formats
from mor_ref.definitions.matmul import RECORD_KINDS, RecordKind
from mor_ref.operations.call import Arrays, Parameters
from mor_ref.operations.random_dots import rows, values_of
from mor_ref.operations.random_numbers import Draws, Words, bits_at, share

CHOICES = ("e4m3", "e5m2", "e2m1", "bf16")  # the formats that a choice means
WIDEST = CHOICES.index("bf16")
_U = np.uint64
_ONE = _U(0x3F800000)
Bits = NDArray[np.unsignedinteger[Any]]
_NEAR = 9  # exponents of scales near 1


def usable(profile: DotProfile) -> list[int]:
    """Return the choices that a profile multiplies, or upcasts."""
    known = profile.formats or CHOICES
    multiplied = [n for n, name in enumerate(CHOICES) if name in known]
    if not profile.wide:
        return multiplied
    narrow = multiplied if set(multiplied) - {WIDEST} else list(range(WIDEST))  # all are upcast
    return sorted({*narrow, WIDEST})


def random_inputs(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw rows of A and columns of B."""
    profile, record = DOT_PROFILES[parameters["dot_profile"]], RECORD_KINDS[parameters["record"]]
    block = parameters["scale_block"]
    fmt = formats[record.element or "e4m3"]
    codes = rows(draws, 0, profile, (fmt, fmt))
    count = -(-draws.width // block)
    per_block = Draws(draws.first * count, draws.count * count, draws.seed)
    drawn: dict[str, NDArray[Any]] = {}
    for n, name in enumerate("ab"):
        words = per_block.words(6 + n).reshape(draws.count, count)
        kinds = draws.words(8 + n)
        choice = _choice(record, profile, words)
        scale = _scales(record, words, kinds)
        ones = np.full(draws.count, _ONE)
        overall = _U(0x3C000000) + bits_at(kinds, 8, 26) if record.has_overall else ones
        blocks = Blocks(choice, scale, overall, block, record)
        is_narrow = blocks.each(draws.width) == CHOICES.index("e2m1")
        drawn |= operand(name, np.where(is_narrow, codes[n] & _U(15), codes[n]), blocks)
    return {name: array.astype(_U) for name, array in drawn.items()}


def _choice(record: RecordKind, profile: DotProfile, words: Words) -> NDArray[np.int64]:
    """Return the choice of each block: a record whose blocks are not mixed has one format."""
    taken = usable(profile)
    if not record.are_mixed:
        choice = CHOICES.index(record.element) if record.element else taken[0]
        return np.full(words.shape, choice)
    return np.array(taken)[share(bits_at(words, 0, 16), 16, len(taken)).astype(np.int64)]


def _scales(record: RecordKind, words: Words, kinds: Words) -> Words:
    """Return the binary32 bits of scales: powers of two, numbers of another format, or any."""
    near, is_any = share(bits_at(words, 16, 16), 16, _NEAR), bits_at(words, 32, 3) == 0
    if record.divides:
        usual = (near + _U(123)) << _U(23) | bits_at(words, 36, 23)
        return np.where(is_any & _is_odd(kinds), words >> _U(32), usual)
    fmt = formats[record.scale_format]
    usual = bits_at(words, 36, 5) + _U(0x28) if fmt.mantissa_bits else near + _U(123)
    anywhere = share(bits_at(words, 40, 16), 16, fmt.code_count - fmt.sign_bit)
    numbers = values_of(np.where(is_any & _is_odd(kinds), anywhere, usual), fmt)
    bits = numbers.astype(np.float32).view(np.uint32).astype(_U)
    return np.where(np.isnan(numbers), _U(0x7FFFFFFF), bits)


def _is_odd(kinds: Words) -> NDArray[np.bool_]:
    is_odd: NDArray[np.bool_] = (bits_at(kinds, 0, 2) == 0)[:, np.newaxis]
    return is_odd


class Blocks(NamedTuple):
    """The blocks of an operand: the choices and scales of each, and a scale for each row.

    Scales are bits of binary32.
    """

    choice: NDArray[np.integer[Any]]
    scale: Bits
    overall: Bits
    size: int
    record: RecordKind

    def each(self, columns: int) -> NDArray[np.integer[Any]]:
        """Return the choice of each number."""
        return np.repeat(self.choice, self.size, axis=1)[:, :columns]

    @property
    def factor(self) -> NDArray[np.float32]:
        """The number that the values of a block are multiplied by."""
        scale, whole = (x.astype(np.uint32).view(np.float32) for x in (self.scale, self.overall))
        factor: NDArray[np.float32] = np.float32(1) / scale if self.record.divides else scale
        return factor * whole[:, np.newaxis]


def operand(name: str, codes: NDArray[Any], blocks: Blocks) -> dict[str, NDArray[Any]]:
    """Return the fields of an operand; blocks in bfloat16 have y as their codes."""
    choice, columns = blocks.each(codes.shape[1]), codes.shape[1]
    with np.errstate(all="ignore"):
        factor = np.repeat(blocks.factor, blocks.size, axis=1)[:, :columns]
        y = (values_of_choices(codes, choice) * factor).astype(np.float32)
    upcast = to_bf16(y)
    return {
        name: np.where(choice == WIDEST, upcast, codes), f"y_{name}": upcast,
        f"choice_{name}": blocks.choice, f"scale_{name}": blocks.scale,
        f"overall_{name}": blocks.overall,
    }  # fmt: skip


def values_of_choices(codes: NDArray[Any], choice: NDArray[Any]) -> NDArray[np.float64]:
    """Return the numbers of codes, each in the format of its choice; bfloat16 is drawn as FP8."""
    values = np.zeros(codes.shape)
    for index, name in enumerate(CHOICES):
        fmt = formats["e4m3" if index == WIDEST else name]
        part = values_of(codes.astype(_U) & _U(fmt.code_count - 1), fmt)
        values = np.where(choice == index, part, values)
    return values


def to_bf16(y: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Return the nearest bfloat16 codes, ties to even, with one NaN."""
    bits = y.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(y), np.uint32(0x7FFF), rounded).astype(np.uint16)
