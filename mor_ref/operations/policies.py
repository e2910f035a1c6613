"""decide and mor: whether a metric accepts a unit, from its sums; and a tensor with a policy."""

import functools
import math
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import mor_ref
from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.definitions.blocks import CutLike, Partition, partition
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.scales import Scaling
from mor_ref.exact import policies
from mor_ref.exact.block_formats import InBlocks, amaxes, quantize
from mor_ref.exact.error_columns import bf16_codes, error_sums
from mor_ref.exact.errors import SUMS, ErrorSum, error_sum
from mor_ref.exact.quantization import Element, to_bf16
from mor_ref.metrics import METRICS, Metric
from mor_ref.metrics.mean import Limit
from mor_ref.metrics.metric import accepts
from mor_ref.metrics.unit import units_of
from mor_ref.operations.bits import bits32, numbers_of, tensor_of
from mor_ref.operations.call import Arrays, Call, DeviceArrays, DeviceCall, Parameters, Results
from mor_ref.operations.errors import sum_fields
from mor_ref.operations.fields import Field, FieldsOfEach, expected, given
from mor_ref.operations.margins import distance, largest, margin_of_policy
from mor_ref.operations.operation import (
    Compared,
    Operation,
    PublicRecord,
    RandomInputs,
    WayBack,
    instance_test,
)
from mor_ref.operations.parameters import RECIPE, as_cut, kinds
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
from mor_ref.operations.results import each
from mor_ref.operations.way_back import chosen_entries
from mor_ref.policies import POLICIES, Policy, Rung
from mor_ref.recipes import as_policy
from mor_ref.representations import formulas_of

if TYPE_CHECKING:
    from mor_ref import MorResult

_U = np.uint64
_OWN = ""  # the representation of the rung, which a case does not name
_USUAL_RANGE = "e5m2"  # of magnitudes for a metric without a format
_F32 = LAYOUTS["f32"]
_MOST_ELEMENTS = 1 << 40  # of a unit (ERR-005)
_MOST_SUM = 1 << 63
_LIMIT_OF_ONE = 1 << 23
_LIMITS = np.array([377487, 1, 838861, 1677722, 419430, 4194304, _LIMIT_OF_ONE], _U)
_ANY = 1 << 32  # a limit that the error of no unit reaches
MANY = 1 << 22  # elements of a tensor that is made from the numbers that differ


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


def exact_decision(call: Call) -> Results:
    """Decide unit by unit."""
    accepted = []
    for metric, error, errors, amax, amin in questions(call.parameters, call.arrays):
        units = units_of({**errors, _OWN: error}, amax, amin)
        is_kept = policies.loses_nothing(error)
        accepted.append(is_kept and accepts(metric, units[_OWN], units, amax, amin))
    return {"accepted": accepted}


def engine_decision(call: Call) -> Results:
    """Decide with the functions that the engine decides with."""
    from mor_ref.engine.scales import Extremes

    arrays = call.arrays
    metric = METRICS[call["metric"]].asked(call.parameters, arrays["limit"].astype(_U))
    sums = np.stack([arrays[name] for name in SUMS], axis=-1)
    nothing = np.zeros_like(arrays["nonzero"])
    yardstick_sums = np.stack([arrays["yardstick_sum"], arrays["nonzero"], nothing], axis=-1)
    errors = {rung.name: yardstick_sums for rung in metric.yardsticks}
    accepted = metric.engine(sums, errors, Extremes(arrays["amax"], arrays["amin"]))
    return {"accepted": accepted & (arrays["nonfinite"] == 0)}


def cuda_decision(call: DeviceCall) -> DeviceArrays:
    """Decide on a device."""
    from mor_ref.cuda.errors import ErrorSums
    from mor_ref.cuda.metrics import take
    from mor_ref.cuda.scales import Extremes

    device, arrays = call.device, call.arrays
    metric = METRICS[call["metric"]].asked(call.parameters, arrays["limit"])
    sums = ErrorSums(*(arrays[name] for name in SUMS))
    shape = sums.sum.shape
    nothing = device.filled(shape, _U, 0)
    yardstick_sums = ErrorSums(arrays["yardstick_sum"], sums.nonzero, nothing)
    errors = {rung.name: yardstick_sums for rung in metric.yardsticks}
    extremes = Extremes(arrays["amax"], arrays["amin"])
    decided = device.filled(shape, np.uint8, 0)
    take(device, 1, metric.cuda(device, sums, errors, extremes), sums, decided)
    return {"accepted": decided}


