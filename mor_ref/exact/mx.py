"""MX: blocks along a row that share a power of two, by four rules."""

import math
from dataclasses import dataclass

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.exact.arithmetic import product, quotient
from mor_ref.exact.blocks import Rows, cells
from mor_ref.exact.encoding import encode, floor_log2, in_units_of
from mor_ref.exact.quantization import Element, RandomWords
from mor_ref.exact.step import step

_E8M0 = formats["e8m0"]
_NAN_CODE = 0xFF
_LARGEST_CODE = 254
_EXPONENT_OF_INFINITY = 128


@dataclass(frozen=True)
class Mx:
    """A tensor in MX. `scale` has the e8m0 code of each block, keyed by its place in the grid."""

    elements: list[list[Element]]
    scale: dict[tuple[int, int], int]


def mx(x: Rows, fmt: Format, rule: str, block: int, words: RandomWords | None = None) -> Mx:
    """Quantize a tensor to MX; with random words, rounding is stochastic (QNT-005)."""
    rows, columns = len(x), len(x[0]) if x else 0
    elements = [[Element(0.0, 0, 0.0)] * columns for _ in range(rows)]
    scale = {}
    for place, members in cells(rows, columns, (1, block)).items():
        numbers = [x[i][j] for i, j in members]
        stored = scale[place] = scale_code(numbers, fmt, rule)
        for (i, j), number in zip(members, numbers, strict=True):
            element = quantize_element(number, stored, fmt, rule)
            if words is not None and stored != _NAN_CODE:
                code = words.code(element.xs, fmt, (i, j))
                element = Element(element.xs, code, restored(fmt.value(code), stored))
            elements[i][j] = element
    return Mx(elements, scale)


@step
def scale_code(numbers: list[float], fmt: Format, rule: str) -> int:
    """Return the e8m0 code of a block (MXS-002 to MXS-006)."""
    if any(map(math.isnan, numbers)):
        return _NAN_CODE
    amax = amax_of(numbers)
    if amax == 0:
        return 0
    if SCALE_RULES[rule].up_from is None:
        return encode(quotient(amax, fmt.largest), _E8M0, "rtp")  # MXS-006
    exponent = shared_exponent(amax, fmt, rule) - floor_log2(fmt.largest)
    return min(max(exponent + _E8M0.bias, 0), _LARGEST_CODE)


@step
def amax_of(numbers: list[float]) -> float:
    """Return the largest magnitude of a block without NaN, infinities included (MXS-002)."""
    return max(map(abs, numbers), default=0.0)


@step
def shared_exponent(amax: float, fmt: Format, rule: str) -> int:
    """Return the exponent of an amax with a scale rule (MXS-003, MXS-004, MXS-005)."""
    if math.isinf(amax):
        return _EXPONENT_OF_INFINITY
    exponent = floor_log2(amax)
    significand, _, _ = in_units_of(exponent - 23, amax)
    goes_up = significand - 2**23 >= SCALE_RULES[rule].up_from_of(fmt)
    return exponent + goes_up


@step
def quantize_element(x: float, code: int, fmt: Format, rule: str) -> Element:
    """Quantize a number with the scale of that code (MXS-007, MXS-008).

    It is the same with every scale rule.
    """
    del rule
    xs = math.nan if code == _NAN_CODE else product(x, math.ldexp(1.0, _E8M0.bias - code))
    element = encode(xs, fmt, "rne")
    return Element(xs, element, restored(fmt.value(element), code))


@step
def restored(value: float, code: int) -> float:
    """Return the value of a code with the scale of its block (MXS-008)."""
    if code == _NAN_CODE:
        return math.nan
    return product(value, math.ldexp(1.0, code - _E8M0.bias))


@step
def decoded(element: int, code: int, fmt: Format) -> float:
    """Return the number of any code with any scale (MXS-009)."""
    return restored(fmt.value(element), code)


def converted(tensor: Mx, fmt: Format, rule: str, block: int, *, turned: bool = False) -> Mx:
    """Quantize y to another MX format, or the transposed y (MXS-010)."""
    rows = [[element.y for element in row] for row in tensor.elements]
    return mx(
        [list(column) for column in zip(*rows, strict=True)] if turned else rows, fmt, rule, block
    )
