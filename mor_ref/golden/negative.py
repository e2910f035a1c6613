"""Results that are wrong on purpose, so that people can see that what compares them can fail."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from safetensors.numpy import save

from mor_ref.golden.container import SEPARATOR
from mor_ref.golden.suite import Case, Suite

FOLDER = "negative"


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
        Planted("bf16", "value", 0x7FFFFFFF, 0x7FC00000, "another NaN"),
    ),
    "decisions": (Planted("not_worse_than", "accepted", 1, 0, "the other decision"),),
    "scale_steps": (Planted("e4m3.gam", "exponent", 254, 253, "one off"),),
    "error_steps": (Planted("all", "u", 1 << 23, (1 << 23) - 1, "one unit in the last place"),),
}


def negative(suite: Suite, cases: list[Case]) -> tuple[bytes, list[dict[str, Any]]] | None:
    """The results of a suite with its planted entries, and where these are (VEC-011)."""
    planted = PLANTED.get(suite.name)
    if planted is None:
        return None
    expected = [field.name for field in suite.fields if field.role == "expected"]
    arrays = {
        f"{case.name}{SEPARATOR}{name}": case.arrays[name].copy()
        for case in cases
        for name in expected
        if name in case.arrays
    }
    places = []
    for row in planted:
        array = arrays[f"{row.case}{SEPARATOR}{row.field}"]
        index = int(np.flatnonzero(array == row.right)[-1])
        array[index] = row.wrong
        places.append({**asdict(row), "index": [index]})
    return save(arrays), places
