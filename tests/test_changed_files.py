"""Files that another process changes while a command reads them: a sentence, and never a signal.

A file is cut to its first page as soon as a part of it is mapped, or before a tensor of torch is
read. To look at any later page ends a process with SIGBUS then.
"""

import os
import zipfile
from pathlib import Path

import forking
import ml_dtypes
import numpy as np
import pytest
from extras import imported, needs
from safetensors.numpy import save_file

import mor_ref
from mor_ref.analysis.tensor_files import tensors_in
from mor_ref.mapped_files import ChangedFileError, in_memory, mapped, mapped_by_others, state_of
from mor_ref.whole_files import arrays_inside

pytestmark = pytest.mark.skipif(os.name != "posix", reason="others do not cut a mapped file")

PAGE = 4096  # bytes
SHAPE = (1 << 9, 1 << 8)
# Tensors are large from a page on, and are computed on in four strips.
CUTTING = """
import os, sys, numpy as np
from mor_ref.analysis import large_tensors, stored_tensors
from mor_ref.verify import quantize_by_rows
stored_tensors.COPIED = 1 << 12
quantize_by_rows.AT_ONCE = large_tensors.AT_ONCE = 1 << 15

def cut(path):
    if os.path.basename(path) == {name!r}:
        os.truncate(path, 4096)

def mapping(kind, file, *given, **named):
    found = new(kind, file, *given, **named)
    cut(os.fspath(getattr(file, "name", file)))
    return found

new, np.memmap.__new__ = np.memmap.__new__, mapping
from mor_ref.analysis import torch_files
array_of = torch_files._array
torch_files._array = lambda *given: [cut({name!r}), array_of(*given)][1]
"""
CANDIDATE = """
from mor_ref.operations import OPERATIONS

def right(operation, parameters, inputs):
    return OPERATIONS[operation].engine(parameters, inputs)
"""


def numbers():
    return np.random.default_rng(0).standard_normal(SHAPE, np.float32)


def save(path, x):
    """Write a file of the kind of its ending."""
    match path.suffix:
        case ".npy":
            np.save(path, x)
        case ".safetensors":
            save_file({"w": x}, path)
        case ".gguf":
            header = b"GGUF" + np.array([3, 0], "<u4").tobytes()[:4] + bytes(0)
            head = np.array([1, 0], "<u8").tobytes() + np.array([1], "<u8").tobytes() + b"w"
            sides = np.array([2], "<u4").tobytes() + np.array(x.shape[::-1], "<u8").tobytes()
            header += head + sides + np.array([0], "<u4").tobytes() + bytes(8)
            path.write_bytes(header + bytes(-len(header) % 32) + x.tobytes())
        case ".pt":
            torch = imported("torch")
            torch.save({"w": torch.from_numpy(x)}, path)


def run_cutting(folder, name, *command):
    """Run a command that reads a file, which is cut meanwhile."""
    (folder / "own_code.py").write_text(CANDIDATE)
    program = CUTTING.format(name=name) + forking.MAIN
    return forking.python(program, *command, cwd=folder)


COMMANDS = {
    "analyze": ["analyze"],
    "compare": ["compare"],
    **{
        f"quantize-{recipe}": ["quantize", "--recipe", recipe, "--out", "out.safetensors"]
        for recipe in (
            "mxfp8", "nvfp4", "e4m3:fp32:tensor", "e4m3:gam:128x128", "mor:three_way",
            "mxfp8:columns", "int8",
        )
    },
    **{
        f"verify-{candidate}-{recipe}": ["verify", candidate, "--recipe", recipe, "--inputs"]
        for candidate in ("numba", "own_code:right")
        for recipe in ("mxfp8", "nvfp4", "e4m3:fp32:tensor", "mor:three_way", "mxfp8:columns")
    },
    "verify-domain": ["verify", "numba", "--recipe", "nvfp4", "--domain", "finite", "--inputs"],
}  # fmt: skip
KINDS = ["npy", "safetensors", "gguf", pytest.param("pt", marks=needs("torch"))]


