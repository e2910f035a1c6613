"""The bit-exact reference for MoR (Mixture of Representations) and the formats that it mixes.

Importing this package compiles nothing and imports neither NumPy nor Numba: that waits for the
first call that needs them.
"""

from typing import TYPE_CHECKING, Any

from mor_ref.arguments import UnknownNameError
from mor_ref.catalogue import formats
from mor_ref.format import Format, FormatError

if TYPE_CHECKING:
    from mor_ref.tensors import decode, encode

__all__ = ["Format", "FormatError", "UnknownNameError", "decode", "encode", "formats"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """The functions on tensors, which import NumPy when they are first asked for."""
    if name in ("decode", "encode"):
        from mor_ref import tensors

        return getattr(tensors, name)
    raise AttributeError(f"module 'mor_ref' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
