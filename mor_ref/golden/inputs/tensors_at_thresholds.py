"""Tensors a step from a change of the scale, or of a decision by an error sum or a range."""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.scales import Scaling
from mor_ref.exact import arithmetic
from mor_ref.exact.errors import error_term
from mor_ref.golden.inputs.amaxes_at_thresholds import (
    LOGARITHMS,
    SOME_BINADES,
    SOME_STEPS,
    around,
    pairs_of_gam,
    with_subnormal_reciprocals,
)
from mor_ref.golden.inputs.tensors import Tensor
from mor_ref.metrics import MeanRelativeError
from mor_ref.operations.bits import f32_array

_SIDES = (8, 16)
_UNITS = 1 << 23  # units of u in a relative error of 1
_LOST = 2.0**-11  # becomes 0 in e4m3 and in NVFP4 if the scale is 1
# The metric; the largest number, which makes scales 1 or a power of two; how many elements count;
# and the largest u of a number that becomes 1.
_TURNS = {
    "e4m3": (MeanRelativeError(0.045), 448.0, 96, _UNITS // 17),
    "nvfp4": (MeanRelativeError("0.20"), 2688.0, 64, _UNITS // 5),
}


def turning_points() -> Iterator[Tensor]:
    """Yield tensors whose error sum or range is at the limit of a decision, or a step from it."""
    for name, (metric, largest, nonzero, most) in _TURNS.items():
        for word, step in (("below", -1), ("at", 0), ("above", 1)):
            total = metric.limit * nonzero + step
            x = _with_error_sum(total, largest, nonzero, most)
            yield Tensor(f"{name}_{word}_its_limit.f32", "f32", x)
    for word, amax, amin in _ranges():
        x = np.zeros(_SIDES, np.uint32)
        x[0, :3] = f32_array((amax, amin, amin))
        yield Tensor(f"range_{word}.f32", "f32", x)


def _with_error_sum(total: int, largest: float, nonzero: int, most: int) -> np.ndarray:
    """Return numbers whose u add up to `total`; all rows but the first begin with 6."""
    rows, columns = _SIDES
    lost, rest = divmod(total, _UNITS)
    parts = -(-rest // most)
    errors = [rest * (k + 1) // parts - rest * k // parts for k in range(parts)]
    numbers = [_LOST] * lost + [_with_error(u) for u in errors]
    exact = nonzero - rows - len(numbers)
    numbers += [1.0] * exact + [0.0] * ((rows - 1) * (columns - 1) - exact - len(numbers))
    x = np.zeros(_SIDES, np.uint32)
    x[0, 0], *x[1:, 0] = f32_array((largest, *[6.0] * (rows - 1)))
    x[1:, 1:] = f32_array(numbers).reshape(rows - 1, columns - 1)
    return x


def _with_error(u: int) -> float:
    """Return a number next to 1 whose error is u if it becomes 1."""
    first = u * _UNITS // (_UNITS - u)
    near = (1 + Fraction(first + k, _UNITS) for k in (-1, 0, 1, 2))
    return next(x for x in map(float, near) if error_term(x, 1.0).u == u)


def _ranges() -> Iterator[tuple[str, float, float]]:
    """Yield the range of e5m2, a wider one, and ranges that inexact arithmetic judges wrongly."""
    e5m2 = formats["e5m2"]
    smallest = e5m2.smallest_normal or 1
    ratio = Fraction(e5m2.largest) / Fraction(smallest)
    yield "fits", e5m2.largest, float(smallest)
    yield "fits_with_subnormals", e5m2.largest, float(smallest) / 2
    for significand in itertools.count(1 << 23):
        amin = Fraction(significand) * Fraction(2) ** -37
        above = arithmetic.rn32(amin * ratio)
        if amin * ratio < above and arithmetic.quotient(above, float(amin)) == ratio:
            yield "fits_if_rounded", above, float(amin)
            break
    for significand in itertools.count(1 << 20):
        low = math.ldexp(significand, -100)
        high = low * float(ratio)
        if math.log2(high) - math.log2(low) > math.log2(ratio):
            yield "fits_but_by_logarithms", high, low
            return


def rows_at_turns(fmt: Format, scaling: Scaling) -> Iterator[Tensor]:
    """Yield rows whose amaxes are next to a change of the scale; the first is the largest."""
    largest = Fraction(fmt.largest)
    binades = (*SOME_BINADES, *with_subnormal_reciprocals(largest))
    turns = [*around(largest, binades, SOME_STEPS), *around(largest, LOGARITHMS, (0,))]
    amaxes = {"largest": np.array([max(turns), *turns], np.uint32)}
    if scaling == "gam":
        groups, blocks = pairs_of_gam(fmt)
        for group in np.unique(groups)[1::6]:
            amaxes[f"{group:08x}"] = np.append(group, blocks[groups == group])
    for name, found in amaxes.items():
        x = np.stack([found | np.uint32(0x80000000), found - found // 64], axis=1)
        yield Tensor(f"turning_{name}.f32", "f32", x)
