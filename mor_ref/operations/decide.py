"""decide: whether a metric accepts a unit, from its sums."""

import math
from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.exact.errors import SUMS, ErrorSum
from mor_ref.metrics import METRICS, Metric
from mor_ref.metrics.metric import accepts
from mor_ref.operations.bits import numbers_of
from mor_ref.operations.fields import fields
from mor_ref.operations.margins import distance, largest
from mor_ref.operations.operation import (
    Arrays,
    Compared,
    DeviceArrays,
    Operation,
    Parameters,
    RandomInputs,
)
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
_USUAL_RANGE = "e5m2"  # of magnitudes for a metric without a format
_F32 = LAYOUTS["f32"]
_MOST_ELEMENTS = 1 << 40  # of a unit (ERR-005)
_MOST_SUM = 1 << 63
_LIMIT_OF_ONE = 1 << 23
_LIMITS = np.array([377487, 1, 838861, 1677722, 419430, 4194304, _LIMIT_OF_ONE], _U)


class Question(NamedTuple):
    """A unit of a case: the metric that is asked, the sums of the unit, and its magnitudes."""

    metric: Metric
    error: ErrorSum
    errors: dict[str, ErrorSum]
    amax: float
    amin: float


def questions(parameters: Parameters, arrays: Arrays) -> Iterator[Question]:
    """Yield the question about each unit of a case."""
    columns = [arrays[name].tolist() for name in (*SUMS, "limit", "yardstick_sum")]
    extremes = [numbers_of(arrays[name], "f32") for name in ("amax", "amin")]
    row = METRICS[parameters["metric"]]
    for *sums, limit, yardstick, amax, amin in zip(*columns, *extremes, strict=True):
        error, metric = ErrorSum(*sums), row.asked(parameters, limit)
        errors = {rung.name: ErrorSum(yardstick, error.nonzero) for rung in metric.yardsticks}
        yield Question(metric, error, errors, amax, amin)


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Decide unit by unit."""
    from mor_ref.exact.policies import loses_nothing

    accepted = [
        loses_nothing(error) and accepts(metric, error, errors, amax, amin)
        for metric, error, errors, amax, amin in questions(parameters, arrays)
    ]
    return {"accepted": np.array(accepted, np.uint8)}


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Decide with the functions that the engine decides with."""
    from mor_ref.engine.scales import Extremes

    metric = METRICS[parameters["metric"]].asked(parameters, arrays["limit"].astype(_U))
    sums = np.stack([arrays[name] for name in SUMS], axis=-1)
    nothing = np.zeros_like(arrays["nonzero"])
    yardstick_sums = np.stack([arrays["yardstick_sum"], arrays["nonzero"], nothing], axis=-1)
    errors = {rung.name: yardstick_sums for rung in metric.yardsticks}
    accepted = metric.engine(sums, errors, Extremes(arrays["amax"], arrays["amin"]))
    return {"accepted": (accepted & (arrays["nonfinite"] == 0)).astype(np.uint8)}


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Decide on a device."""
    from mor_ref.cuda.errors import ErrorSums
    from mor_ref.cuda.metrics import take
    from mor_ref.cuda.scales import Extremes

    metric = METRICS[parameters["metric"]].asked(parameters, arrays["limit"])
    sums = ErrorSums(*(arrays[name] for name in SUMS))
    shape = sums.sum.shape
    nothing = device.filled(shape, _U, 0)
    yardstick_sums = ErrorSums(arrays["yardstick_sum"], sums.nonzero, nothing)
    errors = {rung.name: yardstick_sums for rung in metric.yardsticks}
    extremes = Extremes(arrays["amax"], arrays["amin"])
    decided = device.filled(shape, np.uint8, 0)
    take(device, 1, metric.cuda(device, sums, errors, extremes), sums, decided)
    return {"accepted": decided}


def margin_of(
    parameters: Parameters,
    arrays: Arrays,
    compared: Mapping[str, Compared],
    differing: Collection[str],
) -> Fraction | None:
    """Return the largest margin of the decisions that differ."""
    if {*differing} != {"accepted"}:
        return None
    differing_units = {name: array[compared["accepted"].differs] for name, array in arrays.items()}
    return largest(
        [
            None if error.nonfinite else distance(error.sum, metric.turning_point(error, errors))
            for metric, error, errors, *_ in questions(parameters, differing_units)
        ]
    )


def random_inputs(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw sums at, next to and far from where the metric turns."""
    reads, choices = METRICS[parameters["metric"]].reads, draws.words(0)
    nothing = np.zeros(draws.count, _U)
    names = ("sum", "nonzero", "nonfinite", "limit", "yardstick_sum", "amax", "amin")
    drawn = dict.fromkeys(names, nothing)
    drawn["nonfinite"] = np.where(bits_at(choices, 0, 4) == 0, bits_at(choices, 4, 2), _U(0))
    drawn["nonzero"] = _any_length(draws, 1, 41, _MOST_ELEMENTS)
    steps = share(bits_at(choices, 8, 16), 16, 5)
    if "limit" in reads:
        usual = _LIMITS[share(bits_at(choices, 25, 7), 7, _LIMITS.size)]
        any_limit = share(choices >> _U(32), 32, _LIMIT_OF_ONE) + _U(1)
        drawn["limit"] = np.where(bits_at(choices, 24, 1) == 0, usual, any_limit)
        turn = drawn["limit"] * drawn["nonzero"]
    else:
        turn = _any_length(draws, 2, 63, _MOST_SUM - 1)
    if "yardstick_sum" in reads:
        drawn["yardstick_sum"] = turn
    far = np.minimum(_any_length(draws, 3, 63, _MOST_SUM), drawn["nonzero"] << _U(23))
    near = moved(turn, steps, _MOST_SUM)
    drawn["sum"] = np.where(bits_at(choices, 6, 2) == 0, far, near)
    if "amax" in reads:
        drawn |= _range(formats[parameters.get("format", _USUAL_RANGE)], draws, steps)
    return drawn


def _any_length(draws: Draws, stream: int, lengths: int, most: int) -> Words:
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
    if "amax" in METRICS[parameters["metric"]].reads:
        inside &= arrays["amax"] <= _F32.largest
        inside &= arrays["amin"] <= arrays["amax"]
        inside &= (arrays["amin"] != 0) | (arrays["nonzero"] == 0)
    return inside


def admit(parameters: Parameters) -> None:
    """Refuse a format without a metric that needs one, and such a metric without the format."""
    row = METRICS[parameters["metric"]]
    if ("format" in row.reads) != ("format" in parameters):
        takers = " or ".join(name for name, metric in METRICS.items() if "format" in metric.reads)
        raise ValueError(f"a format goes with the metric {takers}, and with no other")
    row.asked(parameters, _LIMIT_OF_ONE)


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
    margin=margin_of,
    random=RandomInputs(
        random_inputs,
        _are_sums,
        "nonzero is at most 2^40, limit at most 2^23, and 0 < amin <= amax where a range is tested",
    ),
)
