"""mor: a tensor with a policy."""

import functools
from array import array
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.block_formulas import BlockFormulas
from mor_ref.definitions.blocks import Partition, partition
from mor_ref.exact.errors import SUMS
from mor_ref.metrics.mean import Limit
from mor_ref.operations.bits import Unsigned, bits32, f32_array, numbers_of, tensor_of
from mor_ref.operations.elements import Grid, listed, rows_of, sums
from mor_ref.operations.fields import Fields, LateFields, each_field, fields
from mor_ref.operations.margins import margin_of_policy
from mor_ref.operations.operation import (
    Arrays,
    DeviceArrays,
    Operation,
    Parameters,
    PublicRecord,
    WayBack,
    instance_test,
)
from mor_ref.operations.parameters import RECIPE, as_cut, kinds
from mor_ref.operations.way_back import chosen_entries
from mor_ref.policies import POLICIES, Rung, as_policy
from mor_ref.representations import formulas_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mor_ref import MorResult
    from mor_ref.cuda.launching import Device
    from mor_ref.exact.errors import ErrorSum
    from mor_ref.exact.policies import Decision
    from mor_ref.exact.quantization import Element

_ANY = 1 << 32  # a limit that the error of no unit reaches
MANY = 1 << 22  # elements of a tensor that is made from the numbers that differ


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Decide with the exact model."""
    from mor_ref.exact import policies

    if arrays["x"].size >= MANY:
        return _one_unit_of_many(parameters, arrays["x"])
    policy, own_codes = as_policy(parameters["policy"]), arrays["x"].tolist()
    cut = partition(arrays["x"].shape, as_cut(parameters["block"]))
    x = rows_of(arrays, parameters["source"])
    bits = (lambda i, j: int(own_codes[i][j])) if parameters["source"] == "bf16" else None
    tensor = policies.mix(x, policy, parameters["scaling"], cut, bits)
    grid = cut.grid if policy.unit == "block" else cut.group_grid
    decisions = listed(tensor.decisions, grid)
    output = np.array(tensor.output, np.uint16).reshape(arrays["x"].shape)
    return {**_decided(tensor.tried, decisions, grid), "output": output}


def columns(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Decide with the exact model, many numbers at a time."""
    from mor_ref.exact import policies
    from mor_ref.exact.block_formulas import InBlocks, amaxes
    from mor_ref.exact.error_columns import bf16_codes

    policy, scaling, bits = as_policy(parameters["policy"]), parameters["scaling"], arrays["x"]
    cut = partition(bits.shape, as_cut(parameters["block"]))
    formulas = {
        representation.name: formulas_of(representation, scaling, cut)
        for representation in policy.tried
    }
    if bits.size >= MANY or None in formulas.values():
        return exact(parameters, arrays)
    units = cut if policy.unit == "block" else cut.groups
    numbers, order = numbers_of(bits, parameters["source"]), InBlocks(units)
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
    is_bf16 = parameters["source"] == "bf16"
    kept = order.taken(bits.ravel().tolist()) if is_bf16 else bf16_codes(x)
    rungs = {len(policy.ladder): list(order.blocks(kept))}
    for choice in {decision.choice for decision in decisions} - rungs.keys():
        rungs[choice] = list(order.blocks(bf16_codes(tried[policy.names[choice]].y)))
    output = [
        code for unit, decision in enumerate(decisions) for code in rungs[decision.choice][unit]
    ]
    rows = np.array(order.put_back(output), np.uint16).reshape(bits.shape)
    return {**_decided(tried, decisions, units.grid), "output": rows}


class _Tried(NamedTuple):
    """The y of a tensor with a representation, and its errors, unit by unit."""

    y: "Sequence[float]"
    errors: "list[ErrorSum]"


@functools.lru_cache(maxsize=256)  # several policies and kinds of scales try the same
def _tried(words: bytes, units: Partition, formulas: BlockFormulas) -> _Tried:
    """Try a representation on a tensor, given its binary32 numbers, row by row."""
    from mor_ref.exact.block_formulas import InBlocks, quantize
    from mor_ref.exact.error_columns import error_sums

    numbers, order = array("f", words).tolist(), InBlocks(units)
    y = order.taken(quantize(numbers, (units.rows, units.columns), formulas).y)
    return _Tried(array("f", y), error_sums(order.taken(numbers), y, order))


def _decided(
    tried: "Iterable[str]", decisions: "list[Decision]", grid: Grid
) -> dict[str, Unsigned]:
    """Return the fields of the decisions on units, and of the sums that led to them."""
    errors = {
        f"{name}.{field}": array
        for name in tried
        for field, array in sums((d.errors[name] for d in decisions), grid).items()
    }
    return {
        "amax": f32_array(d.amax for d in decisions).reshape(grid),
        "amin": f32_array(d.amin for d in decisions).reshape(grid),
        **errors,
        "choice": np.array([d.choice for d in decisions], np.uint8).reshape(grid),
    }


