"""The command line between other programs: pipes in, pipes out, and no word too many."""

import json
import os
import subprocess
import sys
from pathlib import Path

import forking
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from mor_ref.analysis import piped_files

X = np.linspace(-3, 3, 128, dtype=np.float32).reshape(2, 64)
CODES = {"a/code": np.arange(64, dtype=np.uint8).reshape(2, 32)}


def run(*arguments, given=b"", status=0, cwd=None):
    done = forking.mor_ref(*map(str, arguments), input=given, cwd=cwd)
    assert done.returncode == status, done.stderr + done.stdout
    return done.stdout, done.stderr


@pytest.fixture
def files(tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "x.npz", a=X, b=X[:1])
    save_file({"w": X}, tmp_path / "x.safetensors")
    return tmp_path


# ---------------------------------------------------------------------- what is read


def piped(arguments, content, redirect=""):
    """Run a command at the end of a pipe, or with a file as its standard input."""
    command = [sys.executable, "-m", "mor_ref", *map(str, arguments)]
    if redirect:
        with Path(redirect).open("rb") as stream:
            return subprocess.run(command, stdin=stream, capture_output=True, check=False)
    return subprocess.run(command, input=content, capture_output=True, check=False)


@pytest.mark.tier("full", but=["[--npy]", "[/dev/stdin-npz]"])
@pytest.mark.parametrize("ending", ["npy", "npz", "safetensors"])
@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_the_first_bytes_of_a_pipe_say_which_file_it_is(files, ending, name):
    content = (files / f"x.{ending}").read_bytes()
    done = piped(("analyze", name, "--json"), content)
    assert done.returncode == 0, done.stderr
    names = [tensor["name"] for tensor in json.loads(done.stdout)["tensors"]]
    assert names == {"npy": ["stdin"], "npz": ["a", "b"], "safetensors": ["w"]}[ending]


@pytest.mark.parametrize("ending", ["npy", "npz"])
def test_a_file_may_be_the_standard_input(files, ending):
    done = piped(("analyze", "-", "--json"), b"", files / f"x.{ending}")
    assert len(json.loads(done.stdout)["tensors"]) == {"npy": 1, "npz": 2}[ending]
    (files / f"x.{ending}").rename(files / "without")
    done = piped(("analyze", "-", "--json"), b"", files / "without")
    assert len(json.loads(done.stdout)["tensors"]) == {"npy": 1, "npz": 2}[ending]


def test_a_pipe_with_a_name(files):
    pipe = files / "pipe"
    os.mkfifo(pipe)
    content = (files / "x.npy").read_bytes()
    writer = subprocess.Popen([sys.executable, "-c", WRITE, pipe, files / "x.npy"])
    assert len(content) > 0
    done = piped(("quantize", pipe, "--recipe", "mxfp8", "--out", files / "q.npz"), b"")
    assert (writer.wait(), done.returncode) == (0, 0), done.stderr
    (code,) = (a for name, a in np.load(files / "q.npz").items() if name.endswith("code"))
    assert code.shape == X.shape


WRITE = "import sys; open(sys.argv[1], 'wb').write(open(sys.argv[2], 'rb').read())"


def test_commands_between_pipes(files):
    done = piped(
        ("quantize", "-", "--recipe", "mxfp8", "--out", files / "q.safetensors"),
        (files / "x.npz").read_bytes(),
    )
    assert done.returncode == 0, done.stderr
    quantized = (files / "q.safetensors").read_bytes()
    back = ("dequantize", "-", "--recipe", "mxfp8", "--out", files / "y.npz")
    assert piped(back, quantized).returncode == 0
    fields = load_file(files / "q.safetensors")
    assert np.array_equal(np.load(files / "y.npz")["a"], fields["a/y"].view(np.float32))
    wrong = piped((*back[:3], "nvfp4", *back[4:]), quantized)
    assert b"was quantized with mxfp8" in wrong.stderr  # its metadata are read, too
    save_file(CODES, files / "codes.safetensors")
    decode = ("decode", "-", "--format", "e4m3", "--out", files / "z.npz")
    assert piped(decode, (files / "codes.safetensors").read_bytes()).returncode == 0
    assert np.load(files / "z.npz")["a"].shape == (2, 32)
    verify = ("verify", "numba", "--inputs", "-", "--recipe", "mxfp8")
    assert piped(verify, (files / "x.npy").read_bytes()).returncode == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "- is empty; give a file or a pipe with tensors"),
        (b"hello", "- begins with b'hello', as no .npy, .npz, .safetensors, .gguf or .pt file"),
        (b"PK\x03\x04", "- begins with b'PK"),
        (b"\x93NUMPY\x01", "cannot be read as a .npy file"),
        (b"GGUF", "cannot be read as a .gguf file"),
    ],
)
@pytest.mark.tier("full", but=["analyze-hello", "analyze-PK", "analyze-\\x93"])
@pytest.mark.parametrize("command", ["analyze", "compare"])
def test_what_is_no_file_of_tensors_is_refused(content, words, command):
    done = piped((command, "-"), content)
    assert done.returncode == 2
    assert words in done.stderr.decode()


