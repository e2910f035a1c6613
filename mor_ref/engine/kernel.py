"""`step` and `kernel`: how the engine's functions are compiled, and where they are kept.

Numba keeps a compiled function on disk for as long as the file of that function does not change; a
function that it calls from another file may change unnoticed. Here the place on disk is named after
a digest of all sources of the package: another source, another place, and no kernel of the old
source can be found there.
"""

import functools
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache

_PACKAGE = Path(__file__).resolve().parent.parent
_DIGESTS_KEPT = 16


def source_digest() -> str:
    """A digest of Numba's version and of every Python source of the package, as they are now."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(_PACKAGE.rglob("*.py")):
        source = path.read_bytes()
        digest.update(f"\0{path.relative_to(_PACKAGE).as_posix()}\0{len(source)}\0".encode())
        digest.update(source)
    return digest.hexdigest()[:32]


# Read before any kernel is: what is compiled in this process is this source, or it is not kept.
_DIGEST = source_digest()


@functools.cache
def cache_directory() -> Path | None:
    """Where kernels are kept between processes; None if no place can be written.

    It lies under NUMBA_CACHE_DIR if that is set, else under XDG_CACHE_HOME or ~/.cache.
    """
    root = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    try:
        directory = (Path(root) if root else Path.home() / ".cache") / "mor_ref" / _DIGEST
        if not directory.is_dir():
            directory.mkdir(parents=True, exist_ok=True)
            _forget_old_sources(directory.parent)
        tempfile.TemporaryFile(dir=directory).close()
    except (OSError, RuntimeError):
        return None
    return directory


def _forget_old_sources(parent: Path) -> None:
    by_age = sorted(parent.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for directory in by_age[_DIGESTS_KEPT:]:
        shutil.rmtree(directory, ignore_errors=True)


class _Locator:
    """The place of one kernel, in the protocol of Numba's cache locators."""

    def __init__(self, function: Callable[..., Any], directory: Path) -> None:
        self._function = function
        self._directory = directory

    def get_cache_path(self) -> str:
        return str(self._directory)

    def ensure_cache_path(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)

    def get_source_stamp(self) -> str:
        return _DIGEST

    def get_disambiguator(self) -> str:
        return str(self._function.__module__)

    @classmethod
    def from_function(cls, function: Callable[..., Any], _file: str) -> "_Locator | None":
        directory = cache_directory()
        return cls(function, directory) if directory else None


class _CacheImplementation(CompileResultCacheImpl):
    def __init__(self, function: Callable[..., Any]) -> None:
        self._locator_classes = [_Locator]
        super().__init__(function)
        # Numba's own settings may name other locators; none of them reads all sources.
        self._locator = _Locator.from_function(function, "")

    def check_cachable(self, compiled: Any) -> bool:
        """Refuse what was compiled from a source that has changed under this process."""
        return source_digest() == _DIGEST and bool(super().check_cachable(compiled))


class _Cache(FunctionCache):
    _impl_class = _CacheImplementation


step = numba.njit
"""A scalar step of a rule; it is compiled into the kernels that call it."""


def kernel(function: Callable[..., Any]) -> Any:
    """A loop over arrays: compiled when first called, kept on disk, and free of the GIL."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # made when Numba is imported
        raise RuntimeError(
            "NUMBA_DISABLE_JIT is set, but the engine's kernels only run compiled; unset it, or "
            "use mor_ref.exact, which is plain Python"
        )
    dispatcher: Any = numba.njit(nogil=True)(function)
    if cache_directory():
        dispatcher._cache = _Cache(function)
    return dispatcher
