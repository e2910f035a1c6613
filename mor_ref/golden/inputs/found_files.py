"""Files of the inputs that a search found: found_NAME.json, with bits in hexadecimal."""

import functools
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


@functools.cache
def contents_of(name: str) -> Mapping[str, Any]:
    """Return the contents of found_NAME.json."""
    path = Path(__file__).with_name(f"found_{name}.json")
    contents: Mapping[str, Any] = json.loads(path.read_text(encoding="ascii"))
    return contents


def numbers_of(texts: Iterable[str]) -> list[list[int]]:
    """Return the bits of each row, from their texts."""
    return [[int(bits, 16) for bits in text.split()] for text in texts]
