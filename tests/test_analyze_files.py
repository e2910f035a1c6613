"""Analyzing: which files and tensors are read, which are refused, and how much memory it takes."""

import json
import os
import tracemalloc
import weakref
import zipfile
from dataclasses import FrozenInstanceError

import forking
import ml_dtypes
import numpy as np
import pytest
from analyzing import BF16, run, sentence, write
from extras import imported, needs
from safetensors.numpy import save_file

from mor_ref.analysis.analyze_tensor import analyze, settings_for
from mor_ref.analysis.tensor_files import SkippedTensor, StoredTensor, tensors_in, tensors_of

__all__ = ["run"]  # a fixture


def test_what_holds_no_floats_is_skipped_with_a_reason(run, tmp_path):
    others = {
        "count": np.arange(6, dtype=np.int64).reshape(2, 3),
        "mask": np.ones(3, bool),
        "small": np.ones(4, ml_dtypes.float8_e4m3fn),
        "x": np.ones(3, np.float32),
    }
    write(tmp_path / "x.npz", others | {"z": np.ones(2, complex), "text": np.array(["a"])})
    write(tmp_path / "x.safetensors", others)
    np.save("wide.npy", np.ones(2, np.longdouble))
    found = json.loads(run("x.npz", "x.safetensors", "wide.npy", "--json"))
    assert [record["name"] for record in found["tensors"]] == ["x", "x"]
    assert {(s["file"], s["name"]): s["reason"].split(",")[0] for s in found["skipped"]} == {
        ("x.npz", "count"): "it holds integers",
        ("x.npz", "mask"): "it holds booleans",
        ("x.npz", "small"): "it holds records or raw bytes",
        ("x.npz", "z"): "it holds complex numbers",
        ("x.npz", "text"): "it holds no numbers",
        ("x.safetensors", "count"): "it holds integers",
        ("x.safetensors", "mask"): "it holds booleans",
        ("x.safetensors", "small"): (
            "it holds floats of so few bits that they are quantized already"
        ),
        ("wide.npy", "wide.npy"): "it holds floats wider than f64",
    }
    text = run("x.npz", "x.safetensors", "wide.npy")
    assert "skipped: count in x.npz (2x3 int64): it holds integers\n" in text
    assert "skipped: small in x.safetensors (4 F8_E4M3): it holds floats of so few" in text
    assert "skipped: wide.npy (2 " in text
    assert "2 tensors, 6 elements" in text


def test_what_is_no_array_in_a_npz_is_skipped(run):
    np.savez("x.npz", x=np.ones(3, np.float32))
    with zipfile.ZipFile("x.npz", "a") as archive:
        archive.writestr("readme.txt", "hello")
    assert "skipped: readme.txt in x.npz (scalar -): it is not a .npy file" in run("x.npz")


def test_files_without_tensors_are_said_to_be_so(run, tmp_path):
    np.savez("none.npz")
    save_file({}, tmp_path / "none.safetensors")
    text = run("none.npz", "none.safetensors")
    assert text == (
        "none.npz holds no tensors\nnone.safetensors holds no tensors\n0 tensors, 0 elements\n"
    )
    found = json.loads(run("none.npz", "none.safetensors", "--json"))
    assert found["files_without_tensors"] == ["none.npz", "none.safetensors"]
    assert (found["tensors"], found["totals"]["width_shares"]) == ([], {"8": 0, "16": 0})


def test_the_layers_of_a_safetensors_file_are_in_the_order_of_their_numbers(tmp_path):
    names = ["embed", "layers.2.w", "layers.10.w", "layers.10.w2", "norm"]
    path = write(tmp_path / "x.safetensors", {name: np.ones(2, np.float32) for name in names[::-1]})
    assert [tensor.name for tensor in tensors_in(str(path))] == names


def test_records_are_frozen_and_know_shape_and_dtype_before_anything_is_read(tmp_path):
    path = write(tmp_path / "x.npz", {"x": np.ones((2, 3), BF16), "n": np.arange(4)})
    x, n = tensors_in(str(path))
    path.unlink()
    assert isinstance(x, StoredTensor)
    assert (x.name, x.shape, x.dtype) == ("x", (2, 3), "bf16")
    assert n == SkippedTensor("n", (4,), "int64", "it holds integers")
    with pytest.raises(FrozenInstanceError):
        x.name = "y"
    with pytest.raises(ValueError, match=r"x\.npz cannot be read .*No such file"):
        x.load()


@pytest.mark.parametrize("damage", [lambda d: d[:-4], lambda d: d + b"1234"])
def test_the_length_of_a_file_is_looked_at_before_anything_is_read(tmp_path, damage):
    path = write(tmp_path / "x.npy", {"x": np.ones((2, 3), np.float32)})
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(
        ValueError, match=r"shape \(2, 3\) of float32 takes 24 bytes, but 2[08] fol"
    ):
        list(tensors_in(str(path)))


