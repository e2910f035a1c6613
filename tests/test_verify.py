"""Verifying candidates: what matches, what differs and where, and what cannot be run."""

import json
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from safetensors.numpy import save_file

import mor_ref
from mor_ref import golden
from mor_ref.deviations import DEVIATIONS, applied
from mor_ref.golden import expected, kept_files
from mor_ref.golden.model.views import seen
from mor_ref.golden.store.container import read_manifest
from mor_ref.verify import assert_bit_exact
from mor_ref.verify.candidates.candidate import Engine, PythonFunction, candidate_named
from mor_ref.verify.candidates.engine import OPERATIONS, bits32
from mor_ref.verify.reporting import files
from mor_ref.verify.reporting import text as report
from mor_ref.verify.running.run import verify

MODULE = """
import numpy as np
from mor_ref.verify.candidates.engine import OPERATIONS

def right(operation, parameters, inputs):
    return OPERATIONS[operation](parameters, inputs) if operation == "decide" else None

def wrong(operation, parameters, inputs):
    found = right(operation, parameters, inputs)
    if found is not None:
        found["accepted"] = found["accepted"].copy()
        found["accepted"][3] ^= 1
    return found

def failing(operation, parameters, inputs):
    raise ArithmeticError("no units left")

def breaking(operation, parameters, inputs):
    if parameters.get("metric") == "not_worse_than":
        raise ArithmeticError("no units\\nleft \\udc80" + 400 * "!")
    return OPERATIONS[operation](parameters, inputs)

def breaking_wrong(operation, parameters, inputs):
    found = breaking(operation, parameters, inputs)
    found["accepted"] = found["accepted"] ^ 1
    return found

def listing(operation, parameters, inputs):
    return [1, 2]

number = 3
"""
MANIFEST = read_manifest(kept_files())["suites"]
MX = len(MANIFEST["mx"]["cases"])
DECIDING, QUANTIZING = ({*MANIFEST[name]["rules"]} for name in ("decisions", "mx"))


def entries_of(suite, field):
    return sum(case.arrays[field].size for case in golden.load(suite))


def run(where, *arguments):
    main = "import sys; from mor_ref.cli import main; sys.argv[0] = 'mor-ref'; main()"
    command = [sys.executable, "-c", main, "verify", *map(str, arguments)]
    return subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)


@pytest.fixture
def module(tmp_path):
    (tmp_path / "candidate.py").write_text(MODULE)
    return tmp_path


def failure_of(candidate, *names):
    """What is said of a candidate that fails."""
    found = verify(candidate, kept_files(), list(names))
    assert found.verdict == "failed"
    return found.failures[0].message


def on(change, name="decisions", operation="decide", *, must_be_complete=False):
    """A suite on a candidate that changes what the engine gives."""

    def function(asked, parameters, inputs):
        assert asked == operation
        return change(dict(OPERATIONS[asked](parameters, inputs)))

    candidate = PythonFunction("changed", function)
    return verify(candidate, kept_files(), [name], must_be_complete=must_be_complete)


def test_a_wrong_bit_is_found_with_its_place_its_inputs_and_the_rules():
    """CON-001."""

    def flipped(found):
        found["y"] = found["y"].copy()
        found["y"][5] ^= 1
        return found

    found = on(flipped, "quantize_steps", "quantize_element")
    (result,) = found.results
    assert (found.verdict, result.verdict, result.differing) == ("mismatch", "mismatch", 5)
    case = golden.load("quantize_steps")[0]
    difference = result.differences[0]
    assert (difference.case, difference.field, difference.format) == ("e4m3", "y", "f32")
    (entry,) = difference.entries
    assert entry.index == (5,)
    assert entry.expected == int(case.arrays["y"][5]) == entry.actual ^ 1
    assert [(i.what, i.bits, i.format) for i in entry.inputs] == [
        (f"{name}[5]", int(case.arrays[name][5]), "f32") for name in ("x", "scale")
    ]
    text = "\n".join(report.lines(found))
    assert f"1 of {case.arrays['y'].size} differ, the first at [5]: 0x" in text
    assert "1 ulp" in text
    assert "  first mismatching field: y (rules QNT-002)\n" in text
    assert "not bit-exact" not in text
    assert "conformance: not conformant" in text


def test_codes_are_shown_with_their_values():
    def flipped(found):
        found["code"] = found["code"] ^ np.uint8(1)
        return found

    result = on(flipped, "quantize_steps", "quantize_element").results[0]
    assert {d.format for d in result.differences} == {"e4m3", "e5m2", "e2m1", "e2m3", "e3m2"}
    assert "0x01 (0.001953125) where 0x00 (0) is expected" in str(result.differences[0])
    assert len(result.differences[0].entries) == 8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: {"accepted": f["accepted"].astype(float)}, "has dtype float64; give bit patter"),
        (lambda f: {"accepted": f["accepted"][1:]}, "has shape ("),
        (lambda f: {"accepted": f["accepted"] - np.int16(3)}, "holds -3; give bit patterns as un"),
        (lambda f: {"accepted": f["accepted"] > 0}, "has dtype bool"),
    ],
)
def test_what_cannot_be_compared_is_a_mismatch(change, message):
    """A float that is equal would hide -0 and NaN."""
    found = on(change)
    assert found.verdict == "mismatch"
    assert message in str(found.results[0].differences[0])
    assert found.diagnosis.suites == ()
    assert "explained" not in "\n".join(report.lines(found))


