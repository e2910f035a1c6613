"""Numbers that are hard to round: ties, neighbours of ties, and numbers that scales bring there."""

import itertools
import math
from collections.abc import Iterable, Iterator

import numpy as np

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.golden.inputs.edges import in_source, values_of
from mor_ref.golden.inputs.tensors import Tensor
from mor_ref.operations.bits import Unsigned

# The exponents of the smallest and the largest number of a source, and its bits of significand.
SOURCES = {"bf16": (-133, 127, 8), "f16": (-24, 15, 11), "f32": (-149, 127, 24)}
_TINY = (16, 20, 26, 32, 37, 43, 50, 59, 65, 70)
_ROWS = 3  # rows of numbers above ties, and as many below
_FARTHEST = 2.0**-12  # nearer numbers round to the tie in binary16
_HARD = 12  # numbers of a row that e4m3 is accepted for


def hard_numbers(fmt: Format, source: str, k: int = 0) -> Iterator[float]:
    """Yield, for each code, a number that is hard to round to it: the k-th list of such numbers.

    The number is a tie for an even code, and next to a tie for an odd one. In half of the first
    list, it is the number nearest to the tie. In all other cases, it differs from the tie in
    another bit of the significand.
    """
    bits = SOURCES[source][2]
    lower_bits = bits - fmt.mantissa_bits - 2
    finite = [v for v in map(fmt.value, range(fmt.code_count)) if math.isfinite(v)]
    for sign in (1, -1):
        values = sorted({0.0, *(abs(value) for value in finite if value * sign > 0)})
        for n, at in enumerate(values):
            # The count of bits decides, so that codes of every ending have both kinds of
            # neighbours.
            is_above = n == 0 or (n.bit_count() % 2 == k % 2 and n + 1 < len(values))
            tie = (at + values[n + 1 if is_above else n - 1]) / 2
            is_near = k == 0 and n % 8 < 4
            bit = 0 if is_near else (n // 8 + 5 * k + 8 * (sign < 0)) % lower_bits
            step = math.ldexp(1.0, math.frexp(tie)[1] - bits + bit)
            yield sign * (tie if n % 2 == 0 else tie - step if is_above else tie + step)


def in_both_signs(numbers: Iterable[float]) -> list[float]:
    """Return each magnitude once: four numbers of one sign, then four of the other, and so on."""
    pairs = np.array([*numbers]).reshape(2, -1).T.tolist()
    return [pair[n // 4 % 2] for n, pair in enumerate(pairs)]


def hard_rows(fmt: Format, source: str, width: int = 15) -> Unsigned:
    """Return rows of an amax and of numbers that are hard to round to a format.

    The amax makes the scale 1 in the first rows, which have tiny numbers, too.
    """
    lists = range(max(1, 64 // fmt.code_count))
    numbers = [x for k in lists for x in in_both_signs(hard_numbers(fmt, source, k))]
    numbers += [math.ldexp(-1.25 if n % 4 else 1.25, -n) for n in _TINY]
    numbers = [x for x in numbers if fits(x, fmt.largest, source)]
    rows = [
        [signed(n, fmt.largest), *numbers[start : start + width - 1]]
        for n, start in enumerate(range(0, len(numbers), width - 1))
    ]
    rows += rows_next_to_ties(fmt, source, width)
    padded = [row + [0.0] * (width - len(row)) for row in rows]
    return in_source([x for row in padded for x in row], source).reshape(-1, width)


def rows_next_to_ties(fmt: Format, source: str, width: int) -> Iterator[list[float]]:
    """Yield rows of an amax and numbers that its scale brings just above or just below ties.

    Each number is on the side of the odd code.
    """
    values = [float(value) for value in values_of(fmt)]
    exponent = math.frexp(fmt.largest)[1] - 1
    for first, sign in ((0, 1), (1, -1)):
        ties = [(a + b) / 2 for a, b in itertools.pairwise(values)][first::2]
        found = []
        for significand in range(129, 256):
            amax = math.ldexp(significand, exponent - 7)
            scale, near = np.float32(fmt.largest / amax), []
            for (n, tie), steps in itertools.product(enumerate(ties), (0, 1)):
                x = _next_to(tie / float(scale), source, steps)
                distance = sign * (float(np.float32(x) * scale) / tie - 1)
                if 0 < distance < _FARTHEST:
                    near.append((distance, signed(n, x)))
            chosen = [x for _, x in sorted(near)[: width - 1]]
            found.append((-len(chosen), sorted(near), [amax, *chosen]))
        yield from (row for count, _, row in sorted(found)[:_ROWS] if count)


def accepted(source: str) -> Tensor:
    """Return rows for which e4m3 is accepted; half of the numbers are normal and hard to round.

    The other numbers are powers of two, and a negative zero.
    """
    e4m3 = formats["e4m3"]
    normal = in_both_signs(hard_numbers(e4m3, source))[2 << e4m3.mantissa_bits :]
    rows = [
        [e4m3.largest, *normal[start : start + _HARD]] for start in range(0, len(normal), _HARD)
    ]
    of_scales = rows_next_to_ties(e4m3, source, 1 + _HARD)
    rows += [[x / 2 for x in row] for row in of_scales]  # 448 stays the largest number
    rows.append([e4m3.largest, e4m3.value(1) / 2, 1.0])
    filled = []
    for row in rows:
        hard = row + row[-1:] * (1 + _HARD - len(row))
        powers = [math.ldexp(1.0, math.frexp(x)[1] - 1) for x in hard[1:]]
        filled += [*hard, -0.0, *powers]
    return Tensor(f"accepted.{source}", source, in_source(filled, source).reshape(len(rows), -1))


def _next_to(x: float, source: str, steps: int) -> float:
    """Return x rounded toward zero to a number of the source, then moved up by `steps`."""
    low, _, bits = SOURCES[source]
    step = math.ldexp(1.0, max(math.frexp(x)[1] - bits, low))
    return math.copysign((abs(x) // step + steps) * step, x)


def signed(n: int, x: float) -> float:
    """Return x, or -x if n is odd."""
    return -x if n % 2 else x


def fits(value: float, amax: float, source: str) -> bool:
    """Return whether a source has this number, and its magnitude is at most `amax`."""
    return abs(value) <= amax and is_of(value, source)


def is_of(value: float, source: str) -> bool:
    """Return whether a source has this number exactly."""
    low, high, bits = SOURCES[source]
    if value == 0:
        return True
    exponent = math.frexp(value)[1] - 1
    step = max(exponent - bits + 1, low)
    return exponent <= high and math.ldexp(value, -step).is_integer()
