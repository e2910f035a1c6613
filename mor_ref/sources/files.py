"""The files that `mor-ref sources` writes."""

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.recipes import RecipeLike, as_block_format
from mor_ref.sources.block_formats import header, identifier
from mor_ref.sources.constants import systemverilog, vhdl
from mor_ref.whole_files import write_inside

_WRITTEN_BY_HAND = Path(__file__).resolve().parent / "c"


def write_sources(directory: str | Path, recipes: Iterable[RecipeLike] = ()) -> list[Path]:
    """Write the sources to a directory, and return their paths.

    `mor_ref.h` and `mor_ref.c` are a library in C99. `mor_ref_dpi.h`, `mor_ref_dpi.c` and
    `mor_ref_dpi.sv` import it into SystemVerilog. `mor_ref_protocol.hpp` reads the questions of
    `mor-ref verify exec:PROGRAM` in C++, and `mor_ref_candidate.cpp` answers them with the library.
    `mor_ref_constants.sv` and `mor_ref_constants.vhd` are the numbers of the catalogues.

    Each of `recipes` is a block format, or the text or the name of one. A header of its name has it
    in C99 and CUDA, with the steps in `mor_ref_blocks.h`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     paths = write_sources(directory)
    ...     (paths[0].name, paths[0].read_text().splitlines()[0][:44])
    ('mor_ref.c', '/* The functions of mor_ref.h, written from ')
    """
    target = Path(directory)
    written = []
    headers = _headers(list(map(as_block_format, recipes)))
    for name, content in sorted((*_sources(), *headers)):
        write_inside(target, name, content)
        written.append(target / name)
    return written


def _sources() -> Iterator[tuple[str, bytes]]:
    for path in _WRITTEN_BY_HAND.iterdir():
        yield path.name, path.read_bytes()
    yield "mor_ref_constants.sv", systemverilog().encode("ascii")
    yield "mor_ref_constants.vhd", vhdl().encode("ascii")


def _headers(block_formats: Collection[BlockFormat]) -> Iterator[tuple[str, bytes]]:
    """Yield the headers of block formats, whose names have to differ in C and in a directory."""
    by_hand = [path.read_text("ascii") for path in _WRITTEN_BY_HAND.iterdir()]
    library = set(re.findall(r"\bmor_\w+", "".join(by_hand)))
    names = {path.stem for path in _WRITTEN_BY_HAND.iterdir()}
    seen: set[str] = set()
    for record in dict.fromkeys(block_formats):
        own = identifier(record)
        if record.name in names or any(word.startswith(f"mor_{own}_") for word in library):
            raise ValueError(
                f"block format {record.name!r} has a name that names of the C library begin with; "
                "give it another name"
            )
        if own.casefold() in seen:
            raise ValueError(
                f"two block formats have the name {record.name!r}; give them other names"
            )
        seen.add(own.casefold())
        yield f"{record.name}.h", header(record).encode("ascii")
