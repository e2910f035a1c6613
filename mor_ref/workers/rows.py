"""Modules of a user that add rows to catalogues: each process of a command imports them first."""

import importlib
import sys

_modules: list[str] = []  # of this process


def add_rows(modules: tuple[str, ...]) -> None:
    """Import modules of the working directory, or installed ones, which add rows."""
    if "" not in sys.path:
        sys.path.insert(0, "")  # modules of the working directory, as with python -m
    for module in modules:
        if module not in _modules:
            _import(module)
            _modules.append(module)


def modules_of_rows() -> tuple[str, ...]:
    """Return the names of the modules that were imported for their rows."""
    return tuple(_modules)


def _import(module: str) -> None:
    try:
        importlib.import_module(module)
    except Exception as error:  # importing somebody's module can raise anything
        raise ValueError(
            f"rows is {module!r}, which cannot be imported ({type(error).__name__}: "
            f"{' '.join(str(error).split())}); give the name of an installed module, or of one in "
            "the working directory without .py"
        ) from error
