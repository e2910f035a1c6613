"""The calls whose steps are looked at one by one."""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import mor_ref
from benchmarks import inputs


class Pipeline(NamedTuple):
    """A call on so many numbers, on one thread."""

    name: str
    elements: int
    call: Callable[[], Any]


def pipelines(log2_size: int) -> Iterator[Pipeline]:
    """Yield all pipelines, on tensors of that size."""
    f32, f64 = inputs.normal(log2_size)(), inputs.normal(log2_size, np.float64)()
    bf16, f16 = f32.astype(inputs.BF16), f32.astype(np.float16)
    mixed = inputs.mixed(log2_size)() if log2_size >= 16 else bf16
    codes, wide = mor_ref.encode(f32, "e4m3"), mor_ref.encode(f32, "f16")
    words = inputs.random_words(f32.size, 16).reshape(f32.shape)
    room = np.empty(f32.shape, np.uint8)
    quantized = mor_ref.quantize(bf16, "e4m3", block=(128, 128))
    encode = functools.partial(mor_ref.encode, fmt="e4m3", out=room, threads=1)
    calls = {
        "encode f32": lambda: encode(f32),
        "encode bf16": lambda: encode(bf16),
        "encode f16": lambda: encode(f16),
        "encode f64": lambda: encode(f64),
        "encode f32, sr": lambda: encode(f32, rounding="sr", random_bits=words, n_random_bits=16),
        "encode f32 to e8m0": lambda: mor_ref.encode(f32, "e8m0", out=room, threads=1),
        "decode e4m3": lambda: mor_ref.decode(codes, "e4m3"),
        "decode f16": lambda: mor_ref.decode(wide, "f16"),
        "quantize": lambda: mor_ref.quantize(bf16, "e4m3", block=(128, 128), threads=1),
        "quantize, fp32": lambda: mor_ref.quantize(
            bf16, "e4m3", block=(128, 128), scaling="fp32", threads=1
        ),
        "dequantize": lambda: quantized.dequantize(threads=1),
        "mor, tensor": lambda: mor_ref.mor(bf16, threads=1),
        "mor, three_way": lambda: mor_ref.mor(mixed, "three_way", threads=1),
        "mor, nvfp4": lambda: mor_ref.mor(mixed, "nvfp4", threads=1),
        "MX e4m3, floor": lambda: mor_ref.quantize_mx(bf16, "e4m3", threads=1),
        "MX e4m3, rceil": lambda: mor_ref.quantize_mx(bf16, "e4m3", scale_rule="rceil", threads=1),
    }
    for profile in ("te", "torchao", "modelopt", "compressed_tensors", "te_4over6_mae"):
        calls[f"NVFP4, {profile}"] = functools.partial(
            mor_ref.quantize_nvfp4, bf16, profile=profile, threads=1
        )
    for name, call in calls.items():
        yield Pipeline(name, f32.size, call)
