"""The bit-exact reference for MoR (Mixture of Representations) and the formats that it mixes.

Importing this package compiles nothing and imports neither NumPy nor Numba: that waits for the
first call that needs them. `__init__.pyi` says what it has to type checkers.
"""

import importlib
from typing import Any

from mor_ref.argument_checks import UnknownNameError
from mor_ref.definitions.format import Format, FormatError
from mor_ref.definitions.formats import formats
from mor_ref.schemes import SCHEMES

_IMPORTED_WHEN_ASKED_FOR = {
    "api.block_formats": ("BlockQuantized",),
    "api.decoding": ("decode",),
    "api.dot": ("DotChunks", "dot", "dot_chunks"),
    "api.encoding": ("encode",),
    "api.errors": ("ErrorSums",),
    "api.loading": ("load",),
    "api.matmul": ("matmul", "transposed"),
    "api.mx": ("Mx", "quantize_mx"),
    "api.nvfp4": ("Nvfp4", "quantize_nvfp4"),
    "api.philox": ("philox4x32", "te_random_words"),
    "api.policies": ("MorResult", "mor"),
    "api.quantization": ("Quantized",),
    "api.quantize": ("quantize",),
    "definitions.block_formats": ("BlockFormat", "BlockFormatError", "BlockScale"),
    "definitions.before_blocks": ("Hadamard", "KeptColumns"),
    "definitions.table_format": ("TableFormat",),
    "definitions.finfo": ("Finfo", "finfo"),
    "definitions.formula_functions": ("FormulaFunction", "formula_functions"),
    "explanations.decoding": ("Neighbours",),
    "explanations.encoding": ("ExplainedEncoding",),
    "explanations.functions": ("explain", "neighbours"),
    "policies": ("Policy", "Rung"),
    "definitions.roles": ("Role",),
    "metrics": (
        "Cosine",
        "FitsRange",
        "LargestByRow",
        "MeanRelativeError",
        "Metric",
        "NotWorseThan",
        "RelativeFrobenius",
        "Sqnr",
        "Unit",
    ),
    "representations": ("MxBlocks", "Nvfp4Tiles", "ScaledFormat"),
    **{f"schemes.{scheme}.functions": names for scheme, names in SCHEMES.items()},
}
_SUBMODULES = (
    "analysis",
    "cuda",
    "deviations",
    "exact",
    "fp8lm",
    "golden",
    "layouts",
    "metrics",
    "policies",
    "ptx",
    "recipes",
    "representations",
    "sources",
    "torch",
    "verify",
)
_MODULE_OF = {name: module for module, names in _IMPORTED_WHEN_ASKED_FOR.items() for name in names}

__all__ = [
    "BlockFormat",
    "BlockFormatError",
    "BlockQuantized",
    "BlockScale",
    "Cosine",
    "DotChunks",
    "ErrorSums",
    "ExplainedEncoding",
    "Finfo",
    "FitsRange",
    "Format",
    "FormatError",
    "FormulaFunction",
    "Hadamard",
    "KeptColumns",
    "LargestByRow",
    "MeanRelativeError",
    "Metric",
    "MorResult",
    "Mx",
    "MxBlocks",
    "Neighbours",
    "NotWorseThan",
    "Nvfp4",
    "Nvfp4Tiles",
    "Policy",
    "Quantized",
    "RelativeFrobenius",
    "Role",
    "Rung",
    "ScaledFormat",
    "Sqnr",
    "TableFormat",
    "Unit",
    "UnknownNameError",
    "decode",
    "dot",
    "dot_chunks",
    "encode",
    "explain",
    "finfo",
    "formats",
    "formula_functions",
    "load",
    "matmul",
    "mor",
    "neighbours",
    "philox4x32",
    "quantize",
    "quantize_mx",
    "quantize_nvfp4",
    "te_random_words",
    "transposed",
]
__all__ += [name for names in SCHEMES.values() for name in names]
__all__.sort()
__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for, as most of them need NumPy."""
    if name in _SUBMODULES:
        return importlib.import_module(f"mor_ref.{name}")
    if name in _MODULE_OF:
        found = getattr(importlib.import_module(f"mor_ref.{_MODULE_OF[name]}"), name)
        globals()[name] = found  # so that nobody asks again
        return found
    from mor_ref.habits import hint_of_function

    hint = hint_of_function(name, __dir__())
    raise AttributeError(f"module 'mor_ref' has no attribute {name!r}{f'; {hint}' if hint else ''}")


def __dir__() -> list[str]:
    return [*__all__, *_SUBMODULES]
