"""Candidates: what all of them have in common, whatever they are."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from mor_ref.golden.model.suite import Case

Answer = Mapping[str, Any]

_NAME = re.compile(r"[!-~]{1,255}")

Ends = Literal["case", "suite", "run"]


class CandidateError(RuntimeError):
    """A candidate that has no answer, and what ends with that: the case, the suite or the run."""

    def __init__(self, message: str, ends: Ends = "case") -> None:
        super().__init__(message)
        self.ends = ends


@dataclass(frozen=True)
class NoArray:
    """The place of an array that a candidate did not give, and why it is not one."""

    reason: str


class Candidate(Protocol):
    """Something that gives its own results for a case, or None where it has none."""

    @property
    def name(self) -> str:
        """The name in reports."""

    def answer(self, suite: str, operation: str, case: Case) -> Answer | None:
        """The candidate's fields of a case, whose arrays are the inputs alone."""


def is_name(name: object) -> bool:
    """Whether a field can be called so: ASCII without white space, as in the protocol (PRO-002)."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None
