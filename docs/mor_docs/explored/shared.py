"""Kinds and profiles of blocks with a shared exponent."""

from typing import Any

from mor_docs.explorer_rows import fields_of_row
from mor_ref.schemes.shared.definition import SHARED_KINDS, SHARED_PROFILES


def entries() -> dict[str, Any]:
    """Return the kinds and the profiles."""
    return {
        "sharedKinds": {
            name: fields_of_row(kind, "code_bits") for name, kind in SHARED_KINDS.items()
        },
        "sharedProfiles": {name: fields_of_row(one) for name, one in SHARED_PROFILES.items()},
    }
