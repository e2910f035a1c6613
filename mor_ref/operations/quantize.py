"""quantize: a tensor to codes with scales."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.block_formulas import scaled_formulas
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.formats import as_format
from mor_ref.definitions.scales import AmaxOrScale, given_for
from mor_ref.operations.bits import bits32, codes_array, f32_array, numbers_of, tensor_of
from mor_ref.operations.elements import (
    error_fields,
    has_steps,
    listed,
    rows_of,
    sums,
    tensor_fields,
)
from mor_ref.operations.fields import fields
from mor_ref.operations.given_words import BITS, GIVEN, refuse_words, words_for_engine, words_of
from mor_ref.operations.operation import (
    Arrays,
    DeviceArrays,
    Operation,
    Parameters,
    PublicRecord,
    WayBack,
    WholeAmax,
    instance_test,
)
from mor_ref.operations.parameters import RECIPE, as_cut, kinds
from mor_ref.operations.scale import admit
from mor_ref.operations.way_back import coded_with, restored

if TYPE_CHECKING:
    from mor_ref import Quantized
    from mor_ref.cuda.launching import Device

_MANTISSA = np.uint32((1 << 23) - 1)


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize with the exact model; a tensor that is not large has all intermediates."""
    from mor_ref.exact import quantization

    shape = arrays["x"].shape
    cut = partition(shape, as_cut(parameters["block"]), as_cut(parameters["group"]))
    fmt, is_gam = as_format(parameters["format"]), parameters["scaling"] == "gam"
    x = rows_of(arrays, parameters["source"])
    arguments = parameters.get("amax"), parameters.get("scale"), words_of(parameters, arrays)
    tensor = quantization.quantize(x, fmt, parameters["scaling"], cut, *arguments)
    scales = listed(tensor.scale, cut.grid)
    mantissas = [m if is_gam else 0 for m in listed(tensor.mantissa, cut.group_grid)]
    return {
        "amax": f32_array(listed(tensor.amax, cut.grid)).reshape(cut.grid),
        "mantissa": np.array(mantissas, np.uint32).reshape(cut.group_grid),
        "exponent": np.array([s.exponent_code or 0 for s in scales], np.uint8).reshape(cut.grid),
        "scale": f32_array(s.value for s in scales).reshape(cut.grid),
        **tensor_fields(tensor.elements, fmt, shape),
        **(error_fields(x, tensor.elements, shape) if has_steps(shape) else {}),
        **sums(listed(tensor.error, cut.grid), cut.grid),
    }


