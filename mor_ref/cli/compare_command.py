"""`mor-ref compare`: its arguments."""

from typing import Annotated

import typer

from mor_ref.cli.options import (
    FILES,
    ExcludeOption,
    ExecutorOption,
    IncludeOption,
    JsonOption,
    KindOption,
    QuietOption,
    ThreadsOption,
    recipes_in_files,
)

_ALL_SHAPES = typer.Option(
    "--all-shapes",
    help="Also vectors, and the state of optimizers; default: matrices of models only.",
)
_REPRESENTATIONS = typer.Option(
    "--representations", "--schemes", help="Also the usual recipes of every representation."
)
_INPUTS = typer.Option(
    metavar="FILE",
    help="Also the errors under inputs of layers: tensor NAME of this file is the input of weight "
    "NAME, with a row for each sample. May be repeated.",
)


def compare_recipes(
    files: Annotated[list[str], FILES],
    recipe: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RECIPE",
            help="How tensors are quantized, such as mxfp8:rceil or mor:three_way; may be "
            "repeated. A file of TOML is one, too. Default: eight usual ones.",
            callback=recipes_in_files,
        ),
    ] = None,
    representations: Annotated[bool, _REPRESENTATIONS] = False,
    include: IncludeOption = None,
    exclude: ExcludeOption = None,
    all_shapes: Annotated[bool, _ALL_SHAPES] = False,
    inputs: Annotated[list[str] | None, _INPUTS] = None,
    out: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Also write all measures: .csv, .json, .parquet; the totals with intervals: .md, "
            ".tex; or a picture: .png, .svg, .pdf. May be repeated.",
        ),
    ] = None,
    pareto: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Also draw bits against SQNR, for a paper: .svg, .pdf, .png. May be repeated.",
        ),
    ] = None,
    kind: KindOption = "weight",
    threads: ThreadsOption = None,
    executor: ExecutorOption = "local",
    _quiet: QuietOption = False,
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
        representations=representations,
        selection=Selection(include, exclude, matrices_only=not all_shapes),
        inputs=inputs or [],
        out=out or [],
        pareto=pareto or [],
        kind=kind,
        threads=threads,
        executor=executor,
        as_json=json,
    )
