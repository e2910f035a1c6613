"""The cards, the kinds, the origin and the links of the page that reports a verification."""

import hashlib
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from mor_docs import rule_titles
from test_page import Page, deviating, differing, made, on
from verifying import module, run

from mor_ref.addresses import own_site
from mor_ref.definitions.formats import formats
from mor_ref.golden import bundled_files
from mor_ref.operations import OPERATIONS
from mor_ref.verify.comparing.kinds import kinds_of
from mor_ref.verify.diagnosing.diagnosis_records import Explanation, Structure, SuiteDiagnosis
from mor_ref.verify.reporting import origin
from mor_ref.verify.reporting.cause_text import in_fields
from mor_ref.verify.reporting.causes import causes_of
from mor_ref.verify.reporting.page import as_html
from mor_ref.verify.reporting.paths import without_directories
from mor_ref.verify.reporting.report_files import write_reports
from mor_ref.verify.reporting.rules import address_of, as_site, rule_named
from mor_ref.verify.reporting.structure_text import structure_lines
from mor_ref.verify.reporting.suite_section import kinds_of_suite

__all__ = ["module"]  # a fixture


def whole(*names):
    return Explanation(names, ("ENC-003",), 9, 9, is_whole=True)


def causes(suites, diagnoses):
    """Return the kinds of causes, their deviations and their suites."""
    found = made([differing()], suites, diagnoses)
    return [
        (
            cause.kind,
            cause.explanation and cause.explanation.deviations,
            sorted(result.suite for result, _ in cause.suites),
        )
        for cause in causes_of(found.results, found.diagnosis.suites)
    ]


def test_a_cause_has_all_suites_that_it_explains():
    """As few causes as suffice, whichever explanation of a suite comes first."""
    diagnoses = [
        SuiteDiagnosis("a", 5, (whole("ENC-003/ties-away"), whole("ENC-003/truncated"))),
        SuiteDiagnosis("b", 6, (whole("ENC-003/truncated"),)),
        SuiteDiagnosis("c", 50, (whole("ENC-006/not-saturated"),)),
    ]
    assert causes("abc", diagnoses) == [
        ("deviation", ("ENC-006/not-saturated",), ["c"]),
        ("deviation", ("ENC-003/truncated",), ["a", "b"]),
    ]


def test_the_clearest_suite_of_a_cause_is_the_first():
    """Normative, with few fields that differ, and with a large share of wrong entries."""
    (some,) = made([differing(step=2)], "a").results
    (most,) = made([differing()], "b").results
    (both,) = made([differing(), differing(field="y")], "c").results
    (own,) = made([differing()], "d").results
    results = [replace(own, normative=False), both, some, most]
    diagnoses = [SuiteDiagnosis(suite, 5, (whole("ENC-003/ties-away"),)) for suite in "abcd"]
    (cause,) = causes_of(results, diagnoses)
    assert [result.suite for result, _ in cause.suites] == ["b", "a", "c", "d"]


def test_suites_of_one_structure_are_one_cause():
    moved = Structure(("scale",), "each entry is 0x0 (0)", 9, 9, 0)
    other = Structure(("code",), "each entry is 0x0 (0)", 9, 9, 0)
    diagnoses = [
        SuiteDiagnosis("a", 5, (), structures=(moved,)),
        SuiteDiagnosis("b", 6, (), structures=(moved,)),
        SuiteDiagnosis("c", 7, (), structures=(other,)),
        SuiteDiagnosis("d", 8, ()),
    ]
    assert causes("abcd", diagnoses) == [
        ("structure", None, ["a", "b"]),
        ("structure", None, ["c"]),
        ("unknown", None, ["d"]),
    ]


def test_four_structures_are_said_and_the_others_counted():
    structures = [Structure((name,), "each entry is 0x0 (0)", 9, 9, 0) for name in "abcdef"]
    said = [f"{name}: each entry is 0x0 (0), in all 9 entries that differ" for name in "abcdef"]
    assert list(structure_lines(structures[:4])) == said[:4]
    assert list(structure_lines(structures)) == [*said[:4], "and 2 more structures"]


def test_fields_that_a_guess_explains_are_named():
    guess = Explanation(("ENC-003/ties-away",), ("ENC-003",), 5, 9, is_whole=False)
    of_code = replace(guess, fields=("code",), of_fields=5)
    assert in_fields(guess) == ""
    assert in_fields(of_code) == ": all 5 of code"
    assert in_fields(replace(of_code, explained=7)) == ": all 5 of code, and 2 of others"


