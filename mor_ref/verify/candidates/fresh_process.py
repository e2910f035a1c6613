"""Calls in a fresh process, which imports the modules of a directory as they are now.

A worker outlives a run, and a module that it has imported stays as it was. The process works in the
directory that it is given, ends with the process that started it, and crashes alone.
"""

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from mor_ref.verify.candidates.candidate import CandidateError
from mor_ref.workers.added_rows import digest_of_program, modules_of_rows
from mor_ref.workers.shards import Outcome, run_shard

Result = TypeVar("Result")

_PROGRAM = """import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
from mor_ref.verify.candidates.fresh_process import answer
answer()
"""


def outcome_of_candidate(
    directory: Path, name: str, function: Callable[..., Result], *arguments: Any
) -> Outcome[Result]:
    """Return the outcome of a function, which opens the candidate of this name in a directory.

    A candidate of this package is the same in all directories, and needs no process of its own.
    """
    if ":" not in name:
        return Outcome.of(function(name, *arguments))
    paths = [str(Path(path).resolve()) for path in sys.path if path]
    rows = modules_of_rows()
    call = (digest_of_program(rows), rows, function, (name, *arguments))
    with _started(directory) as process:
        questions, answers = process.stdin, process.stdout
        if questions is None or answers is None:
            raise AssertionError("both are pipes")
        try:
            questions.write(pickle.dumps(paths) + pickle.dumps(call))
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


def _started(directory: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-c", _PROGRAM]
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(command, cwd=directory, stdin=pipe, stdout=pipe)  # noqa: S603
    except OSError as error:
        raise CandidateError(
            f"{directory} is not there ({error.strerror}); start where all workers find the "
            "candidate"
        ) from error


def _by(status: int) -> str:
    if status >= 0:
        return f"with status {status}"
    return f"by {signal.Signals(-status).name}"


def answer() -> None:
    """Answer the one call that comes over the standard input, then wait for its end."""
    call = pickle.load(sys.stdin.buffer)  # noqa: S301 (it is this package that asks)
    asker, answers = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # neither is the candidate's to use
    os.dup2(2, 1)
    threading.Thread(target=_end_with, args=(asker,), daemon=True).start()
    outcome = run_shard(*call)
    with os.fdopen(answers, "wb") as pipe:
        pickle.dump(outcome, pipe)
    threading.Event().wait()


def _end_with(asker: int) -> None:
    """End this process when the asking process closes the pipe or is killed."""
    os.read(asker, 1)
    os._exit(1)