def _one_unit_of_many(parameters: Parameters, x: Unsigned) -> Arrays:
    """Decide on a tensor that is one block and one unit, and compute each distinct number once."""
    from mor_ref.exact import policies, quantization

    policy = as_policy(parameters["policy"])
    if policy.unit != "tensor" or parameters["block"] != "tensor" or x.dtype != np.uint16:
        raise ValueError(f"{MANY} or more numbers are one block and one unit, and have 16 bits")
    counts = np.bincount(x.ravel(), minlength=1 << 16)
    (distinct,) = np.nonzero(counts)
    numbers = rows_of({"x": distinct.astype(x.dtype).reshape(1, -1)}, parameters["source"])
    parts = partition((1, distinct.size), "tensor")
    tensor = policies.mix(numbers, policy, parameters["scaling"], parts)
    errors = {
        name: _counted(zip(numbers[0], elements[0], counts[distinct].tolist(), strict=True))
        for name, elements in tensor.tried.items()
    }
    extremes = tensor.decisions[0, 0]
    decision = policies.decide(policy, errors, extremes.amax, extremes.amin)
    taken = tensor.tried.get(policy.names[decision.choice])
    if taken is None:
        raise ValueError("a unit of so many numbers is one that a representation is accepted for")
    output = np.zeros(counts.size, np.uint16)
    output[distinct] = [quantization.to_bf16(element.y) for element in taken[0]]
    return {**_decided(errors, [decision], (1, 1)), "output": output[x]}


def _counted(elements: "Iterable[tuple[float, Element, int]]") -> "ErrorSum":
    """Return the error sum of numbers, each with its count."""
    from mor_ref.exact.errors import ErrorSum, error_sum

    total = ErrorSum()
    for number, element, count in elements:
        error = error_sum([(number, element.y)])
        total += ErrorSum(error.sum * count, error.nonzero * count, error.nonfinite * count)
    return total


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Decide with the public function."""
    from mor_ref import mor

    result = mor(
        tensor_of(arrays["x"], parameters["source"]),
        parameters["policy"],
        block=as_cut(parameters["block"]),
        scaling=parameters["scaling"],
    )
    return stored(result)


def stored(record: "MorResult") -> Arrays:
    """Return the fields that a record has."""
    errors = {
        f"{name}.{field}": getattr(error, field)
        for name, error in record.error.items()
        for field in SUMS
    }
    return {
        "choice": record.choice,
        "output": record.output,
        "amax": bits32(record.amax),
        "amin": bits32(record.amin),
        **errors,
    }


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Decide on a device."""
    from mor_ref.cuda import policies
    from mor_ref.cuda.launching import Bits

    policy, x = as_policy(parameters["policy"]), Bits(arrays["x"], parameters["source"])
    cut = partition(arrays["x"].shape, as_cut(parameters["block"]))
    result = policies.mor(device, x, policy, parameters["scaling"], cut)
    errors = {
        f"{name}.{field}": array
        for name, error in result.error.items()
        for field, array in error._asdict().items()
    }
    return {
        "choice": result.choice,
        "output": result.output,
        **result.extremes._asdict(),
        **errors,
    }


def restore(_: Parameters, arrays: Arrays) -> NDArray[np.uint32]:
    """Return the output, which is in bfloat16, as binary32."""
    from mor_ref import decode

    return bits32(decode(arrays["output"], "bf16"))


def outputs_of_rungs(parameters: Parameters, arrays: Arrays, _: str) -> Arrays:
    """Return the output of each number with each rung, under the number of the rung.

    A unit with an infinity or a NaN, which no rung accepts, stays bfloat16.
    """
    from mor_ref import encode, mor

    policy, block = as_policy(parameters["policy"]), as_cut(parameters["block"])
    x, scaling = tensor_of(arrays["x"], parameters["source"]), parameters["scaling"]
    alone = [Rung(rung.representation, Limit(_ANY)) for rung in policy.ladder]
    outputs = [
        mor(x, replace(policy, ladder=(rung,)), block=block, scaling=scaling).output
        for rung in alone
    ]
    is_kept = parameters["source"] == "bf16"
    outputs.append(arrays["x"] if is_kept else encode(x, "bf16", overflow="ieee"))
    return {f"{rung}": output for rung, output in enumerate(outputs)}


def _outputs() -> Fields:
    """Return the fields of results, with the sums of every representation that a policy tries."""
    tried = sorted(
        {representation.name for policy in POLICIES.values() for representation in policy.tried}
    )
    sums = each_field(tried, *SUMS)
    return fields(f"unit amax,amin f32; unit {sums} u64; unit choice u8; rc output bf16")


def parameters_of(record: "MorResult") -> Parameters:
    """Return the parameters that made a record."""
    block = list(record.blocks.block)
    return {"policy": record.policy, "scaling": record.scaling, "block": block}


MOR = Operation(
    "mor",
    kinds("policy scaling block source"),
    inputs=fields("rc x source"),
    outputs=LateFields(_outputs),
    exact=exact,
    engine=engine,
    cuda=cuda,
    columns=columns,
    optional=kinds(RECIPE),
    needs_all=lambda _: True,  # a decision may be on the tensor
    tried=lambda parameters: tuple(one.name for one in as_policy(parameters["policy"]).tried),
    margin=margin_of_policy,
    way_back=WayBack(
        lambda _: (("output",), ("choice",)),
        restore,
        chosen_entries,
        known=outputs_of_rungs,
        chosen=("output",),
    ),
    record=PublicRecord(instance_test("MorResult"), parameters_of, stored),
)
