"""Expected results that come with the package, how they are made, and how they are checked."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mor_ref.golden.model.suite import Case


def bundled_files() -> Path:
    """Return the directory of the bundled files, in the installed package or in the source tree."""
    package = Path(__file__).resolve().parent
    installed = package / "v1"
    return installed if installed.is_dir() else package.parent.parent / "golden" / "v1"


def load(name: str, directory: Path | None = None) -> "list[Case]":
    """Return the cases of a suite: of the bundled files, or of another directory.

    >>> from mor_ref import golden
    >>> first = golden.load("decode")[0]
    >>> first.name, first.parameters, hex(first.arrays["value"][0x38])
    ('e4m3', {'format': 'e4m3'}, '0x3f800000')
    """
    from mor_ref.argument_checks import known_name
    from mor_ref.golden.store.manifest import read_manifest
    from mor_ref.golden.store.suite_files import read_suite

    where = directory or bundled_files()
    suites = read_manifest(where)["suites"]
    return read_suite(where, name, suites[known_name("suite", name, suites)])
