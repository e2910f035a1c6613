"""Units at which implementations of MoFQ differ: ties of errors and of sums, special numbers."""

import math
from collections.abc import Iterator

import numpy as np

from mor_ref.golden.inputs.edges import Bits, bell, narrowed
from mor_ref.golden.inputs.tensors import Tensor
from mor_ref.golden.model.suite import Size
from mor_ref.operations.bits import f32_bits
from mor_ref.operations.random_numbers import Draws
from mor_ref.schemes.mixed.operation import random_errors

_ONE, _HALF_UNIT = 0x3F800000, 1 << 2  # half a unit is 2^-21, or four steps of 1
_TOPS = (0x3F800000, 0x3FFFFFFF, 0x40490FDB, 0x00800000, 0x007FFFFF, 0x00000003, 0x7F7FFFFF,
         0x7F000000, 0x15123456)  # fmt: skip
_SPECIALS = (0x7FC00000, 0xFF800000, 0x7F800000, 0xFFC12345, 0x80000000, 0x00000001)
WIDTH = 8


def rows_with_values(size: Size, count: int) -> dict[str, Bits]:
    """Return rows with y of two candidates: rows written here, then random ones."""
    rows = [*_at_ties(), *_of_equal_sums(), *_special(), *_far()]
    written = np.array(rows, np.uint32)
    drawn = random_errors({"source": "f32"}, Draws(0, count * size.factor, size.seed, WIDTH))
    return {
        name: np.concatenate([written[:, k], drawn[name].astype(np.uint32)])
        for k, name in enumerate(("x", "first", "second"))
    }


def layers_with_values(size: Size, count: int) -> dict[str, Bits]:
    """Return two tensors for each layer; every other layer has its second candidates exchanged."""
    one = rows_with_values(size, count)
    rows = len(one["x"])
    other = {name: array[::-1] for name, array in one.items()}
    crossed = np.arange(rows) % 2 == 0
    ties = np.arange(rows) % 4 == 0  # the same rows with exchanged candidates: equal sums
    first, second = one["first"], one["second"]
    found = {
        "x": np.where(ties[:, None], one["x"], other["x"]),
        "first": np.where(crossed[:, None], other["second"], other["first"]),
        "second": np.where(crossed[:, None], other["first"], other["second"]),
    }
    found["first"] = np.where(ties[:, None], second, found["first"])
    found["second"] = np.where(ties[:, None], first, found["second"])
    return {**one, **{f"other_{name}": array for name, array in found.items()}}


def _padded(numbers: list[int], fill: int = 0) -> list[int]:
    return [*numbers, *[fill] * (WIDTH - len(numbers))]


def _at_ties() -> Iterator[list[list[int]]]:
    """Yield rows whose errors are ties between two integers, or are a step next to a tie."""
    for n in range(1, 24, 2):
        for off in (-1, 0, 1):
            steps = [(n + 2 * k) * _HALF_UNIT + off for k in range(3)]
            x = _padded([_ONE + step for step in steps], _ONE)
            y = _padded([_ONE] * 3, _ONE)
            other = _padded([_ONE + 2 * step for step in steps], _ONE)
            yield [x, y, other]
    for n in (1, 3, 5, 7):  # in binary32, a difference rounds to n half units
        low, far = f32_bits(n * 2.0**-21), f32_bits(2.0**-60)
        yield [_padded([_ONE, low, low]), _padded([_ONE, far | 1 << 31]), _padded([_ONE, far, low])]
    for top in _TOPS:  # the unit depends on the binade of amax alone
        x = _padded([top, top >> 1, top - 1, top - 2], top >> 2)
        yield [x, [bits & 0xFFFF8000 for bits in x], [bits & 0xFFFFC000 for bits in x]]
        yield [x, [0] * WIDTH, [bits | 0x80000000 for bits in x]]


def _of_equal_sums() -> Iterator[list[list[int]]]:
    """Yield rows whose sums are equal, one apart, or in another order than their means."""
    unit = 2 * _HALF_UNIT
    five = [_ONE + 5 * unit, *[_ONE] * 7]
    three_four = [_ONE + 3 * unit, _ONE + 4 * unit, *[_ONE] * 6]
    yield [[_ONE] * WIDTH, five, three_four]
    yield [[_ONE] * WIDTH, three_four, five]
    yield [[_ONE] * WIDTH, [*five[:7], _ONE + unit], three_four]
    yield [[_ONE] * WIDTH, three_four, [*five[:7], _ONE + unit]]
    eight = [_ONE + 3 * unit] * WIDTH  # sums of 72 and 64, totals of 24 and 8
    yield [[_ONE] * WIDTH, eight, [_ONE + 8 * unit, *[_ONE] * 7]]
    yield [[_ONE] * WIDTH, [_ONE + 8 * unit, *[_ONE] * 7], eight]
    yield [[0] * WIDTH, [0] * WIDTH, [0x80000000] * WIDTH]
    # Sums that are equal in binary32, and one apart as integers.
    large = [_ONE + 5000 * unit] * 7
    yield [[_ONE] * WIDTH, [*large, _ONE + unit], [*large, _ONE]]
    yield [[_ONE] * WIDTH, [*large, _ONE], [*large, _ONE + unit]]