def whole_scales(wrong):
    """The global scales as `quantize_nvfp4` returns them: of shape ()."""

    def function(_, parameters, inputs):
        if parameters["source"] != "f32":
            return None
        x = inputs["x"].view(np.float32)
        found = mor_ref.quantize_nvfp4(x, profile="torchao", tile=tuple(parameters["tile"]))
        assert found.global_encode_scale.shape == ()
        given = bits32(found.global_encode_scale)
        return {
            "global_encode_scale": given.reshape(()) ^ np.uint32(wrong),
            "global_decode_scale": found.global_decode_scale.view(np.uint32)[()],
        }

    return PythonFunction("whole_scales", function)


def test_a_number_without_a_shape_is_one_entry(tmp_path):
    found = verify(whole_scales(0), kept_files(), ["nvfp4_torchao"])
    assert found.verdict == "match"
    assert [(f.name, f.compared > 5) for f in found.results[0].fields] == [
        ("global_encode_scale", True),
        ("global_decode_scale", True),
    ]
    found = verify(whole_scales(1), kept_files(), ["nvfp4_torchao"])
    difference = found.results[0].differences[0]
    assert (difference.problem, difference.entries[0].index) == (None, (0,))
    assert difference.entries[0].actual == difference.entries[0].expected ^ 1
    case = next(c for c in golden.load("quantize") if c.arrays["scale"].shape == (1, 1))
    results = {f"{case.name}/scale": case.arrays["scale"].reshape(())}
    results |= {f"{case.name}/scale@reciprocal": seen(results.popitem()[1], ["reciprocal"], {})}
    save_file(results, tmp_path / "quantize.safetensors")
    found = verify(candidate_named(f"dir:{tmp_path}"), kept_files(), ["quantize"])
    assert (found.verdict, found.results[0].compared) == ("match", 1)


def test_a_number_without_a_shape_is_not_many_entries():
    found = on(lambda found: {"accepted": found["accepted"][0]})
    assert "has shape (), and (" in str(found.results[0].differences[0])


def test_an_operation_without_an_answer_is_not_run():
    found = verify(PythonFunction("none", lambda *_: None), kept_files(), ["decisions"])
    assert found.verdict == "not run"
    assert "not run, the candidate has no answer" in next(report.lines(found))


def test_candidates_see_no_expected_values():
    seen = []

    def function(*arguments):
        seen.append(set(arguments[2]))
        arguments[2]["sum"] = None

    verify(PythonFunction("curious", function), kept_files(), ["decisions"])
    given = {"sum", "nonzero", "nonfinite", "limit", "yardstick_sum", "amax", "amin"}
    assert all(names == given for names in seen)


def test_a_folder_of_results(tmp_path):
    results = {}
    for case in golden.load("decisions"):
        results[f"{case.name}/accepted"] = case.arrays["accepted"].copy()
    save_file(results, tmp_path / "decisions.safetensors")
    folder = candidate_named(f"dir:{tmp_path}")
    assert verify(folder, kept_files(), ["decisions", "mx"]).verdict == "match"
    results["not_worse_than/accepted"][2] ^= 1
    save_file(results, tmp_path / "decisions.safetensors")
    found = verify(candidate_named(f"dir:{tmp_path}"), kept_files(), ["decisions"])
    assert [str(d.case) for d in found.results[0].differences] == ["not_worse_than"]
    (tmp_path / "mx.safetensors").write_bytes(b"nothing")
    said = failure_of(candidate_named(f"dir:{tmp_path}"), "mx")
    assert "mx.safetensors is no safetensors file" in said
    header = b'{"a/code": {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [0, 1]}}'
    small_floats = len(header).to_bytes(8, "little") + header + b"\x38"
    (tmp_path / "mx.safetensors").write_bytes(small_floats)
    said = failure_of(candidate_named(f"dir:{tmp_path}"), "mx")
    assert re.search(r"no safetensors file of unsigned integers \(.*; save", said)


@pytest.mark.parametrize(
    ("candidate", "status", "message"),
    [
        ("candidate:right", 0, "decisions: match, "),
        ("candidate:wrong", 1, "field accepted: 1 of "),
        ("candidate:failing", 3, "candidate:failing raised ArithmeticError on case 'mean_relative"),
        ("candidate:listing", 3, "returned a list for case 'mean_relative_error' of suite"),
        ("candidate:number", 3, "candidate:number is of type int, which cannot be called"),
        ("candidate:nothing", 3, "candidate:nothing cannot be imported: module 'candidate' has no"),
        ("nowhere:nothing", 3, "nowhere:nothing cannot be imported: No module named 'nowhere'"),
        ("dir:nowhere", 3, "nowhere is no folder; give one with SUITE.safetensors files"),
        (
            "gpu",
            2,
            "candidate is 'gpu', which is not known; give numba, cuda, cuda-host, module:fu",
        ),
    ],
)
def test_exit_status(module, candidate, status, message):
    done = run(module, candidate, "--suite", "decisions")
    assert done.returncode == status, done.stderr
    assert message in (done.stdout + done.stderr).replace("\n", " ").replace("  ", " ")
    assert "Traceback" not in done.stderr


