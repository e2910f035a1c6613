"""Tensors of bfloat16 and binary16 at which wrong implementations show, as a search has found them.

An implementation that takes one source answers the cases of that source alone. So each source needs
inputs that expose it. `found_narrow.json` has the tensors: for NVFP4 by profile and tile, for other
operations with the parameters.
"""

import functools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mor_ref.golden.inputs.tensors import Tensor
from mor_ref.golden.model.suite import Case

_FILE = Path(__file__).with_name("found_narrow.json")


@functools.cache
def _found() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(_FILE.read_text(encoding="ascii"))
    return found


def _rows(texts: list[str]) -> np.ndarray:
    return np.array([[int(bits, 16) for bits in text.split()] for text in texts], np.uint16)


def found_in_sources(profile: str, tile: tuple[int, int]) -> Iterator[Tensor]:
    """Yield tensors of a tile with the amax, and then the tiles found."""
    for source, of_profiles in _found()["nvfp4"].items():
        for name, texts in of_profiles.get(f"{profile}.{tile[0]}x{tile[1]}", {}).items():
            yield Tensor(name, source, _rows(texts))


def found_cases(operation: str) -> Iterator[Case]:
    """Yield the cases of another operation."""
    for name, case in _found()[operation].items():
        yield Case(name, case["parameters"], {"x": _rows(case["x"])})
