"""error_term: the error of a number, from it and from the number that it became."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.operations.bits import f32_array, numbers_of
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters, RandomInputs
from mor_ref.operations.random_numbers import LAYOUTS, Draws, bits_at, magnitudes_of, share

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Device

_U = np.uint64
_F32 = LAYOUTS["f32"]


def exact(_: Parameters, arrays: Arrays) -> Arrays:
    """Compute term by term."""
    from mor_ref.exact.errors import error_term

    x, y = (numbers_of(arrays[name], "f32") for name in ("x", "y"))
    terms = [error_term(*pair) for pair in zip(x, y, strict=True)]
    return {
        "d": f32_array(term.d for term in terms),
        "r": f32_array(term.r for term in terms),
        "u": np.array([term.u for term in terms], np.uint32),
    }


def engine(_: Parameters, arrays: Arrays) -> Arrays:
    """Compute with the step of the engine's loops."""
    from mor_ref.engine.steps import errors_of_elements

    d, r, u = (np.empty_like(arrays["x"]) for _ in range(3))
    errors_of_elements(arrays["x"], arrays["y"], d, r, u)
    return {"d": d, "r": r, "u": u}


def cuda(device: "Device", _: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Compute on a device."""
    from mor_ref.cuda.errors import error_steps

    return error_steps(device, arrays["x"], arrays["y"])


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


ERROR_TERM = Operation(
    "error_term",
    {},
    inputs=fields("n x,y f32"),
    outputs=fields("n d,r f32; n u u32"),
    exact=exact,
    engine=engine,
    cuda=cuda,
    random=RandomInputs(
        random_inputs, _has_an_error, "x is finite and not zero, and y is not a NaN"
    ),
)
