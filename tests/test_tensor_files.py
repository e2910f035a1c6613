"""Files of tensors beyond .npy, .npz and .safetensors: of PyTorch, GGUF, and of several parts."""

import io
import json
import os
import struct
import sys
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from extras import imported, needs
from safetensors.numpy import save_file

from mor_ref.analysis import torch_files
from mor_ref.analysis.bit_files import bits_in
from mor_ref.analysis.compare_files import compare_files
from mor_ref.analysis.listing import Selection, list_tensors
from mor_ref.analysis.stored_tensors import reading
from mor_ref.analysis.tensor_files import SkippedTensor, StoredTensor, tensors_in
from mor_ref.golden.store.array_files import metadata_of
from mor_ref.verify.own_inputs import from_files

BF16 = ml_dtypes.bfloat16


def numbers(shape=(3, 4), dtype=np.float32, start=0):
    return (np.arange(np.prod(shape)).reshape(shape) / 8 + start).astype(dtype)


def loaded(file):
    """Return the arrays of a file by name."""
    found = tensors_in(str(file))
    return {one.name: one.load() for one in found if isinstance(one, StoredTensor)}


def same(found, wanted):
    assert list(found) == list(wanted)
    for name, x in wanted.items():
        assert (found[name].dtype, found[name].shape) == (x.dtype, x.shape)
        assert np.array_equal(found[name], x)
    return True


# ---------------------------------------------------------------------- several parts


def parts(directory):
    """Write a model of two parts and its index, and return its tensors."""
    first = {"layers.10.w": numbers(), "extra": numbers(start=9)}
    second = {"layers.2.w": numbers(start=2, dtype=BF16), "norm": numbers((4,))}
    save_file(first, directory / "model-00001-of-00002.safetensors")
    save_file(second, directory / "model-00002-of-00002.safetensors")
    places = {
        "layers.10.w": "model-00001-of-00002.safetensors",
        **dict.fromkeys(second, "model-00002-of-00002.safetensors"),
    }
    index = {"metadata": {}, "weight_map": places}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))
    return {name: (first | second)[name] for name in ("layers.2.w", "layers.10.w", "norm")}


def test_a_tensor_of_several_given_names_is_taken_once(tmp_path, monkeypatch):
    """As with a model*: its parts, and the index that names them."""
    monkeypatch.chdir(tmp_path)
    parts(tmp_path)
    np.save("x.npy", numbers())
    files = sorted(path.name for path in tmp_path.glob("model*"))
    listed = list_tensors([*files, ".", "x.npy", "./x.npy"])
    names = [tensor.name for _, tensor in listed.stored]
    assert names == ["extra", "layers.10.w", "layers.2.w", "norm", "x.npy"]
    assert (listed.left_out, listed.without) == ({"given more than once": 7}, [])
    assert [one.name for one in from_files([*files, "x.npy", "x.npy"])] == names


def test_a_file_of_numpy_with_a_long_header_is_read(tmp_path):
    """Of version 2; one of version 3 has names of records."""
    path = tmp_path / "x.npy"
    with path.open("wb") as file:
        np.lib.format.write_array(file, numbers(), (2, 0))
    assert same(loaded(path), {str(path): numbers()})
    with path.open("wb") as file:
        np.lib.format.write_array(file, numbers(), (3, 0))
    with pytest.raises(ValueError, match=r"it is of version 3\.0"):
        loaded(path)


def test_a_skipped_tensor_that_is_given_again_is_said_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("n.npy", np.arange(3))
    listed = list_tensors(["n.npy", "./n.npy"])
    assert [file for file, _ in listed.skipped] == ["n.npy"]
    assert listed.left_out == {"given more than once": 1}


def test_a_tensor_without_a_name_is_quoted():
    said = str(SkippedTensor("", (), "I64", "it holds integers"))
    assert said == "'' (scalar I64): it holds integers"


@pytest.mark.parametrize("name", ["", "model.safetensors.index.json"])
def test_a_model_of_several_parts_is_read_by_its_index(tmp_path, name):
    wanted = parts(tmp_path)
    save_file({"other": numbers()}, tmp_path / "consolidated.safetensors")
    assert same(loaded(tmp_path / name), wanted)


