"""Analyzing: its text, its figure, and its imports."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from analyzing import (
    BF16,
    POLICIES,
    expected,
    heavy,
    run,
    sentence,
    three_kinds_of_blocks,
    with_specials,
    write,
)
from extras import imported, needs
from safetensors.numpy import save_file

import mor_ref
from mor_ref.cli.analyze_text import _count
from mor_ref.cli.show import console_of_some_width

__all__ = ["run"]  # a fixture


def test_a_table_of_many_tensors_fits_80_columns(run, tmp_path):
    long = "model.layers.{}.self_attn.query_projection.weight"
    tensors = {long.format(k): heavy((64, 32), k % 4, k).astype(BF16) for k in range(12)}
    write(tmp_path / "model.safetensors", tensors | {"w": np.full((3, 4), 1e-7, np.float32)})
    for policy in POLICIES:
        lines = run("model.safetensors", "--policy", policy).splitlines()
        assert max(map(len, lines)) <= 80
        assert lines[1] == "model.safetensors:"
        heading, row = lines[0], lines[lines.index(long.format(2)) + 1]
        assert row.split()[:2] == ["64x32", "bf16"]
        assert (len(row), row[: row.index("64x32")].strip()) == (len(heading), "")
        assert [line for line in lines if line.startswith("w ")]


def test_a_row_says_what_the_json_says(run):
    x = with_specials(heavy((300, 40), 1)).astype(np.float32)
    np.savez("x.npz", x=x, many=np.zeros((1000, 200), np.float32))
    lines = run("x.npz").splitlines()
    wanted = expected(x, "tensor")
    heading = "tensor shape dtype took error % vs 4.5 % zeros NaN,inf range amax amin"
    assert " ".join(lines[0].split()) == heading
    assert lines[2].split() == [
        "x",
        "300x40",
        "f32",
        "bf16",
        f"{100 * wanted['error']:.3g}",
        f"{100 * wanted['error'] - 4.5:+.3g}",
        str(wanted["zeros"]),
        "3",
        f"{wanted['log2_dynamic_range']:.1f}",
        f"{wanted['amax']:.3g}",
        f"{wanted['amin']:.3g}",
    ]
    assert lines[3].split()[6:] == ["0.20M", "0", "-", "-", "-"]


def test_counts_have_five_digits_or_a_unit():
    """In a column of seven letters, as 100.00M has."""
    shown = {
        0: "0", 99_999: "99999", 100_000: "0.10M", 1_234_567: "1.23M", 99_994_999: "99.99M",
        100_000_000: "0.10G", 12_345_678_901: "12.35G",
    }  # fmt: skip
    assert {count: _count(count) for count in shown} == shown


@pytest.mark.parametrize("columns", [1, 60, 79, 80, 81, 120])
def test_a_table_has_80_columns_in_a_narrow_window(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert console_of_some_width().width == max(columns, 80)


def test_a_name_that_is_wider_than_the_window_is_whole(run, tmp_path):
    name = "layer " * 30
    write(tmp_path / "x.safetensors", {name: np.ones(3, np.float32), name + "n": np.arange(3)})
    lines = run("x.safetensors").splitlines()
    assert lines[2] == name
    assert any(line.startswith(f"skipped: {name}n in x.safetensors (3 I64): it") for line in lines)


def test_several_files_are_distinguished(run, tmp_path):
    x = {"x": np.ones(3, np.float32)}
    for name in ("a.npz", "b.npz", "c.npy"):
        write(tmp_path / name, x)
    lines = run("a.npz", "./c.npy", "b.npz").splitlines()
    assert [line.split()[0] for line in lines[1:6]] == ["a.npz:", "x", "./c.npy", "b.npz:", "x"]


def test_names_do_not_steer_the_terminal(run, tmp_path):
    write(tmp_path / "x.safetensors", {"\x1b[31mred[bold]": np.ones(3, np.float32)})
    text = run("x.safetensors")
    assert "\x1b" not in text
    assert r"'\x1b[31mred[bold]'" in text


def test_the_json_is_one_document_that_says_everything(run):
    np.savez("x.npz", x=with_specials(heavy((30, 40), 1)).astype(np.float32), n=np.arange(3))
    text = run("x.npz", "--json", "--policy", "three_way", "--block", "row")
    found = json.loads(text)
    assert json.loads(json.dumps(found)) == found
    assert text == json.dumps(found, indent=1) + "\n"
    settings = ("policy", "unit", "ladder", "block", "scaling", "error_in")
    assert [found[name] for name in settings] == [
        "three_way",
        "block",
        ["e4m3", "e5m2", "bf16"],
        "row",
        "gam",
        "e4m3",
    ]
    assert found["skipped"] == [
        {
            "file": "x.npz",
            "name": "n",
            "shape": [3],
            "dtype": "int64",
            "reason": "it holds integers",
        }
    ]


@pytest.fixture
def drawn(run, monkeypatch):
    """Return a function that runs the command and returns the figure that it draws."""
    figure = imported("matplotlib.figure")
    figures = []
    save = figure.Figure.savefig
    monkeypatch.setattr(
        figure.Figure, "savefig", lambda f, *a, **k: (figures.append(f), save(f, *a, **k))
    )

    def draw(*arguments):
        run(*arguments, "--plot", "x.png")
        return figures.pop()

    return draw


def labels_of(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--block", "16x16"], "Policy tensor, scaling blocks of 16x16, gam scales: 1 tensor"),
        (["--recipe", "mxfp8:rceil"], "Policy mxfp8_e4m3_rceil: 1 tensor"),
    ],
)
def test_the_title_has_blocks_and_scales_of_formats_that_use_them(drawn, given, said):
    np.savez("x.npz", x=np.ones((8, 32), np.float32))
    assert drawn("x.npz", *given).axes[0].get_title() == said


def test_the_picture_of_a_tensor_policy(drawn, tmp_path):
    x = heavy((64, 48), 3).astype(np.float32)
    tensors = {"good": np.ones((8, 8), np.float32), "bad": x, "none": np.zeros((0, 2), np.float32)}
    np.savez("x.npz", **tensors)
    figure = drawn("x.npz", "--block", "16x16")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    errors, blocks = figure.axes
    dots = [dots.get_offsets().tolist() for dots in errors.collections]
    error = 100 * mor_ref.mor(x, block=(16, 16)).error["e4m3"].overall
    assert dots == [[[1.0, 0.0]], [[2.0, error]], [[3.0, 0.0]], [[2.0, error]]]
    assert labels_of(errors) == [
        "takes e4m3",
        "stays in bf16",
        "has no elements",
        "shown below",
        "threshold 4.5 %",
    ]
    assert [line.get_ydata()[0] for line in errors.lines] == [pytest.approx(4.5)]
    assert [text.get_text() for text in errors.get_xticklabels()] == ["good", "bad", "none"]
    assert blocks.get_title() == "The worst tensor: bad, 64x48 f32"
    wanted = mor_ref.quantize(x, "e4m3", block=(16, 16)).error.mean_relative_error
    assert np.array_equal(blocks.images[0].get_array(), 100 * wanted)
    assert all(axes.get_xlabel() or axes is errors for axes in figure.axes)
    assert all(axes.get_ylabel() for axes in figure.axes)


def test_the_picture_of_a_block_policy(drawn):
    x = three_kinds_of_blocks()
    np.savez("x.npz", ones=np.ones((4, 4), np.float32), x=x)
    errors, shares, blocks = drawn("x.npz", "--policy", "three_way", "--block", "2x4").axes
    assert labels_of(errors) == ["a tensor", "shown below", "threshold: error in e5m2"]
    found = [mor_ref.mor(one, "three_way", block=(2, 4)) for one in (np.ones((4, 4), "f4"), x)]
    (yardstick,) = errors.lines
    assert yardstick.get_ydata().tolist() == [100 * one.error["e5m2"].overall for one in found]
    bars = [[(b.get_y(), b.get_height()) for b in bars] for bars in shares.containers]
    assert bars == [[(0, 100), (0, 75)], [(100, 0), (75, 6.25)], [(100, 0), (81.25, 18.75)]]
    assert labels_of(shares) == ["e4m3", "e5m2", "bf16"]
    assert blocks.get_title() == "The most divided tensor: x, 8x16 f32"
    choice = mor_ref.mor(x, "three_way", block=(2, 4)).choice
    assert np.array_equal(blocks.images[0].get_array(), choice)
    assert labels_of(blocks) == ["e4m3 75.0 %", "e5m2 6.2 %", "bf16 18.8 %"]


@pytest.mark.tier("full")
def test_the_picture_marks_every_threshold_and_the_break_of_its_scale(drawn):
    np.savez("x.npz", a=heavy((64, 48), 4).astype(np.float32), b=np.ones((8, 8), np.float32))
    errors = drawn("x.npz", "--policy", "nvfp4", "--threshold", "nvfp4=0.1").axes[0]
    labels = dict(zip(labels_of(errors), errors.get_legend().legend_handles, strict=True))
    assert {"threshold 10 %", "threshold of e4m3 4.5 %", "error in e4m3"} <= labels.keys()
    lines = {line.get_label(): line.get_ydata()[0] for line in errors.lines}
    assert lines["threshold 10 %"] == pytest.approx(10)
    assert lines["threshold of e4m3 4.5 %"] == pytest.approx(4.5)
    (note,) = errors.texts
    assert note.get_text().strip() == "compressed above 20 %"
    assert note.get_position()[1] == pytest.approx(20)
    even = drawn("x.npz", "--policy", "two_way", "--threads", "1")
    assert even.axes[0].get_yscale() == "symlog"
    np.save("y.npy", np.ones((8, 8), np.float32))
    assert [len(drawn("y.npy").axes[0].texts), errors.get_yscale()] == [0, "symlog"]


@pytest.mark.tier("full", but=["[tensor]"])
@pytest.mark.parametrize("policy", ["tensor", "nvfp4"])
def test_the_picture_of_many_tensors_numbers_them_and_rings_one(drawn, policy):
    tensors = {f"layer_{k}": heavy((8, 8), 0.1 * k, k).astype(np.float32) for k in range(60)}
    np.savez("x.npz", **tensors)
    figure = drawn("x.npz", "--policy", policy)
    *dots, ring = figure.axes[0].collections
    assert sum(len(some.get_offsets()) for some in dots) == 60
    assert figure.axes[-2].get_xlabel() == "tensor, in the order of the table"
    ((place, error),) = ring.get_offsets().tolist()
    assert f": layer_{place - 1:g}, 8x8 f32" in figure.axes[-1].get_title()
    first = "nvfp4" if policy == "nvfp4" else "e4m3"
    shown = mor_ref.mor(tensors[f"layer_{place - 1:g}"], policy).error[first].overall
    assert error == pytest.approx(100 * shown)


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize("policy", ["tensor", "three_way"])
@pytest.mark.parametrize("shape", [(0, 3), (), (5,), (2000, 1), (1, 2000)])
def test_the_picture_of_one_tensor_of_any_shape(drawn, policy, shape):
    np.save("a$b$.npy", np.ones(shape, np.float32))
    figure = drawn("a$b$.npy", "--policy", policy, "--block", "1x1")
    assert figure.axes[-1].get_title().startswith(r"The tensor: a\$b\$.npy, ")
    assert all(max(image.get_array().shape) <= 1500 for image in figure.axes[-1].images)


def test_a_picture_that_cannot_be_written_in_the_end(run, monkeypatch, tmp_path):
    """An older one stays there."""
    imported("matplotlib")
    np.save("x.npy", np.ones(3, np.float32))
    (tmp_path / "x.png").write_text("older")

    def full(*_paths):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    said = sentence(run("x.npy", "--plot", "x.png", status=2))
    reason = "cannot be written (No space left on device); make room for it, or give another file"
    assert said == f"mor-ref: x.png {reason}"
    assert (tmp_path / "x.png").read_text() == "older"
    assert {path.name for path in tmp_path.iterdir()} == {"x.npy", "x.png"}


@needs("matplotlib")
def test_a_plot_has_names_in_letters_that_its_font_lacks(run, recwarn):
    save_file({"語": np.ones(3, np.float32), "\ufffe": np.ones(3, np.float32)}, "x.safetensors")
    run("x.safetensors", "--plot", "x.png")
    assert Path("x.png").read_bytes().startswith(b"\x89PNG")
    assert [str(warning.message) for warning in recwarn] == []


def test_without_matplotlib_the_plot_alone_is_refused(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    np.save("x.npy", np.ones(3, np.float32))
    assert "1 tensor, 3 elements" in run("x.npy")
    said = sentence(run("x.npy", "--plot", "x.png", status=2))
    assert said.endswith("which is not installed; pip install 'mor-ref[plot]'")


@pytest.mark.tier("full")
def test_only_what_is_needed_is_imported(tmp_path):
    path = write(tmp_path / "x.npy", {"x": np.ones(3, np.float32)})
    program = (
        "import sys; from mor_ref import cli; sys.argv[:] = ['mor-ref', *sys.argv[1:]]\n"
        "try: cli.main()\n"
        "except SystemExit: pass\n"
        "print([name for name in ('numpy', 'safetensors', 'matplotlib') if name in sys.modules])"
    )
    for arguments, loaded in (
        (["analyze", "--help"], "[]"),
        (["analyze", str(path)], "['numpy', 'safetensors']"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines()[-1] == loaded
