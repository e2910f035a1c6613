"""quantize, quantize_block and quantize_element: numbers to codes with scales, and back.

A row of `quantize_block` is a block, whose group has an amax.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import mor_ref
from mor_ref.definitions.block_formulas import scaled_formulas
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.elements import ElementRule
from mor_ref.definitions.formats import as_format, formats
from mor_ref.definitions.scales import AmaxOrScale, given_for
from mor_ref.exact import block_formats, quantization
from mor_ref.exact.error_columns import error_sums
from mor_ref.exact.errors import SUMS, error_sum
from mor_ref.exact.scales import amax, scale_of_block
from mor_ref.operations.bits import bits32, f32_array, tensor_of
from mor_ref.operations.call import Arrays, Call, DeviceArrays, DeviceCall, Parameters, Results
from mor_ref.operations.elements import element_results, has_steps
from mor_ref.operations.errors import error_results, sum_fields
from mor_ref.operations.fields import along, expected, given
from mor_ref.operations.given_words import BITS, GIVEN, refuse_words, words_for_engine, words_of
from mor_ref.operations.nearest import Nearest, Operand, operand_in_blocks, operand_of_steps
from mor_ref.operations.operation import (
    Operation,
    PublicRecord,
    RandomInputs,
    WayBack,
    WholeAmax,
    instance_test,
    renamed,
)
from mor_ref.operations.parameters import RECIPE, as_cut, kinds
from mor_ref.operations.random_blocks import (
    amaxes_at,
    amaxes_of,
    filled,
    fraction_of,
    values_of,
    with_a_special,
)
from mor_ref.operations.random_numbers import (
    LAYOUTS,
    Draws,
    bits_at,
    edge_fractions,
    moved,
    numbers,
    share,
)
from mor_ref.operations.results import each
from mor_ref.operations.scales import admit, scale_results, shared_mantissas
from mor_ref.operations.scales import random_inputs as random_amaxes
from mor_ref.operations.way_back import coded_with, restored

if TYPE_CHECKING:
    from mor_ref import Quantized

_U = np.uint64
_F32 = LAYOUTS["f32"]
_MANTISSA = np.uint32((1 << 23) - 1)


def exact(call: Call) -> Results:
    """Quantize with the exact model; a tensor that is not large has all intermediates."""
    x, cut, scaling = call.numbers(), call.cut, call["scaling"]
    given = call.get("amax"), call.get("scale"), words_of(call)
    tensor = quantization.quantize(x, call.fmt, scaling, cut, *given)
    return {
        "amax": tensor.amax,
        "mantissa": tensor.mantissa if scaling == "gam" else 0,
        **scale_results(tensor.scale),
        **element_results(tensor.elements, call.shape),
        **(error_results(x, tensor.elements) if has_steps(call.shape) else {}),
        **each(tensor.error, *SUMS),
    }


def columns(call: Call) -> Results:
    """Quantize with the exact model, many numbers at a time."""
    cut, x = call.cut, call.flat()
    formulas = scaled_formulas(call.fmt, call["scaling"], cut.block, cut.group)
    blocks = block_formats.quantize(x, call.shape, formulas)
    order, scale = block_formats.InBlocks(cut), blocks.scales["s"]
    errors = error_sums(order.taken(x), order.taken(blocks.y), order)
    is_gam = "m" in blocks.scales
    mantissa = f32_array(blocks.scales["m"].numbers["m"]) & _MANTISSA if is_gam else 0
    return {
        "amax": scale.numbers["amax"],
        "mantissa": mantissa,
        "exponent": scale.codes or 0,
        "scale": scale.numbers["encode"],
        "code": blocks.codes,
        "y": blocks.y,
        **each(errors, *SUMS),
    }


def engine(call: Call) -> Results:
    """Quantize with the public function."""
    arguments = call.arguments("scaling block group amax scale") | words_for_engine(call)
    return mor_ref.quantize(call.tensor(), call["format"], **arguments)


def cuda(call: DeviceCall) -> DeviceArrays:
    """Quantize on a device."""
    from mor_ref.cuda.quantization import dequantize, quantize

    refuse_words(call)
    device, fmt, cut = call.device, call.fmt, call.cut
    given = AmaxOrScale(call.get("amax"), call.get("scale"))
    tensor = quantize(device, call.bits(), fmt, call["scaling"], cut, given)
    y = dequantize(device, tensor, fmt, cut)
    scales, errors = tensor.scales._asdict(), tensor.error._asdict()
    return {"amax": tensor.amax, **scales, "code": tensor.codes, "y": y, **errors}


def restore(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint32]:
    """Return y: the values of codes divided by the scale of their block (QNT-002)."""
    fmt, code = as_format(parameters["format"]), arrays["code"]
    block = partition(code.shape, as_cut(parameters["block"])).block
    return restored(code, fmt, block, arrays["scale"], None)


def operand(call: Call) -> Operand | None:
    """Return xs, unless codes are rounded with random words (QNT-001)."""
    if BITS in call.parameters:
        return None
    cut, given = call.cut, AmaxOrScale(call.get("amax"), call.get("scale"))
    formulas = scaled_formulas(call.fmt, call["scaling"], cut.block, cut.group)
    return operand_in_blocks(call, formulas, given)


def coded(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint8]:
    """Return the codes of numbers that have a scale each (QNT-001)."""
    x = tensor_of(arrays["x"], parameters["source"])
    return coded_with(x, ElementRule(as_format(parameters["format"])), arrays["scale"], None)


def admit_given(parameters: Parameters) -> None:
    """Refuse a format that numbers are not scaled into, and a given number that is wrong."""
    admit(parameters)
    given_for(parameters["scaling"], parameters.get("amax"), parameters.get("scale"))


def parameters_of(record: "Quantized") -> Parameters:
    """Return the parameters that made a record."""
    block, group = (list(sides) for sides in (record.partition.block, record.partition.group))
    names = {"format": record.fmt.name, "scaling": record.scaling}
    return {**names, "block": block, "group": group}


def exact_block(call: Call) -> Results:
    """Quantize with the exact model, with all intermediates of every element."""
    fmt, scaling, x = call.fmt, call["scaling"], call.numbers()
    amaxes, mantissas = [amax(row) for row in x], shared_mantissas(call)
    pairs = zip(amaxes, mantissas, strict=True)
    scales = [scale_of_block(scaling, fmt.largest, *pair) for pair in pairs]
    elements = [
        [quantization.quantize_element(number, scale.value, fmt) for number in row]
        for row, scale in zip(x, scales, strict=True)
    ]
    errors = [
        error_sum((number, e.y) for number, e in zip(row, row_elements, strict=True))
        for row, row_elements in zip(x, elements, strict=True)
    ]
    return {
        "amax": amaxes,
        "mantissa": mantissas,
        **scale_results(scales),
        **each(elements, "xs", "code", "y"),
        **error_results(x, elements),
        **each(errors, *SUMS),
    }


def engine_block(call: Call) -> Results:
    """Quantize each block in a row, behind a block that has only the amax of the group."""
    x, width, scaling = call.tensor(), call.shape[1], call["scaling"]
    is_gam = scaling == "gam"
    first = np.zeros_like(x)
    first[:, 0] = call.tensor("group_amax")
    pairs, group = np.concatenate([first, x], axis=1), "row" if is_gam else "tensor"
    cut: dict[str, Any] = {"block": (1, width), "group": group}
    stored = QUANTIZE.stored(mor_ref.quantize(pairs, call["format"], scaling=scaling, **cut))
    own = {"grid": np.s_[:, 1:], "rc": np.s_[:, width:]}
    axes = {name: QUANTIZE.field(name).axes for name in stored}
    results = {name: stored[name][own[axes[name]]] for name in stored if axes[name] in own}
    return {**results, "mantissa": stored["mantissa"] if is_gam else 0}


def cuda_block(call: DeviceCall) -> DeviceArrays:
    """Quantize each block in a row, behind a block that has only the amax of the group."""
    from mor_ref.cuda.launching import Bits
    from mor_ref.cuda.quantization import dequantize, quantize

    device, fmt, scaling = call.device, call.fmt, call["scaling"]
    (count, width), is_gam = call.shape, scaling == "gam"
    pairs = device.filled((count, 2 * width), np.uint32, 0)
    pairs[:, 0], pairs[:, width:] = call.arrays["group_amax"], call.arrays["x"]
    cut = partition(pairs.shape, (1, width), "row" if is_gam else "tensor")
    tensor = quantize(device, Bits(pairs, "f32"), fmt, scaling, cut)
    nothing = device.filled((count,), np.uint32, 0)
    return {
        "amax": tensor.amax[:, 1],
        "scale": tensor.scales.scale[:, 1],
        "exponent": tensor.scales.exponent[:, 1],
        "mantissa": tensor.scales.mantissa[:, 0] if is_gam else nothing,
        "code": tensor.codes[:, width:],
        "y": dequantize(device, tensor, fmt, cut)[:, width:],
        **{name: array[:, 1] for name, array in tensor.error._asdict().items()},
    }


def random_block(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw amaxes as the operation `scale` does, and ties at the scale that they lead to.

    In one row of four, the block has the amax of the group.
    """
    fmt = as_format(parameters["format"])
    pairs = random_amaxes(parameters, draws)
    alone = amaxes_at(draws, 8, (fraction_of(fmt.largest),), fmt.largest)
    is_alone = bits_at(draws.words(7), 0, 2) == 0
    groups, blocks = (
        np.where(is_alone, alone, pairs[name]) for name in ("group_amax", "block_amax")
    )
    with np.errstate(divide="ignore"):
        ideal, shared = (fmt.largest / values_of(amax) for amax in (blocks, groups))
    significand, exponent = np.frexp(ideal)
    if parameters["scaling"] == "e8m0":
        significand = np.full_like(significand, 0.5)
    if parameters["scaling"] == "gam":
        group_significand = np.frexp(shared)[0]
        exponent = exponent - (group_significand > significand)
        significand = group_significand
    with np.errstate(all="ignore"):
        units = 1 / np.ldexp(significand, exponent)
    x = with_a_special(draws, 3, filled(draws, 4, fmt, blocks, units), blocks)
    return {"x": x, "group_amax": groups}


