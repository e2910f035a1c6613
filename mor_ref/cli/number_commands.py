"""The commands of single numbers and codes: encode and decode."""

from typing import Annotated

import typer

from mor_ref.cli.options import (
    ExcludeOption,
    IncludeOption,
    JsonOption,
    QuietOption,
    RandomBitsOption,
    RandomWordOption,
    RoundingOption,
)

OverflowOption = Annotated[str | None, typer.Option(help="satfinite (default) or ieee.")]
NanOption = Annotated[str | None, typer.Option(help="canonical (default) or signed.")]
ProfileOption = Annotated[str | None, typer.Option(help="cuda, ml_dtypes or torch.")]
SourceOption = Annotated[
    str | None, typer.Option(help="The format of a bit pattern: f64, f32, f16 or bf16.")
]
_NUMBERS = typer.Argument(
    metavar="NUMBER",
    help="0.3, 0x1.8p-2, a bit pattern such as 0x3f800000, or - for lines of them.",
)
_CODES = typer.Argument(
    metavar="CODE",
    help="0x3A, 58, 0b111010, or - for lines of them; or, with --out, a FILE of bit patterns: "
    ".safetensors, .npz or .npy.",
)
_FIELD = "code"


def encode_numbers(
    numbers: Annotated[list[str], _NUMBERS],
    fmt: Annotated[str, typer.Option("--format", help="The target format.")],
    rounding: RoundingOption = None,
    overflow: OverflowOption = None,
    nan: NanOption = None,
    profile: ProfileOption = None,
    source: SourceOption = None,
    random_word: RandomWordOption = None,
    n_random_bits: RandomBitsOption = None,
    json: JsonOption = False,
) -> None:
    """Show the code of each number: its bits, and the number that they stand for.

    mor-ref explain says why a number has its code.
    """
    from mor_ref.cli import numbers as command
    from mor_ref.cli.explain import explainer

    explained = explainer(
        fmt,
        rounding=rounding,
        overflow=overflow,
        nan=nan,
        profile=profile,
        source=source,
        random_word=random_word,
        n_random_bits=n_random_bits,
    )
    command.run_encode(numbers, explained, as_json=json)


def decode_codes(
    codes: Annotated[list[str], _CODES],
    fmt: Annotated[str, typer.Option("--format", help="The format of the codes.")],
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Decode a file, and write this one: .safetensors, .npz, or .npy for one array.",
        ),
    ] = None,
    field: Annotated[
        str, typer.Option(help="The arrays TENSOR/FIELD of a file that have codes.")
    ] = _FIELD,
    include: IncludeOption = None,
    exclude: ExcludeOption = None,
    _quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Show the number of each code, and the numbers next to it; or decode the codes of a file.

    Of a file, arrays without a field in their name are codes, too. Codes are integers, or have the
    dtype of the format; arrays of another dtype are skipped and named. An array of the result is
    named TENSOR, and has float32.
    """
    if out is None:
        _refuse_without_out(
            field=None if field == _FIELD else field, include=include, exclude=exclude
        )
        from mor_ref.cli import numbers

        numbers.run_decode(codes, fmt, as_json=json)
        return
    if json or len(codes) != 1:
        what = "json is given" if json else f"{len(codes)} files are given"
        raise ValueError(f"{what} with out; give one file, and leave --json out")
    from mor_ref.analysis.listing import Selection
    from mor_ref.cli import dequantize

    dequantize.run_decode(codes[0], fmt, field, out, Selection(include, exclude))


def _refuse_without_out(**options: str | None) -> None:
    """Refuse the options of a file without a file to write."""
    for name, value in options.items():
        if value is not None:
            raise ValueError(f"{name} is {value!r}, which is for files; give --out FILE as well")
