"""Declarations for machines: what matches to the bit, and kappa of the rest."""

import importlib.util
import json
import math
from fractions import Fraction
from importlib import resources

import numpy as np
import pytest
from verifying import MANIFEST, run, undiagnosed

import mor_ref
from mor_ref import formats, golden
from mor_ref.definitions.table_format import TableFormat
from mor_ref.golden import bundled_files
from mor_ref.operations import OPERATIONS
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.comparing.allowed import Allowed
from mor_ref.verify.comparing.by_parameters import FieldOfCases, steps_of_codes
from mor_ref.verify.reporting.declaration import declaration
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

__all__ = ["undiagnosed"]
pytestmark = pytest.mark.usefixtures("undiagnosed")
SCHEMA = json.loads(
    resources.files("mor_ref.verify.reporting").joinpath("declaration_schema.json").read_text()
)
_TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def check(value, schema=SCHEMA, where="declaration"):
    """Check a value against a schema, of the words that this one has."""
    kinds = schema.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    fits = [
        type(value) is int if kind == "integer" else isinstance(value, _TYPES[kind])
        for kind in kinds
    ]
    assert not kinds or any(fits), where
    assert value in schema.get("enum", [value]), where
    assert value == schema.get("const", value), where
    if type(value) is int:
        assert value >= schema.get("minimum", value), where
    if isinstance(value, list):
        for k, entry in enumerate(value):
            check(entry, schema.get("items", {}), f"{where}[{k}]")
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        assert {*schema.get("required", [])} <= value.keys(), where
        for key, inner in value.items():
            assert key in known or others is not False, f"{where}.{key}"
            check(inner, known.get(key) or (others if isinstance(others, dict) else {}), key)
    words = {"type", "enum", "const", "minimum", "items", "properties", "required"}
    words |= {"additionalProperties", "description", "title", "$schema"}
    assert schema.keys() <= words, where


def declared(function, suites, allowed=Allowed()):  # noqa: B008, frozen
    there = suites_in(bundled_files(), suites)
    candidate = PythonFunction("kernel:run", function)
    found = declaration(verify(candidate, there, allowed=allowed), there, allowed, "all")
    found = json.loads(json.dumps(found))
    check(found)
    if importlib.util.find_spec("jsonschema") is not None:
        importlib.import_module("jsonschema").validate(found, SCHEMA)
    return found


def right(operation, parameters, inputs):
    return dict(OPERATIONS[operation].engine(parameters, inputs))


def results_of(found, suite):
    (one,) = [one for one in found["suites"] if one["suite"] == suite]
    return one["results"]


def test_all_that_matches_is_declared_with_the_parameters_of_its_cases():
    found = declared(right, ["scale_steps", "decode"])
    assert (found["verdict"], found["bit_exact"]) == ("match", True)
    assert found["versions"] == {"mor_ref": mor_ref.__version__, "vectors": 1}
    for suite in ("scale_steps", "decode"):
        entry, results = MANIFEST[suite], results_of(found, suite)
        (of_suite,) = [one for one in found["suites"] if one["suite"] == suite]
        assert of_suite["sha256"] == entry["sha256"]
        assert of_suite["operation"] == entry["operation"]
        assert of_suite["rules"] == entry["rules"]
        assert [one["parameters"] for one in results] == [*entry["cases"].values()]
        sizes = {case.name: case.arrays for case in golden.load(suite)}
        for name, one in zip(entry["cases"], results, strict=True):
            for field, said in one["fields"].items():
                whole = {"cases": 1, "entries": sizes[name][field].size}
                nothing = {"differing": 0, "allowed": 0, "not_comparable": 0}
                assert said == {"matches": True, "kappa": 0, **whole, **nothing}
    asked = {"scale_steps", "decode"}
    assert {*found["not_asked"]["suites"]} == MANIFEST.keys() - asked


def steps_from(x, y, fmt):
    """Return how many values of a format are from one of its codes to another."""
    values = [Fraction(v) for v in map(fmt.value, range(fmt.code_count)) if math.isfinite(v)]
    low, high = sorted((Fraction(fmt.value(x)), Fraction(fmt.value(y))))
    return len({value for value in values if low < value <= high})


@pytest.mark.parametrize("name", ["e4m3", "e5m2", "e4m3fnuz", "int8_mx", "e8m0", "e2m1"])
def test_kappa_counts_the_values_from_one_code_to_another(name):
    fmt = formats[name]
    codes = [code for code in range(fmt.code_count) if math.isfinite(fmt.value(code))][::7]
    for x in codes:
        for y in codes[::3]:
            pair = np.array([x]), np.array([y])
            assert steps_of_codes(*pair, fmt) == steps_from(x, y, fmt)


def test_kappa_of_a_table_counts_its_values():
    table = TableFormat("mine", (1.0, -1.0, 0.0, 3.0))
    assert steps_of_codes(np.array([1, 0]), np.array([3, 2]), table) == 3


@pytest.mark.parametrize(
    ("actual", "expected", "kappa"),
    [
        (0x7D, 0x7F, 0),  # NaNs
        (0x7D, 0x01, None),
        (0x7C, 0x7B, None),  # infinity, and the largest number
        (0x7B, 0x7C, None),
        (0xFC, 0x7C, None),
        (0x80, 0x00, 0),
        (0x100, 0x00, None),  # not of 8 bits
    ],
)
def test_kappa_has_no_meaning_at_special_numbers(actual, expected, kappa):
    pair = np.array([actual, 3]), np.array([expected, 3])
    assert steps_of_codes(*pair, formats["e5m2"]) == kappa