def test_one_card_is_open_and_the_rest_is_folded():
    diagnoses = [SuiteDiagnosis(suite, 5, (whole("ENC-003/ties-away"),)) for suite in "abc"]
    diagnoses.append(SuiteDiagnosis("d", 6, ()))
    page = Page(as_html(made([differing()], "abcd", diagnoses)))
    opened = [("open" in values, values["id"]) for tag, values, _ in page.found if "id" in values
              and tag == "details"]  # fmt: skip
    assert sorted(opened) == [
        (False, "cause-1"),
        (False, "suite-1"),
        (False, "suite-2"),
        (True, "cause-0"),
    ]
    assert page.texts("summary")[-1].startswith("The rules by their names")


# ---------------------------------------------------------------------- kinds

# A pair of codes for each kind, the one found first, in a format that has it.
EXAMPLES = [
    ("e4m3", 0x39, 0x38, "1 ulp above"),
    ("e4m3", 0x81, 0x01, "the other sign"),
    ("e4m3", 0x81, 0x00, "1 ulp below"),
    ("e4m3", 0xB9, 0xB8, "1 ulp below"),
    ("e4m3", 0x41, 0x38, "2 to 9 ulp above"),
    ("e4m3", 0x42, 0x38, "10 ulp or more above"),
    ("e4m3", 0x80, 0x00, "the sign of zero"),
    ("e4m3", 0x00, 0x02, "0 where another number is expected"),
    ("e4m3", 0x7F, 0x7E, "NaN where a number is expected"),
    ("e4m3", 0x7E, 0xFF, "a number where NaN is expected"),
    ("e4m3", 0x7F, 0xFF, "another NaN"),
    ("e2m1", 0x10, 0x00, "not of 4 bits"),
    ("e5m2", 0x7C, 0x7B, "infinity where a finite number is expected"),
    ("e5m2", 0xFB, 0xFC, "a finite number where infinity is expected"),
    ("e5m2", 0xFC, 0x7C, "an infinity of the other sign"),
    ("e8m0", 0x00, 0x01, "1 ulp below"),
    ("int8_mx", 0xFF, 0x00, "1 ulp below"),
    ("u32", 7, 9, "2 to 9 below"),
    ("u64", 7, 9, "other bits"),
    (None, 7, 9, "other bits"),
]


@pytest.mark.parametrize(("fmt", "found", "right", "words"), EXAMPLES)
def test_a_kind_of_each(fmt, found, right, words):
    kind = np.uint64 if fmt == "u64" else np.uint32
    arrays = np.array([found], np.int64 if fmt == "e2m1" else kind), np.array([right], kind)
    assert [(k.words, k.entries) for k in kinds_of(*arrays, fmt)] == [(words, 1)]


@pytest.mark.parametrize("fmt", ["e4m3", "e5m2", "e4m3fnuz", "e8m0", "int8_mx", "e2m1"])
def test_each_pair_of_codes_is_of_a_kind_that_its_values_have(fmt):
    """Compared with the values, which are of the catalogue."""
    count = formats[fmt].code_count
    value = [formats[fmt].value(code) for code in range(count)]
    for right in range(0, count, 5):
        others = np.array([code for code in range(count) if code != right])
        found = kinds_of(others, np.full(others.shape, right), fmt)
        assert sum(kind.entries for kind in found) == count - 1
        for kind in found:
            above = value[others[kind.place]] > value[right]
            assert (" above" in kind.words) <= above
            assert (" below" in kind.words) <= (not above)
            assert ("NaN" in kind.words) == bool(
                np.isnan([value[others[kind.place]], value[right]]).any()
            )


@pytest.mark.tier("full")
def test_a_suite_has_each_kind_with_an_entry_of_the_case_with_the_most():
    found = on(deviating("ENC-003/ties-away"), "quantize_steps").results[0]
    kinds = kinds_of_suite(found)
    assert kinds[0].difference.suite_field == found.first_mismatching_field.name
    for kind in kinds:
        ones = [
            (one.count, d.case)
            for d in found.differences
            for one in d.kinds
            if (d.suite_field, one.words) == (kind.difference.suite_field, kind.words)
        ]
        assert kind.entries == sum(count for count, _ in ones)
        assert kind.difference.case == max(ones, key=lambda one: one[0])[1]


# ---------------------------------------------------------------------- rules


