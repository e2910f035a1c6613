"""Outputs of commands: never a file that is read, whole or not there, and checked first."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from extras import needs
from forking import mor_ref as run
from forking import python
from safetensors.numpy import save_file

from mor_ref import whole_files
from mor_ref.golden import bundled_files

RECIPE = ("--recipe", "mxfp8_e4m3:floor:32")


@pytest.fixture
def model(tmp_path):
    """Return a directory of a model in two parts with an index, and links to them."""
    where = tmp_path / "model"
    where.mkdir()
    save_file({"a": np.ones((2, 32), np.float32)}, where / "m-1.safetensors")
    save_file({"b": np.ones((2, 32), np.float32)}, where / "m-2.safetensors")
    (where / "unused.npz").write_bytes(b"of another program")
    (where / "config.json").write_text("{}")
    places = {"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}}
    (where / "m.safetensors.index.json").write_text(json.dumps(places))
    (tmp_path / "hard.safetensors").hardlink_to(where / "m-1.safetensors")
    (tmp_path / "soft.safetensors").symlink_to(where / "m-1.safetensors")
    (tmp_path / "soft.json").symlink_to(where / "m.safetensors.index.json")
    return where


def contents(where):
    return {path: path.read_bytes() for path in where.rglob("*") if path.is_file()}


INDEX = "model/m.safetensors.index.json"
OVERWRITING = [
    ("quantize", "model", *RECIPE, "--out", "model/m-1.safetensors"),
    ("quantize", "model", *RECIPE, "--out", "./model/../model/m-2.safetensors"),
    ("quantize", "model", *RECIPE, "--out", "model/unused.npz"),
    ("quantize", INDEX, *RECIPE, "--out", "model/m-1.safetensors"),
    ("quantize", INDEX, *RECIPE, "--out", "hard.safetensors"),
    ("quantize", INDEX, *RECIPE, "--out", "soft.safetensors"),
    ("quantize", "soft.safetensors", *RECIPE, "--out", "model/m-1.safetensors"),
    ("dequantize", "soft.safetensors", *RECIPE, "--out", "model/m-1.safetensors"),
    ("decode", "soft.safetensors", "--format", "e4m3", "--out", "hard.safetensors"),
    ("compare", INDEX, *RECIPE, "--out", "t.csv", "--out", INDEX),
    ("compare", "model", *RECIPE, "--out", "soft.json"),
    ("compare", "model", *RECIPE, "--out", "model/config.json"),
    ("verify", "numba", "--inputs", INDEX, *RECIPE, "--report", INDEX),
    ("verify", "numba", "--inputs", "model", *RECIPE, "--report", "r.xml", "--report", "soft.json"),
    ("verify", "numba", "--vectors", "golden", "--report", "golden/MANIFEST.json"),
    ("verify", "numba", "--vectors", "golden", "--report", "golden/exhaustive.json"),
    ("verify", "dir:results", "--vectors", "golden", "--report", "results/encode/fields.json"),
    ("verify", "exec:./program golden.json", "--report", "golden.json"),
]


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("command", OVERWRITING, ids=" ".join)
def test_no_output_is_a_file_that_is_read(tmp_path, command):
    golden = tmp_path / "golden"
    golden.mkdir()
    for name in ("MANIFEST.json", "exhaustive.json"):
        (golden / name).write_bytes((bundled_files() / name).read_bytes())
    (tmp_path / "results" / "encode").mkdir(parents=True)
    (tmp_path / "results" / "encode" / "fields.json").write_text("{}")
    (tmp_path / "golden.json").write_text("{}")
    before = contents(tmp_path)
    done = run(*command, cwd=tmp_path)
    said = f"mor-ref: {command[-2][2:]} is '{command[-1]}', which is also an input; give another"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith(said)
    assert contents(tmp_path) == before


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(
    ("command", "first", "second"),
    [
        (("compare", "model", *RECIPE, "--out"), "z.json", "./z.json"),
        (("verify", "numba", "--inputs", "model", *RECIPE, "--report"), "a.json", "b.json"),
    ],
    ids=["compare", "verify"],
)
def test_no_output_is_named_twice(tmp_path, command, first, second):
    """Also by a link; nothing is computed or written."""
    (tmp_path / "a.json").write_text("of before")
    (tmp_path / "b.json").symlink_to("a.json")
    before = contents(tmp_path)
    done = run(*command, first, command[-1], second, cwd=tmp_path)
    said = f"{command[-1][2:]} is {second!r}, the same file as {first!r}; give each file once"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"mor-ref: {said}\n"
    assert contents(tmp_path) == before


def test_the_way_through_an_open_file_leads_to_the_same_file(tmp_path, model):
    """As /dev/fd and /proc/self/fd have it."""
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("only Linux has /proc/self/fd")
    (tmp_path / "fds").symlink_to("/proc/self/fd")
    before = contents(model)
    program = (
        "import os, sys; from pathlib import Path; from mor_ref.cli.outputs import output_named; "
        "f = open(sys.argv[1]); output_named('out', f'fds/{f.fileno()}', [Path(sys.argv[1])])"
    )
    done = python(program, model / "m-1.safetensors", cwd=tmp_path)
    assert done.stderr.splitlines()[-1].endswith("which is also an input; give another file")
    assert contents(model) == before


@pytest.mark.parametrize(
    ("command", "argument"),
    [
        (("quantize", "x.npy", *RECIPE, "--out", "FILE.npz"), "out"),
        (("dequantize", "x.npy", *RECIPE, "--out", "FILE.npz"), "out"),
        (("decode", "x.npy", "--format", "e4m3", "--out", "FILE.npz"), "out"),
        (("compare", "x.npy", *RECIPE, "--out", "FILE.csv"), "out"),
        pytest.param(("analyze", "x.npy", "--plot", "FILE.png"), "plot", marks=needs("matplotlib")),
        (("verify", "numba", "--report", "FILE.html"), "report"),
    ],
)
@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("x.npy/FILE", "Not a directory"),
        ("folder/FILE", "Is a directory"),
        ("pipe/FILE", "it is not a regular file"),
        (f"{'x' * 245}FILE", "File name too long"),  # of the unfinished file, whose name is longer
    ],
)
def test_what_cannot_be_written_is_refused_before_the_work(
    tmp_path, command, argument, place, reason
):
    """The input is not a file of tensors, which is found out later."""
    (tmp_path / "x.npy").write_bytes(b"not read yet")
    *words, last = command
    ending = last.removeprefix("FILE")
    (tmp_path / "folder" / f"FILE{ending}").mkdir(parents=True)
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / f"FILE{ending}")
    given = f"{place}{ending}"
    done = run(*words, given, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    said = f"mor-ref: {argument} is '{given}', which cannot be written ({reason}); give a file in"
    assert done.stderr.splitlines()[-1].startswith(said)


# Every file that is not finished is /dev/full, which takes no byte.
FULL = """
import os, sys
from mor_ref import whole_files
unfinished = whole_files._unfinished

