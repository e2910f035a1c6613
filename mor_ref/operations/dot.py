"""dot, dot_scaled and dot_integers: rows of codes, and their products added to c.

`dot_scaled` has scales for the blocks of codes. `dot_integers` has rows of int8, whose products are
added up as int32, with the epilogue of SwitchBack. Results are those of the last chunk. Families
that do not cut have the exponent and the cut sum 0.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

import mor_ref
from mor_ref.definitions.dot import DOT_PROFILES, INT8, DotProfile
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.exact.dot import Scales, dot_chunks
from mor_ref.operations.bits import bits32
from mor_ref.operations.call import Arrays, Call, DeviceArrays, DeviceCall, Parameters, Results
from mor_ref.operations.fields import expected, given
from mor_ref.operations.operation import Operation, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_dots import addends, rows, scales, terms_of, values_of
from mor_ref.operations.random_numbers import Draws, Words, any_row, bits_at, share

if TYPE_CHECKING:
    from mor_ref.cuda.dot_products import Scales as DeviceScales

_U32 = 1 << 32
_U64 = 1 << 64
_U = np.uint64
_ENDS = np.array([0x7F, 0x80, 0x81], _U)  # of int8
# Exponents of binary32, of scales near 1, and of those whose products underflow or overflow.
_FIELDS = (120, 16), (1, 70), (184, 70)
_INTEGERS, _SWITCHBACK = DOT_PROFILES["int32"], DOT_PROFILES["switchback"]


def profile_of(parameters: Parameters) -> DotProfile:
    """Return the profile of a case; a diagnosis tries rows that no catalogue has."""
    profile = parameters["dot_profile"]
    return profile if isinstance(profile, DotProfile) else DOT_PROFILES[profile]


def formats_of(parameters: Parameters) -> tuple[Format, Format]:
    """Return the formats of both operands."""
    return formats[parameters["format_a"]], formats[parameters["format_b"]]


def admit(parameters: Parameters) -> None:
    """Refuse formats and scales that a profile does not have."""
    profile = profile_of(parameters)
    for name in ("format_a", "format_b"):
        if profile.formats and parameters[name] not in profile.formats:
            raise ValueError(
                f"{name} is {parameters[name]!r}, which {profile.name} does not take; give "
                f"{' or '.join(profile.formats)}"
            )
    if "scale_block" not in parameters:
        if profile.needs_scales:
            raise ValueError(f"{profile.name} needs scales, which dot_scaled has")
        return
    scale_kind = parameters["scale_format"], parameters["scale_block"]
    if profile.family != "exact" and scale_kind not in profile.scales:
        raise ValueError(
            f"{profile.name} has no scales in {scale_kind[0]} for blocks of {scale_kind[1]}; "
            f"it has {' or '.join(f'{fmt} for {size}' for fmt, size in profile.scales) or 'none'}"
        )


def exact(call: Call) -> Results:
    """Add up with the exact model, row by row."""
    profile, fmts = profile_of(call.parameters), formats_of(call.parameters)
    chunks = []
    for a, b, c, *scale_codes in call.together(*call.inputs):
        row_scales = None
        if scale_codes:
            fmt, block = formats[call["scale_format"]], call["scale_block"]
            row_scales = Scales(scale_codes[0], scale_codes[1], fmt, block)
        chunks.append(dot_chunks(a, b, c, profile, fmts, row_scales)[-1])
    return {
        "exponent": [chunk.exponent or 0 for chunk in chunks],
        "cut_sum": np.array([(chunk.cut_sum or 0) % _U64 for chunk in chunks], _U),
        "result": [chunk.c for chunk in chunks],
    }


def engine(call: Call) -> Results:
    """Add up with the engine."""
    a, b, *scale_codes = (call.arrays[name] for name in call.inputs if name != "c")
    scale_arguments: dict[str, Any] = {}
    if scale_codes:
        scale_arguments = {
            "scales": scale_codes,
            "scale_format": call["scale_format"],
            "block": call["scale_block"],
        }
    fmts, profile = (call["format_a"], call["format_b"]), call["dot_profile"]
    chunks = mor_ref.dot_chunks(
        a, b, call.tensor("c"), formats=fmts, profile=profile, **scale_arguments
    )
    return {
        "exponent": 0 if chunks.exponent is None else chunks.exponent[:, -1],
        "cut_sum": 0 if chunks.cut_sum is None else chunks.cut_sum[:, -1],
        "result": bits32(chunks.c[:, -1]),
    }


def cuda(call: DeviceCall) -> DeviceArrays:
    """Add up on a device."""
    from mor_ref.cuda.dot_products import Scales, dot

    a, b, c, *scale_codes = (call.arrays[name] for name in call.inputs)
    scale_arrays: DeviceScales | None = None
    if scale_codes:
        fmt, block = formats[call["scale_format"]], call["scale_block"]
        scale_arrays = Scales(scale_codes[0], scale_codes[1], fmt, block)
    profile, fmts = profile_of(call.parameters), formats_of(call.parameters)
    sums = dot(call.device, a, b, c, profile, fmts, scale_arrays, keeps=True)
    last = {"exponent": sums.exponent[:, -1], "cut_sum": sums.cut_sum[:, -1]}
    return {**last, "result": sums.result}


def random_inputs(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw rows, and c near their sums."""
    profile, fmts = profile_of(parameters), formats_of(parameters)
    a, b = rows(draws, 0, profile, fmts)
    return {"a": a, "b": b, "c": addends(draws, 6, profile, terms_of(a, b, fmts))}


