"""dot: rows of codes, their products added to c; dot_scaled has scales for their blocks, too.

Results are those of the last chunk. Families that do not cut have the exponent and the cut sum 0.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from mor_ref.definitions.dot import DOT_PROFILES, DotProfile
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.operations.bits import bits32, f32_array, numbers_of
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import (
    Arrays,
    DeviceArrays,
    Operation,
    Parameters,
    RandomInputs,
)
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_dots import addends, rows, scales, terms_of, values_of
from mor_ref.operations.random_numbers import Draws, any_row

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Device
    from mor_ref.exact.dot_terms import Chunk

_U32 = 1 << 32
_U64 = 1 << 64


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


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Add up with the exact model, row by row."""
    from mor_ref.exact.dot import Scales, dot_chunks

    profile, fmts = profile_of(parameters), formats_of(parameters)
    c = numbers_of(arrays["c"], "f32")
    chunks = []
    for k, (a, b) in enumerate(zip(arrays["a"].tolist(), arrays["b"].tolist(), strict=True)):
        row_scales = None
        if "scale_a" in arrays:
            scale_codes = arrays["scale_a"][k].tolist(), arrays["scale_b"][k].tolist()
            fmt = formats[parameters["scale_format"]]
            row_scales = Scales(*scale_codes, fmt, parameters["scale_block"])
        chunks.append(dot_chunks(a, b, c[k], profile, fmts, row_scales)[-1])
    return _fields(chunks)


def _fields(chunks: "list[Chunk]") -> Arrays:
    return {
        "exponent": np.array([(chunk.exponent or 0) % _U32 for chunk in chunks], np.uint32),
        "cut_sum": np.array([(chunk.cut_sum or 0) % _U64 for chunk in chunks], np.uint64),
        "result": f32_array(chunk.c for chunk in chunks),
    }


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Add up with the engine."""
    from mor_ref import dot_chunks

    scale_arguments: dict[str, Any] = {}
    if "scale_a" in arrays:
        scale_codes = arrays["scale_a"], arrays["scale_b"]
        scale_arguments = {
            "scales": scale_codes,
            "scale_format": parameters["scale_format"],
            "block": parameters["scale_block"],
        }
    fmts = parameters["format_a"], parameters["format_b"]
    chunks = dot_chunks(
        arrays["a"], arrays["b"], arrays["c"].view(np.float32),
        formats=fmts, profile=parameters["dot_profile"], **scale_arguments,
    )  # fmt: skip
    zeros = np.zeros(len(arrays["c"]), np.int64)
    exponent = zeros if chunks.exponent is None else chunks.exponent[:, -1]
    cut_sum = zeros if chunks.cut_sum is None else chunks.cut_sum[:, -1]
    return {
        "exponent": exponent.astype(np.int32).view(np.uint32),
        "cut_sum": np.ascontiguousarray(cut_sum).view(np.uint64),
        "result": bits32(chunks.c[:, -1]),
    }


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Add up on a device."""
    from mor_ref.cuda.dot_products import Scales, dot

    scale_arrays = None
    if "scale_a" in arrays:
        fmt, block = formats[parameters["scale_format"]], parameters["scale_block"]
        scale_arrays = Scales(arrays["scale_a"], arrays["scale_b"], fmt, block)
    profile, fmts = profile_of(parameters), formats_of(parameters)
    a, b, c = (arrays[name] for name in "abc")
    sums = dot(device, a, b, c, profile, fmts, scale_arrays, keeps=True)
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


_TAKES = "every code is taken"
_INPUTS = "nk a format_a; nk b format_b; n c f32"
_OUTPUTS = fields("n exponent u32; n cut_sum u64; n result f32")
DOT = Operation(
    "dot",
    kinds("dot_profile format_a:format format_b:format"),
    inputs=fields(_INPUTS),
    outputs=_OUTPUTS,
    exact=exact,
    engine=engine,
    cuda=cuda,
    admit=admit,
    random=RandomInputs(random_inputs, any_row, _TAKES, answers=("result",)),
)
DOT_SCALED = Operation(
    "dot_scaled",
    kinds("dot_profile format_a:format format_b:format scale_format:format scale_block:side"),
    inputs=fields(f"{_INPUTS}; nb scale_a,scale_b scale_format"),
    outputs=_OUTPUTS,
    exact=exact,
    engine=engine,
    cuda=cuda,
    admit=admit,
    random=RandomInputs(random_scaled, any_row, _TAKES, answers=("result",)),
)