def _are_blocks(_: Parameters, arrays: Arrays) -> NDArray[np.bool_]:
    groups = arrays["group_amax"]
    inside: NDArray[np.bool_] = groups <= _F32.largest
    return inside & (amaxes_of(arrays["x"], _F32.largest) <= groups)


def restore_rows(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint32]:
    """Return y of rows that are a block, or a number, with one scale each (QNT-002)."""
    code, fmt = arrays["code"], as_format(parameters["format"])
    rows, scale = code.reshape(len(code), -1), arrays["scale"].reshape(-1, 1)
    return restored(rows, fmt, (1, rows.shape[1]), scale, None).reshape(code.shape)


def exact_element(call: Call) -> Results:
    """Quantize number by number."""
    fmt, pairs = call.fmt, call.together("x", "scale")
    elements = (quantization.quantize_element(x, scale, fmt) for x, scale in pairs)
    return each(elements, "xs", "code", "y")


def engine_element(call: Call) -> Results:
    """Quantize with the step of the engine's loops."""
    from mor_ref.engine.nearest import grid_of
    from mor_ref.engine.steps import quantize_elements

    x, scale, fmt = call.arrays["x"], call.arrays["scale"], call.fmt
    xs, code = np.empty_like(x), np.empty(x.size, np.uint8)
    quantize_elements(x, scale, grid_of(fmt), xs, code)
    with np.errstate(all="ignore"):
        y = mor_ref.decode(code, fmt) / call.tensor("scale")
    return {"xs": xs, "code": code, "y": bits32(y)}