@pytest.mark.parametrize(
    "name", ["training_args.bin", "optimizer.pt", "optimizer.bin", "scheduler.pt"]
)
def test_files_of_a_training_are_no_files_of_a_model(tmp_path, name):
    (tmp_path / name).write_bytes(b"not looked at")
    with pytest.raises(ValueError, match="is a directory without a file that ends in one of"):
        loaded(tmp_path)
    save_file({"w": numbers()}, tmp_path / "x.safetensors")
    assert same(loaded(tmp_path), {"w": numbers()})


def test_an_error_without_words_is_named():
    said = r"x\.NPY cannot be read as a \.npy file \(EOFError\); save or"
    with pytest.raises(ValueError, match=said), reading(Path("x.NPY")):
        raise EOFError


def test_a_header_that_is_nested_deeply_takes_no_more_memory(tmp_path):
    """Python's parser calls it a lack of memory."""
    header = b"-" * 9000 + b"1"
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    (tmp_path / "x.npy").write_bytes(content)
    said = r"cannot be read as a \.npy file \(its header is nested too deeply\); save or"
    with pytest.raises(ValueError, match=said):
        loaded(tmp_path / "x.npy")


def test_endings_in_capitals_are_the_same(tmp_path):
    """Of a file, of files of a directory, and of files that an index names."""
    wanted = {"w": numbers()}
    save_file(wanted, tmp_path / "X.SAFETENSORS")
    assert same(loaded(tmp_path / "X.SAFETENSORS"), wanted)
    assert same(loaded(tmp_path), wanted)
    index = {"weight_map": {"w": "X.SAFETENSORS"}}
    (tmp_path / "x.safetensors.index.json").write_text(json.dumps(index))
    assert same(loaded(tmp_path), wanted)


def test_a_directory_without_an_index_has_the_tensors_of_all_files(tmp_path):
    wanted = parts(tmp_path)
    (tmp_path / "model.safetensors.index.json").unlink()
    (tmp_path / "pytorch_model.bin").write_bytes(b"not looked at")
    assert set(loaded(tmp_path)) == {*wanted, "extra"}
    save_file({"norm": numbers()}, tmp_path / "again.safetensors")
    with pytest.raises(ValueError, match="has norm in two files; name one of the files"):
        loaded(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m.update(gone="model-00001-of-00002.safetensors"), "has no tensor gone, which"),
        (lambda m: m.update(norm="../x.safetensors"), "which is not a file of tensors next to it"),
        (lambda m: m.update(norm="x.txt"), "names 'x.txt', which is not a file of tensors"),
        (lambda m: m.update(norm="none.safetensors"), r"none\.safetensors is not there; give the"),
        (lambda m: m.update(norm=3), "has no weight_map of names and files"),
    ],
)
def test_an_index_that_does_not_fit_is_refused(tmp_path, change, said):
    parts(tmp_path)
    path = tmp_path / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    change(index["weight_map"])
    path.write_text(json.dumps(index))
    with pytest.raises((ValueError, OSError), match=said):
        list(tensors_in(str(path)))


def test_an_index_that_is_no_json_is_refused(tmp_path):
    path = tmp_path / "a.index.json"
    path.write_text("[")
    with pytest.raises(ValueError, match=r"cannot be read as a \.json file \(Expecting"):
        list(tensors_in(str(path)))
    path.write_text("[]")
    with pytest.raises(ValueError, match="has no weight_map of names and files"):
        list(tensors_in(str(path)))


# ---------------------------------------------------------------------- PyTorch


