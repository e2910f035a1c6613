"""The code that the tests of workers share: a pool, a candidate, and how many workers there are.

`two_threads` is for all tests of threads: a machine may have one processor.
"""

import contextlib
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from mor_ref.engine import parallel
from mor_ref.workers import pools as workers
from mor_ref.workers.pools import Workers

SMALL = ("decisions", "error_steps", "decode")


def threads(count=2):
    return Workers(lambda: ThreadPoolExecutor(count), count)


@pytest.fixture(autouse=True)
def two_processes(monkeypatch):
    """Use two processes on a machine of any size: more show nothing more."""
    monkeypatch.setattr(workers, "available_threads", lambda: 2)


@pytest.fixture
def two_threads(monkeypatch):
    """Allow two threads on a machine of any size."""
    monkeypatch.setattr(parallel, "available_threads", lambda: 2)


def wait_until(condition):
    """Wait for an event that has to come, however long a busy machine takes."""
    while not condition():
        time.sleep(0.01)


def pid_among(folder, count):
    """Return the id of this process, once so many processes have a shard."""
    (folder / str(os.getpid())).touch()
    wait_until(lambda: len(list(folder.iterdir())) >= count)
    return os.getpid()


def dying_once(path, number):
    """Kill the worker the first time that it is called with 2."""
    if number == 2:
        with contextlib.suppress(FileExistsError), path.open("x"):
            os.kill(os.getpid(), signal.SIGKILL)
    return number


CANDIDATE = """
from mor_ref.operations import OPERATIONS

def wrong(operation, parameters, inputs):
    found = dict(OPERATIONS[operation].engine(parameters, inputs))
    if operation == "decide":
        found["accepted"] = found["accepted"] ^ 1
    return found

def failing(operation, parameters, inputs):
    if operation == "error_term":
        raise RuntimeError("no")
    return wrong(operation, parameters, inputs)
"""
