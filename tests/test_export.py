"""Exports hold the same bits, read back by other programs."""

import hashlib
import json
import shutil
import subprocess

import numpy as np
import pytest
from extras import reason
from forking import mor_ref
from safetensors.numpy import save

from mor_ref import golden
from mor_ref.cli.golden import run_export
from mor_ref.golden import bundled_files
from mor_ref.golden.export import export as export_module
from mor_ref.golden.export.export import EXPORTS, export
from mor_ref.golden.store.manifest import read_manifest
from mor_ref.operations import OPERATIONS

ENTRIES = read_manifest(bundled_files())["suites"]
STEPS = "quantize_steps"


def exported(tmp_path, kind, *names):
    found = export(bundled_files(), kind, tmp_path, list(names))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == found.files > 0
    assert found.left_out == ()
    return tmp_path


def test_json_lines(tmp_path):
    text = (exported(tmp_path, "jsonl", STEPS, "policies") / f"{STEPS}.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    for line, case in zip(lines, golden.load(STEPS), strict=True):
        assert (line["case"], line["parameters"]) == (case.name, case.parameters)
        assert any(meaning.startswith("xs (expected, f32, shape") for meaning in line["meaning"])
        for field, array in case.arrays.items():
            assert [int(word, 16) for word in line["hex"][field]] == array.ravel().tolist()
            assert tuple(line["shapes"][field]) == array.shape


def test_text_of_testfloat(tmp_path):
    folder = exported(tmp_path, "testfloat", STEPS) / STEPS
    for case in golden.load(STEPS):
        lines = (folder / f"{case.name}.txt").read_text().splitlines()
        rows = [line.split() for line in lines if not line.startswith("#")]
        for column, array in enumerate(case.arrays.values()):
            assert [int(row[column], 16) for row in rows] == array.tolist()
        assert "# x (input, f32, shape" in "\n".join(lines)


def test_memory_files(tmp_path):
    """Fields lie in a word in the order of the struct, the first in the upper bits."""
    folder = exported(tmp_path, "readmemh", STEPS) / STEPS
    case = golden.load(STEPS)[0]
    words = [w for w in (folder / "e4m3.mem").read_text().splitlines() if not w.startswith("//")]
    struct = (folder / "e4m3.svh").read_text()
    assert f"localparam int e4m3_count = {case.arrays['x'].size};" in struct
    place = 0
    for field, array in case.arrays.items():
        width = 2 * array.itemsize
        top = 4 * (len(words[0]) - place) - 1
        bits = f"// bits {top}:{top + 1 - 4 * width} of a word"
        assert f"logic [{4 * width - 1}:0] {field};  {bits}\n" in struct
        assert [int(word[place : place + width], 16) for word in words] == array.tolist()
        place += width


PROGRAM = """
#include "quantize_steps.h"
#include "decisions.h"
#include <stdio.h>
int main(void) {
  unsigned long long sum = 0;
  for (unsigned i = 0; i < sizeof quantize_steps_e4m3_y / 4; ++i) sum += quantize_steps_e4m3_y[i];
  for (unsigned i = 0; i < sizeof decisions_not_worse_than_sum / 8; ++i)
    sum += decisions_not_worse_than_sum[i];
  printf("%llu\\n", sum);
  return 0;
}
"""


def test_a_header_for_c(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc") or pytest.skip(reason("gcc"))
    folder = exported(tmp_path, "c", STEPS, "decisions")
    (folder / "main.c").write_text(PROGRAM)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-const-variable"]
    subprocess.run([compiler, *flags, "main.c", "-o", "main"], cwd=folder, check=True)
    done = subprocess.run([folder / "main"], capture_output=True, text=True, check=True)
    y = golden.load(STEPS)[0].arrays["y"]
    sums = next(c for c in golden.load("decisions") if c.name == "not_worse_than").arrays["sum"]
    assert int(done.stdout) == (sum(y.tolist()) + sum(sums.tolist())) % 2**64


SIGNED = """
#include "affine_steps.h"
#include "dot_chunks.h"
#include <stdio.h>
int main() {
  long long sum = 0, lowest = 0;
  for (auto n : affine_steps_int8_torch_fake_tensor_zero_point) sum += n;
  for (auto n : affine_steps_int8_torch_fake_tensor_code) if (n < lowest) lowest = n;
  for (auto n : dot_chunks_volta_fp16_f16_f16_cut_sum) sum += n;
  printf("%lld %lld\\n", sum, lowest);
}
"""


def test_integers_in_twos_complement_are_signed_in_c(tmp_path):
    """A header of C++, which refuses a constant that its type does not hold."""
    compiler = shutil.which("c++") or shutil.which("g++") or pytest.skip(reason("g++"))
    folder = exported(tmp_path, "c", "affine_steps", "dot_chunks")
    (folder / "main.cpp").write_text(SIGNED)
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wno-unused-variable"]
    subprocess.run([compiler, *flags, "main.cpp", "-o", "main"], cwd=folder, check=True)
    done = subprocess.run([folder / "main"], capture_output=True, text=True, check=True)
    steps = {case.name: case.arrays for case in golden.load("affine_steps")}[
        "int8.torch_fake_tensor"
    ]
    dots = {case.name: case.arrays for case in golden.load("dot_chunks")}["volta_fp16.f16.f16"]
    numbers = [
        *steps["zero_point"].view(np.int32).tolist(),
        *dots["cut_sum"].view(np.int64).tolist(),
    ]
    assert min(numbers) < 0
    assert done.stdout.split() == [str(sum(numbers)), str(steps["code"].view(np.int32).min())]


def test_npz(tmp_path):
    path = exported(tmp_path, "npz", "nvfp4_te") / "nvfp4_te.npz"
    with np.load(path) as arrays:
        about = json.loads(str(arrays["about"]))
        for case in golden.load("nvfp4_te"):
            assert about[case.name][0] == case.parameters
            for field, array in case.arrays.items():
                assert np.array_equal(arrays[f"{case.name}/{field}"], array)
    first = path.read_bytes()
    export(bundled_files(), "npz", tmp_path, ["nvfp4_te"])
    assert path.read_bytes() == first


@pytest.mark.tier("full", but=["[npz]"])
@pytest.mark.parametrize("kind", EXPORTS)
def test_the_command(tmp_path, kind):
    arguments = ["golden", "export", "--to", kind, "--out", tmp_path, "--suite", "error_steps"]
    done = mor_ref(*arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{len([p for p in tmp_path.rglob('*') if p.is_file()])} file")
    wrong = mor_ref(*arguments[:3], "xml", "--out", tmp_path)
    assert wrong.returncode == 2
    assert "to is 'xml', which is not known; take one of jsonl, testfloat" in wrong.stderr


def test_blocks_are_rows(tmp_path):
    folder = exported(tmp_path / "text", "testfloat", "mx_blocks")
    case = golden.load("mx_blocks")[0]
    lines = [
        line
        for line in (folder / "mx_blocks" / f"{case.name}.txt").read_text().splitlines()
        if not line.startswith("#")
    ]
    wanted = [
        [f"{v:0{2 * a.itemsize}x}" for a in case.arrays.values() for v in np.ravel(a[k]).tolist()]
        for k in range(len(lines))
    ]
    assert [line.split(" ") for line in lines] == wanted
    folder = exported(tmp_path / "memory", "readmemh", "mx_blocks")
    words = (folder / "mx_blocks" / f"{case.name}.mem").read_text().splitlines()[-len(lines) :]
    assert words == ["".join(row) for row in wanted]
    struct = (folder / "mx_blocks" / f"{case.name}.svh").read_text()
    assert "logic [1023:0] x;" in struct
    assert ": 32 of 32 bits, the first in the upper ones" in struct
    assert f"localparam int e4m3_floor_count = {len(lines)};" in struct


@pytest.mark.tier("full")
def test_views_are_written_as_well(tmp_path):
    name = "block_scale@replicated@swizzled_128x4"
    export(bundled_files(), "npz", tmp_path, ["nvfp4_te", "decisions"], [name])
    case = golden.load("nvfp4_te")[0]
    with np.load(tmp_path / "nvfp4_te.npz") as arrays:
        about = json.loads(str(arrays["about"]))[case.name][1]
        assert arrays[f"{case.name}/{name}"].size % 512 == 0
        assert arrays[f"{case.name}/{name}"][0] == case.arrays["block_scale"][0, 0]
    assert any(line.startswith(f"{name} (expected, e4m3, shape 512): ") for line in about)
    export(bundled_files(), "c", tmp_path, ["nvfp4_te"], [name])
    assert "block_scale_replicated_swizzled_128x4[512]" in (tmp_path / "nvfp4_te.h").read_text()
    export(bundled_files(), "npz", tmp_path, ["mx"], ["code@packed"])
    with np.load(tmp_path / "mx.npz") as arrays:
        formats = {
            case.parameters["format"]
            for case in golden.load("mx")
            if f"{case.name}/code@packed" in arrays
        }
    assert formats == {"e2m1"}
    with pytest.raises(ValueError, match="view is 'xs@packed', which these suites do not have"):
        export(bundled_files(), "npz", tmp_path, ["nvfp4_te"], ["xs@packed"])
    with pytest.raises(ValueError, match="give each view of code once"):
        export(bundled_files(), "npz", tmp_path, ["nvfp4_te"], ["code@packed@packed"])


def test_a_view_that_suits_no_case_is_refused():
    """The suite has it, but its only case has codes of 8 bits."""
    entry = ENTRIES["mx"]
    cases = {n: p for n, p in entry["cases"].items() if p["format"] == "e4m3"}
    export_module._check_views(["code@packed"], [entry])
    with pytest.raises(ValueError, match="view is 'code@packed', which no case of these suites"):
        export_module._check_views(["code@packed"], [entry | {"cases": cases}])


TENSORS = [name for name, one in OPERATIONS.items() if one.first_axes not in ("n", "nk")]


@pytest.mark.tier("full", but_one_in=12)
@pytest.mark.parametrize("kind", ["testfloat", "readmemh"])
@pytest.mark.parametrize("suite", [s for s in ENTRIES if s != "encode"])  # it takes seconds
def test_rows_of_every_suite_are_written_or_refused(tmp_path, kind, suite):
    """Nothing is written without a word."""
    if ENTRIES[suite]["operation"] not in TENSORS:
        exported(tmp_path, kind, suite)
        return
    with pytest.raises(ValueError, match=f"suite is '{suite}', whose cases are tensors") as refused:
        export(bundled_files(), kind, tmp_path, [suite])
    assert f"and {kind} is of rows of numbers; give suites of affine_float_zeros" in str(
        refused.value
    )
    assert "or export to one of jsonl, c, npz" in str(refused.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize("kind", ["jsonl", "c", "npz"])
@pytest.mark.parametrize("suite", [s for s, entry in ENTRIES.items() if entry["elements"] < 17_000])
def test_every_suite_can_be_a_file(tmp_path, kind, suite):
    """That goes for all; the larger take more time."""
    exported(tmp_path, kind, suite)


def test_what_is_left_out_of_all_suites_is_named(tmp_path, capsys):
    """A tensor among named suites is refused; without names it is left out, and that is said."""
    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    for name in ("decisions", "mx"):
        shutil.copy(bundled_files() / f"{name}.safetensors", source)
    manifest = read_manifest(bundled_files())
    few = {name: ENTRIES[name] for name in ("decisions", "mx")}
    (source / "MANIFEST.json").write_text(json.dumps({**manifest, "suites": few}))
    with pytest.raises(ValueError, match="suite is 'mx', whose cases are tensors"):
        export(source, "readmemh", out, ["decisions", "mx"])
    assert not out.exists()
    run_export(str(source), "readmemh", str(out), [], [])
    assert capsys.readouterr().out.splitlines() == [
        f"{2 * len(few['decisions']['cases'])} files are in {out}",
        "left out, as readmemh cannot hold tensors: 1 suite, mx",
    ]
    (source / "MANIFEST.json").write_text(json.dumps({**manifest, "suites": {"mx": few["mx"]}}))
    with pytest.raises(
        ValueError, match=r"give suites of \(none is in this directory\), or export"
    ):
        export(source, "readmemh", out, [])


@pytest.mark.parametrize("kind", EXPORTS)
def test_a_directory_without_suites_is_refused(tmp_path, kind):
    """An export of no file would look like a success."""
    manifest = read_manifest(bundled_files())
    (tmp_path / "MANIFEST.json").write_text(json.dumps({**manifest, "suites": {}}))
    with pytest.raises(
        ValueError, match="no file would be written, as the directory has no suites"
    ):
        export(tmp_path, kind, tmp_path / "out", [])


def test_suites_without_cases_are_refused(tmp_path):
    manifest = read_manifest(bundled_files())
    empty = {**manifest["suites"]["encode"], "cases": {}, "elements": 0, "kills": {}}
    empty["sha256"] = hashlib.sha256(save({})).hexdigest()
    (tmp_path / "MANIFEST.json").write_text(json.dumps({**manifest, "suites": {"encode": empty}}))
    (tmp_path / "encode.safetensors").write_bytes(save({}))
    with pytest.raises(ValueError, match="as the suites that are asked for have no cases"):
        export(tmp_path, "readmemh", tmp_path / "out", ["encode"])
