"""matmul: entries of products of matrices; a row has a row of A and a column of B in blocks."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import mor_ref
from mor_ref.arrays import code_dtype
from mor_ref.definitions.dot import DOT_PROFILES, DotProfile
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.matmul import RECORD_KINDS
from mor_ref.exact.matmul import Block, entry
from mor_ref.operations.bits import bits32
from mor_ref.operations.call import Arrays, Call, DeviceArrays, DeviceCall, Parameters, Results
from mor_ref.operations.dot import profile_of
from mor_ref.operations.fields import expected, given
from mor_ref.operations.operation import Operation, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_numbers import any_row
from mor_ref.operations.random_products import CHOICES, WIDEST, random_inputs, usable

if TYPE_CHECKING:
    from mor_ref.engine.matmul import Piece

_RANGE_OF_SCALES = (28, -160, 140)  # of factors in binary32, and of e4m3 times binary32
_WITHOUT_PIECES = ("f32_fma", "f32_pairwise", "int32", "switchback")


def admit(parameters: Parameters) -> None:
    """Refuse profiles that have no pieces with scales."""
    profile, record = profile_of(parameters), RECORD_KINDS[parameters["record"]]
    if profile.family in _WITHOUT_PIECES:
        raise ValueError(f"{profile.name} multiplies y of records, which dot has; give another")
    if not usable(profile):
        raise ValueError(
            f"{profile.name} multiplies none of {', '.join(CHOICES)}; give another profile"
        )
    scales = record.scale_format, parameters["scale_block"]
    if profile.needs_scales and scales not in profile.scales:
        raise ValueError(
            f"{profile.name} takes no scales of {record.name} for blocks of {scales[1]}; it takes "
            f"{' or '.join(f'{fmt} for {size}' for fmt, size in profile.scales)}"
        )


def exact(call: Call) -> Results:
    """Multiply with the exact model, entry by entry."""
    profile = profile_of(call.parameters)
    rows = zip(*(_blocks(call, name) for name in "ab"), strict=True)
    return {"result": [entry(a, b, profile) for a, b in rows]}


def _blocks(call: Call, name: str) -> list[list[Block]]:
    """Return the blocks of each row of an operand."""
    size, divides = call["scale_block"], RECORD_KINDS[call["record"]].divides
    rows = []
    prefixes = ("", "y_", "choice_", "scale_", "overall_")
    for codes, y, choices, scales, overall in call.together(*(f"{p}{name}" for p in prefixes)):
        blocks = []
        for k, (index, scale) in enumerate(zip(choices, scales, strict=True)):
            part, fmt = slice(k * size, (k + 1) * size), formats[CHOICES[index]]
            factor, whole = (1.0, 1.0) if index == WIDEST else (scale, overall)
            blocks.append(Block(codes[part], fmt, factor, whole, y[part], divides))
        rows.append(blocks)
    return rows


def engine(call: Call) -> Results:
    """Multiply with the engine."""
    parameters, arrays = call.parameters, call.arrays
    profile = profile_of(parameters)
    if profile.family == "exact":
        results = _exact_sums(parameters, arrays, profile)
    elif profile.needs_scales:
        results = _scaled_by_instruction(parameters, arrays, profile)
    else:
        results = _in_pieces(parameters, arrays, profile)
    return {"result": bits32(results)}


def _factors(parameters: Parameters, arrays: Arrays, name: str) -> NDArray[np.float32]:
    """Return the scale of each block as codes are multiplied by it."""
    from mor_ref.engine.matmul import decode_scales

    scales = np.ascontiguousarray(arrays[f"scale_{name}"]).view(np.float32)
    factors = decode_scales(scales) if RECORD_KINDS[parameters["record"]].divides else scales
    return np.where(arrays[f"choice_{name}"] == WIDEST, np.float32(1), factors)


def _overall(arrays: Arrays, name: str) -> NDArray[np.float32]:
    """Return the scale that the blocks of a row share; blocks of bfloat16 have none."""
    overall = arrays[f"overall_{name}"].view(np.float32)[:, np.newaxis]
    return np.where(arrays[f"choice_{name}"] == WIDEST, np.float32(1), overall)


def _exact_sums(parameters: Parameters, arrays: Arrays, profile: DotProfile) -> NDArray[np.float32]:
    """Return exact sums of numbers times factors."""
    from mor_ref.engine.dot import dot
    from mor_ref.engine.dot_operands import Operand, Range, binary32_of, scales_of

    block = parameters["scale_block"]
    operands = []
    for name in "ab":
        codes = arrays[name]
        choice = np.repeat(arrays[f"choice_{name}"], block, axis=1)[:, : codes.shape[1]]
        words = np.zeros(codes.shape, np.uint32)
        for index, known in enumerate(CHOICES):
            fmt = formats[known]
            taken = binary32_of((codes & (fmt.code_count - 1)).astype(code_dtype(fmt)), fmt)
            words = np.where(choice == index, taken, words)
        scale = _factors(parameters, arrays, name).astype(np.float64) * _overall(arrays, name)
        scales = scales_of(scale, block, 0)
        operands.append(Operand(words, formats["f32"], scales, Range(*_RANGE_OF_SCALES)))
    results = np.zeros(len(arrays["a"]), np.float32)
    dot(operands[0], operands[1], results, profile)
    return results


def _scaled_by_instruction(
    parameters: Parameters, arrays: Arrays, profile: DotProfile
) -> NDArray[np.float32]:
    """Return dot products whose instruction takes the scales."""
    from mor_ref.engine.dot import dot
    from mor_ref.engine.dot_operands import operand_of
    from mor_ref.engine.matmul import multiply_by_scales

    fmt = formats[RECORD_KINDS[parameters["record"]].scale_format]
    operands = []
    for name in "ab":
        element_format = formats[CHOICES[int(arrays[f"choice_{name}"][0, 0])]]
        scales = mor_ref.encode(arrays[f"scale_{name}"].view(np.float32), fmt)
        codes = arrays[name].astype(np.uint8)
        operands.append(
            operand_of(codes, element_format, profile, scales, fmt, parameters["scale_block"])
        )
    results = np.zeros(len(arrays["a"]), np.float32)
    dot(operands[0], operands[1], results, profile)
    overall = [arrays[f"overall_{name}"].view(np.float32) for name in "ab"]
    for n in range(results.size):
        multiply_by_scales(
            results[n : n + 1, np.newaxis], *(factors[n : n + 1] for factors in overall)
        )
    return results


def _in_pieces(parameters: Parameters, arrays: Arrays, profile: DotProfile) -> NDArray[np.float32]:
    """Return sums of pieces, each times its factors."""
    from mor_ref.engine.matmul import add_segment

    results = np.zeros((len(arrays["a"]), 1, 1), np.float32)
    factors = {name: _factors(parameters, arrays, name) * _overall(arrays, name) for name in "ab"}
    for n, k in np.ndindex(arrays["choice_a"].shape):
        taken = [CHOICES[int(arrays[f"choice_{name}"][n, k])] for name in "ab"]
        piece_profile, is_upcast = profile, not set(taken) <= set(profile.formats)
        if is_upcast:
            piece_profile, taken = DOT_PROFILES[profile.wide], ["bf16", "bf16"]
        part = slice(k * parameters["scale_block"], (k + 1) * parameters["scale_block"])
        pieces = []
        for name, fmt_name in zip("ab", taken, strict=True):
            codes = arrays[f"y_{name}" if is_upcast else name][n : n + 1, part]
            factor = np.float32(1) if is_upcast else factors[name][n, k]
            pieces.append(_piece(codes, formats[fmt_name], factor, piece_profile))
        add_segment(pieces[0], pieces[1], results[n], piece_profile, 1)
    return results[:, 0, 0]


def _piece(codes: NDArray[Any], fmt: Format, factor: Any, profile: DotProfile) -> "Piece":
    """Return one row in a piece of K."""
    from mor_ref.engine.dot_operands import operand_of
    from mor_ref.engine.matmul import Piece

    plain = np.ascontiguousarray(codes.astype(code_dtype(fmt)))
    return Piece(operand_of(plain, fmt, profile), np.array([factor], np.float32))


def cuda(call: DeviceCall) -> DeviceArrays:
    """Multiply on a device."""
    from mor_ref.cuda.matrix_products import Blocks, Side, entries

    prefixes = ("", "y_", "choice_", "scale_", "overall_")
    a, b = (Side(*(call.arrays[f"{prefix}{name}"] for prefix in prefixes)) for name in "ab")
    record, known = RECORD_KINDS[call["record"]], [formats[name] for name in CHOICES]
    scale_format = None if record.divides else formats[record.scale_format]
    rules = record.divides, record.has_overall
    blocks = Blocks(known, call["scale_block"], *rules, scale_format)
    return {"result": entries(call.device, a, b, profile_of(call.parameters), blocks)}


MATMUL = Operation(
    "matmul",
    kinds("dot_profile record scale_block:side"),
    (
        given("a u32 nk", "the codes of a row of A"),
        given("b u32 nk", "those of a column of B"),
        given("y_a bf16 nk", "y of each element of A, rounded to bfloat16"),
        given("y_b bf16 nk", "that of each element of B"),
        given("choice_a u8 nb", "the format of each block of A: 0 e4m3, 1 e5m2, 2 e2m1, 3 bf16"),
        given("choice_b u8 nb", "that of each block of B"),
        given("scale_a f32 nb", "the scale of each block of A, as the record has it"),
        given("scale_b f32 nb", "that of each block of B"),
        given("overall_a f32 n", "the global decode scale of the row of A; 1 if it has none"),
        given("overall_b f32 n", "that of the column of B"),
        expected("result f32 n", "the entry", "GEM-001 GEM-003 GEM-004"),
    ),
    model=exact,
    function=engine,
    kernels=cuda,
    admit=admit,
    random=RandomInputs(random_inputs, any_row, "every row is taken"),
)
