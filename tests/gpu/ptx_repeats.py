"""Recorded launches of PTX, repeated on a GPU and compared: `python -m gpu.ptx_repeats`.

Workers share the sessions. A kernel that fails leaves its process without a GPU, and one that hangs
ends it: then another process goes on with the next session.
"""

import ctypes
import faulthandler
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from gpu.mma import ARCHITECTURES
from gpu.ptx_launches import ALIGNED, TESTS, Address, read

from mor_ref.cuda.device import cupy

PATIENCE = 20  # seconds, for a module or a launch
_LOG_AND_ITS_SIZE = 5, 6  # CU_JIT_ERROR_LOG_BUFFER and its size in bytes
_SHOWN = 6  # differences of an array
_MOST_WRONG = 20  # after which a process that ended is not begun again
_QUIET = re.compile(r"(?:ld|st|mov|cvta|ret|mul\.wide|add\.s64|mad\.wide)\b")
_BOUNDED = re.compile(r"(?:div\.full|\w+\.approx)[.\w]*: PTX bounds.*", re.DOTALL)
_PROFILED = re.compile(r"\bmma\.sync\.\S*\.f(?:16|32)\.")
_TARGET = re.compile(r"\.target\s+sm_(\d+)")


@dataclass
class Report:
    """Counts of compared launches and of arrays with open bits, and texts of the differences.

    `refused` counts the reasons why the driver took no module.
    """

    compared: int = 0
    opened: int = 0
    wrong: list = field(default_factory=list)
    refused: Counter = field(default_factory=Counter)

    def add(self, line):
        """Add what a worker says about a session."""
        self.compared += line.get("compared", 0)
        self.opened += line.get("opened", 0)
        self.wrong += line.get("wrong", [])
        self.refused.update(line.get("refused", []))

    def __str__(self):
        reasons = "".join(f"\n  {count} x {why}" for why, count in self.refused.most_common())
        return (
            f"{self.compared} launches compared, {self.opened} arrays with open bits, "
            f"{len(self.wrong)} differ; the driver refused {self.refused.total()}:{reasons}\n"
            + "\n".join(self.wrong)
        )


