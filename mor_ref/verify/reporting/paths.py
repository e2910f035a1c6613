"""Texts without paths of a machine, which have names of people."""

import re
from pathlib import Path

# Directories of an absolute path, on any system: names may have a space before a separator.
_POSIX = re.compile(r"(?<![\w.…/])(?<!:/)/(?:[^\s/'\"]+/)+")
_WINDOWS = re.compile(r"(?<!\w)[A-Za-z]:\\(?:[^\s\\'\"]+\\)+")


def without_directories(text: str) -> str:
    """Return a text whose absolute paths end in the same names, without their directories.

    >>> without_directories("exec:/srv/work/encoder --table=/srv/t.bin, case 1x16 of nvfp4/te")
    'exec:…/encoder --table=…/t.bin, case 1x16 of nvfp4/te'
    """
    for known in sorted({str(Path.cwd()), str(Path.home())}, key=len, reverse=True):
        if len(known) > 1:
            text = text.replace(known, "…")
    return _WINDOWS.sub(lambda _: "…\\", _POSIX.sub("…/", text))
