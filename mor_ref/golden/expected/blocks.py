"""Single blocks with all that lies between the numbers and their codes; a row of x is a block."""

from typing import NamedTuple

import numpy as np

from mor_ref.definitions.formats import as_format
from mor_ref.definitions.nvfp4 import PROFILES, Nvfp4Profile
from mor_ref.exact import mx, nvfp4, quantization
from mor_ref.exact.blocks import Rows
from mor_ref.exact.errors import error_sum
from mor_ref.exact.nvfp4 import TileScale
from mor_ref.exact.scales import amax, group_mantissa, scale_of_block
from mor_ref.golden.expected.operation import Operation
from mor_ref.golden.expected.tensors import E2M1, element_fields, error_fields, sums
from mor_ref.golden.model.bits import Unsigned, codes_array, f32_array, numbers_of
from mor_ref.golden.model.suite import Arrays, Parameters


def _blocks_of(arrays: Arrays) -> Rows:
    """The numbers of each block, which no other layout of a tensor has a say in."""
    return [numbers_of(row, "f32") for row in arrays["x"]]


def quantize_block(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Blocks of groups whose amax is given."""
    fmt, kind, shape = as_format(parameters["format"]), parameters["scaling"], arrays["x"].shape
    x = _blocks_of(arrays)
    groups = numbers_of(arrays["group_amax"], "f32")
    amaxes = [amax(row) for row in x]
    shared = [group_mantissa(fmt.largest, group) if kind == "gam" else 0 for group in groups]
    scales = [
        scale_of_block(kind, fmt.largest, own, m) for own, m in zip(amaxes, shared, strict=True)
    ]
    elements = [
        [quantization.quantize_element(number, scale.value, fmt) for number in row]
        for row, scale in zip(x, scales, strict=True)
    ]
    errors = [
        error_sum((number, e.y) for number, e in zip(row, found, strict=True))
        for row, found in zip(x, elements, strict=True)
    ]
    return {
        "amax": f32_array(amaxes),
        "mantissa": np.array(shared, np.uint32),
        "exponent": np.array([scale.exponent_code or 0 for scale in scales], np.uint8),
        "scale": f32_array(scale.value for scale in scales),
        **element_fields(elements, fmt, shape),
        **error_fields(x, elements, shape),
        **sums(errors, shape[:1]),
    }


def nvfp4_block(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Tiles of sixteen numbers, of tensors whose amax is given."""
    profile = PROFILES[parameters["profile"]]
    x, amaxes = _blocks_of(arrays), numbers_of(arrays["amax"], "f32")
    ends = [nvfp4.global_scale(profile, whole) for whole in amaxes]
    scales = [
        nvfp4.tile_scale(profile, [row], whole, end)
        for row, whole, end in zip(x, amaxes, ends, strict=True)
    ]
    elements = [
        [nvfp4.quantize_element(number, scale, profile) for number in row]
        for row, scale in zip(x, scales, strict=True)
    ]
    encode = [scale.encode for scale in scales if scale.encode is not None]
    return {
        "block_amax": f32_array(nvfp4.amax_of(row) for row in x),
        "global_encode_scale": f32_array(end.encode for end in ends),
        "global_decode_scale": f32_array(end.decode for end in ends),
        **(_candidates(profile, x, amaxes, ends) if profile.rule.startswith("4over6") else {}),
        "block_scale": np.array([scale.code for scale in scales], np.uint8),
        **({} if profile.divides else {"encode_scale": f32_array(encode)}),
        "decode_scale": f32_array(scale.decode for scale in scales),
        **element_fields(elements, E2M1, arrays["x"].shape),
    }


class _Tried(NamedTuple):
    scale: TileScale
    codes: list[int]
    error: float


def _candidates(
    profile: Nvfp4Profile,
    x: list[list[float]],
    amaxes: list[float],
    ends: list[nvfp4.GlobalScale],
) -> dict[str, Unsigned]:
    """Both candidates of each tile under 4over6, their codes and their errors (NVF-006)."""
    tried = []
    for row, whole, end in zip(x, amaxes, ends, strict=True):
        scales = nvfp4.four_over_six_candidates(nvfp4.amax_of(row), end)
        tried.append([_tried(profile, row, scale, whole) for scale in scales])
    fields: dict[str, Unsigned] = {}
    for name, side in zip(("six", "four"), zip(*tried, strict=True), strict=True):
        codes = codes_array([code for one in side for code in one.codes], E2M1)
        fields |= {
            f"{name}.block_scale": np.array([one.scale.code for one in side], np.uint8),
            f"{name}.code": codes.reshape(len(x), -1),
            f"{name}.error": f32_array(one.error for one in side),
        }
    return fields


def _tried(profile: Nvfp4Profile, row: list[float], scale: TileScale, whole: float) -> _Tried:
    codes = [nvfp4.quantize_element(number, scale, profile).code for number in row]
    return _Tried(scale, codes, nvfp4.candidate_error(profile, [row], scale, whole))


def mx_block(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Blocks that share a power of two."""
    fmt = as_format(parameters["format"])
    x = _blocks_of(arrays)
    rule = parameters["scale_rule"]
    codes = [mx.scale_code(row, fmt, rule) for row in x]
    elements = [
        [mx.quantize_element(number, code, fmt, rule) for number in row]
        for row, code in zip(x, codes, strict=True)
    ]
    return {
        "scale": np.array(codes, np.uint8),
        **element_fields(elements, fmt, arrays["x"].shape),
    }


OPERATIONS = tuple(
    Operation(function, by_row=True) for function in (quantize_block, nvfp4_block, mx_block)
)
