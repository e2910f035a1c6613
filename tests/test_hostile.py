"""Bad input is one sentence: manifests, files, directories of results, links and names."""

import dataclasses
import hashlib
import json
import os
import stat

import numpy as np
import pytest
from forking import mor_ref as run
from safetensors.numpy import load, save, save_file
from verifying import failure_of

from mor_ref import golden, whole_files
from mor_ref.golden import bundled_files
from mor_ref.golden.export.export import EXPORTS, export
from mor_ref.golden.generation.vectors import make
from mor_ref.golden.model import checks
from mor_ref.golden.model.suite import Size
from mor_ref.golden.store import manifest, suite_files
from mor_ref.golden.suites import SUITES
from mor_ref.operations import OPERATIONS
from mor_ref.verify.candidates.by_name import candidate_named
from mor_ref.verify.candidates.numba_engine import Engine
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.checking.compare_manifests import compare_manifests
from mor_ref.verify.comparing.conformance import conformance, standing_of
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.comparing.names_given import fields_of
from mor_ref.verify.reporting import text as report
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in
from mor_ref.whole_files import write_inside

COLUMNS, TENSORS = "decisions", "nvfp4_large"
KEPT = suite_files.read_manifest(bundled_files())


def a_manifest():
    suites = {name: KEPT["suites"][name] for name in (COLUMNS, TENSORS)}
    return json.loads(json.dumps({**KEPT, "suites": suites}))


def directory_of(where, changed):
    """Write a directory of two small suites with a given manifest."""
    where.mkdir()
    for name in (COLUMNS, TENSORS):
        (where / f"{name}.safetensors").write_bytes(
            (bundled_files() / f"{name}.safetensors").read_bytes()
        )
    text = changed if isinstance(changed, str) else json.dumps(changed)
    (where / suite_files.MANIFEST).write_text(text)
    return where


@pytest.fixture
def directory(tmp_path):
    return directory_of(tmp_path / "directory", a_manifest())


def read_all(directory):
    for name, entry in suite_files.read_manifest(directory)["suites"].items():
        suite_files.read_suite(directory, name, entry)


def refused(directory):
    with pytest.raises(suite_files.GoldenError) as error:
        read_all(directory)
    text = str(error.value)
    assert text.isascii()
    assert text.isprintable()
    assert len(text) < 900
    assert str(directory) in text
    assert "with mor-ref golden make" in text
    return text


def test_every_suite_has_the_inputs_of_its_operation():
    of_users = {"blocks"}  # a suite of it is of a user's block format
    assert {suite.operation for suite in SUITES.values()} == set(OPERATIONS) - of_users
    for suite in SUITES.values():
        inputs = {f.name for f in suite.fields if f.role == "input"}
        assert inputs == set(OPERATIONS[suite.operation].inputs)


# ---------------------------------------------------------------------- manifests

ANY = object()


def put(*path_and_value):
    """Return a change of a manifest: the content at a path becomes a value."""
    *path, value = path_and_value

    def change(whole):
        at = whole
        for key in path[:-1]:
            at = at[key]
        if value is ANY:
            del at[path[-1]]
        else:
            at[path[-1]] = value

    return change


def suite(*path_and_value):
    return put("suites", COLUMNS, *path_and_value)


def tensor(*path_and_value):
    return put("suites", TENSORS, "cases", "te.1x16", *path_and_value)


def renamed(name, *path):
    def change(whole):
        at = whole
        for key in path:
            at = at[key]
        at[name] = next(iter(at.values()))

    return change


def doubled(whole):
    fields = whole["suites"][COLUMNS]["fields"]
    fields.append(dict(fields[-1]))


