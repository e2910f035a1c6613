"""The command line, run while the site is built: what a page shows is what it printed."""

import re
import subprocess
import sys
from pathlib import Path

from mor_docs.trace import ROOT

_PROGRAM = (
    f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom mor_ref.cli import main\nsys.exit(main())"
)


def mor_ref_in(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run mor-ref in a directory."""
    return python_in(folder, "-c", _PROGRAM, *arguments)


def python_in(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run Python in a directory."""
    return subprocess.run(  # noqa: S603, programs of the project's own pages
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


def block_of(page: str, begins: str) -> str:
    """Return the text after a line that begins a block of code in a page, up to its end."""
    found = re.search(
        rf"{re.escape(begins)}\n(.*?)^```",
        (ROOT / page).read_text("utf-8"),
        re.DOTALL | re.MULTILINE,
    )
    if found is None:
        raise ValueError(f"{page} has no block of code with the line {begins}")
    return found[1]
