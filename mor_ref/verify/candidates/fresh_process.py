"""A call in a process of its own: what it imports is what lies in the folder now.

A worker outlives a run, and a module that it has imported stays as it was. The process works in the
folder that it is given, ends with the one that started it, and takes nothing with it if it crashes.
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
from mor_ref.workers.shards import Outcome, run_shard
from mor_ref.workers.sources import digest_of_sources

Result = TypeVar("Result")

_PROGRAM = """import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
from mor_ref.verify.candidates.fresh_process import answer
answer()
"""


def called_afresh(folder: Path, function: Callable[..., Result], *arguments: Any) -> Result:
    """What a function of this package gives, or raises, in a new process that works in a folder."""
    paths = [str(Path(path).resolve()) for path in sys.path if path]
    call = (digest_of_sources(), function, arguments)
    process = _started(folder)
    with process:
        questions, answers = process.stdin, process.stdout
        if questions is None or answers is None:
            raise AssertionError("both are pipes")
        try:
            questions.write(pickle.dumps(paths) + pickle.dumps(call))
            questions.flush()
            outcome: Outcome[Result] = pickle.load(answers)  # noqa: S301 (it is this package that answers)
        except (EOFError, OSError, pickle.UnpicklingError) as ended:
            process.wait()
            raise CandidateError(
                f"the process of the candidate was ended {_by(process.returncode)}; see what it "
                "writes to its standard error"
            ) from ended
        return outcome.result()


def _started(folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-c", _PROGRAM]
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(command, cwd=folder, stdin=pipe, stdout=pipe)  # noqa: S603
    except OSError as error:
        raise CandidateError(
            f"{folder} is not there ({error.strerror}); start where all workers find the candidate"
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
    """Whoever asked has closed the pipe, or was killed."""
    os.read(asker, 1)
    os._exit(1)
