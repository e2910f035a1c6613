"""Other libraries' conversions and quantizers, called as their users call them, on one thread.

A contender that can write into an existing array gets one, as ours does.
"""

import functools
import importlib
import os

import ml_dtypes
import numpy as np

import mor_ref
from benchmarks.rows import Contender

ML_DTYPES = {
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e8m0": ml_dtypes.float8_e8m0fnu,
    "e2m1": ml_dtypes.float4_e2m1fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "bf16": ml_dtypes.bfloat16,
    "e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz,
    "e4m3_ieee": ml_dtypes.float8_e4m3,
    "e3m4": ml_dtypes.float8_e3m4,
    "f16": np.float16,  # NumPy's own
}
TORCH = {
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "e8m0": "float8_e8m0fnu",
    "e4m3fnuz": "float8_e4m3fnuz",
    "e5m2fnuz": "float8_e5m2fnuz",
    "e2m1": "float4_e2m1fn_x2",
    "bf16": "bfloat16",
    "f16": "float16",
}
GFLOAT = {"e4m3": "ocp_e4m3", "e5m2": "ocp_e5m2", "e2m1": "ocp_e2m1", "e2m3": "ocp_e2m3"}
GFLOAT_ROUNDINGS = {
    "rne": "TiesToEven",
    "rna": "TiesToAway",
    "rtz": "TowardZero",
    "rtp": "TowardPositive",
    "rtn": "TowardNegative",
}
APYTYPES_ROUNDINGS = {
    "rne": "TIES_EVEN",
    "rna": "TIES_AWAY",
    "rtz": "TO_ZERO",
    "rtp": "TO_POS",
    "rtn": "TO_NEG",
    "rto": "JAM",
}
PYCHOP_ROUNDINGS = {"rne": 1, "rtp": 2, "rtn": 3, "rtz": 4, "rna": 8, "rto": 9}


@functools.cache
def torch():
    """Return torch, on one thread."""
    found = importlib.import_module("torch")
    found.set_num_threads(1)
    return found


def as_tensor(x):
    """Return a tensor of the same memory."""
    t = torch()
    if x.dtype == ml_dtypes.bfloat16:
        return t.from_numpy(x.view(np.int16)).view(t.bfloat16)
    return t.from_numpy(x)


def codes_of(tensor):
    """Return the bytes, or codes of 16 bits, of a tensor."""
    t = torch()
    if tensor.dtype in (t.bfloat16, t.float16):
        return tensor.view(t.int16).numpy().view(np.uint16)
    return tensor.view(t.uint8).numpy()


def unpacked(packed):
    """Return an e2m1 code in each byte; the low nibble is first."""
    return np.stack([packed & 15, packed >> 4], -1).reshape(*packed.shape[:-1], -1)


# ---------------------------------------------------------------------- conversions


def ml_dtypes_encoding(fmt, differs=None):
    """Return an encoding contender: copyto."""

    def prepare(x):
        room = np.empty(x.shape, ML_DTYPES[fmt])

        def encode():
            np.copyto(room, x, casting="unsafe")
            return room

        return encode

    return Contender(prepare, lambda found: (found.view(f"u{found.itemsize}"),), differs=differs)


def torch_encoding(fmt):
    """Return an encoding contender: Tensor.copy_."""

    def prepare(x):
        tensor = as_tensor(x)
        room = torch().empty(x.shape, dtype=getattr(torch(), TORCH[fmt]))
        return lambda: room.copy_(tensor)

    return Contender(prepare, lambda found: (codes_of(found),), needs="torch")


