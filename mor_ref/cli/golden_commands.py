"""The arguments of `mor-ref golden`."""

from typing import Annotated

import typer

from mor_ref.cli.commands import Group
from mor_ref.cli.options import ExecutorOption, JsonOption, QuietOption

SameAsOption = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Also compare the manifest with the manifest of DIR."),
]

golden_commands = typer.Typer(
    cls=Group, help="List, make and check suites of golden vectors.", no_args_is_help=True
)


@golden_commands.command("list")
def list_suites(
    suite: Annotated[
        str | None, typer.Argument(metavar="SUITE", help="Show the fields of this suite.")
    ] = None,
    cases: Annotated[bool, typer.Option("--cases", help="Print the names of its cases.")] = (False),
    json: JsonOption = False,
) -> None:
    """List the suites, or show the operation, fields and rules of one suite."""
    from mor_ref.cli import golden as command

    if cases:
        command.run_list_cases(suite, as_json=json)
    else:
        command.run_list(suite, as_json=json)


@golden_commands.command("make")
def make_suites(
    out: Annotated[str, typer.Option(metavar="DIR", help="Directory of the suites.")],
    suites: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SUITE",
            help="Suites to make, files of TOML with a block format or a policy, or recipes of "
            "one; default: all suites.",
        ),
    ] = None,
    size: Annotated[int, typer.Option(help="Multiply the random inputs by this number.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the random inputs.")] = 0,
    same_as: SameAsOption = None,
    search: Annotated[
        bool,
        typer.Option(
            "--search",
            help="Search where each mistake differs, instead of checking where the bundled "
            "manifest says so; this takes ten times as long.",
        ),
    ] = False,
    executor: ExecutorOption = "local",
    _quiet: QuietOption = False,
) -> None:
    """Make suites from the exact model. A second run finishes an interrupted one.

    The suite of a block format has its name, and comes with a page of its rules.
    """
    from mor_ref.cli import golden as command

    status = command.run_make(suites or [], out, size, seed, same_as, executor, searches=search)
    raise typer.Exit(status)


@golden_commands.command("mistakes")
def list_mistakes(
    name: Annotated[
        str,
        typer.Argument(metavar="FORMAT", help="File of a block format, recipe, or suite: encode."),
    ],
    size: Annotated[int, typer.Option(help="Multiply the random inputs by this number.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the random inputs.")] = 0,
    prove: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Prove that those that no entry shows have the same bits for all numbers, or find "
            "numbers that show them; each question to the solver has so many seconds.",
        ),
    ] = None,
    _quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Count the mistakes of kernels that golden vectors show: of a block format, or of a suite.

    The mistakes of a block format follow from its formulas: each operator, rounding, amax and try,
    done otherwise. Those that no entry shows are printed; some of them have the same bits for all
    numbers, which --prove proves. Those of a suite follow from the exact model, and derived inputs
    are tried as well.
    """
    from mor_ref.cli import golden as command

    command.run_mistakes(name, size, seed, prove, as_json=json)


@golden_commands.command("check")
def check_suites(
    directory: Annotated[
        str | None,
        typer.Argument(metavar="DIR", help="Directory of suites; default: the bundled suites."),
    ] = None,
    suite: Annotated[
        list[str] | None, typer.Option(help="Only this suite; may be repeated.")
    ] = None,
    same_as: SameAsOption = None,
    _quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Compare files with their manifest, and every value with the exact model.

    Exits with 1 if anything differs, and names the suite, the case and the field. Exits with 2 if
    files cannot be used at all.
    """
    from mor_ref.cli import golden as command

    raise typer.Exit(command.run_check(directory, suite or [], same_as, as_json=json))


@golden_commands.command("export")
def export_suites(
    to: Annotated[str, typer.Option(help="Form: jsonl, testfloat, readmemh, c or npz.")],
    out: Annotated[str, typer.Option(metavar="DIR", help="Directory to write to.")],
    directory: Annotated[
        str | None,
        typer.Argument(metavar="DIR", help="Directory of suites; default: the bundled suites."),
    ] = None,
    suite: Annotated[
        list[str] | None, typer.Option(help="Only this suite; may be repeated.")
    ] = None,
    view: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD@VIEW",
            help="Also write a field in this layout: block_scale@swizzled_128x4; may be repeated.",
        ),
    ] = None,
    _quiet: QuietOption = False,
) -> None:
    """Write suites for other languages and tools, with the meaning of every column."""
    from mor_ref.cli import golden as command

    command.run_export(directory, to, out, suite or [], view or [])
