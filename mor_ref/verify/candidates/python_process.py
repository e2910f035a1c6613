"""A candidate in Python, in a process of its own.

If its code hangs, exits or crashes, the case fails, and the next one has a new process. Its working
directory, its standard output and all that it changes are its own.
"""

import os
import pickle
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Any, Self

import numpy as np

from mor_ref.golden.model.suite import Case
from mor_ref.signals import signals_later
from mor_ref.verify.candidates.candidate import (
    NO_REMARKS,
    Answer,
    CandidateError,
    NoAnswer,
    Remarks,
)
from mor_ref.verify.candidates.fresh_process import pipe_of_answers, started
from mor_ref.verify.candidates.own_process import CandidateInProcess, EndedError, OwnProcess
from mor_ref.verify.candidates.python_function import PythonFunction, imported_function
from mor_ref.workers.added_rows import add_rows, modules_of_rows

_LONGEST_OPENING = 600.0  # seconds, or those of a case if they are more: large libraries load long
_PATIENCE_FOR_STATUS = 5.0  # seconds for a process to end, once its pipe is closed


class PythonProcess(CandidateInProcess["_Process"]):
    """The candidate of a name, which another process opens; `seconds` is the limit of a case."""

    def __init__(self, name: str, seconds: float) -> None:
        super().__init__(name, seconds)
        self._directory = Path.cwd()

    def __enter__(self) -> Self:
        self._open()
        return self

    def _asked(self, process: "_Process", suite: str, operation: str, case: Case) -> Answer | None:
        question = "called", (suite, operation, case)
        found: Answer | None = process.ask(question, self._seconds)
        return found

    def remarks(self) -> Remarks:
        """Return the remarks on the answers since it was asked last."""
        if self._process is None:
            return NO_REMARKS
        try:
            found: Remarks = self._process.ask(("remarks", ()), self._seconds)
        except EndedError:
            self._end(0)
            return NO_REMARKS
        return found

    def _open(self) -> "_Process":
        with signals_later():  # until it is known, and so ended with this one
            self._process = _Process(self._directory)
        try:
            opening = self.name, modules_of_rows()
            self._process.ask(opening, max(self._seconds, _LONGEST_OPENING))
        except EndedError as error:
            self._end(0)
            raise CandidateError(f"{self.name} cannot be opened: {error}", "run") from error
        except BaseException:
            self._end(0)
            raise
        return self._process


class _Process(OwnProcess):
    """A running process, which answers each question before the next."""

    def __init__(self, directory: Path) -> None:
        super().__init__(started(directory, serve, in_group=False))

    def ask(self, question: Any, seconds: float) -> Any:
        """Return the answer, or raise the error that is the answer."""
        is_late = threading.Event()

        def end_late() -> None:
            if self._popen.poll() is None:  # else it has ended, and only what it has left is there
                is_late.set()
            self._kill()

        timer = threading.Timer(seconds, end_late)
        timer.start()
        try:
            _send(self._input, question)
            found = _received(self._output)
        except Exception as error:  # somebody's code can write to the pipe, too
            if is_late.is_set():
                raise EndedError(
                    f"it gave no answer within {seconds:g} s; give more time with --timeout"
                ) from error
            if not isinstance(error, EOFError | OSError):
                raise EndedError(f"its answer cannot be read ({error})") from error
            how = self._how(_PATIENCE_FOR_STATUS, "pipe")
            raise EndedError(
                f"its process {how} before it had an answer; end each call with an answer, or with "
                "None"
            ) from error
        finally:
            timer.cancel()
        if isinstance(found, Exception):
            raise found
        return found


def _send(pipe: IO[bytes], message: Any) -> None:
    """Write a message; nothing of one that cannot be pickled."""
    buffers: list[pickle.PickleBuffer] = []
    content = pickle.dumps(message, 5, buffer_callback=buffers.append)
    arrays = [buffer.raw() for buffer in buffers]
    pickle.dump((content, [array.nbytes for array in arrays]), pipe)
    for array in arrays:
        pipe.write(array)
    pipe.flush()


def _received(pipe: IO[bytes]) -> Any:
    """Return the next message; each array is read into its place."""
    content, sizes = pickle.load(pipe)  # noqa: S301 (this package writes it)
    buffers = [np.empty(size, np.uint8) for size in sizes]
    for buffer in buffers:
        if pipe.readinto(buffer.data) < buffer.nbytes:  # type: ignore[attr-defined]
            raise EOFError
    return pickle.loads(content, buffers=buffers)  # noqa: S301 (this package writes it)


# ---------------------------------------------------------------------- in the other process


def serve(questions: IO[bytes]) -> None:
    """Open a candidate, and answer the questions until there are no more."""
    name, rows = _received(questions)
    answers = pipe_of_answers()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    candidate: list[PythonFunction] = []

    def opened() -> None:
        add_rows(rows)
        candidate.append(_opened(name))

    _reply(answers, name, "its opening", opened)
    while candidate and (question := _question(questions)) is not None:
        what, arguments = question
        if what == "remarks":
            _reply(answers, name, "its remarks", candidate[0].remarks)
            continue
        suite, operation, case = arguments
        called = partial(candidate[0].called, suite, operation, case)
        _reply(answers, name, f"case {case.name!r} of suite {suite!r}", called)


def _opened(name: str) -> PythonFunction:
    kind, _, rest = name.partition(":")
    if kind == "peer":
        from mor_ref.verify.candidates.peers import candidate_of

        return candidate_of(rest)
    return imported_function(name, kind, rest)


def _question(questions: IO[bytes]) -> Any:
    """Return the next question; None after the last, when the asking process closes the pipe."""
    try:
        return _received(questions)
    except (EOFError, OSError, pickle.UnpicklingError):
        return None


def _reply(answers: IO[bytes], name: str, where: str, function: Callable[[], Any]) -> None:
    """Send the result of a function, or the error that it raised.

    If the candidate forks, a child may come here, too. It was asked nothing, and ends.
    """
    asked = os.getpid()
    try:
        found = function()
    except (CandidateError, NoAnswer) as error:
        found = error
    except BaseException as error:  # noqa: BLE001 (also an interrupt that the candidate raised)
        found = PythonFunction(name, lambda *_: None).failed(where, error)
    if os.getpid() != asked:
        os._exit(0)
    try:
        _send(answers, found)
    except OSError:  # somebody's code has closed the pipe
        os._exit(1)
    except Exception as error:  # noqa: BLE001 (a result that cannot be pickled)
        _send(answers, PythonFunction(name, lambda *_: None).failed(where, error))
