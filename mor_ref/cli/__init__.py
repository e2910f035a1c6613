"""The command line: it reads arguments and shows results; other packages compute them.

Everything beyond Typer is imported by the command that needs it, so that --help answers at once.
"""

import sys
from typing import Annotated

import typer

from mor_ref.cli.commands import Command, Group
from mor_ref.cli.compare_command import compare_recipes
from mor_ref.cli.golden_commands import golden_commands
from mor_ref.cli.number_commands import (
    NanOption,
    OverflowOption,
    SourceOption,
    decode_codes,
    encode_numbers,
)
from mor_ref.cli.options import (
    CANDIDATE,
    COMPLETE,
    DECLARE,
    DOMAIN,
    FILES,
    INPUTS,
    NAN,
    POLICY,
    RECIPE,
    REPORT,
    SCALING,
    SITE,
    TIES,
    ZERO_SIGN,
    ExcludeOption,
    ExecutorOption,
    IncludeOption,
    JsonOption,
    KindOption,
    QuietOption,
    RandomBitsOption,
    RandomWordOption,
    RoundingOption,
    RowsOption,
    ThreadsOption,
    TimeoutOption,
)
from mor_ref.cli.output_text import former_names_printed, printable_streams, status_of
from mor_ref.cli.quantize_commands import dequantize_file, quantize_files
from mor_ref.cli.sources import write_sources
from mor_ref.cli.statuses import Status
from mor_ref.cli.stream_commands import generate_cases, verify_lines
from mor_ref.signals import signals_unwind