@functools.cache
def jax():
    """Return jax, on one thread of the processor."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    return importlib.import_module("jax")


def jax_conversion(target, source=None, bits=None, differs=None):
    """Return a contender: a compiled Array.astype, which allocates its results itself."""

    def prepare(x):
        given = jax().device_put(x if source is None else x.view(source))
        convert = jax().jit(lambda numbers: numbers.astype(target))
        return lambda: convert(given).block_until_ready()

    def found_bits(found):
        return (bits or codes_in_bytes)(np.asarray(found))

    return Contender(prepare, found_bits, differs=differs, needs="jax")


def codes_in_bytes(found):
    """Return the codes of an array whose dtype is of 8 bits."""
    return (found.view(np.uint8),)


def apytypes_encoding(fmt, rounding="rne", differs=None):
    """Return a contender: from_array, which rounds to nearest, or cast; then to_bits."""
    found = mor_ref.formats[fmt]
    sides = found.exponent_bits, found.mantissa_bits

    def prepare(x):
        library = importlib.import_module("apytypes")
        mode = getattr(library.QuantizationMode, APYTYPES_ROUNDINGS[rounding])
        from_array = library.APyFloatArray.from_array
        if rounding == "rne":
            return lambda: from_array(x, *sides).to_bits(numpy=True)
        return lambda: from_array(x, 8, 23).cast(*sides, quantization=mode).to_bits(numpy=True)

    return Contender(prepare, codes_in_bytes, differs=differs, needs="apytypes")


def gfloat_encoding(fmt, rounding="rne"):
    """Return an encoding contender: round_ndarray and encode_ndarray."""

    def prepare(x):
        gfloat = importlib.import_module("gfloat")
        info = getattr(importlib.import_module("gfloat.formats"), f"format_info_{GFLOAT[fmt]}")
        mode = getattr(gfloat.RoundMode, GFLOAT_ROUNDINGS[rounding])
        return lambda: gfloat.encode_ndarray(info, gfloat.round_ndarray(info, x, mode, sat=True))

    return Contender(prepare, lambda found: (found.astype(np.uint8),), needs="gfloat")


def rounded_to(fmt):
    """Return the codes of numbers that are already rounded to a format."""
    return lambda found: (mor_ref.encode(np.asarray(found, np.float32), fmt),)


def qtorch_rounding(fmt, differs=None):
    """Return a contender: to values, to nearest, ties away from zero; qtorch has no codes."""
    found = mor_ref.formats[fmt]

    def prepare(x):
        float_quantize = importlib.import_module("qtorch.quant").float_quantize
        tensor = as_tensor(x)
        return lambda: float_quantize(tensor, found.exponent_bits, found.mantissa_bits, "nearest")

    return Contender(prepare, rounded_to(fmt), differs=differs, needs="qtorch")


def pychop_rounding(fmt, rounding="rne", differs=None):
    """Return a contender: to values of the format; pychop has no codes."""
    found = mor_ref.formats[fmt]

    def prepare(x):
        pychop = importlib.import_module("pychop")
        pychop.backend("numpy")
        mode = PYCHOP_ROUNDINGS[rounding]
        chop = pychop.Chop(found.exponent_bits, found.mantissa_bits, rmode=mode)
        return lambda: chop(x)

    return Contender(prepare, rounded_to(fmt), differs=differs, needs="pychop")


def with_one_nan(values):
    """Return the bits of numbers, with the NaN of decode for every NaN."""
    bits = values.view(np.uint32)
    return (np.where(np.isnan(values), np.uint32(0x7FFFFFFF), bits),)


def ml_dtypes_decoding(fmt):
    """Return a decoding contender: astype."""

    def prepare(codes):
        typed = codes.view(ML_DTYPES[fmt])
        return lambda: typed.astype(np.float32)

    return Contender(prepare, with_one_nan)


def torch_decoding(fmt):
    """Return a decoding contender: Tensor.float."""

    def prepare(codes):
        tensor = as_tensor(codes).view(getattr(torch(), TORCH[fmt]))
        return tensor.float

    return Contender(prepare, lambda found: with_one_nan(found.numpy()), needs="torch")


def gfloat_decoding(fmt):
    """Return a decoding contender: decode_ndarray."""

    def prepare(codes):
        gfloat = importlib.import_module("gfloat")
        info = getattr(importlib.import_module("gfloat.formats"), f"format_info_{GFLOAT[fmt]}")
        return lambda: gfloat.decode_ndarray(info, codes)

    return Contender(prepare, lambda found: with_one_nan(found.astype(np.float32)), needs="gfloat")
