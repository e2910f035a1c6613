"""The same functions on a GPU, through CuPy: the same bits, proven on the golden vectors.

They take CuPy arrays, CUDA tensors of torch, and other arrays on a GPU, and return CuPy arrays.
They need the extra `gpu` and a GPU. If one is missing, they raise an error: they never compute on
the CPU instead. `mix_formats` and `mix_layer` are not here: `mor-ref verify cuda` alone runs their
kernels. Nor is `load`, as records on a GPU have no files. `dot` takes c as float16 if the profile
has results in f16. `matmul` takes results of `mor` under the profiles of binary32 alone: the others
need codes. The kernels of tensors round to nearest: they take no random words. Exact sums of
gradients of levels are made on the host. The other names come from `mor_ref` itself.

A result is ready on the stream that its function ran on: torch's current stream for a tensor of
torch, and CuPy's current stream for an array of CuPy. For any other array, it is ready at once. A
reader on another stream has to wait for that stream. That stream has to wait for the reader before
it lets go of the result. `dequantize` does both, and runs on CuPy's current stream.
"""

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from mor_ref.argument_checks import UnknownNameError
from mor_ref.definitions.format import Format, FormatError
from mor_ref.definitions.formats import formats
from mor_ref.schemes import SCHEMES

if TYPE_CHECKING:
    from mor_ref.cuda.dot_functions import DotChunks, dot, dot_chunks
    from mor_ref.cuda.errors import ErrorSums
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
    from mor_ref.cuda.matmul_functions import matmul, transposed
    from mor_ref.definitions.finfo import Finfo, finfo
    from mor_ref.metrics import FitsRange, MeanRelativeError, Metric, NotWorseThan
    from mor_ref.policies import Policy, Rung
    from mor_ref.representations import MxBlocks, Nvfp4Tiles, ScaledFormat
    from mor_ref.schemes.affine.cuda_functions import Affine as Affine
    from mor_ref.schemes.affine.cuda_functions import quantize_affine as quantize_affine
    from mor_ref.schemes.levels.cuda_functions import Levels as Levels
    from mor_ref.schemes.levels.cuda_functions import quantize_levels as quantize_levels
    from mor_ref.schemes.selection.cuda_functions import select as select
    from mor_ref.schemes.shared.cuda_functions import Shared as Shared
    from mor_ref.schemes.shared.cuda_functions import quantize_shared as quantize_shared

_OF_SCHEMES = {
    module: names
    for scheme, names in SCHEMES.items()
    if find_spec(f"mor_ref.{(module := f'schemes.{scheme}.cuda_functions')}")
}
_IMPORTED_WHEN_ASKED_FOR = {
    "cuda.functions": (
        "MorResult", "Mx", "Nvfp4", "Quantized", "decode", "encode", "mor", "quantize",
        "quantize_mx", "quantize_nvfp4",
    ),
    "cuda.dot_functions": ("DotChunks", "dot", "dot_chunks"),
    "cuda.matmul_functions": ("matmul", "transposed"),
    "cuda.errors": ("ErrorSums",),
    "definitions.finfo": ("Finfo", "finfo"),
    "policies": ("Policy", "Rung"),
    "metrics": ("FitsRange", "MeanRelativeError", "Metric", "NotWorseThan"),
    "representations": ("MxBlocks", "Nvfp4Tiles", "ScaledFormat"),
    **_OF_SCHEMES,
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _IMPORTED_WHEN_ASKED_FOR.items() for name in names}

__all__ = [
    "DotChunks",
    "ErrorSums",
    "Finfo",
    "FitsRange",
    "Format",
    "FormatError",
    "MeanRelativeError",
    "Metric",
    "MorResult",
    "Mx",
    "MxBlocks",
    "NotWorseThan",
    "Nvfp4",
    "Nvfp4Tiles",
    "Policy",
    "Quantized",
    "Rung",
    "ScaledFormat",
    "UnknownNameError",
    "decode",
    "dot",
    "dot_chunks",
    "encode",
    "finfo",
    "formats",
    "matmul",
    "mor",
    "quantize",
    "quantize_mx",
    "quantize_nvfp4",
    "transposed",
]
__all__ += [name for names in _OF_SCHEMES.values() for name in names]
__all__.sort()


if not TYPE_CHECKING:  # which take any name for one of this package otherwise

    def __getattr__(name: str) -> Any:
        """Import a name when it is first asked for, as most of them need NumPy."""
        if name in _MODULE_OF:
            return getattr(importlib.import_module(f"mor_ref.{_MODULE_OF[name]}"), name)
        raise AttributeError(f"module 'mor_ref.cuda' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
