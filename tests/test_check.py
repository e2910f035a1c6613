"""`mor-ref golden check`: each fault of a directory of suites is a sentence with its place."""

import hashlib
import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
from safetensors.numpy import load, save

from mor_ref import golden
from mor_ref.golden import bundled_files
from mor_ref.golden.all_inputs import digests as exhaustive
from mor_ref.golden.model.suite import Size
from mor_ref.golden.store import suite_files
from mor_ref.golden.store.manifest import DIGESTS
from mor_ref.verify.checking import suite_checks
from mor_ref.verify.checking.check import check, check_suite, lines
from mor_ref.workers.pools import Workers

NAME = "decisions"
KEPT = suite_files.read_manifest(bundled_files())
CASE, FIELD = "not_worse_than", "accepted"
ELEMENTS, CASES = KEPT["suites"][NAME]["elements"], len(KEPT["suites"][NAME]["cases"])


def entry_of(name=NAME):
    return json.loads(json.dumps(KEPT["suites"][name]))


def entries_of(name, case, field):
    content = (bundled_files() / f"{name}.safetensors").read_bytes()
    return f"{load(content)[f'{case}/{field}'].size:,}"


def found_in(directory, entry, name=NAME):
    return [str(finding) for finding in check_suite(directory, name, entry, Size()).findings]


@pytest.fixture
def copied(tmp_path):
    """Return a function that copies the files of some suites to a directory, to spoil."""

    def copy(*names):
        (tmp_path / "negative").mkdir()
        for name in names:
            shutil.copy(bundled_files() / f"{name}.safetensors", tmp_path)
            if "negative" in KEPT["suites"][name]:
                path = f"negative/{name}.safetensors"
                shutil.copy(bundled_files() / path, tmp_path / path)
        shutil.copy(bundled_files() / DIGESTS, tmp_path)
        suites = {name: KEPT["suites"][name] for name in names}
        (tmp_path / suite_files.MANIFEST).write_text(json.dumps({**KEPT, "suites": suites}))
        return tmp_path

    return copy


def rewritten(path, change):
    """Change a file of arrays, and return the SHA-256 of its new content."""
    arrays = {key: array.copy() for key, array in load(path.read_bytes()).items()}
    change(arrays)
    content = save(arrays)
    path.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def put(*path_and_value):
    *path, last, value = path_and_value

    def change(entry):
        for key in path:
            entry = entry[key]
        entry[last] = value

    return change


def removed(*path):
    def change(entry):
        for key in path[:-1]:
            entry = entry[key]
        del entry[path[-1]]

    return change


KILL = next(iter(KEPT["suites"][NAME]["kills"]))


def test_what_was_not_changed_has_no_findings():
    assert found_in(bundled_files(), entry_of()) == []


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("title", "Another"), f"suite {NAME}: the manifest says title 'Another', and '"),
        (put("rules", []), f"suite {NAME}: the manifest says rules [], and ['"),
        (put("normative", False), "the manifest says normative False, and True is right"),
        (put("elements", 1), f"the manifest says it has 1 elements, and it has {ELEMENTS:,}"),
        (
            put("fields", -1, "meaning", "it is"),
            f"suite {NAME}, field {FIELD}: the manifest says meaning 'it is', and '",
        ),
        (put("fields", -1, "rules", []), f"field {FIELD}: the manifest says rules [], and ['"),
        (put("fields", 0, "views", ["packed"]), "field sum: the manifest says views ['packed']"),
        (
            lambda entry: entry["fields"].insert(0, entry["fields"].pop()),
            "the manifest lists its fields in another order",
        ),
        (put("kills", KILL, "index", [3, 4]), f"says that {KILL} differs at [3, 4], and it does"),
        (put("kills", KILL, "index", [1 << 40]), f"says that {KILL} differs at [1099511627776]"),
        (put("kills", KILL, "field", "sum"), "case "),
        (put("kills", "no_such", {"case": CASE, "field": FIELD, "index": [0]}), "is not known"),
        (removed("negative"), "the manifest lists other wrong results than this program has"),
        (put("negative", "planted", 0, "what", "this"), "lists other wrong results than this"),
        (put("negative", "planted", 0, "index", [0]), "is wrong otherwise than the manifest lists"),
        (put("negative", "sha256", "0" * 64), ", and the manifest says 0000000"),
    ],
)
def test_what_the_manifest_says(change, message):
    """VEC-002: nothing in it is taken on trust."""
    entry = entry_of()
    change(entry)
    (finding,) = found_in(bundled_files(), entry)
    assert message in finding
    assert finding.startswith(f"suite {NAME}")


