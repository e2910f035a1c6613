"""The files that commands write: none of them is a file that is read, and each can be written."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import combinations
from pathlib import Path

from mor_ref.golden.store.array_files import ENDINGS
from mor_ref.whole_files import check_writable


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


def outputs_named(argument: str, given: Sequence[str], read: Iterable[Path]) -> list[Path]:
    """Return the paths of several outputs; refuse a file that is named twice as well."""
    inputs = list(read)
    paths = [output_named(argument, one, inputs) for one in given]
    for (k, path), (j, other) in combinations(enumerate(paths), 2):
        if path.resolve() == other.resolve() or _is_same(path, other):
            raise ValueError(
                f"{argument} is {given[j]!r}, the same file as {given[k]!r}; give each file once"
            )
    return paths


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
