"""Numbers at which wrong programs differ, from the format alone: nobody has to search for them.

Edges of exponents are crossed with edges of significands, as TestFloat does. Small multiples of
2^-149 have few significant bits, so that quotients of them are exact or tied. Next to what a scale
turns at, in every binade, the last bit decides.
"""

import itertools
from collections.abc import Iterator

from mor_ref.definitions.format import Format
from mor_ref.exact.arithmetic import FLT_MAX, bits_of

_LARGEST = bits_of(FLT_MAX)
_FIELDS = (1, 2, 23, 24, 118, 126, 127, 128, 143, 230, 253, 254)
_SIGNIFICANDS = (
    *(0, 1, 2, 3, 0x200000, 0x2AAAAB, 0x3FFFFF, 0x400000, 0x400001, 0x555555),
    *(0x600000, 0x600001, 0x6FFFFF, 0x700000, 0x7F8000, 0x7FFFFE, 0x7FFFFF),
)
_SMALL = (*range(1, 65), *(3 << k for k in range(5, 20)), *(1 << k for k in range(6, 23)))
_STEPS = (-4, -3, -2, -1, 0, 1, 2, 3, 4)


def amaxes(fmt: Format) -> list[int]:
    """Return amaxes of blocks that are scaled into a format, as bits of binary32."""
    return sorted({0, *_crossed(), *_SMALL, *_turns(fmt)})


def pairs_of_amaxes(fmt: Format) -> list[tuple[int, int]]:
    """Return amaxes of groups and of blocks in them, as bits: equal, next to each other, and apart.

    A block whose amax is next to that of its group, or next to it in a lower binade, has an ideal
    scale whose mantissa is next to the shared one.
    """
    blocks = amaxes(fmt)
    found = dict.fromkeys((amax, amax) for amax in (*blocks, _LARGEST))
    for amax, binades in itertools.product(blocks[::11], (0, 1, 7)):
        for step in _STEPS:
            found[amax + (binades << 23) + step, amax] = None
    groups = [(field << 23) + significand for field in (127, 254) for significand in _SIGNIFICANDS]
    significands = (0, *_SIGNIFICANDS[:4], *(bits_of(fmt.largest) + k & 0x7FFFFF for k in _STEPS))
    for group, field, significand in itertools.product(groups, (0, 1, 120), significands):
        found[group, (field << 23) + significand] = None
    found |= dict.fromkeys((group, 0) for group in (*groups, 1, 1 << 23))
    return [(group, block) for group, block in found if block <= group <= _LARGEST]


def _crossed() -> Iterator[int]:
    for field, significand in itertools.product(_FIELDS, _SIGNIFICANDS):
        yield (field << 23) + significand


def _turns(fmt: Format) -> Iterator[int]:
    """Yield the numbers next to 2^k times the largest number of a format, in every binade."""
    significand = bits_of(fmt.largest) & 0x7FFFFF
    for field in range(1, 255):
        for step in _STEPS:
            bits = (field << 23) + significand + step
            if 0 < bits <= _LARGEST:
                yield bits
