"""The commands of streams of test cases: `mor-ref gen` and `mor-ref ver`."""

from typing import Annotated

import typer

from mor_ref.cli.options import NAN, ZERO_SIGN, QuietOption

StreamArgument = Annotated[
    str,
    typer.Argument(
        metavar="SUITE[/CASE[:TILE]]",
        help="For example encode/e4m3.f32.rne.satfinite.canonical, mx_blocks/e4m3.floor, or "
        "nvfp4_blocks/te:16x16 for larger tiles.",
    ),
]
LinesOption = Annotated[str, typer.Option("--format", help="Format of the lines: testfloat.")]


def generate_cases(
    suite: StreamArgument,
    lines: LinesOption = "testfloat",
    seed: Annotated[int, typer.Option(help="Seed of the random inputs.")] = 0,
    count: Annotated[
        int | None, typer.Option(help="Number of cases; default: without end.")
    ] = None,
) -> None:
    """Write test cases, one a line: the bundled ones of a suite, then random ones.

    A device appends its results to each line. mor-ref ver checks them.
    """
    from mor_ref.cli import stream

    raise typer.Exit(stream.run_gen(suite, lines, seed, count))


def verify_lines(
    suite: StreamArgument,
    lines: LinesOption = "testfloat",
    errors: Annotated[int, typer.Option(help="Stop after this number of mismatches.")] = 20,
    count: Annotated[
        int | None, typer.Option(help="Check this number of lines, not fewer; default: all.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of mor-ref gen: fail if the lines are not those of this seed."),
    ] = None,
    fields: Annotated[
        str | None,
        typer.Option(
            help="The results of a line in order, such as scale,code,y. Default: for a block, its "
            "scales and codes; for a dot product, its result; for integers, int32_sum and the "
            "result."
        ),
    ] = None,
    nan: Annotated[str, NAN] = "exact",
    zero_sign: Annotated[str, ZERO_SIGN] = "exact",
    _quiet: QuietOption = False,
) -> None:
    """Check lines of inputs and results, as mor-ref gen and a device write them.

    Exits with 0 if all match, and with 1 if a result is wrong. Exits with 2 for a wrong call, or if
    a line cannot be read before any wrong result.
    """
    from mor_ref.cli import stream

    raise typer.Exit(stream.run_ver(suite, lines, errors, count, seed, fields, (nan, zero_sign)))
