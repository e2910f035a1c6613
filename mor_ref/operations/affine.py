"""affine: a tensor as integers, with a scale and a zero point for each block."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.affine import affine_profile, check_grid, integer_grid
from mor_ref.definitions.blocks import partition
from mor_ref.operations.bits import bits32, f32_array, tensor_of
from mor_ref.operations.elements import listed, rows_of, sums
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import (
    Arrays,
    DeviceArrays,
    Operation,
    Parameters,
    PublicRecord,
    WayBack,
)
from mor_ref.operations.parameters import RECIPE, as_cut, kinds
from mor_ref.operations.shapes import spread_to_numbers
from mor_ref.operations.way_back import rounded_to

if TYPE_CHECKING:
    from mor_ref import Affine
    from mor_ref.cuda import affine
    from mor_ref.cuda.launching import Device
    from mor_ref.exact.affine import AffineTensor, Choices
    from mor_ref.exact.quantization import Element

_BLOCK_NUMBERS = ("minimum", "maximum", "scale", "inverse_scale", "zero_float")


def exact_choices(parameters: Parameters) -> "Choices":
    """Return the choices of a case, for the exact model."""
    from mor_ref.exact.affine import Choices

    grid, profile = integer_grid(parameters["grid"]), affine_profile(parameters["profile"])
    return Choices(profile, grid, parameters["symmetric"], parameters["source"])


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize with the exact model."""
    from mor_ref.exact.affine import affine

    cut = partition(arrays["x"].shape, as_cut(parameters["block"]))
    tensor = affine(rows_of(arrays, parameters["source"]), exact_choices(parameters), cut)
    elements = [e for row in tensor.elements for e in row]
    return {
        **block_fields(tensor, cut.grid),
        **element_fields(elements, arrays["x"].shape),
        **sums(listed(tensor.error, cut.grid), cut.grid),
    }


def block_fields(tensor: "AffineTensor", grid: tuple[int, int]) -> dict[str, Any]:
    """Return the fields of blocks."""
    blocks = listed(tensor.blocks, grid)
    numbers = {
        name: f32_array(getattr(block, name) for block in blocks).reshape(grid)
        for name in _BLOCK_NUMBERS
    }
    return {**numbers, "zero_point": words_of([b.zero_point for b in blocks]).reshape(grid)}


def element_fields(elements: "list[Element]", shape: tuple[int, ...]) -> dict[str, Any]:
    """Return the fields of numbers."""
    return {
        "xs": f32_array(e.xs for e in elements).reshape(shape),
        "code": words_of([e.code for e in elements]).reshape(shape),
        "y": f32_array(e.y for e in elements).reshape(shape),
    }


def words_of(integers: Any) -> NDArray[np.uint32]:
    """Return integers as words of 32 bits, in two's complement."""
    return np.ascontiguousarray(integers, np.int32).view(np.uint32)


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize with the public function."""
    from mor_ref import quantize_affine

    x = tensor_of(arrays["x"], parameters["source"])
    return stored(quantize_affine(x, block=as_cut(parameters["block"]), **choices(parameters)))


def choices(parameters: Parameters) -> dict[str, Any]:
    """Return the grid, the profile and the symmetry, as arguments of the public function."""
    return {name: parameters[name] for name in ("grid", "profile", "symmetric")}


def stored(record: "Affine") -> dict[str, Any]:
    """Return the fields of a record, with those of the order if its columns are permuted."""
    order: dict[str, Any] = {}
    if record.range is not None and record.permutation is not None:
        order["range"] = bits32(record.range).reshape(1, -1)
        order["permutation"] = words_of(record.permutation).reshape(1, -1)
    return {
        **order,
        **{name: bits32(getattr(record, name)) for name in _BLOCK_NUMBERS},
        "zero_point": record.zero_point.view(np.uint32),
        "xs": bits32(record.xs),
        "code": words_of(record.codes),
        "y": bits32(record.y),
        "sum": record.error.sum,
        "nonzero": record.error.nonzero,
        "nonfinite": record.error.nonfinite,
    }


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Quantize on a device."""
    from mor_ref.cuda.affine import errors, quantize_affine
    from mor_ref.cuda.launching import Bits

    x = Bits(arrays["x"], parameters["source"])
    cut = partition(arrays["x"].shape, as_cut(parameters["block"]))
    quantized = quantize_affine(device, x, kernel_choices(parameters), cut)
    return {**on_device(quantized), **errors(device, x, quantized.y, cut)._asdict()}


def kernel_choices(parameters: Parameters) -> "affine.Choices":
    """Return the choices of a case, for kernels."""
    from mor_ref.cuda.affine import Choices

    grid, profile = integer_grid(parameters["grid"]), affine_profile(parameters["profile"])
    return Choices(profile, grid, parameters["symmetric"], parameters["source"])


def on_device(arrays: "affine.Affine") -> dict[str, Any]:
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
    from mor_ref.engine.affine import quantize_affine

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
    return words_of(quantized.code).reshape(shape)


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
    return {**choices(vars(record)), "block": list(record.partition.block)}


def is_record(value: Any) -> bool:
    """Return whether a value is a record of this operation."""
    from mor_ref import Affine

    return isinstance(value, Affine) and value.permutation is None


def _has_one_sign(parameters: Parameters) -> bool:
    """Return whether the numbers of the whole tensor decide if its integers have a sign."""
    profile = affine_profile(parameters["profile"])
    return parameters["symmetric"] and profile.sign_by_numbers


AFFINE = Operation(
    "affine",
    kinds("grid:integer_grid profile:affine_profile symmetric block source"),
    inputs=fields("rc x source"),
    outputs=fields(
        "grid minimum,maximum,scale,inverse_scale,zero_float f32; grid zero_point u32; rc xs f32; "
        "rc code u32; rc y f32; grid sum,nonzero,nonfinite u64"
    ),
    exact=exact,
    engine=engine,
    cuda=cuda,
    admit=admit,
    optional=kinds(RECIPE),
    needs_all=_has_one_sign,
    follows_extremes=True,
    way_back=WayBack(needed_for_y, restore, coded, {"zero_point": 0}),
    record=PublicRecord(is_record, parameters_of, stored),
    codes=codes,
)
