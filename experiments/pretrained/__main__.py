"""The command line of the second experiment: python -m experiments.pretrained."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from experiments.pretrained.arms import ARMS
from mor_ref.argument_checks import known_name

PLACE = Path("build/experiment-pretrained")
app = typer.Typer(
    help="A pretrained sentence encoder under the recipes.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
PlaceOption = Annotated[Path, typer.Option("--in", help="The directory of the files of the runs.")]


@app.command("run")
def run(
    arms: Annotated[str, typer.Option(help="Arms, with commas; all by default.")] = "",
    place: PlaceOption = PLACE,
) -> None:
    """Run the arms that have no file yet."""
    chosen = list(dict.fromkeys(filter(None, arms.split(",")))) or list(ARMS)
    for name in chosen:
        known_name("arms", name, ARMS)
    missing = [name for name in chosen if not (place / ARMS[name].file).exists()]
    if not missing:
        return
    from experiments.corpus import checked, docstrings
    from experiments.pretrained.encoding import do
    from experiments.pretrained.pairs import pairs_of
    from experiments.pretrained.weights import directory, model_in, tokenizer_in

    files, text = directory(), docstrings()
    checked(b"\n\n".join(text))
    pairs = pairs_of(text, tokenizer_in(files))
    print(f"{len(pairs.queries)} pairs", flush=True)
    for number, name in enumerate(missing, start=1):
        do(ARMS[name], model_in(files), pairs, place)
        print(f"{number} of {len(missing)} arms: {name}", flush=True)


@app.command("collect")
def collect_results(place: PlaceOption = PLACE) -> None:
    """Write what the tables and pictures are made from."""
    from experiments.pretrained.retrieval import collect

    for path in collect(place):
        print(path)


def main() -> None:
    """Run the command line; an error is one sentence."""
    try:
        app()
    except (ValueError, OSError, RuntimeError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
