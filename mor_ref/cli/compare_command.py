"""`mor-ref compare`: its arguments."""

from typing import Annotated

import typer

from mor_ref.cli.options import FILES, JsonOption


def compare_recipes(
    files: Annotated[list[str], FILES],
    recipe: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RECIPE",
            help="How tensors are quantized, such as mxfp8:rceil or mor:three_way; may be "
            "repeated. Default: eight usual ones.",
        ),
    ] = None,
    include: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Only tensors whose name has this.")
    ] = None,
    exclude: Annotated[
        str | None, typer.Option(metavar="REGEX", help="No tensors whose name has this.")
    ] = None,
    all_shapes: Annotated[
        bool, typer.Option("--all-shapes", help="Also vectors; default: matrices only.")
    ] = False,
    out: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Also write all measures: .csv, .json, .parquet, or a picture: .png; may be "
            "repeated.",
        ),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(help="Number of threads; default: all processors.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Compare recipes on the tensors of files: errors, SQNR, and bits for each number.

    The totals count every number once. A recipe is beaten if another is better in bits, in error
    or in SQNR, and worse in none of them.
    """
    from mor_ref.analysis.listing import Selection
    from mor_ref.cli import compare

    compare.run(
        files,
        recipes=recipe or [],
        selection=Selection(include, exclude, matrices_only=not all_shapes),
        out=out or [],
        threads=threads,
        as_json=json,
    )