AS_NAME = "which is not a file name"
CHANGES = [
    (put("version", True), "version is True, and has to be an int, 1 to 1"),
    (put("version", "1"), "version is '1'"),
    (put("version", 1.0), "version is 1.0"),
    (put("made_with", ANY), "it has no made_with"),
    (put("made_with", {"size": 1}), "made_with has no seed"),
    (put("made_with", "seed", True), "made_with.seed is True"),
    (put("views", []), "views is a list of 0, and has to be a record"),
    (put("views", "packed", "\x1b[2J"), "views.packed is '\\x1b[2J'"),
    (put("suites", []), "suites is a list of 0"),
    (put("more", 1), "it has 'more', which this version does not know"),
    (renamed("", "suites"), AS_NAME),
    (renamed("a\0b", "suites"), AS_NAME),
    (renamed("\ud800", "suites"), "has the name '\\ud800', which is not a file name"),
    (renamed("..", "suites"), AS_NAME),
    (renamed("../outside", "suites"), AS_NAME),
    (renamed("/etc/passwd", "suites"), AS_NAME),
    (renamed("a\\b", "suites"), AS_NAME),
    (renamed("c:d", "suites"), AS_NAME),
    (renamed(".hidden", "suites"), AS_NAME),
    (renamed("a.", "suites"), AS_NAME),
    (renamed("a\n", "suites"), AS_NAME),
    (renamed("a" * 101, "suites"), AS_NAME),
    (renamed("\u00e9", "suites"), AS_NAME),
    (renamed("Decisions", "suites"), "has decisions and Decisions, which other languages"),
    (suite("kills", ANY), "suites.decisions has no kills"),
    (suite("title", "a */ b"), "title is 'a */ b', and has to be a line of ASCII that"),
    (suite("title", "a\nb"), "title is 'a\\nb'"),
    (suite("title", "a\\"), "title is 'a\\\\'"),
    (suite("title", ""), "title is ''"),
    (suite("operation", "codes"), "operation is 'codes', and has to be encode or "),
    (suite("operation", ["encode"]), "operation is a list of 1"),
    (suite("operation", "encode"), "has the inputs amax, amin, limit, nonfinite, nonzero, sum"),
    (suite("rules", [1]), "rules[0] is 1, and has to be the id of a rule"),
    (suite("rules", "ENC-001"), "rules is 'ENC-001', and has to be a list"),
    (suite("normative", 1), "normative is 1, and has to be true or false"),
    (suite("elements", -1), "elements is -1"),
    (suite("elements", 10**400), "elements is 1000000000"),
    (suite("sha256", "0" * 63), "and has to be 64 hexadecimal digits"),
    (suite("fields", []), "fields is a list of 0, and has to be a list with entries"),
    (suite("fields", 0, []), "fields[0] is a list of 0, and has to be a record"),
    (suite("fields", 0, "role", "both"), "fields[0].role is 'both', and has to be input or"),
    (suite("fields", 0, "format", "e9m9"), "fields[0].format is 'e9m9', and has to be e4m3 or "),
    (suite("fields", 0, "format", "u32"), "has sum in the format u32; its format is u64"),
    (suite("fields", 0, "name", "../sum"), "and has to be a name of a field"),
    (suite("fields", 0, "name", "sums"), "has the inputs "),
    (suite("fields", -1, "name", "refused"), "has the field refused, which decide does not have"),
    (suite("fields", -1, "name", "accepted@packed"), "has the field accepted@packed, which"),
    (suite("fields", -1, "name", "accepted@sha256_128x128"), "has no rows and columns"),
    (suite("fields", -1, "shape", ["columns"]), "has accepted with another shape than ['rows']"),
    (suite("fields", -1, "shape", ANY), "fields[7] has no shape"),
    (suite("fields", -1, "shape", [3]), "fields[7].shape[0] is 3, and has to be a line of ASCII"),
    (suite("fields", 0, "layout", "column-major"), "has sum with another layout than row-major"),
    (suite("fields", -1, "views", [1]), "views[0] is 1, and has to be transposed or"),
    (suite("fields", -1, "views", ["transposed"]), "has a view transposed, which accepted cannot"),
    (suite("fields", -1, "rules", [None]), "rules[0] is None"),
    (suite("fields", -1, "meaning", 3), "meaning is 3"),
    (doubled, "lists the field accepted twice"),
    (suite("cases", []), "cases is a list of 0, and has to be a record"),
    (renamed("../../outside", "suites", COLUMNS, "cases"), AS_NAME),
    (renamed("a/b", "suites", COLUMNS, "cases"), AS_NAME),
    (renamed("Not_Worse_Than", "suites", COLUMNS, "cases"), "other languages cannot distinguish"),
    (renamed("fits_range_e5m2", "suites", COLUMNS, "cases"), "other languages cannot distinguish"),
    (suite("cases", "not_worse_than", []), "cases.not_worse_than is a list of 0, and has"),
    (suite("cases", "not_worse_than", {}), "has no parameter metric, which decide takes"),
    (suite("cases", "not_worse_than", "metric", "mean"), "has another parameter metric than"),
    (suite("cases", "not_worse_than", "metric", ["mean"]), "has another parameter metric than"),
    (suite("cases", "not_worse_than", "tile", [1, 1]), "has the parameter 'tile', which decide"),
    (suite("cases", "not_worse_than", "\x1b", 1), "which is not a parameter"),
    (suite("cases", "not_worse_than", "format", "e4m3"), "a format goes with the metric fits"),
    (suite("cases", "fits_range.e5m2", "format", "e8m9"), "has another parameter format than e4m3"),
    (suite("cases", "fits_range.e5m2", "format", 3), "has another parameter format than e4m3"),
    (suite("kills", []), "kills is a list of 0"),
    (suite("kills", {"a": 1}), "kills.a is 1, and has to be a record"),
    (
        suite("kills", {"a": {"case": "not_worse_than", "field": "accepted", "index": [1.5]}}),
        "kills.a.index[0] is 1.5, and has to be an int",
    ),
    (
        suite("kills", {"a": {"case": "b", "field": "accepted", "index": [1]}}),
        "names a case or a field that it does not list",
    ),
    (suite("negative", []), "negative is a list of 0"),
    (suite("negative", {}), "negative has no sha256"),
    (suite("negative", "sha256", "0"), "negative.sha256 is '0', and has to be 64"),
    (suite("negative", "planted", {}), "negative.planted is a record of 0"),
    (
        suite("negative", "planted", 0, "field", "x"),
        "names a case or a field that it does not list",
    ),
    (suite("negative", "planted", 0, "wrong", -1), "negative.planted[0].wrong is -1"),
    (tensor("source", ANY), "cases.te.1x16 has no parameter source"),
    (tensor("source", "f64"), "has another parameter source than f32 or f16 or bf16"),
    (tensor("profile", None), "has another parameter profile than te"),
    (tensor("tile", 16), "has another parameter tile than a list of two sides"),
    (tensor("tile", [True, 16]), "has another parameter tile than a list of two sides"),
    (tensor("tile", [1 << 40, 16]), "has another parameter tile than a list of two sides"),
    (tensor("tile", [2, 8]), "parameters that do not go together (tile is [2, 8]; profile 'te'"),
    (tensor("recipe", []), "has another parameter recipe than a shape of"),
    (tensor("recipe", "shape", [1 << 13, 1 << 13]), "has another parameter recipe than a shape of"),
    (tensor("recipe", "shape", [1 << 20, 1]), "has another parameter recipe than a shape of"),
    (tensor("recipe", "shape", [0, 1]), "has another parameter recipe than a shape of"),
    (tensor("recipe", "seed", "0"), "has another parameter recipe than a shape of"),
    (tensor("recipe", "doublings", 65), "has another parameter recipe than a shape of"),
    (tensor("recipe", "doublings", "4"), "has another parameter recipe than a shape of"),
    (tensor("recipe", "placed", [[150, 0, 1]]), "has another parameter recipe than a shape of"),
    (tensor("recipe", "placed", [[0, 170, 1]]), "has another parameter recipe than a shape of"),
    (tensor("recipe", "placed", [[0, 0, 1 << 32]]), "has another parameter recipe than a shape of"),
    (tensor("recipe", "placed", [[0, 0]]), "has another parameter recipe than a shape of"),
    (tensor("recipe", "placed", [[0, 169, 1, 1]]), "has another parameter recipe than a shape of"),
    (tensor("recipe", "placed", [[0, 0, 1, True]]), "has another parameter recipe than a shape of"),
    (tensor("recipe", "placed", [[0, 0, 1]] * 65), "has another parameter recipe than a shape of"),
    (tensor("recipe", "placed", {}), "has another parameter recipe than a shape of"),
    (tensor("recipe", "more", 0), "has another parameter recipe than a shape of"),
    (tensor("recipe", "shape", [300, 330]), "has block_scale@sha256_128x128 of the shape"),
    (tensor("recipe", ANY), "has other fields of case 'te.1x16' than the manifest lists: 'x'"),
]  # fmt: skip


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize(("change", "message"), CHANGES)
def test_a_manifest_that_is_wrong_somewhere(tmp_path, change, message):
    """VEC-002."""
    changed = a_manifest()
    change(changed)
    text = json.dumps(changed)
    assert message in refused(directory_of(tmp_path / "directory", text))


