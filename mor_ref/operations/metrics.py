"""unit_sums and accept: the exact sums of units, and whether a metric of them accepts a unit.

A row of `unit_sums` is a unit. `accept` cuts a tensor into units. Both are given x and y.
"""

import math
from collections.abc import Iterable
from itertools import chain

import numpy as np
from numpy.typing import NDArray

import mor_ref
from mor_ref.definitions.unit_sums import WORDS, UnitSums
from mor_ref.exact.blocks import cells
from mor_ref.exact.errors import ErrorSum, is_lost
from mor_ref.exact.policies import loses_nothing
from mor_ref.exact.quantization import Element
from mor_ref.exact.unit_sums import NumbersOfUnit, unit_sums
from mor_ref.metrics.metric import accepts
from mor_ref.metrics.squares import METRICS_OF_SUMS, OfSums
from mor_ref.metrics.unit import Unit
from mor_ref.operations.call import Arrays, Call, DeviceArrays, DeviceCall, Parameters, Results
from mor_ref.operations.fields import expected, given
from mor_ref.operations.operation import Operation, RandomInputs
from mor_ref.operations.parameters import as_cut, kind, kinds, one_of
from mor_ref.operations.random_numbers import LAYOUTS, Draws, bits_at, magnitudes_of, share
from mor_ref.operations.results import each
from mor_ref.policies import Policy, Rung
from mor_ref.representations.function import FunctionRepresentation

_SUMS = ("signal", "noise", "energy", "product")
_IN_WORDS = f"in units of 2^-298, as {WORDS} words, the lowest first"
_WORD = 0xFFFFFFFF
_DEEPEST = 30  # binades below the exponent of a row
_U = np.uint64
_F32 = LAYOUTS["f32"]


# ---------------------------------------------------------------------- unit_sums


def exact_sums(call: Call) -> Results:
    """Sum with the exact model."""
    return _results(unit_sums([*zip(x, y, strict=True)]) for x, y in call.together("x", "y"))


def engine_sums(call: Call) -> Results:
    """Sum with the function that metrics call."""
    from mor_ref.engine.unit_sums import unit_sums as summed

    return _results(map(summed, call.arrays["x"], call.arrays["y"]))


def cuda_sums(call: DeviceCall) -> DeviceArrays:
    """Sum on a device; a row of a tensor is a unit."""
    from mor_ref.cuda.measuring import by_value
    from mor_ref.cuda.unit_sums import sum_units
    from mor_ref.definitions.blocks import partition

    device, x = call.device, call.bits()
    rule = by_value(device, call.arrays["y"])
    sums = sum_units(device, x, partition(x.array.shape, "row"), rule, by_block=True)
    words = {name: sums.words[:, k] for k, name in enumerate(_SUMS)}
    measured = _U(x.array.shape[1]) - sums.unmeasured
    return {"measured": measured, **words, "largest": sums.largest, "amax": sums.amax}


def _results(rows: Iterable[UnitSums]) -> Results:
    """Return the sums of units; the large ones are in words, the lowest first."""
    sums = list(rows)
    words = {
        name: [[getattr(row, name) >> 32 * k & _WORD for k in range(WORDS)] for row in sums]
        for name in _SUMS
    }
    return {**each(sums, "measured", "largest", "amax"), **words}


def random_pairs(_: Parameters, draws: Draws) -> Arrays:
    """Draw rows of numbers some binades below one of their row, and y next to them or far away."""
    shape, per_number = (draws.count, draws.width), draws.per_number()
    words, more = (per_number.words(stream).reshape(shape) for stream in (0, 1))
    top = share(draws.words(2) >> _U(32), 32, 254 + 23).astype(np.int64)[:, np.newaxis] - 22
    depth = share(bits_at(more, 0, 16), 16, _DEEPEST).astype(np.int64)
    x = magnitudes_of(np.maximum(top - depth, -22), words, _F32)
    steps = bits_at(words, 24, 24) >> share(bits_at(more, 16, 8), 8, 25)
    y = np.where(bits_at(more, 24, 1) == 0, x + steps, np.maximum(x, steps) - steps)
    y = np.where(bits_at(more, 25, 3) == 0, _U(0), np.minimum(y, _U(_F32.largest)))
    sign = bits_at(words, 63, 1) << _U(31)
    is_far = bits_at(more, 28, 4) == 0
    far = np.minimum(bits_at(more, 32, 31), _U(_F32.largest)) | bits_at(more, 63, 1) << _U(31)
    return {"x": x | sign, "y": np.where(is_far, far, y | sign)}