def test_a_file_that_is_emptied_meanwhile_is_an_error_too(tmp_path):
    path = write(tmp_path / "x.npy", {"x": np.ones((2, 3), np.float32)})
    (x,) = tensors_in(str(path))
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"x\.npy has become shorter while it was read; give"):
        x.load()


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_tensors_are_loaded_in_row_major_order_and_native_bytes(tmp_path, suffix):
    x = np.asfortranarray(np.arange(6).reshape(2, 3).astype(">f4"))
    (tensor,) = tensors_in(str(write(tmp_path / f"x{suffix}", {"x": x})))
    loaded = tensor.load()
    assert (loaded.dtype, loaded.flags.c_contiguous) == (np.dtype("=f4"), True)
    assert loaded.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_one_tensor_is_in_memory_at_a_time(tmp_path, monkeypatch):
    from mor_ref.analysis import listing
    from mor_ref.cli import analyze as command

    path = write(tmp_path / "x.npz", {f"x{k}": np.ones((64, 64), np.float32) for k in range(6)})
    given = []

    def watched(files):
        for file, tensor, is_again in tensors_of(files):

            def load(tensor=tensor):
                assert [ref() for ref in given] == [None] * len(given)
                x = tensor.load()
                given.append(weakref.ref(x))
                return x

            yield file, StoredTensor(tensor.name, tensor.shape, tensor.dtype, load), is_again

    monkeypatch.setattr(listing, "tensors_of", watched)
    listed = listing.list_tensors([str(path)])
    assert not given
    reports, _ = command._analyze_all(listed.stored, settings_for(), None)
    assert len(reports) == len(given) == 6


@pytest.mark.tier("full")
def test_a_large_file_is_not_read_into_memory(tmp_path):
    """256 MiB that the disk does not have either: of each element, 3 bytes are made at once."""
    path = tmp_path / "large.npy"
    x = np.lib.format.open_memmap(path, "w+", np.float32, (8192, 8192))
    x[8191, 8190:] = 2.0, np.nan
    x.flush()
    del x
    tracemalloc.start()
    try:
        (tensor,) = tensors_in(str(path))
        report = analyze(tensor.load(), settings_for()).report
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (report.zeros, report.nonfinite, report.amax) == (2**26 - 2, 1, 2.0)
    assert peak < 3.5 * 2**26


def test_what_does_not_fit_is_said(run, monkeypatch):
    np.save("x.npy", np.ones(3, np.float32))

    def full(*_arguments, **_options):
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr("mor_ref.analysis.analyze_tensor.decisions", full)
    said = "there is not enough memory (x.npy in x.npy: Unable to allocate 9 TiB; its codes and"
    assert said in run("x.npy", status=3)


