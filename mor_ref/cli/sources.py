"""`mor-ref sources`: write sources for other languages."""

from typing import Annotated

import typer

from mor_ref.cli.options import QuietOption, recipes_in_files


def write_sources(
    out: Annotated[str, typer.Option(metavar="DIR", help="Directory to write to.")],
    recipe: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RECIPE",
            help="Also write the header of a block format: nvfp4:te_2_13, e4m3:gam:128x128, or a "
            "file of TOML; may be repeated.",
            callback=recipes_in_files,
        ),
    ] = None,
    _quiet: QuietOption = False,
) -> None:
    """Write the C99 library, its import into SystemVerilog, and packages of constants.

    The files are mor_ref.h and mor_ref.c; mor_ref_blocks.h; mor_ref_dpi.h, .c and .sv;
    mor_ref_protocol.hpp and mor_ref_candidate.cpp; mor_ref_constants.sv and .vhd. The header of a
    block format has its name, and its formulas in C99 and CUDA.
    """
    from mor_ref import sources
    from mor_ref.argument_checks import directory_named

    written = sources.write_sources(directory_named("out", out), recipe or [])
    typer.echo(f"{len(written)} files are in {out}")
