"""The cost of golden vectors: processor time of making, checking and verifying all of them.

Each command begins without compiled kernels, as on a new machine. `python -m benchmarks.golden
docs` measures them, keeps the figures next to docs/speed.md, and writes its last section.
"""

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import cpuinfo

FILE, PAGE = "golden-speed.json", "speed.md"
TITLE = "## Golden vectors"
_PROGRAM = str(Path(sys.executable).with_name("mor-ref"))
_COMMANDS = {
    "golden make": ("golden", "make", "--out", "made"),
    "verify numba": ("verify", "numba", "--vectors", "made"),
    "golden check": ("golden", "check", "made"),
}
_WORDS = {
    "golden make": "the exact model computes all suites, and each witness of a deviation is "
    "checked; `make golden` is this",
    "verify numba": "the engine computes them, too, and is compared; most of it is compiling",
    "golden check": "the exact model computes all of them anew, in several processes",
}
_SECTION = """\
{title}

All suites, without compiled kernels at the beginning, by `python -m benchmarks.golden docs`.
Measured on: {cpu}, {cores} cores, Python {python}.

| command | what it does | processor time | wall time |
| --- | --- | --: | --: |
{rows}
"""


def measured(directory: Path) -> dict[str, dict[str, float]]:
    """Return the seconds of each command, in an empty directory."""
    seconds = {}
    for name, command in _COMMANDS.items():
        with tempfile.TemporaryDirectory() as kernels:
            environment = {**os.environ, "NUMBA_CACHE_DIR": kernels}
            before, start = _processor_time(), time.perf_counter()
            subprocess.run(  # noqa: S603  # this program
                [_PROGRAM, *command],
                cwd=directory,
                env=environment,
                check=True,
                stdout=subprocess.DEVNULL,
            )
            spent = {"wall": time.perf_counter() - start, "processor": _processor_time() - before}
            seconds[name] = {clock: round(each, 1) for clock, each in spent.items()}
    return seconds


def _processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def section(results: dict[str, Any]) -> str:
    """Return the section of docs/speed.md."""
    rows = (
        f"| `{name}` | {_WORDS[name]} | {spent['processor']:.0f} s | {spent['wall']:.0f} s |"
        for name, spent in results["seconds"].items()
    )
    return _SECTION.format(title=TITLE, rows="\n".join(rows), **results["machine"])


def with_section(page: str, results: dict[str, Any]) -> str:
    """Return the page with this section at its end."""
    return f"{page.partition(TITLE)[0].rstrip()}\n\n{section(results)}"


def read(docs: Path) -> dict[str, Any]:
    """Return the figures that are kept next to the page."""
    results: dict[str, Any] = json.loads((docs / FILE).read_text(encoding="utf-8"))
    return results


def main() -> None:
    """Measure, and write the figures and the section into a directory."""
    docs = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as directory:
        seconds = measured(Path(directory))
    cpu = cpuinfo.get_cpu_info()["brand_raw"]
    machine = {"cpu": cpu, "cores": os.cpu_count(), "python": platform.python_version()}
    results = {"machine": machine, "seconds": seconds}
    (docs / FILE).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    page = (docs / PAGE).read_text(encoding="utf-8")
    (docs / PAGE).write_text(with_section(page, results), encoding="utf-8")


if __name__ == "__main__":
    main()
