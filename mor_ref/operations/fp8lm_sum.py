"""fp8lm_sum: the sum of the codes of all ranks; a row has one code of each rank."""

from typing import TYPE_CHECKING

import numpy as np

from mor_ref.definitions.fp8lm import format_of
from mor_ref.operations.bits import codes_array
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_numbers import Draws, any_row, bits_at, share

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Device

_MOST_RANKS = 1 << 12  # binary64 holds each sum of so many
_U = np.uint64


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Compute with the exact model."""
    from mor_ref.exact.fp8lm import sum_of

    fmt = format_of(parameters["format"])
    rows = ([fmt.value(code) for code in row] for row in arrays["code"].tolist())
    return {"sum": codes_array([sum_of(row, fmt, parameters["sums"]) for row in rows], fmt)}


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Compute as the all-reduce does."""
    from mor_ref.fp8lm import sums_of

    codes = np.ascontiguousarray(arrays["code"].T)
    return {"sum": sums_of(codes, format_of(parameters["format"]), parameters["sums"])}


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Compute on a device."""
    from mor_ref.cuda.fp8lm import sums_of_ranks

    fmt = format_of(parameters["format"])
    return {"sum": sums_of_ranks(device, arrays["code"], fmt, parameters["sums"])}


def random_inputs(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw rows of codes in few binades, so that sums are ties, and some codes of any kind."""
    fmt, per_number = format_of(parameters["format"]), draws.per_number()
    shape = (draws.count, draws.width)
    words, choices = per_number.words(0).reshape(shape), draws.words(1)[:, np.newaxis]
    step = _U(1 << fmt.mantissa_bits)
    lowest = share(bits_at(choices, 0, 16), 16, fmt.largest_code // int(step)) * step
    binades = share(bits_at(choices, 16, 8), 8, 4) + _U(1)
    near = np.minimum(lowest + share(bits_at(words, 0, 24), 24, binades * step), fmt.largest_code)
    anywhere = bits_at(words, 24, fmt.bits)
    is_any = (bits_at(words, 56, 5) == 0) & (bits_at(choices, 32, 2) == 0)
    signs = bits_at(words, 48, 1) * (bits_at(choices, 40, 1)) * _U(fmt.sign_bit)
    return {"code": np.where(is_any, anywhere, near | signs)}


FP8LM_SUM = Operation(
    "fp8lm_sum",
    kinds("format:fp8lm_format sums"),
    inputs=fields("nk code format"),
    outputs=fields("n sum format"),
    exact=exact,
    engine=engine,
    cuda=cuda,
    random=RandomInputs(random_inputs, any_row, "every code is taken"),
    widths=(1, _MOST_RANKS),
)
