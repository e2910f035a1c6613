"""Verifying candidates: mismatches, where they are, and how much differs."""

import json
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from safetensors.numpy import save_file
from test_page import differing, made
from verifying import entries_of, on, undiagnosed

import mor_ref
from mor_ref import golden
from mor_ref.deviations import applied
from mor_ref.golden import bundled_files
from mor_ref.golden.model.views import seen
from mor_ref.golden.store.manifest import read_manifest
from mor_ref.mistakes.catalogue import CAUSES
from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import bits32
from mor_ref.verify import assert_bit_exact
from mor_ref.verify.candidates.by_name import candidate_named
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.diagnosing.diagnosis_records import Explanation, SuiteDiagnosis
from mor_ref.verify.reporting import junit, report_files
from mor_ref.verify.reporting import text as report
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

__all__ = ["undiagnosed"]  # a fixture


@pytest.mark.usefixtures("undiagnosed")
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


@pytest.mark.usefixtures("undiagnosed")
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
    """Return a candidate with global scales of shape (), as `quantize_nvfp4` returns them."""

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


@pytest.mark.usefixtures("undiagnosed")
def test_a_number_without_a_shape_is_one_entry(tmp_path):
    found = verify(whole_scales(0), suites_in(bundled_files(), ["nvfp4_torchao"]))
    assert found.verdict == "match"
    assert [(f.name, f.compared > 5) for f in found.results[0].fields] == [
        ("global_encode_scale", True),
        ("global_decode_scale", True),
    ]
    found = verify(whole_scales(1), suites_in(bundled_files(), ["nvfp4_torchao"]))
    difference = found.results[0].differences[0]
    assert (difference.problem, difference.entries[0].index) == (None, (0,))
    assert difference.entries[0].actual == difference.entries[0].expected ^ 1
    case = next(c for c in golden.load("quantize") if c.arrays["scale"].shape == (1, 1))
    results = {f"{case.name}/scale": case.arrays["scale"].reshape(())}
    results |= {f"{case.name}/scale@reciprocal": seen(results.popitem()[1], ["reciprocal"], {})}
    save_file(results, tmp_path / "quantize.safetensors")
    found = verify(candidate_named(f"dir:{tmp_path}"), suites_in(bundled_files(), ["quantize"]))
    assert (found.verdict, found.results[0].compared) == ("match", 1)


def test_a_number_without_a_shape_is_not_many_entries():
    found = on(lambda found: {"accepted": found["accepted"][0]})
    assert "has shape (), and (" in str(found.results[0].differences[0])


@pytest.mark.usefixtures("undiagnosed")
def test_how_much_differs_is_said_of_how_much():
    """And entries that cannot be compared are counted apart."""
    case = golden.load("mx_blocks")[0]
    first = (len(case.arrays["x"]), *case.parameters.values())

    def wrong(change):
        def function(operation, parameters, inputs):
            found = OPERATIONS[operation].engine(parameters, inputs)
            is_first = (len(inputs["x"]), *parameters.values()) == first
            return found | change(found["code"]) if is_first else None

        found = verify(PythonFunction("wrong", function), suites_in(bundled_files(), ["mx_blocks"]))
        return next(report.lines(found)), found.results[0].compared

    line, compared = wrong(lambda code: {"code": code ^ np.uint8(1)})
    size = case.arrays["code"].size
    cases = len(golden.load("mx_blocks"))
    assert line == (
        f"mx_blocks: mismatch, {size:,} of {compared:,} entries differ, in 1 of 1 case compared; "
        f"the suite has {cases}"
    )
    line, _ = wrong(lambda code: {"code": code.astype(float)})
    assert line == (
        "mx_blocks: mismatch, 1 field of a case cannot be compared, "
        f"in 1 of 1 case compared; the suite has {cases}"
    )