def for_driver(text):
    """Return a module with the newest version of PTX that the driver knows."""
    major, minor = divmod(cupy().cuda.runtime.driverGetVersion() // 10, 100)
    version = f".version {major - 4}.{minor}"
    return re.sub(r"\.version\s+\S+", version, text.rstrip("\0"), count=1)


def why_refused(text):
    """Return the first line that the driver's compiler writes of a module that it refuses."""
    log, module = ctypes.create_string_buffer(1 << 12), ctypes.c_void_p()
    options = (ctypes.c_int * 2)(*_LOG_AND_ITS_SIZE)
    values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
    ctypes.CDLL("libcuda.so.1").cuModuleLoadDataEx(
        ctypes.byref(module), text.encode(), 2, options, values
    )
    line = log.value.decode().partition("\n")[0]
    return re.sub(r".*, line \d+; ", "", line)


def repeated(session, path):
    """Return what a session is on the GPU, a part of a report; CuPy loads a path once."""
    text = for_driver(session.text)
    path.write_text(text, "utf-8")
    try:
        module = cupy().RawModule(path=str(path))
        kernels = {each.kernel: module.get_function(each.kernel) for each in session.launches}
    except Exception as error:  # noqa: BLE001  # the driver has many
        return {"refused": [why_refused(text) or str(error)]}
    said = {"compared": 0, "opened": 0, "wrong": []}
    for launch in session.launches:
        arrays = run(kernels[launch.kernel], launch)
        said["compared"] += 1
        for number, found in enumerate(arrays):
            ends = [np.frombuffer(end[number], np.uint8) for end in launch.after]
            said["opened"] += any((end != ends[0]).any() for end in ends)
            wrong = differences(session, launch, found, ends)
            if wrong:
                said["wrong"].append(f"{title(session, launch)}\n  array {number}\n{wrong}")
    return said


def run(kernel, launch):
    """Run a launch on the GPU, and return the bytes of its arrays after it."""
    wholes, starts = [], []
    for before, shift in zip(launch.before, launch.shifts, strict=True):
        whole = cupy().empty(len(before) + 2 * ALIGNED, np.uint8)
        starts.append((shift - whole.data.ptr) % ALIGNED)
        host = np.zeros(whole.size, np.uint8)
        host[starts[-1] : starts[-1] + len(before)] = np.frombuffer(before, np.uint8)
        whole.set(host)
        wholes.append(whole)
    values = []
    for value in launch.values:
        if isinstance(value, Address):
            at = wholes[value.number].data.ptr + starts[value.number] + value.offset
            values.append(np.uint64(at))
        elif len(value) in (1, 2, 4, 8):
            values.append(np.frombuffer(value, f"u{len(value)}")[0])
        else:
            values.append(np.frombuffer(value, [("bytes", "u1", len(value))]))
    if launch.dynamic > 48 << 10:
        kernel.max_dynamic_shared_size_bytes = launch.dynamic
    kernel(launch.grid, launch.block, tuple(values), shared_mem=launch.dynamic)
    cupy().cuda.Device().synchronize()
    parts = zip(wholes, starts, launch.before, strict=True)
    return [whole.get()[start : start + len(before)] for whole, start, before in parts]


def title(session, launch):
    """Return the test, the kernel, and its instructions other than moves."""
    if session.labels:
        return f"{session.test} {launch.kernel}"
    lines = [line.strip() for line in re.split(r"[;\n]", session.text.partition("{")[2])]
    others = dict.fromkeys(line for line in lines if line[:1].isalpha() or line[:1] == "@")
    shown = [line for line in others if not _QUIET.match(line)][:8]
    notes = "".join(f"\n  note: {note[:160]}" for note in launch.opened)
    return f"{session.test} {launch.kernel}: {'; '.join(shown)}{notes}"


def differences(session, launch, found, ends):
    """Return a text of the places where an array has other bits than the CPU may give."""
    settled = np.all([end == ends[0] for end in ends], axis=0)
    wrong = settled & (found != ends[0])
    is_bounded = len(launch.opened) == 1 or session.labels
    if is_bounded and all(map(_BOUNDED.fullmatch, launch.opened)) and not len(found) % 4:
        is_open = ~settled.reshape(-1, 4).all(axis=1)
        is_wrong = np.where(is_open, ~within(found, ends), wrong.reshape(-1, 4).any(axis=1))
        wrong = np.repeat(is_wrong, 4)
    lines, counts = [], Counter()
    for at in sorted({at // 8 * 8 for at in np.flatnonzero(wrong).tolist()}):
        label, place = labelled(session, at, len(found))
        counts[label] += 1
        if counts[label] <= _SHOWN:
            inputs = " ".join(shown(before, place) for before in launch.before[bool(label) :])
            wanted = " or ".join(dict.fromkeys(shown(end.tobytes(), at) for end in ends))
            here = shown(found.tobytes(), at)
            lines.append(f"  {label} byte {place}: of {inputs}: GPU {here}, CPU {wanted}")
    more = [f"  {label} {n} differ" for label, n in counts.items() if n > _SHOWN]
    return "\n".join(lines + more)


def labelled(session, at, size):
    """Return the label of a place in an array, and the place of its inputs."""
    if not session.labels:
        return "", at
    share = size // len(session.labels)
    return session.labels[at // share], at % share


def within(found, ends):
    """Return which numbers of binary32 are between the ends, or NaN if an end is."""
    nearest, below, above = (end.view(np.float32) for end in ends)
    number = found.view(np.float32)
    least = np.fmin(np.fmin(below, above), nearest)
    most = np.fmax(np.fmax(below, above), nearest)
    may_be_nan = np.isnan(nearest) | np.isnan(below) | np.isnan(above)
    return (least <= number) & (number <= most) | np.isnan(number) & may_be_nan


def shown(memory, at):
    """Return eight bytes as a number in base 16."""
    return f"{int.from_bytes(memory[at : at + 8], 'little'):x}"


def run_here(sessions, to):
    """Repeat sessions of (number, session) here, and write a line for each to a file."""
    with tempfile.TemporaryDirectory() as folder:
        for number, session in sessions:
            to.write(json.dumps({"begins": number, "test": session.test}) + "\n")
            to.flush()
            faulthandler.dump_traceback_later(PATIENCE, exit=True)
            said = repeated(session, Path(folder) / f"{number}.ptx")
            faulthandler.cancel_dump_traceback_later()
            to.write(json.dumps(said) + "\n")
            to.flush()


def can_run(session, capability):
    """Return whether a module is for this GPU or for older ones.

    Sums of products have the bits of the architecture that the module names, and no others.
    """
    target = int(_TARGET.search(session.text).group(1))
    if _PROFILED.search(session.text):
        return any({target, capability} <= {*known} for known in ARCHITECTURES.values())
    return target <= capability


def run_apart(records, capability, share, of):
    """Return the lines of processes that repeat a share of the sessions."""
    places = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
    lines, first = [], 0
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "lines"
        while first is not None:
            arguments = map(str, (records, out, capability, share, of, first))
            done = subprocess.run(
                [sys.executable, "-m", "gpu.ptx_repeats", *arguments],
                env=os.environ | {"PYTHONPATH": places},
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            new = []
            if out.exists():
                new += map(json.loads, out.read_text("utf-8").splitlines())
                out.unlink()
            lines += new
            first = None
            if done.returncode:
                test = new[-1].get("test") if new else f"share {share}"
                lines.append({"wrong": [f"{test}: its process ended: {done.stderr[-800:]}"]})
                ends = sum(len(line.get("wrong", ())) for line in lines)
                if new and ends < _MOST_WRONG:
                    first = next(line["begins"] for line in reversed(new) if "begins" in line) + 1
    return lines


def report(records, capability, workers):
    """Return a report of all recorded sessions that a GPU can run."""
    found = Report()
    with ThreadPoolExecutor(workers) as pool:
        shares = pool.map(lambda k: run_apart(records, capability, k, workers), range(workers))
        for lines in shares:
            for line in lines:
                found.add(line)
    return found


def main():
    """Repeat a share of the sessions, from one of them on."""
    records, out, *numbers = sys.argv[1:]
    capability, share, of, first = map(int, numbers)
    sessions = [each for each in read(records)[0] if can_run(each, capability)]
    chosen = [(k, sessions[k]) for k in range(share, len(sessions), of) if k >= first]
    with Path(out).open("w", encoding="utf-8") as to:
        run_here(chosen, to)


if __name__ == "__main__":
    main()
