"""A directory while suites are made in it: by one run at a time, and by one program.

The file `.made_by` in the directory is a digest of the program that made the suites: of its
sources, and of a user's modules of rows. Two versions may make two suites of one name. The manifest
does not contain the digest: it stays the same if a comment changes.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mor_ref.golden.store.manifest import GoldenError
from mor_ref.whole_files import remove_unfinished
from mor_ref.workers.added_rows import digest_of_program, modules_of_rows

RECORD = ".made_by"
_MOST = 1 << 10  # bytes of a record


@dataclass(frozen=True)
class MadeBy:
    """The record of the program that made the suites of a locked directory."""

    handle: int

    @property
    def is_of_this_program(self) -> bool:
        """Whether it names this program, with the same sources."""
        return os.pread(self.handle, _MOST, 0) == _this_program()

    @property
    def is_signed(self) -> bool:
        """Whether the record names the version that made the files."""
        return os.fstat(self.handle).st_size > 0

    def sign(self) -> None:
        """Say that it is this version."""
        os.ftruncate(self.handle, 0)
        os.pwrite(self.handle, _this_program(), 0)


@contextmanager
def lock_directory(directory: Path, files: Iterable[str]) -> Iterator[MadeBy]:
    """Lock a directory until the end, and remove unfinished files of runs that were killed.

    `files` are patterns of the names that runs write.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GoldenError(
            f"{directory} cannot be made ({error.strerror}); give a directory, or a name for a "
            "new one"
        ) from error
    handle = _opened_record(directory / RECORD)
    try:
        _lock(handle, directory)
        for pattern in files:
            remove_unfinished(directory, pattern)
        yield MadeBy(handle)
    finally:
        os.close(handle)


def _opened_record(path: Path) -> int:
    """Open a file of the directory, or make it; refuse a link, and all but regular files."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(path, flags, 0o644)
    except OSError as error:
        reason = "it is a link" if error.errno == errno.ELOOP else error.strerror
        raise _unusable(path, reason) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _unusable(path, "it is not a regular file")
    return handle


def _unusable(path: Path, reason: str | None) -> GoldenError:
    return GoldenError(
        f"{path} cannot be written ({reason}); remove it if it exists, or give a directory "
        "that can be written to"
    )


def _lock(handle: int, directory: Path) -> None:
    try:
        # Not flock, which the processes of a run that was killed would keep.
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        raise GoldenError(
            f"{directory} is being filled by another run of mor-ref golden make; wait for its end, "
            "or give another directory"
        ) from None


def _this_program() -> bytes:
    return f"{digest_of_program(modules_of_rows())}\n".encode("ascii")