def test_reports(module):
    assert (
        run(module, "candidate:wrong", "--suite", "decisions", "--report", "r.json").returncode == 1
    )
    record = json.loads((module / "r.json").read_text())
    assert record["verdict"] == "mismatch"
    assert record["results"][0]["differences"][0]["entries"][0]["index"] == [3]
    status = run(
        module, "candidate:right", "--suite", "decisions", "--suite", "mx", "--report", "r.xml"
    )
    assert status.returncode == 0
    root = ET.parse(module / "r.xml").getroot()  # noqa: S314  # written a line before
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("2", "0", "1")
    hostile = PythonFunction("a\x00\x1b\ud800<b>", lambda *_: {"accepted": np.zeros(3, np.uint8)})
    text = files.as_junit(verify(hostile, kept_files(), ["decisions"]))
    assert "a???<b>" in ET.fromstring(text).get("name")  # noqa: S314  # made a line before
    wrong = run(module, "candidate:right", "--report", "r.pdf")
    assert wrong.returncode == 2
    assert "give a file that ends in .json, .xml or .html" in wrong.stderr


DECISIONS = ("--suite", "decisions")


@pytest.mark.parametrize(
    ("candidate", "said"),
    [
        ("nowhere:nothing", "nowhere:nothing cannot be imported: No module named 'nowhere'"),
        ("broken:run", "broken:run cannot be imported: no\\udc80 such thing"),
        ("dir:nowhere", "nowhere is no folder; give one with SUITE.safetensors files"),
        ("candidate:number", "candidate:number is of type int, which cannot be called"),
    ],
)
def test_a_candidate_that_cannot_be_opened_is_reported(module, candidate, said):
    """In place of what an earlier run has found."""
    (module / "broken.py").write_text("raise OSError('no\\udc80\\nsuch thing')")
    for kind in ("json", "xml", "html"):
        assert run(module, "candidate:right", *DECISIONS, "--report", f"r.{kind}").returncode == 0
        done = run(module, candidate, *DECISIONS, "--report", f"r.{kind}")
        assert (done.returncode, done.stderr.splitlines()[-1]) == (3, f"mor-ref: {said}")
    assert done.stdout.splitlines() == [
        "not asked: decisions",
        "conformance: nothing was compared",
        f"{candidate}: failed (0 match, 0 mismatch, 1 not run)",
    ]
    record = json.loads((module / "r.json").read_text())
    assert (record["verdict"], record["complete"]) == ("failed", False)
    assert (record["results"], record["not_asked"]) == ([], ["decisions"])
    assert record["not_opened"] == {"case": None, "message": said}
    root = ET.parse(module / "r.xml").getroot()  # noqa: S314  # written a line before
    counts = {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "2", "failures": "0", "errors": "1", "skipped": "1"}
    assert root.find("testcase/error").get("message") == said
    page = (module / "r.html").read_text(encoding="utf-8")
    assert "✗ failed" in page
    assert "Not asked: <code>decisions</code>" in page


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        ("nowhere/r.json", "No such file or directory"),
        ("candidate.py/r.json", "Not a directory"),
        ("folder.json", "Is a directory"),
        ("/proc/r.xml", "No such file or directory"),
        (f"{'x' * 300}.html", "File name too long"),
    ],
)
def test_a_report_that_cannot_be_written_is_refused_before_anything_runs(module, report, reason):
    (module / "folder.json").mkdir()
    done = run(module, "candidate:failing", *DECISIONS, "--report", report)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"report is '{report}', which cannot be written ({reason}); give a" in done.stderr
    assert len(list(module.iterdir())) == 2


def test_no_report_of_another_run_is_left(module):
    """Whatever ends a run: here the candidate, by the system's own exit."""
    (module / "leaving.py").write_text("import os\ndef run(*_):\n    os._exit(0)\n")
    assert run(module, "candidate:right", *DECISIONS, "--report", "r.json").returncode == 0
    done = run(module, "leaving:run", *DECISIONS, "--report", "r.json")
    assert (done.returncode, done.stdout) == (0, "")  # as README says of native code
    assert not (module / "r.json").exists()


def in_part(found):
    return {"code": found["code"]}


def misspelt(found):
    return found | {"cod": found["code"]}


def of_some_cases(found):
    return found if len(found["y"]) > 3000 else None


def without_a_field_in_some(found):
    return found if len(found["y"]) > 3000 else in_part(found)


@pytest.mark.parametrize(
    ("change", "plain", "strict"),
    [
        (dict, "match", "match"),
        (in_part, "match", "incomplete"),
        (misspelt, "match", "incomplete"),
        (of_some_cases, "match", "incomplete"),
        (without_a_field_in_some, "mismatch", "mismatch"),
        (lambda _: None, "not run", "incomplete"),
        (lambda found: found | {"x": None}, "match", "match"),
    ],
)
def test_answers_in_part(change, plain, strict):
    """They are incomplete in any case; whether that counts is asked for."""
    for must_be_complete, verdict in ((False, plain), (True, strict)):
        found = on(change, "quantize_steps", "quantize_element", must_be_complete=must_be_complete)
        is_complete = change is dict or strict == "match"
        assert (found.verdict, found.is_complete) == (verdict, is_complete)
        assert found.results[0].verdict == verdict
        record = json.loads(files.as_json(found))
        assert (record["complete"], record["results"][0]["complete"]) == (is_complete,) * 2


