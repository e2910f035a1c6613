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
    given = parameters["dot_profile"]
    return given if isinstance(given, DotProfile) else DOT_PROFILES[given]


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
    given = parameters["scale_format"], parameters["scale_block"]
    if profile.family != "exact" and given not in profile.scales:
        raise ValueError(
            f"{profile.name} has no scales in {given[0]} for blocks of {given[1]}; it has "
            f"{' or '.join(f'{fmt} for {size}' for fmt, size in profile.scales) or 'none'}"
        )


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Add up with the exact model, row by row."""
    from mor_ref.exact.dot import Scales, dot_chunks

    profile, of = profile_of(parameters), formats_of(parameters)
    c = numbers_of(arrays["c"], "f32")
    found = []
    for k, (a, b) in enumerate(zip(arrays["a"].tolist(), arrays["b"].tolist(), strict=True)):
        own = None
        if "scale_a" in arrays:
            both = arrays["scale_a"][k].tolist(), arrays["scale_b"][k].tolist()
            fmt = formats[parameters["scale_format"]]
            own = Scales(*both, fmt, parameters["scale_block"])
        found.append(dot_chunks(a, b, c[k], profile, of, own)[-1])
    return _fields(found)


def _fields(found: "list[Chunk]") -> Arrays:
    return {
        "exponent": np.array([(one.exponent or 0) % _U32 for one in found], np.uint32),
        "cut_sum": np.array([(one.cut_sum or 0) % _U64 for one in found], np.uint64),
        "result": f32_array(one.c for one in found),
    }


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Add up with the engine."""
    from mor_ref import dot_chunks

    given: dict[str, Any] = {}
    if "scale_a" in arrays:
        both = arrays["scale_a"], arrays["scale_b"]
        given = {
            "scales": both,
            "scale_format": parameters["scale_format"],
            "block": parameters["scale_block"],
        }
    of = parameters["format_a"], parameters["format_b"]
    found = dot_chunks(
        arrays["a"], arrays["b"], arrays["c"].view(np.float32),
        formats=of, profile=parameters["dot_profile"], **given,
    )  # fmt: skip
    zeros = np.zeros(len(arrays["c"]), np.int64)
    exponent = zeros if found.exponent is None else found.exponent[:, -1]
    cut_sum = zeros if found.cut_sum is None else found.cut_sum[:, -1]
    return {
        "exponent": exponent.astype(np.int32).view(np.uint32),
        "cut_sum": np.ascontiguousarray(cut_sum).view(np.uint64),
        "result": bits32(found.c[:, -1]),
    }


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Add up on a device."""
    from mor_ref.cuda.dot_products import Scales, dot

    own = None
    if "scale_a" in arrays:
        fmt, block = formats[parameters["scale_format"]], parameters["scale_block"]
        own = Scales(arrays["scale_a"], arrays["scale_b"], fmt, block)
    profile, of = profile_of(parameters), formats_of(parameters)
    a, b, c = (arrays[name] for name in "abc")
    found = dot(device, a, b, c, profile, of, own, keeps=True)
    last = {"exponent": found.exponent[:, -1], "cut_sum": found.cut_sum[:, -1]}
    return {**last, "result": found.result}


def random_inputs(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw rows, and c near their sums."""
    profile, of = profile_of(parameters), formats_of(parameters)
    a, b = rows(draws, 0, profile, of)
    return {"a": a, "b": b, "c": addends(draws, 6, profile, terms_of(a, b, of))}


def random_scaled(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw rows, scales for their blocks, and c near the sums."""
    profile, of = profile_of(parameters), formats_of(parameters)
    fmt, block = formats[parameters["scale_format"]], parameters["scale_block"]
    a, b = rows(draws, 0, profile, of)
    chosen, blocks = draws.words(12), -(-draws.width // block)
    two = [scales(draws, stream, fmt, blocks, chosen) for stream in (8, 10)]
    with np.errstate(all="ignore"):
        factors = np.repeat(values_of(two[0], fmt) * values_of(two[1], fmt), block, axis=1)
    terms = terms_of(a, b, of, factors[:, : draws.width])
    c = addends(draws, 6, profile, terms)
    return {"a": a, "b": b, "c": c, "scale_a": two[0], "scale_b": two[1]}


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
