"""Results with a verdict."""

from abc import ABC, abstractmethod
from typing import Literal

# "match but for ties": only entries next to a tie differ, which a user allowed.
Verdict = Literal["match", "match but for ties", "mismatch", "incomplete", "not run", "failed"]


class Outcome(ABC):
    """A result that is true for a match alone, so that `assert` and `if` say what its verdict says.

    A result that is incomplete, that failed or that was not run is false.
    """

    @property
    @abstractmethod
    def verdict(self) -> str:
        """The verdict in a word or two; "match" is the one that is true."""

    def __bool__(self) -> bool:
        return self.verdict == "match"
