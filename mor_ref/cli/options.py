"""Options that several commands have."""

import contextlib
import os
from pathlib import Path
from typing import Annotated

import typer

from mor_ref.cli.commands import OF_A_CATALOGUE

RoundingOption = Annotated[
    str | None,
    typer.Option(
        help="rne (default), rtz, rtp, rtn, rna, rto or sr; e8m0 has rtp (default), rtz, rna, rne."
    ),
]


def _word(text: str | int) -> int:
    """Return a word in decimal, hexadecimal or binary."""
    try:
        return int(text, 0) if isinstance(text, str) else text
    except ValueError:
        sentence = f"{text!r} is no whole number; give one, such as 26 or 0x1A"
        raise typer.BadParameter(sentence) from None


RandomWordOption = Annotated[
    int | None,
    typer.Option(parser=_word, help="The random word, for sr: in decimal, or as 0x1A."),
]
RandomBitsOption = Annotated[
    int | None, typer.Option("--n-random-bits", help="Number of bits of the random word.")
]


def _quieten(context: typer.Context, is_quiet: bool) -> bool:  # as Typer calls it
    """Print nothing until the command ends; the error of a wrong call is printed after that."""
    if is_quiet:
        nowhere = context.with_resource(open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
        context.with_resource(contextlib.redirect_stdout(nowhere))
        context.with_resource(contextlib.redirect_stderr(nowhere))
    return is_quiet


QuietOption = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        callback=_quieten,
        help="Print nothing: the exit status says how it ended.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
ThreadsOption = Annotated[
    int | None,
    typer.Option(help="Number of threads; default: all processors, or one for each worker."),
]
KindOption = Annotated[
    str,
    typer.Option(
        metavar="KIND",
        help="What the tensors are, for thresholds by kind: weight, activation or gradient.",
    ),
]
TimeoutOption = Annotated[
    float,
    typer.Option(metavar="SECONDS", help="Longest time of a program or a function for one case."),
]
ExecutorOption = Annotated[
    str,
    typer.Option(
        metavar="WHERE", help="Where to run: local, dask://HOST:PORT, or mpi with mpiexec."
    ),
]
CANDIDATE = typer.Argument(
    metavar="CANDIDATE",
    help="numba, cuda, cuda-host, cuda-ptx, module:function, dir:PATH, exec:PROGRAM or "
    "peer:LIBRARY.",
)
REPORT = typer.Option(
    metavar="FILE", help="Also write a report: .html, .json or .xml (JUnit); may be repeated."
)
SITE = typer.Option(
    metavar="ADDRESS",
    help="Where the rules of an .html report link to: https://example.org/mor_ref, or ./docs "
    "for pages next to the report.",
)
DECLARE = typer.Option(
    metavar="FILE",
    help="Also write a declaration in JSON: which fields of which operations, formats and profiles "
    "match to the bit, and how far the others are from that.",
)
COMPLETE = typer.Option(
    "--complete", help="Fail if a field of a case is missing, or if an array is none of them."
)
INPUTS = typer.Option(
    metavar="FILE", help="Verify on the tensors of this file instead; may be repeated."
)
FILES = typer.Argument(
    metavar="FILE",
    help=".safetensors, .bin, .pt, .pth, .gguf, .npy or .npz, an index of parts, the directory of "
    "a model or of .npy files, a pipe, or - for the standard input.",
)
IncludeOption = Annotated[
    str | None, typer.Option(metavar="REGEX", help="Take only tensors whose name matches this.")
]
ExcludeOption = Annotated[
    str | None, typer.Option(metavar="REGEX", help="Leave out tensors whose name matches this.")
]
NAN = typer.Option(help="The bits of NaN that count as equal: exact, any, or canonical-or-quiet.")
ZERO_SIGN = typer.Option(help="The sign of zero that counts as equal: exact or any.")
TIES = typer.Option(
    metavar="FRACTION",
    help="Allow the code on the other side of a tie where the number that is rounded is at most "
    "this part of an ulp from the tie, as 1/64 or 0.01, and not at it. It then exits with 4.",
)
DOMAIN = typer.Option(
    help="The inputs that are compared: all, finite, normal (with zeros), or nonnegative."
)
POLICY = typer.Option(help=OF_A_CATALOGUE)
SCALING = typer.Option(help=OF_A_CATALOGUE)


def recipe_in_file(given: str | None) -> str | None:
    """Return a recipe, or the text of the file of TOML that is named."""
    path = Path(given or "")
    if given is None or path.suffix != ".toml" or not path.is_file():
        return given
    return path.read_text(encoding="utf-8")


def recipes_in_files(given: list[str] | None) -> list[str] | None:
    """Return recipes, or the texts of the files of TOML that are named."""
    if given is None:
        return None
    for recipe in given:
        _refuse_several(recipe)
    return [recipe_in_file(recipe) or "" for recipe in given]


def _refuse_several(given: str) -> None:
    """Refuse recipes with commas between them: a table has commas, too."""
    from mor_ref.argument_checks import fault_of_name

    names = given.split(",")
    if names[1:] and not any(fault_of_name(name.partition(":")[0]) for name in names):
        each = " ".join(f"--recipe {name}" for name in names)
        raise ValueError(f"recipe is {given!r}; give each with its own option: {each}")


RECIPE = typer.Option(
    metavar="RECIPE",
    help="How tensors are quantized: e4m3:gam:128x128, mxfp8:rceil, nvfp4:te:1x16, mor:three_way, "
    "or a file of TOML.",
    callback=recipe_in_file,
)
RowsOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="MODULE",
        help="First import this module; it adds rows to catalogues. May be repeated.",
    ),
]
