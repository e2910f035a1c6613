"""The committed results: reciprocal ranks, differences to bf16, and the answers of the tests."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.pretrained.arms import ARMS, Family
from experiments.statistics import Differences, holm, verdict

COMMITTED = Path(__file__).resolve().parent / "results"
RANKS, BEYOND = "123456789a", "."  # a character for each rank, and one for ranks above 10
MARGIN = 1.0  # percent of the MRR@10 in bf16


@dataclass(frozen=True)
class Result:
    """One arm: the ranks of all queries, and the document with all measurements."""

    name: str
    ranks: str
    document: Mapping[str, Any]

    @property
    def reciprocals(self) -> list[float]:
        """The reciprocal rank of each query, 0 above 10."""
        return [0.0 if rank == BEYOND else 1 / (RANKS.index(rank) + 1) for rank in self.ranks]

    @property
    def mrr(self) -> float:
        """The mean reciprocal rank at 10."""
        return math.fsum(self.reciprocals) / len(self.ranks)

    @property
    def is_first(self) -> list[bool]:
        """Whether each query finds its document first."""
        return [rank == RANKS[0] for rank in self.ranks]

    @property
    def family(self) -> Family:
        """The family of its arm."""
        return ARMS[self.name].family


def read(directory: Path = COMMITTED) -> dict[str, Result]:
    """Return the results of all arms that have some."""
    found = {}
    for name in ARMS:
        path = directory / f"{name}.json"
        if path.exists():
            document = json.loads(path.read_bytes())
            found[name] = Result(name, document["ranks"], document)
    return found


def losses(result: Result, baseline: Result) -> Differences:
    """Return how much less each query has than in bf16, in percent of the MRR@10 in bf16."""
    pairs = zip(result.reciprocals, baseline.reciprocals, strict=True)
    mean = baseline.mrr
    return Differences(tuple(100 * (own - one) / mean for one, own in pairs), MARGIN)


def firsts(result: Result, baseline: Result) -> Differences:
    """Return how much rarer each query finds its document first than in bf16, in points."""
    pairs = zip(result.is_first, baseline.is_first, strict=True)
    return Differences(tuple(100.0 * (own - one) for one, own in pairs), MARGIN)


def answers(results: Mapping[str, Result]) -> dict[str, tuple[float, str]]:
    """Return the adjusted p-value and the answer of each recipe."""
    found = {
        name: losses(result, results["bf16"])
        for name, result in results.items()
        if result.family == "recipe"
    }
    adjusted = holm({name: one.p_value for name, one in found.items()})
    return {name: (adjusted[name], verdict(one, adjusted[name])) for name, one in found.items()}
