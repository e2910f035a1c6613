"""Mixtures, and the formats of their integers."""

from typing import Any

from mor_docs.explorer_rows import format_row
from mor_ref.schemes.mixed.definition import FEWEST_BITS, MIXTURES, MOST_BITS, integer_format

_BITS = range(FEWEST_BITS, MOST_BITS + 1)


def entries() -> dict[str, Any]:
    """Return the mixtures and the formats."""
    return {
        "mixtures": {name: {"candidates": one.candidates} for name, one in MIXTURES.items()},
        "integerFormats": {fmt.name: format_row(fmt) for fmt in map(integer_format, _BITS)},
    }