def test_complete_on_the_command_line(module):
    """A suite that is incomplete is a failure, also beside one that matches."""
    suites = (*DECISIONS, "--suite", "mx")
    for kind in ("json", "xml", "html"):
        done = run(module, "candidate:right", *suites, "--complete", "--report", f"r.{kind}")
        assert done.returncode == 1
    assert done.stdout.splitlines() == [
        f"decisions: match, {entries_of('decisions', 'accepted'):,} entries of 5 cases",
        "mx: incomplete, the candidate has no answer",
        (
            f"conformance: bit-exact in what was given: 1 of 5 fields, 5 of {5 + MX} cases, "
            f"{len(DECIDING)} of {len(DECIDING | QUANTIZING)} rules in full, 1 of 2 suites "
            f"({len(MANIFEST)} are there); the rest was not shown"
        ),
        "candidate:right: incomplete (1 match, 0 mismatch, 0 not run, 1 incomplete)",
    ]
    record = json.loads((module / "r.json").read_text())
    assert (record["verdict"], record["complete"]) == ("incomplete", False)
    assert [entry["complete"] for entry in record["results"]] == [True, False]
    root = ET.parse(module / "r.xml").getroot()  # noqa: S314  # written a line before
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("2", "1", "0")
    assert root.find("testcase/failure").get("message") == "the answers are incomplete"
    page = (module / "r.html").read_text(encoding="utf-8")
    assert '<span class="badge incomplete">✗ incomplete</span>' in page
    done = run(module, "candidate:right", *DECISIONS, *DECISIONS, "--complete")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].endswith("match (1 match, 0 mismatch, 0 not run)")


def test_cases_that_were_not_answered_are_named():
    """Where they are asked for: the first of them, and how many more there are."""

    def one_format(operation, parameters, inputs):
        is_mine = parameters["format"] == "e4m3"
        return OPERATIONS[operation](parameters, inputs) if is_mine else None

    candidate = PythonFunction("one format", one_format)
    names = [case.name for case in golden.load("encode")]
    mine = [name for name in names if not name.startswith("e4m3.")]
    found = verify(candidate, kept_files(), ["encode"], must_be_complete=True)
    left = f"  not answered: {', '.join(mine[:10])} and {len(mine) - 10} more"
    assert list(report.lines(found))[1] == left
    assert found.results[0].not_answered == tuple(mine)
    found = verify(candidate, kept_files(), ["encode"])
    assert "not answered" not in "\n".join(report.lines(found))


def test_how_much_differs_is_said_of_how_much():
    """And what cannot be compared is counted apart."""
    first = golden.load("mx_blocks")[0].name

    def wrong(change):
        def function(operation, parameters, inputs):
            found = OPERATIONS[operation](parameters, inputs)
            name = f"{parameters['format']}.{parameters['scale_rule']}"
            return found | change(found["code"]) if name == first else None

        found = verify(PythonFunction("wrong", function), kept_files(), ["mx_blocks"])
        return next(report.lines(found)), found.results[0].compared

    line, compared = wrong(lambda code: {"code": code ^ np.uint8(1)})
    size = golden.load("mx_blocks")[0].arrays["code"].size
    cases = len(golden.load("mx_blocks"))
    assert line == (
        f"mx_blocks: mismatch, {size:,} of {compared:,} entries differ, in 1 of 1 case compared; "
        f"the suite has {cases}"
    )
    line, _ = wrong(lambda code: {"code": code.astype(float)})
    assert line == (
        "mx_blocks: mismatch, 0 entries differ and 1 field of a case cannot be compared, "
        f"in 1 of 1 case compared; the suite has {cases}"
    )


def test_what_cannot_be_compared_is_not_counted_as_differing():
    """A field of another shape in all cases, and one that is missing or of floats in some."""

    def wrong(operation, parameters, inputs):
        found = OPERATIONS[operation](parameters, inputs)
        found |= {"scale": found["scale"][:-1], "y": ~found["y"]}
        match parameters["format"], parameters["scale_rule"]:
            case "e4m3", "floor":
                del found["y"]
            case "e4m3", "ceil":
                found["code"] = found["code"].astype(float)
        return found

    cases = golden.load("mx_blocks")
    there = {case.name: case.arrays for case in cases}
    found = verify(PythonFunction("wrong", wrong), kept_files(), ["mx_blocks"])
    (result,) = found.results
    off = sum(a["y"].size for name, a in there.items() if name != "e4m3.floor")
    codes = sum(a["code"].size for name, a in there.items() if name != "e4m3.ceil")
    fields = {field.name: field for field in result.fields}
    assert {name: (f.compared, f.differing, f.not_comparable) for name, f in fields.items()} == {
        "scale": (0, 0, len(cases)), "code": (codes, 0, 1), "y": (off, off, 1),
    }  # fmt: skip
    assert (result.compared, result.differing) == (codes + off, off)
    assert result.stage is fields["scale"]
    said = f"{off:,} entries differ and {len(cases) + 2} fields of cases cannot be compared"
    lines = list(report.lines(found))
    assert lines[0] == f"mx_blocks: mismatch, {said}, in {len(cases)} of {len(cases)} cases"
    assert lines[2:5] == [
        f"  scale: cannot be compared in {len(cases)} cases",
        f"  code: 0 of {codes:,} differ; cannot be compared in 1 case",
        f"  y: {off:,} of {off:,} differ; cannot be compared in 1 case",
    ]
    root = ET.fromstring(files.as_junit(found))  # noqa: S314  # made a line before
    assert root.find("testcase/failure").get("message") == said
    (record,) = json.loads(files.as_json(found))["results"]
    counts = [difference["count"] for difference in record["differences"] if difference["problem"]]
    assert counts == [0] * (len(cases) + 2)


