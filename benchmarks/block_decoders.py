"""Other libraries' way back from NVFP4 and MX; they are given our codes and scales.

Arrays that a library stores in another way are converted before the timing.
"""

import importlib

import numpy as np

from benchmarks.eager import E2M1_VALUES
from benchmarks.peers import TORCH, as_tensor, torch, with_one_nan
from benchmarks.rows import Contender


def decoding(quantize, prepare, needs, differs=None):
    """Return a contender that decodes the result of `quantize` by a prepared call."""

    def prepare_call(found):
        torch()
        return prepare(found)

    return Contender(prepare_call, numbers_of, differs=differs, needs=needs, given=quantize)


def numbers_of(found):
    """Return the numbers of a tensor or of lists in float32."""
    tensor = torch().as_tensor(found, dtype=torch().float32)
    return with_one_nan(tensor.reshape(-1).numpy())


# ---------------------------------------------------------------------- NVFP4


def stored(found):
    """Return two codes in a byte, scales, and the two global scales, as tensors."""
    scale = as_tensor(found.block_scale).view(torch().float8_e4m3fn)
    both = (found.global_encode_scale, found.global_decode_scale)
    return as_tensor(found.packed), scale, *(as_tensor(np.asarray(one)) for one in both)


def torchao_nvfp4(found):
    """Return a call of NVFP4Tensor.dequantize."""
    tensor = importlib.import_module("torchao.prototype.mx_formats.nvfp4_tensor").NVFP4Tensor
    packed, scale, _, g = stored(found)
    wrapped = tensor(packed, scale, 16, torch().float32, g)
    return wrapped.dequantize


def modelopt_nvfp4(found):
    """Return a call of NVFP4QTensor.dequantize."""
    module = importlib.import_module("modelopt.torch.quantization.qtensor.nvfp4_tensor")
    packed, scale, _, g = stored(found)
    f32 = torch().float32
    wrapped = module.NVFP4QTensor(found.codes.shape, f32, packed)
    given = {"scale": scale, "double_scale": g, "block_sizes": {-1: 16}}
    return lambda: wrapped.dequantize(f32, **given)


def compressed_tensors_nvfp4(found):
    """Return a call of NVFP4PackedCompressor.decompress."""
    importlib.import_module("loguru").logger.disable("compressed_tensors")
    quantization = importlib.import_module("compressed_tensors.quantization")
    compressor = importlib.import_module("compressed_tensors.compressors").NVFP4PackedCompressor
    scheme = quantization.preset_name_to_scheme("NVFP4A16", ["Linear"])
    packed, scale, g, _ = stored(found)
    given = {"weight_packed": packed, "weight_scale": scale, "weight_global_scale": g}
    return lambda: compressor.decompress(given, scheme)["weight"]


def eager_nvfp4(found):
    """Return a call in eager torch: a table of 16 numbers, and the product of the scales."""
    codes, (_, scale, _, g) = as_tensor(found.codes), stored(found)
    values = torch().tensor([*E2M1_VALUES, *(-v for v in E2M1_VALUES)])
    tiled = codes.view(-1, 16)
    return lambda: values[tiled.int()] * (scale.float() * g).view(-1, 1)


# ---------------------------------------------------------------------- MX


def torchao_mx(found):
    """Return a call of to_dtype."""
    mx = importlib.import_module("torchao.prototype.mx_formats.mx_tensor")
    t, name = torch(), found.fmt.name
    dtype = getattr(t, TORCH[name])
    codes = found.codes
    if name == "e2m1":
        codes = codes[..., ::2] | codes[..., 1::2] << 4
    held = as_tensor(codes) if name == "e2m1" else as_tensor(codes).view(dtype)
    scale = as_tensor(found.scale).view(t.float8_e8m0fnu)
    return lambda: mx.to_dtype(held, scale, dtype, 32, t.float32)


def modelopt_mx(found):
    """Return a call of MXFP8QTensor.dequantize."""
    module = importlib.import_module("modelopt.torch.quantization.qtensor.mxfp8_tensor")
    f32, codes = torch().float32, as_tensor(found.codes).view(torch().float8_e4m3fn)
    wrapped, scale = module.MXFP8QTensor(found.codes.shape, f32, codes), as_tensor(found.scale)
    return lambda: wrapped.dequantize(f32, scale=scale)


def eager_mx(found):
    """Return a call in eager torch: it casts the codes and the scales."""
    t = torch()
    codes = as_tensor(found.codes).view(getattr(t, TORCH[found.fmt.name]))
    scale = as_tensor(found.scale).view(t.float8_e8m0fnu)
    tiled = codes.view(-1, 32)
    return lambda: tiled.float() * scale.view(-1, 1).float()


def gfloat_mx(found):
    """Return a call of decode_block, block by block."""
    block = importlib.import_module("gfloat.block")
    names = importlib.import_module("gfloat.formats")
    info = getattr(names, f"format_info_mxfp{found.fmt.bits}_{found.fmt.name}")
    blocks = np.concatenate([found.scale.reshape(-1, 1), found.codes.reshape(-1, 32)], 1).tolist()
    return lambda: [list(block.decode_block(info, one)) for one in blocks]
