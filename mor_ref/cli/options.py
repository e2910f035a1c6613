"""Options that several commands have."""

from typing import Annotated

import typer

from mor_ref.cli.commands import OF_A_CATALOGUE

RoundingOption = Annotated[
    str | None,
    typer.Option(
        help="rne (default), rtz, rtp, rtn, rna, rto or sr; for e8m0: rtp (default), rtz or rna."
    ),
]
RandomWordOption = Annotated[int | None, typer.Option(help="The random word, for sr.")]
RandomBitsOption = Annotated[
    int | None, typer.Option("--n-random-bits", help="Number of bits of the random word.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
ThreadsOption = Annotated[
    int | None,
    typer.Option(help="Number of threads; default: all processors, or one for each worker."),
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
COMPLETE = typer.Option(
    "--complete", help="Fail if a field of a case is missing, or if an array is none of them."
)
INPUTS = typer.Option(
    metavar="FILE", help="Verify on the tensors of this file instead; may be repeated."
)
FILES = typer.Argument(
    metavar="FILE",
    help=".safetensors, .bin, .pt, .pth, .gguf, .npy or .npz, an index of parts, or the directory "
    "of a model.",
)
IncludeOption = Annotated[
    str | None, typer.Option(metavar="REGEX", help="Take only tensors whose name matches this.")
]
ExcludeOption = Annotated[
    str | None, typer.Option(metavar="REGEX", help="Leave out tensors whose name matches this.")
]
NAN = typer.Option(help="The bits of NaN that count as equal: exact, any, or canonical-or-quiet.")
ZERO_SIGN = typer.Option(help="The sign of zero that counts as equal: exact or any.")
DOMAIN = typer.Option(
    help="The inputs that are compared: all, finite, normal (with zeros), or nonnegative."
)
POLICY = typer.Option(help=OF_A_CATALOGUE)
SCALING = typer.Option(help=OF_A_CATALOGUE)
RECIPE = typer.Option(
    metavar="RECIPE",
    help="How tensors are quantized: e4m3:gam:128x128, mxfp8:rceil, nvfp4:te:1x16, mor:three_way.",
)
RowsOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="MODULE",
        help="First import this module; it adds rows to catalogues. May be repeated.",
    ),
]