def test_the_rules_of_reports_are_those_of_the_specification():
    """If not: `PYTHONPATH=docs python -m mor_docs.rule_titles` writes them."""
    assert rule_titles.FILE.read_text("utf-8") == rule_titles.titles()


@pytest.mark.tier("full")
def test_rules_lead_to_the_site_or_to_their_titles():
    found = on(deviating("ENC-003/ties-away"), "decisions", "quantize_steps")
    plain = Page(as_html(found))
    assert "#rule-ENC-003" in plain.links
    named = "ENC-003 Roundings (chapter encoding; spec/ENC-003 on the site)"
    assert named in " ".join(plain.texts("dl", "rules"))
    page = Page(as_html(found, site="https://example.org/docs/"))
    assert "https://example.org/docs/spec/ENC-003" in page.links
    assert "https://example.org/docs/causes/ENC-003/ties-away" in page.links
    assert "(causes/ENC-003/ties-away on the site)" in " ".join(plain.texts("dl", "meanings"))
    assert not [link for link in page.links if link.startswith("#rule")]
    assert rule_named("MINE") is None
    assert address_of(rule_named("SCL-002"), "./docs") == "./docs/spec/SCL-002/index.html"


def test_the_address_of_a_site(monkeypatch):
    assert as_site("./docs") == "./docs"
    for wrong in ("javascript:alert(1)", "docs", "", "https://a b"):
        with pytest.raises(ValueError, match="give its address, such as https://example"):
            as_site(wrong)
    urls = ["Source, https://example.org/s", "Documentation, https://example.org/d"]
    fields = SimpleNamespace(get_all=lambda _: urls)
    monkeypatch.setattr("mor_ref.addresses.metadata.metadata", lambda _: fields)
    assert own_site() == as_site(None) == "https://example.org/d"
    monkeypatch.setattr(fields, "get_all", lambda _: None)
    assert as_site(None) is None


# ---------------------------------------------------------------------- origin


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("dir:/home/ann/my results/out", "dir:…/my results/out"),
        ("exec:/opt/a/run --t=/opt/b/t.bin 'x/y'", "exec:…/run --t=…/t.bin 'x/y'"),
        (r"exec:C:\Users\ann\run.exe", r"exec:…\run.exe"),
        ("e4m3/gam of 1/2 and https://a.b/c/d, 3 / 4 / 5", None),
        (f"no file {Path.home()}/secret", "no file …/secret"),
        (f"in {Path.cwd()}: a", "in …: a"),
    ],
)
def test_directories_are_left_out(text, shown):
    assert without_directories(text) == (shown or text)


def test_a_directory_inside_of_a_home_is_left_out_whole(tmp_path, monkeypatch):
    """A name of a directory with a space in it, too."""
    here = tmp_path / "by ann"
    here.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(here)
    assert without_directories(f"no file {here}/secret") == "no file …/secret"


def digest(data):
    return hashlib.sha256(data).hexdigest()


