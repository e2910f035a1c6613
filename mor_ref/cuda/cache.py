"""Compiled kernels on disk: written whole, and found again by a digest of all that made them."""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mor_ref.cuda.unavailable import CudaError


def directory() -> Path:
    """Return the directory of the cache: below $MOR_REF_CACHE, $XDG_CACHE_HOME or ~/.cache."""
    chosen = os.environ.get("MOR_REF_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mor_ref" / "cuda"


def cached_file(name: str, make: Callable[[], bytes]) -> Path:
    """Return a file of the cache, and make it if it does not exist."""
    path = directory() / name
    with _explained(path.parent):
        is_there = path.exists()
    if not is_there:
        content = make()
        with _explained(path.parent):
            _write(path, content)
    return path


@contextmanager
def _explained(place: Path) -> Iterator[None]:
    """Return a sentence: the directory cannot be read or written."""
    try:
        yield
    except OSError as error:
        raise CudaError(
            f"compiled kernels cannot be stored in {place} ({error}); set MOR_REF_CACHE to a "
            "directory with space that you may write to"
        ) from error


def _write(path: Path, content: bytes) -> None:
    """Write all of a file or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        with unfinished.open("xb") as file:
            file.write(content)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