app = typer.Typer(
    name="mor-ref",
    cls=Group,
    help="Find out which bit of an FP8, MX or NVFP4 kernel is wrong, and why.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
_ENGINE_THREADS = typer.Option(
    help="Threads of the engine; default: all processors, or one for each worker."
)


def _print_version(wanted: bool) -> None:
    if wanted:
        import mor_ref

        typer.echo(f"mor-ref {mor_ref.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            "-V",
            metavar="",
            help="Print the version.",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
    rows: RowsOption = None,
) -> None:
    if rows:
        from mor_ref.workers.added_rows import add_rows

        add_rows(tuple(rows))


@app.command("formats")
def show_formats(
    name: Annotated[
        str | None, typer.Argument(metavar="FORMAT", help="Show this format, code by code.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the formats, or show the layout, special codes and values of one format."""
    from mor_ref.cli import formats

    formats.run(name, as_json=json)


def _add_listing(what: str, words: str) -> None:
    def listing(json: JsonOption = False) -> None:
        from mor_ref.cli import listings

        listings.run(what, as_json=json)

    app.command(what, help=words)(listing)


_add_listing("recipes", "List the usual recipes, each with what it is in full.")
_add_listing("profiles", "List the profiles of libraries and chips, and the scale rules of MX.")
_add_listing("policies", "List the policies, each with its rungs.")
_add_listing("roundings", "List the roundings, each with what it does.")


@app.command("help")
def show_help(
    context: typer.Context,
    command: Annotated[list[str] | None, typer.Argument(metavar="COMMAND")] = None,
) -> None:
    """Show the help of a command, as COMMAND --help does."""
    from typer.main import get_command

    get_command(app).main([*(command or []), "--help"], prog_name=context.find_root().info_name)


# A negative number is an argument, not an unknown option. No option here has a short name, because
# -inf would contain it.
_NEGATIVE = {"ignore_unknown_options": True}


@app.command("explain", context_settings=_NEGATIVE)
def explain_value(
    value: Annotated[
        str, typer.Argument(metavar="NUMBER", help="0.3, 0x1.8p-2, or a bit pattern: 0x3f800000.")
    ],
    fmt: Annotated[str, typer.Option("--format", help="The target format.")],
    rounding: RoundingOption = None,
    overflow: OverflowOption = None,
    nan: NanOption = None,
    profile: Annotated[
        str | None, typer.Option("--profile", "--preset", help="cuda, ml_dtypes or torch.")
    ] = None,
    source: SourceOption = None,
    random_word: RandomWordOption = None,
    n_random_bits: RandomBitsOption = None,
    json: JsonOption = False,
) -> None:
    """Show the code of one number, and the rule of the specification that decides it."""
    from mor_ref.cli import explain

    explained = explain.explainer(
        fmt,
        rounding=rounding,
        overflow=overflow,
        nan=nan,
        profile=profile,
        source=source,
        random_word=random_word,
        n_random_bits=n_random_bits,
    )
    explain.run(value, explained, as_json=json)


@app.command("exhaustive")
def run_exhaustive(
    fmt: Annotated[str, typer.Argument(metavar="FORMAT", help="The target format.")],
    rounding: RoundingOption = None,
    overflow: Annotated[str, typer.Option(help="satfinite or ieee.")] = "satfinite",
    random_word: RandomWordOption = None,
    n_random_bits: RandomBitsOption = None,
    threads: Annotated[int | None, _ENGINE_THREADS] = None,
    brief: Annotated[bool, typer.Option("--brief", help="Leave out the CRC-32 lines.")] = False,
    candidate: Annotated[
        str | None,
        typer.Option(help="Run this candidate instead of the engine; named as for mor-ref verify."),
    ] = None,
    chunks: Annotated[
        str | None,
        typer.Option(
            metavar="FIRST:END", help="Chunks of 2^24 inputs to run; default: all, 0:256."
        ),
    ] = None,
    timeout: TimeoutOption = 60.0,
    executor: ExecutorOption = "local",
    _quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Encode all 2^32 float32 inputs, and compare the digests with the bundled ones.

    Exits with 1 if they differ, and names the first input that differs. With sr, all inputs share
    one random word, and the exact model computes the digest. A candidate gets 2^20 inputs at a
    time, up to the first chunk that differs.
    """
    from mor_ref.cli import exhaustive as command

    asked = command.WrittenCase(fmt, rounding, overflow, random_word, n_random_bits)
    if candidate is None and chunks is None:
        done = command.run(asked, threads, executor, brief=brief, as_json=json)
    else:
        name = "numba" if candidate is None else candidate
        if threads is not None:
            raise ValueError(
                f"threads is {threads}, but only a run of the engine on all inputs takes threads; "
                "leave it out if candidate or chunks is given"
            )
        done = command.run_candidate(name, asked, chunks, timeout, executor, as_json=json)
    raise typer.Exit(done)


@app.command("analyze")
def analyze_files(
    files: Annotated[list[str], FILES],
    recipe: Annotated[str | None, RECIPE] = None,
    policy: Annotated[str | None, POLICY] = None,
    block: Annotated[
        str | None,
        typer.Option(help="The scaling block: tensor, row, column or RxC; default: 128x128."),
    ] = None,
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME[:TENSORS]=]NUMBER",
            help="Threshold of a rung, e4m3 or a named one: nvfp4=0.18. It may be of a kind of "
            "tensors, or of layers by a pattern: nvfp4:gradient=0.3, nvfp4:layers.0=0.1. May be "
            "repeated; the last that fits counts. Default: 0.045, and 0.20 for nvfp4.",
        ),
    ] = None,
    scaling: Annotated[str | None, SCALING] = None,
    kind: KindOption = "weight",
    include: IncludeOption = None,
    exclude: ExcludeOption = None,
    threads: ThreadsOption = None,
    executor: ExecutorOption = "local",
    _quiet: QuietOption = False,
    json: JsonOption = False,
    plot: Annotated[
        str | None, typer.Option(metavar="FILE.png", help="Draw the errors and the decisions.")
    ] = None,
) -> None:
    """Show the decisions of MoR for each tensor of the files, and in total."""
    from mor_ref.analysis.listing import Selection
    from mor_ref.cli import analyze

    analyze.run(
        files,
        selection=Selection(include, exclude),
        recipe=recipe,
        policy=policy,
        block=block,
        thresholds=threshold or [],
        scaling=scaling,
        kind=kind,
        threads=threads,
        executor=executor,
        as_json=json,
        plot=plot,
    )


app.command("compare")(compare_recipes)


@app.command("verify")
def verify_candidate(
    candidate: Annotated[str, CANDIDATE],
    suite: Annotated[
        list[str] | None, typer.Option(help="Only this suite; may be repeated.")
    ] = None,
    vectors: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Read golden vectors from here; default: the bundled suites."
        ),
    ] = None,
    report: Annotated[list[str] | None, REPORT] = None,
    site: Annotated[str | None, SITE] = None,
    declare: Annotated[str | None, DECLARE] = None,
    inputs: Annotated[list[str] | None, INPUTS] = None,
    recipe: Annotated[str | None, RECIPE] = None,
    include: IncludeOption = None,
    exclude: ExcludeOption = None,
    nan: Annotated[str, NAN] = "exact",
    zero_sign: Annotated[str, ZERO_SIGN] = "exact",
    ties: Annotated[str, TIES] = "0",
    domain: Annotated[str, DOMAIN] = "all",
    timeout: TimeoutOption = 60.0,
    complete: Annotated[bool, COMPLETE] = False,
    executor: ExecutorOption = "local",
    _quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Run an implementation on golden vectors, and show which bits differ, and why.

    Exits with 0 if all match, 1 if not, 2 for a wrong call, 3 if the candidate could not be run or
    its results could not be read, and 4 if all match but for --ties. To verify an encoding on all
    2^32 inputs, run mor-ref exhaustive FORMAT --candidate CANDIDATE.
    """
    from mor_ref.cli import verify as command

    status = command.run(
        candidate,
        suite or [],
        vectors,
        report or [],
        site,
        declare,
        timeout,
        executor,
        must_be_complete=complete,
        own=command.Own(inputs or [], recipe, include, exclude),
        allowed=(nan, zero_sign, ties),
        domain=domain,
        as_json=json,
    )
    raise typer.Exit(status)


app.command("sources")(write_sources)
app.command("quantize")(quantize_files)
app.command("dequantize")(dequantize_file)
app.command("encode", context_settings=_NEGATIVE)(encode_numbers)
app.command("decode")(decode_codes)
app.command("gen")(generate_cases)
app.command("ver")(verify_lines)
app.add_typer(golden_commands, name="golden")
for one in (*app.registered_commands, *golden_commands.registered_commands):
    one.cls = Command


def main() -> None:
    """Run the command line; a user error is one sentence and exit status 2."""
    try:
        with signals_unwind(), printable_streams(), former_names_printed():
            sys.exit(status_of(app))
    except KeyboardInterrupt:
        sys.exit(Status.INTERRUPTED)
