"""Modules of a user that add rows to catalogues: each process of a command imports them first."""

import hashlib
import importlib
import itertools
import sys
from pathlib import Path

from mor_ref.argument_checks import error_text
from mor_ref.workers.package_digest import digest_of_sources

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


def digest_of_program(modules: tuple[str, ...]) -> str:
    """Return the digest of this package and of modules of rows: both decide about results."""
    if not modules:
        return digest_of_sources()
    digest = hashlib.sha256(digest_of_sources().encode())
    for path in itertools.chain.from_iterable(map(_sources, modules)):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _sources(name: str) -> list[Path]:
    """Return the file of a module, or all sources of a package."""
    module = sys.modules[name]
    packages = [Path(path) for path in getattr(module, "__path__", ())]
    if packages:
        return sorted(itertools.chain.from_iterable(path.rglob("*.py") for path in packages))
    return [Path(module.__file__)] if module.__file__ else []


def _import(module: str) -> None:
    try:
        importlib.import_module(module)
    except (Exception, SystemExit) as error:  # importing somebody's module can raise anything
        raise ValueError(
            f"rows is {module!r}, which cannot be imported ({type(error).__name__}: "
            f"{error_text(error)}); give the name of an installed module, or of one in "
            "the working directory without .py"
        ) from error