def cuda_element(call: DeviceCall) -> DeviceArrays:
    """Quantize on a device."""
    from mor_ref.cuda.quantization import quantize_steps

    return quantize_steps(call.device, call.fmt, call.arrays["x"], call.arrays["scale"])


def random_element(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw scales, and numbers that these bring to where encoders differ, or next to it."""
    fmt = formats[parameters["format"]]
    choices = draws.words(4)
    usual = share(bits_at(choices, 32, 16), 16, 40) + _U(107)
    any_exponent = share(choices >> _U(48), 16, 254) + _U(1)
    exponents = np.where(bits_at(choices, 0, 1) == 0, usual, any_exponent)
    scales = exponents << _U(23) | edge_fractions(draws, 3, fmt.largest)
    scaled = numbers(draws, 0, fmt, "f32")
    magnitudes = scaled & _U(0x7FFFFFFF)
    with np.errstate(all="ignore"):
        dividends, divisors = (x.astype(np.uint32).view(np.float32) for x in (magnitudes, scales))
        quotients = dividends / divisors
    steps = share(bits_at(choices, 8, 16), 16, 5)
    near = moved(quotients.view(np.uint32).astype(_U), steps, _F32.infinity)
    is_number = magnitudes <= _U(_F32.infinity)
    return {"x": np.where(is_number, near | scaled & _U(1 << 31), scaled), "scale": scales}


def _has_a_scale(_: Parameters, arrays: Arrays) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = (arrays["scale"] >= _F32.hidden) & (arrays["scale"] <= _F32.largest)
    return inside


RESULTS = (
    expected("amax f32 grid", "the amax of each block", "SCL-001"),
    expected("mantissa u32 group", "the shared mantissa of each group, 0 but under gam", "GAM-001"),
    expected(
        "exponent e8m0 grid",
        "the stored exponent of each block, 0 under fp32",
        "SCL-005 GAM-002 GAM-003 GAM-004 GAM-005",
        views="transposed",
    ),
    expected(
        "scale f32 grid",
        "the scale of each block",
        "SCL-002 SCL-004 GAM-005",
        views="transposed reciprocal",
    ),
    expected("xs f32 rc", "each number under its scale", "QNT-001"),
    expected("code format rc", "the code of each number", "QNT-001", views="transposed"),
    expected("y f32 rc", "what each code stands for", "QNT-002"),
    expected("d f32 rc", "the distance of x and y, 0 where x does not count", "ERR-001"),
    expected("r f32 rc", "d / |x|, at most 1", "ERR-001"),
    expected("u u32 rc", "r * 2^23 as an integer", "ERR-001"),
    *sum_fields("grid"),
)
_PATHS = {
    "code": "codes",
    "y": "dequantize",
    "mantissa": "scale_mantissa",
    "exponent": "scale_exponent",
    **{name: f"error.{name}" for name in SUMS},
}
QUANTIZE = Operation(
    "quantize",
    kinds("format scaling block group source"),
    (
        given("x source rc", "the tensor"),
        *RESULTS,
    ),
    model=exact,
    function=engine,
    kernels=cuda,
    columns=columns,
    admit=admit_given,
    optional=kinds(f"{RECIPE} amax scale {BITS}"),
    optional_inputs=GIVEN,
    whole_amax=WholeAmax(lambda parameters: parameters["scaling"] == "gam"),
    ignores_zeros=True,
    way_back=WayBack(lambda _: (("code",), ("scale",)), restore, coded),
    nearest=Nearest(operand, restore),
    record=PublicRecord(
        instance_test("Quantized"),
        parameters_of,
        renamed(**_PATHS),
        zero=("mantissa", "exponent"),
        optional=("xs", "d", "r", "u"),
    ),
)
QUANTIZE_BLOCK = Operation(
    "quantize_block",
    kinds("format scaling source:f32"),
    (
        given("x f32 nk", "the numbers of each block"),
        given("group_amax f32 n", "the amax of the group of each"),
        *along({"grid": "n", "group": "n", "rc": "nk"}, RESULTS),
    ),
    model=exact_block,
    function=engine_block,
    kernels=cuda_block,
    admit=admit,
    nearest=Nearest(operand_of_steps, restore_rows),
    random=RandomInputs(
        random_block,
        _are_blocks,
        "group_amax is finite, not negative, and at least the largest finite magnitude of x",
        answers=("scale", "code"),
    ),
)
QUANTIZE_ELEMENT = Operation(
    "quantize_element",
    kinds("format"),
    (
        given("x f32 n", "the number"),
        given("scale f32 n", "the scale of its block"),
        expected("xs f32 n", "the product of the two", "QNT-001"),
        expected("code format n", "its code", "QNT-001 ENC-003 ENC-007"),
        expected("y f32 n", "what the code stands for, divided by the scale", "QNT-002"),
    ),
    model=exact_element,
    function=engine_element,
    kernels=cuda_element,
    admit=admit,
    nearest=Nearest(operand_of_steps, restore_rows),
    random=RandomInputs(random_element, _has_a_scale, "a scale is positive, normal and finite"),
)
