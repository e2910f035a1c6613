"""Launches that the tests of `mor_ref.ptx` make, recorded so that a GPU can repeat them.

`PYTHONPATH=tests python -m gpu.ptx_launches` runs these tests, and needs ptxas but no GPU. As a
plugin of pytest this module repeats each launch on the CPU: in three orders of threads, and with
bits that PTX leaves open at both ends. Results that depend on the
order, or on an address, are left out.
"""

import ctypes
import hashlib
import os
import pickle
import subprocess
import sys
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mor_ref import ptx
from mor_ref.ptx import LaunchError, Module, PtxError, Schedule
from mor_ref.ptx.memory import _value
from mor_ref.ptx.running import Configured

FOLDER = "MOR_REF_PTX_LAUNCHES"  # a variable of the environment
TESTS = Path(__file__).parents[1]
ALIGNED = 256  # of memory on a GPU; places are kept modulo this
_MOST_BYTES, _MOST_INSTRUCTIONS = 1 << 22, 1 << 23  # of a launch
# Looks for the place of an error, which while it is recorded is in this module.
_NOT_RECORDED = "tests/test_ptx_errors.py::test_no_line_of_mor_ref_is_the_place_of_an_error"
_ORDERS = (Schedule(), Schedule(order=1, filling=0x5A), Schedule(order=7, filling=0))
_RUNS = (
    *((order, "nearest") for order in _ORDERS),
    *((Schedule(), end) for end in ("below", "above")),
)


@dataclass(frozen=True)
class Address:
    """An argument that is an address: in which array of memory, and where."""

    number: int
    offset: int
    size: int


@dataclass
class Launch:
    """A launch: arrays of memory before it, and after it with open bits at each end.

    `shifts` are the addresses of the arrays modulo ALIGNED, and `opened` the notes on open bits.
    """

    kernel: str
    grid: tuple
    block: tuple
    dynamic: int
    values: list
    before: list
    shifts: list
    after: list = field(default_factory=list)
    opened: list = field(default_factory=list)


@dataclass
class Session:
    """A module, and its launches in their order.

    With `labels`, each has the same share of the first array, and the rows of the others.
    """

    test: str
    text: str
    labels: tuple = ()
    launches: list = field(default_factory=list)


def uploaded(bytes_of, shift):
    """Return memory at an address with this remainder, and the view of it that has the bytes."""
    size = len(bytes_of)
    whole = np.zeros(size + 2 * ALIGNED, np.uint8)
    first = (shift - whole.ctypes.data) % ALIGNED
    whole[first : first + size] = np.frombuffer(bytes_of, np.uint8)
    return whole[first : first + size]


def taken(configured, arguments):
    """Return a launch as it is before it runs, or None if its memory cannot be had whole."""
    values, roots = [], []
    for parameter, argument in zip(configured.kernel.function.parameters, arguments, strict=True):
        arrays = []
        value = _value(parameter, argument, arrays)
        for array in arrays:
            root = array
            while isinstance(root.base, np.ndarray):
                root = root.base
            if not root.flags.forc:
                return None
            number = next((k for k, each in enumerate(roots) if each is root), len(roots))
            roots += [root] if number == len(roots) else []
            value = Address(number, array.ctypes.data - root.ctypes.data, array.nbytes)
        values.append(value)
    if sum(root.nbytes for root in roots) > _MOST_BYTES:
        return None
    return Launch(
        configured.kernel.function.name, configured.grid, configured.block, configured.dynamic,
        values,
        [ctypes.string_at(root.ctypes.data, root.nbytes) for root in roots],
        [root.ctypes.data % ALIGNED for root in roots],
    )  # fmt: skip