@pytest.mark.usefixtures("undiagnosed")
def test_what_cannot_be_compared_is_not_counted_as_differing():
    """A field of another shape in all cases, and one that is missing or of floats in some."""

    def wrong(operation, parameters, inputs):
        found = OPERATIONS[operation].engine(parameters, inputs)
        found |= {"scale": found["scale"][:-1], "y": ~found["y"]}
        match parameters["format"], parameters["scale_rule"]:
            case "e4m3", "floor":
                del found["y"]
            case "e4m3", "ceil":
                found["code"] = found["code"].astype(float)
        return found

    cases = golden.load("mx_blocks")
    there = {case.name: case.arrays for case in cases}
    found = verify(PythonFunction("wrong", wrong), suites_in(bundled_files(), ["mx_blocks"]))
    (result,) = found.results
    off = sum(a["y"].size for name, a in there.items() if not name.startswith("e4m3.floor"))
    codes = sum(a["code"].size for name, a in there.items() if not name.startswith("e4m3.ceil"))
    fields = {field.name: field for field in result.fields}
    some = sum(name.startswith("e4m3.floor") for name in there)
    assert {name: (f.compared, f.differing, f.not_comparable) for name, f in fields.items()} == {
        "scale": (0, 0, len(cases)), "code": (codes, 0, some), "y": (off, off, some),
    }  # fmt: skip
    assert (result.compared, result.differing) == (codes + off, off)
    assert result.first_mismatching_field is fields["scale"]
    said = f"{off:,} entries differ and {len(cases) + 2 * some} fields of cases cannot be compared"
    lines = list(report.lines(found))
    assert lines[0] == f"mx_blocks: mismatch, {said}, in {len(cases)} of {len(cases)} cases"
    rules = ", ".join(result.first_mismatching_field.rules)
    assert lines[1] == f"  first mismatching field: scale (rules {rules})"
    first = lines.index(f"  scale: cannot be compared in {len(cases)} cases")
    assert lines[first : first + 3] == [
        f"  scale: cannot be compared in {len(cases)} cases",
        f"  code: 0 of {codes:,} differ; cannot be compared in {some} cases",
        f"  y: {off:,} of {off:,} differ; cannot be compared in {some} cases",
    ]
    root = ET.fromstring(junit.as_junit(found))[0]  # noqa: S314  # made a line before
    assert root.find("testcase/failure").get("message") == said
    (record,) = json.loads(report_files.as_json(found))["results"]
    counts = [difference["count"] for difference in record["differences"] if difference["problem"]]
    assert counts == [0] * (len(cases) + 2 * some)


def test_what_cannot_be_compared_leaves_the_rest_named():
    """Fields and cases that were left out, although nothing that was given could be compared."""

    def floats(operation, parameters, inputs):
        found = OPERATIONS[operation].engine(parameters, inputs)
        is_mine = (parameters["format"], parameters["scale_rule"]) == ("e4m3", "floor")
        return {"code": found["code"].astype(float)} if is_mine else None

    found = verify(
        PythonFunction("floats", floats),
        suites_in(bundled_files(), ["mx_blocks"]),
        must_be_complete=True,
    )
    lines = list(report.lines(found))
    assert lines[2] == "  see on the site: spec/MXS-007"
    assert lines[3].startswith("  not answered: ")
    assert lines[4] == "  not given: scale, xs, y"


@pytest.mark.parametrize(
    ("count", "more"), [(5, []), (6, ["1 more field of a case"]), (7, ["2 more fields of cases"])]
)
def test_five_differences_are_shown_and_the_others_counted(count, more):
    """And of each difference three entries."""
    found = made([differing(f"case {number}") for number in range(count)])
    _, *shown = "\n".join(report.lines(found)).split("\n  case case ")
    assert len(shown) == 5
    assert [one.count("\n    at ") for one in shown] == [2] * 5
    assert shown[-1].splitlines()[3:-2] == [f"  and {one}" for one in more]


WHOLE = Explanation(
    ("ENC-003/ties-away",), ("ENC-003",), 9, 9, is_whole=True, summaries=("Ties go away.",)
)


def test_a_cause_of_several_suites_is_said_in_the_end():
    """That of one suite is said there."""
    for suites, said in (
        ("a", []),
        ("ab", ["all 18 mismatches are explained by `ENC-003/ties-away` (rule ENC-003)"]),
    ):
        diagnoses = [SuiteDiagnosis(suite, 9, (WHOLE,)) for suite in suites]
        found = made([differing()], suites, diagnoses)
        assert list(report.summary(found))[:-2] == said


@pytest.mark.parametrize(
    ("diagnosis", "said"),
    [
        (SuiteDiagnosis("a", 9, (), leaders=("ENC-003/truncated", "ENC-003/ties-away")), True),
        (SuiteDiagnosis("a", 9, (WHOLE,), leaders=("ENC-003/truncated",)), False),
        (SuiteDiagnosis("a", 9, ()), False),
    ],
)
def test_pairs_that_were_tried_are_said_if_nothing_explains_all(diagnosis, said):
    lines = list(report.diagnosis_lines(diagnosis, comparable=True))
    names = "`ENC-003/truncated` or `ENC-003/ties-away`"
    tried = f"pairs of mistakes tried: only those that include {names}; none explains all"
    assert [line for line in lines if line.startswith("pairs")] == [f"{tried} mismatches"] * said


@pytest.mark.parametrize(("is_large", "parts"), [(True, 1234), (False, 1234), (True, 0)])
def test_parts_of_large_tensors_are_said_once(is_large, parts):
    diagnosis = SuiteDiagnosis("a", 9, (WHOLE,), is_large=is_large, of_parts=parts)
    text = "\n".join(report.diagnosis_lines(diagnosis, comparable=True))
    tried = "mistakes were tried on parts of the tensors, with 1,234 numbers"
    assert (tried in text) == (is_large and parts > 0)
    assert text.count("1,234 numbers") == bool(parts)


def test_matching_cases_and_bits_of_nans_are_counted():
    assert list(report.sparing([])) == []
    assert list(report.sparing(["a"])) == ["it would also change a, which matches"]
    assert list(report.sparing(["a", "b"])) == ["it would also change a, b, which match"]
    assert report.of_nans(0, 3) == ""
    assert report.of_nans(2, 3) == "; 2 of these only in the bits of a NaN"
    assert report.of_nans(3, 3) == "; equal but for the bits of NaN"


