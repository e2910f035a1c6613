"""Compiled kernels on disk: written whole, and found again by a digest of all that made them."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def folder() -> Path:
    """Where they are kept: below $MOR_REF_CACHE, $XDG_CACHE_HOME or ~/.cache."""
    chosen = os.environ.get("MOR_REF_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mor_ref" / "cuda"


def cached_file(name: str, make: Callable[[], bytes]) -> Path:
    """A file of the cache, made if it is not there."""
    path = folder() / name
    if not path.exists():
        content = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, unfinished = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(unfinished).replace(path)
    return path
