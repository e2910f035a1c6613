"""The bit-exact reference for MoR (Mixture of Representations) and the formats that it mixes.

Importing this package compiles nothing and imports neither NumPy nor Numba: that waits for the
first call that needs them.
"""

import importlib
from typing import TYPE_CHECKING, Any

from mor_ref.arguments import UnknownNameError
from mor_ref.definitions.format import Format, FormatError
from mor_ref.definitions.formats import formats

if TYPE_CHECKING:
    from mor_ref.api.encoding import decode, encode
    from mor_ref.api.nvfp4 import Mx, Nvfp4, quantize_mx, quantize_nvfp4
    from mor_ref.api.policies import MorResult, mor
    from mor_ref.api.quantization import ErrorSums, Quantized, quantize
    from mor_ref.definitions.policies import (
        FitsRange,
        MeanRelativeError,
        NotWorseThan,
        Policy,
        Rung,
    )

_IMPORTED_WHEN_ASKED_FOR = {
    "api.nvfp4": ("Mx", "Nvfp4", "quantize_mx", "quantize_nvfp4"),
    "api.policies": ("MorResult", "mor"),
    "definitions.policies": ("FitsRange", "MeanRelativeError", "NotWorseThan", "Policy", "Rung"),
    "api.quantization": ("ErrorSums", "Quantized", "quantize"),
    "api.encoding": ("decode", "encode"),
}
_SUBMODULES = ("cuda", "deviations", "exact", "golden", "verify")
_MODULE_OF = {name: module for module, names in _IMPORTED_WHEN_ASKED_FOR.items() for name in names}

__all__ = [
    "ErrorSums",
    "FitsRange",
    "Format",
    "FormatError",
    "MeanRelativeError",
    "MorResult",
    "Mx",
    "NotWorseThan",
    "Nvfp4",
    "Policy",
    "Quantized",
    "Rung",
    "UnknownNameError",
    "decode",
    "encode",
    "formats",
    "mor",
    "quantize",
    "quantize_mx",
    "quantize_nvfp4",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """What is imported when that is first asked for, as most of it needs NumPy."""
    if name in _SUBMODULES:
        return importlib.import_module(f"mor_ref.{name}")
    if name in _MODULE_OF:
        return getattr(importlib.import_module(f"mor_ref.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module 'mor_ref' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_SUBMODULES]
