"""The bit-exact reference for MoR (Mixture of Representations) and the formats that it mixes.

Importing this package compiles nothing and imports neither NumPy nor Numba: that waits for the
first call that needs them.
"""

import importlib
from typing import TYPE_CHECKING, Any

from mor_ref.arguments import UnknownNameError
from mor_ref.catalogue import formats
from mor_ref.format import Format, FormatError

if TYPE_CHECKING:
    from mor_ref.microscaling import Mx, Nvfp4, quantize_mx, quantize_nvfp4
    from mor_ref.mixing import MorResult, mor
    from mor_ref.recipes import FitsRange, MeanRelativeError, NotWorseThan, Policy, Rung
    from mor_ref.scaled import ErrorSums, Quantized, quantize
    from mor_ref.tensors import decode, encode

_IMPORTED_WHEN_ASKED_FOR = {
    "microscaling": ("Mx", "Nvfp4", "quantize_mx", "quantize_nvfp4"),
    "mixing": ("MorResult", "mor"),
    "recipes": ("FitsRange", "MeanRelativeError", "NotWorseThan", "Policy", "Rung"),
    "scaled": ("ErrorSums", "Quantized", "quantize"),
    "tensors": ("decode", "encode"),
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