@needs("torch")
@pytest.mark.parametrize("ending", [".bin", ".pt", ".pth"])
@pytest.mark.parametrize("is_zip", [True, False])
def test_tensors_of_torch_are_read_by_name(tmp_path, ending, is_zip):
    torch = imported("torch")
    wanted = {
        "epoch.0.w": numbers((3, 5)),
        "model.half": numbers(dtype=np.float16),
        "model.brain": numbers((2, 2), BF16),
        "model.double": numbers((), np.float64),
    }
    of_torch = {
        "model.half": torch.arange(12).reshape(3, 4).half() / 8,
        "model.brain": torch.arange(4).reshape(2, 2).bfloat16() / 8,
        "model.double": torch.tensor(0.0, dtype=torch.float64),
    }
    state = {name.removeprefix("model."): tensor for name, tensor in of_torch.items()}
    w = (torch.arange(15, dtype=torch.float32).reshape(3, 5) / 8).T.contiguous().T
    document = {"epoch": [{"w": w}, 3], "model": state, "lr": 0.5, "names": ["a"]}
    path = tmp_path / f"x{ending}"
    torch.save(document, path, _use_new_zipfile_serialization=is_zip)
    assert same(loaded(path), wanted)


@needs("torch")
def test_tensors_of_torch_that_hold_no_floats_are_skipped(tmp_path):
    torch = imported("torch")
    state = {
        "ids": torch.arange(3),
        "mask": torch.ones(2, dtype=torch.bool),
        "wave": torch.ones(2, dtype=torch.complex64),
        "small": torch.ones(2).to(torch.float8_e4m3fn),
        "sparse": torch.eye(3).to_sparse(),
        "nowhere": torch.ones(2, device="meta"),
    }
    torch.save(state, tmp_path / "x.pt")
    found = {one.name: one for one in tensors_in(str(tmp_path / "x.pt"))}
    assert all(isinstance(one, SkippedTensor) for one in found.values())
    assert [one.reason.split(",")[0] for one in found.values()] == [
        "it holds integers",
        "it holds booleans",
        "it holds complex numbers",
        "it holds floats of so few bits that they are quantized already",
        "it is sparse; save it dense",
        "it is on the device meta",
    ]
    assert (found["small"].dtype, found["sparse"].shape) == ("float8_e4m3fn", (3, 3))


@needs("torch")
def test_the_state_of_an_optimizer_has_no_matrices_of_a_model(tmp_path):
    """It is left out with the vectors, wherever it is in the file, and counted."""
    torch = imported("torch")
    w = torch.ones(2, 3)
    kept = {"state": {0: {"exp_avg": w, "step": torch.tensor(1.0)}}, "param_groups": [{"lr": 1}]}
    path = str(tmp_path / "x.pt")
    torch.save({"model": {"state": w}, "optimizer": kept, "others": [kept]}, path)
    found = list_tensors([path], Selection(matrices_only=True))
    assert [one.name for _, one in found.stored] == ["model.state"]
    assert found.left_out == {
        "not a matrix; --all-shapes takes them": 2,
        "the state of an optimizer; --all-shapes takes them": 2,
    }
    assert len(list_tensors([path]).stored) == 5
    around = {}
    around["again"] = around
    torch.save(around, path)
    with pytest.raises(ValueError, match=r"has dicts and lists inside each other, more than 64"):
        list_tensors([path])


@needs("torch")
@pytest.mark.parametrize("leaf", ["number", "tensor"])
def test_lists_that_come_again_are_refused_before_they_are_walked(leaf, tmp_path):
    """A file of some kilobytes has 10^12 items so."""
    torch = imported("torch")
    path, shared = str(tmp_path / "x.pt"), [torch.ones(2) if leaf == "tensor" else 1.0]
    for _ in range(12):
        shared = [shared] * 10
    torch.save({"w": torch.ones(2), "more": shared}, path)
    with pytest.raises(
        ValueError,
        match=r"x\.pt has the same dicts and lists over and over: 2,1\d\d,\d{3},\d{3},\d{3} items "
        "come again, and at most 65,536 may; save its state_dict with torch.save$",
    ):
        list_tensors([path])


