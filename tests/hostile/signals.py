"""Signals at random calls of commands: each ends, with whole files and without a traceback."""

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

# It counts the calls of Python, and sends itself a signal at one of them.
RUN = """
import os, signal, sys
number, left = int(sys.argv.pop(1)), int(sys.argv.pop(1))
signal.signal(signal.SIGINT, signal.default_int_handler)
from mor_ref import cli
calls, app = 0, cli.app

def count(frame, event, value):
    global calls
    if event == "call":
        calls += 1
        if calls == left:
            os.kill(os.getpid(), number)

def counted():
    sys.setprofile(count)
    try:
        app()
    finally:
        sys.setprofile(None)
        open("calls", "w").write(str(calls))

cli.app = counted
sys.argv[0] = "mor-ref"
cli.main()
"""
RECIPE = ("--recipe", "mxfp8_e4m3:floor:32")
COMMANDS = [
    ("quantize", "x.npz", *RECIPE, "--out", "out.safetensors"),
    ("compare", "x.npz", *RECIPE, "--out", "out.json"),
    ("analyze", "x.npz"),
    ("golden", "export", "--suite", "decisions", "--to", "c", "--out", "out"),
    ("verify", "exec:sleep infinity", "--suite", "decisions", "--timeout", "2"),
]
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def attack(draw, rounds):
    """Run each command once in peace and then so often with a signal; return what went wrong."""
    failures = []
    for command in COMMANDS:
        _, calls, whole = _run(command, signal.SIGTERM, 0)
        for _ in range(rounds):
            number, left = draw.choice(SIGNALS), draw.randint(1, calls)
            done, _, seen = _run(command, number, left)
            where = f"{' '.join(command)}, {signal.Signals(number).name} at call {left}"
            failures += [f"{where}: {fault}" for fault in _faults(done, number, seen, whole)]
    return failures


def _faults(done, number, seen, whole):
    expected = {130, -signal.SIGINT} if number == signal.SIGINT else {-number}
    if done.returncode not in expected:
        yield f"status {done.returncode}"
    for word in ("Traceback", "Exception ignored", "Error"):
        if word in done.stderr:
            yield f"{word} in {done.stderr[-500:]!r}"
    for name, content in seen.items():
        if whole.get(name) != content:
            yield f"{name} is not a whole file"


def _run(command, number, left):
    """Return the end of a command in a directory of its own, its calls, and the files there."""
    with tempfile.TemporaryDirectory() as folder:
        numbers = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)
        np.savez(Path(folder, "x.npz"), a=numbers, b=numbers)
        before = {"x.npz"}
        arguments = [sys.executable, "-c", RUN, str(int(number)), str(left), *command]
        done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)
        counted = Path(folder, "calls")
        calls = int(counted.read_text() or 1) if counted.exists() else 1
        counted.unlink(missing_ok=True)
        files = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in Path(folder).rglob("*")
            if path.is_file() and path.name not in before
        }
    return done, calls, files
