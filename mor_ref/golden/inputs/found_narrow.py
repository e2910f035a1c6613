"""Tensors of bfloat16 and binary16, found by a search, that expose wrong implementations.

An implementation of one source answers only the cases of that source. So each source needs inputs
that expose it. `found_narrow.json` lists the tensors: by profile and tile for NVFP4, and with
parameters for other operations.
"""

from collections.abc import Iterator

import numpy as np

from mor_ref.golden.inputs.found_files import contents_of, numbers_of
from mor_ref.golden.inputs.tensors import Tensor
from mor_ref.golden.model.suite import Case


def _rows(texts: list[str]) -> np.ndarray:
    return np.array(numbers_of(texts), np.uint16)


def found_in_sources(profile: str, tile: tuple[int, int]) -> Iterator[Tensor]:
    """Yield tensors for each source: a tile with the amax, then the tiles found."""
    for source, of_profiles in contents_of("narrow")["nvfp4"].items():
        for name, texts in of_profiles.get(f"{profile}.{tile[0]}x{tile[1]}", {}).items():
            yield Tensor(name, source, _rows(texts))


def found_cases(operation: str) -> Iterator[Case]:
    """Yield the cases of another operation."""
    for name, case in contents_of("narrow")[operation].items():
        yield Case(name, case["parameters"], {"x": _rows(case["x"])})
