"""Candidates: their protocol, their answers and their errors."""

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar, Literal, Self

from mor_ref.golden.model.suite import Case, case_in_memory

Answer = Mapping[str, Any]

_NAME = re.compile(r"[!-~]{1,255}")

Ends = Literal["case", "suite", "run"]


class CandidateError(RuntimeError):
    """A candidate that has no answer, which ends the case, the suite or the run.

    If it ends the run, `why` says so in the words of a report: "84 cases were not asked: ...".
    """

    def __init__(
        self, message: str, ends: Ends = "case", why: str = "the candidate cannot be opened"
    ) -> None:
        super().__init__(message)
        self.ends = ends
        self.why = why


class NoAnswer(Exception):  # noqa: N818 (not an error: the case is not of the candidate)
    """A case that a candidate does not take, and why."""


@dataclass(frozen=True)
class NoArray:
    """The place of an array that cannot be compared; `problem` says why, after its name."""

    problem: str


@dataclass(frozen=True)
class Remarks:
    """Remarks of a candidate on its answers: lines, and how many entries have open bits.

    The bits of an open entry are not defined, so that its match proves nothing. `notes` are lines
    on possible causes of a mismatch.
    """

    lines: tuple[str, ...] = ()
    open: int = 0
    notes: tuple[str, ...] = ()

    def __add__(self, more: "Remarks") -> "Remarks":
        """Return the remarks on two parts of a suite."""
        lines, notes = (
            tuple(dict.fromkeys(both))
            for both in (self.lines + more.lines, self.notes + more.notes)
        )
        return Remarks(lines, self.open + more.open, notes)


NO_REMARKS = Remarks()


class Candidate(ABC):
    """Something that has results of its own for a case, or None where it has none.

    `name` is the name in reports. If it `is_engine`, the fields that are expected of large tensors
    are its answers.
    """

    name: str
    is_engine: ClassVar[bool] = False

    @abstractmethod
    def answer(self, suite: str, operation: str, case: Case) -> Answer | None:
        """Return the candidate's fields of a case; the arrays of the case are the inputs alone."""

    def unread(self, suite: str, operation: str, case: Case) -> Answer | None:
        """Return the fields of a case; neither those nor the inputs in files need be read yet."""
        return self.answer(suite, operation, case_in_memory(case))

    def __enter__(self) -> Self:
        return self

    def __exit__(  # noqa: B027 (most run nothing)
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        """End what runs for the candidate: nothing, unless it says otherwise."""

    @property
    def suites(self) -> Collection[str] | None:
        """The suites that files have results for, known or not; None if it is not of files."""
        return None

    def cases(self, suite: str) -> Collection[str]:
        """Return the cases of a suite that files have results for, known or not."""
        del suite
        return ()

    def remarks(self) -> Remarks:
        """Return the remarks on the answers since it was asked last."""
        return NO_REMARKS


def is_name(name: object) -> bool:
    """Return whether this can name a field: ASCII without white space (PRO-002)."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None