def test_parameters_that_do_not_go_together():
    right = KEPT["suites"]["encode"]["cases"]
    case = next(p for p in right.values() if p["format"] == "e4m3")
    for operation, parameters, message in (
        ("encode", case | {"format": "e8m0", "rounding": "rto"}, "which e8m0 does not admit"),
        (
            "encode_preset",
            {"format": "e2m3", "source": "f32", "preset": "torch"},
            "says nothing of",
        ),
        ("scale", {"format": "e8m0", "scaling": "gam"}, "do not go together"),
        ("mx_block", {"format": "bf16", "scale_rule": "floor", "source": "f32"}, "do not go toget"),
        ("decide", {"metric": "fits_range", "format": "int8_mx"}, "has no normal numbers"),
    ):
        with pytest.raises(checks.OperationError, match=message):
            checks.check_parameters(operation, parameters)


def test_a_group_that_cuts_blocks():
    arrays = {"x": np.zeros((24, 24), np.uint32)}
    parameters = {"format": "e4m3", "scaling": "gam", "source": "f32", "group": [5, 8]}
    with pytest.raises(checks.OperationError, match="cannot be cut into blocks"):
        checks.check_arrays("quantize", {**parameters, "block": [4, 8]}, arrays)


def test_recipes_fill_no_memory(tmp_path):
    changed = a_manifest()
    cases = changed["suites"][TENSORS]["cases"]
    cases["te.1x16"]["recipe"]["shape"] = [1 << 12, 1 << 12]
    for k in range(5):
        cases[f"more{k}"] = cases["te.1x16"]
    assert "generates more than 67108864 numbers" in refused(directory_of(tmp_path / "a", changed))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "is not a manifest (too deep)"),
        ('{"a":' * 900 + "1" + "}" * 900, "it has no version"),
        ('{"version": 1, "version": 1}', "(it has a name twice)"),
        ('{"version": Infinity}', "(it has the number Infinity)"),
        ("9" * 5000, "is not a manifest ("),
        ("\ufeff{}", "is not a manifest ("),
        ("null", "it is None, and has to be a record"),
    ],
)
def test_a_text_that_is_no_manifest(tmp_path, text, message):
    assert message in refused(directory_of(tmp_path / "directory", text))