def columns(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize with the exact model, many numbers at a time."""
    from mor_ref.exact import block_formulas
    from mor_ref.exact.error_columns import error_sums

    shape, fmt = arrays["x"].shape, as_format(parameters["format"])
    cut = partition(shape, as_cut(parameters["block"]), as_cut(parameters["group"]))
    x = numbers_of(arrays["x"], parameters["source"])
    formulas = scaled_formulas(fmt, parameters["scaling"], cut.block, cut.group)
    blocks = block_formulas.quantize(x, shape, formulas)
    order, scale = block_formulas.InBlocks(cut), blocks.scales["s"]
    errors = error_sums(order.taken(x), order.taken(blocks.y), order)
    mantissa, exponent = np.zeros(cut.group_grid, np.uint32), np.zeros(cut.grid, np.uint8)
    if scale.codes:
        exponent = np.array(scale.codes, np.uint8).reshape(cut.grid)
    if "m" in blocks.scales:
        bits = f32_array(blocks.scales["m"].numbers["m"])
        mantissa = (bits & _MANTISSA).reshape(cut.group_grid)
    return {
        "amax": f32_array(scale.numbers["amax"]).reshape(cut.grid),
        "mantissa": mantissa,
        "exponent": exponent,
        "scale": f32_array(scale.numbers["encode"]).reshape(cut.grid),
        "code": codes_array(blocks.codes, fmt).reshape(shape),
        "y": f32_array(blocks.y).reshape(shape),
        **sums(errors, cut.grid),
    }


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize with the public function."""
    from mor_ref import quantize

    x = tensor_of(arrays["x"], parameters["source"])
    block, group = as_cut(parameters["block"]), as_cut(parameters["group"])
    record = quantize(
        x,
        parameters["format"],
        scaling=parameters["scaling"],
        block=block,
        group=group,
        amax=parameters.get("amax"),
        scale=parameters.get("scale"),
        **words_for_engine(parameters, arrays),
    )
    return stored(record)


def stored(record: "Quantized") -> Arrays:
    """Return the fields that a record has; 0 for the parts of a scale that its kind lacks."""
    cut = record.partition
    exponent, mantissa = record.scale_exponent, record.scale_mantissa
    return {
        "code": record.codes,
        "y": record.dequantize().view(np.uint32),
        "amax": bits32(record.amax),
        "scale": bits32(record.scale),
        "exponent": np.zeros(cut.grid, np.uint8) if exponent is None else exponent,
        "mantissa": np.zeros(cut.group_grid, np.uint32) if mantissa is None else mantissa,
        "sum": record.error.sum,
        "nonzero": record.error.nonzero,
        "nonfinite": record.error.nonfinite,
    }


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Quantize on a device."""
    from mor_ref.cuda import quantization
    from mor_ref.cuda.launching import Bits

    refuse_words(parameters)
    fmt, x = as_format(parameters["format"]), Bits(arrays["x"], parameters["source"])
    cut = partition(arrays["x"].shape, as_cut(parameters["block"]), as_cut(parameters["group"]))
    given = AmaxOrScale(parameters.get("amax"), parameters.get("scale"))
    tensor = quantization.quantize(device, x, fmt, parameters["scaling"], cut, given)
    return {
        "amax": tensor.amax,
        **tensor.scales._asdict(),
        "code": tensor.codes,
        "y": quantization.dequantize(device, tensor, fmt, cut),
        **tensor.error._asdict(),
    }


def restore(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint32]:
    """Return y: the values of codes divided by the scale of their block (QNT-002)."""
    fmt, code = as_format(parameters["format"]), arrays["code"]
    block = partition(code.shape, as_cut(parameters["block"])).block
    return restored(code, fmt, block, arrays["scale"], None)


def coded(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint8]:
    """Return the codes of numbers that have a scale each (QNT-001)."""
    x = tensor_of(arrays["x"], parameters["source"])
    return coded_with(x, as_format(parameters["format"]), arrays["scale"], None)


def admit_given(parameters: Parameters) -> None:
    """Refuse a format that numbers are not scaled into, and a given number that is wrong."""
    admit(parameters)
    given_for(parameters["scaling"], parameters.get("amax"), parameters.get("scale"))


def parameters_of(record: "Quantized") -> Parameters:
    """Return the parameters that made a record."""
    block, group = (list(sides) for sides in (record.partition.block, record.partition.group))
    names = {"format": record.fmt.name, "scaling": record.scaling}
    return {**names, "block": block, "group": group}


QUANTIZE = Operation(
    "quantize",
    kinds("format scaling block group source"),
    inputs=fields("rc x source"),
    outputs=fields(
        "grid amax,scale f32; group mantissa u32; grid exponent e8m0; rc xs,y,d,r f32; "
        "rc code format; rc u u32; grid sum,nonzero,nonfinite u64"
    ),
    exact=exact,
    engine=engine,
    cuda=cuda,
    columns=columns,
    admit=admit_given,
    optional=kinds(f"{RECIPE} amax scale {BITS}"),
    optional_inputs=GIVEN,
    whole_amax=WholeAmax(lambda parameters: parameters["scaling"] == "gam"),
    ignores_zeros=True,
    way_back=WayBack(lambda _: (("code",), ("scale",)), restore, coded),
    record=PublicRecord(instance_test("Quantized"), parameters_of, stored),
)
