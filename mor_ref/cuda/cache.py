"""Compiled kernels on disk: written whole, and found again by a digest of all that made them.

The name of a file has a digest of its content as well, since compiled code with a wrong bit may
crash or compute something else, and a loader takes a file only as the compiler wrote it.
"""

import glob
import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mor_ref.cuda.unavailable import CudaError

_DIGITS = 24


def directory() -> Path:
    """Return the directory of the cache: below $MOR_REF_CACHE, $XDG_CACHE_HOME or ~/.cache."""
    chosen = os.environ.get("MOR_REF_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mor_ref" / "cuda"


def cached_file(name: str, make: Callable[[], bytes]) -> Path:
    """Return a file of the cache; make it if there is none, or if what is there is damaged."""
    place = directory()
    with _explained(place):
        for path in place.glob(_with_digest(glob.escape(name), "?" * _DIGITS)):
            if path.name == _with_digest(name, _digest(name, path.read_bytes())):
                return path
    content = make()
    path = place / _with_digest(name, _digest(name, content))
    with _explained(place):
        _write(path, content)
    return path


def _digest(name: str, content: bytes) -> str:
    """Return a digest of a file: the content of another one is damage as well."""
    return hashlib.sha256(name.encode() + content).hexdigest()[:_DIGITS]


def _with_digest(name: str, digest: str) -> str:
    """Put a digest before the ending of a name.

    >>> _with_digest("scales.ptx.z", "0123")
    'scales-0123.ptx.z'
    """
    stem, dot, ending = name.partition(".")
    return f"{stem}-{digest}{dot}{ending}"


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
