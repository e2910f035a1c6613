"""Expected results that are kept with the package, how they are made, and how they are checked."""

from pathlib import Path


def kept_files() -> Path:
    """The folder of the kept files: inside an installed package, or beside a source tree's."""
    package = Path(__file__).resolve().parent
    installed = package / "v1"
    return installed if installed.is_dir() else package.parent.parent / "golden" / "v1"