def _special() -> Iterator[list[list[int]]]:
    """Yield rows with a number that does not count, or a y that is lost."""
    base = [0x3F9E3779 - (n << 19) for n in range(WIDTH)]
    near = [bits - 512 for bits in base]
    for k, special in enumerate(_SPECIALS):
        x, y = list(base), list(near)
        x[k] = special
        yield [x, y, base]
        yield [x, base, y]
        y[k] = special
        yield [base, y, near]
        yield [base, near, y]
    yield [[0x7FC00000] * WIDTH, near, base]
    yield [[0] * WIDTH, near, [0] * WIDTH]
    yield [[0] * WIDTH, [*_SPECIALS, 0, 0], near]


def _far() -> Iterator[list[list[int]]]:
    """Yield rows with an error at the limit, next to it and beyond it."""
    for y in (0x40800000, 0x40A00000, 0x409FFFFF, 0x40A00001, 0x7F7FFFFF, 0xFF7FFFFF, 0xC0400000):
        yield [[_ONE] * WIDTH, _padded([y], _ONE), _padded([_ONE, y], _ONE)]
        yield [[_ONE] * WIDTH, _padded([_ONE + 8], _ONE), _padded([y, y], _ONE)]
    for y in (0x7F7FFFFF, 0xFF7FFFFF, 0x7F000000):
        yield [_padded([0x7F7FFFFF, 0xFF7FFFFF]), _padded([y, y]), _padded([0, y])]


def tensors_of_units(size: Size) -> Iterator[Tensor]:
    """Yield tensors whose units of 4x8 take either candidate: even, steep, and with outliers."""
    even = np.linspace(-3, 3, 16 * 24, dtype=np.float32).reshape(16, 24)
    exponents = np.linspace(-18, 3, 16 * 24, dtype=np.float32).tolist()
    # Not by NumPy, whose binary32 powers differ between processors.
    steep = np.array([math.exp2(e) for e in exponents], np.float32).reshape(16, 24)
    halves = np.where(np.arange(24) < 12, even, steep * np.where(even < 0, -1, 1)).astype(
        np.float32
    )
    of_halves: Bits = np.ascontiguousarray(halves).view(np.uint32)
    bells = bell(16 * 24, size.seed, 95).reshape(16, 24)
    outliers = bells.copy()
    outliers[::5, ::7] += np.uint32(5 << 23)
    wide = np.where(np.arange(24) % 3 == 0, bells + np.uint32(9 << 23), bells).astype(np.uint32)
    yield from _exact_in_e5m2()
    ties = np.tile(np.array([[6, 0.5, -1.5, 3, -4, 1.5, -0.5, 0.5]], np.float32), (4, 1))
    ties[0, 2], ties[1, 3], ties[2, 4], ties[3, 5], ties[1, 1] = 2.5, 5, -0.25, 1.75, -0.75
    for source in ("f32", "bf16", "f16"):  # all of these numbers are exact in each
        yield Tensor(f"ties.{source}", source, narrowed(ties.view(np.uint32), source))
    huge = np.where(np.arange(32) % 3 == 0, 0x7F7FFFFF, 0x7F400001 - np.arange(32) * 0x3A3A1)
    yield Tensor("top.f32", "f32", huge.astype(np.uint32).reshape(4, 8))
    for name, bits in (("halves", of_halves), ("outliers", outliers), ("wide", wide)):
        for source in ("f32", "bf16", "f16"):
            with np.errstate(all="ignore"):
                yield Tensor(f"{name}.{source}", source, narrowed(bits, source))


def _exact_in_e5m2() -> Iterator[Tensor]:
    """Yield units that take e5m2: 1.75, and numbers too small for e4m3; some are not finite."""
    x = np.full((12, 8), 1.75 * 2.0**-17, np.float32)
    x[:, 1::2] = -1.25 * 2.0**-17
    x[:, 3] = 1.75
    bits = x.view(np.uint32)
    bits[1, 5], bits[5, 0], bits[6, 2], bits[9, 7] = 0x7F800000, 0xFF800000, 0xFFC12345, 0x7FC00001
    yield Tensor("low.f32", "f32", bits)
