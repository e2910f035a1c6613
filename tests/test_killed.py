"""Runs that are killed: no half file is ever seen under its name, and the next run finishes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from forking import python

from mor_ref.golden.generation import directory as making
from mor_ref.golden.generation.directory import RECORD, lock_directory
from mor_ref.golden.generation.vectors import make
from mor_ref.golden.model.suite import Size
from mor_ref.golden.store import suite_files
from mor_ref.whole_files import remove_unfinished, write_whole
from mor_ref.workers import package_digest

SUITES = ("decisions", "error_steps")

# At the n-th file that it opens for writing in the directory, it is killed after 40 bytes; or
# before it names the n-th file. The kernel does the first, so that it matters not how it writes.
RUN = """
import os, resource, signal, sys
folder, event, left = sys.argv[1], sys.argv[2], int(sys.argv[3])
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
own = os.getpid()

def watch(name, given):
    global left
    if name not in ("open", "os.rename") or os.getpid() != own or folder not in str(given[0]):
        return
    if name == event and (name == "os.rename" or given[2] & (os.O_WRONLY | os.O_RDWR)):
        left -= 1
        if left == 0 and name == "open":
            resource.setrlimit(resource.RLIMIT_FSIZE, (40, resource.RLIM_INFINITY))
        elif left == 0:
            os.kill(own, signal.SIGKILL)

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from mor_ref.golden import bundled_files
from mor_ref.golden.generation import vectors as making
from mor_ref.golden.model.suite import Size
from mor_ref.golden.store.manifest import read_manifest
from mor_ref.workers.pools import Workers

def kept(name, size, *, searches):
    entry, files = read_manifest(bundled_files())["suites"][name], [f"{name}.safetensors"]
    files += [f"negative/{name}.safetensors"] * ("negative" in entry)
    return {file: (bundled_files() / file).read_bytes() for file in files}, entry

workers = None
if sys.argv[4] == "kept":
    making.made, workers = kept, Workers(lambda: ThreadPoolExecutor(1), 1)
sys.addaudithook(watch)
making.make(sys.argv[5:], Path(folder), Size(), workers=workers)
"""


def seen_in(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


def hidden_in(folder):
    return {path.name for path in folder.rglob(".*")}


@pytest.fixture(scope="module")
def right(tmp_path_factory):
    folder = tmp_path_factory.mktemp("right")
    make(SUITES, folder, Size())
    return seen_in(folder)


@pytest.mark.tier("full", but_one_in=4)
# The record, a suite, its wrong results, the manifest; and the next suite.
@pytest.mark.parametrize(
    ("event", "number"),
    [*(("open", number) for number in range(1, 6)), *(("os.rename", n) for n in range(1, 5))],
)
def test_a_run_that_is_killed_at_any_moment(tmp_path, right, event, number):
    folder = tmp_path / "made"
    # To compute a suite, in another process, takes long; one run does.
    made = "computed" if (event, number) == ("os.rename", 4) else "kept"
    killed = python(RUN, folder, event, number, made, *SUITES)
    assert killed.returncode < 0, killed.stderr
    seen = seen_in(folder)
    listed = json.loads(seen.pop(suite_files.MANIFEST, b'{"suites": {}}'))["suites"]
    for name, content in seen.items():
        assert content == right[name], name
    assert {f"{name}.safetensors" for name in listed} <= set(seen)
    if (event, number) != ("open", 1):
        assert len(hidden_in(folder)) == 2, "it has nothing to take away"
    again = python(RUN, folder, "", 0, made, *SUITES)
    assert again.returncode == 0, again.stderr
    assert seen_in(folder) == right
    assert hidden_in(folder) == {RECORD}


def test_only_what_was_left_by_a_killed_run_is_taken_away(tmp_path):
    folder, outside = tmp_path / "made", tmp_path / "outside"
    outside.mkdir()
    mine = (".a.safetensors.mine", ".a.safetensors.12345678", ".a.12345678.unfinished", "a")
    left = ".a.safetensors.abcdefgh.unfinished"
    for name in (*mine, left):
        write_whole(folder / name, b"")
    (outside / left).write_bytes(b"")
    (folder / left.replace("abc", "xyz")).symlink_to(outside / left)
    (folder / left.replace("abc", "uvw")).mkdir()
    (folder / "negative").symlink_to(outside)
    for pattern in ("*.safetensors", "negative/*.safetensors"):
        remove_unfinished(folder, pattern)
    assert not (folder / left).exists()
    assert len(list(folder.iterdir())) == len(mine) + 3
    assert (outside / left).exists()


@pytest.mark.tier("full")
def test_what_another_program_made_is_not_taken_for_done(tmp_path, monkeypatch):
    make(["decisions"], tmp_path, Size())
    monkeypatch.setattr(making, "_this_program", lambda: b"another\n")
    for suites in (["decisions"], ["error_steps"]):
        with pytest.raises(
            suite_files.GoldenError,
            match="made by another version of mor-ref or of a module of --rows; remove",
        ):
            make(suites, tmp_path, Size())
    monkeypatch.undo()
    make(["decisions"], tmp_path, Size())
    for take_away in (Path.unlink, lambda path: path.write_bytes(b"")):
        take_away(tmp_path / RECORD)
        with pytest.raises(suite_files.GoldenError) as refused:
            make(["decisions"], tmp_path, Size())
        assert (
            "holds suites made by a version of mor-ref that .made_by does not name; remove them"
            in str(refused.value)
        )
        (tmp_path / RECORD).touch()


def test_another_line_is_another_program(tmp_path, monkeypatch):
    """Even in a file that is new, or has another name."""
    (tmp_path / "mor_ref" / "golden").mkdir(parents=True)
    place = tmp_path / "mor_ref" / "workers" / "package_digest.py"
    monkeypatch.setattr(package_digest, "__file__", str(place))
    found = set()
    for name, text in (("a", "x = 1"), ("a", "x = 2"), ("b", "x = 2"), ("exact/c", "")):
        path = tmp_path / "mor_ref" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        package_digest.digest_of_sources.cache_clear()
        found.add(package_digest.digest_of_sources())
    package_digest.digest_of_sources.cache_clear()
    assert len(found) == 4


def test_two_runs_in_a_directory(tmp_path):
    script = """