def test_a_manifest_in_another_encoding(directory):
    text = (directory / suite_files.MANIFEST).read_text()
    (directory / suite_files.MANIFEST).write_bytes(text.encode("utf-16"))
    assert "is not a manifest (" in refused(directory)


def test_a_manifest_that_is_too_large(directory, monkeypatch):
    monkeypatch.setattr(manifest, "_LARGEST", 1000)
    assert "at most 1,000 go" in refused(directory)


# ---------------------------------------------------------------------- files of suites


def spoil(directory, name, change):
    """Change the arrays of a suite, and let the manifest vouch for it."""
    path = directory / f"{name}.safetensors"
    arrays = dict(load(path.read_bytes()))
    change(arrays)
    content = save({key: np.ascontiguousarray(array) for key, array in arrays.items()})
    path.write_bytes(content)
    whole = json.loads((directory / suite_files.MANIFEST).read_text())
    whole["suites"][name]["sha256"] = hashlib.sha256(content).hexdigest()
    (directory / suite_files.MANIFEST).write_text(json.dumps(whole))


def other(key, function):
    def change(arrays):
        arrays[key] = function(arrays[key])

    return change


def dropped(key):
    return lambda arrays: arrays.pop(key)


def added(key, array):
    return lambda arrays: arrays.update({key: array})


