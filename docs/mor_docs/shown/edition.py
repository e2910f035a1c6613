"""The edition of a document: version, date and commit."""

import subprocess
from datetime import UTC, datetime

import mor_ref
from mor_docs.trace import ROOT


def line() -> str:
    """Show the version of mor_ref, and the commit with its date, if there is one."""
    version = f"Version {mor_ref.__version__}"
    asked = ["git", "-C", str(ROOT), "log", "-1", "--format=%cs %h"]
    try:
        found = subprocess.run(asked, capture_output=True, text=True, check=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):  # a copy without its history
        return f"{version}, printed on {datetime.now(UTC).date()}"
    date, commit = found.stdout.split()
    return f"{version}, {date}, commit {commit}"
