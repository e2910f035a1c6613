"""Tensors of few numbers, found by a search, that expose wrong implementations in large suites.

`found_few.json` lists them by operation: the parameters of a case, and the rows of its numbers.
"""

import functools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

_FILE = Path(__file__).with_name("found_few.json")
_X = "x"


class Few(NamedTuple):
    """A case of few numbers: its name, rows of bits, and parameters with the source."""

    name: str
    rows: list[list[int]]
    parameters: Mapping[str, Any]


@functools.cache
def _found() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(_FILE.read_text(encoding="ascii"))
    return found


def rows_of(text: str) -> list[list[int]]:
    """Return the rows of a text: a semicolon between two, and hexadecimal bits."""
    return [[int(bits, 16) for bits in row.split()] for row in text.split(";")]


def found_few(operation: str) -> Iterator[Few]:
    """Yield the tensors of an operation."""
    for name, case in _found()[operation].items():
        parameters = {key: value for key, value in case.items() if key != _X}
        yield Few(name, rows_of(case[_X]), parameters)
