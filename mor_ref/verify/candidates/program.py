"""A candidate that is another program, asked over its standard input and output."""

import contextlib
import os
import selectors
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from types import TracebackType
from typing import IO

from mor_ref.golden.model.suite import Case
from mor_ref.signals import signals_later
from mor_ref.verify.candidates.candidate import Answer, Candidate, CandidateError
from mor_ref.verify.candidates.protocol import (
    GREETING,
    Received,
    answer_limit,
    parse_answer,
    question_text,
    shown,
)

_CHUNK = 1 << 16  # bytes read or written at once
_PATIENCE = 5.0  # seconds for a program to end, once its input has
_PATIENCE_FOR_STATUS = 1.0  # and for its status, once its output has ended
_LATE = 3  # once failed cases have taken this many timeouts, no more cases are asked


class Program(Candidate):
    """A program that speaks the protocol; after a case at which it fails it is started again.

    Its standard error is not read: the user sees each line when the program writes it.
    """

    def __init__(self, command: str, seconds: float) -> None:
        self.name = f"exec:{command}"
        self._words = _split(command)
        self._seconds = seconds
        self._process: _Process | None = None
        self._lost = 0.0  # seconds

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        self._end(_PATIENCE if kind is None else 0)

    def answer(self, suite: str, operation: str, case: Case) -> Answer | None:
        """Return the fields of the program's answer; a failure ends the program."""
        begin = time.monotonic()
        try:
            question = question_text(suite, operation, case)
            if self._process is None:
                with signals_later():  # until it is known, and so ended with this one
                    self._process = _Process(self._words)
                question = GREETING + question
            else:
                self._process.expect_silence()
            text = self._process.ask(question, answer_limit(case.arrays), self._seconds)
            return parse_answer(text)
        except CandidateError as error:
            self._end(0)
            self._lost += time.monotonic() - begin
            if error.ends == "run":  # it did not start, so no case is at fault
                raise CandidateError(f"{self.name}: {error}", "run") from error
            said = f"{self.name}, case {case.name!r} of {suite}: {error}"
            is_over = self._lost >= _LATE * self._seconds
            raise CandidateError(said, "run" if is_over else "case") from error
        except BaseException:
            self._end(0)
            raise

    def _end(self, patience: float) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end(patience)


def _split(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"candidate is 'exec:{command}' ({error}); close the quotation") from error
    if not words:
        raise ValueError("candidate is 'exec:' without a program; give one, as exec:./program")
    return words


class _Process:
    """PRO-001: a running program, and its input and output, which never block."""

    def __init__(self, command: Sequence[str]) -> None:
        try:
            # A process group of its own, so that its children end with it.
            self._popen = subprocess.Popen(  # noqa: S603  # the user's own program
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                process_group=0,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise CandidateError(
                f"it cannot be started ({reason}); give a program that can be run, as "
                "exec:./program",
                ends="run",
            ) from error
        for pipe in (self._input, self._output):
            os.set_blocking(pipe.fileno(), False)

    @property
    def _input(self) -> IO[bytes]:
        assert self._popen.stdin is not None  # noqa: S101  # it was asked for
        return self._popen.stdin

    @property
    def _output(self) -> IO[bytes]:
        assert self._popen.stdout is not None  # noqa: S101  # it was asked for
        return self._popen.stdout

    def ask(self, question: bytes, limit: int, seconds: float) -> bytes:
        """PRO-008: the answer to a question.

        The answer is read while the question is written. A program may write before it has read
        all; with two full pipes, both would wait for ever.
        """
        deadline = time.monotonic() + seconds
        received = Received(limit)
        unsent = memoryview(question)
        with selectors.DefaultSelector() as selector:
            selector.register(self._output, selectors.EVENT_READ)
            selector.register(self._input, selectors.EVENT_WRITE)
            while unsent or received.end is None:
                ready = [key.fileobj for key, _ in selector.select(deadline - time.monotonic())]
                if time.monotonic() >= deadline:
                    raise _late(received, seconds)
                if self._input in ready:
                    unsent = unsent[self._write(unsent) :]
                    if not unsent:
                        selector.unregister(self._input)
                if self._output in ready:
                    received.add(self._read(received))
        _refuse(received.text[received.end :])
        return bytes(received.text[: received.end])

    def expect_silence(self) -> None:
        """PRO-008: nothing comes between an answer and the next question."""
        _refuse(self._read())

    def _write(self, unsent: memoryview) -> int:
        """Write some bytes, and return how many need not be written again."""
        try:
            return os.write(self._input.fileno(), unsent[:_CHUNK])
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            return len(unsent)  # it reads no more; its last words will say why

    def _read(self, received: Received | None = None) -> bytes:
        """Return the bytes that are there, maybe none."""
        try:
            chunk = os.read(self._output.fileno(), _CHUNK)
        except BlockingIOError:
            return b""
        if not chunk:
            raise self._ended(received)
        return chunk

    def _ended(self, received: Received | None) -> CandidateError:
        try:
            status = self._popen.wait(_PATIENCE_FOR_STATUS)
        except subprocess.TimeoutExpired:
            how = "closed its standard output"
        else:
            how = f"ended with status {status}"
            if status < 0:
                how = f"was ended by signal {-status} ({signal.strsignal(-status)})"
        return CandidateError(
            f"it {how} before its answer was whole ({_so_far(received)}); answer every case, with "
            "skip at least, until the input ends"
        )

    def end(self, patience: float) -> None:
        """PRO-009: close the input; kill the program if it does not end."""
        self._input.close()
        try:
            self._popen.wait(patience)
        except subprocess.TimeoutExpired:
            pass
        finally:  # also if it is interrupted here
            if self._popen.poll() is None:
                with contextlib.suppress(OSError):
                    os.killpg(self._popen.pid, signal.SIGKILL)
                self._popen.kill()
            self._popen.wait()
            self._output.close()


def _refuse(rest: bytes | bytearray) -> None:
    if rest.strip():
        raise CandidateError(
            f"it wrote {shown(rest)} where no question was open; answer each question once"
        )


def _late(received: Received, seconds: float) -> CandidateError:
    return CandidateError(
        f"it gave no whole answer within {seconds:g} s ({_so_far(received)}); end the answer with "
        "a line done and flush it, or give more time with --timeout"
    )


def _so_far(received: Received | None) -> str:
    if received is None or not received.text:
        return "nothing was received"
    return f"{len(received.text)} bytes were received, at last {shown(received.text[-60:])}"