def test_a_deviation_that_the_manifest_does_not_have_is_named():
    """VEC-002: of those that are written by hand; others are derived."""
    entry = entry_of("error_steps")
    name = next(iter(entry["kills"]))
    del entry["kills"][name]
    (finding,) = found_in(bundled_files(), entry, "error_steps")
    assert f"the manifest does not say where {name} differs" in finding


def one_off(key, at):
    def change(arrays):
        arrays[key].reshape(-1)[at] ^= 1

    return change


@pytest.mark.tier("full")
def test_an_intermediate_result(copied):
    directory, entry = copied("mx_blocks"), entry_of("mx_blocks")
    case = next(iter(entry["cases"]))
    entry["sha256"] = rewritten(directory / "mx_blocks.safetensors", one_off(f"{case}/xs", 40))
    (finding,) = found_in(directory, entry, "mx_blocks")
    entries = entries_of("mx_blocks", case, "xs")
    assert finding.startswith(
        f"suite mx_blocks, case {case}, field xs: 1 of {entries} entries are not"
    )
    assert "those of the exact model, the first at [1, 8]: 0x" in finding


def test_a_result(copied):
    directory, entry = copied(NAME), entry_of()
    entry["sha256"] = rewritten(directory / f"{NAME}.safetensors", one_off(f"{CASE}/{FIELD}", 2))
    exact, negative = found_in(directory, entry)
    place = f"suite {NAME}, case {CASE}, field {FIELD}: "
    wrong = f"{place}1 of {entries_of(NAME, CASE, FIELD)} entries are not those of the"
    assert exact.startswith(f"{wrong} exact model, the first")
    assert negative.startswith(f"{place}negative/{NAME}.safetensors is wrong otherwise")


def test_inputs_that_this_program_does_not_make(copied):
    """Where the results follow from them, nothing else could show it."""
    directory, entry = copied("scale_steps"), entry_of("scale_steps")

    def change(arrays):
        for array in arrays.values():
            array[:2] = array[1::-1]

    for path in (f"{name}scale_steps.safetensors" for name in ("", "negative/")):
        digest = rewritten(directory / path, change)
        (entry["negative"] if "/" in path else entry)["sha256"] = digest
    where = "suite scale_steps, case e2m1.e8m0, field block_amax"
    assert f"{where}: the inputs are not those that this program" in (
        " ".join(found_in(directory, entry, "scale_steps"))
    )


def test_cases_and_fields_that_are_not_there(copied):
    directory, entry = copied(NAME), entry_of()
    path = directory / f"{NAME}.safetensors"
    entry["sha256"] = rewritten(path, lambda arrays: arrays.pop(f"{CASE}/{FIELD}"))
    assert f"suite {NAME}, case {CASE}, field {FIELD}: it is not there" in found_in(
        directory, entry
    )
    gone = [key for key in load(path.read_bytes()) if key.startswith(f"{CASE}/")]
    entry["sha256"] = rewritten(path, lambda arrays: [arrays.pop(key) for key in gone])
    parameters = entry["cases"].pop(CASE)
    entry["kills"] = {k: at for k, at in entry["kills"].items() if at["case"] != CASE}
    assert f"suite {NAME}, case {CASE}: it is not there" in found_in(directory, entry)
    shutil.copy(bundled_files() / path.name, path)
    more = {key.replace(CASE, "more"): a for key, a in load(path.read_bytes()).items()}
    entry = entry_of()
    entry["sha256"] = rewritten(path, lambda arrays: arrays.update(more))
    entry["cases"]["more"] = parameters
    assert f"suite {NAME}, case more: this program's suite does not have it" in (
        found_in(directory, entry)
    )


