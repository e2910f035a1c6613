"""Rows of A and columns of B that expose the order and the ends of chunks in a piece."""

import math
from collections.abc import Iterator

from mor_ref.definitions.dot import DOT_PROFILES, DotProfile
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.golden.inputs.dot_rows import powers
from mor_ref.golden.inputs.product_pieces import ONES, WIDE, Row, arrays_of, placed
from mor_ref.golden.inputs.products import Kind
from mor_ref.operations.call import Arrays


def several_chunks(kind: Kind) -> Arrays:
    """Return rows that expose a wrong order of chunks, or chunks that end at a wrong place.

    A row is one piece or one instruction.
    """
    profile = DOT_PROFILES[kind.parameters["dot_profile"]]
    wide = DOT_PROFILES[profile.wide] if profile.wide else profile
    if profile.family == "gst_fdpa":
        return arrays_of(kind, [*_chunks_of_groups(kind, profile)])
    rows: list[Row] = []
    if kind.formats != WIDE:
        of = formats[kind.formats[0]], formats[kind.formats[1]]
        rows += _chunks(profile, of, kind.width)
    if kind.others or kind.formats == WIDE:
        of = formats[WIDE[0]], formats[WIDE[1]]
        found = [row._replace(of=WIDE) for row in _chunks(wide, of, kind.width)]
        rows += found[2:3] if rows else found
        rows.append(Row({0: (math.inf, 1.0), wide.chunk: (1.0, -math.inf)}, of=WIDE))
    return arrays_of(kind, [*rows, *_of_two_infinities(kind, profile)])


def _of_two_infinities(kind: Kind, profile: DotProfile) -> Iterator[Row]:
    """Yield infinities of both signs in two chunks, if the formats have them."""
    of = kind.formats
    if kind.record.are_mixed and "e5m2" in profile.formats:
        of = "e5m2", "e5m2"
    if of != WIDE:
        for n, name in enumerate(of):
            if formats[name].infinity_code is not None:
                first, second = placed(n, math.inf, 1.0).at[0], placed(n, -math.inf, 1.0).at[0]
                is_own = of == kind.formats
                yield Row({0: first, profile.chunk: second}, of=None if is_own else of)


def _chunks(profile: DotProfile, of: tuple[Format, Format], width: int) -> Iterator[Row]:
    """Yield sums that lose a unit before large terms cancel, and a c that is cut before that."""
    kept, length = profile.result_bits, profile.chunk
    low = -4 if profile.result == "f16" else -18
    unit, large = powers(low, of), powers(low + kept + 1, of)
    opposite = (-large[0], large[1])
    yield Row({
        0: large, 2 * length - 1: unit, 2 * length: unit, 3 * length: opposite, width - 1: unit
    })  # fmt: skip
    yield Row({0: unit, length: large, 2 * length: opposite, width - 1: unit})
    if length < 8 or profile.family == "promoted":
        return
    top = powers(low + profile.fraction_bits + 2, of)
    first, second = powers(low + kept, of), powers(low + 1, of)
    c = {length - 5: (-first[0], first[1]), length - 1: (-unit[0], unit[1])}
    c |= dict.fromkeys(range(length - 4, length - 1), (-second[0], second[1]))
    yield Row({**c, length: top, length + 1: (-top[0], top[1])})
    top = powers(low + profile.fraction_bits + 1, of)
    cut = dict.fromkeys((2, 3), (-unit[0], unit[1]))
    yield Row({0: top, 1: (-second[0], second[1]), **cut, width - 1: unit})


def _chunks_of_groups(kind: Kind, profile: DotProfile) -> Iterator[Row]:
    """Yield such sums for groups, in which the scales set the exponents."""
    size, length = kind.parameters["scale_block"], profile.chunk
    each = length // size
    low, high = (2.0**-4, 2.0**-4), (2.0**8, 2.0**8)
    last = (kind.width - 1) // size
    at = {0: ONES, length: ONES, 2 * length: (-1.0, 1.0), kind.width - 1: (1.0, 0.5)}
    yield Row(at, {0: high, each: low, 2 * each: high, last: low})
    yield Row(at, {0: low, each: high, 2 * each: high, last: low})
    tiny = {size + k: (-0.5, 0.5) for k in range(3)}
    yield Row(
        {0: (-1.0, 4.0), **tiny, length: (1.0, 1.0), length + 1: (-1.0, 1.0)},
        {1: (2.0**-9, 2.0**-9), each: high},
    )
    yield Row({0: (2.0, 4.0), size: (0.5, 0.5)}, {1: (2.0**-9, 2.0**-9)})
