"""The rates that were measured on a GPU, as they are stored next to the page of its evidence."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.gpu_page import Speed

FILE = "gpu-speed.json"
QUANTIZING = "quantize with error sums, bf16"
RANDOM = "encode to e4m3 with random bits, f32"
MOR = "mor, tensor"


class GpuRates(NamedTuple):
    """Nanoseconds for an element of each operation, on square tensors of that side."""

    gpu: str
    side: int
    nanoseconds: Mapping[str, float]


def write(path: Path, gpu: str, side: int, speeds: Iterable[Speed]) -> None:
    """Write the rates to a file."""
    each = {speed.name: speed.seconds / speed.elements * 1e9 for speed in speeds}
    text = json.dumps(GpuRates(gpu, side, each)._asdict(), indent=1)
    path.write_text(f"{text}\n", encoding="utf-8")


def read(path: Path) -> GpuRates | None:
    """Return the rates of a file, or None if there is no file."""
    if not path.exists():
        return None
    return GpuRates(**json.loads(path.read_text(encoding="utf-8")))