@pytest.mark.tier("full")
def test_the_digest_of_a_candidate(tmp_path, monkeypatch):
    """Of its module, of the files of its command, of its results, or the version of a library."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "made_up.py").write_bytes(b"x = 1")
    found = origin.origin_here("made_up:run", bundled_files())
    assert found.candidate == f"SHA-256 {digest(b'x = 1')} of made_up.py"
    manifest = (bundled_files() / "MANIFEST.json").read_bytes()
    assert found.vectors == f"SHA-256 {digest(manifest)} of MANIFEST.json"
    (tmp_path / "table.bin").write_bytes(b"7")
    both = f"{digest(b'x = 1')}{digest(b'7')}".encode()
    for name in (f"exec:{tmp_path}/made_up.py {tmp_path}/table.bin -v", f"dir:{tmp_path}"):
        said = origin.origin_here(name, bundled_files()).candidate
        assert said == f"SHA-256 {digest(both)} of made_up.py, table.bin"
    for name in ("numba", "cuda-ptx:sm_90"):
        own = origin.origin_here(name, bundled_files()).candidate
        assert re.search(r"of [\d,]{3,} files$", own)
    assert origin.origin_here("no_such:run", bundled_files()).candidate == "no file of it was found"
    assert origin.origin_here("peer:numpy", bundled_files()).candidate == f"numpy {np.__version__}"


def test_files_of_a_candidate_are_named_up_to_four(tmp_path):
    for name in "dcba":
        (tmp_path / name).write_bytes(name.encode())
    said = origin.origin_here(f"dir:{tmp_path}", bundled_files()).candidate
    all_of_them = "".join(digest(name.encode()) for name in "abcd").encode()
    assert said == f"SHA-256 {digest(all_of_them)} of a, b, c, d"
    (tmp_path / "e").write_bytes(b"e")
    said = origin.origin_here(f"dir:{tmp_path}", bundled_files()).candidate
    assert said.endswith(" of 5 files")


def test_a_library_that_is_not_installed_has_no_version(monkeypatch):
    monkeypatch.setattr(origin.metadata, "packages_distributions", dict)
    found = origin.origin_here("peer:no-such-library", bundled_files())
    assert found.candidate == "no-such-library, of an unknown version"


def test_a_date_that_is_no_number_is_not_taken(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d UTC", origin._date())


def test_no_name_of_a_person_or_a_machine(monkeypatch):
    """But the processor, the system and its digits, and the GPU that is in use."""
    monkeypatch.setattr(origin.platform, "release", lambda: "6.1.0-anns-kernel")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    properties = {"name": b"A GPU"}
    runtime = SimpleNamespace(getDeviceProperties=lambda _: properties)
    cuda = SimpleNamespace(is_available=lambda: True, runtime=runtime)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))
    found = origin.origin_here("numba", bundled_files())
    assert found.date == "1970-01-02 00:00 UTC"
    assert f"{origin.platform.system()} 6.1.0, A GPU" in found.machine
    assert origin.platform.machine() in found.machine
    assert "ann" not in found.machine
    assert origin.platform.node() not in found.machine


def test_xml_has_the_origin_with_the_verdict(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    found = made([differing()], "a", [])
    write_reports(found, [tmp_path / "a.xml"])
    root = ET.parse(tmp_path / "a.xml").getroot()[0]  # noqa: S314  # made a line before
    said = {one.get("name"): one.get("value") for one in root.findall("properties/property")}
    assert said["verdict"] == found.verdict
    assert said["made.date"] == "1970-01-02 00:00 UTC"
    assert said["made.software"].startswith("mor_ref ")


@pytest.mark.tier("full")
def test_the_command_leaves_paths_out(module):
    """Of the candidate, of its failures and of the vectors."""
    command = ("--suite", "decisions", "--site", "./docs", "--report", "r.html")
    late = ("--timeout", "1e6")  # a machine may be as busy as it is
    done = run(module, f"exec:{sys.executable} {module}/candidate.py", *command, *late)
    page = (module / "r.html").read_text("utf-8")
    assert done.returncode == 3
    assert "candidate.py" in page
    for private in (str(module), str(Path(sys.executable).parent), str(bundled_files().parent)):
        assert private not in page
    wrong = run(module, "numba", "--suite", "decisions", "--site", "docs")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "site is 'docs'; give its address" in wrong.stderr


@pytest.mark.tier("full")
def test_a_report_on_own_tensors(module):
    """It names their file, without its directory and without a digest."""
    np.save(module / "x.npy", np.linspace(-3, 3, 64, dtype=np.float32).reshape(2, 32))
    command = ("--recipe", "mxfp8:rceil", "--report", "r.html")
    done = run(module, "numba", "--inputs", str(module / "x.npy"), *command)
    assert done.returncode == 0, done.stderr
    page = Page((module / "r.html").read_text("utf-8"))
    assert "Tensors …/x.npy Machine" in page.texts("footer")[0]


@pytest.mark.tier("full")
def test_a_kernel_with_three_mistakes_has_three_cards():
    """Of real mistakes: a rounded reciprocal, ties away from zero, and scales in other places."""

    def three(operation, parameters, inputs):
        if operation == "quantize_element":
            return deviating("ENC-003/ties-away")(operation, parameters, inputs)
        if operation == "scale":
            return deviating("SCL-002/quotient-by-reciprocal")(operation, parameters, inputs)
        scale = OPERATIONS[operation].engine(parameters, inputs)["scale"]
        return {"scale": np.concatenate([scale[1:], scale[-1:]])}

    found = on(three, "quantize_steps", "scale_steps", "mx_blocks")
    page = Page(as_html(found))
    assert {text.partition(":")[0] for text in page.texts("h3")[:3]} == {
        "ENC-003/ties-away",
        "SCL-002/quotient-by-reciprocal",
        "scale",
    }
    wrong = sum(result.differing for result in found.results)
    assert page.texts("p", "lead") == [f"{wrong:,} of {wrong:,} mismatches are explained (100.0 %)"]
