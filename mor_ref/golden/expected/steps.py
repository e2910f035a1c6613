"""Single steps: conversions, scales, elements, errors and decisions."""

from fractions import Fraction

import numpy as np

from mor_ref import exact
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.formats import as_format, presets
from mor_ref.definitions.policies import FitsRange, MeanRelativeError, Metric, NotWorseThan
from mor_ref.exact import policies, quantization
from mor_ref.exact.errors import ErrorSum
from mor_ref.exact.errors import error_term as exact_error_term
from mor_ref.exact.scales import group_mantissa, scale_of_block
from mor_ref.golden.expected.operation import Operation
from mor_ref.golden.model.bits import codes_array, f32_array, numbers_of
from mor_ref.golden.model.suite import Arrays, Parameters


def encode(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Numbers to codes."""
    fmt = as_format(parameters["format"])
    special = SpecialCases(overflow=parameters["overflow"], nan=parameters["nan"])
    numbers = numbers_of(arrays["x"], parameters["source"])
    codes = [exact.encode(x, fmt, parameters["rounding"], special) for x in numbers]
    return {"code": codes_array(codes, fmt)}


def encode_preset(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Numbers to codes as another library has them."""
    fmt = as_format(parameters["format"])
    special = presets[parameters["preset"]][fmt.name]
    numbers = numbers_of(arrays["x"], parameters["source"])
    return {"code": codes_array([exact.encode(x, fmt, special=special) for x in numbers], fmt)}


def encode_stochastic(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Numbers to codes, with random bits."""
    fmt, n = as_format(parameters["format"]), parameters["n_random_bits"]
    special = SpecialCases(overflow=parameters["overflow"])
    numbers = numbers_of(arrays["x"], parameters["source"])
    codes = [
        exact.encode(x, fmt, "sr", special, random_word=word, n_random_bits=n)
        for x, word in zip(numbers, arrays["random_word"].tolist(), strict=True)
    ]
    return {"code": codes_array(codes, fmt)}


def decode(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Codes to numbers."""
    fmt = as_format(parameters["format"])
    values = [exact.decode(code, fmt) for code in arrays["code"].tolist()]
    return {"value": np.array(values, np.uint32)}


def scale(parameters: Parameters, arrays: Arrays) -> Arrays:
    """The scale of a block from its amax and its group's."""
    largest, kind = as_format(parameters["format"]).largest, parameters["scaling"]
    groups, blocks = (numbers_of(arrays[name], "f32") for name in ("group_amax", "block_amax"))
    shared = [group_mantissa(largest, amax) if kind == "gam" else 0 for amax in groups]
    found = [scale_of_block(kind, largest, amax, m) for amax, m in zip(blocks, shared, strict=True)]
    return {
        "mantissa": np.array(shared, np.uint32),
        "exponent": np.array([scale.exponent_code or 0 for scale in found], np.uint8),
        "scale": f32_array(scale.value for scale in found),
    }


def quantize_element(parameters: Parameters, arrays: Arrays) -> Arrays:
    """One number and its scale."""
    fmt = as_format(parameters["format"])
    numbers, scales = (numbers_of(arrays[name], "f32") for name in ("x", "scale"))
    elements = [
        quantization.quantize_element(x, scale, fmt)
        for x, scale in zip(numbers, scales, strict=True)
    ]
    return {
        "xs": f32_array(e.xs for e in elements),
        "code": codes_array([e.code for e in elements], fmt),
        "y": f32_array(e.y for e in elements),
    }


def error_term(_: Parameters, arrays: Arrays) -> Arrays:
    """The error of one number."""
    numbers, found = (numbers_of(arrays[name], "f32") for name in ("x", "y"))
    terms = [exact_error_term(x, y) for x, y in zip(numbers, found, strict=True)]
    return {
        "d": f32_array(term.d for term in terms),
        "r": f32_array(term.r for term in terms),
        "u": np.array([term.u for term in terms], np.uint32),
    }


def decide(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Whether a metric accepts a unit of these sums."""
    columns = [arrays[name].tolist() for name in ("sum", "nonzero", "nonfinite")]
    extremes = [numbers_of(arrays[name], "f32") for name in ("amax", "amin")]
    others = [arrays[name].tolist() for name in ("limit", "yardstick_sum")]
    accepted = []
    for *sums, amax, amin, limit, yardstick in zip(*columns, *extremes, *others, strict=True):
        own = ErrorSum(*sums)
        metric = _metric(parameters, limit)
        errors = {"yardstick": ErrorSum(yardstick)}
        accepted.append(
            policies.loses_nothing(own) and policies.accepts(metric, own, errors, amax, amin)
        )
    return {"accepted": np.array(accepted, np.uint8)}


def _metric(parameters: Parameters, limit: int) -> Metric:
    match parameters["metric"]:
        case "mean_relative_error":
            return MeanRelativeError(Fraction(limit, 1 << 23))
        case "not_worse_than":
            return NotWorseThan("yardstick")
        case _:
            return FitsRange(parameters["format"])


OPERATIONS = tuple(
    Operation(function, by_row=True)
    for function in (
        encode,
        encode_preset,
        encode_stochastic,
        decode,
        scale,
        quantize_element,
        error_term,
        decide,
    )
)
