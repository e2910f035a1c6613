"""Golden vectors: the same bytes every time, whole or not at all, and compared with the engine."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from forking import mor_ref as run

from mor_ref import golden
from mor_ref.golden import bundled_files
from mor_ref.golden.generation.vectors import make
from mor_ref.golden.inputs import edges as inputs
from mor_ref.golden.model.suite import Size
from mor_ref.golden.store import manifest, suite_files
from mor_ref.golden.store.manifest import DIGESTS
from mor_ref.golden.suites import SUITES
from mor_ref.operations import random_words
from mor_ref.verify.candidates.numba_engine import Engine
from mor_ref.verify.checking.check import check
from mor_ref.verify.checking.compare_manifests import compare_manifests
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

QUICK = ("decisions", "error_steps")


def engine_on(folder, name):
    """Return the differences of the engine from a suite."""
    (result,) = verify(Engine(), suites_in(folder, [name])).results
    assert result.answered == result.cases
    return list(result.differences)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden")
    make(QUICK, folder, Size())
    return folder


@pytest.fixture
def changed(made, tmp_path):
    """Copy the vectors, to spoil them."""
    return shutil.copytree(made, tmp_path / "copy")


@pytest.mark.parametrize("name", SUITES)
def test_the_engine_matches_every_bundled_suite(name):
    assert engine_on(bundled_files(), name) == []


def test_the_kept_manifest_is_that_of_the_suites():
    manifest = suite_files.read_manifest(bundled_files())
    assert list(manifest["suites"]) == sorted(SUITES)
    for name, suite in SUITES.items():
        entry = manifest["suites"][name]
        assert entry["rules"] == list(suite.rules), name
        assert [field["name"] for field in entry["fields"]] == [f.name for f in suite.fields]
    size = sum(path.stat().st_size for path in bundled_files().iterdir())
    assert size < 45e6


@pytest.mark.tier("full")
def test_every_nan_that_is_expected_in_binary32_is_one():
    """ART-003."""
    found = 0
    for name, suite in SUITES.items():
        for field in suite.fields:
            if field.role == "expected" and field.format == "f32":
                for case in golden.load(name):
                    bits = case.arrays.get(field.name, np.zeros(0, np.uint32))
                    is_nan = (bits & 0x7FFFFFFF) > 0x7F800000
                    assert (bits[is_nan] == 0x7FFFFFFF).all(), (name, case.name, field.name)
                    found += int(is_nan.sum())
    assert found > 1000


@pytest.mark.tier("full", but_one_in=6)
@pytest.mark.parametrize("name", SUITES)
def test_shapes_are_what_the_manifest_says(name):
    """VEC-012: a size has one name, and a name one size, in all arrays of a case."""
    entry = suite_files.read_manifest(bundled_files())["suites"][name]
    shapes = {field["name"]: field["shape"] for field in entry["fields"]}
    for case in golden.load(name):
        sizes = {}
        for field, array in case.arrays.items():
            if shapes[field] == ["digest rows", "digest columns", "bytes"]:
                assert array.shape[2] == 32
                continue
            for axis, size in zip(shapes[field], array.shape, strict=True):
                assert sizes.setdefault(axis, size) == size, (case.name, field, axis)
        if "pairs" in sizes:
            assert sizes["pairs"] == (sizes.get("columns", sizes.get("numbers")) + 1) // 2
        if "block rows" in sizes and isinstance(case.parameters.get("block"), list):
            for axis, side in zip(("rows", "columns"), case.parameters["block"], strict=True):
                assert sizes[f"block {axis}"] == -(-sizes[axis] // side)


@pytest.mark.tier("full")
def test_making_again_gives_the_same_bytes(made):
    are_those_that_are_kept(made, QUICK)


@pytest.mark.tier("full")
def test_making_scales_again_gives_the_same_bytes(tmp_path):
    make(["scale_steps"], tmp_path, Size())
    are_those_that_are_kept(tmp_path, ["scale_steps"])


def are_those_that_are_kept(folder, names):
    kept = suite_files.read_manifest(bundled_files())
    found = suite_files.read_manifest(folder)["suites"]
    assert sorted(found) == sorted(names)
    for name, entry in found.items():
        assert entry == kept["suites"][name]
        file = f"{name}.safetensors"
        assert (folder / file).read_bytes() == (bundled_files() / file).read_bytes()


@pytest.mark.tier("full")
def test_digests_that_came_or_went_are_put_into_the_manifest(changed):
    """VEC-014: also where no suite is to be made."""
    for come_or_go in (
        lambda: shutil.copy(bundled_files() / DIGESTS, changed),
        (changed / DIGESTS).unlink,
    ):
        come_or_go()
        make(QUICK, changed, Size())
        assert check(changed, []).verdict == "match"


@pytest.mark.tier("full")
def test_size_and_seed_change_the_random_part_alone(made, tmp_path):
    make(["error_steps"], tmp_path, Size(3, 7))
    larger = suite_files.read_manifest(tmp_path)
    assert larger["made_with"] == {"size": 3, "seed": 7}
    usual = suite_files.read_manifest(made)["suites"]["error_steps"]["elements"]
    assert larger["suites"]["error_steps"]["elements"] > 2 * usual
    assert engine_on(tmp_path, "error_steps") == []
    with pytest.raises(suite_files.GoldenError, match="made with .*; give another directory"):
        make(["decisions"], tmp_path, Size())


@pytest.mark.tier("full")
def test_a_run_that_was_killed_is_finished_by_the_next(tmp_path):
    main = "import sys; from mor_ref.cli import main; sys.argv[0] = 'mor-ref'; main()"
    arguments = ["golden", "make", *QUICK, "decode", "--out", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-c", main, *arguments], stderr=subprocess.DEVNULL, start_new_session=True
    )
    while process.poll() is None and not (tmp_path / suite_files.MANIFEST).exists():
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    there = suite_files.read_manifest(tmp_path)["suites"]
    for name, entry in there.items():
        suite_files.read_suite(tmp_path, name, entry)
    before = {name: (tmp_path / f"{name}.safetensors").stat().st_mtime_ns for name in there}
    assert run(*arguments).returncode == 0
    after = suite_files.read_manifest(tmp_path)["suites"]
    assert sorted(after) == sorted([*QUICK, "decode"])
    for name, stamp in before.items():
        assert (tmp_path / f"{name}.safetensors").stat().st_mtime_ns == stamp


def test_the_random_numbers_are_those_of_ten_lines_of_c():
    """SplitMix64, here with Python's integers; the first two numbers are well known."""
    assert [hex(w) for w in random_words.random_words(2, 0, 0).tolist()] == [
        "0xe220a8397b1dcdaf",
        "0x6e789e6aa1b965f4",
    ]
    bell = inputs.bell(1000, 0, 0).view(np.float32)
    assert abs(bell.mean()) < 0.1
    assert 0.4 < bell.std() < 0.7
    assert np.abs(bell).max() <= 2


