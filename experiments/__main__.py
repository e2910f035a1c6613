"""The command line of the experiment: python -m experiments."""

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands import ArmsOption, PlaceOption, app_of, arms_in, run_as_program
from experiments.results import COMMITTED, collect, not_among
from experiments.runs import ARMS, SIZES, STEPS, planned
from mor_ref.argument_checks import known_name
from mor_ref.cli.options import ExecutorOption
from mor_ref.workers.pools import processes, workers_named

PLACE = Path("build/experiment")
app = app_of("The experiment of the paper, on small models.")


@app.command("run")
def run(
    size: Annotated[str, typer.Option(help=f"The model: {', '.join(SIZES)}.")] = "A",
    steps: Annotated[int, typer.Option(min=1, help="Steps of each run.")] = STEPS,
    arms: ArmsOption = "",
    seeds: Annotated[str, typer.Option(help="Seeds, with commas; those of the plan.")] = "",
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    executor: ExecutorOption = "local",
    place: PlaceOption = PLACE,
    goes_on: Annotated[
        bool, typer.Option("--continue", help="Leave out the runs of experiments/results.")
    ] = False,
) -> None:
    """Do the runs that have no file yet."""
    known_name("size", size, SIZES)
    known_name("device", device, ("cpu", "cuda"))
    runs = planned(size, steps, arms_in(arms, ARMS), seeds_in(seeds))
    if goes_on:
        runs = not_among(runs, COMMITTED)
    from experiments.corpus import corpus
    from experiments.running import done_by

    with workers_named(executor) as workers:  # of the processes of MPI, only one continues
        corpus(place)  # made once, before the workers look for it
        for progress in done_by(workers or processes(), runs, place.resolve(), device):
            print(progress, flush=True)


def seeds_in(text: str) -> tuple[int, ...]:
    """Return the seeds of an option, each once."""
    given = [seed for seed in text.split(",") if seed]
    if not all(seed.isdecimal() for seed in given):
        raise ValueError(f"seeds is {text!r}; give whole numbers from 0 with commas, such as 0,1")
    return tuple(dict.fromkeys(map(int, given)))


@app.command("collect")
def collect_results(place: PlaceOption = PLACE, out: Path = COMMITTED) -> None:
    """Write what the tables and pictures are made from."""
    for path in collect(place, out):
        print(path)


if __name__ == "__main__":
    run_as_program(app)
