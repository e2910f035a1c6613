"""Kinds of levels, and the arithmetics that compute them."""

from typing import Any

from mor_docs.explorer_rows import bits_of_number, fields_of_row
from mor_ref.schemes.levels.definition import ARITHMETICS, CLIP, LEVEL_KINDS, SMALLEST_ALPHA


def entries() -> dict[str, Any]:
    """Return the kinds and the arithmetics."""
    return {
        "levelKinds": {name: fields_of_row(kind) for name, kind in LEVEL_KINDS.items()},
        "levels": {"smallestAlpha": bits_of_number(SMALLEST_ALPHA), "clip": bits_of_number(CLIP)},
        "arithmetics": ARITHMETICS,
    }
