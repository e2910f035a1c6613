"""compressed-tensors: the scales and values of MXFP4 and MXFP6 under even, and NVFP4."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.operations.call import Arrays, Parameters
from mor_ref.verify.candidates.candidate import Answer
from mor_ref.verify.candidates.peers.peer import (
    Peer,
    as_torch,
    bytes_of,
    cut,
    f32_bits,
    global_scale_in,
    padded,
    unpacked,
)

_PRESETS = {"e2m1": "MXFP4A16", "e2m3": "MXFP6A16"}


def mx(parameters: Parameters, inputs: Arrays) -> Answer | None:
    """Return the scales, and the values of the library's fake quantization."""
    import torch
    from compressed_tensors.compressors import mx_utils
    from compressed_tensors.quantization.lifecycle import forward

    fmt, rule, block = (parameters[name] for name in ("format", "scale_rule", "block"))
    if fmt not in _PRESETS or (rule, block) != ("even", 32):
        return None
    x = as_torch(padded(parameters, inputs, 32).astype(np.float32))
    scheme, scale = with_scale(x, _PRESETS[fmt], 32)
    y = forward.fake_quantize(x, scale, None, scheme.weights)
    stored = mx_utils.compress_mx_scale(scale, torch.uint8)
    return {"scale": stored.numpy(), "y": f32_bits(cut(y.numpy(), inputs))}


def nvfp4(parameters: Parameters, inputs: Arrays) -> Answer | None:
    """Quantize in float32: of bfloat16, the library rounds its statistics to bfloat16."""
    if parameters["profile"] != "compressed_tensors" or parameters["tile"] != [1, 16]:
        return None
    x = as_torch(padded(parameters, inputs, 16).astype(np.float32))
    found = packed(x, global_scale_in(parameters))
    return {**found, "code": cut(found["code"], inputs), "y": cut(found["y"], inputs)}


def packed(x: Any, g: Any = None) -> dict[str, NDArray[Any]]:
    """Return the fields of a tensor of whole tiles in NVFP4; g may be given."""
    from compressed_tensors.compressors import NVFP4PackedCompressor
    from compressed_tensors.quantization import utils
    from compressed_tensors.quantization.lifecycle import forward

    g = utils.generate_gparam(*x.aminmax()) if g is None else g
    scheme, scale = with_scale(x, "NVFP4A16", 16, g)
    given = {"weight": x, "weight_scale": scale, "weight_global_scale": g}
    found = NVFP4PackedCompressor.compress(given, scheme)
    y = forward.fake_quantize(x.float(), scale, None, scheme.weights, global_scale=g)
    return {
        "global_encode_scale": f32_bits(g.numpy()),
        "block_scale": bytes_of(found["weight_scale"]),
        "code": unpacked(bytes_of(found["weight_packed"])),
        "y": f32_bits(y.numpy()),
    }


def with_scale(x: Any, preset: str, side: int, g: Any = None) -> tuple[Any, Any]:
    """Return the scheme of that name, and its scales of a tensor."""
    from compressed_tensors.quantization import preset_name_to_scheme, utils
    from loguru import logger

    logger.disable("compressed_tensors")
    scheme = preset_name_to_scheme(preset, ["Linear"])
    ends = x.unflatten(-1, (-1, side)).aminmax(dim=-1)
    return scheme, utils.calculate_qparams(*ends, scheme.weights, global_scale=g)[0]


PEER = Peer(
    "compressed-tensors",
    ("torch", "compressed_tensors"),
    "pip install torch compressed-tensors==0.20.0",
    "mxfp4:even:32, mxfp6_e2m3:even:32 and nvfp4:compressed_tensors:1x16",
    {"mx": mx, "nvfp4": nvfp4},
    takes=("global_scale",),
)