@needs("torch")
def test_tensors_that_repeat_what_is_stored_are_refused(tmp_path, monkeypatch):
    """Strides of 0, and many names for one storage; a few of both are usual."""
    torch = imported("torch")
    path = str(tmp_path / "x.pt")
    torch.save({f"w{k}": torch.zeros(1).expand(1 << 30) for k in range(100)}, path)
    with pytest.raises(ValueError, match=r"tensors of 429,496,729,600 bytes in all, and stores"):
        list_tensors([path])
    shared = torch.ones(1000)
    names = {f"w{k}": shared for k in range(64)}
    monkeypatch.setattr(torch_files, "_FEW_BYTES", 0)
    torch.save(names, path)
    assert len(list_tensors([path]).stored) == 64
    torch.save({**names, "again": shared}, path)
    with pytest.raises(ValueError, match=r"x.pt has tensors of 260,000 bytes in all, and stores"):
        list_tensors([path])


@needs("torch")
def test_one_tensor_of_thousands_of_names_is_refused(tmp_path, monkeypatch):
    """A deflated file of three kilobytes names a million so."""
    torch = imported("torch")
    path, tensor = str(tmp_path / "x.pt"), torch.ones(2)
    monkeypatch.setattr(torch_files, "_FEW_TENSORS", 100)
    torch.save([tensor] * 100, path)
    assert len(list_tensors([path], Selection(matrices_only=False)).stored) == 100
    torch.save([tensor] * 101, path)
    with pytest.raises(ValueError, match=r"has 101 tensors, and stores 1: at most 100 may be"):
        list_tensors([path])


@needs("torch")
def test_dicts_may_come_again_as_often_as_the_limit_says(tmp_path, monkeypatch):
    """Items that a file stores are not limited, nor are two places of one state_dict."""
    torch = imported("torch")
    path, state = str(tmp_path / "x.pt"), {f"{k}": torch.ones(2) for k in range(5)}
    monkeypatch.setattr(torch_files, "_MOST_AGAIN", 5)
    torch.save({"model": state, "ema": state, "steps": [1.0] * 100}, path)
    assert len(list_tensors([path]).stored) == 10
    torch.save({"model": state, "ema": state, "mean": state}, path)
    with pytest.raises(ValueError, match=r": 10 items come again, and at most 5 may;"):
        list_tensors([path])


def test_the_path_of_a_file_is_resolved_once(tmp_path, monkeypatch):
    """And not for each of its tensors."""
    resolve, resolved = Path.resolve, []
    monkeypatch.setattr(Path, "resolve", lambda path: resolved.append(path) or resolve(path))
    save_file({f"{k}": np.ones(2) for k in range(3)}, tmp_path / "x.safetensors")
    assert len(list_tensors([str(tmp_path / "x.safetensors")]).stored) == 3
    assert len(resolved) == 1


def test_an_archive_is_opened_once_for_all_of_its_members(tmp_path, monkeypatch):
    """Its list of members is read each time; a file that takes its place is opened anew."""
    opened = []
    archive = zipfile.ZipFile.__init__

    def counting(self, *arguments, **options):
        opened.append(arguments)
        archive(self, *arguments, **options)

    path = tmp_path / "x.npz"
    for number in (3, 4):
        np.savez(tmp_path / "new.npz", **{f"t{i}": np.full(2, number, "f4") for i in range(20)})
        (tmp_path / "new.npz").replace(path)
        with monkeypatch.context() as patched:
            patched.setattr(zipfile.ZipFile, "__init__", counting)
            assert all((one.load() == number).all() for one in tensors_in(str(path)))
            found = [one for _, fields in bits_in(str(path)) for one in fields.values()]
            assert {one.load()[0] for one in found} == {np.float32(number).view(np.uint32)}
    assert len(opened) == 2


@pytest.mark.parametrize("ending", [".safetensors", ".npy"])
def test_a_file_that_gets_shorter_after_it_was_listed(tmp_path, ending):
    """Numbers that were loaded stay."""
    path = tmp_path / f"x{ending}"
    x = np.ones((64, 64), np.float32)
    np.save(path, x) if ending == ".npy" else save_file({"x": x}, path)
    (one,) = tensors_in(str(path))
    loaded = one.load()
    os.truncate(path, path.stat().st_size - 8192)
    assert (loaded == 1).all()
    with pytest.raises(ValueError, match=f"x{ending} has become shorter while it was read"):
        one.load()


