"""Other libraries' quantizers to NVFP4 and MX, called as their users call them, on one thread."""

import importlib

import numpy as np

import mor_ref
from benchmarks.peers import TORCH, as_tensor, codes_of, torch, unpacked
from benchmarks.rows import Contender

# ---------------------------------------------------------------------- NVFP4


def torchao_nvfp4(differs=None):
    """Return a contender: the global scale and nvfp4_quantize, as in NVFP4Tensor.to_nvfp4."""

    def prepare(x):
        ao = importlib.import_module("torchao.prototype.mx_formats.nvfp4_tensor")
        torch()
        tensor = as_tensor(x)

        def quantize():
            g = ao.per_tensor_amax_to_scale(tensor.abs().max())
            return ao.nvfp4_quantize(tensor, 16, g)

        return quantize

    def bits(found):
        scale, packed = found
        return unpacked(codes_of(packed)), codes_of(scale) & np.uint8(0x7F)

    return Contender(prepare, bits, differs=differs, needs="torchao")


def modelopt_nvfp4():
    """Return a contender: NVFP4QTensor.quantize."""

    def prepare(x):
        module = importlib.import_module("modelopt.torch.quantization.qtensor.nvfp4_tensor")
        torch()
        tensor = as_tensor(x)
        return lambda: module.NVFP4QTensor.quantize(tensor, 16)

    def bits(found):
        packed, scale, _ = found
        stored = codes_of(scale) & np.uint8(0x7F)
        return unpacked(codes_of(packed._quantized_data)), stored  # noqa: SLF001  # no other way

    return Contender(prepare, bits, needs="modelopt")


def compressed_tensors_nvfp4():
    """Return a contender: the scales and NVFP4PackedCompressor.compress."""

    def prepare(x):
        importlib.import_module("loguru").logger.disable("compressed_tensors")
        quantization = importlib.import_module("compressed_tensors.quantization")
        utils = importlib.import_module("compressed_tensors.quantization.utils")
        compressor = importlib.import_module("compressed_tensors.compressors").NVFP4PackedCompressor
        scheme = quantization.preset_name_to_scheme("NVFP4A16", ["Linear"])
        torch()
        tensor = as_tensor(x)

        def quantize():
            g = utils.generate_gparam(*tensor.aminmax())
            ends = tensor.unflatten(-1, (-1, 16)).aminmax(dim=-1)
            scale = utils.calculate_qparams(*ends, scheme.weights, global_scale=g)[0]
            given = {"weight": tensor, "weight_scale": scale, "weight_global_scale": g}
            return compressor.compress(given, scheme)

        return quantize

    def bits(found):
        packed, scale = (codes_of(found[key]) for key in ("weight_packed", "weight_scale"))
        return unpacked(packed), scale & np.uint8(0x7F)

    return Contender(prepare, bits, needs="compressed_tensors")


# ---------------------------------------------------------------------- MX


def torchao_mx(fmt, rule):
    """Return a contender: to_mx."""

    def prepare(x):
        mx = importlib.import_module("torchao.prototype.mx_formats.mx_tensor")
        config = importlib.import_module("torchao.prototype.mx_formats.config")
        mode, dtype, tensor = config.ScaleCalculationMode(rule), TORCH[fmt], as_tensor(x)
        return lambda: mx.to_mx(tensor, getattr(torch(), dtype), 32, mode)

    def bits(found):
        scale, codes = (codes_of(part) for part in found)
        return unpacked(codes) if fmt == "e2m1" else codes, scale

    return Contender(prepare, bits, needs="torchao")


def modelopt_mx():
    """Return a contender: MXFP8QTensor.quantize."""

    def prepare(x):
        module = importlib.import_module("modelopt.torch.quantization.qtensor.mxfp8_tensor")
        torch()
        tensor = as_tensor(x)
        return lambda: module.MXFP8QTensor.quantize(tensor)

    def bits(found):
        codes, scale = found
        return codes_of(codes._quantized_data), scale.numpy()  # noqa: SLF001  # no other way

    return Contender(prepare, bits, needs="modelopt")


def gfloat_mx(fmt):
    """Return a contender: quantize_block, block by block; it returns values."""

    def prepare(x):
        block = importlib.import_module("gfloat.block")
        names = importlib.import_module("gfloat.formats")
        info = getattr(names, f"format_info_mxfp{mor_ref.formats[fmt].bits}_{fmt}")
        blocks = x.astype(np.float64).reshape(-1, 32)
        scale = block.compute_scale_amax
        return lambda: np.array([block.quantize_block(info, one, scale) for one in blocks])

    return Contender(prepare, values, needs="gfloat")


def pychop_mx(fmt):
    """Return a contender: mx_quantize; it returns values."""

    def prepare(x):
        pychop = importlib.import_module("pychop.mx_formats")
        importlib.import_module("pychop").backend("numpy")
        name = f"mxfp{mor_ref.formats[fmt].bits}_{fmt}"
        return lambda: pychop.mx_quantize(x, name, block_size=32)

    return Contender(prepare, values, needs="pychop")


def values(found):
    """Return the numbers that codes stand for, as bits."""
    return (np.asarray(found, np.float32).reshape(-1).view(np.uint32),)