@pytest.mark.parametrize("kind", ["safetensors", "npy", pytest.param("pt", marks=needs("torch"))])
def test_a_file_that_is_larger_than_the_memory_is_not_called_damaged(tmp_path, kind):
    """Those of NumPy and of safetensors have holes, and take no place on the disk."""
    size, path = 1 << 35, tmp_path / f"x.{kind}"
    if kind == "safetensors":
        entry = {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}
        header = json.dumps({"w": entry}).encode()
        path.write_bytes(len(header).to_bytes(8, "little") + header)
    elif kind == "npy":
        with path.open("wb") as stream:
            described = {"descr": "<f4", "fortran_order": False, "shape": (size // 4,)}
            np.lib.format.write_array_header_1_0(stream, described)
    else:
        torch = imported("torch")
        torch.save({"w": torch.ones(1 << 25)}, path)
        size = 0
    os.truncate(path, path.stat().st_size + size)
    limited = (
        "import resource; used = int(open('/proc/self/statm').read().split()[0]) << 12;"
        f"resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 26),) * 2); {forking.MAIN}"
    )
    done = forking.python(limited, "analyze", path.name, cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert "mor-ref: there is not enough memory (" in done.stderr
    assert done.stderr.endswith("; free some, or give smaller tensors\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["gone.npy"],
            "gone.npy is not there; give the path of one of .npy, .npz",
        ),
        (["folder"], "folder is a directory without a file that ends in one of .safetensors, .bin"),
        (["folder.npz"], "folder.npz is a directory without a file that ends in one of .safeten"),
        (["x.txt"], "x.txt ends in '.txt'; give a file that ends in one of .npy, .npz"),
        (["empty.npy"], "empty.npy is empty; save or download it again"),
        (["empty.npz"], "empty.npz is empty; save or download it again"),
        (["empty.safetensors"], "empty.safetensors is empty; save or download it again"),
        (["x.npy", "--block", "3by4"], "block is '3by4'; give tensor, row, column, or rows and"),
        (["x.npy", "--block", "-1x4"], "block is '-1x4'; give tensor, row, column, or rows and"),
        (["none.npz", "--block", "0x4"], "a side of block is 0; give an int from 1 to"),
        (["x.npy", "--policy", "tensors"], "policy is 'tensors', which is not known; did you mean"),
        (["x.npy", "--threshold", "2"], "threshold is '2'; give a number above 0 and up to 1"),
        (["x.npy", "--threshold", "a"], "threshold is 'a'; give a number above 0 and up to 1"),
        (
            ["x.npy", "--threshold", "0.1", "--policy", "two_way"],
            "threshold is given, but policy 'two_way' has no threshold of 'e4m3'",
        ),
        (
            ["x.npy", "--threshold", "nvfp4=0.1"],
            "threshold is given, but policy 'tensor' has no threshold of 'nvfp4'; give",
        ),
        (["x.npy", "--threshold", "e4m3="], "threshold is ''; give a number above 0 and up to 1"),
        (
            ["x.npy", "--threshold", "0.1", "--threshold", "e4m3=0.1"],
            "threshold is given twice for e4m3; give it once",
        ),
        (["x.npy", "--scaling", "fp8"], "scaling is 'fp8', which is not known"),
        (["x.npy", "--threads", "0"], "threads is 0; give an int from 1 to"),
        (["x.npy", "--plot", "x.jpg"], "plot is 'x.jpg'; give a file name that ends in .png"),
        (["x.npy", "--plot", "no/x.png"], "plot is 'no/x.png', which cannot be written (No such"),
        (["x.npy", "--plot", "folder.png"], "plot is 'folder.png', which cannot be written (Is a "),
        (
            ["x.npy", "--plot", "x.npy/x.png"],
            "plot is 'x.npy/x.png', which cannot be written (Not ",
        ),
        (["none.npz", "--plot", "x.png"], "there is nothing to plot: no tensor was analyzed"),
    ],
)
def test_mistakes_are_a_sentence_and_status_2(run, tmp_path, arguments, said):
    if "--plot" in arguments:
        imported("matplotlib")
    np.save("x.npy", np.ones(3, np.float32))
    np.savez("none.npz")
    for name in ("folder", "folder.npz", "folder.png"):
        (tmp_path / name).mkdir()
    for name in ("x.txt", "empty.npy", "empty.npz", "empty.safetensors"):
        (tmp_path / name).touch()
    assert sentence(run(*arguments, status=2)).startswith(f"mor-ref: {said}")


def changed(data, place, text):
    return data[:place] + text + data[place + len(text) :]


def in_directory(data, offset, text):
    """Change the first entry of the directory at the end of an archive."""
    return changed(data, data.index(b"PK\x01\x02") + offset, text)


CORRUPT = {
    "half a header": (".npy", lambda d: d[:40]),
    "numbers missing": (".npy", lambda d: d[:-4]),
    "numbers left over": (".npy", lambda d: d + b"1234"),
    "no header": (".npy", lambda _: b"hello, this is no array" * 9),
    "a header of nonsense": (".npy", lambda d: changed(d, 12, b"((((((((")),
    "a version to come": (".npy", lambda d: changed(d, 6, b"\x09")),
    "negative sides": (".npy", lambda d: d.replace(b"(16, 16)", b"(-4,-64)")),
    "half an archive": (".npz", lambda d: d[: len(d) // 2]),
    "another number": (".npz", lambda d: changed(d, d.index(b"NUMPY") + 200, b"\xff\xfe")),
    "another checksum": (".npz", lambda d: in_directory(d, 16, b"crc!")),
    "a password": (".npz", lambda d: in_directory(d, 8, b"\x01")),
    "an unknown method": (".npz", lambda d: in_directory(d, 10, b"\x63")),
    "nothing that inflates": (
        ".npz",
        lambda d: in_directory(changed(d, d.index(b"\x93NUMPY"), b"\x07"), 10, b"\x08"),
    ),
    "a member of nonsense": (".npz", lambda d: changed(d, d.index(b"\x93NUMPY"), b"hello!")),
    "half a tensor": (".safetensors", lambda d: d[:-4]),
    "too long a header": (".safetensors", lambda d: changed(d, 0, b"\xff" * 8)),
    "no JSON": (".safetensors", lambda d: changed(d, 8, b"hello")),
    "two bytes": (".safetensors", lambda _: b"hi"),
}


@pytest.mark.parametrize("fault", CORRUPT)
def test_corrupt_files_are_distinguished_from_whole_ones(run, tmp_path, fault):
    suffix, damage = CORRUPT[fault]
    path = tmp_path / f"x{suffix}"
    x = {"x": np.full((16, 16), 1.5, np.float32)}
    np.savez(path, **x) if suffix == ".npz" else write(path, x)
    whole = path.read_bytes()
    run(path.name)
    path.write_bytes(damage(whole))
    assert path.read_bytes() != whole
    said = sentence(run(path.name, status=2))
    assert said.startswith(f"mor-ref: {path.name} cannot be read as a {suffix} file (")
    assert said.endswith("); save or download it again")


class Bomb:
    """Code that unpickling runs."""

    def __reduce__(self):
        return (os.mkdir, ("unpickled",))


def test_objects_are_never_unpickled(run, tmp_path):
    objects = np.array([Bomb()], object)
    np.save("x.npy", objects)
    np.savez("x.npz", good=np.ones(2, np.float32), bad=objects)
    assert sentence(run("x.npy", status=2)).startswith("mor-ref: x.npy holds Python objects, which")
    said = sentence(run("x.npz", status=2))
    assert said.startswith("mor-ref: bad in x.npz holds Python objects, which are never unpickled")
    assert not (tmp_path / "unpickled").exists()
