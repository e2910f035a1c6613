"""The files that `mor-ref sources` writes."""

from collections.abc import Iterator
from pathlib import Path

from mor_ref.sources.constants import systemverilog, vhdl
from mor_ref.whole_files import write_inside

_WRITTEN_BY_HAND = Path(__file__).resolve().parent / "c"


def write_sources(directory: str | Path) -> list[Path]:
    """Write the sources to a directory, and return their paths.

    `mor_ref.h` and `mor_ref.c` are a library in C99. `mor_ref_dpi.h`, `mor_ref_dpi.c` and
    `mor_ref_dpi.sv` import it into SystemVerilog. `mor_ref_protocol.hpp` reads the questions of
    `mor-ref verify exec:PROGRAM` in C++, and `mor_ref_candidate.cpp` answers them with the library.
    `mor_ref_constants.sv` and `mor_ref_constants.vhd` are the numbers of the catalogues.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     paths = write_sources(directory)
    ...     (paths[0].name, paths[0].read_text().splitlines()[0][:44])
    ('mor_ref.c', '/* The functions of mor_ref.h, written from ')
    """
    target = Path(directory)
    written = []
    for name, content in sorted(_sources()):
        write_inside(target, name, content)
        written.append(target / name)
    return written


def _sources() -> Iterator[tuple[str, bytes]]:
    for path in _WRITTEN_BY_HAND.iterdir():
        yield path.name, path.read_bytes()
    yield "mor_ref_constants.sv", systemverilog().encode("ascii")
    yield "mor_ref_constants.vhd", vhdl().encode("ascii")
