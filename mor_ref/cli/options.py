"""Options that several commands have."""

from typing import Annotated

import typer

RoundingOption = Annotated[
    str | None,
    typer.Option(
        help="rne (default), rtz, rtp, rtn, rna, rto or sr; e8m0: rtp (default), rtz, rna."
    ),
]
RandomWordOption = Annotated[int | None, typer.Option(help="The random word, for sr.")]
RandomBitsOption = Annotated[
    int | None, typer.Option("--n-random-bits", help="How many bits it has.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
TimeoutOption = Annotated[
    float, typer.Option(metavar="SECONDS", help="How long a program may take for a case.")
]
ExecutorOption = Annotated[
    str,
    typer.Option(
        metavar="WHERE", help="Who does the work: local, dask://HOST:PORT, or mpi under mpiexec."
    ),
]
