"""encode, encode_preset and encode_stochastic: numbers to codes."""

import numpy as np
from numpy.typing import NDArray

import mor_ref
from mor_ref.definitions.encoding import SpecialCases, rounding_for
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import encoding_profiles, formats, special_cases_for
from mor_ref.exact.encoding import encode
from mor_ref.operations.call import Arrays, Call, DeviceArrays, DeviceCall, Parameters, Results
from mor_ref.operations.fields import expected, given
from mor_ref.operations.nearest import Nearest, Operand
from mor_ref.operations.operation import Operation, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_numbers import (
    ANY_NUMBER,
    LAYOUTS,
    Draws,
    Words,
    any_row,
    bits_at,
    moved,
    numbers,
    share,
)

_U = np.uint64
_F32 = LAYOUTS["f32"]


def special_cases(call: Call) -> SpecialCases:
    """Return what becomes of an overflow and of a NaN: as parameters say, or as a library does."""
    if (profile := call.get("preset")) is not None:
        return encoding_profiles[profile][call.fmt.name]
    return SpecialCases(**call.arguments("overflow nan"))


def exact(call: Call) -> Results:
    """Encode number by number."""
    fmt, rounding, special = call.fmt, call.get("rounding"), special_cases(call)
    return {"code": [encode(x, fmt, rounding, special) for x in call.numbers()]}


def engine(call: Call) -> Results:
    """Encode with the public function."""
    arguments = call.arguments("rounding overflow nan")
    profile = call.get("preset")
    return {"code": mor_ref.encode(call.tensor(), call["format"], profile=profile, **arguments)}


def cuda(call: DeviceCall) -> DeviceArrays:
    """Encode on a device."""
    from mor_ref.cuda.encoding import encode

    special = special_cases(call)
    rounding = rounding_for(call.fmt, call.get("rounding"), special)
    return {"code": encode(call.device, call.bits(), call.fmt, rounding, special)}


def random_inputs(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw numbers at which encoders to the format differ."""
    return {"x": numbers(draws, 0, formats[parameters["format"]], parameters["source"])}


def admit(parameters: Parameters) -> None:
    """Refuse a rounding that the format does not have."""
    rounding_for(formats[parameters["format"]], parameters["rounding"], SpecialCases())


def operand(call: Call) -> Operand | None:
    """Return the numbers, or the magnitudes that powers of two encode, if rounded to nearest."""
    rounding = rounding_for(call.fmt, call.get("rounding"), special_cases(call))
    if rounding not in ("rne", "rna"):
        return None
    x = call.tensor()
    return Operand(np.abs(x) if call.fmt.is_power_of_two else x, call.fmt)


def admit_profile(parameters: Parameters) -> None:
    """Refuse a profile that does not have the format."""
    special_cases_for(formats[parameters["format"]], None, None, parameters["preset"])


def exact_stochastic(call: Call) -> Results:
    """Encode number by number, each with its random word."""
    fmt, special, n = call.fmt, special_cases(call), call["n_random_bits"]
    pairs = call.together("x", "random_word")
    codes = [encode(x, fmt, "sr", special, random_word=w, n_random_bits=n) for x, w in pairs]
    return {"code": codes}


def engine_stochastic(call: Call) -> Results:
    """Encode with the public function, each number with its random word."""
    arguments = call.arguments("overflow n_random_bits")
    words = call.arrays["random_word"]
    code = mor_ref.encode(
        call.tensor(), call["format"], rounding="sr", random_bits=words, **arguments
    )
    return {"code": code}


def cuda_stochastic(call: DeviceCall) -> DeviceArrays:
    """Encode on a device, each number with its random word."""
    from mor_ref.cuda.encoding import RandomBits, encode

    random = RandomBits(call.arrays["random_word"], call["n_random_bits"])
    return {"code": encode(call.device, call.bits(), call.fmt, "sr", special_cases(call), random)}


def random_stochastic(parameters: Parameters, draws: Draws) -> Arrays:
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


def admit_stochastic(parameters: Parameters) -> None:
    """Refuse a format that has no stochastic rounding."""
    rounding_for(formats[parameters["format"]], "sr", SpecialCases())


_RULES = " ".join(f"ENC-{k:03}" for k in (1, 2, 3, 4, *range(6, 16)))
_X = given("x source n", "the number")
ENCODE = Operation(
    "encode",
    kinds("format source:any_source rounding overflow nan"),
    (_X, expected("code format n", "the code of x", _RULES)),
    model=exact,
    function=engine,
    kernels=cuda,
    admit=admit,
    rounded="x",
    nearest=Nearest(operand),
    random=RandomInputs(random_inputs, any_row, ANY_NUMBER),
)
ENCODE_PRESET = Operation(
    "encode_preset",
    kinds("format source:any_source preset"),
    (_X, expected("code format n", "the code of x", "ENC-016")),
    model=exact,
    function=engine,
    kernels=cuda,
    admit=admit_profile,
    rounded="x",
    nearest=Nearest(operand),
    random=RandomInputs(random_inputs, any_row, ANY_NUMBER),
)
ENCODE_STOCHASTIC = Operation(
    "encode_stochastic",
    kinds("format source:f32 n_random_bits overflow"),
    (
        _X,
        given("random_word u32 n", "its random bits, n_random_bits of them"),
        expected("code format n", "the code of x", "ENC-005"),
    ),
    model=exact_stochastic,
    function=engine_stochastic,
    kernels=cuda_stochastic,
    admit=admit_stochastic,
    rounded=None,
    random=RandomInputs(random_stochastic, _has_its_bits, "the random word has n_random_bits bits"),
)
