"""A candidate that is another program, asked over its standard input and output."""

import os
import selectors
import shlex
import subprocess
import time
from collections.abc import Sequence

from mor_ref.golden.model.suite import Case
from mor_ref.signals import signals_later
from mor_ref.verify.candidates.candidate import Answer, CandidateError
from mor_ref.verify.candidates.own_process import CandidateInProcess, EndedError, OwnProcess
from mor_ref.verify.candidates.protocol import (
    GREETING,
    Received,
    answer_limit,
    parse_answer,
    question_text,
    shown,
)

_CHUNK = 1 << 16  # bytes read or written at once
_PATIENCE_FOR_STATUS = 1.0  # seconds for a program to end, once its output has


class Program(CandidateInProcess["_Process"]):
    """A program that speaks the protocol; after a case at which it fails it is started again.

    Its standard error is not read: the user sees each line when the program writes it.
    """

    def __init__(self, command: str, seconds: float) -> None:
        super().__init__(f"exec:{command}", seconds)
        self._words = _split(command)

    def _open(self) -> "_Process":
        try:
            with signals_later():  # until it is known, and so ended with this one
                self._process = _Process(self._words)
        except CandidateError as error:  # no case is at fault
            raise CandidateError(
                f"{self.name}: {error}", "run", "the program cannot be started"
            ) from error
        return self._process

    def _asked(self, process: "_Process", suite: str, operation: str, case: Case) -> Answer | None:
        try:
            question = question_text(suite, operation, case)
            text = process.ask(question, answer_limit(case.arrays), self._seconds)
            return parse_answer(text)
        except CandidateError as error:
            raise EndedError(str(error)) from error


def _split(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"candidate is 'exec:{command}' ({error}); close the quotation") from error
    if not words:
        raise ValueError("candidate is 'exec:' without a program; give one, as exec:./program")
    return words


class _Process(OwnProcess):
    """PRO-001: a running program, and its input and output, which never block."""

    def __init__(self, command: Sequence[str]) -> None:
        try:
            popen = subprocess.Popen(  # noqa: S603  # the user's own program
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
                "exec:./program"
            ) from error
        super().__init__(popen)
        self._is_greeted = False
        for pipe in (self._input, self._output):
            os.set_blocking(pipe.fileno(), False)

    def ask(self, question: bytes, limit: int, seconds: float) -> bytes:
        """PRO-008: the answer to a question.

        The answer is read while the question is written. A program may write before it has read
        all; with two full pipes, both would wait for ever.
        """
        if self._is_greeted:
            _refuse(self._read())  # nothing comes between an answer and the next question
        else:
            self._is_greeted, question = True, GREETING + question
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
        how = self._how(_PATIENCE_FOR_STATUS, "standard output")
        return CandidateError(
            f"it {how} before its answer was whole ({_so_far(received)}); answer every case, with "
            "skip at least, until the input ends"
        )


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
