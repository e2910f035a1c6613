"""The origin of a report: its date, candidate and machine, without names of people and hosts."""

import hashlib
import importlib.util
import os
import platform
import re
import shlex
import shutil
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import numpy as np

import mor_ref

_CHUNK = 1 << 20
_NAMED = 4  # files
_SOURCES = (".py", ".cu", ".cuh", ".h", ".cpp", ".so")


@dataclass(frozen=True)
class Origin:
    """The origin of a report."""

    date: str
    candidate: str
    machine: str
    software: str
    vectors: str


def origin_here(candidate: str, vectors: Path) -> Origin:
    """Return the origin of a report that is made now, on a candidate of this name."""
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
    return Origin(
        _date(),
        candidate_digest(candidate),
        ", ".join(filter(None, [_processor(), _system(), *_gpus()])),
        f"mor_ref {mor_ref.__version__}, {versions}",
        _of_vectors(vectors / "MANIFEST.json"),
    )


def _of_vectors(manifest: Path) -> str:
    """Return the digest of a manifest, which has the digests of all suites; "" without one."""
    return f"SHA-256 {digest_of([manifest])} of {manifest.name}" if manifest.is_file() else ""


def digest_of(files: Iterable[Path]) -> str:
    """Return the SHA-256 of files: of the one, or of the digests of all, in the given order."""
    digests = []
    for path in files:
        found = hashlib.sha256()
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                found.update(chunk)
        digests.append(found.hexdigest())
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def _date() -> str:
    """Return the time in UTC; SOURCE_DATE_EPOCH replaces it, as in other programs that build."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(epoch), UTC) if epoch.isdigit() else datetime.now(UTC)
    return now.strftime("%Y-%m-%d %H:%M UTC")


def candidate_digest(name: str) -> str:
    """Return the digest of a candidate's files, with their names."""
    kind, _, rest = name.partition(":")
    if kind == "peer":
        return _of_library(rest)
    with suppress(OSError, ValueError, ImportError):
        if files := _files_of(kind, rest):
            names = ", ".join(path.name for path in files)
            of = names if len(files) <= _NAMED else f"{len(files):,} files"
            return f"SHA-256 {digest_of(files)} of {of}"
    return "no file of it was found"


def _of_library(name: str) -> str:
    """Return the version of a library, which may have another name than its module."""
    module = name.replace("-", "_")
    for package in metadata.packages_distributions().get(module, [name]):
        with suppress(metadata.PackageNotFoundError):
            return f"{package} {metadata.version(package)}"
    return f"{name}, of an unknown version"


def _files_of(kind: str, rest: str) -> list[Path]:
    """Return the files of a candidate: of its module, its program, its results or this package."""
    if kind == "dir":
        return sorted(path for path in Path(rest).rglob("*") if path.is_file())
    if kind == "exec":
        program, *arguments = shlex.split(rest)
        found = [Path(shutil.which(program) or program), *map(Path, arguments)]
        return [path for path in found if path.is_file()]
    module = kind if rest and kind != "cuda-ptx" else "mor_ref"
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.origin:
        return []
    if spec.submodule_search_locations is None:
        return [Path(spec.origin)]
    sources = Path(spec.origin).parent.rglob("*")
    return sorted(path for path in sources if path.suffix in _SOURCES)


def _processor() -> str:
    """Return the name of the processor and its architecture."""
    name = platform.processor()
    with suppress(OSError):
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
        if found := re.search(r"^model name\s*: *(.+)$", text, re.MULTILINE):
            name = found[1]
    return " ".join(dict.fromkeys(filter(None, [name.strip(), platform.machine()])))


def _system() -> str:
    """Return the system and the digits of its version: the rest may name a person or a host."""
    version = re.match(r"[\d.]*\d", platform.release())
    return " ".join(filter(None, [platform.system(), version and version[0]]))


def _gpus() -> list[str]:
    """Return the name of the GPU that a library in use works on, if there is one."""
    with suppress(Exception):  # somebody's library, which may be broken: the report is written
        if (cupy := sys.modules.get("cupy")) is not None and cupy.cuda.is_available():
            return [cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()]
        if (torch := sys.modules.get("torch")) is not None and torch.cuda.is_initialized():
            return [torch.cuda.get_device_name()]
    return []
