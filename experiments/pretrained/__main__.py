"""The command line of the second experiment: python -m experiments.pretrained."""

from pathlib import Path

from experiments.commands import ArmsOption, PlaceOption, app_of, arms_in, run_as_program
from experiments.pretrained.arms import ARMS

PLACE = Path("build/experiment-pretrained")
app = app_of("A pretrained sentence encoder under the recipes.")


@app.command("run")
def run(
    arms: ArmsOption = "",
    place: PlaceOption = PLACE,
) -> None:
    """Run the arms that have no file yet."""
    chosen = arms_in(arms, ARMS) or tuple(ARMS)
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


if __name__ == "__main__":
    run_as_program(app)
