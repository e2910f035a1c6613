"""A user's own tensors: quantized, and verified under a recipe."""

import json
import struct
import sys
import weakref
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from own_fields import exact_fields, rungs_in_blocks
from peak_memory import megabytes_of
from safetensors.numpy import load_file, save_file

import mor_ref
from mor_ref import golden
from mor_ref.analysis import compare
from mor_ref.cli import main
from mor_ref.deviations import DEVIATIONS, applied
from mor_ref.golden.inputs.own_tensors import cases_of
from mor_ref.golden.store.suite_files import read_suite
from mor_ref.mistakes.catalogue import CAUSES
from mor_ref.operations import OPERATIONS
from mor_ref.recipes import Asked, Situation, as_tensor_recipe, own_recipe, rungs_of
from mor_ref.verify import own_tensors as own_module
from mor_ref.verify.own_inputs import from_arrays
from mor_ref.verify.own_tensors import CORNERS, LARGEST_SMALL, SUITE, own_tensors
from mor_ref.verify.reporting.junit import as_junit
from mor_ref.verify.reporting.page import as_html
from mor_ref.verify.reporting.report_files import as_json
from mor_ref.verify.reporting.text import suite_lines

RECIPES = ["e4m3:gam:8x16", "mxfp8:rceil", "nvfp4:te:1x16", "mor:three_way", "mor:nvfp4:e8m0"]


def tensors(rows=24):
    """Return bell-shaped tensors of three dtypes and three shapes, and an empty one."""
    random = np.random.default_rng(5)
    return {
        "layers.0.weight": random.standard_normal((rows, 200)).astype(ml_dtypes.bfloat16),
        "layers.0.bias": random.standard_normal(70).astype(np.float32),
        "experts": random.standard_normal((2, 3, 40)).astype(np.float16),
        "empty": np.ones((0, 7), np.float32),
    }