SUM, CODE = "not_worse_than/sum", "te.1x16/code@sha256_128x128"
BYTE = np.zeros(1, np.uint8)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (COLUMNS, other(SUM, lambda a: a.astype(np.uint32)), "has sum of the shape"),
        (COLUMNS, other(SUM, lambda a: a.astype(np.int64)), "/sum' as int64, but unsigned"),
        (COLUMNS, other(SUM, lambda a: a.astype(float)), "/sum' as float64, but unsigned"),
        (COLUMNS, other(SUM, lambda a: a[1:]), "has nonzero of the shape"),
        (COLUMNS, other(SUM, lambda a: a[:0]), "has a first input of the shape 0"),
        (COLUMNS, other(SUM, lambda a: a[None]), "has a first input of the shape 1x"),
        (COLUMNS, other("not_worse_than/accepted", lambda a: a[:, None]), "has accepted of the"),
        (COLUMNS, other("not_worse_than/nonzero", lambda a: a | np.uint64(1 << 50)), "nonzero is"),
        (COLUMNS, dropped(SUM), "has other fields of case 'not_worse_than' than the"),
        (COLUMNS, added("not_worse_than/more", BYTE), "has other fields of case"),
        (COLUMNS, added("nowhere/sum", BYTE), "holds 'nowhere/sum', which the manifest"),
        (COLUMNS, added("../sum", BYTE), "holds '../sum', which the manifest does not list"),
        (COLUMNS, added("\x1b[2J" + 500 * "y", BYTE), "holds '\\x1b[2Jyyy"),
        (TENSORS, other(CODE, lambda a: a[:, :, 1:]), "has code@sha256_128x128 of the shape 2x2x3"),
        (TENSORS, other(CODE, lambda a: a.astype(np.uint16)), "and 2 bytes an entry, but"),
    ],
)  # fmt: skip
def test_a_file_that_does_not_suit_the_operation(directory, name, change, message):
    """VEC-001."""
    spoil(directory, name, change)
    assert message in refused(directory)


@pytest.mark.parametrize(
    ("dtype", "shape", "content"),
    [
        ("F8_E4M3", [1], b"a"),
        ("BF16", [1], b"ab"),
        ("U8", [0, 1 << 62, 1 << 62], b""),
        ("U8", [1] * 70, b"a"),
        ("U8", [1 << 40, 0], b""),
    ],
)
def test_arrays_that_numpy_has_not(directory, dtype, shape, content):
    header = {f"{COLUMNS}/x": {"dtype": dtype, "shape": shape, "data_offsets": [0, len(content)]}}
    text = json.dumps(header).encode()
    file = len(text).to_bytes(8, "little") + text + content
    entry = KEPT["suites"][COLUMNS] | {"sha256": hashlib.sha256(file).hexdigest()}
    (directory / f"{COLUMNS}.safetensors").write_bytes(file)
    with pytest.raises(suite_files.GoldenError, match="make it again with mor-ref golden make"):
        suite_files.read_suite(directory, COLUMNS, entry)


def test_what_the_engine_refuses_is_a_sentence(monkeypatch):
    def refuses(*_):
        raise TypeError("no such thing")

    declared = OPERATIONS["decide"]
    monkeypatch.setitem(OPERATIONS, "decide", dataclasses.replace(declared, function=refuses))
    with pytest.raises(
        suite_files.GoldenError, match=r"cannot be computed \(no such thing\); make"
    ):
        verify(Engine(), suites_in(bundled_files(), [COLUMNS]))


# ---------------------------------------------------------------------- reading


