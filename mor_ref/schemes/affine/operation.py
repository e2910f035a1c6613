"""affine, affine_groups, affine_element and affine_float_zero: integers with zero points.

A block of `affine` has a scale and a zero point. `affine_groups` has groups of columns, in the
order of their ranges. Each number of `affine_element` and `affine_float_zero` has its own, which
are given.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import mor_ref
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.integer_grids import NARROWEST, WIDEST, IntegerGrid, integer_grid
from mor_ref.exact.errors import SUMS
from mor_ref.operations.bits import bits32, tensor_of
from mor_ref.operations.call import Arrays, Call, DeviceArrays, DeviceCall, Parameters, Results
from mor_ref.operations.fields import along, expected, given
from mor_ref.operations.operation import Operation, PublicRecord, RandomInputs, WayBack, renamed
from mor_ref.operations.parameters import LONGEST, RECIPE, as_cut, kind, kinds, number, row_of
from mor_ref.operations.random_numbers import LAYOUTS, Draws, Words, bits_at, moved, share
from mor_ref.operations.results import each
from mor_ref.operations.shapes import groups_of_columns, spread_to_numbers
from mor_ref.operations.way_back import rounded_to
from mor_ref.schemes.affine import exact as affine
from mor_ref.schemes.affine import exact_columns as affine_columns
from mor_ref.schemes.affine.definition import (
    AFFINE_PROFILES,
    affine_profile,
    check_grid,
    with_float_zeros,
)
from mor_ref.schemes.affine.exact_groups import affine_groups

if TYPE_CHECKING:
    from mor_ref import Affine
    from mor_ref.schemes.affine.cuda import Affine as AffineOnDevice
    from mor_ref.schemes.affine.cuda import Choices, ScaleAndZero

_U = np.uint64
_F32 = LAYOUTS["f32"]
_SPECIALS = np.array(
    [0x7FC00000, 0x7F800000, 0, 1, 0x7F7FFFFF, 0x4EFFFFFF, 0x4F000000, 0x5F000000], _U
)
# Zero points that are far outside, or so small that they leave no trace but at ties.
_FAR = np.array([0x7F7FFFFF, 0x00000001, 0x80000000, 0x4E6E6B28, 0xCB800001, 0x33800000], _U)
_OF_BLOCKS = ("minimum", "maximum", "scale", "inverse_scale", "zero_float", "zero_point")
_OF_ELEMENTS = ("inverse_scale", "xs", "code", "y")


def exact_choices(call: Call, *, symmetric: bool) -> affine.Choices:
    """Return the choices of a case, for the exact model."""
    grid, profile = integer_grid(call["grid"]), affine_profile(call["profile"])
    return affine.Choices(profile, grid, symmetric, call["source"])


def kernel_choices(call: Call, *, symmetric: bool) -> "Choices":
    """Return the choices of a case, for kernels."""
    from mor_ref.schemes.affine.cuda import Choices

    grid, profile = integer_grid(call["grid"]), affine_profile(call["profile"])
    return Choices(profile, grid, symmetric, call["source"])


def exact(call: Call) -> Results:
    """Quantize with the exact model."""
    choices = exact_choices(call, symmetric=call["symmetric"])
    tensor = affine.affine(call.numbers(), choices, call.cut)
    return {**block_results(tensor), **each(tensor.elements, "xs", "code", "y")}


def columns(call: Call) -> Results:
    """Quantize with the exact model, many numbers at a time."""
    tensor = affine_columns.affine(
        call.flat(), exact_choices(call, symmetric=call["symmetric"]), call.cut
    )
    blocks = {**each(tensor.blocks, *_OF_BLOCKS), **each(tensor.error, *SUMS)}
    return {**blocks, "xs": tensor.xs, "code": tensor.codes, "y": tensor.y}


def block_results(tensor: affine.AffineTensor) -> dict[str, Any]:
    """Return the results of blocks."""
    return {**each(tensor.blocks, *_OF_BLOCKS), **each(tensor.error, *SUMS)}


def engine(call: Call) -> Results:
    """Quantize with the public function."""
    return mor_ref.quantize_affine(call.tensor(), **call.arguments("grid profile symmetric block"))


def cuda(call: DeviceCall) -> DeviceArrays:
    """Quantize on a device."""
    from mor_ref.schemes.affine.cuda import errors, quantize_affine

    device, x, cut = call.device, call.bits(), call.cut
    quantized = quantize_affine(device, x, kernel_choices(call, symmetric=call["symmetric"]), cut)
    return {**on_device(quantized), **errors(device, x, quantized.y, cut)._asdict()}


def on_device(arrays: "AffineOnDevice") -> dict[str, Any]:
    """Return the fields of kernels; integers are words of 32 bits."""
    blocks = arrays.blocks._asdict()
    blocks.pop("zero")
    blocks["zero_point"] = blocks["zero_point"].view(np.uint32)
    return {**blocks, "xs": arrays.xs, "code": arrays.code.view(np.uint32), "y": arrays.y}


def restore(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint32]:
    """Return y of codes (AFF-009); of numbers of binary32 if the parameters have no source."""
    code, profile = arrays["code"].view(np.int32), affine_profile(parameters["profile"])
    block = partition(code.shape, as_cut(parameters["block"])).block
    scale = spread_to_numbers(arrays["scale"].view(np.float32), block, code.shape)
    with np.errstate(all="ignore"):
        if profile.stores_amax:
            y = scale * code.astype(np.float32) * (np.float32(1) / np.float32(127))
        else:
            zero = spread_to_numbers(arrays["zero_point"].view(np.int32), block, code.shape)
            y = (code - zero).astype(np.float32) * scale
    return rounded_to(parameters.get("source", "f32"), bits32(y))


def codes(parameters: Parameters) -> tuple[int, int]:
    """Return the lowest and the highest code (AFF-001)."""
    grid, profile = integer_grid(parameters["grid"]), affine_profile(parameters["profile"])
    if profile.sign_by_numbers and parameters.get("symmetric"):  # signed or not, as x is (AFF-005)
        return -(1 << grid.bits - 1), (1 << grid.bits) - 1
    return grid.lowest, grid.highest


def coded(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint32]:
    """Return the codes of numbers that have a scale and a zero point each (AFF-007, AFF-008)."""
    from mor_ref.arrays import numbers_from
    from mor_ref.schemes.affine.engine import quantize_affine

    grid, profile = integer_grid(parameters["grid"]), affine_profile(parameters["profile"])
    symmetric, source = parameters["symmetric"], parameters["source"]
    numbers, shape = numbers_from(tensor_of(arrays["x"], source), "x"), arrays["x"].shape
    scales_and_zeros = {
        name: np.ascontiguousarray(arrays[name]).reshape(-1)
        for name in ("scale", "zero_point")
        if name in arrays
    }
    zeros = (
        scales_and_zeros["zero_point"].view(np.int32) if "zero_point" in scales_and_zeros else None
    )
    cut, scale = partition(shape, (1, 1)), scales_and_zeros["scale"]
    quantized = quantize_affine(numbers, cut, profile, grid, symmetric, source, scale, zeros, 1)
    return np.ascontiguousarray(quantized.code, np.int32).view(np.uint32).reshape(shape)


def admit(parameters: Parameters) -> None:
    """Refuse a grid and a symmetry that the profile does not have."""
    grid, profile = integer_grid(parameters["grid"]), affine_profile(parameters["profile"])
    check_grid(grid, profile, symmetric=parameters["symmetric"])


def needed_for_y(parameters: Parameters) -> tuple[tuple[str, ...], ...]:
    """Return the fields that y follows from."""
    needed: tuple[tuple[str, ...], ...] = (("code",), ("scale",))
    has_zeros = not affine_profile(parameters["profile"]).stores_amax
    return (*needed, ("zero_point",)) if has_zeros else needed


def parameters_of(record: "Affine") -> Parameters:
    """Return the parameters that made a record."""
    return {**_choices_of(record), "block": list(record.partition.block)}


def _choices_of(record: "Affine") -> Parameters:
    return {name: getattr(record, name) for name in ("grid", "profile", "symmetric")}


def is_record(value: Any) -> bool:
    """Return whether a value is a record of this operation."""
    return isinstance(value, mor_ref.Affine) and value.permutation is None


def _has_one_sign(parameters: Parameters) -> bool:
    """Return whether the numbers of the whole tensor decide if its integers have a sign."""
    profile = affine_profile(parameters["profile"])
    return parameters["symmetric"] and profile.sign_by_numbers


def exact_groups(call: Call) -> Results:
    """Quantize with the exact model."""
    choices = exact_choices(call, symmetric=call["symmetric"])
    groups = affine_groups(call.numbers(), choices, call["groups"])
    blocks = block_results(groups.tensor)
    return {
        "range": groups.ranges,
        "permutation": groups.order,
        **{name: blocks.pop(end) for name, end in _ENDS.items()},
        **blocks,
        **each(groups.elements, "xs", "code", "y"),
    }


def engine_groups(call: Call) -> Results:
    """Quantize with the public function."""
    arguments = call.arguments("grid profile symmetric groups")
    return mor_ref.quantize_affine(call.tensor(), permute="range", **arguments)


def cuda_groups(call: DeviceCall) -> DeviceArrays:
    """Quantize on a device."""
    from mor_ref.schemes.affine.cuda import quantize_groups

    choices = kernel_choices(call, symmetric=call["symmetric"])
    order, quantized, sums = quantize_groups(call.device, call.bits(), choices, call["groups"])
    blocks = on_device(quantized)
    ends = {name: blocks.pop(end) for name, end in _ENDS.items()}
    return {"range": order.range, "permutation": order.order, **ends, **blocks, **sums._asdict()}


def restore_groups(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint32]:
    """Return y of codes (AFF-009): each column has the scale and the zero point of its group.

    Without a permutation, each number has its own.
    """
    if "permutation" not in arrays:
        return restore({**parameters, "block": [1, 1]}, arrays)
    order = arrays["permutation"].reshape(-1)
    if not np.array_equal(np.sort(order), np.arange(order.size)):
        raise ValueError(
            "permutation does not have each column once; give the columns in the order of groups"
        )
    group = groups_of_columns(np.argsort(order), parameters)
    per_column = {n: arrays[n][:, group] for n in ("scale", "zero_point") if n in arrays}
    return restore({**parameters, "block": "column"}, {**arrays, **per_column})


def needed_for_y_of_groups(parameters: Parameters) -> tuple[tuple[str, ...], ...]:
    """Return the fields that y follows from."""
    return (*needed_for_y(parameters), ("permutation",))


def parameters_of_groups(record: "Affine") -> Parameters:
    """Return the parameters that made a record."""
    return {**_choices_of(record), "groups": record.scale.size}


def is_record_of_groups(value: Any) -> bool:
    """Return whether a value is a record of this operation."""
    return isinstance(value, mor_ref.Affine) and value.permutation is not None


def exact_element(call: Call) -> Results:
    """Quantize number by number."""
    zeros = call.arrays["zero_point"].view(np.int32).tolist()
    return _exact_with(exact_choices(call, symmetric=False), call, zeros)


def exact_float_zero(call: Call) -> Results:
    """Quantize number by number (AFF-012)."""
    choices = exact_choices(call, symmetric=False)
    choices = replace(choices, profile=with_float_zeros(choices.profile))
    return _exact_with(choices, call, call.numbers("zero_point"))


def _exact_with(choices: affine.Choices, call: Call, zeros: list[Any]) -> Results:
    """Quantize number by number, given the zero points."""
    blocks = [
        affine.AffineBlock(0.0, 0.0, scale, affine.inverse(scale, choices), 0.0, zero)
        for scale, zero in zip(call.numbers("scale"), zeros, strict=True)
    ]
    pairs = zip(call.numbers(), blocks, strict=True)
    elements = (affine.affine_element(*pair, choices) for pair in pairs)
    return {**each(blocks, "inverse_scale"), **each(elements, "xs", "code", "y")}


def engine_element(call: Call) -> Results:
    """Quantize a row whose numbers are blocks of their own."""
    is_symmetric = affine_profile(call["profile"]).stores_amax
    zeros = None if is_symmetric else call.arrays["zero_point"].view(np.int32)
    return _engine_with(call, zeros, symmetric=is_symmetric)


def engine_float_zero(call: Call) -> Results:
    """Quantize a row whose numbers are blocks of their own."""
    return _engine_with(call, call.tensor("zero_point"), symmetric=False)


def _engine_with(call: Call, zeros: Any, *, symmetric: bool) -> Results:
    """Quantize a row whose numbers are blocks of their own, given the zero points."""
    record = mor_ref.quantize_affine(
        call.tensor(),
        block="column",
        symmetric=symmetric,
        scale=call.tensor("scale"),
        zero_point=zeros,
        **call.arguments("grid profile"),
    )
    stored = AFFINE.stored(record)
    return {name: stored[name] for name in _OF_ELEMENTS}


def cuda_element(call: DeviceCall) -> DeviceArrays:
    """Quantize a row whose numbers are blocks of their own."""
    from mor_ref.schemes.affine.cuda import ScaleAndZero

    scale, zero_point = call.arrays["scale"], call.arrays["zero_point"].view(np.int32)
    choices = kernel_choices(call, symmetric=False)
    return _cuda_with(call, choices, ScaleAndZero(scale, zero_point))


def cuda_float_zero(call: DeviceCall) -> DeviceArrays:
    """Quantize a row whose numbers are blocks of their own."""
    from mor_ref.schemes.affine.cuda import ScaleAndZero

    scale, zero_point = call.arrays["scale"], call.arrays["zero_point"]
    choices = kernel_choices(call, symmetric=False)
    choices = choices._replace(profile=with_float_zeros(choices.profile))
    return _cuda_with(call, choices, ScaleAndZero(scale, float_zero=zero_point))


def _cuda_with(
    call: DeviceCall, choices: "Choices", scale_and_zero: "ScaleAndZero"
) -> DeviceArrays:
    """Quantize a row whose numbers are blocks of their own, given their scales and zero points."""
    from mor_ref.cuda.launching import Bits
    from mor_ref.schemes.affine.cuda import quantize_affine

    x = Bits(call.arrays["x"].reshape(1, -1), "f32")
    cut = partition(x.array.shape, "column")
    fields = on_device(quantize_affine(call.device, x, choices, cut, scale_and_zero))
    return {name: fields[name] for name in _OF_ELEMENTS}


def random_element(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw scales and zero points, and numbers next to ties, at the ends, and far outside."""
    grid, profile = integer_grid(parameters["grid"]), affine_profile(parameters["profile"])
    choices = draws.words(0)
    zeros = share(draws.words(3) >> _U(32), 32, 1 << grid.bits).astype(np.int64) + grid.lowest
    at_zero = bits_at(choices, 48, 2) == 0
    if profile.stores_amax:
        at_zero[:] = True
    zero_points: Words = np.where(at_zero, 0, zeros).astype(_U) & _U(0xFFFFFFFF)
    scales = _scales(draws)
    x = _near(draws, _steps(draws, grid), scales, 127 if profile.stores_amax else 1)
    return {"x": x, "scale": scales, "zero_point": zero_points}


