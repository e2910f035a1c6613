"""The processor's modes that somebody's code sets, kept from all other code."""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

_LARGEST = 64  # bytes of an environment; those of the C libraries take 8 to 32
_get: Callable[[Any], Any] | None = None
_set: Callable[[Any], Any] | None = None
with suppress(AttributeError, OSError, TypeError):  # without a C library of POSIX they stay as left
    _library = ctypes.CDLL(None)
    _get, _set = _library.fegetenv, _library.fesetenv


class OtherModes:
    """The modes that somebody's code leaves: its next call has them, and no other code does."""

    def __init__(self) -> None:
        self._left: ctypes.Array[ctypes.c_char] | None = None

    @contextmanager
    def within(self) -> Iterator[None]:
        """Run that code under the modes that it left when it ran last; then restore ours."""
        ours = _modes()
        _become(self._left or ours)
        try:
            yield
        finally:
            self._left = _modes()
            _become(ours)


def _modes() -> ctypes.Array[ctypes.c_char]:
    """Return the modes of this thread."""
    found = ctypes.create_string_buffer(_LARGEST)
    if _get:
        _get(found)
    return found


def _become(modes: ctypes.Array[ctypes.c_char]) -> None:
    """Set the modes of this thread."""
    if _set:
        _set(modes)