def test_a_device_is_refused():
    _, errors = run("analyze", "/dev/zero", status=2)
    assert "/dev/zero is a terminal or a device; give a file or a pipe" in errors


def test_copies_of_pipes_are_removed(files):
    environment = os.environ | {"TMPDIR": str(files / "tmp")}
    (files / "tmp").mkdir()
    subprocess.run(
        [sys.executable, "-m", "mor_ref", "analyze", "-"], env=environment, check=True,
        input=(files / "x.npy").read_bytes(), stdout=subprocess.DEVNULL,
    )  # fmt: skip
    assert not [path for path in (files / "tmp").iterdir() if path.name.startswith("mor_ref")]


def test_a_file_is_not_copied(files):
    assert piped_files.as_file(str(files / "x.npy")) == files / "x.npy"
    assert piped_files.as_file(str(files / "none.npy")) == files / "none.npy"


def test_a_directory_of_arrays(files):
    (files / "many").mkdir()
    for name in ("b2", "a", "b10"):
        np.save(files / "many" / f"{name}.npy", X)
    found = json.loads(run("analyze", "many", "--json", cwd=files)[0])
    names = [tensor["name"] for tensor in found["tensors"]]
    assert names == ["many/a.npy", "many/b2.npy", "many/b10.npy"]
    save_file({"w": X}, files / "many" / "model.safetensors")
    found = json.loads(run("analyze", "many", "--json", cwd=files)[0])
    assert [tensor["name"] for tensor in found["tensors"]] == ["w"]  # a model comes first


# ---------------------------------------------------------------------- what is written

ENDLESS = ("encode", "-", "--format", "e4m3")


@pytest.mark.tier("full", but=["[formats]", "[--help]", "[encode", "numba"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("formats",), ("formats", "f16"), ("golden", "list"), ("recipes",), ("--help",),
        ("verify", "--help"), ("decode", "1", "--format", "e4m3"), ("decode", "1", "--format",
        "e4m3", "--json"), ("explain", "0.3", "--format", "e4m3"), ENDLESS,
        ("verify", "numba", "--suite", "decode"), ("analyze", "x.npy"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_closed_pipe_does_not_say_that_bits_differ(files, arguments):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "mor_ref", *arguments], stdout=closed, input=b"0.3\n" * 9999,
            stderr=subprocess.PIPE, check=False, cwd=files,
        )  # fmt: skip
    assert done.returncode == 141
    assert done.stderr == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a /dev/full")
@pytest.mark.parametrize(
    "arguments",
    [
        ("formats",), ("golden", "list", "--json"), ("--help",), ("--version",),
        ("explain", "0.3", "--format", "e4m3"), ENDLESS, ("verify", "numba", "--suite", "decode"),
        ("analyze", "x.npy"), ("gen", "decode/e4m3", "--count", "3"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_full_disk_is_said_in_a_sentence_that_names_the_standard_output(files, arguments):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "mor_ref", *arguments], stdout=full, input=b"0.3\n" * 9999,
            stderr=subprocess.PIPE, check=False, cwd=files,
        )  # fmt: skip
    assert done.stderr.decode() == (
        "mor-ref: the standard output cannot be written (No space left on device); free space on "
        "its disk, or send it to another file\n"
    )
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("verify", "numba", "--suite", "decode"), 0),
        (("verify", "numba", "--suite", "decode", "--json"), 0),
        (("verify", "none:f", "--suite", "decode"), 3),
        (("quantize", "x.npy", "--recipe", "mxfp8", "--out", "q.npz"), 0),
        (("analyze", "x.npy", "--plot", "x.png"), 0),
        (("compare", "x.npy", "--out", "x.csv"), 0),
        (("golden", "make", "decode", "--out", "g"), 0),
    ],
)
def test_quiet_prints_nothing(files, arguments, status):
    option = "-q" if "--json" in arguments else "--quiet"
    assert run(*arguments, option, status=status, cwd=files) == ("", "")
    (written,) = [*arguments[-1:]] if "." in arguments[-1] else [None]
    assert written is None or (files / written).exists()


def test_a_wrong_call_is_not_quiet(files):
    out, errors = run("quantize", "x.npy", "--recipe", "x", "--out", "q.npz", "-q", status=2,
                      cwd=files)  # fmt: skip
    assert out == ""
    assert "recipe" in errors


def test_a_report_as_json(files):
    out, _ = run("verify", "numba", "--suite", "decode", "--json", "--report", "r.json", cwd=files)
    printed, written = json.loads(out), json.loads((files / "r.json").read_text())
    assert printed["verdict"] == "match"
    assert printed.keys() == written.keys()
    assert printed["results"] == written["results"]
    wrong = "def f(operation, parameters, inputs): return {}"
    (files / "mine.py").write_text(wrong)
    out, _ = run("verify", "mine:f", "--suite", "decode", "--json", cwd=files, status=3)
    assert json.loads(out)["verdict"] == "not run"


def test_bars_are_for_terminals(files):
    """Neither a pipe nor a file has them; `test_terminals` sees them on a terminal."""
    _, errors = run("verify", "numba", "--suite", "decode", cwd=files)
    assert errors == ""
