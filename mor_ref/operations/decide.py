"""decide: whether a metric accepts a unit, from its sums."""

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import as_format, formats
from mor_ref.exact.errors import SUMS
from mor_ref.metrics import FitsRange, MeanRelativeError, Metric, NotWorseThan
from mor_ref.operations.bits import numbers_of
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_numbers import (
    LAYOUTS,
    Draws,
    Words,
    bits_at,
    edge_fractions,
    magnitudes_of,
    moved,
    share,
)

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Device

_U = np.uint64
_YARDSTICK = "e5m2"  # any representation: the columns have its sums
_F32 = LAYOUTS["f32"]
_MOST_ELEMENTS = 1 << 40  # of a unit (ERR-005)
_MOST_SUM = 1 << 63
_LIMIT_OF_ONE = 1 << 23
_LIMITS = np.array([377487, 1, 838861, 1677722, 419430, 4194304, _LIMIT_OF_ONE], _U)


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Decide unit by unit."""
    from mor_ref.exact.errors import ErrorSum
    from mor_ref.exact.policies import loses_nothing

    columns = [arrays[name].tolist() for name in SUMS]
    extremes = [numbers_of(arrays[name], "f32") for name in ("amax", "amin")]
    others = [arrays[name].tolist() for name in ("limit", "yardstick_sum")]
    accepted = []
    for *sums, amax, amin, limit, yardstick in zip(*columns, *extremes, *others, strict=True):
        own, metric = ErrorSum(*sums), _metric(parameters, limit)
        errors = {_YARDSTICK: ErrorSum(yardstick)}
        accepted.append(loses_nothing(own) and metric.accepts(own, errors, amax, amin))
    return {"accepted": np.array(accepted, np.uint8)}


def _metric(parameters: Parameters, limit: int) -> Metric:
    match parameters["metric"]:
        case "mean_relative_error":
            return MeanRelativeError(Fraction(limit, 1 << 23))
        case "not_worse_than":
            return NotWorseThan(_YARDSTICK)
        case _:
            return FitsRange(parameters["format"])


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Decide with the functions that the engine decides with."""
    from mor_ref.engine.policies import fits_range, is_below, is_not_worse
    from mor_ref.engine.scales import Extremes

    own = np.stack([arrays[name] for name in SUMS], axis=-1)
    if parameters["metric"] == "not_worse_than":
        yardstick = np.stack([arrays["yardstick_sum"]] * 3, axis=-1)
        accepted = is_not_worse(own, yardstick)
    elif parameters["metric"] == "fits_range":
        extremes = Extremes(arrays["amax"], arrays["amin"])
        accepted = fits_range(own, extremes, formats[parameters["format"]])
    else:
        accepted = is_below(own, arrays["limit"].astype(np.uint64))
    return {"accepted": (accepted & (arrays["nonfinite"] == 0)).astype(np.uint8)}


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Decide on a device."""
    from mor_ref.cuda.policies import decision_steps

    fmt = as_format(parameters["format"]) if "format" in parameters else None
    return {"accepted": decision_steps(device, parameters["metric"], fmt, dict(arrays))}


def random_inputs(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw sums at, next to and far from where the metric turns."""
    metric, choices = parameters["metric"], draws.words(0)
    nothing = np.zeros(draws.count, _U)
    names = ("sum", "nonzero", "nonfinite", "limit", "yardstick_sum", "amax", "amin")
    found = dict.fromkeys(names, nothing)
    found["nonfinite"] = np.where(bits_at(choices, 0, 4) == 0, bits_at(choices, 4, 2), _U(0))
    found["nonzero"] = _of_any_length(draws, 1, 41, _MOST_ELEMENTS)
    steps = share(bits_at(choices, 8, 16), 16, 5)
    if metric == "mean_relative_error":
        usual = _LIMITS[share(bits_at(choices, 25, 7), 7, _LIMITS.size)]
        any_limit = share(choices >> _U(32), 32, _LIMIT_OF_ONE) + _U(1)
        found["limit"] = np.where(bits_at(choices, 24, 1) == 0, usual, any_limit)
        turn = found["limit"] * found["nonzero"]
    else:
        turn = _of_any_length(draws, 2, 63, _MOST_SUM - 1)
    if metric == "not_worse_than":
        found["yardstick_sum"] = turn
    far = np.minimum(_of_any_length(draws, 3, 63, _MOST_SUM), found["nonzero"] << _U(23))
    near = moved(turn, steps, _MOST_SUM)
    found["sum"] = np.where(bits_at(choices, 6, 2) == 0, far, near)
    if metric == "fits_range":
        found |= _range(formats[parameters["format"]], draws, steps)
    return found


def _of_any_length(draws: Draws, stream: int, lengths: int, most: int) -> Words:
    """Draw integers of any number of bits below `lengths`."""
    words = draws.words(stream)
    length = share(bits_at(words, 0, 16), 16, lengths + 1)
    return np.minimum(words >> _U(1) >> (_U(63) - length), _U(most))


def _range(fmt: Format, draws: Draws, steps: Words) -> dict[str, Words]:
    """Draw magnitudes amin and amax whose ratio is that of the format, or next to it."""
    ratio = fmt.largest / float(fmt.smallest_normal or 1)
    choices = draws.words(4)
    highest = max(2, 254 - math.frexp(ratio)[1])
    exponents = share(choices >> _U(32), 32, highest + 22).astype(np.int64) - 22
    amin = magnitudes_of(exponents, edge_fractions(draws, 5, fmt.largest), _F32)
    amin = np.clip(amin, _U(1), _U(_F32.largest))
    with np.errstate(over="ignore"):
        turns = amin.astype(np.uint32).view(np.float32).astype(np.float64) * ratio
        near = moved(turns.astype(np.float32).view(np.uint32).astype(_U), steps, _F32.largest)
    far = np.maximum(amin, bits_at(choices, 0, 31) % _U(_F32.largest))
    return {
        "amax": np.where(choices >> _U(62) == 0, far, np.maximum(near, amin)),
        "amin": amin,
    }


def _are_sums(parameters: Parameters, arrays: Arrays) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = arrays["nonzero"] <= _MOST_ELEMENTS
    inside &= arrays["limit"] <= _LIMIT_OF_ONE
    if parameters["metric"] == "fits_range":
        inside &= arrays["amax"] <= _F32.largest
        inside &= arrays["amin"] <= arrays["amax"]
        inside &= (arrays["amin"] != 0) | (arrays["nonzero"] == 0)
    return inside


def admit(parameters: Parameters) -> None:
    """Refuse a format without the metric that needs one, and the metric without the format."""
    if (parameters["metric"] == "fits_range") != ("format" in parameters):
        raise ValueError("a format goes with the metric fits_range, and with no other")
    if "format" in parameters:
        FitsRange(parameters["format"])


DECIDE = Operation(
    "decide",
    kinds("metric"),
    inputs=fields("n sum,nonzero,nonfinite,yardstick_sum u64; n limit u32; n amax,amin f32"),
    outputs=fields("n accepted u8"),
    exact=exact,
    engine=engine,
    cuda=cuda,
    admit=admit,
    optional=kinds("format"),
    random=RandomInputs(
        random_inputs,
        _are_sums,
        "nonzero is at most 2^40, limit at most 2^23, and 0 < amin <= amax where a range is tested",
    ),
)
