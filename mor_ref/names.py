"""Looking things up by name, with an answer that helps when there is no such name."""

import difflib
from collections.abc import Iterable


class UnknownNameError(KeyError, ValueError):
    """A name that is not in its catalogue; both a KeyError and a ValueError."""

    def __init__(self, kind: str, given: object, known: Iterable[str]) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(str(given).lower(), names, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        super().__init__(
            f"{kind} is {given!r}, which is not known; {hint}take one of {', '.join(names)}"
        )

    def __str__(self) -> str:
        return str(self.args[0])
