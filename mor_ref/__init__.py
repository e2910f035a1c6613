"""The bit-exact reference for MoR (Mixture of Representations) and the formats that it mixes.

Importing this package compiles nothing and imports neither NumPy nor Numba: that waits for the
first call that needs them.
"""

import importlib
from typing import TYPE_CHECKING, Any

from mor_ref.argument_checks import UnknownNameError
from mor_ref.definitions.format import Format, FormatError
from mor_ref.definitions.formats import formats

if TYPE_CHECKING:
    from mor_ref.api.affine import Affine, quantize_affine
    from mor_ref.api.decoding import decode
    from mor_ref.api.dot import DotChunks, dot, dot_chunks
    from mor_ref.api.encoding import encode
    from mor_ref.api.errors import ErrorSums
    from mor_ref.api.levels import Levels, quantize_levels
    from mor_ref.api.matmul import matmul, transposed
    from mor_ref.api.mixed import mix_formats, mix_layer
    from mor_ref.api.mixed_units import Mixed
    from mor_ref.api.mx import Mx, quantize_mx
    from mor_ref.api.nvfp4 import Nvfp4, quantize_nvfp4
    from mor_ref.api.policies import MorResult, mor
    from mor_ref.api.quantization import Quantized, quantize
    from mor_ref.api.selection import select
    from mor_ref.api.shared import Shared, quantize_shared
    from mor_ref.definitions.finfo import Finfo, finfo
    from mor_ref.metrics import FitsRange, MeanRelativeError, Metric, NotWorseThan
    from mor_ref.policies import Policy, Rung
    from mor_ref.representations import MxBlocks, Nvfp4Tiles, ScaledFormat

_IMPORTED_WHEN_ASKED_FOR = {
    "api.affine": ("Affine", "quantize_affine"),
    "api.decoding": ("decode",),
    "api.dot": ("DotChunks", "dot", "dot_chunks"),
    "api.encoding": ("encode",),
    "api.errors": ("ErrorSums",),
    "api.levels": ("Levels", "quantize_levels"),
    "api.matmul": ("matmul", "transposed"),
    "api.mixed": ("mix_formats", "mix_layer"),
    "api.mixed_units": ("Mixed",),
    "api.mx": ("Mx", "quantize_mx"),
    "api.nvfp4": ("Nvfp4", "quantize_nvfp4"),
    "api.policies": ("MorResult", "mor"),
    "api.quantization": ("Quantized", "quantize"),
    "api.selection": ("select",),
    "api.shared": ("Shared", "quantize_shared"),
    "definitions.finfo": ("Finfo", "finfo"),
    "policies": ("Policy", "Rung"),
    "metrics": ("FitsRange", "MeanRelativeError", "Metric", "NotWorseThan"),
    "representations": ("MxBlocks", "Nvfp4Tiles", "ScaledFormat"),
}
_SUBMODULES = (
    "cuda",
    "deviations",
    "exact",
    "fp8lm",
    "golden",
    "layouts",
    "representations",
    "sources",
    "torch",
    "verify",
)
_MODULE_OF = {name: module for module, names in _IMPORTED_WHEN_ASKED_FOR.items() for name in names}

__all__ = [
    "Affine",
    "DotChunks",
    "ErrorSums",
    "Finfo",
    "FitsRange",
    "Format",
    "FormatError",
    "Levels",
    "MeanRelativeError",
    "Metric",
    "Mixed",
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
    "Shared",
    "UnknownNameError",
    "decode",
    "dot",
    "dot_chunks",
    "encode",
    "finfo",
    "formats",
    "matmul",
    "mix_formats",
    "mix_layer",
    "mor",
    "quantize",
    "quantize_affine",
    "quantize_levels",
    "quantize_mx",
    "quantize_nvfp4",
    "quantize_shared",
    "select",
    "transposed",
]
__version__ = "0.2.0"

# Names that people expect, and what does it here.
_MEANT = {
    "dequantize": "call the method of the record: mor_ref.quantize(x, 'e4m3').dequantize()",
    "quantize_fp8": "call mor_ref.quantize(x, 'e4m3')",
    "quantize_int8": "call mor_ref.quantize_affine(x, 'int8')",
    "quantize_mxfp4": "call mor_ref.quantize_mx(x, 'e2m1')",
    "quantize_mxfp6": "call mor_ref.quantize_mx(x, 'e2m3') or (x, 'e3m2')",
    "quantize_mxfp8": "call mor_ref.quantize_mx(x, 'e4m3') or (x, 'e5m2')",
    "round": "call mor_ref.decode(mor_ref.encode(x, 'e4m3'), 'e4m3')",
    "cast": "call mor_ref.encode(x, 'e4m3')",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for, as most of them need NumPy."""
    if name in _SUBMODULES:
        return importlib.import_module(f"mor_ref.{name}")
    if name in _MODULE_OF:
        return getattr(importlib.import_module(f"mor_ref.{_MODULE_OF[name]}"), name)
    hint = f"; {_MEANT[name]}" if name in _MEANT else ""
    raise AttributeError(f"module 'mor_ref' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return [*__all__, *_SUBMODULES]