def flip(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-7])


def swap(path):
    shutil.copy(path.parent / "error_steps.safetensors", path)


@pytest.mark.tier("full")
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (flip, "has the SHA-256"),
        (truncate, "it was changed or cut: make it again"),
        (swap, "but the manifest says"),
        (lambda path: path.unlink(), "cannot be read (No such file or directory); make it again"),
    ],
)
def test_a_spoilt_file_is_one_sentence_and_status_2(changed, spoil, message):
    """All the rest is checked all the same."""
    spoil(changed / "decisions.safetensors")
    done = run("golden", "check", changed)
    assert done.returncode == 2, done.stderr
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("  "))
    assert line.startswith("  suite decisions: ")
    assert message in line
    assert len(line) < 400
    entries = 3 * golden.load("error_steps")[0].arrays["u"].size
    assert (
        f"error_steps: match, {entries:,} entries of 1 case compared with the exact model"
        in done.stdout
    )
    make(QUICK, changed, Size())
    assert engine_on(changed, "decisions") == []


def test_a_file_that_is_not_that_of_the_manifest_is_refused():
    """VEC-002."""
    with pytest.raises(suite_files.GoldenError, match=r"decisions.* has the SHA-256 .*0{16}\.\.;"):
        suite_files.read_suite(golden.bundled_files(), "decisions", {"sha256": "0" * 64})


def header(text):
    return len(text).to_bytes(8, "little") + text


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 64,
        header(b"not json"),
        header(b'{"a/x":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}}'),
        header(b'{"a/x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},'
               b'"b/x":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}') + b"abc",
        header(b'{"../x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}') + b"a",
    ],
)  # fmt: skip
def test_a_hostile_file_is_refused(changed, content):
    """Even where the manifest vouches for it."""
    vouched_for(changed, content)
    with pytest.raises(suite_files.GoldenError):
        engine_on(changed, "decisions")


