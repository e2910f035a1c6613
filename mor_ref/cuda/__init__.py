"""The same functions on a GPU, through CuPy: the same bits, proven on the golden vectors.

They take CuPy arrays, CUDA tensors of torch, and other arrays on a GPU, and give CuPy arrays. What
they need is in the extra `gpu`; where that or the GPU is missing, they say so, and never compute on
the CPU instead.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mor_ref.cuda.functions import (
        MorResult,
        Mx,
        Nvfp4,
        Quantized,
        decode,
        encode,
        mor,
        quantize,
        quantize_mx,
        quantize_nvfp4,
    )

__all__ = [
    "MorResult",
    "Mx",
    "Nvfp4",
    "Quantized",
    "decode",
    "encode",
    "mor",
    "quantize",
    "quantize_mx",
    "quantize_nvfp4",
]


def __getattr__(name: str) -> Any:
    """What needs NumPy, which is imported when that is first asked for."""
    if name in __all__:
        return getattr(importlib.import_module("mor_ref.cuda.functions"), name)
    raise AttributeError(f"module 'mor_ref.cuda' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
