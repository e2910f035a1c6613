"""mx, mx_block and mx_decode: tensors in MX formats; a row of `mx_block` is a block."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import mor_ref
from mor_ref.definitions.block_formulas import mx_formulas
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.elements import ElementRule
from mor_ref.definitions.formats import as_format
from mor_ref.definitions.mx import SCALE_RULES, mx_element
from mor_ref.exact import block_formats, mx
from mor_ref.operations.bits import Unsigned, bits32, tensor_of
from mor_ref.operations.call import Arrays, Call, DeviceArrays, DeviceCall, Parameters, Results
from mor_ref.operations.decoding import ARE_CODES, are_codes
from mor_ref.operations.elements import element_results
from mor_ref.operations.fields import along, expected, given
from mor_ref.operations.given_words import BITS, GIVEN, refuse_words, words_for_engine, words_of
from mor_ref.operations.nearest import Nearest, Operand, operand_in_blocks, operand_of_steps
from mor_ref.operations.operation import (
    Operation,
    PublicRecord,
    RandomInputs,
    WayBack,
    instance_test,
    renamed,
)
from mor_ref.operations.parameters import RECIPE, kinds
from mor_ref.operations.random_blocks import (
    amaxes_at,
    filled,
    fraction_of,
    values_of,
    with_a_special,
)
from mor_ref.operations.random_numbers import ANY_NUMBER, Draws, any_row, bits_at
from mor_ref.operations.results import each
from mor_ref.operations.way_back import coded_with, restored

if TYPE_CHECKING:
    from mor_ref import Mx


def exact(call: Call) -> Results:
    """Quantize with the exact model; a tensor that is not large has all intermediates."""
    tensor = mx.mx(call.numbers(), call.fmt, call["scale_rule"], call["block"], words_of(call))
    return {"scale": tensor.scale, **element_results(tensor.elements, call.shape)}


def columns(call: Call) -> Results:
    """Quantize with the exact model, many numbers at a time."""
    formulas = mx_formulas(call.fmt, call["scale_rule"], call["block"])
    blocks = block_formats.quantize(call.flat(), call.shape, formulas)
    return {"scale": blocks.scales["s"].codes, "code": blocks.codes, "y": blocks.y}


def engine(call: Call) -> Results:
    """Quantize with the public function."""
    arguments = call.arguments("scale_rule block") | words_for_engine(call)
    return mor_ref.quantize_mx(call.tensor(), call["format"], **arguments)


def cuda(call: DeviceCall) -> DeviceArrays:
    """Quantize on a device."""
    refuse_words(call)
    return _quantized(call, call["block"])


def _quantized(call: DeviceCall, block: int) -> DeviceArrays:
    from mor_ref.cuda.mx import dequantize, mx

    tensor = mx(call.device, call.bits(), call.fmt, call["scale_rule"], block)
    y = dequantize(call.device, tensor, call.fmt, block)
    return {"code": tensor.codes, "scale": tensor.scale, "y": y}


def restore(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint32]:
    """Return y: the values of codes times the power of two of their block (MXS-008)."""
    fmt, code = as_format(parameters["format"]), arrays["code"]
    block = partition(code.shape, (1, parameters["block"])).block
    return restored(code, fmt, block, *_powers_of_two(arrays["scale"]))


def operand(call: Call) -> Operand | None:
    """Return xs, unless codes are rounded with random words (MXS-007)."""
    if BITS in call.parameters:
        return None
    return operand_in_blocks(call, mx_formulas(call.fmt, call["scale_rule"], call["block"]))


def coded(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint8]:
    """Return the codes of numbers that have a scale each (MXS-007)."""
    x = tensor_of(arrays["x"], parameters["source"])
    elements = ElementRule(as_format(parameters["format"]))
    return coded_with(x, elements, *_powers_of_two(arrays["scale"]))


def _powers_of_two(scale: Unsigned) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the factors of numbers, and of the values of codes."""
    powers = mor_ref.decode(np.ascontiguousarray(scale, np.uint8), "e8m0")
    return bits32(np.float32(1) / powers), bits32(powers)


def admit(parameters: Parameters) -> None:
    """Refuse a format that elements of MX do not have."""
    mx_element(parameters["format"])


def parameters_of(record: "Mx") -> Parameters:
    """Return the parameters that made a record."""
    parameters = {"format": record.fmt.name, "scale_rule": record.scale_rule}
    return {**parameters, "block": record.tile[1]}


def exact_block(call: Call) -> Results:
    """Quantize with the exact model, with all intermediates of every element."""
    fmt, rule, x = call.fmt, call["scale_rule"], call.numbers()
    codes = [mx.scale_code(row, fmt, rule) for row in x]
    elements = [
        [mx.quantize_element(number, code, fmt, rule) for number in row]
        for row, code in zip(x, codes, strict=True)
    ]
    return {"scale": codes, **each(elements, "xs", "code", "y")}