def _scales(draws: Draws) -> Words:
    """Return scales, as words of binary32."""
    choices, words = draws.words(0), draws.words(1)
    exponents = np.where(bits_at(choices, 0, 2) == 0, share(words >> _U(48), 16, 253),
                         share(words >> _U(48), 16, 40) + _U(107)) + _U(1)  # fmt: skip
    return exponents << _U(23) | words & _U(0x7FFFFF)


def _steps(draws: Draws, grid: IntegerGrid) -> NDArray[np.float64]:
    """Return steps from 0 to twice beyond the grid, most at ties."""
    steps = share(draws.words(2) >> _U(32), 32, 1 << grid.bits + 1).astype(np.int64)
    halves = np.where(bits_at(draws.words(0), 2, 3) == 0, 0.0, 0.5)
    return steps.astype(np.float64) - (1 << grid.bits) + halves


def _near(draws: Draws, steps: NDArray[np.float64], scales: Words, divisor: int = 1) -> Words:
    """Return numbers at most two places from steps * scale / divisor, and special numbers."""
    choices = draws.words(0)
    unit = scales.astype(np.uint32).view(np.float32).astype(np.float64)
    with np.errstate(all="ignore"):
        values = (steps * unit / divisor).astype(np.float32)
    bits = values.view(np.uint32).astype(_U)
    magnitudes = moved(bits & _U(0x7FFFFFFF), share(bits_at(choices, 8, 16), 16, 5), _F32.infinity)
    special = _SPECIALS[share(bits_at(choices, 24, 16), 16, _SPECIALS.size)]
    kinds = bits_at(choices, 40, 5)
    words: Words = np.where(kinds == 0, special, magnitudes) | bits & _U(1 << 31)
    return words


