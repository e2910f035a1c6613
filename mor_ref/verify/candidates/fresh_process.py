"""Calls in a fresh process, which imports the modules of a directory as they are now.

A worker outlives a run, and a module that it has imported stays as it was. The process works in the
directory that it is given, ends with the process that started it, and crashes alone.
"""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeVar

from mor_ref.verify.candidates.candidate import CandidateError
from mor_ref.workers.added_rows import digest_of_program, modules_of_rows
from mor_ref.workers.shards import Outcome, run_shard

Result = TypeVar("Result")

_PROGRAM = """import os, pickle, sys
pipe = os.fdopen(os.dup(0), "rb")
sys.path[:] = pickle.load(pipe)
from {0.__module__} import {0.__name__} as answer
answer(pipe)
"""


def outcome_of_candidate(
    directory: Path, name: str, function: Callable[..., Result], *arguments: Any
) -> Outcome[Result]:
    """Return the outcome of a function, which opens the candidate of this name in a directory.

    A candidate of this package is the same in all directories, and needs no process of its own.
    """
    if ":" not in name:
        return Outcome.of(function(name, *arguments))
    rows = modules_of_rows()
    call = (digest_of_program(rows), rows, function, (name, *arguments))
    with started(directory, answer) as process:
        questions, answers = pipes_of(process)
        try:
            questions.write(pickle.dumps(call))
            questions.flush()
            # The answer is safe to unpickle: the process runs this package.
            outcome: Outcome[Result] = pickle.load(answers)  # noqa: S301
        except (EOFError, OSError, pickle.UnpicklingError) as ended:
            process.wait()
            raise CandidateError(
                f"the process of the candidate was ended {_by(process.returncode)}; read its "
                "standard error"
            ) from ended
        return outcome


def started(
    directory: Path, function: Callable[[IO[bytes]], None], *, in_group: bool = True
) -> subprocess.Popen[bytes]:
    """Start a process in a directory, which calls a function of this package with its questions.

    Unless it is `in_group`, it has a process group of its own, which can be ended as a whole.
    """
    command = [sys.executable, "-P", "-c", _PROGRAM.format(function)]
    pipe, group = subprocess.PIPE, None if in_group else 0
    try:
        process = subprocess.Popen(  # noqa: S603
            command, cwd=directory, stdin=pipe, stdout=pipe, process_group=group
        )
    except OSError as error:
        raise CandidateError(
            f"{directory} is not there ({error.strerror}); start where all workers find the "
            "candidate"
        ) from error
    questions, _ = pipes_of(process)
    with contextlib.suppress(OSError):  # it has ended, which is noticed when it is asked
        questions.write(pickle.dumps([str(Path(path).resolve()) for path in sys.path if path]))
        questions.flush()
    return process


def pipes_of(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    """Return the pipes of questions and of answers."""
    if process.stdin is None or process.stdout is None:
        raise AssertionError("both are pipes")
    return process.stdin, process.stdout


def _by(status: int) -> str:
    if status >= 0:
        return f"with status {status}"
    return f"by {signal.Signals(-status).name}"


def pipe_of_answers() -> IO[bytes]:
    """Return the pipe of the answers, and keep both pipes from the candidate: it prints to stderr.

    Its standard input is empty.
    """
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return answers


def answer(questions: IO[bytes]) -> None:
    """Answer the one call that comes, then wait for the end of the questions."""
    call = pickle.load(questions)  # noqa: S301 (it is this package that asks)
    answers = pipe_of_answers()
    threading.Thread(target=_end_with, args=(questions,), daemon=True).start()
    outcome = run_shard(*call)
    with answers:
        pickle.dump(outcome, answers)
    threading.Event().wait()


def _end_with(questions: IO[bytes]) -> None:
    """End this process when the asking process closes the pipe or is killed."""
    questions.read(1)
    os._exit(1)