def test_a_file_that_may_not_be_read_is_not_said_to_be_missing(tmp_path, monkeypatch):
    save_file({"x": np.ones(2, np.float32)}, tmp_path / "x.safetensors")

    def refused(*_arguments, **_options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(ValueError, match=r"x\.safetensors cannot be read .* \(Permission denied\)"):
        list(tensors_in(str(tmp_path / "x.safetensors")))


class Bomb:
    """Code that unpickling runs."""

    def __reduce__(self):
        return (os.mkdir, ("unpickled",))


@needs("torch")
def test_no_code_of_a_file_of_torch_is_run(tmp_path, monkeypatch):
    torch = imported("torch")
    monkeypatch.chdir(tmp_path)
    torch.save({"w": torch.ones(2), "bomb": Bomb()}, "x.pt")
    with pytest.raises(ValueError, match=r"x\.pt is not a file of tensors alone: .* posix\.mkdir"):
        list(tensors_in("x.pt"))
    assert not (tmp_path / "unpickled").exists()
    with zipfile.ZipFile("y.pt", "w") as archive:
        archive.writestr("y/constants.pkl", b"")
    with pytest.raises(ValueError, match=r"y\.pt is an archive of TorchScript, and no code is run"):
        list(tensors_in("y.pt"))


@needs("torch")
@pytest.mark.parametrize("damage", [lambda d: d[:-9], lambda d: d[:70], lambda _: b"hello" * 9])
def test_a_damaged_file_of_torch_is_one_sentence(tmp_path, damage):
    torch = imported("torch")
    written = io.BytesIO()
    torch.save({"w": torch.ones(64)}, written)
    path = tmp_path / "x.bin"
    path.write_bytes(damage(written.getvalue()))
    with pytest.raises(ValueError, match=r"x\.bin (cannot be read as|is not a file of tensors)"):
        list(tensors_in(str(path)))


def test_without_torch_its_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    (tmp_path / "x.pt").write_bytes(b"1")
    with pytest.raises(RuntimeError, match=r"not installed; pip install 'mor-ref\[torch\]'"):
        list(tensors_in(str(tmp_path / "x.pt")))


# ---------------------------------------------------------------------- GGUF

F32, F16, BFLOAT, Q4_0, I32 = 0, 1, 30, 2, 26


def text(letters):
    return struct.pack("<Q", len(letters)) + letters.encode()


def gguf_of(tensors, version=3, alignment=None):
    """Return a GGUF file, from the description of the format.

    `tensors` has a type, a shape and bytes for each name.
    """
    values = [
        text("general.architecture") + struct.pack("<I", 8) + text("tiny"),
        text("tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("bc"),
        text("scores") + struct.pack("<IIQ2f", 9, 6, 2, 0.5, 1.5),
        text("is_chat") + struct.pack("<I?", 7, True),
    ]
    if alignment is not None:
        values.append(text("general.alignment") + struct.pack("<II", 4, alignment))
    aligned, infos, data = alignment or 32, b"", b""
    for name, (kind, shape, content) in tensors.items():
        data += bytes(-len(data) % aligned)
        sides = struct.pack(f"<I{len(shape)}Q", len(shape), *shape[::-1])
        infos += text(name) + sides + struct.pack("<IQ", kind, len(data))
        data += content
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(values))
    head += b"".join(values) + infos
    return head + bytes(-len(head) % aligned) + data


@pytest.mark.parametrize(("version", "alignment"), [(3, None), (2, 8), (3, 4096)])
def test_a_gguf_file_is_read_by_its_description(tmp_path, version, alignment):
    wanted = {
        "blk.0.w": numbers((3, 5)),
        "half": numbers((2, 3, 4), np.float16),
        "brain": numbers((7,), BF16),
    }
    kinds = dict(zip(wanted, (F32, F16, BFLOAT), strict=True))
    tensors = {name: (kinds[name], x.shape, x.tobytes()) for name, x in wanted.items()}
    tensors["packed"] = (Q4_0, (2, 32), bytes(36))
    tensors["ids"] = (I32, (3,), bytes(12))
    tensors["new"] = (99, (3,), bytes(12))
    path = tmp_path / "x.gguf"
    path.write_bytes(gguf_of(tensors, version, alignment))
    assert same(loaded(path), wanted)
    skipped = [one for one in tensors_in(str(path)) if isinstance(one, SkippedTensor)]
    before = "give the model before it was quantized"
    assert [(one.name, one.shape, one.dtype, one.reason) for one in skipped] == [
        ("packed", (2, 32), "Q4_0", f"it is quantized already, as Q4_0; {before}"),
        ("ids", (3,), "I32", "it holds integers"),
        ("new", (3,), "type 99", f"it is quantized already, as type 99; {before}"),
    ]


def test_a_gguf_file_ends_with_its_numbers(tmp_path):
    """And a tensor has up to eight sides."""
    wanted = {"w": numbers((2, 1, 1, 1, 1, 1, 1, 3))}
    path = tmp_path / "x.gguf"
    path.write_bytes(gguf_of({"w": (F32, wanted["w"].shape, wanted["w"].tobytes())}))
    assert same(loaded(path), wanted)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda d: d[:-1], "tensor w ends at byte"),
        (lambda d: d[:100], "it ends at byte 100, before its header does"),
        (lambda d: b"GGML" + d[4:], "it does not begin with GGUF"),
        (lambda d: d[:4] + b"\x09" + d[5:], "it is of version 9; 2 and 3 are known"),
        (lambda d: d[:24] + b"\xff" * 8 + d[32:], "before its header does"),
        (lambda d: d.replace(b"tiny", b"\xff\xfe\xfd\xfc"), "utf-8"),
        (lambda _: gguf_of({}, alignment=0), "its alignment is 0"),
        (lambda _: gguf_of({"w": (F32, (1,) * 9, bytes(4))}), "tensor w has 9 sides"),
    ],
)
def test_a_damaged_gguf_file_is_one_sentence(tmp_path, damage, said):
    path = tmp_path / "x.gguf"
    path.write_bytes(damage(gguf_of({"w": (F32, (4,), numbers((4,)).tobytes())})))
    with pytest.raises(ValueError, match=rf"x\.gguf cannot be read as a \.gguf file \(.*{said}"):
        list(tensors_in(str(path)))