@pytest.mark.tier("full")
def test_what_explains_one_suite_is_said_once():
    def wrong(operation, parameters, inputs):
        with applied(CAUSES["ENC-003/ties-away"]):
            return OPERATIONS[operation].exact(parameters, inputs)

    for suites, times in ((["quantize_steps"], 1), (["quantize_steps", "quantize_blocks"], 3)):
        found = verify(PythonFunction("wrong", wrong), suites_in(bundled_files(), suites))
        assert "\n".join(report.lines(found)).count("explained by `ENC-003/ties-away`") == times


@pytest.mark.usefixtures("undiagnosed")
def test_one_of_a_thing_is_one():
    found = on(lambda f: {"u": f["u"] ^ (np.arange(len(f["u"])) == 3)}, "error_steps", "error_term")
    root = ET.fromstring(junit.as_junit(found))[0]  # noqa: S314  # made a line before
    assert root.find("testcase/failure").get("message") == "1 entry differs"
    entries = entries_of("error_steps", "u")
    assert next(report.lines(found)).endswith(f" 1 of {entries:,} entries differs, in 1 of 1 case")


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
        ([1, 2], [1], "e4m3", "actual has shape (2,), expected has (1,); give arr"),
    ],
)
def test_a_failed_assertion_says_where_and_by_how_much(actual, expected, fmt, message):
    with pytest.raises(AssertionError) as failed:
        assert_bit_exact(actual, expected, fmt)
    assert message in str(failed.value)


def in_views(found, names):
    """Return an answer with some fields in another view."""
    return {
        f"{name}@{views}": seen(found.pop(name), views.split("@"), {"tile": [1, 16]})
        for name, views in names.items()
    } | found


@pytest.mark.usefixtures("undiagnosed")
def test_a_candidate_may_give_views():
    """VEC-003: also a view of a view; VEC-001 and VEC-002 say where the fields come from."""
    views = {"code": "transposed", "block_scale": "replicated@swizzled_128x4"}
    found = on(lambda f: in_views(f, views), "nvfp4_te_row", "nvfp4")
    assert found.verdict == "match"
    assert found.results[0].not_given == ("xs",)

    def in_two_views(answer):
        packed = seen(answer["code"], ["packed"], {"tile": [1, 16]})
        return in_views(answer, views) | {"code@packed": packed}

    assert on(in_two_views, "nvfp4_te_row", "nvfp4").verdict == "match"

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
            lambda f: {"code@transposed": f["code"].T ^ 1},
            "code",
            "is as expected as 'code', but not as 'code@transposed'; give it once",
        ),
        (lambda _: {"code": [[1, 2], [3]]}, "code", "is not an array ("),
        (lambda f: {"code": f["code"].astype(object)}, "code", "has dtype object; give bit patt"),
    ],
)
def test_a_field_that_cannot_be_compared_ends_nothing_else(change, field, message):
    """The other fields, cases and suites are compared."""

    def function(operation, parameters, inputs):
        found = dict(OPERATIONS[operation].engine(parameters, inputs))
        return found | change(found) if operation == "nvfp4" else found

    names = ["nvfp4_te_row", "decisions"]
    found = verify(PythonFunction("one field", function), suites_in(bundled_files(), names))
    assert [result.verdict for result in found.results] == ["mismatch", "match"]
    assert found.failures == ()
    result = found.results[0]
    assert {difference.field for difference in result.differences} == {field}
    assert all(d.problem.startswith(message) for d in result.differences)
    assert {f.name for f in result.fields if not f.differing} >= {"block_scale", "packed"}
    root = ET.fromstring(junit.as_junit(found))[0]  # noqa: S314  # made a line before
    assert (root.get("failures"), root.get("errors")) == ("1", "0")


@pytest.mark.usefixtures("undiagnosed")
def test_wrong_on_purpose():
    """VEC-011: every planted entry of the negative files is found, and nothing else."""
    manifest = read_manifest(bundled_files())["suites"]
    planted = {
        (name, row["case"], row["field"], tuple(row["index"]), row["wrong"])
        for name, entry in manifest.items()
        for row in entry.get("negative", {"planted": []})["planted"]
    }
    names = sorted({name for name, *_ in planted})
    assert len(planted) == 5
    folder = candidate_named(f"dir:{bundled_files() / 'negative'}")
    found = verify(folder, suites_in(bundled_files(), names))
    assert planted == {
        (result.suite, d.case, d.field, entry.index, entry.actual)
        for result in found.results
        for d in result.differences
        for entry in d.entries
    }
    assert sum(result.differing for result in found.results) == len(planted)


@pytest.mark.usefixtures("undiagnosed")
def test_codes_that_are_not_of_the_format_are_mismatches():
    found = on(
        lambda f: {"code": f["code"] | np.uint16(0x100)}, "quantize_steps", "quantize_element"
    )
    text = "\n".join(report.lines(found))
    assert "0x100 (not of 8 bits) where 0x00 (0) is expected" in text