def test_links_that_lead_out_are_not_followed(directory, tmp_path):
    outside = tmp_path / "outside"
    path = directory / f"{COLUMNS}.safetensors"
    path.rename(outside)
    path.symlink_to(outside)
    assert f"it leads out of {directory}" in refused(directory)
    path.unlink()
    path.symlink_to(path.name)
    assert "cannot be read (" in refused(directory)
    path.unlink()
    outside.rename(directory / "another")
    path.symlink_to("another")  # inside of the directory it may
    named = tmp_path / "named"
    named.symlink_to(directory)  # and the directory may be one
    assert set(suite_files.read_manifest(named)["suites"]) == {COLUMNS, TENSORS}
    assert verify(Engine(), suites_in(named, [COLUMNS])).verdict == "match"
    (directory / suite_files.MANIFEST).rename(tmp_path / "manifest")
    (directory / suite_files.MANIFEST).symlink_to(tmp_path / "manifest")
    assert "leads out of" in refused(directory)


def test_pipes_and_directories_are_not_read(directory):
    path = directory / f"{COLUMNS}.safetensors"
    path.unlink()
    os.mkfifo(path)
    assert "cannot be read (it is not a regular file)" in refused(directory)
    path.unlink()
    path.mkdir()
    assert "cannot be read (Is a directory)" in refused(directory)


def test_a_suite_outside_of_the_directory_is_not_read(directory):
    with pytest.raises(suite_files.GoldenError, match="leads out of"):
        suite_files.read_suite(directory / "nowhere", f"../{COLUMNS}", KEPT["suites"][COLUMNS])


# ---------------------------------------------------------------------- writing


def test_nothing_is_written_outside(directory, tmp_path):
    outside, out = tmp_path / "outside", tmp_path / "out"
    outside.mkdir()
    out.mkdir()
    (out / COLUMNS).symlink_to(outside)
    (out / "negative").symlink_to(outside)
    for kind in ("testfloat", "readmemh"):
        with pytest.raises(ValueError, match="leads out of .*; take the link away"):
            export(directory, kind, out, [COLUMNS])
    with pytest.raises(ValueError, match="leads out of .*; take the link away"):
        make([COLUMNS], out, Size())
    assert list(outside.iterdir()) == []


def test_a_link_that_was_named_is_meant(tmp_path):
    outside, out = tmp_path / "outside", tmp_path / "out"
    outside.mkdir()
    out.symlink_to(outside)
    make([COLUMNS], out, Size())
    assert export(out, "jsonl", out, []).files == 1
    assert {path.name for path in outside.iterdir()} >= {suite_files.MANIFEST, "decisions.jsonl"}


def test_a_link_at_the_place_of_a_file_is_replaced(tmp_path):
    outside, report = tmp_path / "outside", tmp_path / "report.json"
    outside.write_text("mine")
    for name in (report.name, "decisions.jsonl", suite_files.MANIFEST):
        (tmp_path / name).symlink_to(outside)
    done = run("verify", "numba", "--suite", COLUMNS, "--report", report)
    assert done.returncode == 0, done.stderr
    export(bundled_files(), "jsonl", tmp_path, [COLUMNS])
    whole_files.write_whole(tmp_path / suite_files.MANIFEST, b"{}")
    assert outside.read_text() == "mine"
    assert json.loads(report.read_text())["verdict"] == "match"


def test_a_file_as_large_as_may_be_is_read(tmp_path):
    (tmp_path / "a").write_bytes(b"123")
    assert whole_files.read_inside(tmp_path, "a", 3) == b"123"
    with pytest.raises(OSError, match="it has 3 bytes, and at most 2 go"):
        whole_files.read_inside(tmp_path, "a", 2)


def test_everybody_may_read_what_is_written(tmp_path):
    """The temporary file is of its owner alone."""
    whole_files.write_whole(tmp_path / "a", b"1")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o644


