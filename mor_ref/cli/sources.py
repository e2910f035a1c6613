"""`mor-ref sources`: write sources for other languages."""

from mor_ref.argument_checks import directory_named
from mor_ref.sources import write_sources


def run(out: str) -> None:
    """Write the sources, and print how many there are."""
    written = write_sources(directory_named("out", out))
    print(f"{len(written)} files are in {out}")