def full(path):
    handle, name = unfinished(path)
    os.dup2(os.open("/dev/full", os.O_WRONLY), handle)
    return handle, name

whole_files._unfinished = full
sys.argv[0] = 'mor-ref'
from mor_ref.cli import main
main()
"""
with_full_disk = pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="only Linux has a /dev/full"
)


@with_full_disk
@pytest.mark.parametrize("ending", ["csv", "json"])
def test_a_disk_that_is_full_leaves_what_was_there_and_shows_what_was_found(tmp_path, ending):
    np.save(tmp_path / "x.npy", np.ones((4, 32), np.float32))
    table = tmp_path / f"t.{ending}"
    table.write_text("older")
    done = python(FULL, "compare", "x.npy", *RECIPE, "--out", table.name, cwd=tmp_path)
    assert done.returncode == 2
    assert "smallest error: mxfp8_e4m3:floor:32: " in done.stdout
    reason = "cannot be written (No space left on device); make room for it, or give another file"
    assert done.stderr.splitlines()[-1] == f"mor-ref: {table.name} {reason}"
    assert table.read_text() == "older"
    assert {path.name for path in tmp_path.iterdir()} == {"x.npy", table.name}


@with_full_disk
def test_a_full_disk_is_named_in_the_error_of_quantize(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((4, 32), np.float32))
    done = python(FULL, "quantize", "x.npy", *RECIPE, "--out", "q.npz", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(
        "mor-ref: q.npz cannot be written (No space left on device); make"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


def test_an_error_of_reading_does_not_blame_the_output(tmp_path):
    def write():
        with whole_files.whole_file(tmp_path / "y"):
            (tmp_path / "x").read_bytes()

    with pytest.raises(FileNotFoundError, match="x'"):
        write()
    assert list(tmp_path.iterdir()) == []


def test_a_small_file_is_read_in_little_memory(tmp_path, monkeypatch):
    """Python reserves as many bytes as a read asks for."""
    asked = []
    opened = whole_files._opened_inside

    class Watched:
        def __init__(self, file):
            self.file = file

        def fileno(self):
            return self.file.fileno()

        def read(self, count):
            asked.append(count)
            return self.file.read(count)

    class Opening:
        def __init__(self, *place):
            self.manager = opened(*place)

        def __enter__(self):
            return Watched(self.manager.__enter__())

        def __exit__(self, *error):
            return self.manager.__exit__(*error)

    monkeypatch.setattr(whole_files, "_opened_inside", Opening)
    (tmp_path / "a").write_bytes(b"abc")
    assert whole_files.read_inside(tmp_path, "a") == b"abc"
    assert asked == [4]
