"""Signals end a command at once, and leave neither files that are not finished nor programs."""

import os
import signal
import subprocess
import sys

import pytest

from mor_ref.signals import signals_later

ENDING = [signal.SIGTERM, signal.SIGHUP]


def ended(script, *arguments, **options):
    """Return a program that ends by a signal that it sends itself."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


WRITING = """
import os, sys
from pathlib import Path
from mor_ref import cli
from mor_ref.whole_files import whole_file

def run():
    with whole_file(Path(sys.argv[1], "y.npz")) as file:
        file.write(b"half")
        assert len(os.listdir(sys.argv[1])) == 1
        os.kill(os.getpid(), int(sys.argv[2]))

cli.app = run
cli.main()
"""


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_leaves_no_unfinished_file(tmp_path, number):
    done = ended(WRITING, tmp_path, int(number))
    assert (done.returncode, done.stderr) == (-number, "")
    assert list(tmp_path.iterdir()) == []


ASKING = """
import os, signal, sys, threading
from pathlib import Path
from mor_ref import cli
from mor_ref.verify.candidates import program
ask, place = program._Process.ask, Path(sys.argv[1])

def end(self, *question):
    place.write_text(str(self._popen.pid))
    os.kill(os.getpid(), signal.SIGTERM)
    return ask(self, *question)

program._Process.ask = end
sys.argv = ["mor-ref", "verify", "exec:sleep infinity", "--suite", "decisions"]
cli.main()
"""


def test_a_signal_ends_the_program_that_is_verified(tmp_path):
    done = ended(ASKING, tmp_path / "pid")
    assert done.returncode == -signal.SIGTERM, done.stderr
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_an_ignored_signal_stays_ignored():
    """As nohup has it."""
    script = """
import os, signal
from mor_ref.signals import signals_unwind
signal.signal(signal.SIGHUP, signal.SIG_IGN)
with signals_unwind():
    os.kill(os.getpid(), signal.SIGHUP)
print("went on")
"""
    assert ended(script).stdout == "went on\n"


def test_an_interrupt_that_is_lost_comes_again():
    """In a destructor, and in a callback of a library in C, no error is raised."""
    script = """
import os, signal, sys, threading
from mor_ref.signals import signals_unwind
signal.signal(signal.SIGINT, signal.default_int_handler)

class Ending:
    def __del__(self):
        os.kill(os.getpid(), int(sys.argv[1]))

try:
    with signals_unwind():
        ending = Ending()
        del ending
        threading.Event().wait()
except KeyboardInterrupt:
    print("interrupted")
"""
    done = ended(script, int(signal.SIGINT))
    assert (done.stdout, done.stderr) == ("interrupted\n", "")
    for number in ENDING:
        done = ended(script, int(number))
        assert (done.returncode, done.stdout, done.stderr) == (-number, "", "")


def test_signals_wait_for_the_end_of_what_cannot_be_interrupted():
    came, usual = [], signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        with signals_later(), signals_later():
            signal.raise_signal(signal.SIGINT)
            assert came == []
        assert came == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, usual)
    assert signal.getsignal(signal.SIGINT) is usual


def test_kernels_are_loaded_whole():
    """The interrupt comes while Numba compiles, and is raised after that."""
    script = """
import os, signal
from numba.core.registry import CPUDispatcher
from mor_ref.engine.kernel import integer_kernel
signal.signal(signal.SIGINT, signal.default_int_handler)
whole = CPUDispatcher.compile

def interrupted(self, signature):
    os.kill(os.getpid(), signal.SIGINT)
    compiled = whole(self, signature)
    print("compiled")
    return compiled

CPUDispatcher.compile = interrupted

@integer_kernel
def same(i):
    return i

try:
    same(1)
except KeyboardInterrupt:
    print("interrupted")
"""
    assert ended(script, env=os.environ | {"NUMBA_CACHE_DIR": "/nowhere"}).stdout == (
        "compiled\ninterrupted\n"
    )


def test_an_interrupted_run_of_processes_prints_no_error_of_its_results():
    """The executor of Python 3.11 prints one for each result that was cancelled."""
    script = """
import os, time
from mor_ref.workers.pools import processes
for _ in processes().as_done(os.getpid, [()] * 40):
    raise KeyboardInterrupt
"""
    done = ended(script)
    assert done.stderr.splitlines()[-1] == "KeyboardInterrupt"
    assert "InvalidStateError" not in done.stderr
    assert done.stderr.count("Traceback") == 1