def test_what_differs_has_kappa_for_each_set_of_parameters():
    """Two codes of e5m2 are wrong in each case, and one case has no y."""
    given, fmt, cases = (0x3C, 0x3F), formats["e5m2"], golden.load("mx_blocks")

    def wrong(operation, parameters, inputs):
        found = right(operation, parameters, inputs)
        if np.array_equal(inputs["x"], cases[0].arrays["x"]):
            del found["y"]
        if parameters["format"] == "e5m2":
            found["code"] = found["code"].copy()
            found["code"][0, :2] = given
        return found

    found = declared(wrong, ["mx_blocks"])
    assert (found["verdict"], found["bit_exact"]) == ("mismatch", False)
    results = results_of(found, "mx_blocks")
    assert sum(one["fields"]["code"]["cases"] for one in results) == len(cases)
    for one in results:
        same = [case for case in cases if case.parameters == one["parameters"]]
        code, y = one["fields"]["code"], one["fields"]["y"]
        is_wrong = one["parameters"]["format"] == "e5m2"
        codes = [case.arrays["code"][0, :2].tolist() for case in same if is_wrong]
        steps = [steps_from(*pair, fmt) for of_case in codes for pair in zip(given, of_case)]  # noqa: B905
        assert code["kappa"] == max(steps, default=0)
        assert code["differing"] == sum(map(bool, steps))
        assert code["matches"] == (not is_wrong)
        lacks_y = one["parameters"] == cases[0].parameters
        assert (y["not_comparable"] > 0, y["matches"]) == (lacks_y, not lacks_y)
        assert y["kappa"] == (None if lacks_y else 0)


def kappas_of(suite, field, answer):
    """Return kappa of a field in all cases, if it is given so."""
    found = declared(lambda *call: {field: answer(right(*call)[field])}, [suite])
    results = [one["fields"] for one in results_of(found, suite)]
    return {each["kappa"] for fields in results for each in fields.values()}


def test_bytes_of_two_codes_have_the_kappa_of_a_code():
    """0x75 has the low code 3 in the place of 6."""
    found = kappas_of("nvfp4_te_row", "packed", lambda bits: np.where(bits == 0x77, 0x75, bits))
    assert found == {2}


def test_integers_have_kappa_also_in_twos_complement():
    assert kappas_of("dot_integers", "int32_sum", lambda bits: bits - np.uint32(5)) == {5}


def test_digests_have_no_kappa():
    assert kappas_of("levels_large", "level", lambda bits: bits ^ np.uint32(1)) == {None}


def test_what_is_allowed_is_no_match_and_keeps_its_kappa():
    """The other zero is 0 values away."""

    def without_minus_zero(operation, parameters, inputs):
        found = right(operation, parameters, inputs)["code"].copy()
        fmt = formats[parameters["format"]]
        if fmt.sign == "sign-magnitude" and fmt.value(fmt.sign_bit) == 0:
            found[found == fmt.sign_bit] = 0
        return {"code": found} if fmt.bits <= 8 else None

    found = declared(without_minus_zero, ["encode_presets"], Allowed(zero_sign="any"))
    fields = [one["fields"]["code"] for one in results_of(found, "encode_presets")]
    assert found["allowed"]["zero_sign"] == "any"
    assert {one["kappa"] for one in fields} == {0}
    assert {one["matches"] for one in fields} == {True, False}
    assert all(one["matches"] == (not one["allowed"]) and not one["differing"] for one in fields)
    (suite,) = found["suites"]
    wide = [n for n, p in MANIFEST["encode_presets"]["cases"].items()
            if formats[p["format"]].bits > 8]  # fmt: skip
    assert suite["not_answered"] == wide


def test_parts_of_a_field_add_up():
    one = FieldOfCases({"format": "e4m3"}, "code", 1, 10, 2, 0, 0, 3)
    both = one + FieldOfCases({"format": "e4m3"}, "code", 1, 5, 0, 1, 0, 4)
    assert (both.cases, both.entries, both.differing, both.allowed, both.kappa) == (2, 15, 2, 1, 4)
    assert (both + FieldOfCases(one.parameters, "code", 0, 0, 0, 0, 1, None)).kappa is None


def test_the_command_writes_it_whole_and_before_it_runs_none_is_there(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 64), np.float32))
    mine = ("--inputs", "x.npy", "--recipe", "mxfp8")
    old = tmp_path / "d.json"
    old.write_text("of an earlier run")
    done = run(tmp_path, "numba", *mine, "--declare", "d.json", "--report", "r.json")
    assert done.returncode == 0
    found = json.loads(old.read_text())
    check(found)
    assert found["inputs"]
    assert found["versions"]["vectors"] is None
    assert found["suites"][0]["sha256"] is None
    old.write_text("of an earlier run")
    assert run(tmp_path, "exec:./nothing", *mine, "--declare", "d.json").returncode == 3
    check(json.loads(old.read_text()))
    for other in (["--declare", "x.npy"], ["--declare", "r.json", "--report", "r.json"]):
        refused = run(tmp_path, "numba", *mine, *other)
        assert refused.returncode == 2
        assert "give another file" in refused.stderr
    assert {one.name for one in tmp_path.iterdir()} == {"x.npy", "d.json", "r.json"}
