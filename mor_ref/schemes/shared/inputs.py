"""Blocks that share an exponent, at the inputs at which implementations differ."""

from collections.abc import Iterator

import numpy as np

from mor_ref.golden.inputs.edges import Bits, narrowed
from mor_ref.golden.inputs.tensors import Tensor
from mor_ref.golden.model.suite import Size
from mor_ref.operations.random_numbers import Draws
from mor_ref.schemes.shared.definition import BLOCK, SharedKind
from mor_ref.schemes.shared.operation import random_block

_EXPONENTS = (0, 1, 2, 3, 9, 100, 127, 128, 200, 253, 254)  # exponent fields of the largest number
_SPECIALS = (
    0x7F800000, 0xFF800000, 0x7F800001, 0x7FC00000, 0xFFC00000, 0xFFFFFFFF, 0x80000000,
    0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x80400000, 0x00800000, 0x7F7FFFFF,
)  # fmt: skip


def random_blocks(kind: SharedKind, size: Size, count: int, width: int = BLOCK) -> Bits:
    """Return random blocks at ties and edges; their count grows with the size."""
    draws = Draws(0, count * size.factor, size.seed, width)
    return random_block({"kind": kind.name}, draws)["x"].astype(np.uint32)


def edge_blocks(kind: SharedKind) -> Bits:
    """Return blocks of every binade of interest: ties at both units, carries, and special numbers.

    Each block has its largest number in another lane.
    """
    rows = [_of_exponent(kind, field, k) for k, field in enumerate(_EXPONENTS)]
    carries = [_carrying(kind, field, sign) for field in _EXPONENTS[1:] for sign in (0, 1)]
    return np.array([*rows, *carries, *_special(kind), *_next_to_powers(kind)], np.uint32)


def _of_exponent(kind: SharedKind, field: int, turn: int) -> list[int]:
    """Return 2^k, and numbers at ties: in its binade, in the next one down, and near the unit."""
    top = max(field, 1) << 23 if field else 0x00400000
    tie = 1 << 23 - kind.magnitude_bits  # half a unit of the block, as a part of its binade
    fraction = [tie, 3 * tie, tie + 1, tie - 1, 3 * tie - 1, 3 * tie + 1]
    own = [top | part & 0x7FFFFF for part in fraction]
    below = [_lower(top | part // 2 & 0x7FFFFF, 1) for part in fraction]
    far = [_lower(top | part & 0x7FFFFF, kind.magnitude_bits) for part in (0, 1, tie)]
    numbers = [*own, *below, *far, top]
    signed = [bits | (k * 7 + turn) % 3 % 2 << 31 for k, bits in enumerate(numbers)]
    return [*signed[turn % BLOCK :], *signed[: turn % BLOCK]]


def _lower(bits: int, binades: int) -> int:
    return bits - (binades << 23) if bits >> 23 > binades else bits & 0x7FFFFF


def _carrying(kind: SharedKind, field: int, sign: int) -> list[int]:
    """Return a block whose largest number has this sign and is half a unit below a power of two."""
    most = field << 23 | 0x7FFFFF & -(1 << 23 - kind.magnitude_bits)
    steps = (0, -1, 1, 0x7FFFFF, 0, 0, -(1 << 16), 3)
    numbers = [min(most + step, field << 23 | 0x7FFFFF) for step in steps]
    other = [(most + step if sign else most - step) ^ 0x80000000 for step in (1, 2)]
    low = [_lower(most, 1), _lower(most, 1) | 0x80000000, _lower(most, 2), 0, 0x80000000, 1]
    return [*(bits | sign << 31 for bits in numbers), *(o | 0x80000000 for o in other), *low]


def _special(kind: SharedKind) -> Iterator[list[int]]:
    """Yield blocks with one special number each, among larger numbers, zeros or tiny numbers."""
    for k, special in enumerate(_SPECIALS):
        for base in (0x3F9E3779, 0, 0x00800000):
            row = [base - (n << 17) | n % 2 << 31 if base else 0 for n in range(BLOCK)]
            row[k % BLOCK] = special
            yield row
    yield [0x80000000, *[0] * (BLOCK - 1)]
    yield [0x7FC00000, 0x7F800000, *[0x3F800000] * (BLOCK - 2)]
    yield [0xFF800000] * BLOCK
    yield [0x3F800000 + kind.magnitude_bits, *[0xFFC12345] * (BLOCK - 1)]


def _next_to_powers(kind: SharedKind) -> Iterator[list[int]]:
    """Yield blocks whose largest number is just below a power of two, where logarithms round up."""
    for field in (5, 90, 126, 127, 128, 160, 250):
        for steps in (1, 2):
            top = (field << 23) - steps
            row = [_lower(top, n) | n % 2 << 31 for n in range(BLOCK)]
            yield [*row[-field % BLOCK :], *row[: -field % BLOCK]]
    del kind


def narrow_tensors(kind: SharedKind) -> Iterator[Tensor]:
    """Yield tensors of the other sources at ties, with a short block and a short pair."""
    for source in ("bf16", "f16"):
        with np.errstate(invalid="ignore"):
            bits = narrowed(edge_blocks(kind), source).ravel()
        yield Tensor(f"ties.{source}", source, bits[: bits.size // 37 * 37].reshape(-1, 37))
