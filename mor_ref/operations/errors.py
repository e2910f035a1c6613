"""error_term: the error of a number, from it and from the number that it became.

Operations on tensors have the errors of their elements, and sums of them, as fields.
"""

import math

import numpy as np
from numpy.typing import NDArray

from mor_ref.exact.blocks import Rows
from mor_ref.exact.errors import error_term
from mor_ref.exact.quantization import Element
from mor_ref.operations.call import Arrays, Call, DeviceArrays, DeviceCall, Parameters, Results
from mor_ref.operations.fields import Field, expected, given
from mor_ref.operations.operation import Operation, RandomInputs
from mor_ref.operations.random_numbers import LAYOUTS, Draws, bits_at, magnitudes_of, share
from mor_ref.operations.results import each

_U = np.uint64
_F32 = LAYOUTS["f32"]


def exact(call: Call) -> Results:
    """Compute term by term."""
    return each((error_term(x, y) for x, y in call.together("x", "y")), "d", "r", "u")


def engine(call: Call) -> Results:
    """Compute with the step of the engine's loops."""
    from mor_ref.engine.steps import errors_of_elements

    x, y = call.arrays["x"], call.arrays["y"]
    errors = {name: np.empty_like(x) for name in "dru"}
    errors_of_elements(x, y, *errors.values())
    return errors


def cuda(call: DeviceCall) -> DeviceArrays:
    """Compute on a device."""
    from mor_ref.cuda.errors import error_steps

    return error_steps(call.device, call.arrays["x"], call.arrays["y"])


def random_inputs(_: Parameters, draws: Draws) -> Arrays:
    """Draw numbers with few bits or any, and a y some steps away, far away, or 0."""
    words, choices = draws.words(0), draws.words(1)
    exponents = share(choices >> _U(32), 32, 254 + 23).astype(np.int64) - 22
    few = words >> _U(61) << _U(20)  # the ties of u lie at such numbers
    x = magnitudes_of(exponents, np.where(bits_at(choices, 0, 1) == 0, few, words), _F32)
    distance = bits_at(words, 24, 32) & ((_U(1) << share(bits_at(choices, 8, 8), 8, 26)) - _U(1))
    y = np.where(bits_at(choices, 1, 1) == 0, x + distance, np.maximum(x, distance) - distance)
    y = np.minimum(y, _U(_F32.infinity))
    # One in sixteen is any number, of any sign.
    is_any, sign_of_any = bits_at(choices, 2, 4) == 0, bits_at(choices, 16, 1) << _U(31)
    any_y = np.minimum(bits_at(words, 24, 31), _U(_F32.infinity)) | sign_of_any
    sign = (words >> _U(60) & _U(1)) << _U(31)
    return {"x": x | sign, "y": np.where(is_any, any_y, y | sign)}


def _has_an_error(_: Parameters, arrays: Arrays) -> NDArray[np.bool_]:
    magnitude = arrays["x"] & 0x7FFFFFFF
    inside: NDArray[np.bool_] = (magnitude != 0) & (magnitude <= _F32.largest)
    return inside & ((arrays["y"] & 0x7FFFFFFF) <= _F32.infinity)


def error_results(x: Rows, elements: list[list[Element]]) -> Results:
    """Return the error of each element; 0 for an element that does not count."""
    terms = [
        error_term(number, element.y) if math.isfinite(number) and number != 0 else None
        for numbers, row in zip(x, elements, strict=True)
        for number, element in zip(numbers, row, strict=True)
    ]
    return {name: [0 if term is None else getattr(term, name) for term in terms] for name in "dru"}


def sum_fields(axes: str, tried: str = "") -> tuple[Field, ...]:
    """Return the fields of the three sums of each unit, maybe under a representation."""
    prefix, under = (f"{tried}.", f", under {tried}") if tried else ("", "")
    lost = f"how many elements of each unit are lost{under}"
    count = f"how many elements of each unit count{under}"
    return (
        expected(
            f"{prefix}sum u64 {axes}", f"the sum of u over each unit{under}", "ERR-002 ERR-004"
        ),
        expected(f"{prefix}nonzero u64 {axes}", count, "ERR-002"),
        expected(f"{prefix}nonfinite u64 {axes}", lost, "ERR-003"),
    )


ERROR_TERM = Operation(
    "error_term",
    {},
    (
        given("x f32 n", "the number, finite and not zero"),
        given("y f32 n", "what it has become"),
        expected("d f32 n", "their distance", "ERR-001"),
        expected("r f32 n", "d / |x|, at most 1", "ERR-001"),
        expected("u u32 n", "r * 2^23 as an integer", "ERR-001"),
    ),
    model=exact,
    function=engine,
    kernels=cuda,
    random=RandomInputs(
        random_inputs, _has_an_error, "x is finite and not zero, and y is not a NaN"
    ),
)