@pytest.mark.tier("full", but=["analyze-", "-nvfp4-npy", "nvfp4-pt", "-three_way-safetensors"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", [pytest.param(c, id=i) for i, c in COMMANDS.items()])
def test_an_input_that_is_cut_is_said(tmp_path, command, kind):
    save(tmp_path / f"x.{kind}", numbers())
    done = run_cutting(tmp_path, f"x.{kind}", *command, f"x.{kind}")
    assert done.returncode == 2, done.stderr
    said = f"x.{kind} has become shorter while it was read; give it again when nothing writes to it"
    assert said in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out.safetensors").exists()


@pytest.mark.parametrize("kind", ["npy", "safetensors"])
@pytest.mark.parametrize("command", ["dequantize", "decode"])
def test_codes_that_are_cut_are_said(tmp_path, command, kind):
    """The file is cut before its numbers are read, which are never mapped."""
    codes = np.zeros(SHAPE, np.uint8)
    if kind == "npy":
        np.save(tmp_path / "x.npy", codes)
    else:
        scales = np.zeros((SHAPE[0], SHAPE[1] // 32), np.uint8)
        save_file({"w/code": codes, "w/scale": scales}, tmp_path / "x.safetensors")
    asked = {"dequantize": ("--recipe", "mxfp8"), "decode": ("--format", "e4m3")}[command]
    done = run_cutting(tmp_path, f"x.{kind}", command, *asked, f"x.{kind}", "--out", "out.npy")
    if (command, kind) == ("dequantize", "npy"):
        assert "x.npy has no fields of tensors" in done.stderr
    else:
        assert "has become shorter while it was read" in done.stderr.replace("\n", " ")
    assert done.returncode == 2, done.stderr
    assert not (tmp_path / "out.npy").exists()


@pytest.mark.parametrize("recipe", ["mxfp8", "mor:three_way"])
def test_results_that_are_cut_are_not_run(tmp_path, recipe):
    """They are compared in strips with one recipe, and whole with the other."""
    np.save(tmp_path / "x.npy", numbers())
    quantize = ["quantize", "x.npy", "--recipe", recipe, "--out", "results/own.safetensors"]
    assert forking.python(forking.MAIN, *quantize, cwd=tmp_path).returncode == 0
    verify = ["verify", "dir:results", "--recipe", recipe, "--inputs", "x.npy"]
    done = run_cutting(tmp_path, "own.safetensors", *verify)
    assert done.returncode == 3, (done.stdout, done.stderr)
    said = "results/own.safetensors has become shorter while it was read; give it again when"
    assert said in (done.stdout + done.stderr).replace("\n", " ")


def test_parts_of_mapped_arrays_are_copies_of_the_file(tmp_path):
    """Rows, columns, transposed and strided parts, and none."""
    path, x = tmp_path / "x", np.arange(48, dtype="<u2").reshape(6, 8)
    path.write_bytes(b"abc" + x.tobytes())
    there = mapped(path, x.dtype, 3, x.shape, state_of(path))
    whole = (slice(None), slice(None))
    parts = [whole, slice(2, 4), (slice(None), 3), (slice(1, 5, 2), slice(6, 1, -2))]
    for part in [*parts, slice(3, 3), (slice(None), slice(0, 0))]:
        for array, right in ((there[part], x[part]), (there.T[part], x.T[part])):
            copy = in_memory(array)
            assert copy.tolist() == right.tolist()
            assert copy.dtype == right.dtype
            assert not np.shares_memory(copy, there)
            assert copy.flags.writeable
    assert in_memory(there.view(np.uint8)[1:2]).tobytes() == x[1:2].tobytes()
    assert in_memory(x) is x


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda path: os.truncate(path, PAGE), "become shorter"),
        (lambda path: path.write_bytes(bytes(path.stat().st_size)), "changed"),
        (lambda path: os.truncate(path, path.stat().st_size + 1), "changed"),
        (lambda path: os.utime(path, ns=(0, 0)), "changed"),
    ],
)
def test_a_file_that_has_changed_is_refused(tmp_path, change, what):
    """Whether its pages are gone, have other numbers, or may have."""
    path = tmp_path / "x.npy"
    np.save(path, numbers())
    os.utime(path, ns=(1, 1))  # what is written now has another time, whatever the clock's steps
    (tensor,) = tensors_in(str(path))
    there = mapped(path, np.dtype(np.float32), 128, SHAPE, state_of(path))
    in_memory(there[-1:])
    change(path)
    for read in (tensor.load, lambda: in_memory(there[-1:])):
        with pytest.raises(ChangedFileError, match=rf"^{path} has {what} while it was read; give"):
            read()


def test_a_file_that_was_replaced_is_refused(tmp_path):
    """But what is open is the file that there was."""
    path = tmp_path / "x.npy"
    np.save(path, numbers())
    (tensor,) = tensors_in(str(path))
    there = mapped(path, np.dtype(np.float32), 128, SHAPE, state_of(path))
    np.save(tmp_path / "y.npy", numbers() + 1)
    (tmp_path / "y.npy").replace(path)
    assert in_memory(there).tolist() == numbers().tolist()
    with pytest.raises(ChangedFileError, match=r"x\.npy has changed while it was read"):
        tensor.load()


@needs("torch")
def test_tensors_of_torch_are_copies_of_their_part_of_a_storage(tmp_path):
    """Strided, transposed, shared, negated and empty ones."""
    torch = imported("torch")
    x = torch.arange(24.0).reshape(4, 6)
    named = {
        "strided": x[1::2, 5:], "transposed": x.T, "part": x.view(-1)[7:9], "one": x[3, 3],
        "negated": torch._neg_view(x), "empty": x[:0], "brain": x.bfloat16(), "wide": x.double(),
    }  # fmt: skip
    path = tmp_path / "x.pt"
    torch.save(named, path)
    found = {one.name: one.load().tolist() for one in tensors_in(str(path))}
    assert found == {name: tensor.tolist() for name, tensor in named.items()}


@needs("torch")
def test_tensors_of_torch_in_another_byte_order_are_read(tmp_path):
    torch = imported("torch")
    torch.save({"w": torch.arange(5.0)}, tmp_path / "x.pt")
    with zipfile.ZipFile(tmp_path / "x.pt") as old, zipfile.ZipFile(tmp_path / "y.pt", "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("/byteorder"):
                content = {b"little": b"big", b"big": b"little"}[content]
            if name.endswith("/data/0"):
                content = np.frombuffer(content, np.float32).byteswap().tobytes()
            new.writestr(name, content)
    (tensor,) = tensors_in(str(tmp_path / "y.pt"))
    assert tensor.load().tolist() == [0, 1, 2, 3, 4]


def test_bytes_that_others_map_are_copied_by_the_system(tmp_path):
    """More than a pipe holds at once, any part of them, and none."""
    path = tmp_path / "x"
    content = np.random.default_rng(0).integers(0, 256, (1 << 18) + 4, np.uint8)
    path.write_bytes(content.tobytes())
    there = mapped_by_others(path, np.memmap(path, np.uint8, "r"), state_of(path))
    words, right = there.view(np.uint32), content.view(np.uint32)
    for part in (slice(None), slice(5, 7), slice(9, 2, -3), slice(2, 2)):
        assert in_memory(words[part]).tolist() == right[part].tolist()
    os.truncate(path, 100_000)
    for part in (slice(None), slice(5, 7), slice(1 << 15, None)):
        with pytest.raises(ChangedFileError, match=r"x has become shorter while it was read"):
            in_memory(words[part])


def open_files():
    return len([*Path("/dev/fd").iterdir()])


def test_arrays_of_results_share_one_open_file(tmp_path):
    """A file may have more arrays than a process may have open files."""
    arrays = {f"{k}/code": np.full(k % 5, k, np.uint16) for k in range(2000)}
    save_file(arrays, tmp_path / "own.safetensors")
    before = open_files()
    found, others = arrays_inside(tmp_path, "own.safetensors")
    assert open_files() <= before + 2
    assert not others
    assert all(in_memory(found[name]).tolist() == one.tolist() for name, one in arrays.items())


@pytest.mark.parametrize("ending", [".safetensors", ".npz"])
def test_records_are_read_without_a_map(tmp_path, monkeypatch, ending):
    """Those with an array of bfloat16, too."""
    record = mor_ref.mor(numbers()[:8, :8].astype(ml_dtypes.bfloat16), "tensor")
    record.save(tmp_path / f"x{ending}")

    def refuse(*_given, **_named):
        raise AssertionError

    monkeypatch.setattr("safetensors.safe_open", refuse)
    monkeypatch.setattr(np, "memmap", refuse)
    assert mor_ref.load(tmp_path / f"x{ending}") == record