def engine_block(call: Call) -> Results:
    """Quantize a tensor whose rows are one block each."""
    arguments = call.arguments("scale_rule") | {"block": call.shape[1]}
    return MX.stored(mor_ref.quantize_mx(call.tensor(), call["format"], **arguments))


def cuda_block(call: DeviceCall) -> DeviceArrays:
    """Quantize a tensor whose rows are one block each."""
    return _quantized(call, call.shape[1])


def restore_block(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint32]:
    """Return y of rows that are one block each (MXS-008)."""
    code, scale = arrays["code"], arrays["scale"].reshape(-1, 1)
    asked = {"format": parameters["format"], "block": code.shape[1]}
    return restore(asked, {"code": code, "scale": scale})


def random_block(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw blocks whose amax is next to where the scale turns, and ties at both scales there."""
    fmt, rule = as_format(parameters["format"]), SCALE_RULES[parameters["scale_rule"]]
    largest = fraction_of(fmt.largest)
    turn = largest if rule.up_from is None else rule.up_from_of(fmt) % (1 << 23)
    amaxes = amaxes_at(draws, 0, (turn, turn, largest), fmt.largest)
    is_next = bits_at(draws.words(3), 0, 1)
    exponent = np.frexp(values_of(amaxes))[1] - np.frexp(fmt.largest)[1] + is_next.astype(np.int64)
    units = np.ldexp(1.0, np.maximum(exponent, -127))
    return {"x": with_a_special(draws, 4, filled(draws, 5, fmt, amaxes, units), amaxes)}


def exact_decode(call: Call) -> Results:
    """Decode with the exact model, also codes and scales that no quantizer makes."""
    fmt, rows = call.fmt, call.together("code", "scale")
    return {"y": [mx.decoded(code, scale, fmt) for row, scale in rows for code in row]}


def engine_decode(call: Call) -> Results:
    """Decode as `dequantize` does."""
    return {"y": restore_block(call.parameters, call.arrays)}


def cuda_decode(call: DeviceCall) -> DeviceArrays:
    """Decode on a device."""
    from mor_ref.cuda.errors import no_errors
    from mor_ref.cuda.mx import MxArrays, dequantize

    device, code, scale = call.device, call.arrays["code"], call.arrays["scale"]
    tensor = MxArrays(code, scale.reshape(-1, 1), no_errors(device, (1, 1)))
    return {"y": dequantize(device, tensor, call.fmt, call.shape[1])}


def random_codes(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw any codes, and any scales."""
    codes = bits_at(draws.per_number().words(0), 0, as_format(parameters["format"]).bits)
    return {"code": codes.reshape(-1, draws.width), "scale": bits_at(draws.words(1), 0, 8)}


# What all scale rules have in common (MXS-002), and each of them.
_RULES_OF_SCALES = "MXS-002 MXS-003 MXS-004 MXS-005 MXS-006"
RESULTS = (
    expected(
        "scale e8m0 grid",
        "the stored scale of each block",
        _RULES_OF_SCALES,
        views="transposed swizzled_128x4 mn_major_packed shuffled_32x8",
    ),
    expected("xs f32 rc", "each number under the scale of its block", "MXS-007"),
    expected(
        "code format rc",
        "the code of each number",
        "MXS-007",
        views="transposed packed shuffled_16x32",
    ),
    expected("y f32 rc", "what each code stands for", "MXS-008"),
)
MX = Operation(
    "mx",
    kinds("format scale_rule block:side source"),
    (
        given("x source rc", "the tensor"),
        *RESULTS,
    ),
    model=exact,
    function=engine,
    kernels=cuda,
    columns=columns,
    admit=admit,
    optional=kinds(f"{RECIPE} {BITS}"),
    optional_inputs=GIVEN,
    ignores_zeros=True,
    way_back=WayBack(lambda _: (("code",), ("scale",)), restore, coded),
    nearest=Nearest(operand, restore),
    record=PublicRecord(
        instance_test("Mx"),
        parameters_of,
        renamed(code="codes", y="dequantize"),
        optional=("xs",),
    ),
)
MX_BLOCK = Operation(
    "mx_block",
    kinds("format scale_rule source:f32"),
    (
        given("x f32 nk", "the numbers of each block"),
        *along({"grid": "n", "rc": "nk"}, RESULTS),
    ),
    model=exact_block,
    function=engine_block,
    kernels=cuda_block,
    admit=admit,
    nearest=Nearest(operand_of_steps, restore_block),
    random=RandomInputs(random_block, any_row, ANY_NUMBER, answers=("scale", "code")),
)
MX_DECODE = Operation(
    "mx_decode",
    kinds("format"),
    (
        given("code format nk", "the codes of each block"),
        given("scale e8m0 n", "the scale of each block"),
        expected("y f32 nk", "what each code stands for", "MXS-008 MXS-009"),
    ),
    model=exact_decode,
    function=engine_decode,
    kernels=cuda_decode,
    admit=admit,
    random=RandomInputs(random_codes, are_codes, ARE_CODES),
)
