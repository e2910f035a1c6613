"""`mor-ref sources`: write sources for other languages."""

from typing import Annotated

import typer

from mor_ref.cli.options import QuietOption


def write_sources(
    out: Annotated[str, typer.Option(metavar="DIR", help="Directory to write to.")],
    _quiet: QuietOption = False,
) -> None:
    """Write the C99 library, its import into SystemVerilog, and packages of constants.

    The files are mor_ref.h and mor_ref.c; mor_ref_dpi.h, .c and .sv; mor_ref_protocol.hpp and
    mor_ref_candidate.cpp; mor_ref_constants.sv and .vhd.
    """
    from mor_ref import sources
    from mor_ref.argument_checks import directory_named

    written = sources.write_sources(directory_named("out", out))
    typer.echo(f"{len(written)} files are in {out}")
