"""mix, mix_errors and mix_layers: units that take the candidate of the least squared error.

A row of `mix_errors` is a unit, and a row of `mix_layers` is a layer of two tensors. Both are given
y with each candidate.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import mor_ref
from mor_ref.definitions.blocks import partition
from mor_ref.operations.bits import bits32, tensor_of
from mor_ref.operations.call import Arrays, Call, DeviceArrays, DeviceCall, Parameters, Results
from mor_ref.operations.fields import Field, FieldsOfEach, expected, given
from mor_ref.operations.operation import (
    Operation,
    PublicRecord,
    RandomInputs,
    WayBack,
    instance_test,
)
from mor_ref.operations.parameters import RECIPE, as_cut, kinds, row_of
from mor_ref.operations.random_blocks import amaxes_at, with_a_special
from mor_ref.operations.random_numbers import (
    ANY_NUMBER,
    LAYOUTS,
    Draws,
    Words,
    any_row,
    bits_at,
    share,
)
from mor_ref.operations.results import each
from mor_ref.operations.way_back import chosen_entries
from mor_ref.schemes.mixed.definition import MIXTURES
from mor_ref.schemes.mixed.exact import error_in_units, layer_errors, least, mixed, mixed_unit
from mor_ref.schemes.mixed.representation import mixture

if TYPE_CHECKING:
    from mor_ref import Mixed
    from mor_ref.cuda.launching import Array
    from mor_ref.schemes.mixed.cuda import Squares
    from mor_ref.schemes.mixed.representation import Candidates

CANDIDATES = ("first", "second")  # of units and layers whose y is given
OTHER = "other"  # the second tensor of a layer, and the beginning of its fields
_SUMS = tuple(f"{name}_squares" for name in CANDIDATES)
_U = np.uint64
_F32 = LAYOUTS["f32"]
_FRACTIONS = (0x400000, 0x2AAAAB, 0x555555)


def candidates_of(parameters: Mapping[str, Any]) -> "Candidates":
    """Return the candidates of a mixture."""
    return mixture(parameters["mixture"]).candidates


def exact(call: Call) -> Results:
    """Quantize with the exact model."""
    candidates = candidates_of(call.parameters)
    tensor = mixed(call.numbers(), candidates, call.cut)
    squares = {
        f"{candidate.name}.squares": {
            place: unit.squared_error[k] for place, unit in tensor.units.items()
        }
        for k, candidate in enumerate(candidates)
    }
    return {**each(tensor.units, "amax", "choice"), **squares, **each(tensor.elements, "code", "y")}


def engine(call: Call) -> Results:
    """Quantize with the public function."""
    candidates = candidates_of(call.parameters)
    return mor_ref.mix_formats(call.tensor(), candidates, **call.arguments("block"))


def cuda(call: DeviceCall) -> DeviceArrays:
    """Quantize on a device."""
    from mor_ref.schemes.mixed.cuda import mix

    candidates = candidates_of(call.parameters)
    tensor = mix(call.device, call.bits(), candidates, call.cut)
    names = [f"{candidate.name}.squares" for candidate in candidates]
    squares = dict(zip(names, tensor.errors, strict=True))
    stored = {"amax": tensor.amax, "choice": tensor.choice, "code": tensor.codes, "y": tensor.y}
    return {**stored, **squares}


def restore(_: Parameters, arrays: Arrays) -> NDArray[np.uint32]:
    """Return y."""
    return arrays["y"].astype(np.uint32)


def by_candidates(parameters: Parameters, arrays: Arrays, field: str) -> Arrays:
    """Return a field of numbers with each candidate, under the number of the candidate."""
    x, names = tensor_of(arrays["x"], parameters["source"]), candidates_of(parameters)
    quantized = mor_ref.mix_formats(x, names, block=as_cut(parameters["block"])).quantized
    return {
        f"{k}": bits32(record.dequantize()) if field == "y" else record.codes
        for k, record in enumerate(quantized.values())
    }


def names_of_candidates() -> list[str]:
    """Return the candidates of all mixtures, each once."""
    return list(dict.fromkeys(name for row in MIXTURES.values() for name in row.candidates))


def _squares(name: str) -> tuple[Field, ...]:
    words = f"the squared errors of each unit, under {name}"
    return (expected(f"{name}.squares u64 grid", words, "MFQ-003"),)


def parameters_of(record: "Mixed") -> Parameters:
    """Return the parameters that made a record."""
    for name, row in MIXTURES.items():
        if row.candidates == record.candidates:
            return {"mixture": name, "block": list(record.units.block)}
    raise ValueError(
        f"candidates are {', '.join(record.candidates)}, which no mixture has; give those of one "
        f"of {', '.join(MIXTURES)}"
    )


def _path(name: str) -> str:
    """Return where a record has a field."""
    candidate, _, is_of_candidate = name.partition(".")
    return f"squared_error.{candidate}" if is_of_candidate else {"code": "codes"}.get(name, name)


def exact_errors(call: Call) -> Results:
    """Compute with the exact model, with the error of every number."""
    x, ys = call.numbers(), [call.numbers(name) for name in CANDIDATES]
    units = [mixed_unit(row, list(rows)) for row, *rows in zip(x, *ys, strict=True)]
    results: dict[str, Any] = each(units, "amax", "choice")
    for k, (name, y) in enumerate(zip(CANDIDATES, ys, strict=True)):
        results[f"{name}_squares"] = [unit.squared_error[k] for unit in units]
        results[f"{name}_u"] = [
            [error_in_units(*pair, unit.amax) for pair in zip(row, y_row, strict=True)]
            for row, y_row, unit in zip(x, y, units, strict=True)
        ]
    return results


def engine_errors(call: Call) -> Results:
    """Compute with the loops of tensors; a row of a tensor is a unit."""
    from mor_ref.schemes.mixed.engine import least

    amax, squares = _measured(call.arrays)
    return {"amax": amax, **dict(zip(_SUMS, squares, strict=True)), "choice": least(squares)}


def _measured(arrays: Arrays) -> tuple[NDArray[np.uint32], list[NDArray[np.uint64]]]:
    """Return amax of each row, and its squared error with each candidate."""
    from mor_ref.arrays import numbers_from
    from mor_ref.engine.scales import amax_of_blocks
    from mor_ref.engine.unrounded_y import from_numbers
    from mor_ref.schemes.mixed.engine import joined, squared_errors

    numbers = numbers_from(arrays["x"].view(np.float32), "x")
    units = partition(numbers.shape, "row")
    amax = amax_of_blocks(numbers, units, None)
    every = np.zeros(units.grid, np.uint8)
    squares = []
    for name in CANDIDATES:
        y = numbers_from(arrays[name].view(np.float32), name)
        fill = from_numbers(y, units, every, 0, rounds=False)
        squares.append(joined(squared_errors(numbers, units, amax, fill, None)))
    return amax, squares


def cuda_errors(call: DeviceCall) -> DeviceArrays:
    """Compute on a device; a row of a tensor is a unit."""
    from mor_ref.schemes.mixed.cuda import least

    amax, errors = _measured_on_device(call, "")
    squares = dict(zip(_SUMS, (squared.joined for squared in errors), strict=True))
    return {"amax": amax, **squares, "choice": least(call.device, errors)}


def _measured_on_device(call: DeviceCall, prefix: str) -> "tuple[Array, list[Squares]]":
    """Return amax of each row, and its squared error with each candidate."""
    from mor_ref.cuda.measuring import by_value
    from mor_ref.cuda.scales import extremes
    from mor_ref.schemes.mixed.cuda import squared_errors

    device, x = call.device, call.bits(f"{prefix}x")
    units = partition(x.array.shape, "row")
    amax = extremes(device, x, units).amax
    rules = [by_value(device, call.arrays[f"{prefix}{name}"]) for name in CANDIDATES]
    return amax, [squared_errors(device, x, units, rule, amax) for rule in rules]


def random_errors(_: Parameters, draws: Draws) -> Arrays:
    """Draw rows below an amax, a y next to x or far from it, and a second y that is near a tie."""
    per_number, amaxes = draws.per_number(), amaxes_at(draws, 0, _FRACTIONS, 1.0)
    shape = (draws.count, draws.width)
    words, more = (per_number.words(stream).reshape(shape) for stream in (3, 4))
    tops = np.broadcast_to(amaxes[:, np.newaxis], shape)
    depth = share(bits_at(words, 0, 8), 8, 24).astype(_U) << _U(23)
    x = np.where(tops > depth, tops - depth, tops >> _U(1)) ^ bits_at(words, 8, 20)
    x = np.minimum(x, tops)
    place = share(bits_at(draws.words(5), 0, 16), 16, draws.width)
    x[np.arange(draws.count), place] = amaxes
    first = _near(x, words, 28)
    second = np.where(bits_at(more, 0, 2) == 0, _near(x, more, 28), _mirrored(x, first))
    few = bits_at(more, 3, 5) == 0
    second = np.where(few, more >> _U(32) & _U(0x7FFFFFFF), second)
    signs = bits_at(words, 63, 1) << _U(31)
    signed = [magnitudes | signs for magnitudes in (x, first, second)]
    special = with_a_special(draws, 6, signed[0], amaxes)
    return {"x": special, "first": signed[1], "second": signed[2]}


def _near(x: Words, words: Words, lowest: int) -> Words:
    """Return magnitudes some steps away, or 0."""
    steps = _U(1) << share(bits_at(words, lowest, 8), 8, 22)
    is_below = bits_at(words, lowest + 8, 1) != 0
    near = np.where(is_below, np.maximum(x, steps) - steps, x + steps)
    near = np.where(bits_at(words, lowest + 9, 3) == 0, _U(0), near)
    return np.minimum(near, _U(_F32.largest))


def _mirrored(x: Words, y: Words) -> Words:
    """Return magnitudes as far from x as y on the other side, in steps."""
    return np.minimum(np.where(x + x >= y, x + x - y, _U(0)), _U(_F32.largest))


def exact_layers(call: Call) -> Results:
    """Compute with the exact model."""
    tensors = []
    for prefix in ("", f"{OTHER}_"):
        rows = call.together(*(f"{prefix}{name}" for name in ("x", *CANDIDATES)))
        tensors.append([mixed_unit(x, list(ys)).squared_error for x, *ys in rows])
    sums = [layer_errors(list(errors)) for errors in zip(*tensors, strict=True)]
    squares = dict(zip(_SUMS, zip(*sums, strict=True), strict=True))
    return {**squares, "choice": [least(layer) for layer in sums]}


def engine_layers(call: Call) -> Results:
    """Add the squared errors of both tensors."""
    from mor_ref.schemes.mixed.engine import least

    other = {name: call.arrays[f"{OTHER}_{name}"] for name in ("x", *CANDIDATES)}
    tensors = [_measured(arrays)[1] for arrays in (call.arrays, other)]
    sums = [a + b for a, b in zip(*tensors, strict=True)]
    return {**dict(zip(_SUMS, sums, strict=True)), "choice": least(sums)}


def cuda_layers(call: DeviceCall) -> DeviceArrays:
    """Add the squared errors of both tensors on a device."""
    from mor_ref.schemes.mixed.cuda import Squares, least

    tensors = [_measured_on_device(call, prefix)[1] for prefix in ("", f"{OTHER}_")]
    sums = [
        Squares(*(a + b for a, b in zip(first, second, strict=True)))
        for first, second in zip(*tensors, strict=True)
    ]
    squares = dict(zip(_SUMS, (squared.joined for squared in sums), strict=True))
    return {**squares, "choice": least(call.device, sums)}


def random_layers(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw two tensors for each layer."""
    first = random_errors(parameters, draws)
    more = Draws(draws.first, draws.count, draws.seed + 1, draws.width)
    second = random_errors(parameters, more)
    return {**first, **{f"{OTHER}_{name}": array for name, array in second.items()}}