def _has_an_integer(parameters: Parameters, arrays: Arrays) -> NDArray[np.bool_]:
    grid, profile = integer_grid(parameters["grid"]), affine_profile(parameters["profile"])
    is_scale = (arrays["scale"] > 0) & (arrays["scale"] <= _F32.largest)
    zeros = arrays["zero_point"].astype(np.uint32).view(np.int32)
    ends = (0, 0) if profile.stores_amax else (grid.lowest, grid.highest)
    inside: NDArray[np.bool_] = is_scale & (ends[0] <= zeros) & (zeros <= ends[1])
    return inside


def admit_element(parameters: Parameters) -> None:
    """Refuse a grid that the profile does not have."""
    profile = affine_profile(parameters["profile"])
    admit({**parameters, "symmetric": profile.stores_amax})


def random_float_zero(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw scales, zero points between integers, and numbers next to ties of both."""
    grid = integer_grid(parameters["grid"])
    choices, words = draws.words(0), draws.words(3)
    scales = _scales(draws)
    whole = share(words >> _U(32), 32, 1 << grid.bits).astype(np.int64) + grid.lowest
    fractions = np.where(bits_at(choices, 50, 1) == 0, (words & _U(0xFFFFFF)) / (1 << 24),
                         (words & _U(3)) / 4)  # fmt: skip
    zeros = (whole + fractions).astype(np.float32)
    far = _FAR[share(bits_at(words, 24, 8), 8, _FAR.size)]
    zero_points = np.where(bits_at(choices, 52, 4) == 0, far, zeros.view(np.uint32).astype(_U))
    steps = _steps(draws, grid) - zeros
    x = _near(draws, steps, scales)
    return {"x": x, "scale": scales, "zero_point": zero_points}


def _has_a_finite_zero(parameters: Parameters, arrays: Arrays) -> NDArray[np.bool_]:
    del parameters
    is_scale = (arrays["scale"] > 0) & (arrays["scale"] <= _F32.largest)
    inside: NDArray[np.bool_] = is_scale & (
        arrays["zero_point"] & arrays["zero_point"].dtype.type(0x7FFFFFFF) <= _F32.largest
    )
    return inside


def admit_float_zero(parameters: Parameters) -> None:
    """Refuse a profile whose zero points are integers alone."""
    profile = affine_profile(parameters["profile"])
    if not profile.takes_float_zeros:
        raise ValueError(
            f"profile is {profile.name!r}, whose zero points are integers; give "
            "torch_fake_channel_2_13"
        )


def _grid_of_case(parameters: Parameters) -> IntegerGrid | None:
    """Return the grid of codes; None if numbers decide whether they have a sign (AFF-005)."""
    profile, is_symmetric = affine_profile(parameters["profile"]), parameters.get("symmetric", True)
    if profile.sign_by_numbers and is_symmetric:
        return None
    return integer_grid(parameters["grid"])


RESULTS = (
    expected("scale f32 grid", "the scale of each block", "AFF-004", views="reciprocal"),
    expected("inverse_scale f32 grid", "the factor of numbers", "AFF-007"),
    expected("zero_float f32 grid", "the zero point before it is rounded", "AFF-005"),
    expected("zero_point u32 grid", "the code of zero", "AFF-005", signed=True, grid=_grid_of_case),
    expected("xs f32 rc", "the number that is rounded", "AFF-007"),
    expected("code u32 rc", "the integer", "AFF-008", signed=True, grid=_grid_of_case),
    expected("y f32 rc", "what it stands for", "AFF-009"),
    expected("sum u64 grid", "the sum of errors of each block", "ERR-002"),
    expected("nonzero u64 grid", "how many errors it has", "ERR-003"),
    expected("nonfinite u64 grid", "how many numbers are lost", "ERR-003"),
)
_PATHS = {"code": "codes", **{name: f"error.{name}" for name in SUMS}}
_ENDS = {"group_min": "minimum", "group_max": "maximum"}  # in PEG and here


def _is_grid(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(integer_grid(value))
    except ValueError:
        return False


_GRIDS = f"int or uint with {NARROWEST} to {WIDEST} bits, such as int8"
_KINDS = {
    "grid": kind(_is_grid, _GRIDS),
    "profile": row_of(AFFINE_PROFILES),
    "symmetric": kind(lambda value: isinstance(value, bool), "true or false"),
    "groups": number(1, LONGEST),
}
AFFINE = Operation(
    "affine",
    kinds("grid profile symmetric block source", **_KINDS),
    (
        given("x source rc", "the tensor"),
        expected("minimum f32 grid", "the smallest number of each block", "AFF-003"),
        expected("maximum f32 grid", "the largest number of each block", "AFF-003"),
        *RESULTS,
    ),
    model=exact,
    function=engine,
    kernels=cuda,
    columns=columns,
    admit=admit,
    optional=kinds(RECIPE),
    needs_all=_has_one_sign,
    follows_extremes=True,
    way_back=WayBack(needed_for_y, restore, coded, {"zero_point": 0}),
    record=PublicRecord(is_record, parameters_of, renamed(**_PATHS)),
    codes=codes,
)
AFFINE_GROUPS = Operation(
    "affine_groups",
    kinds("grid profile symmetric groups source", **_KINDS),
    (
        given("x source rc", "the tensor"),
        expected("range f32 columns", "the range of each dimension", "AFF-010"),
        expected("permutation u32 order", "the dimensions in the order of the groups", "AFF-010"),
        expected("group_min f32 groups", "the smallest number of each group", "AFF-003"),
        expected("group_max f32 groups", "the largest number of each group", "AFF-003"),
        *along({"grid": "groups"}, RESULTS),
    ),
    model=exact_groups,
    function=engine_groups,
    kernels=cuda_groups,
    admit=admit,
    way_back=WayBack(needed_for_y_of_groups, restore_groups, coded, {"zero_point": 0}),
    record=PublicRecord(is_record_of_groups, parameters_of_groups, renamed(**_PATHS, **_ENDS)),
    codes=codes,
)
AFFINE_ELEMENT = Operation(
    "affine_element",
    kinds("grid profile source:f32", **_KINDS),
    (
        given("x f32 n", "the numbers"),
        given("scale f32 n", "a scale for each"),
        given("zero_point u32 n", "a zero point for each", signed=True, grid=_grid_of_case),
        expected("inverse_scale f32 n", "the factor of the number", "AFF-007"),
        expected("xs f32 n", "the number that is rounded", "AFF-007"),
        expected("code u32 n", "the integer", "AFF-008", signed=True, grid=_grid_of_case),
        expected("y f32 n", "what it stands for", "AFF-009"),
    ),
    model=exact_element,
    function=engine_element,
    kernels=cuda_element,
    admit=admit_element,
    random=RandomInputs(
        random_element,
        _has_an_integer,
        "a scale is positive and finite, and a zero point is an integer of the grid, 0 if the "
        "scale is amax",
        answers=("code", "y"),
    ),
    codes=codes,
)
AFFINE_FLOAT_ZERO = Operation(
    "affine_float_zero",
    kinds("grid profile source:f32", **_KINDS),
    (
        given("x f32 n", "the numbers"),
        given("scale f32 n", "a scale for each"),
        given("zero_point f32 n", "a zero point for each"),
        expected("inverse_scale f32 n", "the factor of the number", "AFF-007"),
        expected("xs f32 n", "the number that is rounded", "AFF-012"),
        expected("code u32 n", "the integer", "AFF-012", signed=True, grid=_grid_of_case),
        expected("y f32 n", "what it stands for", "AFF-012"),
    ),
    model=exact_float_zero,
    function=engine_float_zero,
    kernels=cuda_float_zero,
    admit=admit_float_zero,
    random=RandomInputs(
        random_float_zero,
        _has_a_finite_zero,
        "a scale is positive and finite, and a zero point is finite",
        answers=("code", "y"),
    ),
    codes=codes,
)