def test_a_file_of_wrong_results_that_was_changed(copied):
    directory = copied(NAME)
    path = directory / "negative" / f"{NAME}.safetensors"
    digest = rewritten(path, one_off(f"{CASE}/{FIELD}", 0))
    first, second = found_in(directory, entry_of())
    assert first.startswith(f"suite {NAME}: negative/{NAME}.safetensors has the SHA-256 {digest}")
    assert second.startswith(f"suite {NAME}, case {CASE}, field {FIELD}: negative/")
    for spoil, reason in (
        (lambda: path.write_bytes(b"no such thing"), ""),
        (path.unlink, "No such file or directory"),
    ):
        spoil()
        found = check_suite(directory, NAME, entry_of(), Size())
        assert (found.verdict, found.by_exact_model) == ("unusable", ELEMENTS)
        assert f"suite {NAME}: negative/{NAME}.safetensors cannot be read ({reason}" in (
            str(*found.findings)
        )


def spoilt_digests(text):
    return text.replace('"sha256": "', '"sha256": "0', 1)


@pytest.mark.tier("full", but=["match", "mismatch"])
@pytest.mark.parametrize(
    ("change", "verdict", "messages"),
    [
        (str, "match", []),
        (lambda _: "[]", "unusable", ["(it is not JSON with a sha256 and a crc32 for each case)"]),
        (lambda _: "{", "unusable", ["it is not JSON"]),
        (spoilt_digests, "unusable", ["(the sha256 of 'bf16 rna ieee' is not of 64 digits)"]),
        (
            lambda text: re.sub('(crc32": ").{16}', r"\1", text, count=1),
            "unusable",
            ["(the crc32 of 'bf16 rna ieee' is not of 256 chunks)"],
        ),
        (lambda text: text + " ", "unusable", ["(it is written otherwise than here)"]),
        (
            lambda text: text.replace('"bf16 rna ieee"', '"bf16 rna ief"'),
            "mismatch",
            ["has the SHA-256", "'bf16 rna ieee' is not there", "'bf16 rna ief' is there, and is"],
        ),
        (
            None,
            "unusable",
            ["exhaustive.json cannot be read (No such file or directory); copy it"],
        ),
    ],
)
def test_digests_of_all_inputs(copied, change, verdict, messages):
    """VEC-014."""
    directory = copied(NAME)
    if change is None:
        (directory / DIGESTS).unlink()
    else:
        (directory / DIGESTS).write_text(change((directory / DIGESTS).read_text()))
    found = check(directory, [])
    assert found.verdict == verdict
    assert len(found.findings) == len(messages)
    for finding, message in zip(found.findings, messages, strict=True):
        assert message in str(finding)
        assert DIGESTS in str(finding)
    assert check(directory, [NAME]).verdict == "match"


def forged(directory, change):
    """Change the digests, let the manifest vouch for them, and return the findings."""
    there = exhaustive.bundled_digests()
    content = exhaustive.as_json({name: change(name, there[name]) for name in there})
    (directory / DIGESTS).write_text(content)
    suite_files.write_manifest(directory, {NAME: entry_of()}, KEPT["made_with"])
    return [str(finding) for finding in check(directory, []).findings]


def with_another_chunk(digest, chunk):
    crcs = list(digest.crc32)
    crcs[chunk] ^= 1
    return exhaustive.Digest(digest.sha256, tuple(crcs))


