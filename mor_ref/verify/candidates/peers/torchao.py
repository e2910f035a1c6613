"""torchao: MX under all four scale rules, and NVFP4."""

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

_DTYPES = {
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "e2m1": "float4_e2m1fn_x2",
    "e2m3": "fp6_e2m3",
    "e3m2": "fp6_e3m2",
}


def mx(parameters: Parameters, inputs: Arrays) -> Answer | None:
    """Quantize by `to_mx`, and dequantize by `to_dtype`."""
    import torch
    from torchao.prototype.mx_formats import mx_tensor
    from torchao.prototype.mx_formats.config import ScaleCalculationMode

    fmt, block = parameters["format"], parameters["block"]
    rule = parameters["scale_rule"]
    if (
        fmt not in _DTYPES
        or block != 32
        or rule not in {mode.value for mode in ScaleCalculationMode}
    ):
        return None
    dtype = getattr(torch, _DTYPES[fmt], _DTYPES[fmt])  # those of 6 bits have names
    x = as_torch(padded(parameters, inputs, block))
    mode = ScaleCalculationMode(rule)
    scale, found = mx_tensor.to_mx(x, dtype, block, mode)
    y = mx_tensor.to_dtype(found, scale, dtype, block, torch.float32)
    codes = unpacked(bytes_of(found)) if fmt == "e2m1" else bytes_of(found)
    return {
        "scale": bytes_of(scale),
        "code": cut(codes, inputs),
        "y": f32_bits(cut(y.numpy(), inputs)),
    }


def nvfp4(parameters: Parameters, inputs: Arrays) -> Answer | None:
    """Quantize by `nvfp4_quantize`, and dequantize by `NVFP4Tensor`."""
    import torch
    from torchao.prototype.mx_formats import nvfp4_tensor as ao

    if parameters["profile"] != "torchao" or parameters["tile"] != [1, 16]:
        return None
    x = as_torch(padded(parameters, inputs, 16))
    g = global_scale_in(parameters)
    g = ao.per_tensor_amax_to_scale(x.abs().max()) if g is None else g
    scale, packed = ao.nvfp4_quantize(x, 16, g)
    y = ao.NVFP4Tensor(packed, scale, 16, torch.float32, g).dequantize()
    return {
        "global_decode_scale": f32_bits(g.numpy()),
        "block_scale": bytes_of(scale),
        "code": cut(unpacked(bytes_of(packed)), inputs),
        "y": f32_bits(cut(y.numpy(), inputs)),
    }


PEER = Peer(
    "torchao",
    ("torch", "torchao"),
    "pip install torch torchao==0.18.0",
    "MX under all scale rules in blocks of 32, but int8_mx, and nvfp4:torchao:1x16",
    {"mx": mx, "nvfp4": nvfp4},
    takes=("global_scale",),
)
