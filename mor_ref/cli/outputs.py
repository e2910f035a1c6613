"""The files that commands write: none of them is a file that is read, and each can be written."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from mor_ref.golden.store.array_files import ENDINGS
from mor_ref.golden.store.whole_files import check_writable


def output_named(argument: str, given: str, read: Iterable[Path]) -> Path:
    """Return the path of an output; refuse a file that is read, and one that cannot be written.

    Files are compared, not their names: links, and names in other letters on some file systems,
    lead to the same file. A command calls this before it computes anything.
    """
    if not given:  # a path that would mean the current directory
        raise ValueError(f"{argument} is ''; give the name of a file")
    path = Path(given)
    if any(_is_same(path, other) for other in read):
        raise ValueError(f"{argument} is {given!r}, which is also an input; give another file")
    try:
        check_writable(path)
    except OSError as error:
        raise ValueError(
            f"{argument} is {given!r}, which cannot be written ({error.strerror}); give a file in "
            "a directory that is there and can be written to"
        ) from error
    return path


def arrays_named(argument: str, given: str, read: Iterable[Path]) -> Path:
    """Return the path of a file of arrays, whose directory is made if it is not there."""
    path = Path(given)
    if path.suffix not in ENDINGS:
        raise ValueError(
            f"{argument} is {given!r}; give a file that ends in one of {', '.join(ENDINGS)}"
        )
    with suppress(OSError):  # which is said below
        path.parent.mkdir(parents=True, exist_ok=True)
    return output_named(argument, given, read)


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except (OSError, ValueError):  # one of them is not there
        return False