def test_what_cannot_be_compared_leaves_the_rest_named():
    """Fields and cases that were left out, although nothing that was given could be compared."""

    def floats(operation, parameters, inputs):
        found = OPERATIONS[operation](parameters, inputs)
        is_mine = (parameters["format"], parameters["scale_rule"]) == ("e4m3", "floor")
        return {"code": found["code"].astype(float)} if is_mine else None

    found = verify(
        PythonFunction("floats", floats), kept_files(), ["mx_blocks"], must_be_complete=True
    )
    lines = list(report.lines(found))
    assert lines[1].startswith("  not answered: ")
    assert lines[2] == "  not given: scale, xs, y"


def test_what_explains_one_suite_is_said_once():
    def wrong(operation, parameters, inputs):
        with applied(DEVIATIONS["ties_away"]):
            return expected.OPERATIONS[operation].function(parameters, inputs)

    for suites, times in ((["quantize_steps"], 1), (["quantize_steps", "quantize_blocks"], 3)):
        found = verify(PythonFunction("wrong", wrong), kept_files(), suites)
        assert "\n".join(report.lines(found)).count("explained by `ties_away`") == times


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("kern.py:run", "give module:function, without .py, in the folder of the module: kern:run"),
        ("./kern.py:run", "candidate is './kern.py:run'; give module:function, without .py, in"),
        ("../a/kern:run", "in the folder of the module: kern:run"),
        ("kern.py", "in the folder of the module: kern:FUNCTION"),
        ("kern", "candidate is 'kern', a module; give kern:FUNCTION"),
        ("kern2", "candidate is 'kern2', which is not known; give numba, cuda"),
    ],
)
def test_a_file_is_no_name_of_a_module(tmp_path, monkeypatch, name, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kern.py").write_text("run = None\n")
    with pytest.raises(ValueError, match=re.escape(message)):
        candidate_named(name)


def test_an_answer_to_other_inputs_is_refused(tmp_path):
    """Who gives an input back gives it as it was."""

    def repeating(change):
        def function(asked, parameters, inputs):
            return {**OPERATIONS[asked](parameters, inputs), "x": change(inputs["x"])}

        return PythonFunction("repeating", function)

    names = ["quantize_steps"]
    assert verify(repeating(np.copy), kept_files(), names).verdict == "match"
    for change in (lambda x: x ^ np.uint32(1), lambda x: x[:-1], lambda x: x.view(np.float32)):
        said = failure_of(repeating(change), *names)
        assert "repeating, case 'e4m3' of quantize_steps: the answer gives 'x', which goes in" in (
            said
        )
    case = golden.load("quantize_steps")[0]
    arrays = {f"{case.name}/{name}": array for name, array in case.arrays.items()}
    save_file(arrays, tmp_path / "quantize_steps.safetensors")
    folder = candidate_named(f"dir:{tmp_path}")
    assert verify(folder, kept_files(), names).verdict == "match"
    arrays[f"{case.name}/x"] = case.arrays["x"][::-1].copy()
    save_file(arrays, tmp_path / "quantize_steps.safetensors")
    assert "gives 'x', which goes in, otherwise than" in (
        failure_of(candidate_named(f"dir:{tmp_path}"), *names)
    )


def test_a_time_that_is_none_is_refused_for_every_candidate():
    for name in ("numba", "dir:nowhere", "candidate:right", "exec:true"):
        for seconds in (0, -1, float("nan"), 1e7):
            with pytest.raises(ValueError, match=f"^timeout is {seconds}; give a number of sec"):
                candidate_named(name, seconds)


def test_one_of_a_thing_is_one():
    found = on(lambda f: {"u": f["u"] ^ (np.arange(len(f["u"])) == 3)}, "error_steps", "error_term")
    root = ET.fromstring(files.as_junit(found))  # noqa: S314  # made a line before
    assert root.find("testcase/failure").get("message") == "1 entry differs"
    entries = entries_of("error_steps", "u")
    assert next(report.lines(found)).endswith(f" 1 of {entries:,} entries differs, in 1 of 1 case")


def test_what_was_compared_beside_a_failure_is_reported(module):
    """PRO-010, for functions as well: in all reports, and never as a match.

    A case that raises ends no other case and no other suite.
    """
    suites = ("--suite", "decisions", "--suite", "error_steps")
    for kind in ("json", "xml", "html"):
        done = run(module, "candidate:breaking", *suites, "--report", f"r.{kind}")
        assert done.returncode == 3
    said = (
        "candidate:breaking raised ArithmeticError on case 'not_worse_than' of suite 'decisions': "
        "no units left \\udc80!!!"
    )
    assert done.stderr.splitlines()[-1].startswith(f"mor-ref: {said}")
    assert len(done.stderr.splitlines()[-1]) < 500
    others = [case for case in golden.load("decisions") if case.name != "not_worse_than"]
    lines, size = done.stdout.splitlines(), sum(case.arrays["accepted"].size for case in others)
    assert lines[0] == f"decisions: failed, {size:,} entries of 4 of 5 cases"
    assert lines[1].startswith(f"  it failed: {said}")
    assert lines[2:] == [
        f"error_steps: match, {3 * entries_of('error_steps', 'u'):,} entries of 1 case",
        (
            "conformance: bit-exact in what was given: 4 fields, 5 of 6 cases, "
            f"1 of {len(DECIDING) + 1} rules in full, 2 suites ({len(MANIFEST)} are there); "
            "the rest was not shown"
        ),
        "candidate:breaking: failed (1 match, 0 mismatch, 0 not run, 1 failed)",
    ]
    record = json.loads((module / "r.json").read_text())
    assert (record["verdict"], record["not_asked"]) == ("failed", [])
    assert [result["verdict"] for result in record["results"]] == ["failed", "match"]
    (failure,) = record["results"][0]["failures"]
    assert failure["case"] == "not_worse_than"
    assert failure["message"].startswith(said)
    root = ET.parse(module / "r.xml").getroot()  # noqa: S314  # written a line before
    counts = {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "2", "failures": "0", "errors": "1", "skipped": "0"}
    assert root.find("testcase/error").get("message").startswith(said)
    page = (module / "r.html").read_text(encoding="utf-8")
    assert "✗ failed" in page
    assert "no units left" in page


def test_all_cases_that_failed_are_named():
    """The first with what was said, and the others by name."""

    def raising(operation, parameters, inputs):
        if operation == "decide":
            raise ArithmeticError
        return OPERATIONS[operation](parameters, inputs)

    found = verify(PythonFunction("raising", raising), kept_files(), ["decisions", "error_steps"])
    first, *others = (case.name for case in golden.load("decisions"))
    lines = list(report.lines(found))
    assert lines[0] == "decisions: failed, 0 entries of 0 of 5 cases"
    assert f"raising raised ArithmeticError on case '{first}' of suite 'decisions'" in lines[1]
    assert lines[2] == f"  and in 4 other cases: {', '.join(others)}"
    assert [result.verdict for result in found.results] == ["failed", "match"]
    assert [failure.case for failure in found.failures] == [first, *others]


def test_every_status_has_a_test_that_does_not_pass(tmp_path):
    """In JUnit: also where no suite says why the status is not 0."""

    def counts(found):
        root = ET.fromstring(files.as_junit(found))  # noqa: S314  # made a line before
        return {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")}

    nothing = verify(PythonFunction("nothing", lambda *_: None), kept_files(), ["decisions"])
    assert nothing.verdict == "not run"
    assert counts(nothing) == {"tests": "2", "failures": "0", "errors": "1", "skipped": "1"}
    for name in ("decisions", "decision"):
        shutil.copy(kept_files() / "decisions.safetensors", tmp_path / f"{name}.safetensors")
    folder = candidate_named(f"dir:{tmp_path}")
    strange = verify(folder, kept_files(), ["decisions"], must_be_complete=True)
    assert strange.verdict == "incomplete"
    assert counts(strange) == {"tests": "2", "failures": "1", "errors": "0", "skipped": "0"}


def test_a_mismatch_before_a_failure_is_one(module):
    """And it is diagnosed; what comes of the run is still that it failed."""
    done = run(module, "candidate:breaking_wrong", "--suite", "decisions", "--report", "r.xml")
    assert done.returncode == 3
    first = done.stdout.splitlines()[0]
    assert re.fullmatch(
        r"decisions: mismatch, ([\d,]+) of \1 entries differ, in 4 of 4 cases compared; the suite "
        r"has 5",
        first,
    )
    assert "  it failed: candidate:breaking_wrong raised ArithmeticError" in done.stdout
    assert "first mismatching field: accepted " in done.stdout
    assert "explains" in done.stdout
    assert "candidate:breaking_wrong: failed (0 match, 1 mismatch, 0 not run)" in done.stdout
    root = ET.parse(module / "r.xml").getroot()  # noqa: S314  # written a line before
    assert "it failed" in root.find("testcase/failure").text
    counts = {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "2", "failures": "1", "errors": "1", "skipped": "0"}


def test_cases_and_suites_that_nobody_knows_are_named(tmp_path):
    """In a folder of results; what is right beside them is compared."""
    right = golden.load("decisions")[0]
    known = {f"{right.name}/accepted": right.arrays["accepted"]}
    strange = {f"{right.name}x/accepted": right.arrays["accepted"], "zz/accepted": np.zeros(3)}
    save_file(known | strange, tmp_path / "decisions.safetensors")
    save_file(known, tmp_path / "decision.safetensors")
    save_file(known, tmp_path / "mx.safetensors")  # not asked for, and known
    found = verify(candidate_named(f"dir:{tmp_path}"), kept_files(), ["decisions"])
    assert found.verdict == "match"
    assert found.results[0].unknown_cases.names == (f"{right.name}x", "zz")
    assert found.unknown.names == ("decision",)
    assert not found.is_complete
    text = "\n".join(report.lines(found))
    assert (
        f"  not cases of this suite: {right.name}x, zz; "
        f"the nearest to {right.name}x is {right.name}\n"
    ) in text
    assert "\nnot suites: decision; the nearest to decision is decisions\n" in text
    page = files.as_html(found)
    assert f"not cases of this suite: <code>{right.name}x</code>, <code>zz</code>; the near" in page
    assert "not suites: <code>decision</code>; the nearest to <code>decision</code> is" in page


def test_complete_asks_for_suites_that_are_known(tmp_path):
    """A name that is misspelt is not made good by the suites that are not."""
    shutil.copy(kept_files() / "decisions.safetensors", tmp_path)
    for is_strange, verdict in ((False, "match"), (True, "incomplete")):
        if is_strange:
            shutil.copy(
                kept_files() / "error_steps.safetensors", tmp_path / "error_step.safetensors"
            )
        candidate = candidate_named(f"dir:{tmp_path}")
        found = verify(candidate, kept_files(), ["decisions"], must_be_complete=True)
        assert (found.verdict, found.is_complete) == (verdict, not is_strange)
        assert verify(candidate, kept_files(), ["decisions"]).verdict == "match"


def test_a_folder_in_which_nothing_is_known(module):
    """The status is 3, and what was found is said beside what was expected."""
    folder = module / "results"
    folder.mkdir()
    (folder / "decisions.npz").write_bytes(b"")
    done = run(module, "dir:results", "--suite", "decisions")
    assert done.returncode == 3
    assert "results has no file of results, but decisions.npz; give one with SUITE.saf" in (
        done.stderr.replace("\n", " ")
    )
    for name, key, message in (
        ("decision", "mean_relative_error/accepted", "not suites: decision; the nearest to"),
        ("decisions", "mean/accepted", "  not cases of this suite: mean; the nearest to mean is"),
        ("decisions", "mean_relative_error/ok", "  not fields of this suite: ok; the nearest to"),
    ):
        for file in folder.iterdir():
            file.unlink()
        save_file({key: np.zeros(3, np.uint8)}, folder / f"{name}.safetensors")
        done = run(module, "dir:results", "--suite", "decisions")
        assert done.returncode == 3
        assert done.stdout.startswith("decisions: not run, the candidate has no answer\n")
        assert message in done.stdout


def test_names_that_nobody_knows_are_many(tmp_path):
    arrays = {f"case{k}/accepted": np.zeros(1, np.uint8) for k in range(3000)}
    save_file(arrays, tmp_path / "decisions.safetensors")
    found = verify(candidate_named(f"dir:{tmp_path}"), kept_files(), ["decisions"])
    text = "\n".join(report.lines(found))
    assert "case1004, case1005 and 2,990 more; the nearest to case0 is " in text


def test_progress(module):
    """Both callbacks are called, with the suites in turn; a diagnosis is on show while it lasts."""
    asked = []

    def wrong(operation, parameters, inputs):
        found = OPERATIONS[operation](parameters, inputs)
        return {name: array ^ array.dtype.type(1) for name, array in found.items()}

    verify(
        PythonFunction("wrong", wrong),
        kept_files(),
        ["scale_steps", "decisions"],
        asked.append,
        lambda suite, of: asked.append((suite, of)),
    )
    assert asked == ["scale_steps", "decisions", ("scale_steps", 2), ("decisions", 2)]
    shown = run(module, "candidate:wrong", "--suite", "decisions").stderr
    assert "verified decisions" in shown
    assert "diagnosed" in shown
    assert "diagnosed" not in run(module, "candidate:right", "--suite", "decisions").stderr


def test_the_engine_is_a_candidate():
    found = verify(Engine(), kept_files(), ["error_steps"])
    assert found.verdict == "match"
    assert list(report.lines(found))[-1] == "numba: match (1 match, 0 mismatch, 0 not run)"


def test_assert_bit_exact():
    same = np.arange(256, dtype=np.uint8)
    assert_bit_exact(same, same.copy(), "e4m3")
    assert_bit_exact(np.uint8(3), 3, "e2m1")
    with pytest.raises(AssertionError, match=r"256 of 256 codes of e4m3 differ:") as failed:
        assert_bit_exact(same, same ^ np.uint8(1), "e4m3")
    assert str(failed.value).count("\n") == 9
    assert "and 248 more" in str(failed.value)


@pytest.mark.parametrize(
    ("actual", "expected", "fmt", "message"),
    [
        ([[0x7F, 1]], [[0x7E, 1]], "e4m3", "[0, 0]: 0x7F (nan) where 0x7E (448) is expected"),
        (
            [0x81],
            [0x01],
            "e4m3",
            "0x81 (-0.001953125) where 0x01 (0.001953125) is expected, 2 ulp b",
        ),
        ([0xFF], [0x01], "int8_mx", "is expected, 2 ulp below"),
        ([0x7C], [0x7B], "e5m2", "0x7C (inf) where 0x7B (57344) is expected, 1 ulp above"),
        ([0], [0x8000], "bf16", "0x0000 (0) where 0x8000 (-0) is expected, the sign of zero"),
        ([1, 2], [1], "e4m3", "actual has shape (2,), expected has (1,)"),
    ],
)
def test_a_failed_assertion_says_where_and_by_how_much(actual, expected, fmt, message):
    with pytest.raises(AssertionError) as failed:
        assert_bit_exact(actual, expected, fmt)
    assert message in str(failed.value)


def test_an_assertion_takes_codes_alone():
    with pytest.raises(TypeError, match="actual holds the float 1.0; give unsigned integers"):
        assert_bit_exact([1.0], [1], "e4m3")
    with pytest.raises(ValueError, match="expected holds 256, which is not of 8 bits"):
        assert_bit_exact([1], [256], "e4m3")


def in_views(found, names):
    """An answer with some fields in another view."""
    return {
        f"{name}@{views}": seen(found.pop(name), views.split("@"), {"tile": [1, 16]})
        for name, views in names.items()
    } | found


def test_a_candidate_may_give_views():
    """VEC-003: also a view of a view; VEC-001 and VEC-002 say where the fields come from."""
    views = {"code": "transposed", "block_scale": "replicated@swizzled_128x4"}
    found = on(lambda f: in_views(f, views), "nvfp4_te_row", "nvfp4")
    assert found.verdict == "match"
    assert found.results[0].not_given == ("xs",)

    def wrong(answer):
        answer["code"] = answer["code"] ^ np.uint8(1)
        return in_views(answer, views)

    found = on(wrong, "nvfp4_te_row", "nvfp4")
    assert {d.field for d in found.results[0].differences} == {"code@transposed"}


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        (
            lambda f: {"y@packed": f.pop("y")},
            "y@packed",
            "is given, but y has no view 'packed'; it has ",
        ),
        (
            lambda f: {"code@transposed": f["code"].T},
            "code",
            "is given as 'code' and as 'code@transposed'; give it once",
        ),
        (lambda _: {"code": [[1, 2], [3]]}, "code", "is not an array ("),
        (lambda f: {"code": f["code"].astype(object)}, "code", "has dtype object; give bit patt"),
    ],
)
def test_a_field_that_cannot_be_compared_ends_nothing_else(change, field, message):
    """The other fields, cases and suites are compared."""

    def function(operation, parameters, inputs):
        found = dict(OPERATIONS[operation](parameters, inputs))
        return found | change(found) if operation == "nvfp4" else found

    names = ["nvfp4_te_row", "decisions"]
    found = verify(PythonFunction("one field", function), kept_files(), names)
    assert [result.verdict for result in found.results] == ["mismatch", "match"]
    assert found.failures == ()
    result = found.results[0]
    assert {difference.field for difference in result.differences} == {field}
    assert all(d.problem.startswith(message) for d in result.differences)
    assert {f.name for f in result.fields if not f.differing} >= {"block_scale", "packed"}
    root = ET.fromstring(files.as_junit(found))  # noqa: S314  # made a line before
    assert (root.get("failures"), root.get("errors")) == ("1", "0")