def _are_finite(_: Parameters, arrays: Arrays) -> NDArray[np.bool_]:
    x, y = ((arrays[name] & 0x7FFFFFFF) <= _F32.largest for name in "xy")
    finite: NDArray[np.bool_] = np.logical_and.reduce(x & y, axis=1)
    return finite


UNIT_SUMS = Operation(
    "unit_sums",
    kinds("source:f32"),
    (
        given("x f32 nk", "the numbers of each unit"),
        given("y f32 nk", "y of these numbers"),
        expected("measured u64 n", "how many elements are measured", "MOR-009"),
        expected("signal u32 words", f"the sum of x^2, {_IN_WORDS}", "MOR-009"),
        expected("noise u32 words", f"the sum of d^2 over them, {_IN_WORDS}", "MOR-009"),
        expected("energy u32 words", f"the sum of y^2, {_IN_WORDS}", "MOR-009"),
        expected(
            "product u32 words", f"the sum of x * y in two's complement, {_IN_WORDS}", "MOR-009"
        ),
        expected("largest f32 n", "the largest d of the measured elements", "MOR-013"),
        expected("amax f32 n", "the largest |x|", "MOR-013"),
    ),
    model=exact_sums,
    function=engine_sums,
    kernels=cuda_sums,
    random=RandomInputs(random_pairs, _are_finite, "x and y are finite"),
)


# ---------------------------------------------------------------------- accept


def metric_of(parameters: Parameters) -> OfSums:
    """Return the metric that a case asks."""
    return METRICS_OF_SUMS[parameters["metric"]](parameters["threshold"])


def exact_acceptance(call: Call) -> Results:
    """Ask unit by unit; a unit that loses an element is not accepted."""
    x, y = call.numbers("x"), call.numbers("y")
    elements = [
        [Element(number, 0, of_number) for number, of_number in zip(*rows, strict=True)]
        for rows in zip(x, y, strict=True)
    ]
    metric, cut, accepted = metric_of(call.parameters), call.cut, {}
    for unit, places in cells(cut.rows, cut.columns, cut.block).items():
        pairs = [(x[i][j], y[i][j]) for i, j in places]
        own = Unit(0, 0, 0, numbers=NumbersOfUnit(places, x, elements))
        lost = ErrorSum(nonfinite=sum(is_lost(*pair) for pair in pairs))
        has_sums = all(map(math.isfinite, chain.from_iterable(pairs)))
        accepted[unit] = has_sums and loses_nothing(lost) and accepts(metric, own, {}, 0.0, 0.0)
    return {"accepted": accepted}


def policy_of(call: Call, y: NDArray[np.uint32]) -> Policy:
    """Return a policy whose one rung makes y of x, and asks the metric about each unit."""
    given_y = FunctionRepresentation(lambda _: y.view(np.float32), "given")
    rung = Rung(given_y, metric_of(call.parameters))
    return Policy("of_sums", (rung,), unit="block", block=as_cut(call["block"]))


def engine_acceptance(call: Call) -> Results:
    """Decide with the public function."""
    policy = policy_of(call, call.arrays["y"].astype(np.uint32))
    return {"accepted": mor_ref.mor(call.tensor(), policy).choice == 0}


def cuda_acceptance(call: DeviceCall) -> DeviceArrays:
    """Decide on a device."""
    from mor_ref.cuda.policies import mor

    policy = policy_of(call, call.device.download(call.arrays["y"]))
    result = mor(call.device, call.bits(), policy, "fp32", call.cut)
    return {"accepted": (result.choice == 0).astype(np.uint8)}


def admit_acceptance(parameters: Parameters) -> None:
    """Refuse a threshold that the metric does not take."""
    metric_of(parameters)


_THRESHOLD = kind(lambda value: isinstance(value, str), "a number as text, such as 0.05 or 1/16")
ACCEPT = Operation(
    "accept",
    kinds(
        "metric threshold block source:f32", metric=one_of(METRICS_OF_SUMS), threshold=_THRESHOLD
    ),
    (
        given("x f32 rc", "the tensor"),
        given("y f32 rc", "y of its numbers"),
        expected(
            "accepted u8 unit",
            "1 for a unit that loses nothing, and that the metric accepts",
            "MOR-001 MOR-009 MOR-010 MOR-011 MOR-012 MOR-013",
        ),
    ),
    model=exact_acceptance,
    function=engine_acceptance,
    kernels=cuda_acceptance,
    admit=admit_acceptance,
)
