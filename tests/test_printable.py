"""Names of files and of tensors on a terminal and in a table: shown, and never obeyed."""

import csv
import io
import json
import struct
import zipfile

import numpy as np
import pytest
from extras import imported, needs
from forking import mor_ref as run
from forking import python

from mor_ref.analysis.tables import csv_of
from mor_ref.cli.output_text import Console
from mor_ref.printable import cell, printable

HOSTILE = "a\x1b]0;mine\x07\x1b[2J\u202eb\x9b1m"
SHOWN = r"a\x1b]0;mine\x07\x1b[2J\u202eb\x9b1m"
RECIPE = ("--recipe", "mxfp8_e4m3:floor:32")


def safetensors(path, header, size=256):
    text = json.dumps(header, ensure_ascii=False).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(size))


def tensor(dtype="F32", shape=(2, 32)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [0, 256]}


def npz(path, name):
    with zipfile.ZipFile(path, "w") as archive, archive.open(f"{name}.npy", "w") as file:
        np.lib.format.write_array(file, np.ones((2, 32), np.float32))


def gguf(path, name):
    """Write a tensor that ends beyond its file, which the error names."""
    key = name.encode()
    tensors = struct.pack("<Q", len(key)) + key + struct.pack("<IQIQ", 1, 99, 0, 0)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + tensors)


def index(path, weight_map):
    path.write_text(json.dumps({"weight_map": weight_map}))


MAKERS = {
    "x.safetensors": lambda path: safetensors(path, {HOSTILE: tensor()}),
    "dtype.safetensors": lambda path: safetensors(path, {"a": tensor(HOSTILE)}),
    "x.npz": lambda path: npz(path, HOSTILE),
    "x.gguf": lambda path: gguf(path, HOSTILE),
    "part.safetensors.index.json": lambda path: index(path, {"a": f"{HOSTILE}.npz"}),
    "name.safetensors.index.json": lambda path: index(path, {HOSTILE: "part.safetensors"}),
    f"{HOSTILE}.npz": lambda path: npz(path, "w"),
    f"{HOSTILE}.npy": lambda path: path.write_bytes(b"no array"),
}


@pytest.mark.tier("full", but=["analyze", "[decode"])
@pytest.mark.parametrize("name", MAKERS, ids=printable)
@pytest.mark.parametrize(
    "command",
    [
        ("analyze",),
        ("compare", *RECIPE),
        ("quantize", *RECIPE, "--out", "q.safetensors"),
        ("dequantize", *RECIPE, "--out", "y.safetensors"),
        ("decode", "--format", "e4m3", "--out", "y.safetensors"),
        ("verify", "numba", *RECIPE, "--inputs"),
    ],
    ids=lambda command: command[0],
)
def test_no_control_character_of_a_file_is_printed(tmp_path, name, command):
    MAKERS[name](tmp_path / name)
    safetensors(tmp_path / "part.safetensors", {"a": tensor()})
    done = run(*command, name, cwd=tmp_path)
    said = done.stdout + done.stderr
    assert said.strip()
    assert all(each.isprintable() for each in said.replace("\n", "")), ascii(said)
    assert "Traceback" not in said


@needs("torch")
def test_nor_one_of_a_class_that_a_file_of_torch_names(tmp_path):
    torch = imported("torch")
    torch.save({"w": torch.ones(2)}, tmp_path / "x.pt", _use_new_zipfile_serialization=False)
    content = (tmp_path / "x.pt").read_bytes()
    torch_class = b"torch._utils\n_rebuild_tensor_v2\n"
    assert torch_class in content
    (tmp_path / "x.pt").write_bytes(content.replace(torch_class, b"m\x1b[2J\nn\x1b[2J\n"))
    done = run("analyze", "x.pt", cwd=tmp_path)
    assert "\x1b" not in done.stdout + done.stderr
    assert done.returncode == 2


def test_consoles_keep_their_own_colours():
    text = io.StringIO()
    console = Console(
        file=text, force_terminal=True, color_system="standard", width=99, _environ={}
    )
    console.print(HOSTILE, style="red", markup=False, highlight=False)
    assert text.getvalue().startswith("\x1b[31m")
    assert SHOWN.replace(r"\x07", "") in text.getvalue()  # rich drops a bell itself


def test_cells_of_tables_are_neither_formulas_nor_commands():
    records = [{"tensor": name, "error": -1.5} for name in ("=1+1", "+1", "-1", "@a", HOSTILE, "a")]
    rows = list(csv.DictReader(io.StringIO(csv_of(records).decode())))
    assert [row["tensor"] for row in rows] == ["'=1+1", "'+1", "'-1", "'@a", SHOWN, "a"]
    assert {row["error"] for row in rows} == {"-1.5"}
    assert cell(None) is None


def test_names_beyond_ascii_on_a_terminal_that_has_ascii_alone(tmp_path):
    npz(tmp_path / "x.npz", "größe")
    program = (
        "import sys; sys.stdout.reconfigure(encoding='ascii', errors='strict'); "
        "from mor_ref.cli import main; main()"
    )
    done = python(program, "analyze", "x.npz", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert r"gr\xf6\xdfe" in done.stdout


def test_too_little_memory_is_a_sentence_and_no_mismatch(tmp_path):
    """Status 1 of verify would say that bits differ."""
    program = (
        "from mor_ref.cli import verify, main\n"
        "def run(*_, **__): raise MemoryError('Unable to allocate 9 TiB')\n"
        "verify.run = run\nmain()"
    )
    done = python(program, "verify", "numba", cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr == (
        "mor-ref: there is not enough memory (Unable to allocate 9 TiB); free some, or give "
        "smaller tensors\n"
    )
