"""Metrics of squares: exact sums of units, and which units of tensors they accept."""

import itertools
from collections.abc import Iterator

from mor_ref.definitions.blocks import Cut, word_of
from mor_ref.golden.inputs.unit_pairs import (
    UNIT,
    Pair,
    rows_of_pairs,
    tensors_beyond_tiles,
    tensors_of_pairs,
    turning_units,
)
from mor_ref.golden.model.suite import Case, Size, suite

_TURNS = {
    "relative_frobenius": ("1/4", "0.1", "1"),
    "sqnr": ("20", "3", "0.1"),
    "cosine": ("0.96", "1", "0.5"),
    "largest_by_row": ("0.125", "0.7", "1/3"),
}
_USUAL = {
    "relative_frobenius": "0.025",
    "sqnr": "32",
    "cosine": "0.99975",
    "largest_by_row": "0.03",
}
_LAST = {"relative_frobenius": "0.01", "sqnr": "40", "cosine": "0.9999", "largest_by_row": "0.01"}
_CUTS: tuple[Cut, ...] = ((3, 5), "row", "tensor", (4, 7), "column")


def _sums_cases(size: Size) -> Iterator[Case]:
    for name, (x, y) in rows_of_pairs(size):
        yield Case(name, {"source": "f32"}, {"x": x, "y": y})


def _acceptance_cases(size: Size) -> Iterator[Case]:
    for metric, thresholds in _TURNS.items():
        for threshold in thresholds:
            yield _asked("turns", turning_units(metric, threshold), metric, threshold, UNIT)
    metrics = itertools.cycle(_USUAL.items())
    cuts = itertools.cycle(_CUTS)
    for name, pair in tensors_of_pairs(size):
        for _ in range(2):
            yield _asked(name, pair, *next(metrics), next(cuts))
    (beyond_tiles, beyond), (behind_vectors, behind) = tensors_beyond_tiles(size)
    for metric, threshold in _LAST.items():
        yield _asked(behind_vectors, behind, metric, threshold, "tensor")
    yield _asked(beyond_tiles, beyond, "sqnr", _LAST["sqnr"], (32, 40))


def _asked(name: str, pair: Pair, metric: str, threshold: str, block: Cut) -> Case:
    cut = block if isinstance(block, str) else list(block)
    word = word_of(block)
    parameters = {"metric": metric, "threshold": threshold, "block": cut, "source": "f32"}
    return Case(f"{name}.{metric}.{threshold.replace('/', '_')}.{word}", parameters, pair._asdict())


SUMS = suite("unit_sums", "Exact sums of units", "unit_sums", (), _sums_cases)
ACCEPTANCE = suite(
    "acceptance",
    "Units that metrics of squares accept",
    "accept",
    (),
    _acceptance_cases,
)
