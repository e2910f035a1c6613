"""The engine as a candidate: each operation of the suites, by the package's own functions."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import mor_ref
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.formats import as_format, formats
from mor_ref.golden.model.bits import Unsigned
from mor_ref.golden.model.suite import Arrays, Parameters, as_cut

Found = dict[str, Unsigned]
Operation = Callable[[Parameters, Arrays], Found]

_DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def tensor_of(parameters: Parameters, arrays: Arrays) -> NDArray[Any]:
    """The input as the numbers that its bits are."""
    return arrays["x"].view(_DTYPES[parameters["source"]])


def bits32(numbers: NDArray[Any]) -> NDArray[np.uint32]:
    """The bits of float32 numbers; every NaN is the canonical one."""
    bits = np.ascontiguousarray(numbers, np.float32).view(np.uint32).copy()
    bits[np.isnan(numbers)] = 0x7FFFFFFF
    return bits


def encode(parameters: Parameters, arrays: Arrays) -> Found:
    """Numbers to codes."""
    given = {name: parameters[name] for name in ("rounding", "overflow", "nan")}
    x = tensor_of(parameters, arrays)
    return {"code": mor_ref.encode(x, parameters["format"], **given)}


def encode_preset(parameters: Parameters, arrays: Arrays) -> Found:
    """Numbers to codes as another library has them."""
    x = tensor_of(parameters, arrays)
    return {"code": mor_ref.encode(x, parameters["format"], preset=parameters["preset"])}


def encode_stochastic(parameters: Parameters, arrays: Arrays) -> Found:
    """Numbers to codes, with random bits."""
    code = mor_ref.encode(
        tensor_of(parameters, arrays),
        parameters["format"],
        rounding="sr",
        overflow=parameters["overflow"],
        random_bits=arrays["random_word"],
        n_random_bits=parameters["n_random_bits"],
    )
    return {"code": code}


def decode(parameters: Parameters, arrays: Arrays) -> Found:
    """Codes to numbers."""
    return {"value": mor_ref.decode(arrays["code"], parameters["format"]).view(np.uint32)}


def scale(parameters: Parameters, arrays: Arrays) -> Found:
    """The scale of a block: each pair as a group of two blocks of one element."""
    pair = np.stack([arrays["group_amax"], arrays["block_amax"]], axis=1).view(np.float32)
    is_gam = parameters["scaling"] == "gam"
    found = mor_ref.quantize(
        pair,
        parameters["format"],
        scaling=parameters["scaling"],
        block=(1, 1),
        group="row" if is_gam else "tensor",
    )
    nothing = np.zeros(len(pair), np.uint32)
    exponent, mantissa = found.scale_exponent, found.scale_mantissa
    return {
        "scale": bits32(found.scale[:, 1]),
        "exponent": nothing.astype(np.uint8) if exponent is None else exponent[:, 1],
        "mantissa": nothing if mantissa is None else mantissa[:, 0],
    }


def quantize_element(parameters: Parameters, arrays: Arrays) -> Found:
    """One number and its scale."""
    from mor_ref.engine.nearest import grid_of
    from mor_ref.engine.steps import quantize_elements

    fmt = as_format(parameters["format"])
    xs, code = np.empty_like(arrays["x"]), np.empty(arrays["x"].size, np.uint8)
    quantize_elements(arrays["x"], arrays["scale"], grid_of(fmt), xs, code)
    with np.errstate(all="ignore"):
        y = mor_ref.decode(code, fmt) / arrays["scale"].view(np.float32)
    return {"xs": xs, "code": code, "y": bits32(y)}


def error_term(_: Parameters, arrays: Arrays) -> Found:
    """The error of one number."""
    from mor_ref.engine.steps import errors_of_elements

    d, r, u = (np.empty_like(arrays["x"]) for _ in range(3))
    errors_of_elements(arrays["x"], arrays["y"], d, r, u)
    return {"d": d, "r": r, "u": u}


def decide(parameters: Parameters, arrays: Arrays) -> Found:
    """Acceptance from sums."""
    from mor_ref.engine.policies import fits_range, is_below, is_not_worse
    from mor_ref.engine.scales import Extremes

    own = np.stack([arrays[name] for name in ("sum", "nonzero", "nonfinite")], axis=-1)
    if parameters["metric"] == "not_worse_than":
        yardstick = np.stack([arrays["yardstick_sum"]] * 3, axis=-1)
        accepted = is_not_worse(own, yardstick)
    elif parameters["metric"] == "fits_range":
        extremes = Extremes(arrays["amax"], arrays["amin"])
        accepted = fits_range(own, extremes, formats[parameters["format"]])
    else:
        accepted = is_below(own, arrays["limit"].astype(np.uint64))
    return {"accepted": (accepted & (arrays["nonfinite"] == 0)).astype(np.uint8)}


def quantize(parameters: Parameters, arrays: Arrays) -> Found:
    """A tensor with scales."""
    x = tensor_of(parameters, arrays)
    block, group = as_cut(parameters["block"]), as_cut(parameters["group"])
    found = mor_ref.quantize(
        x, parameters["format"], scaling=parameters["scaling"], block=block, group=group
    )
    cut = partition(x.shape, block, group)
    exponent, mantissa = found.scale_exponent, found.scale_mantissa
    return {
        "code": found.codes,
        "y": bits32(found.dequantize()),
        "amax": bits32(found.amax),
        "scale": bits32(found.scale),
        "exponent": np.zeros(cut.grid, np.uint8) if exponent is None else exponent,
        "mantissa": np.zeros(cut.group_grid, np.uint32) if mantissa is None else mantissa,
        "sum": found.error.sum,
        "nonzero": found.error.nonzero,
        "nonfinite": found.error.nonfinite,
    }


def mor(parameters: Parameters, arrays: Arrays) -> Found:
    """A tensor under a policy."""
    found = mor_ref.mor(
        tensor_of(parameters, arrays),
        parameters["policy"],
        block=as_cut(parameters["block"]),
        scaling=parameters["scaling"],
    )
    sums = {
        f"{name}.{field}": getattr(error, field)
        for name, error in found.error.items()
        for field in ("sum", "nonzero", "nonfinite")
    }
    return {
        "choice": found.choice,
        "output": found.output,
        "amax": bits32(found.amax),
        "amin": bits32(found.amin),
        **sums,
    }


def nvfp4(parameters: Parameters, arrays: Arrays) -> Found:
    """A tensor in NVFP4."""
    rows, columns = parameters["tile"]
    found = mor_ref.quantize_nvfp4(
        tensor_of(parameters, arrays), profile=parameters["profile"], tile=(rows, columns)
    )
    return {
        "code": found.codes,
        "packed": found.packed,
        "block_scale": found.block_scale,
        "global_encode_scale": bits32(np.atleast_1d(found.global_encode_scale)),
        "global_decode_scale": bits32(np.atleast_1d(found.global_decode_scale)),
        "y": bits32(found.dequantize()),
    }


def mx(parameters: Parameters, arrays: Arrays) -> Found:
    """A tensor in an MX format."""
    found = mor_ref.quantize_mx(
        tensor_of(parameters, arrays),
        parameters["format"],
        scale_rule=parameters["scale_rule"],
        block=parameters["block"],
    )
    return {"code": found.codes, "scale": found.scale, "y": bits32(found.dequantize())}


def quantize_block(parameters: Parameters, arrays: Arrays) -> Found:
    """Blocks, each beside one that holds the amax of their group alone."""
    x = arrays["x"]
    is_gam = parameters["scaling"] == "gam"
    beside = np.zeros_like(x)
    beside[:, 0] = arrays["group_amax"]
    found = mor_ref.quantize(
        np.concatenate([beside, x], axis=1).view(np.float32),
        parameters["format"],
        scaling=parameters["scaling"],
        block=(1, x.shape[1]),
        group="row" if is_gam else "tensor",
    )
    nothing = np.zeros(len(x), np.uint32)
    exponent, mantissa = found.scale_exponent, found.scale_mantissa
    return {
        "amax": bits32(found.amax[:, 1]),
        "mantissa": nothing if mantissa is None else mantissa[:, 0],
        "exponent": nothing.astype(np.uint8) if exponent is None else exponent[:, 1],
        "scale": bits32(found.scale[:, 1]),
        "code": found.codes[:, x.shape[1] :],
        "y": bits32(found.dequantize()[:, x.shape[1] :]),
        "sum": found.error.sum[:, 1],
        "nonzero": found.error.nonzero[:, 1],
        "nonfinite": found.error.nonfinite[:, 1],
    }


def nvfp4_block(parameters: Parameters, arrays: Arrays) -> Found:
    """Tiles, each in a tensor of its own beside one that holds the amax of the tensor alone."""
    x, amax = arrays["x"], arrays["amax"]
    beside = np.zeros_like(x)
    beside[:, 0] = amax
    tensors = np.concatenate([beside, x], axis=1).view(np.float32)
    found = [mor_ref.quantize_nvfp4(row, profile=parameters["profile"]) for row in tensors]
    ends = [
        [np.ravel(one.global_encode_scale)[0], np.ravel(one.global_decode_scale)[0]]
        for one in found
    ]
    scales = bits32(np.array(ends, np.float32))
    return {
        "global_encode_scale": scales[:, 0],
        "global_decode_scale": scales[:, 1],
        "block_scale": np.array([one.block_scale[0, 1] for one in found]),
        "code": np.stack([one.codes[x.shape[1] :] for one in found]),
        "y": bits32(np.stack([one.dequantize()[x.shape[1] :] for one in found])),
    }


def mx_block(parameters: Parameters, arrays: Arrays) -> Found:
    """Blocks, each a row."""
    x = arrays["x"].view(np.float32)
    found = mor_ref.quantize_mx(
        x, parameters["format"], scale_rule=parameters["scale_rule"], block=x.shape[1]
    )
    return {"scale": found.scale[:, 0], "code": found.codes, "y": bits32(found.dequantize())}


OPERATIONS: dict[str, Operation] = {
    operation.__name__: operation
    for operation in (
        encode,
        encode_preset,
        encode_stochastic,
        decode,
        scale,
        quantize_element,
        error_term,
        decide,
        quantize,
        mor,
        nvfp4,
        mx,
        quantize_block,
        nvfp4_block,
        mx_block,
    )
}
