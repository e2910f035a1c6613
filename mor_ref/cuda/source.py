"""The sources of the kernels: their places, their headers, and their kernels."""

import functools
import hashlib
import re
from pathlib import Path

HERE = Path(__file__).parent
KERNELS = HERE / "kernels"
ON_CPU = HERE / "host"
_INCLUDE = re.compile(r'^#include "([^"]+)"\n', re.MULTILINE)


def program_names() -> tuple[str, ...]:
    """Return the sources that are compiled, each with the headers that it includes."""
    return tuple(sorted(path.stem for path in KERNELS.glob("*.cu")))


@functools.cache
def flattened(name: str, directory: Path = KERNELS) -> str:
    """Return a source for NVRTC: each header of its directory is put in its place, once."""
    return _with_headers(f"{name}.cu", directory, set())


def _with_headers(file: str, directory: Path, seen: set[str]) -> str:
    text = (directory / file).read_text("utf-8").replace("#pragma once\n", "\n")

    def put(match: re.Match[str]) -> str:
        header = match.group(1)
        line = text.count("\n", 0, match.start()) + 2
        if not (directory / header).exists():  # of the CPU's, which NVRTC does not come to
            return match.group(0)
        if header in seen:
            return "\n"
        seen.add(header)
        return (
            f'#line 1 "{header}"\n{_with_headers(header, directory, seen)}#line {line} "{file}"\n'
        )

    return _INCLUDE.sub(put, text)


def digest(*parts: object) -> str:
    """Return a digest of these texts, to name the file made from them."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:24]
