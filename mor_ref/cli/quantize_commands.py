"""The commands between numbers and codes in files: quantize and dequantize."""

from typing import Annotated

import typer

from mor_ref.cli.options import FILES, RECIPE, ExcludeOption, IncludeOption, QuietOption

OutOption = Annotated[
    str, typer.Option(metavar="FILE", help="To write: .safetensors, .npz, or .npy for one array.")
]
_BITS = typer.Argument(metavar="FILE", help="Bit patterns: .safetensors, .npz or .npy.")


def quantize_files(
    files: Annotated[list[str], FILES],
    recipe: Annotated[str, RECIPE],
    out: OutOption,
    include: IncludeOption = None,
    exclude: ExcludeOption = None,
    complete: Annotated[
        bool, typer.Option("--complete", help="Exit with 1 if a tensor is skipped.")
    ] = False,
    _quiet: QuietOption = False,
) -> None:
    """Quantize the tensors of the files, and write every field of the results as bits.

    An array is named TENSOR/FIELD. To compare the results, write them to DIRECTORY/own.safetensors
    and run mor-ref verify dir:DIRECTORY --inputs FILE --recipe RECIPE. Tensors of float64
    are rounded to float32 first, and named. Tensors of integers, and tensors without numbers, are
    skipped and named: no recipe takes them.
    """
    from mor_ref.analysis.listing import Selection
    from mor_ref.cli import quantize

    wanted = Selection(include, exclude)
    raise typer.Exit(quantize.run(files, recipe, out, wanted, complete=complete))


def dequantize_file(
    file: Annotated[str, _BITS],
    out: OutOption,
    recipe: Annotated[str | None, RECIPE] = None,
    _quiet: QuietOption = False,
) -> None:
    """Write the numbers that codes and scales stand for, as float32.

    The arrays of the file are named TENSOR/FIELD: mor-ref quantize writes such a file, and its
    recipe into it. For a file of another program, give --recipe. An array of the result is named
    TENSOR.
    """
    from mor_ref.cli import dequantize

    dequantize.run(file, recipe, out)
