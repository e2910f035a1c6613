"""Results that are wrong on purpose, to show people that a comparison with them can fail."""

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from safetensors.numpy import save

from mor_ref.golden.model.suite import Case, Suite
from mor_ref.golden.store.suite_files import SEPARATOR, file_of
from mor_ref.operations.call import Arrays

DIRECTORY = "negative"


@dataclass(frozen=True)
class Planted:
    """A wrong entry: the last of a field that has one value is given another."""

    case: str
    field: str
    right: int
    wrong: int
    what: str


PLANTED: dict[str, tuple[Planted, ...]] = {
    "decode": (
        Planted("e4m3", "value", 0x80000000, 0x00000000, "the sign of zero"),
        Planted("e5m2", "value", 0x7FFFFFFF, 0x7FC00000, "another NaN"),
        Planted("e3m2", "value", 0x41E00000, 0x41E00001, "one unit in the last place"),
    ),
    "decisions": (Planted("not_worse_than", "accepted", 1, 0, "the other decision"),),
    "scale_steps": (Planted("e4m3.e8m0", "exponent", 254, 253, "one off"),),
}


def negative_file_of(suite: str) -> str:
    """Return the path in its directory of the file of a suite's wrong results."""
    return f"{DIRECTORY}/{file_of(suite)}"


def right_results(suite: Suite, cases: list[Case]) -> Arrays:
    """Return the expected arrays of the cases in which something is planted, by CASE/FIELD."""
    planted = {row.case for row in PLANTED.get(suite.name, ())}
    names = [field.name for field in suite.fields if field.role == "expected"]
    return {
        f"{case.name}{SEPARATOR}{name}": case.arrays[name]
        for case in cases
        for name in names
        if case.name in planted and name in case.arrays
    }


def negative(suite: Suite, cases: list[Case]) -> tuple[bytes, dict[str, Any]] | None:
    """Return the results of a suite with planted entries, and their record (VEC-011).

    None for a suite in which nothing is planted.
    """
    if suite.name not in PLANTED:
        return None
    arrays = {key: array.copy() for key, array in right_results(suite, cases).items()}
    places = []
    for row in PLANTED[suite.name]:
        array = arrays[f"{row.case}{SEPARATOR}{row.field}"]
        index = int(np.flatnonzero(array == row.right)[-1])
        array[index] = row.wrong
        places.append({**asdict(row), "index": [index]})
    content = save(arrays)
    return content, {"sha256": hashlib.sha256(content).hexdigest(), "planted": places}