@needs("gguf")
def test_a_file_that_gguf_writes_is_read(tmp_path):
    gguf = imported("gguf")
    wanted = {"w": numbers((4, 32)), "half": numbers((4, 32), np.float16)}
    path = tmp_path / "x.gguf"
    writer = gguf.GGUFWriter(path, "tiny")
    writer.add_array("tokens", ["a", "bc"])
    for name, x in wanted.items():
        writer.add_tensor(name, x)
    quantized = gguf.quantize(wanted["w"], gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("packed", quantized, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert same(loaded(path), wanted)
    *_, packed = tensors_in(str(path))
    assert (packed.name, packed.shape, packed.dtype) == ("packed", (4, 32), "Q8_0")


# ---------------------------------------------------------------------- memory


@pytest.mark.tier("full")
def test_numbers_of_safetensors_are_read_when_they_are_looked_at(tmp_path):
    """Of four tensors of 32 MiB each, codes of one take 8 MiB, and parts of y some more."""
    import tracemalloc

    path = tmp_path / "x.safetensors"
    save_file({f"w{k}": np.ones((2048, 4096), np.float32) for k in range(4)}, path)
    compare_files(str(path), ["e4m3:gam:128x128"], include="w0")  # compiles
    tracemalloc.start()
    try:
        found = compare_files(str(path), ["e4m3:gam:128x128", "mor:tensor"])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.totals[0].measures.elements == 4 * 2**23
    assert peak < 3.5 * 2**23


def test_a_zip_file_of_a_later_version_is_refused(tmp_path):
    path = tmp_path / "later.npz"
    np.savez(path, x=np.ones(4, np.float32))
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 6] = 128  # the version that is needed to read it
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"as a .npz file \(zip file version 12.8\); save or"):
        list(tensors_in(path))
    assert metadata_of(str(path)) == {}