def test_a_name_that_is_none_is_named():
    """As one that nobody knows, beside the fields that are compared."""
    for name, shown in (("caf\xe9", "'caf\\xe9'"), (7, "7"), ("a b", "'a b'")):
        found = on(lambda f, name=name: f | {name: f["accepted"]})
        assert found.verdict == "match"
        assert found.results[0].unknown.names == (shown,)


def test_a_candidate_that_exits_or_changes_its_inputs_is_held_to_what_it_gave():
    def leaving(*_):
        raise SystemExit(0)

    class PanicError(BaseException):
        """What Rust's panics are to Python."""

    def panicking(*_):
        raise PanicError("index out of bounds")

    said = failure_of(PythonFunction("leaving", leaving), "decisions")
    assert "leaving raised SystemExit on case" in said
    said = failure_of(PythonFunction("panicking", panicking), "decisions")
    assert "panicking raised PanicError on case" in said

    def spoiling(operation, parameters, inputs):
        found = OPERATIONS[operation](parameters, {n: a.copy() for n, a in inputs.items()})
        for array in inputs.values():
            array[:] = 0
        return found

    found = verify(PythonFunction("spoiling", spoiling), kept_files(), ["quantize_steps"])
    assert found.verdict == "match"


def test_fields_that_are_not_given_are_named():
    """CON-002."""
    found = on(
        lambda f: {"code": f["code"], "cod": f["code"]}, "quantize_steps", "quantize_element"
    )
    assert found.verdict == "match"
    text = "\n".join(report.lines(found))
    assert "  not given: xs, y\n  not fields of this suite: cod; the nearest to cod is code" in text
    nothing = on(lambda f: {"cod": f["code"]}, "quantize_steps", "quantize_element")
    assert nothing.verdict == "not run"
    assert "  not fields of this suite: cod; the nearest" in "\n".join(report.lines(nothing))