def random_scaled(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw rows, scales for their blocks, and c near the sums."""
    profile, fmts = profile_of(parameters), formats_of(parameters)
    fmt, block = formats[parameters["scale_format"]], parameters["scale_block"]
    a, b = rows(draws, 0, profile, fmts)
    chosen, blocks = draws.words(12), -(-draws.width // block)
    scale_codes = [scales(draws, stream, fmt, blocks, chosen) for stream in (8, 10)]
    with np.errstate(all="ignore"):
        factors = np.repeat(
            values_of(scale_codes[0], fmt) * values_of(scale_codes[1], fmt), block, axis=1
        )
    terms = terms_of(a, b, fmts, factors[:, : draws.width])
    c = addends(draws, 6, profile, terms)
    return {"a": a, "b": b, "c": c, "scale_a": scale_codes[0], "scale_b": scale_codes[1]}


def exact_integers(call: Call) -> Results:
    """Add up with the exact model, row by row."""
    fmts = INT8, INT8
    plain, scaled = [], []
    rows = (call.arrays[name].tolist() for name in ("a", "b", "scale_a", "scale_b"))
    for a, b, x, w in zip(*rows, strict=True):
        row_scales = Scales([x], [w], formats["f32"], len(a))
        plain += dot_chunks(a, b, 0.0, _INTEGERS, fmts)
        scaled += dot_chunks(a, b, 0.0, _SWITCHBACK, fmts, row_scales)
    return {
        "int32_sum": np.array([(chunk.cut_sum or 0) % _U32 for chunk in plain], np.uint32),
        "number": [chunk.c for chunk in plain],
        "result": [chunk.c for chunk in scaled],
    }


def engine_integers(call: Call) -> Results:
    """Add up with the engine."""
    a, b, x, w = (call.arrays[name] for name in ("a", "b", "scale_a", "scale_b"))
    names, scales = (INT8.name, INT8.name), (x[:, np.newaxis], w[:, np.newaxis])
    plain = mor_ref.dot_chunks(a, b, formats=names, profile=_INTEGERS)
    scaled = mor_ref.dot(a, b, formats=names, scales=scales, profile=_SWITCHBACK)
    return {
        "int32_sum": 0 if plain.cut_sum is None else plain.cut_sum[:, 0],
        "number": bits32(plain.c[:, 0]),
        "result": bits32(scaled),
    }


def cuda_integers(call: DeviceCall) -> DeviceArrays:
    """Add up on a device."""
    from mor_ref.cuda.dot_products import Scales, dot

    device, fmts, (rows, columns) = call.device, (INT8, INT8), call.shape
    a, b, x, w = (call.arrays[name] for name in ("a", "b", "scale_a", "scale_b"))
    zeros = device.filled((rows,), np.uint32, 0)
    plain = dot(device, a, b, zeros, _INTEGERS, fmts, keeps=True)
    factors = Scales(x.reshape(rows, 1), w.reshape(rows, 1), formats["f32"], columns)
    scaled = dot(device, a, b, zeros, _SWITCHBACK, fmts, factors)
    low = plain.cut_sum[:, 0].astype(np.uint32)
    return {"int32_sum": low, "number": plain.result, "result": scaled.result}


def random_integers(_: Parameters, draws: Draws) -> Arrays:
    """Draw rows of any integers or of those at both ends, some with large sums, and scales."""
    per_number, shape, choices = draws.per_number(), (draws.count, draws.width), draws.words(0)
    kind = bits_at(choices, 0, 2)[:, np.newaxis]
    drawn: dict[str, Words] = {}
    for stream, name in enumerate("ab", 1):
        words = per_number.words(stream).reshape(shape)
        ends = _ENDS[share(bits_at(words, 8, 16), 16, _ENDS.size)]
        is_end = (kind == 0) | (kind == 1) & (bits_at(words, 24, 2) != 0)
        drawn[name] = np.where(is_end, ends, words & _U(0xFF))
        drawn[f"scale_{name}"] = _drawn_scales(draws.words(stream + 2), choices)
    sign = np.where(bits_at(choices, 2, 1) == 0, _U(1), _U(0xFF))[:, np.newaxis]
    drawn["b"] = np.where(kind == 0, drawn["a"] * sign & _U(0xFF), drawn["b"])
    return drawn


def _drawn_scales(words: Words, choices: Words) -> Words:
    """Return numbers near 1, two whose product is at an end of binary32, or any bits."""
    kind = share(bits_at(choices, 16, 16), 16, 8)
    spans = [share(bits_at(words, 32, 16), 16, size) + _U(low) for low, size in _FIELDS]
    field = np.select([kind < 5, kind == 5], spans[:2], spans[2])
    near = field << _U(23) | words & _U(0x7FFFFF)
    scales: Words = np.where(kind == 7, words & _U(0xFFFFFFFF), near)
    return scales


_TAKES = "every code is taken"
_OPERANDS = (
    given("a format_a nk", "the codes of the first operand, a dot product in a row"),
    given("b format_b nk", "the codes of the second operand"),
    given("c f32 n", "the number that the products are added to"),
)
DOT = Operation(
    "dot",
    kinds("dot_profile format_a:format format_b:format"),
    (
        *_OPERANDS,
        expected(
            "exponent u32 n", "the largest exponent of the last chunk", "DOT-004", signed=True
        ),
        expected(
            "cut_sum u64 n",
            "the sum of the cut terms of the last chunk",
            "DOT-007 DOT-017 DOT-018",
            signed=True,
        ),
        expected(
            "result f32 n",
            "c after the last chunk",
            " ".join(f"DOT-{k:03}" for k in (1, 8, *range(10, 19))),
        ),
    ),
    model=exact,
    function=engine,
    kernels=cuda,
    admit=admit,
    random=RandomInputs(random_inputs, any_row, _TAKES, answers=("result",)),
)
DOT_SCALED = Operation(
    "dot_scaled",
    kinds("dot_profile format_a:format format_b:format scale_format:format scale_block:side"),
    (
        *_OPERANDS,
        given("scale_a scale_format nb", "the codes of the scales of the blocks of a"),
        given("scale_b scale_format nb", "the codes of the scales of the blocks of b"),
        expected(
            "exponent u32 n",
            "the largest exponent of the last chunk, 0 in exact and promoted",
            "DOT-004",
            signed=True,
        ),
        expected(
            "cut_sum u64 n",
            "the sum of the cut terms of the last chunk",
            "DOT-007 DOT-009",
            signed=True,
        ),
        expected("result f32 n", "c after the last chunk", "DOT-001 DOT-008 DOT-011 DOT-012"),
    ),
    model=exact,
    function=engine,
    kernels=cuda,
    admit=admit,
    random=RandomInputs(random_scaled, any_row, _TAKES, answers=("result",)),
)
DOT_INTEGERS = Operation(
    "dot_integers",
    kinds(""),
    (
        given("a u8 nk", "the integers of the first operand", signed=True),
        given("b u8 nk", "those of the second one"),
        given("scale_a f32 n", "x: the scale of a row of a"),
        given("scale_b f32 n", "w: that of a row of b"),
        expected("int32_sum u32 n", "the sum modulo 2^32", "DOT-019", signed=True),
        expected("number f32 n", "the sum in binary32", "DOT-019"),
        expected("result f32 n", "the number times 1 / 127^2 and both scales", "DOT-020"),
    ),
    model=exact_integers,
    function=engine_integers,
    kernels=cuda_integers,
    random=RandomInputs(
        random_integers, any_row, "every code is taken", answers=("int32_sum", "result")
    ),
)
