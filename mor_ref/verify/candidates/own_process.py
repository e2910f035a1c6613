"""Candidates that have a process of their own, which a failure ends and the next case starts again.

The process has a process group of its own, so that its children end with it. Both end with this
process, even if this is killed.
"""

import contextlib
import os
import signal
import subprocess
import time
from abc import abstractmethod
from types import TracebackType
from typing import IO, Generic, TypeVar

from mor_ref.golden.model.suite import Case
from mor_ref.verify.candidates.candidate import Answer, Candidate, CandidateError, NoAnswer

_PATIENCE = 5.0  # seconds for a process to end, once it has no more questions
_LATE = 3  # once failed cases have taken this many timeouts, no more cases are asked
_MOST_IN_A_ROW = 32  # cases that ended the process; after so many, no more cases are asked
# The input of this program ends with the process that started it, however that ends.
_END_WITH_INPUT = 'read -r _; kill -s KILL -- "-$0"'


class EndedError(Exception):
    """A process that ended, or has to be ended, before its answer was whole; and why."""


class OwnProcess:
    """A running process, which is the first of its group."""

    def __init__(self, popen: "subprocess.Popen[bytes]") -> None:
        self._popen = popen
        self._guard = subprocess.Popen(  # noqa: S603
            ["/bin/sh", "-c", _END_WITH_INPUT, str(popen.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )

    @property
    def _input(self) -> IO[bytes]:
        assert self._popen.stdin is not None  # noqa: S101  # it was asked for
        return self._popen.stdin

    @property
    def _output(self) -> IO[bytes]:
        assert self._popen.stdout is not None  # noqa: S101  # it was asked for
        return self._popen.stdout

    def _how(self, patience: float, pipe: str) -> str:
        """Say how the process ended, whose output has ended: a pipe of this name."""
        try:
            status = self._popen.wait(patience)
        except subprocess.TimeoutExpired:
            return f"closed its {pipe}"
        if status < 0:
            return f"was ended by signal {-status} ({signal.strsignal(-status)})"
        return f"ended with status {status}"

    def _kill(self) -> None:
        """End the process and its group; what it has left of the group keeps its pipes open."""
        with contextlib.suppress(OSError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        if self._popen.poll() is None:
            self._popen.kill()

    def end(self, patience: float) -> None:
        """PRO-009: close the input; kill the process if it does not end."""
        with contextlib.suppress(OSError):  # a part of a question was left, and nobody reads it
            self._input.close()
        try:
            self._popen.wait(patience)
        except subprocess.TimeoutExpired:
            pass
        finally:  # also if it is interrupted here
            self._kill()
            self._popen.wait()
            self._output.close()
            self._guard.communicate()  # which ends what the process has left of its group


Process = TypeVar("Process", bound=OwnProcess)


class CandidateInProcess(Candidate, Generic[Process]):
    """A candidate of this name in a process of its own; `seconds` is the limit of a case."""

    def __init__(self, name: str, seconds: float) -> None:
        self.name = name
        self._seconds = seconds
        self._process: Process | None = None
        self._lost = 0.0  # seconds
        self._in_a_row = 0  # failed cases

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        self._end(_PATIENCE if kind is None else 0)

    def answer(self, suite: str, operation: str, case: Case) -> Answer | None:
        """Return the fields of the candidate's answer; its process ends if it has none."""
        begin = time.monotonic()
        try:
            answer = self._asked(self._process or self._open(), suite, operation, case)
        except EndedError as error:
            self._end(0)
            self._lost += time.monotonic() - begin
            self._in_a_row += 1
            is_over, why = self._over()
            raise CandidateError(
                f"{self.name}, case {case.name!r} of suite {suite!r}: {error}",
                "run" if is_over else "case",
                why,
            ) from error
        except (CandidateError, NoAnswer):
            raise
        except BaseException:
            self._end(0)
            raise
        self._in_a_row = 0
        return answer

    def _over(self) -> tuple[bool, str]:
        """Return whether no more cases are asked, and why."""
        if self._in_a_row >= _MOST_IN_A_ROW:
            return True, f"{_MOST_IN_A_ROW} cases in a row ended the process"
        return self._lost >= _LATE * self._seconds, (
            f"failed cases took {_LATE} times the limit of {self._seconds:g} s, which "
            "--timeout sets"
        )

    @abstractmethod
    def _open(self) -> Process:
        """Start the process and keep it; a CandidateError that ends the run says why not."""

    @abstractmethod
    def _asked(self, process: Process, suite: str, operation: str, case: Case) -> Answer | None:
        """Return the answer of the process; an EndedError ends it."""

    def _end(self, patience: float) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end(patience)