def test_a_field_that_some_answers_lack_is_missing():
    def some(found):
        return found if len(found["y"]) > 3000 else {"code": found["code"]}

    result = on(some, "quantize_steps", "quantize_element").results[0]
    assert {d.problem for d in result.differences} == {"is missing"}
    assert {d.field for d in result.differences} == {"xs", "y"}


def test_wrong_on_purpose():
    """VEC-011: every planted entry of the negative files is found, and nothing else."""
    manifest = read_manifest(kept_files())["suites"]
    planted = {
        (name, row["case"], row["field"], tuple(row["index"]), row["wrong"])
        for name, entry in manifest.items()
        for row in entry.get("negative", {"planted": []})["planted"]
    }
    names = sorted({name for name, *_ in planted})
    assert len(planted) == 5
    folder = candidate_named(f"dir:{kept_files() / 'negative'}")
    found = verify(folder, kept_files(), names)
    assert planted == {
        (result.suite, d.case, d.field, entry.index, entry.actual)
        for result in found.results
        for d in result.differences
        for entry in d.entries
    }
    assert sum(result.differing for result in found.results) == len(planted)


def test_codes_that_are_not_of_the_format_are_mismatches():
    found = on(
        lambda f: {"code": f["code"] | np.uint16(0x100)}, "quantize_steps", "quantize_element"
    )
    text = "\n".join(report.lines(found))
    assert "0x100 (not of 8 bits) where 0x00 (0) is expected" in text