@pytest.mark.parametrize(
    "name", ["../a", "/etc/mor_ref_a", "a/../../b", "..", "a/..", "a/../../c/d"]
)
def test_names_do_not_lead_out(tmp_path, name):
    """Were a name not refused at loading, it would be here."""
    out = tmp_path / "deep" / "out"
    with pytest.raises(ValueError, match="leads out of"):
        write_inside(out, name, b"")
    assert not list(tmp_path.rglob("*"))


@pytest.mark.parametrize("kind", EXPORTS)
def test_the_export_of_a_hostile_manifest_writes_nothing(tmp_path, kind):
    changed = a_manifest()
    cases = changed["suites"][COLUMNS]["cases"]
    cases["../../outside"] = cases.pop("not_worse_than")
    directory, out = directory_of(tmp_path / "directory", changed), tmp_path / "a" / "out"
    with pytest.raises(suite_files.GoldenError, match="which is not a file name"):
        export(directory, kind, out, [])
    assert not (tmp_path / "a").exists()


def test_two_arrays_of_one_name_in_c():
    columns = {"x": np.array([0x3F800000], np.uint32), "amax": np.array([1], np.uint32)}
    block = {"x": np.zeros((1, 16), np.uint32), "amax": columns["amax"]}
    cases = [
        suite_files.Case("te", {}, block | {"block_amax": columns["amax"]}),
        suite_files.Case("te.block", {}, block),
    ]
    with pytest.raises(
        suite_files.GoldenError, match="two arrays that C would call s_te_block_amax"
    ):
        list(EXPORTS["c"]("s", {"fields": []}, cases))


def test_manifests_differ_by_what_only_one_has(directory, tmp_path):
    changed = a_manifest()
    del changed["suites"][COLUMNS]["negative"]
    less = directory_of(tmp_path / "less", changed)
    assert compare_manifests(directory, less) == ["decisions: another negative"]
    assert compare_manifests(less, directory) == ["decisions: another negative"]


# ---------------------------------------------------------------------- candidates


def results(where, suite, arrays):
    where.mkdir(exist_ok=True)
    save_file(
        {key: np.ascontiguousarray(array) for key, array in arrays.items()},
        where / f"{suite}.safetensors",
    )
    return candidate_named(f"dir:{where}")


def right(suite):
    return {
        f"{case.name}/{field['name']}": case.arrays[field["name"]]
        for case in golden.load(suite)
        for field in KEPT["suites"][suite]["fields"]
        if field["role"] == "expected" and field["name"] in case.arrays
    }


def test_a_view_of_itself_over_and_over_fills_no_memory(tmp_path):
    """Sixteen times as long with each."""
    case = golden.load("nvfp4_te")[1].name
    name = f"{case}/block_scale{'@replicated' * 12}"
    candidate = results(tmp_path / "r", "nvfp4_te", {name: BYTE})
    (result,) = verify(candidate, suites_in(bundled_files(), ["nvfp4_te"])).results
    assert "give a view of block_scale once" in str(result.differences[0])


def test_rows_without_entries_take_no_time(tmp_path):
    """2^40 rows of nothing have 2^33 rows of digests, which no machine would come to the end of."""
    empty = np.zeros((1 << 40, 0), np.uint8)
    candidate = results(tmp_path / "r", "mx_large", {"e4m3.floor/code": empty})
    found = verify(candidate, suites_in(bundled_files(), ["mx_large"]))
    assert "has shape (1099511627776, 0)" in str(found.results[0].differences[0])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a", "a"),
        ("/a", "/a"),
        ("a/", "a/"),
        ("a/\x1b[2J", r"a/\x1b[2J"),
        ("a/\u00e9", r"a/\xe9"),
        ("a/" + "b" * 300, "a/" + "b" * 98),
    ],
)
def test_strange_names_of_results(tmp_path, name, message):
    """They are named as cases that nobody knows, and the others are compared."""
    candidate = results(tmp_path / "r", COLUMNS, {**right(COLUMNS), name: BYTE})
    (result,) = verify(candidate, suites_in(bundled_files(), [COLUMNS])).results
    assert (result.verdict, result.unknown_cases.names) == ("match", (message,))
    assert message.isprintable()


