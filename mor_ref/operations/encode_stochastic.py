"""encode_stochastic: numbers and random words to codes."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.encoding import SpecialCases, rounding_for
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import as_format, formats
from mor_ref.operations.bits import codes_array, numbers_of, tensor_of
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_numbers import (
    LAYOUTS,
    Draws,
    Words,
    bits_at,
    moved,
    numbers,
    share,
)

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Device

_U = np.uint64
_F32 = LAYOUTS["f32"]


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Encode number by number."""
    from mor_ref.exact import encode

    fmt, n = as_format(parameters["format"]), parameters["n_random_bits"]
    special = SpecialCases(overflow=parameters["overflow"])
    x = numbers_of(arrays["x"], parameters["source"])
    codes = [
        encode(number, fmt, "sr", special, random_word=word, n_random_bits=n)
        for number, word in zip(x, arrays["random_word"].tolist(), strict=True)
    ]
    return {"code": codes_array(codes, fmt)}


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Encode with the public function."""
    from mor_ref import encode

    code = encode(
        tensor_of(arrays["x"], parameters["source"]),
        parameters["format"],
        rounding="sr",
        overflow=parameters["overflow"],
        random_bits=arrays["random_word"],
        n_random_bits=parameters["n_random_bits"],
    )
    return {"code": code}


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Encode on a device."""
    from mor_ref.cuda.encoding import RandomBits, encode
    from mor_ref.cuda.launching import Bits

    fmt, special = as_format(parameters["format"]), SpecialCases(overflow=parameters["overflow"])
    random = RandomBits(arrays["random_word"], parameters["n_random_bits"])
    x = Bits(arrays["x"], parameters["source"])
    return {"code": encode(device, x, fmt, "sr", special, random)}


def random_inputs(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw numbers, and words: half are the last that round down, the next, or two steps away."""
    fmt, n = formats[parameters["format"]], parameters["n_random_bits"]
    x = numbers(draws, 0, fmt, parameters["source"])
    words = draws.words(3)
    fraction = _first_bits_dropped(x, fmt, n)
    decisive = moved((_U(1) << _U(n)) - fraction, share(bits_at(words, 8, 16), 16, 4), (1 << n) - 1)
    is_decisive = bits_at(words, 0, 1) == 0
    return {"x": x, "random_word": np.where(is_decisive, decisive, words >> _U(64 - n))}


def _first_bits_dropped(x: Words, target: Format, n: int) -> Words:
    """Return the first n of the bits that rounding drops of binary32 numbers."""
    field = np.maximum(bits_at(x, 23, 8), _U(1))
    hidden = np.where(bits_at(x, 23, 8) != 0, _U(_F32.hidden), _U(0))
    significand = (x & _U(_F32.hidden - 1)) + hidden
    smallest = _U(max(target.smallest_exponent + _F32.bias, 1))
    shift: Words = _U(23 - target.mantissa_bits) + np.maximum(field, smallest) - field
    rest: Words = significand & ((_U(1) << np.minimum(shift, _U(63))) - _U(1))
    up: Words = np.minimum(np.maximum(_U(n), shift) - shift, _U(32))
    down: Words = np.minimum(np.maximum(_U(n), shift) - _U(n), _U(63))
    first: Words = rest << up >> down
    return first


def _has_its_bits(parameters: Parameters, arrays: Arrays) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = arrays["random_word"] <= (1 << parameters["n_random_bits"]) - 1
    return inside


def admit(parameters: Parameters) -> None:
    """Refuse a format that has no stochastic rounding."""
    rounding_for(formats[parameters["format"]], "sr", SpecialCases())


ENCODE_STOCHASTIC = Operation(
    "encode_stochastic",
    kinds("format source:f32 n_random_bits overflow"),
    inputs=fields("n x source; n random_word u32"),
    outputs=fields("n code format"),
    exact=exact,
    engine=engine,
    cuda=cuda,
    admit=admit,
    rounded=None,
    random=RandomInputs(random_inputs, _has_its_bits, "the random word has n_random_bits bits"),
)
