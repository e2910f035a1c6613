"""Names of a candidate that are not known."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Unknown:
    """Names of a candidate that are not known, and the known name that is nearest to the first."""

    names: tuple[str, ...] = ()
    nearest: str = ""


def unknown(names: Iterable[str], known: Iterable[str]) -> Unknown:
    """Return the names that are not known, and the known name nearest to the first."""
    strange = tuple(sorted({*names} - {*known}))
    nearest = difflib.get_close_matches(strange[0], [*known], n=1, cutoff=0.0) if strange else []
    return Unknown(strange, "".join(nearest))
