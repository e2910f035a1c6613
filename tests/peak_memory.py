"""The most memory that a process of mor-ref has used, which only Linux says."""

import subprocess
import sys
from pathlib import Path

import pytest

_STATUS = Path("/proc/self/status")
# The numbers of getrusage begin with the memory of the process that starts another.
_SAID = (
    "import atexit, sys; atexit.register(lambda: "
    f"sys.stderr.write(open({str(_STATUS)!r}).read().split('VmHWM:')[1].split()[0])); "
)


def saying_peak():
    """Return code that makes a process write its peak in kibibytes at its end, or skip the test."""
    if not _STATUS.exists():
        pytest.skip("only Linux says how much memory a process has used at most")
    return _SAID


def megabytes_of(*arguments):
    """Return the peak of a command."""
    code = saying_peak() + "from mor_ref.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return int(done.stderr.split()[-1]) / 1024
