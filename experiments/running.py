"""The runs of an experiment, handed to workers: those whose files exist are not run again."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.runs import Run
from experiments.train import do
from mor_ref.workers.pools import Workers


@dataclass(frozen=True)
class Progress:
    """How far an experiment is: the run that was done last, and a guess of the seconds left."""

    run: Run
    done: int
    total: int
    seconds_left: float

    def __str__(self) -> str:
        hours, minutes = divmod(round(self.seconds_left / 60), 60)
        left = f"{hours} h {minutes} min" if hours else f"{minutes} min"
        name = f"{self.run.arm}, seed {self.run.seed}"
        return f"{self.done} of {self.total} runs: {name}; about {left} left"


def missing(runs: Sequence[Run], place: Path) -> list[Run]:
    """Return the runs that have no file yet."""
    return [run for run in runs if not (place / run.path).exists()]


def done_by(workers: Workers, runs: Sequence[Run], place: Path, device: str) -> Iterator[Progress]:
    """Do the missing runs, and yield how far the experiment is after each."""
    to_do, begun = missing(runs, place), time.monotonic()
    shards = [(run, place, device) for run in to_do]
    before = len(runs) - len(to_do)
    for done, (_, run) in enumerate(workers.as_done(do, shards), start=1):
        each = (time.monotonic() - begun) / done
        yield Progress(run, before + done, len(runs), each * (len(to_do) - done))