def vouched_for(folder, content):
    """Put a file in the place of a suite, with its SHA-256 in the manifest."""
    (folder / "decisions.safetensors").write_bytes(content)
    manifest = json.loads((folder / suite_files.MANIFEST).read_text())
    manifest["suites"]["decisions"]["sha256"] = hashlib.sha256(content).hexdigest()
    (folder / suite_files.MANIFEST).write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("key", "dtype", "message"),
    [
        ("not_worse_than/accepted", "F32", "holds 'not_worse_than/accepted' as float32, but unsig"),
        ("not_worse_than/accepted", "I32", "as int32, but unsigned integers are expected"),
        ("another/accepted", "F32", "holds 'another/accepted', which the manifest does not list"),
    ],
)
def test_an_array_that_is_out_of_place(changed, key, dtype, message):
    about = {key: {"dtype": dtype, "shape": [1], "data_offsets": [0, 4]}}
    vouched_for(changed, header(json.dumps(about).encode()) + b"abcd")
    with pytest.raises(suite_files.GoldenError, match=re.escape(message)):
        engine_on(changed, "decisions")


@pytest.mark.tier("full", but=["[file/folder]"])
@pytest.mark.parametrize("out", ["file", "file/folder", "pipe"])
def test_suites_are_made_in_directories_alone(tmp_path, out):
    (tmp_path / "file").write_text("mine")
    os.mkfifo(tmp_path / "pipe")
    done = run("golden", "make", "decisions", "--out", tmp_path / out)
    assert done.returncode == 2
    said = f"mor-ref: {tmp_path / out} cannot be made ("
    assert done.stderr.splitlines()[-1].startswith(said)
    assert done.stderr.endswith("give a directory, or a name for a new one\n")
    assert (tmp_path / "file").read_text() == "mine"


def test_what_is_in_the_way_of_a_file(tmp_path):
    (tmp_path / "a" / "decisions.safetensors").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "negative").write_text("mine")
    for folder, reason in (
        ("a", "a/decisions.safetensors cannot be written (Is a directory); make room for it"),
        ("b", "b/negative/decisions.safetensors cannot be written (File exists); make room for it"),
    ):
        done = run("golden", "make", "decisions", "--out", tmp_path / folder)
        assert (done.returncode, done.stdout) == (2, "")
        assert reason in done.stderr
    (tmp_path / "file").write_text("mine")
    done = run("golden", "export", "--suite", "decisions", "--to", "c", "--out", tmp_path / "file")
    assert done.returncode == 2
    assert "cannot be written (File exists); make room for it" in done.stderr
    for command in (("make", "decisions"), ("export", "--to", "c")):
        done = run("golden", *command, "--out", "")
        assert (done.returncode, done.stderr.splitlines()[-1]) == (
            2,
            "mor-ref: out is ''; give a directory; . is the current one",
        )


def test_things_are_counted(changed, tmp_path):
    """One of them is one."""
    done = run("golden", "make", "fp8lm_windows", "fp8lm_windows", "--out", changed)
    assert done.stdout == f"1 suite is in {changed}\n"
    entry = manifest.read_manifest(bundled_files())["suites"]["fp8lm_windows"]
    cases, elements, exposed = len(entry["cases"]), entry["elements"], len(entry["kills"])
    size = f"{cases} cases, {elements:,} elements, exposes {exposed} mistakes"
    said = f"fp8lm_windows: {entry['title']}; {size}"
    assert done.stderr.splitlines()[0] == said
    twice = ("--suite", "fp8lm_windows", "--suite", "fp8lm_windows")
    done = run("golden", "check", changed, *twice)
    assert done.stdout.splitlines()[-1] == f"{changed}: match (1 suite, 0 findings)"
    out = tmp_path / "out"
    done = run("golden", "export", changed, *twice, "--to", "npz", "--out", out)
    assert re.fullmatch(rf"(1 file is|[2-9] files are) in {out}\n", done.stdout)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not a manifest"),
        ("[]", "is not a manifest: it is a list of 0, and has to be a record; make it again with"),
        ('{"version": 2}', "is of version 2; this program reads version 1"),
        ('{"version": 1}', "it has no made_with"),
        ('{"version": 1, "suites": {"a": {}}}', "it has no made_with"),
        ('{"version": 1, "version": 1}', "is not a manifest (it has a name twice)"),
        ('{"version": NaN}', "is not a manifest (it has the number NaN)"),
        ("[" * 100_000, "is not a manifest (too deep)"),
        ("[" * 900 + "]" * 900, "it is a list of 1"),
        ("1" * 5000, "is not a manifest ("),
        ('"\\ud800"', "it is '\\ud800', and has to be a record"),
        ("\ufeff{}", "is not a manifest ("),
    ],
)
def test_a_manifest_that_cannot_be_used(changed, text, message):
    (changed / suite_files.MANIFEST).write_text(text)
    with pytest.raises(suite_files.GoldenError) as refused:
        suite_files.read_manifest(changed)
    assert message in str(refused.value)


