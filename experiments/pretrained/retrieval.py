"""Ranks of documents, and cosines to the vectors in bf16, from the files of the runs."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from experiments.files import write_whole
from experiments.pretrained.arms import ARMS, Arm
from experiments.pretrained.results import BEYOND, COMMITTED, RANKS
from experiments.statistics import Differences

Vectors = NDArray[np.float32]

_QUERIES_AT_ONCE = 512
_LOW = 0.01  # the quantile of the cosines that is reported


def collect(place: Path, out: Path = COMMITTED) -> list[Path]:
    """Write the results of each arm that has a file, and of bf16 first; return their files."""
    if not (place / ARMS["bf16"].file).exists():
        raise ValueError(f"{place} has no run of bf16; run it first: all others are compared to it")
    baseline, written = _read(place, ARMS["bf16"]), []
    for arm in ARMS.values():
        if (place / arm.file).exists():
            path = out / f"{arm.name}.json"
            document = _result(_read(place, arm), baseline)
            lines = (f"{json.dumps(key)}: {json.dumps(at)}" for key, at in document.items())
            write_whole(path, ("{\n" + ",\n".join(lines) + "\n}\n").encode())
            written.append(path)
    return written


def _read(place: Path, arm: Arm) -> tuple[dict[str, Any], Vectors, Vectors]:
    """Return what a run says about itself, and its vectors of queries and documents."""
    with safe_open(place / arm.file, "np") as file:
        about: dict[str, Any] = json.loads(file.metadata()["about"])
        return about, file.get_tensor("queries"), file.get_tensor("documents")


def _result(
    run: tuple[dict[str, Any], Vectors, Vectors], baseline: tuple[dict[str, Any], Vectors, Vectors]
) -> dict[str, Any]:
    about, queries, documents = run
    if about["pairs"] != baseline[0]["pairs"]:
        raise ValueError(f"{about['arm']} was run on other pairs than bf16; run both anew")
    cosines = np.concatenate(
        [np.sum(a * b, 1, np.float64) for a, b in zip(run[1:], baseline[1:], strict=True)]
    )
    return {**about, "ranks": written(ranks_of(queries, documents)), "cosines": summary(cosines)}


def ranks_of(queries: Vectors, documents: Vectors) -> NDArray[np.int64]:
    """Return the rank of the document of each query: 1 plus those at least as similar.

    A cosine that is not a number counts as similar.
    """
    own: NDArray[np.float64] = np.sum(queries * documents, 1, np.float64)
    found = []
    for first in range(0, len(queries), _QUERIES_AT_ONCE):
        some = slice(first, first + _QUERIES_AT_ONCE)
        scores = queries[some].astype(np.float64) @ documents.T.astype(np.float64)
        places = np.arange(first, first + len(scores))
        scores[places - first, places] = math.inf  # itself, once
        found.append(np.count_nonzero(~(scores < own[some, None]), 1))
    return np.concatenate(found)


def written(ranks: NDArray[np.int64]) -> str:
    """Return a character for each rank: 1 to 9, a for 10, and a dot above."""
    return "".join(RANKS[rank - 1] if rank <= len(RANKS) else BEYOND for rank in ranks.tolist())


def summary(cosines: NDArray[np.float64]) -> dict[str, float]:
    """Return the mean of cosines, half of its 95 % interval, and a low quantile."""
    found = Differences(tuple(cosines.tolist()))
    return {
        "count": len(cosines),
        "mean": round(found.mean, 6),
        "half": round(found.smallest_seen, 6),
        "low": round(float(np.quantile(cosines, _LOW)), 6),
    }
