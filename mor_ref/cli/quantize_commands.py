"""The commands between numbers and codes in files: quantize, dequantize and decode."""

from typing import Annotated

import typer

from mor_ref.cli.options import FILES, RECIPE, ExcludeOption, IncludeOption

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
) -> None:
    """Quantize the tensors of the files, and write every field of the results as bits.

    An array is named TENSOR/FIELD. To compare the results, write them to DIRECTORY/own.safetensors
    and run mor-ref verify dir:DIRECTORY --inputs FILE --recipe RECIPE. Tensors of integers or
    float64, and tensors without numbers, are skipped and named: no recipe takes them.
    """
    from mor_ref.analysis.listing import Selection
    from mor_ref.cli import quantize

    wanted = Selection(include, exclude)
    raise typer.Exit(quantize.run(files, recipe, out, wanted, complete=complete))


def dequantize_file(
    file: Annotated[str, _BITS], recipe: Annotated[str, RECIPE], out: OutOption
) -> None:
    """Write the numbers that codes and scales stand for, as float32.

    The arrays of the file are named TENSOR/FIELD: mor-ref quantize writes such a file with the same
    recipe. An array of the result is named TENSOR.
    """
    from mor_ref.cli import dequantize

    dequantize.run(file, recipe, out)


def decode_file(
    file: Annotated[str, _BITS],
    fmt: Annotated[str, typer.Option("--format", help="The format of the codes.")],
    out: OutOption,
    field: Annotated[str, typer.Option(help="The arrays TENSOR/FIELD that have codes.")] = "code",
    include: IncludeOption = None,
    exclude: ExcludeOption = None,
) -> None:
    """Write the numbers that codes stand for without a scale, as float32.

    Arrays without a field in their name are codes, too. Codes are integers, or have the dtype of
    the format; arrays of another dtype are skipped and named. An array of the result is named
    TENSOR.
    """
    from mor_ref.analysis.listing import Selection
    from mor_ref.cli import dequantize

    dequantize.run_decode(file, fmt, field, out, Selection(include, exclude))