MIX = Operation(
    "mix",
    kinds("mixture block source", mixture=row_of(MIXTURES)),
    (
        given("x source rc", "the tensor"),
        expected("amax f32 grid", "the amax of each unit", "SCL-001"),
        FieldsOfEach(names_of_candidates, _squares),
        expected("choice u8 grid", "the candidate that each unit takes", "MFQ-004"),
        expected("code u8 rc", "the code of each number under the candidate taken", "MFQ-006"),
        expected("y f32 rc", "what each code stands for", "MFQ-006"),
    ),
    model=exact,
    function=engine,
    kernels=cuda,
    optional=kinds(RECIPE),
    tried=lambda parameters: MIXTURES[parameters["mixture"]].candidates,
    way_back=WayBack(
        lambda _: (("y",),), restore, chosen_entries, known=by_candidates, chosen=("code", "y")
    ),
    record=PublicRecord(instance_test("Mixed"), parameters_of, _path),
)
MIX_ERRORS = Operation(
    "mix_errors",
    kinds("source:f32"),
    (
        given("x f32 nk", "the numbers of each unit"),
        given("first f32 nk", "y under the first candidate"),
        given("second f32 nk", "y under the second candidate"),
        expected("amax f32 n", "the amax of each unit", "SCL-001"),
        expected("first_u u32 nk", "the error under the first candidate", "MFQ-002"),
        expected("second_u u32 nk", "the error under the second candidate", "MFQ-002"),
        expected("first_squares u64 n", "the sum under the first candidate", "MFQ-003"),
        expected("second_squares u64 n", "the sum under the second candidate", "MFQ-003"),
        expected("choice u8 n", "the candidate that each unit takes", "MFQ-004"),
    ),
    model=exact_errors,
    function=engine_errors,
    kernels=cuda_errors,
    random=RandomInputs(
        random_errors, any_row, ANY_NUMBER, answers=("first_squares", "second_squares", "choice")
    ),
)
MIX_LAYERS = Operation(
    "mix_layers",
    kinds("source:f32"),
    (
        given("x f32 nk", "the numbers of the first tensor"),
        given("first f32 nk", "y under the first candidate of the first tensor"),
        given("second f32 nk", "y under the second candidate of the first tensor"),
        given("other_x f32 nk", "the numbers of the second tensor"),
        given("other_first f32 nk", "y under the first candidate of the second tensor"),
        given("other_second f32 nk", "y under the second candidate of the second tensor"),
        expected("first_squares u64 n", "both sums under the first candidate", "MFQ-003 MFQ-005"),
        expected("second_squares u64 n", "both sums under the second candidate", "MFQ-003 MFQ-005"),
        expected("choice u8 n", "the candidate that each layer takes", "MFQ-004"),
    ),
    model=exact_layers,
    function=engine_layers,
    kernels=cuda_layers,
    random=RandomInputs(random_layers, any_row, ANY_NUMBER),
)