@pytest.fixture
def run(monkeypatch, capsys):
    """Return a function that runs the command line: its status, its output and its errors."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["mor-ref", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code, *capsys.readouterr()

    return call


@pytest.fixture
def file(tmp_path):
    save_file(tensors(), tmp_path / "mine.safetensors")
    return tmp_path / "mine.safetensors"


def engine(operation, parameters, inputs):
    return OPERATIONS[operation].engine(parameters, inputs)


@pytest.mark.tier("full", but=["[nvfp4:te:1x16]"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_quantize_writes_the_bits_of_the_exact_model(run, file, tmp_path, recipe):
    out = tmp_path / "out.safetensors"
    status, printed, _ = run("quantize", file, "--recipe", recipe, "--out", out)
    assert status == 0
    assert printed.splitlines()[-1].startswith(f"{out}: 3 tensors with ")
    found, tensor_recipe = load_file(out), as_tensor_recipe(recipe)
    assert {key.split("/")[0] for key in found} == {"experts", "layers.0.bias", "layers.0.weight"}
    for case in cases_of(own_recipe(recipe), from_arrays(tensors())):
        right = exact_fields(tensor_recipe.asked.operation, case)
        own = {key.split("/")[1] for key in found if key.startswith(f"{case.name}/")}
        assert {"code", "scale"} & own or {"output", "choice"} <= own or "block_scale" in own
        for field in own:
            assert np.array_equal(found[f"{case.name}/{field}"], right[field]), (case.name, field)


@pytest.mark.parametrize("recipe", ["mor:three_way:4x16", "mor:nvfp4:4x16:fp32"])
def test_the_codes_and_scales_of_rungs_are_those_of_the_record(run, tmp_path, recipe):
    """And with the choice they give the output back, by code that is not of mor_ref."""
    x, out = rungs_in_blocks(), tmp_path / "out.safetensors"
    save_file({"x": x}, tmp_path / "x.safetensors")
    assert run("quantize", tmp_path / "x.safetensors", "--recipe", recipe, "--out", out)[0] == 0
    found = {name.removeprefix("x/"): array for name, array in load_file(out).items()}
    policy, scaling = recipe.split(":")[1], "fp32" if "fp32" in recipe else "gam"
    right = mor_ref.mor(x, policy, block=(4, 16), scaling=scaling)
    assert (np.bincount(found["choice"].ravel(), minlength=3) > 0).all()
    choice = np.repeat(np.repeat(found["choice"], 4, axis=0), 16, axis=1)[:20, :70]
    output = (found["output"].astype(np.uint32) << 16).view(np.float32)
    dtypes = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}
    for index, name in enumerate(right.ladder[:-1]):
        record, code = right.quantized[name], found[f"{name}.code"]
        assert np.array_equal(code, record.codes)
        if name == "nvfp4":
            tiles = found["nvfp4.block_scale"].view(ml_dtypes.float8_e4m3fn).astype(np.float32)
            scale = tiles * found["nvfp4.global_decode_scale"].view(np.float32)
            values = code.view(ml_dtypes.float4_e2m1fn).astype(np.float32)
            y = values * np.repeat(scale, 16, axis=1)[:, :70]
        else:
            scale = found[f"{name}.scale"].view(np.float32)
            assert np.array_equal(scale, record.scale)
            wide = np.repeat(np.repeat(scale, 4, axis=0), 16, axis=1)[:20, :70]
            y = code.view(dtypes[name]).astype(np.float32) / wide
        taken = choice == index
        stored = y.astype(ml_dtypes.bfloat16).astype(np.float32)
        assert np.array_equal(stored[taken].view(np.uint32), output[taken].view(np.uint32))


OPERATIONS_OF = {
    "e4m3:gam:8x16": Asked(
        "quantize", {"format": "e4m3", "scaling": "gam", "block": [8, 16], "group": "tensor"}
    ),
    "nvfp4:te_row:1x16": Asked("nvfp4", {"profile": "te_row", "tile": [1, 16]}),
    "mxfp6_e2m3:rceil": Asked("mx", {"format": "e2m3", "scale_rule": "rceil", "block": 32}),
    "uint4:onnx:1x32:asymmetric": Asked(
        "affine", {"grid": "uint4", "profile": "onnx", "symmetric": False, "block": [1, 32]}
    ),
    "mx9": Asked("shared", {"kind": "mx9", "profile": "quark_torch", "block": 16}),
    "seq2": Asked("levels", {"kind": "seq2", "arithmetic": "f32", "block": "row"}),
    "int8_or_e4m3:1x32": Asked("mix", {"mixture": "int8_or_e4m3", "block": [1, 32]}),
}


@pytest.mark.parametrize("recipe", OPERATIONS_OF)
def test_the_operation_of_a_rung_is_that_of_its_recipe(recipe):
    alone = as_tensor_recipe(recipe)
    policy = alone.policy_in(Situation())
    parameters = {"policy": policy, "block": (8, 16), "scaling": "gam"}
    assert alone.asked == OPERATIONS_OF[recipe]
    assert rungs_of(Asked("mor", parameters)) == {policy.names[0]: alone.asked}


@pytest.mark.tier("full")
def test_codes_and_scales_of_rungs_are_suites_of_their_own(run, tmp_path):
    """Results of quantize are complete, and a wrong scale of a rung has the name of its mistake."""
    save_file({"x": rungs_in_blocks()}, tmp_path / "x.safetensors")
    given = tmp_path / "x.safetensors", "--recipe", "mor:three_way:4x16"
    out = tmp_path / "d" / f"{SUITE}.safetensors"
    assert run("quantize", *given, "--out", out)[0] == 0
    asked = "--inputs", *given, "--complete"
    status, printed, _ = run("verify", f"dir:{tmp_path / 'd'}", *asked)
    assert status == 0, printed
    assert "(3 match, 0 mismatch, 0 not run)" in printed
    assert "bit-exact in all that was asked: 20 fields, 3 cases, " in printed
    arrays = load_file(out)
    with applied(CAUSES["GAM-003/comparison-never"]):
        (case,) = cases_of(own_recipe("e5m2:gam:4x16"), from_arrays({"x": rungs_in_blocks()}))
        wrong = exact_fields("quantize", case)
    save_file(arrays | {f"x/e5m2.{one}": wrong[one] for one in ("exponent", "scale", "code")}, out)
    status, printed, _ = run("verify", f"dir:{tmp_path / 'd'}", *asked)
    assert status == 1
    assert f"{SUITE}: match" in printed
    assert f"{SUITE}.e4m3: match" in printed
    assert f"{SUITE}.e5m2: mismatch" in printed
    assert "are explained by `GAM-003/comparison-never`" in printed


def test_quantize_writes_npz_too(run, file, tmp_path):
    assert run("quantize", file, "--recipe", "mxfp4", "--out", tmp_path / "a.npz")[0] == 0
    assert run("quantize", file, "--recipe", "mxfp4", "--out", tmp_path / "a.safetensors")[0] == 0
    plain = load_file(tmp_path / "a.safetensors")
    with np.load(tmp_path / "a.npz") as archive:
        assert {*archive} == {*plain}
        assert all(np.array_equal(archive[name], plain[name]) for name in plain)


@pytest.mark.tier("full", but=["[mxfp8:rceil]"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_the_engine_matches_and_nothing_is_left_out(recipe):
    report = mor_ref.verify(engine, inputs=tensors(), recipe=recipe)
    assert (report.verdict, report.candidate) == ("match", "engine")
    (result,) = report.results
    assert (result.suite, result.cases) == (SUITE, 3)


@pytest.mark.tier("full")
def test_expected_bits_of_small_tensors_are_those_of_the_exact_model():
    """With a deviation of the model, the engine differs: the expected bits are not its own."""
    with applied(CAUSES["MXS-003/always"]):
        report = mor_ref.verify(engine, inputs=tensors(), recipe="mxfp8:rceil")
    assert report.verdict == "mismatch"
    with pytest.raises(ValueError, match="no tensor that a recipe takes: a .0 f"):
        own_tensors(own_recipe("mxfp8"), from_arrays({"a": np.ones(0, np.float32)}))


@pytest.mark.tier("full")
def test_a_wrong_rule_is_named_also_where_tensors_are_large(run, tmp_path, monkeypatch):
    large = tensors(rows=LARGEST_SMALL // 200 + 1)
    save_file(large, tmp_path / "large.safetensors")
    (tmp_path / "mine.py").write_text(
        "from mor_ref.operations import OPERATIONS\n"
        "def as_floor(operation, parameters, inputs):\n"
        "    return OPERATIONS[operation].engine({**parameters, 'scale_rule': 'floor'}, inputs)\n"
    )
    monkeypatch.chdir(tmp_path)
    arguments = ("--inputs", "large.safetensors", "--recipe", "mxfp8:rceil")
    status, printed, _ = run("verify", "mine:as_floor", *arguments)
    assert status == 1
    assert f"{SUITE}: mismatch" in printed
    assert f"{CORNERS}: mismatch" in printed
    assert printed.count("mismatches are explained by `MXS-003/always`") == 3


@pytest.mark.tier("full")
def test_a_report_has_the_text_of_the_command(run, file, tmp_path, monkeypatch):
    (tmp_path / "also_mine.py").write_text("from test_own_tensors import as_floor\n")
    monkeypatch.chdir(tmp_path)
    given = "verify", "also_mine:as_floor", "--inputs", file, "--recipe", "mxfp8:rceil"
    status, printed, _ = run(*given)
    report = mor_ref.verify("also_mine:as_floor", inputs=file, recipe="mxfp8:rceil")
    assert (status, printed) == (1, f"{report}\n")
    assert report.headline == printed.splitlines()[-1]
    assert repr(report) == f"<{report.headline}>"


@pytest.mark.tier("full")
def test_a_mistake_in_partial_blocks_is_named_also_where_tensors_are_large():
    """A corner of 128 columns would end with a whole block, and match."""
    x = np.random.default_rng(5).standard_normal((LARGEST_SMALL // 200 + 1, 200), np.float32)

    def dropping(operation, parameters, inputs):
        with applied(DEVIATIONS["edge_blocks_dropped"]):
            return OPERATIONS[operation].exact(parameters, inputs)

    report = mor_ref.verify(dropping, inputs={"x": x}, recipe="mxfp8:rceil")
    assert [one.suite for one in report.results] == [SUITE, CORNERS]
    for suite in report.diagnosis.suites:
        assert ("edge_blocks_dropped",) in [one.deviations for one in suite.explanations]


@pytest.mark.tier("full")
def test_inputs_that_become_bfloat16_are_named_by_their_two_steps():
    """The two that explain the most are tried together before any other pair."""
    random = np.random.default_rng(3)
    x = random.standard_normal((64, 128)) * np.exp(random.standard_normal((64, 128)))

    def kernel(operation, parameters, inputs):
        read = inputs["x"].view(np.float32).astype(ml_dtypes.bfloat16).astype(np.float32)
        found = OPERATIONS[operation].engine(parameters, {"x": read.view(np.uint32)})
        return {name: found[name] for name in ("scale", "code")}

    report = mor_ref.verify(kernel, inputs={"x": x.astype(np.float32)}, recipe="mxfp8:rceil")
    (found,) = report.diagnosis.suites[0].explanations
    assert {*found.deviations} == {"ENC-001/inputs-through-bf16", "MXS-002/amax-in-bf16"}
    assert found.is_whole


def as_floor(operation, parameters, inputs):
    """Forget the scale rule, except of single rows; return fewer fields of these."""
    if len(inputs["x"]) == 1:
        found = engine(operation, parameters, inputs)
        return {"code": found["code"], "other": found["code"]}
    return engine(operation, {**parameters, "scale_rule": "floor"}, inputs)


def uncounted(result):
    """Return a result without how often cases were asked again, which their sizes decide."""
    return replace(result, repeats=replace(result.repeats, questions=0))


@pytest.mark.tier("full")
def test_parts_have_the_result_of_the_whole(monkeypatch):
    whole = mor_ref.verify(as_floor, inputs=tensors(), recipe="mxfp8:rceil")
    monkeypatch.setattr(own_module, "_TOGETHER", 1)
    parts = mor_ref.verify(as_floor, inputs=tensors(), recipe="mxfp8:rceil")
    assert whole.verdict == "mismatch"
    assert [uncounted(result) for result in parts.results] == list(map(uncounted, whole.results))
    assert [result.repeats.cases for result in (*whole.results, *parts.results)] == [3, 3]
    assert (parts.conformance, parts.diagnosis) == (whole.conformance, whole.diagnosis)


def test_no_expected_value_stays_in_memory(monkeypatch):
    """When a tensor is asked, the arrays of those before it are gone."""
    monkeypatch.setattr(own_module, "_TOGETHER", 1)
    monkeypatch.setattr(own_module, "MOST_DIAGNOSED", 0)
    made, alive = [], []
    right = own_module.with_expected

    def noted(suite, case):
        found = right(suite, case)
        made.append(weakref.ref(found))
        return found

    def counting(operation, parameters, inputs):
        alive.append(sum(one() is not None for one in made))
        return engine(operation, parameters, inputs)

    monkeypatch.setattr(own_module, "with_expected", noted)
    report = mor_ref.verify(counting, inputs=tensors(), recipe="mxfp8")
    assert (report.verdict, alive) == ("match", 6 * [1])  # each of three tensors twice


def test_mismatches_beyond_a_size_are_counted_and_not_diagnosed(monkeypatch):
    """The matrix of 4,800 numbers has no room; the tensor of 240 has."""
    monkeypatch.setattr(own_module, "MOST_DIAGNOSED", 300)
    found = mor_ref.verify(as_floor, inputs=tensors(), recipe="mxfp8:rceil")
    (result,), (diagnosis,) = found.results, found.diagnosis.suites
    large = [one.count for one in result.differences if one.case == "layers.0.weight"]
    assert result.not_diagnosed == sum(large) > 0
    assert diagnosis.mismatches == result.differing - sum(large) > 0
    said = f"  {sum(large):,} mismatches are in tensors too large for a diagnosis as a whole"
    assert said in list(suite_lines(result, diagnosis))


def test_tensors_of_a_worker_are_written_whole(tmp_path):
    """They have the cases of the parts."""
    own = own_tensors(own_recipe("mxfp8"), from_arrays(tensors(LARGEST_SMALL // 200 + 1)))
    suites = own.written(tmp_path)
    assert {*suites.entries} == {*own.suites.entries} == {SUITE, CORNERS}
    for name, entry in suites.entries.items():
        there = read_suite(tmp_path, name, entry)
        made = [case for part, cases in own.parts() for case in cases if part == name]
        assert [case.name for case in there] == [case.name for case in made]
        for one, other in zip(there, made, strict=True):
            assert one.parameters == other.parameters
            assert all(np.array_equal(one.arrays[n], other.arrays[n]) for n in other.arrays)


def test_a_failure_that_ends_a_suite_ends_its_other_parts(monkeypatch, file, tmp_path):
    """The file of results cannot be read, and is so reported once."""
    monkeypatch.setattr(own_module, "_TOGETHER", 1)
    (tmp_path / f"{SUITE}.safetensors").write_bytes(b"nothing")
    report = mor_ref.verify(f"dir:{tmp_path}", inputs=file, recipe="mxfp8")
    assert (report.verdict, len(report.failures)) == ("failed", 1)


@pytest.mark.tier("full")
def test_large_tensors_are_compared_in_full():
    large = tensors(rows=LARGEST_SMALL // 200 + 1)

    def last_one_wrong(operation, parameters, inputs):
        found = dict(engine(operation, parameters, inputs))
        found["code"] = found["code"].copy()
        found["code"][-1, -1] ^= 1
        return found

    report = mor_ref.verify(last_one_wrong, inputs=large, recipe="e4m3:gam:8x16")
    wrong = {(one.suite, one.differing) for one in report.results}
    assert wrong == {(SUITE, 3), (CORNERS, 3)}


@pytest.mark.tier("full")
def test_a_directory_of_results_is_compared(run, file, tmp_path):
    results = tmp_path / "results"
    results.mkdir()
    out = results / f"{SUITE}.safetensors"
    assert run("quantize", file, "--recipe", "nvfp4", "--out", out)[0] == 0
    arguments = (f"dir:{results}", "--inputs", file, "--recipe", "nvfp4")
    assert run("verify", *arguments)[0] == 0
    arrays = load_file(out)
    arrays["experts/block_scale"][0, 1] ^= 1
    save_file(arrays, out)
    status, printed, _ = run("verify", *arguments)
    assert status == 1
    assert "case experts, field block_scale: 1 of 18 differ, the first at [0, 1]" in printed


def test_bundled_suites_are_not_changed_by_own_ones():
    before = [case.name for case in golden.load("mx")]
    mor_ref.verify(engine, inputs=tensors(), recipe="mxfp8")
    assert [case.name for case in golden.load("mx")] == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("verify", "numba", "--inputs", "FILE"), "inputs are given without a recipe; give"),
        (("verify", "numba", "--recipe", "mxfp8"), "recipe is 'mxfp8' without inputs; give"),
        (
            ("verify", "numba", "--inputs", "FILE", "--recipe", "mxfp8", "--suite", "mx"),
            "--inputs takes the place of suites; leave out --suite and --vectors",
        ),
        (("quantize", "FILE", "--recipe", "mxfp8", "--out", "a.bin"), "out is 'a.bin'; give a"),
        (
            ("quantize", "FILE", "--recipe", "e4m3:fp16", "--out", "a.npz"),
            "'fp16' is not known; give a word for scaling (gam, e8m0, fp32), or for block",
        ),
        (("quantize", "none.npy", "--recipe", "mxfp8", "--out", "a.npz"), "none.npy is not there"),
    ],
)
def test_wrong_calls_are_refused_in_a_sentence(run, file, arguments, message):
    status, printed, errors = run(*(file if one == "FILE" else one for one in arguments))
    assert (status, printed) == (2, "")
    assert message in errors


def test_words_and_integers_are_refused_with_what_to_give():
    x, words = np.ones((4, 32), np.float32), np.zeros((4, 32), np.uint16)
    for given, said in (
        (
            {"a": words + np.uint32((1 << 24) + 1)},
            "tensor 'a' holds 16777217, which float32 does not have; convert it yourself and give ",
        ),
        (
            {"a": [True]},
            "tensor 'a' holds the bool True; give float64, float32, float16, bfloat16 or a CPU",
        ),
        (
            {"a": x, "a/random_word": words},
            "a/random_word has random words, which the recipe does ",
        ),
    ):
        with pytest.raises((TypeError, ValueError)) as error:
            mor_ref.verify("numba", inputs=given, recipe="nvfp4")
        assert str(error.value).startswith(said)
    assert "add n_random_bits= to the recipe, such as nvfp4:n_random_bits=16" in str(error.value)


TIE = np.full((2, 64), 1.0625 + 2.0**-40)  # just above a tie of e4m3, and a tie in binary32


@pytest.mark.parametrize("where", ["npy", "npz", "safetensors", "arrays"])
def test_float64_is_rounded_to_float32_first(run, tmp_path, where):
    """QNT-004: one rounding straight to the format would give another code."""
    seen, x = [], TIE.copy()
    x[1] = [3.4028235677973366e38, -1e300, np.nan, -0.0] * 16
    path = tmp_path / f"x.{where}"
    {"npy": np.save, "npz": lambda p, a: np.savez(p, a=a)}.get(
        where, lambda p, a: save_file({"a": a}, p)
    )(path, x)

    def kernel(_, __, inputs):
        seen.append(inputs["x"].copy())
        codes = mor_ref.quantize_mx(inputs["x"].view(np.float32), "e4m3")
        return {"code": codes.codes, "scale": codes.scale}

    report = mor_ref.verify(kernel, inputs={"a": x} if where == "arrays" else path, recipe="mxfp8")
    assert report
    (words,) = [each for each in seen if each.shape == x.shape][:1]
    right = [struct.unpack("<I", struct.pack("<f", number))[0] for number in (1.0625, -0.0)]
    assert words.ravel()[[0, 67]].tolist() == right
    assert words.view(np.float32)[1, :2].tolist() == [np.inf, -np.inf]
    name = "a" if where != "npy" else str(path)
    line = f"rounded from float64 to float32 first (QNT-004): {name}"
    assert line in str(report).splitlines()
    if where == "arrays":
        return
    status, printed, _ = run("quantize", path, "--recipe", "mxfp8", "--out", tmp_path / "q.npz")
    assert status == 0
    assert line in printed.splitlines()
    (codes,) = (a for key, a in np.load(tmp_path / "q.npz").items() if key.endswith("/code"))
    assert mor_ref.decode(codes[0, :1], "e4m3") == 256  # 1.0 times 2^8, to even, and not 1.125
    status, printed, _ = run("verify", "numba", "--inputs", path, "--recipe", "mxfp8", "--complete")
    assert status == 0
    assert line in printed.splitlines()


def test_arguments_of_other_types_are_refused():
    x = np.ones((2, 64), np.float32)
    for candidate, inputs, said in (
        ("numba", x, "inputs is of the type ndarray; give arrays by name"),
        ("numba", [x], "inputs is of the type list with one of ndarray; give arrays by name"),
        ("numba", [], "inputs is of the type list; give arrays by name"),
        ("numba", {1: x}, "the name of a tensor is 1; give text, such as '1'"),
        (3, {"x": x}, "candidate is 3; give a function, or a name such as 'numba'"),
    ):
        with pytest.raises(TypeError, match=said):
            mor_ref.verify(candidate, inputs=inputs, recipe="mxfp8")
    for one in ("mxfp8", {"representation": "mx"}):  # and not its letters or keys
        with pytest.raises(TypeError, match="; give a list of recipes, such as .'mxfp8:rceil'."):
            compare(x, one)


def test_files_are_given_as_a_list(tmp_path):
    """Random words may be in a file of their own."""
    x, words = np.ones((2, 64), np.float32), np.full((2, 64), 3, np.uint16)
    files = [tmp_path / "x.safetensors", tmp_path / "words.safetensors"]
    save_file({"a": x, "b": x}, files[0])
    save_file({"a/random_word": words, "b/random_word": words}, files[1])
    report = mor_ref.verify("numba", inputs=files, recipe="mxfp8:n_random_bits=16")
    assert (report.verdict, report.results[0].case_names) == ("match", ("a", "b"))
    report = mor_ref.verify("numba", inputs=(str(files[0]),), recipe="mxfp8")
    assert report.results[0].case_names == ("a", "b")


def test_bits_that_may_differ_and_inputs_that_are_left_out():
    """The arguments are those of the command."""

    def other_nans(operation, parameters, inputs):
        found = OPERATIONS[operation].exact(parameters, inputs)
        return {"y": np.where(found["y"] == 0x7FFFFFFF, 0x7FC00000, found["y"]).astype(np.uint32)}

    x = np.ones((3, 32), np.float32)
    x[1, 4] = np.nan
    asked = {"inputs": {"x": x}, "recipe": "mxfp8"}
    assert mor_ref.verify(other_nans, **asked).verdict == "mismatch"
    assert mor_ref.verify(other_nans, **asked, nan="any").verdict == "match"
    assert mor_ref.verify(other_nans, **asked, domain="finite").verdict != "mismatch"
    for name in ("nan", "zero_sign", "domain"):
        with pytest.raises(ValueError, match="is 'nothing'"):
            mor_ref.verify(other_nans, **asked, **{name: "nothing"})


@pytest.mark.tier("full")
def test_memory_does_not_grow_with_the_number_of_tensors(tmp_path):
    """Twenty tensors of 8 megabytes more are verified; the memory grows by less than half."""
    results = tmp_path / "results"
    results.mkdir()

    def megabytes(count):
        x = np.random.default_rng(0).standard_normal((1 << 10, 2 << 10), dtype=np.float32)
        save_file({f"x{k}": x for k in range(count)}, tmp_path / "in.safetensors")
        file = tmp_path / "in.safetensors"
        megabytes_of(
            "quantize", file, "--recipe", "mxfp8", "--out", results / f"{SUITE}.safetensors"
        )
        return [
            megabytes_of("verify", candidate, "--inputs", file, "--recipe", "mxfp8")
            for candidate in ("numba", f"dir:{results}")
        ]

    for few, many in zip(megabytes(4), megabytes(24), strict=True):
        assert many - few < 80


BYTES = "[1, 3]: 0x6A (low 0xA = -1, high 0x6 = 4) where 0x5A (low 0xA = -1, high 0x5 = 3) is "
PACKED = {
    "packed": f"{BYTES}expected, high nibble 1 ulp above; x[1, 6] is",
    "code@packed": "[1, 7]: 0x6 (4) where 0x5 (3) is expected, 1 ulp above; x[1, 7] is",
}


@pytest.mark.tier("full")
@pytest.mark.parametrize("name", PACKED)
def test_a_byte_that_differs_is_shown_as_codes(name):
    """VEC-005, NVF-011. A zero of the other sign is allowed in each half."""

    def kernel(_, __, inputs):
        packed = mor_ref.quantize_nvfp4(inputs["x"].view(np.float32)).packed.copy()
        packed[0, 0] ^= 0x80
        packed[1, 3] = 0x6A if packed[1, 3] == 0x5A else -1
        return {name: packed}

    x = np.random.default_rng(0).standard_normal((4, 64), dtype=np.float32)
    x[0, 1] = 0
    found = mor_ref.verify(kernel, inputs={"x": x}, recipe="nvfp4", zero_sign="any")
    (difference,) = found.results[0].differences
    assert difference.count == 1
    assert PACKED[name] in str(found)
    assert [kind.words for kind in difference.kinds] == ["1 ulp above"]
    assert found.conformance.allowed.startswith("0 NaNs with other bits and 1 zero")
    exact = mor_ref.verify(kernel, inputs={"x": x}, recipe="nvfp4").results[0].differences[0]
    assert exact.count == 2
    assert "the sign of zero" in {kind.words for kind in exact.kinds}


def test_tensors_that_no_recipe_takes_are_named_and_the_others_done(run, tmp_path):
    """By default the status is that of the others; with --complete it is 1."""
    mine, out = tmp_path / "mine.safetensors", tmp_path / f"{SUITE}.safetensors"
    x, wide = np.ones((2, 32), np.float32), np.ones((3, 4))
    save_file({"x": x, "wide": wide, "ids": np.arange(3), "none": x[:0]}, mine)
    skipped = [
        "rounded from float64 to float32 first (QNT-004): wide",
        "skipped: 2 tensors",
        "  ids (3 I64): it holds integers",
        "  none (0x32 f32): it is empty",
    ]
    asked = ("--recipe", "mxfp8")
    for command in (
        ("quantize", mine, *asked, "--out", out),
        ("verify", f"dir:{tmp_path}", "--inputs", mine, *asked, "--report", tmp_path / "r.xml"),
    ):
        for more, expected in (((), 0), (("--complete",), 1), (("--include", "x"), 0)):
            status, printed, _ = run(*command, *more)
            assert status == expected, (command, more)
            lines = printed.splitlines()
            assert ([one for one in lines if one in skipped] == skipped) == (
                "--include" not in more
            )
    assert {*load_file(out)} == {"x/code", "x/scale", "x/y"}
    run(*command)
    assert (tmp_path / "r.xml").read_text().count("<skipped") == 3
    status, _, errors = run(*command, "--include", "no|ids")
    assert status == 2
    assert (
        "inputs have no tensor that a recipe takes: ids (3 I64): it holds integers; none ("
        in errors
    )


def test_a_report_says_how_many_expected_bits_are_from_the_engine():
    """Those of tensors of more than 16,384 numbers, whatever the candidate answers, in each form
    of the report; and which tensors were rounded first.
    """
    small, large = np.ones((128, 128), np.float32), np.ones((128, 129), np.float32)

    def nothing(*_given):
        return None

    said = "the expected bits of 2 large tensors are those of the engine, not of the exact model"
    given = {"a": small, "b": large, "c": large}
    for candidate in ("numba", nothing):
        report = mor_ref.verify(candidate, inputs=given, recipe="mxfp8")
        assert said in str(report).splitlines()
        assert json.loads(as_json(report))["expected_from_engine"] == 2
        assert f"<p>T{said[1:]}</p>" in as_html(report)
        assert f'<property name="expected bits" value="{said}" />' in as_junit(report)
    report = mor_ref.verify("numba", inputs={"a": small}, recipe="mxfp8")
    assert "engine" not in str(report)
    assert json.loads(as_json(report))["expected_from_engine"] == 0
    assert "expected bits" not in as_html(report) + as_junit(report)
    report = mor_ref.verify("numba", inputs={"a": small.astype(np.float64)}, recipe="mxfp8")
    rounded = "ounded from float64 to float32 first (QNT-004): a"
    assert f"<p>R{rounded}</p>" in as_html(report)
    assert f'value="r{rounded}" />' in as_junit(report)
