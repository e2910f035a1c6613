"""What the explorer knows of each scheme: a module for each that it shows."""

import importlib
import pkgutil
from typing import Any


def entries_of_schemes() -> dict[str, Any]:
    """Return the entries of the catalogue that are of one scheme."""
    names = (f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__))
    return {
        key: entry
        for name in names
        for key, entry in importlib.import_module(name).entries().items()
    }
