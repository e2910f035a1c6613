"""A folder while suites are made in it: by one run at a time, and of one program.

The file `.made_by` in the folder is the digest of the sources of the program that made what is in
it, for two versions may make two suites of one name. It is beside the manifest, and not in it: the
manifest stays the same where a comment changes.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mor_ref.golden.files import remove_unfinished
from mor_ref.golden.manifest import GoldenError

RECORD = ".made_by"
_MOST = 1 << 10  # bytes of a record


@dataclass(frozen=True)
class Record:
    """What made the suites of a folder that is held."""

    handle: int

    @property
    def is_of_this_program(self) -> bool:
        """Whether it is this version, to the letter."""
        return os.pread(self.handle, _MOST, 0) == _this_program()

    def sign(self) -> None:
        """Say that it is this version."""
        os.ftruncate(self.handle, 0)
        os.pwrite(self.handle, _this_program(), 0)


@contextmanager
def held(folder: Path, files: Iterable[str]) -> Iterator[Record]:
    """Hold a folder until the end, and take away what runs that were killed left in it.

    `files` are patterns of the names that such runs write.
    """
    folder.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(folder / RECORD, flags, 0o644)
    try:
        _lock(handle, folder)
        for pattern in files:
            remove_unfinished(folder, pattern)
        yield Record(handle)
    finally:
        os.close(handle)


def _lock(handle: int, folder: Path) -> None:
    try:
        # Not flock, which the processes of a run that was killed would keep.
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        raise GoldenError(
            f"{folder} is being filled by another run of mor-ref golden make; wait for its end, or "
            "give another folder"
        ) from None


def _this_program() -> bytes:
    """A line with the digest of all sources of this package."""
    package, digest = Path(__file__).resolve().parent.parent, hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        digest.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return f"{digest.hexdigest()}\n".encode("ascii")