import sys
from pathlib import Path
from mor_ref.golden.generation.directory import lock_directory
with lock_directory(Path(sys.argv[1]), ()):
    print("held", flush=True)
    sys.stdin.read()
"""
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(
            suite_files.GoldenError, match="is being filled by another run of mor-ref"
        ):
            make(["decisions"], tmp_path, Size())
        other.stdin.close()
    with lock_directory(tmp_path, ()):
        pass


@pytest.mark.parametrize(
    ("put", "reason"),
    [
        (lambda path, outside: path.symlink_to(outside), "it is a link"),
        (lambda path, _: path.symlink_to(path.parent / "nowhere"), "it is a link"),
        (lambda path, _: os.mkfifo(path), "it is not a regular file"),
        (lambda path, _: path.mkdir(), "Is a directory"),
    ],
)
def test_a_record_that_is_not_a_file_of_the_directory(tmp_path, put, reason):
    """It is not followed, and not waited for."""
    folder, outside = tmp_path / "made", tmp_path / "outside"
    folder.mkdir()
    outside.write_text("mine")
    put(folder / RECORD, outside)
    with pytest.raises(suite_files.GoldenError, match=f"cannot be written .{reason}.; remove it"):
        make(["decisions"], folder, Size())
    assert outside.read_text() == "mine"
    assert [path.name for path in folder.iterdir()] == [RECORD]


def test_an_interrupted_run_waits_for_no_shard(tmp_path):
    """Whether the signal goes to the one that started the processes alone, or to them as well.

    It comes when both processes have a shard. No shard ends: to wait for one has no end.
    """
    script = """
import os, signal, sys, threading
from pathlib import Path
from mor_ref.workers import pools as workers
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start tests without one
workers.available_threads = lambda: 2
pipes = [Path(sys.argv[2], str(number)) for number in range(8)]
for pipe in pipes:
    os.mkfifo(pipe)

def interrupt():
    held = [os.open(pipe, os.O_WRONLY) for pipe in pipes[:2]]
    os.kill(int(sys.argv[1]) * os.getpid(), signal.SIGINT)
    threading.Event().wait(None if held else 0)

threading.Thread(target=interrupt, daemon=True).start()
list(workers.processes().in_order(Path.read_bytes, [(pipe,) for pipe in pipes]))
"""
    for group in ("1", "-1"):
        (tmp_path / group).mkdir()
        done = subprocess.run(
            [sys.executable, "-c", script, group, str(tmp_path / group)],
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
        )
        assert done.returncode == -signal.SIGINT
        assert done.stderr.count("KeyboardInterrupt") == 1


def test_processes_end_with_the_one_that_started_them():
    """They hold the standard output: its end is waited for."""
    script = """
import os, signal
from mor_ref.workers.pools import _processes
with _processes() as pool:
    assert pool.submit(os.getpid).result() != os.getpid()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