def test_results_are_read_inside_of_their_directory(tmp_path):
    where, outside = tmp_path / "r", tmp_path / "outside"
    candidate = results(where, COLUMNS, right(COLUMNS))
    path = where / f"{COLUMNS}.safetensors"
    path.rename(outside)
    path.symlink_to(outside)
    assert "it leads out of" in failure_of(candidate, COLUMNS)
    path.unlink()
    os.mkfifo(path)
    assert "it is not a regular file" in failure_of(candidate, COLUMNS)


class Breaking(dict):
    """A mapping that cannot be gone through."""

    def __iter__(self):
        raise RuntimeError("no\nend")

    items = __iter__


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({1: BYTE}, "not fields of this suite: 1;"),
        ({"a b": BYTE}, "not fields of this suite: 'a b';"),
        ({"": BYTE}, "not fields of this suite: '';"),
        ({"accepted": [[1], [1, 2]]}, "field accepted: is not an array ("),
        (Breaking(accepted=BYTE), "returned a mapping without items for case"),
    ],
)
def test_strange_answers_of_functions(answer, message):
    found = verify(
        PythonFunction("strange", lambda *_: answer), suites_in(bundled_files(), [COLUMNS])
    )
    assert found.verdict != "match"
    assert message in "\n".join(report.lines(found))


def test_a_negative_choice_is_no_rung():
    entry = KEPT["suites"]["policies"]
    cases = golden.load("policies")
    answers = {c.name: {"choice": c.arrays["choice"].astype(np.int64) - 9} for c in cases}
    evidence = Evidence("policies", entry["operation"], fields_of(entry), cases, answers)
    assert conformance([standing_of(evidence)], {"policies": entry}, 1).level == "not"


@pytest.mark.tier("full", but=["[quantize-kept0-sum]"])
@pytest.mark.parametrize(
    ("suite", "kept", "given"),
    [
        ("quantize", {"sum"}, "sum"),
        ("policies", {"choice"}, "choice"),
        ("policies", {"choice", "e4m3.sum", "e4m3.nonzero", "e4m3.nonfinite"}, "choice"),
        ("policies", {"e4m3.sum"}, "e4m3.sum"),
    ],
)
def test_suites_without_what_decisions_were_made_from(suite, kept, given):
    """How far a candidate conforms is then not judged by sums that are not there."""
    entry = KEPT["suites"][suite]
    fields = [f for f in fields_of(entry) if f.role == "input" or f.name in kept]
    names = {field.name for field in fields}
    cases = [
        suite_files.Case(c.name, c.parameters, {n: a for n, a in c.arrays.items() if n in names})
        for c in golden.load(suite)
    ]
    cases = [case for case in cases if given in case.arrays]
    answers = {c.name: {given: c.arrays[given] ^ c.arrays[given].dtype.type(1)} for c in cases}
    evidence = Evidence(suite, entry["operation"], fields, cases, answers)
    assert conformance([standing_of(evidence)], {suite: entry}, 1).level == "not"


# ---------------------------------------------------------------------- the command line


@pytest.mark.tier("full")
def test_exit_status(directory, tmp_path):
    spoilt = directory_of(tmp_path / "spoilt", "[" * 100_000)
    for command in (
        ("golden", "check", spoilt),
        ("golden", "export", spoilt, "--to", "c", "--out", tmp_path / "out"),
        ("golden", "make", COLUMNS, "--out", spoilt),
        ("verify", "numba", "--vectors", spoilt),
    ):
        done = run(*command)
        assert done.returncode == 2, command
        assert "is not a manifest (too deep); make it again with mor-ref golden make" in done.stderr
        assert "Traceback" not in done.stderr
    where = tmp_path / "r"
    results(where, COLUMNS, {"a/\n": BYTE})
    done = run("verify", f"dir:{where}", "--vectors", directory, "--suite", COLUMNS)
    assert done.returncode == 3
    assert r"not cases of this suite: a/\n; the nearest" in done.stdout
    assert "Traceback" not in done.stderr