@pytest.mark.tier("full")
def test_digests_of_all_inputs_that_were_forged(copied, monkeypatch):
    """VEC-014: listed files are compared with the package's, and these with the engine."""
    directory, forgery = copied(NAME), "e4m3 rne satfinite"
    found = forged(directory, lambda n, d: with_another_chunk(d, 200) if n == forgery else d)
    assert f"{DIGESTS}: {forgery!r} is not as the package has it, first in chunk 200" in found[0]
    zeros = "0" * 64
    found = forged(directory, lambda n, d: exhaustive.Digest(zeros, d.crc32) if n == forgery else d)
    assert f"{forgery!r} is not as the package has it, in its SHA-256" in str(*found)
    everywhere = exhaustive.Digest(zeros, (7,) * exhaustive.CHUNKS)
    everything = dict.fromkeys(exhaustive.bundled_digests(), everywhere)
    monkeypatch.setattr(suite_checks, "bundled_digests", lambda: everything)
    (finding,) = forged(directory, lambda *_: everywhere)
    assert re.search(r" says 00000007 of chunk \d+, and the engine returns [0-9a-f]{8}$", finding)


def test_digests_of_all_inputs_are_put_into_the_manifest(copied, monkeypatch):
    """VEC-014: whoever makes the suites and whoever makes the digests, in any order."""
    directory, listed, suites = copied(NAME), KEPT["all_inputs"], {NAME: entry_of()}
    suite_files.write_manifest(directory, suites, KEPT["made_with"])
    assert suite_files.read_manifest(directory)["all_inputs"] == listed
    (directory / DIGESTS).unlink()
    suite_files.write_manifest(directory, suites, KEPT["made_with"])
    assert "all_inputs" not in suite_files.read_manifest(directory)
    shutil.copy(bundled_files() / DIGESTS, directory)
    (finding,) = check(directory, []).findings
    assert str(finding) == "'exhaustive.json' is there, and the manifest does not list it"
    kept = exhaustive.bundled_digests()
    monkeypatch.setattr(exhaustive, "expected_digest", lambda case: kept[case.name])
    released = [case for case in exhaustive.digested_cases() if case.name in kept]
    monkeypatch.setattr(exhaustive, "digested_cases", lambda: released)
    exhaustive.make(directory / DIGESTS, Workers(lambda: ThreadPoolExecutor(1)))
    assert suite_files.read_manifest(directory)["all_inputs"] == listed
    assert (directory / DIGESTS).read_bytes() == (bundled_files() / DIGESTS).read_bytes()


@pytest.mark.tier("full")
def test_a_directory(copied):
    """Suites in processes; views, and files that nothing lists; and the report."""
    directory = copied(NAME, "error_steps")
    done = []
    found = check(directory, [], done.append)
    assert found.verdict == "match"
    assert sorted(done) == [suite.suite for suite in found.suites] == [NAME, "error_steps"]
    shutil.copy(bundled_files() / "scale_steps.safetensors", directory)
    manifest = json.loads((directory / suite_files.MANIFEST).read_text())
    manifest["views"]["packed"] = "in some way"
    (directory / suite_files.MANIFEST).write_text(json.dumps(manifest))
    found = check(directory, [])
    assert found.verdict == "mismatch"
    text = list(lines(found))
    assert "the manifest is wrong about the views packed" in text
    assert "'scale_steps.safetensors' is there, and the manifest does not list it" in text
    inputs = [field["name"] for field in entry_of()["fields"] if field["role"] == "input"]
    distinct = sum(
        len(set(zip(*(case.arrays[name].tolist() for name in inputs), strict=True)))
        for case in golden.load(NAME)
    )
    assert text[0] == (
        f"{NAME}: match, {ELEMENTS:,} entries of {CASES} cases compared with the exact model, "
        f"which computed {distinct:,} inputs"
    )
    assert text[-1] == f"{directory}: mismatch (2 suites, 2 findings)"
    assert check(directory, [NAME]).verdict == "match"


def test_a_suite_of_another_name_is_held_to_what_the_manifest_says(copied):
    directory, entry = copied(NAME), entry_of()
    (directory / f"{NAME}.safetensors").rename(directory / "mine.safetensors")
    del entry["negative"]
    entry["title"] = "My own"
    assert found_in(directory, entry, "mine") == []
    entry["sha256"] = rewritten(directory / "mine.safetensors", one_off(f"{CASE}/{FIELD}", 2))
    assert len(found_in(directory, entry, "mine")) == 1
