"""The arguments of `mor-ref golden`."""

from typing import Annotated

import typer

from mor_ref.cli.options import ExecutorOption, JsonOption

golden_commands = typer.Typer(
    help="List, make and check suites of golden vectors.", no_args_is_help=True
)


@golden_commands.command("list")
def list_suites(
    suite: Annotated[str | None, typer.Argument(help="Show the fields of this one.")] = None,
    cases: Annotated[bool, typer.Option("--cases", help="The names of its cases, a line each.")] = (
        False
    ),
    json: JsonOption = False,
) -> None:
    """List the suites, or show the operation, the fields and the rules of one."""
    from mor_ref.cli import golden as command

    if cases:
        command.run_list_cases(suite, as_json=json)
    else:
        command.run_list(suite, as_json=json)


@golden_commands.command("make")
def make_suites(
    out: Annotated[str, typer.Option(metavar="DIR", help="The folder to make them in.")],
    suites: Annotated[
        list[str] | None, typer.Argument(metavar="SUITE...", help="Default: all.")
    ] = None,
    size: Annotated[int, typer.Option(help="How many times the random inputs.")] = 1,
    seed: Annotated[int, typer.Option(help="Of the random inputs.")] = 0,
    executor: ExecutorOption = "local",
) -> None:
    """Make suites from the exact model. A second run finishes what was interrupted."""
    from mor_ref.cli import golden as command

    command.run_make(suites or [], out, size, seed, executor)


@golden_commands.command("check")
def check_suites(
    folder: Annotated[
        str | None, typer.Argument(metavar="DIR", help="Default: the kept suites.")
    ] = None,
    suite: Annotated[
        list[str] | None, typer.Option(help="Only this suite; may be repeated.")
    ] = None,
    same_as: Annotated[
        str | None, typer.Option(metavar="DIR", help="Also hold the manifest to that of DIR.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Hold files to their manifest, and every value to the exact model and the engine.

    Exits with 1 if anything is off, and says in which suite, case and field; with 2 if files cannot
    be used at all.
    """
    from mor_ref.cli import golden as command

    raise typer.Exit(command.run_check(folder, suite or [], same_as, as_json=json))


@golden_commands.command("export")
def export_suites(
    to: Annotated[str, typer.Option(help="jsonl, testfloat, readmemh, c or npz.")],
    out: Annotated[str, typer.Option(metavar="DIR", help="The folder to write to.")],
    folder: Annotated[
        str | None, typer.Argument(metavar="DIR", help="Default: the kept suites.")
    ] = None,
    suite: Annotated[
        list[str] | None, typer.Option(help="Only this suite; may be repeated.")
    ] = None,
    view: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD@VIEW",
            help="Also a field in a kernel's layout, as block_scale@swizzled_128x4; repeatable.",
        ),
    ] = None,
) -> None:
    """Write suites for other languages and tools; what every column means is written with them."""
    from mor_ref.cli import golden as command

    command.run_export(folder, to, out, suite or [], view or [])
