"""A candidate in Python, in a process of its own.

If its code hangs, exits or crashes, the case fails, and the next one has a new process. Its working
directory, its standard output and all that it changes are its own.
"""

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np

from mor_ref.golden.model.suite import Case
from mor_ref.verify.candidates.candidate import (
    NO_REMARKS,
    Answer,
    Candidate,
    CandidateError,
    NoAnswer,
    Remarks,
)
from mor_ref.verify.candidates.changeable import PlaceInFile, place_in_file
from mor_ref.verify.candidates.fresh_process import pipe_of_answers, pipes_of, started
from mor_ref.verify.candidates.python_function import PythonFunction, imported_function
from mor_ref.workers.added_rows import add_rows, modules_of_rows

_LONGEST_OPENING = 600.0  # seconds, or those of a case if they are more: large libraries load long
_PATIENCE = 5.0  # seconds for a process to end, once it has no more questions
_LATE = 3  # once failed cases have taken this many timeouts, no more cases are asked


class PythonProcess(Candidate):
    """The candidate of a name, which another process opens; `seconds` is the limit of a case."""

    def __init__(self, name: str, seconds: float) -> None:
        self.name = name
        self._seconds = seconds
        self._directory = Path.cwd()
        self._process: _Process | None = None
        self._lost = 0.0  # seconds

    def __enter__(self) -> Self:
        self._process = self._opened()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        self._end(_PATIENCE if kind is None else 0)

    def answer(self, suite: str, operation: str, case: Case) -> Answer | None:
        """Return the fields of the candidate's answer; its process ends if it has none."""
        begin = time.monotonic()
        arrays: dict[str, Any] = {
            name: place_in_file(array) or array for name, array in case.arrays.items()
        }
        try:
            if self._process is None:
                self._process = self._opened()
            question = "called", (suite, operation, replace(case, arrays=arrays))
            found: Answer | None = self._process.ask(question, self._seconds)
        except _EndedError as error:
            self._end(0)
            self._lost += time.monotonic() - begin
            is_over = self._lost >= _LATE * self._seconds
            raise CandidateError(
                f"{self.name}, case {case.name!r} of suite {suite!r}: {error}",
                "run" if is_over else "case",
            ) from error
        except (CandidateError, NoAnswer):
            raise
        except BaseException:
            self._end(0)
            raise
        return found

    def remarks(self) -> Remarks:
        """Return the remarks on the answers since it was asked last."""
        if self._process is None:
            return NO_REMARKS
        try:
            found: Remarks = self._process.ask(("remarks", ()), self._seconds)
        except _EndedError:
            self._end(0)
            return NO_REMARKS
        return found

    def _opened(self) -> "_Process":
        process = _Process(self._directory)
        try:
            process.ask((self.name, modules_of_rows()), max(self._seconds, _LONGEST_OPENING))
        except _EndedError as error:
            process.end(0)
            raise CandidateError(f"{self.name} cannot be opened: {error}", "run") from error
        except BaseException:
            process.end(0)
            raise
        return process

    def _end(self, patience: float) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end(patience)


class _EndedError(Exception):
    """A process that ended, or had to be ended, before its answer was whole; and why."""


class _Process:
    """A running process, which answers each question before the next."""

    def __init__(self, directory: Path) -> None:
        self._popen = started(directory, serve, in_group=False)
        self._questions, self._answers = pipes_of(self._popen)

    def ask(self, question: Any, seconds: float) -> Any:
        """Return the answer, or raise the error that is the answer."""
        is_late = threading.Event()

        def end_late() -> None:
            is_late.set()
            self._kill()

        timer = threading.Timer(seconds, end_late)
        timer.start()
        try:
            _send(self._questions, question)
            found = _received(self._answers)
        except Exception as error:  # somebody's code can write to the pipe, too
            if is_late.is_set():
                raise _EndedError(
                    f"it gave no answer within {seconds:g} s; give more time with --timeout"
                ) from error
            if not isinstance(error, EOFError | OSError):
                raise _EndedError(f"its answer cannot be read ({error})") from error
            raise _EndedError(
                f"its process {self._how()} before it had an answer; end each call with an "
                "answer, or with None"
            ) from error
        finally:
            timer.cancel()
        if isinstance(found, Exception):
            raise found
        return found

    def _how(self) -> str:
        """Say how the process ended, which has closed its pipe."""
        try:
            status = self._popen.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            return "closed its pipe"
        if status < 0:
            return f"was ended by signal {-status} ({signal.strsignal(-status)})"
        return f"ended with status {status}"

    def _kill(self) -> None:
        if self._popen.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(self._popen.pid, signal.SIGKILL)
            self._popen.kill()

    def end(self, patience: float) -> None:
        """Close the questions, which ends it; kill it if it does not end."""
        with contextlib.suppress(OSError):  # a part of a question was left, and nobody reads it
            self._questions.close()
        try:
            self._popen.wait(patience)
        except subprocess.TimeoutExpired:
            pass
        finally:  # also if it is interrupted here
            self._kill()
            self._popen.wait()
            self._answers.close()


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
    asked: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(questions, asked), daemon=True).start()
    candidate: list[PythonFunction] = []

    def opened() -> None:
        add_rows(rows)
        candidate.append(_opened(name))

    _reply(answers, name, "its opening", opened)
    while candidate and (question := asked.get()) is not None:
        what, arguments = question
        if what == "remarks":
            _reply(answers, name, "its remarks", candidate[0].remarks)
            continue
        suite, operation, case = arguments
        arrays = {
            key: array.mapped() if isinstance(array, PlaceInFile) else array
            for key, array in case.arrays.items()
        }
        called = partial(candidate[0].called, suite, operation, replace(case, arrays=arrays))
        _reply(answers, name, f"case {case.name!r} of suite {suite!r}", called)


def _opened(name: str) -> PythonFunction:
    kind, _, rest = name.partition(":")
    if kind == "peer":
        from mor_ref.verify.candidates.peers import candidate_of

        return candidate_of(rest)
    return imported_function(name, kind, rest)


def _reply(answers: IO[bytes], name: str, where: str, function: Callable[[], Any]) -> None:
    """Send the result of a function, or the error that it raised."""
    try:
        _send(answers, function())
    except (CandidateError, NoAnswer) as error:
        _send(answers, error)
    except BaseException as error:  # noqa: BLE001 (also an interrupt that the candidate raised)
        _send(answers, PythonFunction(name, lambda *_: None).failed(where, error))


def _read(pipe: IO[bytes], questions: "queue.SimpleQueue[Any]") -> None:
    """Read the questions, and None after the last; end this process if it does not end then.

    The asking process has closed the pipe, or was killed, and nobody waits for an answer.
    """
    with contextlib.suppress(EOFError, OSError, pickle.UnpicklingError):
        while True:
            questions.put(_received(pipe))
    questions.put(None)
    time.sleep(_PATIENCE)
    os._exit(1)