class Recorder:
    """The sessions of a run of tests, and modules that repeat their launches."""

    def __init__(self):
        self.launch = Configured.__call__
        self.sessions, self.left_out, self._seen, self._bytes = [], {}, set(), {}

    def method(self):
        """Return what takes the place of `Configured.__call__`."""

        def call(configured, *arguments, memory=()):
            self.record(configured, *arguments, memory=memory)

        return call

    def record(self, configured, *arguments, memory):
        """Launch a kernel as the test does, and record the launch."""
        module, executed = configured.kernel.module, configured.kernel.executed
        launch = None
        if not memory and len(arguments) == len(configured.kernel.function.parameters):
            try:
                launch = taken(configured, arguments)
            except LaunchError:
                launch = None
        has_variables = bool(module.globals.regions)
        try:
            self.launch(configured, *arguments, memory=memory)
        except BaseException:
            module.__dict__["is_spoiled"] = has_variables
            raise
        if configured.kernel.executed - executed > _MOST_INSTRUCTIONS:
            launch = None
        if launch is None or module.__dict__.get("is_spoiled"):
            module.__dict__["is_spoiled"] = has_variables
        else:
            self._record(module, launch)

    def _record(self, module, launch):
        if "session" not in module.__dict__:
            test = os.environ.get("PYTEST_CURRENT_TEST", "").split(" ")[0]
            session = Session(test, module.text)
            runs = [Module(module.text, schedule=order, undefined=end) for order, end in _RUNS]
            module.__dict__["session"] = session, runs
            self.sessions.append(session)
        session, runs = module.__dict__["session"]
        why = self._repeated(launch, runs)
        seen = hashlib.sha256(pickle.dumps((module.text, launch))).digest()
        if why:
            self.left_out[session.test] = why
            module.__dict__["is_spoiled"] = bool(module.globals.regions)
        elif seen not in self._seen or module.globals.regions:
            self._seen.add(seen)
            session.launches.append(launch)

    def _shared(self, found):
        """Return equal bytes once, so that they are written once."""
        return self._bytes.setdefault(found, found)

    def _repeated(self, launch, runs):
        """Add the results to a launch, or return why it cannot be compared."""
        found = []
        for module in runs:
            arrays = [uploaded(*each) for each in zip(launch.before, launch.shifts, strict=True)]
            values = [
                arrays[value.number][value.offset : value.offset + value.size]
                if isinstance(value, Address)
                else np.void(value)
                for value in launch.values
            ]
            configured = module[launch.kernel][launch.grid, launch.block, launch.dynamic]
            try:
                self.launch(configured, *values)
            except (LaunchError, PtxError) as error:
                return str(error)
            found.append([self._shared(array.tobytes()) for array in arrays])
        if any(found[k] != found[0] for k in range(1, len(_ORDERS))):
            return "its results depend on the order of threads, or on addresses"
        launch.after = [found[0], *found[len(_ORDERS) :]]
        launch.before = [self._shared(each) for each in launch.before]
        notes = [note for module in runs for note in module[launch.kernel].undefined]
        launch.opened = sorted({f"{note.opcode}: {note.why}" for note in notes})
        return ""


def pytest_configure(config):
    """Record from now on, and in each worker of xdist."""
    config.ptx_recorder = Recorder()
    Configured.__call__ = config.ptx_recorder.method()


def pytest_unconfigure(config):
    """Write what this process has recorded."""
    recorder = config.ptx_recorder
    Configured.__call__ = recorder.launch
    sessions = [session for session in recorder.sessions if session.launches]
    packed = zlib.compress(pickle.dumps((sessions, recorder.left_out)), 1)
    folder = Path(os.environ[FOLDER])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{os.getpid()}.pickle.z").write_bytes(packed)


def read(folder):
    """Return the recorded sessions, and why other launches were left out, by their tests."""
    sessions, left_out = [], {}
    for path in sorted(Path(folder).glob("*.pickle.z")):
        found = pickle.loads(zlib.decompress(path.read_bytes()))
        sessions += found[0]
        left_out |= found[1]
    return sorted(sessions, key=lambda session: session.test), left_out


def recorded():
    """Return the directory of the launches of this very code, which are made if need be.

    The variable of the environment names another one.
    """
    if FOLDER in os.environ:
        return Path(os.environ[FOLDER])
    programs = sorted(TESTS.glob("test_ptx_*.py"))
    digest = hashlib.sha256()
    ours = Path(__file__).parent.glob("ptx_*.py")
    for path in sorted([*Path(ptx.__file__).parent.rglob("*.*"), *programs, *ours]):
        if path.suffix in (".py", ".h", ".cpp"):
            digest.update(path.read_bytes())
    folder = TESTS.parent / "build" / f"ptx-launches-{digest.hexdigest()[:12]}"
    if not folder.exists():
        unfinished = folder.with_suffix(f".{os.getpid()}")
        record(unfinished, *map(str, programs), str(TESTS / "gpu" / "ptx_forms.py"))
        record(unfinished, "--tier=full", *map(str, programs))
        unfinished.rename(folder)
    return folder


def record(folder, *arguments):
    """Run tests, which the arguments of pytest name, and record their launches in a directory."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "-p", "gpu.ptx_launches"]
    command += ["--deselect", _NOT_RECORDED]
    places = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
    environment = os.environ | {"PYTHONPATH": places, FOLDER: str(folder)}
    subprocess.run([*command, *arguments], cwd=TESTS.parent, env=environment, check=True)


if __name__ == "__main__":
    sys.stdout.write(f"{recorded()}\n")
