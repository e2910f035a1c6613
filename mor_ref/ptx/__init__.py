"""PTX on a CPU: a compiled kernel runs as PTX defines it, bit for bit, without a GPU."""

import importlib
from typing import TYPE_CHECKING, Any

from mor_ref.ptx.errors import LaunchError, PtxError

if TYPE_CHECKING:
    from mor_ref.cuda.host import Schedule
    from mor_ref.ptx.candidate import Candidate
    from mor_ref.ptx.running import Kernel, Module

_PLACES = {
    "Candidate": "ptx.candidate",
    "Kernel": "ptx.running",
    "Module": "ptx.running",
    "Schedule": "cuda.host",
}
__all__ = ["Candidate", "Kernel", "LaunchError", "Module", "PtxError", "Schedule"]


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for, as these need NumPy."""
    if name in _PLACES:
        return getattr(importlib.import_module(f"mor_ref.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'mor_ref.ptx' has no attribute {name!r}")