def test_a_manifest_cannot_lead_out_of_its_directory(changed):
    path = changed / suite_files.MANIFEST
    manifest = json.loads(path.read_text())
    manifest["suites"]["../outside"] = manifest["suites"].pop("decisions")
    path.write_text(json.dumps(manifest))
    with pytest.raises(suite_files.GoldenError, match="which is not a file name"):
        verify(Engine(), suites_in(changed, []))


def test_a_manifest_is_parsed_once(changed, monkeypatch):
    """And the parameters of a case are those of its reader, who may change them."""
    calls = []

    def counted(*given, **how):
        calls.append(given)
        return json.loads(*given, **how)

    path = changed / manifest.MANIFEST
    path.write_bytes(path.read_bytes() + b" ")  # nobody has read it yet
    monkeypatch.setattr(manifest, "json", SimpleNamespace(loads=counted))
    name, entry = next(iter(suite_files.read_manifest(changed)["suites"].items()))
    case = suite_files.read_suite(changed, name, entry)[0]
    case.parameters.clear()
    assert suite_files.read_manifest(changed)["suites"][name]["cases"][case.name]
    assert len(calls) == 1


def test_manifests_are_compared(made, changed):
    assert compare_manifests(made, changed) == []
    path = changed / suite_files.MANIFEST
    manifest = json.loads(path.read_text())
    manifest["suites"]["decisions"]["title"] = "another"
    del manifest["suites"]["error_steps"]
    path.write_text(json.dumps(manifest))
    assert compare_manifests(made, changed) == [
        "decisions: another title",
        f"error_steps: only in {made}",
    ]


def test_load():
    cases = golden.load("decisions")
    assert cases[0].name == "mean_relative_error"
    with pytest.raises(ValueError, match="suite is 'decision', which is not known; did you mean"):
        golden.load("decision")


def test_the_commands(made):
    listed = run("golden", "list")
    assert listed.returncode == 0
    assert all(name in listed.stdout for name in SUITES)
    assert {row["name"] for row in json.loads(run("golden", "list", "--json").stdout)} == set(
        SUITES
    )
    one = run("golden", "list", "nvfp4_te")
    assert one.returncode == 0, one.stderr
    for text in ("operation nvfp4; rules NVF-001", "block_scale", "swizzled_128x4", '"tile"'):
        assert text in one.stdout
    assert json.loads(run("golden", "list", "mx", "--json").stdout)["operation"] == "mx"
    cases = run("golden", "list", "encode", "--cases")
    assert cases.stdout.splitlines() == [case.name for case in golden.load("encode")]
    as_json = run("golden", "list", "encode", "--cases", "--json").stdout
    assert json.loads(as_json) == cases.stdout.splitlines()
    assert "--cases needs a suite; give" in run("golden", "list", "--cases").stderr
    done = run("golden", "check", made, "--suite", "decisions", "--same-as", made)
    assert done.returncode == 0, done.stderr
    assert "decisions: match, " in done.stdout
    assert "manifest equals the one of" in done.stdout
    other = run(
        "golden", "check", made, "--suite", "decisions", "--same-as", bundled_files(), "--json"
    )
    assert other.returncode == 1
    assert json.loads(other.stdout)["verdict"] == "match"
    assert json.loads(other.stdout)["manifests"]
    for arguments, message in (
        (
            ("golden", "check", made / "nowhere"),
            "is not there; make the suites with mor-ref",
        ),
        (
            ("golden", "export", "mx_decoding", "--to", "c", "--out", made / "c"),
            "DIR is 'mx_decoding', which is the name of a suite, but not of a directory here; give",
        ),
        (
            ("golden", "check", made / "MANIFEST.json"),
            "MANIFEST.json', which is a file; give a directory of suites",
        ),
        (("golden", "make", "codes", "--out", made), "suite is 'codes', which is not known"),
        (("golden", "make", "--out", made, "--size", "0"), "size is 0; give an int from 1 to"),
    ):
        wrong = run(*arguments)
        assert wrong.returncode == 2
        assert message in wrong.stderr.replace("\n", " ")
