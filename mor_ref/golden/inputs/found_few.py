"""Tensors of few numbers, found by a search, that expose wrong implementations in large suites.

`found_few.json` lists them by operation: the parameters of a case, and the rows of its numbers.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from mor_ref.golden.inputs.found_files import contents_of, numbers_of

_X = "x"


class Few(NamedTuple):
    """A case of few numbers: its name, rows of bits, and parameters with the source."""

    name: str
    rows: list[list[int]]
    parameters: Mapping[str, Any]


def rows_of(text: str) -> list[list[int]]:
    """Return the rows of a text: a semicolon between two, and hexadecimal bits."""
    return numbers_of(text.split(";"))


def found_few(operation: str) -> Iterator[Few]:
    """Yield the tensors of an operation."""
    for name, case in contents_of("few")[operation].items():
        parameters = {key: value for key, value in case.items() if key != _X}
        yield Few(name, rows_of(case[_X]), parameters)