def margin_of_decision(
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


def random_decision(parameters: Parameters, draws: Draws) -> Arrays:
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


def admit_decision(parameters: Parameters) -> None:
    """Refuse a format without a metric that needs one, and such a metric without the format."""
    row = METRICS[parameters["metric"]]
    if ("format" in row.reads) != ("format" in parameters):
        takers = " or ".join(name for name, metric in METRICS.items() if "format" in metric.reads)
        raise ValueError(f"a format goes with the metric {takers}, and with no other")
    row.asked(parameters, _LIMIT_OF_ONE)


def exact(call: Call) -> Results:
    """Decide with the exact model."""
    if call.arrays["x"].size >= MANY:
        return _one_unit_of_many(call)
    policy, own_codes = as_policy(call["policy"]), call.arrays["x"].tolist()
    bits = (lambda i, j: int(own_codes[i][j])) if call["source"] == "bf16" else None
    tensor = policies.mix(call.numbers(), policy, call["scaling"], call.cut, bits)
    return {**_decided(tensor.tried, tensor.decisions), "output": tensor.output}


def columns(call: Call) -> Results:
    """Decide with the exact model, many numbers at a time."""
    policy, bits, cut = as_policy(call["policy"]), call.arrays["x"], call.cut
    formulas = {
        representation.name: formulas_of(representation, call["scaling"], cut.block, cut.group)
        for representation in policy.tried
    }
    if bits.size >= MANY or None in formulas.values():
        return exact(call)
    units = cut if policy.unit == "block" else cut.regrouped("tensor").groups
    numbers, order = call.flat(), InBlocks(units)
    words = array("f", numbers).tobytes()
    tried = {name: _tried(words, units, formula) for name, formula in formulas.items() if formula}
    x = order.taken(numbers)
    amins = map(policies.amin, order.blocks(x))
    errors_of_units = zip(*(outcome.errors for outcome in tried.values()), strict=True)
    measured = zip(amaxes(x, order, "finite"), amins, errors_of_units, strict=True)
    decisions = [
        policies.decide(policy, dict(zip(tried, errors, strict=True)), amax, amin)
        for amax, amin, errors in measured
    ]
    is_bf16 = call["source"] == "bf16"
    kept = order.taken(bits.ravel().tolist()) if is_bf16 else bf16_codes(x)
    rungs = {len(policy.ladder): list(order.blocks(kept))}
    for choice in {decision.choice for decision in decisions} - rungs.keys():
        rungs[choice] = list(order.blocks(bf16_codes(tried[policy.names[choice]].y)))
    chosen = (rungs[decision.choice][unit] for unit, decision in enumerate(decisions))
    output = order.put_back(array("H", chain.from_iterable(chosen)))
    by_place = dict(zip(np.ndindex(*units.grid), decisions, strict=True))
    return {**_decided(tried, by_place), "output": output}


class _Tried(NamedTuple):
    """The y of a tensor with a representation, and its errors, unit by unit."""

    y: Sequence[float]
    errors: list[ErrorSum]


@functools.lru_cache(maxsize=256)  # several policies and kinds of scales try the same
def _tried(words: bytes, units: Partition, formulas: BlockFormat) -> _Tried:
    """Try a representation on a tensor, given its binary32 numbers, row by row."""
    numbers, order = array("f", words).tolist(), InBlocks(units)
    y = order.taken(quantize(numbers, (units.rows, units.columns), formulas).y)
    return _Tried(array("f", y), error_sums(order.taken(numbers), y, order))


def _decided(
    tried: Iterable[str], decisions: Mapping[policies.Unit, policies.Decision]
) -> dict[str, Any]:
    """Return the results of the decisions on units, and the sums that led to them."""
    results = each(decisions, "amax", "amin", "choice")
    for name in tried:
        errors = {unit: decision.errors[name] for unit, decision in decisions.items()}
        results |= {f"{name}.{field}": sums for field, sums in each(errors, *SUMS).items()}
    return results


def _one_unit_of_many(call: Call) -> Results:
    """Decide on a tensor that is one block and one unit, and compute each distinct number once."""
    policy, x = as_policy(call["policy"]), call.arrays["x"]
    if policy.unit != "tensor" or call["block"] != "tensor" or x.dtype != np.uint16:
        raise ValueError(f"{MANY} or more numbers are one block and one unit, and have 16 bits")
    counts = np.bincount(x.ravel(), minlength=1 << 16)
    (distinct,) = np.nonzero(counts)
    numbers = numbers_of(distinct.astype(x.dtype), call["source"])
    parts = partition((1, distinct.size), "tensor")
    tensor = policies.mix([numbers], policy, call["scaling"], parts)
    errors = {
        name: _counted(zip(numbers, elements[0], counts[distinct].tolist(), strict=True))
        for name, elements in tensor.tried.items()
    }
    extremes = tensor.decisions[0, 0]
    decision = policies.decide(policy, errors, extremes.amax, extremes.amin)
    taken = tensor.tried.get(policy.names[decision.choice])
    if taken is None:
        raise ValueError("a unit of so many numbers is one that a representation is accepted for")
    output = np.zeros(counts.size, np.uint16)
    output[distinct] = [to_bf16(element.y) for element in taken[0]]
    return {**_decided(errors, {(0, 0): decision}), "output": output[x]}


def _counted(elements: Iterable[tuple[float, Element, int]]) -> ErrorSum:
    """Return the error sum of numbers, each with its count."""
    total = ErrorSum()
    for number, element, count in elements:
        error = error_sum([(number, element.y)])
        total += ErrorSum(error.sum * count, error.nonzero * count, error.nonfinite * count)
    return total


def engine(call: Call) -> Results:
    """Decide with the public function."""
    return _result(call.tensor(), **call.arguments("policy block scaling"))


def _result(
    x: Any, policy: str | Policy, *, block: CutLike | None = None, scaling: Scaling | None = None
) -> "MorResult":
    """Decide with the public function, which refuses a kind of scales that does not matter."""
    rules = as_policy(policy)
    return mor_ref.mor(x, rules, block=block, scaling=scaling if rules.uses_scaling else None)


def cuda(call: DeviceCall) -> DeviceArrays:
    """Decide on a device."""
    from mor_ref.cuda.policies import mor

    result = mor(call.device, call.bits(), as_policy(call["policy"]), call["scaling"], call.cut)
    errors = {
        f"{name}.{field}": array
        for name, error in result.error.items()
        for field, array in error._asdict().items()
    }
    extremes = result.extremes._asdict()
    return {"choice": result.choice, "output": result.output, **extremes, **errors}


def restore(_: Parameters, arrays: Arrays) -> NDArray[np.uint32]:
    """Return the output, which is in bfloat16, as binary32."""
    return bits32(mor_ref.decode(arrays["output"], "bf16"))


def outputs_of_rungs(parameters: Parameters, arrays: Arrays, _: str) -> Arrays:
    """Return the output of each number with each rung, under the number of the rung.

    A unit with an infinity or a NaN, which no rung accepts, stays bfloat16.
    """
    policy, block = as_policy(parameters["policy"]), as_cut(parameters["block"])
    x, scaling = tensor_of(arrays["x"], parameters["source"]), parameters["scaling"]
    alone = [Rung(rung.representation, Limit(_ANY)) for rung in policy.ladder]
    outputs = [
        _result(x, replace(policy, ladder=(rung,)), block=block, scaling=scaling).output
        for rung in alone
    ]
    is_kept = parameters["source"] == "bf16"
    outputs.append(arrays["x"] if is_kept else mor_ref.encode(x, "bf16", overflow="ieee"))
    return {f"{rung}": output for rung, output in enumerate(outputs)}


def _representations() -> list[str]:
    """Return the representations that the policies try."""
    return sorted(
        {representation.name for policy in POLICIES.values() for representation in policy.tried}
    )


def _sums(name: str) -> tuple[Field, ...]:
    return sum_fields("unit", name)


def parameters_of(record: "MorResult") -> Parameters:
    """Return the parameters that made a record."""
    block = list(record.blocks.block)
    return {"policy": record.policy, "scaling": record.scaling, "block": block}


def _path(name: str) -> str:
    """Return where a record has a field: those under a representation are among its errors."""
    return f"error.{name}" if "." in name else name


_RULES = " ".join(("MOR-001", *(METRICS[name].rule for name in METRICS.specified)))
DECIDE = Operation(
    "decide",
    kinds("metric"),
    (
        given("sum u64 n", "the error sum"),
        given("nonzero u64 n", "how many elements count"),
        given("nonfinite u64 n", "how many elements are lost"),
        given("limit u32 n", "T of mean_relative_error"),
        given("yardstick_sum u64 n", "the error sum under the yardstick"),
        given("amax f32 n", "the largest magnitude"),
        given("amin f32 n", "the smallest magnitude but zero"),
        expected("accepted u8 n", "1 if the metric of the parameters accepts", _RULES),
    ),
    model=exact_decision,
    function=engine_decision,
    kernels=cuda_decision,
    admit=admit_decision,
    optional=kinds("format"),
    margin=margin_of_decision,
    random=RandomInputs(
        random_decision,
        _are_sums,
        "nonzero is at most 2^40, limit at most 2^23, and 0 < amin <= amax where a range is tested",
    ),
)
MOR = Operation(
    "mor",
    kinds("policy scaling block source"),
    (
        given("x source rc", "the tensor"),
        expected("amax f32 unit", "the amax of each unit", "SCL-001"),
        expected("amin f32 unit", "the amin of each unit", "MOR-004"),
        FieldsOfEach(_representations, _sums),
        expected("choice u8 unit", "the rung that each unit takes", "MOR-001"),
        expected("output bf16 rc", "the tensor that comes out", "MOR-006 QNT-003"),
    ),
    model=exact,
    function=engine,
    kernels=cuda,
    columns=columns,
    optional=kinds(RECIPE),
    needs_all=lambda _: True,  # a decision may be on the tensor
    tried=lambda parameters: tuple(rung.name for rung in as_policy(parameters["policy"]).tried),
    margin=margin_of_policy,
    way_back=WayBack(
        lambda _: (("output",), ("choice",)),
        restore,
        chosen_entries,
        known=outputs_of_rungs,
        chosen=("output",),
    ),
    record=PublicRecord(instance_test("MorResult"), parameters_of, _path),
)
