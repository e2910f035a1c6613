"""The results of all runs of a size: collected into one file for each arm, and read again."""

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.files import write_whole
from experiments.runs import ARMS, Run, Setting
from experiments.statistics import last_tenth

COMMITTED = Path(__file__).resolve().parent / "results"
_POINTS = 100  # of the curve of losses that is kept


@dataclass(frozen=True)
class Arm:
    """The runs of an arm, by their seeds."""

    name: str
    runs: dict[int, dict[str, Any]]

    @property
    def losses(self) -> dict[int, float]:
        """The primary figure of each seed."""
        return {seed: run["last_tenth"] for seed, run in self.runs.items()}

    @property
    def validation(self) -> dict[int, float]:
        """The loss on the validation text of each seed."""
        return {seed: run["validation"] for seed, run in self.runs.items()}

    def has(self, setting: Setting) -> bool:
        """Return whether some run measured its operands with a setting."""
        return any(setting.name in run["measured"]["found"] for run in self.runs.values())

    def measured(self, setting: Setting) -> Iterator[tuple[int, int, tuple[str, ...], list[Any]]]:
        """Yield seed, step, layers and the row of each measurement of a setting."""
        for seed, run in self.runs.items():
            found = run["measured"]
            for step, row in zip(
                found["steps"], found["found"].get(setting.name, ()), strict=False
            ):
                yield seed, step, tuple(found["layers"]), row


@dataclass(frozen=True)
class Results:
    """The arms of a size and a number of steps that have runs."""

    size: str
    steps: int
    arms: dict[str, Arm]


def collect(place: Path, out: Path) -> list[Path]:
    """Write a file for each arm of each size, from the files of the runs; return them.

    Runs of other seeds that are in the file of an arm stay there.
    """
    written = []
    for directory in sorted(path for path in place.iterdir() if path.is_dir()):
        for name in ARMS:
            found = [_read_run(path) for path in directory.glob(f"{name}-*.json")]
            if found:
                path = out / directory.name / f"{name}.json"
                runs = collected(path) | {run["run"]["seed"]: _short(run) for run in found}
                rows = (json.dumps(runs[seed], separators=(",", ":")) for seed in sorted(runs))
                shown = ",\n".join(rows)
                write_whole(path, f"[\n{shown}\n]\n".encode())
                written.append(path)
    return written


def _read_run(path: Path) -> dict[str, Any]:
    try:
        run: dict[str, Any] = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}); delete it, and do its run again") from error
    return run


def collected(path: Path) -> dict[int, dict[str, Any]]:
    """Return the runs in the file of an arm, by their seeds; none if there is no file."""
    if not path.exists():
        return {}
    return {run["run"]["seed"]: run for run in json.loads(path.read_bytes())}


def not_among(runs: Iterable[Run], out: Path) -> list[Run]:
    """Return the runs whose results were not collected yet."""
    return [
        run for run in runs if run.seed not in collected(out / run.directory / f"{run.arm}.json")
    ]


def _short(run: dict[str, Any]) -> dict[str, Any]:
    """Return a run with a curve of means in the place of the loss of each step."""
    losses = run.pop("losses")
    width = max(len(losses) // _POINTS, 1)
    means = [
        round(math.fsum(losses[i : i + width]) / len(losses[i : i + width]), 4)
        for i in range(0, len(losses), width)
    ]
    return {**run, "last_tenth": last_tenth(losses), "curve": means}


def read(directory: Path) -> Results:
    """Return the collected results of one size, from a directory such as results/A-1200."""
    size, _, steps = directory.name.rpartition("-")
    arms = {}
    for name in ARMS:
        runs = collected(directory / f"{name}.json")
        if runs:
            arms[name] = Arm(name, runs)
    return Results(size, int(steps), arms)
