"""Analyzing: every number is that of mor, and of numpy."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from analyzing import BF16, POLICIES, expected, heavy, run, with_specials, write
from extras import imported, needs

import mor_ref
from mor_ref import MeanRelativeError, Policy, Rung
from mor_ref.analysis.analyze_tensor import analyze, settings_for
from mor_ref.analysis.data_frames import to_records
from mor_ref.analysis.recipes import settings_under

__all__ = ["run"]  # a fixture

DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": BF16}


def tensors_of(dtype):
    wide = {
        "weight": heavy((150, 140), 0.3),
        "spread": heavy((64, 300), 3, 1),
        "broken": with_specials(heavy((130, 20), 1, 2)),
        "cube": heavy((3, 50, 40), 1, 3),
        "vector": heavy(77, 1, 4),
    }
    with np.errstate(over="ignore"):  # some do not fit a binary16
        return {name: x.astype(dtype) for name, x in wide.items()}


def fields(record, wanted):
    return {name: record[name] for name in wanted}


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("policy", POLICIES)
def test_every_number_is_that_of_mor_and_of_numpy(run, tmp_path, suffix, dtype, policy):
    tensors = tensors_of(DTYPES[dtype])
    path = write(tmp_path / f"model{suffix}", tensors)
    found = json.loads(run(path, "--policy", policy, "--json", "--block", "32x16"))
    assert sorted(record["name"] for record in found["tensors"]) == sorted(tensors)
    for record in found["tensors"]:
        wanted = expected(tensors[record["name"]], policy, block=(32, 16))
        assert fields(record, wanted) == wanted
        assert (record["dtype"], record["file"]) == (dtype, str(path))
        assert record["overflows"] == 0
    assert {record["decision"] for record in found["tensors"]} == (
        {"e4m3", "bf16"} if policy == "tensor" else {None}
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_npy_file_has_one_tensor_named_as_the_file(run, tmp_path, dtype, order):
    x = np.asarray(with_specials(heavy((40, 30), 2)).astype(DTYPES[dtype]), order=order)
    write(tmp_path / "x.npy", {"x": x})
    (record,) = json.loads(run("x.npy", "--json"))["tensors"]
    wanted = expected(x, "tensor") | {"name": "x.npy", "file": "x.npy", "dtype": dtype}
    assert fields(record, wanted) == wanted


def test_numbers_in_the_other_byte_order_are_the_same_numbers(run):
    x = heavy((40, 30), 2).astype(np.float32)
    np.save("big.npy", x.astype(">f4"))
    np.savez("big.npz", x=x.astype(">f4"))
    first, second = json.loads(run("big.npy", "big.npz", "--json"))["tensors"]
    wanted = expected(x, "tensor") | {"dtype": "f32"}
    assert fields(first, wanted) == fields(second, wanted) == wanted


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors"])
@pytest.mark.parametrize("shape", [(), (0,), (0, 4), (4, 0), (1,), (5,), (2, 0, 3)])
def test_scalars_empty_tensors_and_vectors(run, tmp_path, shape, suffix, policy):
    x = np.full(shape, 0.375, np.float32)
    path = write(tmp_path / f"x{suffix}", {"x": x})
    text = run(path, "--policy", policy)
    assert ("scalar" if shape == () else "x".join(map(str, shape))) in text
    found = json.loads(run(path, "--policy", policy, "--json"))
    wanted = expected(x, policy)
    assert fields(found["tensors"][0], wanted) == wanted
    assert found["totals"]["elements"] == x.size
    assert sum(found["totals"]["units"].values()) == (1 if x.size else 0)
    has_distance = x.size > 0 and policy in ("tensor", "nvfp4")
    assert (found["tensors"][0]["distance"] is not None) == has_distance


def test_a_binary64_counts_as_the_binary32_that_mor_takes_it_for():
    x = np.array([1e300, 1e-300, -1e-46, 3.0, 0.0, np.nan, 0.1])
    report = analyze(x, settings_for()).report
    assert (report.nonfinite, report.zeros, report.amax) == (2, 3, 3.0)
    assert report.amin == float(np.float32(0.1))


def test_everything_that_mor_takes_can_be_analyzed():
    x = heavy((24, 40), 1)
    settings = settings_for("nvfp4", block="8x16")
    for given in (x, x.tolist(), memoryview(x), x.astype(">f8"), x[::-1], 0.375, [], x[:0]):
        array = np.asarray(given, np.float64)
        report = analyze(given, settings).report
        assert report == analyze(array.copy(), settings).report
        assert (report.dtype, report.shape) == ("float64", array.shape)
    for refused in (np.ones(3, np.bool_), np.ma.masked_array([1.0]), "1", [True, 2]):
        with pytest.raises(TypeError, match=r"^x (has|is|holds) "):
            analyze(refused, settings)


@needs("torch")
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("policy", POLICIES)
def test_tensors_of_torch(dtype, policy):
    torch = imported("torch")
    tensor = torch.from_numpy(with_specials(heavy((24, 40), 1))).to(getattr(torch, dtype))
    array = tensor.to(torch.float64).numpy().astype(BF16 if dtype == "bfloat16" else dtype)
    for ours, theirs in (
        (array, tensor),
        (array.T, tensor.T),
        (array[0, 0], tensor[0, 0].requires_grad_()),
        (array[:0], torch.nn.Parameter(tensor[:0])),
    ):
        mine, other = (analyze(x, settings_for(policy, block="8x16")) for x in (ours, theirs))
        assert mine.report == other.report
        assert np.array_equal(mine.blocks.error, other.blocks.error)
    assert mine.report.dtype == dtype


def test_finite_numbers_that_would_become_infinite_are_counted_apart(run):
    x = np.array([3.4e38, np.inf, 1.0, 1.0, 1.0], np.float32)
    report = analyze(x, settings_for()).report
    result = mor_ref.mor(x)
    assert int(result.error["e4m3"].nonfinite.sum()) == 2
    assert (report.nonfinite, report.overflows, report.zeros) == (1, 1, 0)
    assert report.decision == "bf16"
    np.savez("x.npz", x=x, y=np.ones(2, np.float32))
    lines = run("x.npz").splitlines()
    assert "x: 1 finite number would become infinite in e4m3" in lines
    assert sum("infinite" in line for line in lines) == 1


def test_more_elements_than_are_looked_at_at_once():
    x = np.ones((1 << 20) + 5, np.float32)
    x[[0, 1 << 19, -1]] = np.nan, np.inf, -np.inf
    x[(1 << 20) + 1] = 0.0
    report = analyze(x, settings_for()).report
    assert (report.nonfinite, report.zeros) == (3, 1)


def test_options_are_those_of_mor(run):
    x = heavy((64, 96), 2).astype(np.float32)
    np.save("x.npy", x)
    for block, cut in (("row", "row"), ("column", "column"), ("tensor", "tensor"), ("8x4", (8, 4))):
        for scaling in ("gam", "e8m0", "fp32"):
            found = json.loads(
                run("x.npy", "--json", "--block", block, "--scaling", scaling, "--threads", "1")
            )
            wanted = expected(x, "tensor", block=cut, scaling=scaling)
            assert fields(found["tensors"][0], wanted) == wanted
            assert (found["block"], found["scaling"]) == (
                list(cut) if isinstance(cut, tuple) else cut,
                scaling,
            )
    (error,) = {expected(x, "tensor")["error"]}
    for threshold in (math.nextafter(error, 0) - 1e-6, error + 1e-6):
        record = json.loads(run("x.npy", "--json", "--threshold", threshold))["tensors"][0]
        assert record["decision"] == ("e4m3" if threshold > error else "bf16")
        assert record["distance"] == pytest.approx(error - threshold, abs=2**-23)


def test_the_distance_is_to_the_limit_that_decides():
    """0 is not below the threshold, and the next threshold that there is accepts (MOR-002)."""
    for step in range(100):
        x = np.array([448.0, 1.0 + step / 512], np.float32)
        sums = mor_ref.mor(x, block="tensor").error["e4m3"]
        total, count = int(sums.sum.sum()), int(sums.nonzero.sum())
        if total and total % count == 0:
            break
    limit = total // count
    for more, decision in ((0, "bf16"), (1, "e4m3")):
        threshold = str(Fraction(limit + more, 2**23))
        report = analyze(x, settings_for(block="tensor", threshold=threshold)).report
        assert (report.decision, report.distance) == (decision, -more / 2**23)


def test_distances_are_given_where_the_first_rung_has_a_threshold(run):
    np.save("x.npy", heavy((64, 96), 0.5).astype(np.float32))
    found = {policy: json.loads(run("x.npy", "--json", "--policy", policy)) for policy in POLICIES}
    assert [found[policy]["thresholds"] for policy in POLICIES] == [
        {"e4m3": 0.045},
        {},
        {},
        {"nvfp4": 0.2, "e4m3": 0.045},
    ]
    for policy, limit in zip(POLICIES, (377487, None, None, 1677722), strict=True):
        (record,) = found[policy]["tensors"]
        assert record["distance"] == (None if limit is None else record["error"] - limit / 2**23)
        assert found[policy]["error_in"] == ("nvfp4" if policy == "nvfp4" else "e4m3")
    changed = json.loads(run("x.npy", "--json", "--policy", "nvfp4", "--threshold", "0.5"))
    assert changed["thresholds"] == {"nvfp4": 0.2, "e4m3": 0.5}
    both = ("--threshold", "nvfp4=0.1", "--threshold", "0.05")
    changed = json.loads(run("x.npy", "--json", "--policy", "nvfp4", *both))
    assert changed["thresholds"] == {"nvfp4": 0.1, "e4m3": 0.05}
    (record,) = changed["tensors"]
    assert record["distance"] == record["error"] - MeanRelativeError("0.1").limit / 2**23


def test_the_decisions_are_those_of_the_thresholds_that_are_named(run):
    x = heavy((64, 96), 0.5).astype(np.float32)
    np.save("x.npy", x)
    given = ("--threshold", "nvfp4=0.18", "--threshold", "e4m3=1/40")
    found = json.loads(run("x.npy", "--json", "--policy", "nvfp4", "--block", "8x16", *given))
    ladder = (
        Rung("nvfp4", MeanRelativeError("0.18")),
        Rung("e4m3", MeanRelativeError(Fraction(1, 40))),
    )
    wanted = mor_ref.mor(x, Policy("ours", ladder, unit="block", block=(8, 16)))
    counts = [int((wanted.choice == rung).sum()) for rung in range(3)]
    assert list(found["totals"]["units"].values()) == counts
    assert min(counts[:2]) >= 5


def test_thresholds_by_kind_and_layer(run):
    """MOR-015: of a rung, and the last that is for a tensor; files have weights."""
    x = heavy((64, 96), 0.5).astype(np.float32)
    np.savez("x.npz", **{"layers.0.weight": x, "layers.1.weight": x})
    policy, many = ("--policy", "nvfp4", "--block", "8x16", "--json"), "--threshold"
    given = ("nvfp4=0.01", "nvfp4:weight=0.16", "nvfp4:layers.1:weight=0.18", "nvfp4:gradient=0.14")

    def units(*more):
        found = json.loads(
            run("x.npz", *policy, *(word for t in given for word in (many, t)), *more)
        )
        assert found["thresholds"]["nvfp4"] == {
            "*": 0.01, "weight": 0.16, "layers.1:weight": 0.18, "gradient": 0.14,
        }  # fmt: skip
        return [list(tensor["units"].values()) for tensor in found["tensors"]]

    def expected(threshold):
        wanted = mor_ref.mor(x, "nvfp4", block=(8, 16), threshold={"nvfp4": threshold})
        return [int((wanted.choice == rung).sum()) for rung in range(3)]

    assert units() == [expected("0.16"), expected("0.18")]
    assert units("--kind", "gradient") == [expected("0.14")] * 2
    assert units("--kind", "activation") == [expected("0.01")] * 2
    assert expected("0.16") != expected("0.18") != expected("0.14")
    table = run("x.npz", "--policy", "nvfp4", many, "nvfp4:weight=0.16")
    assert "vs" not in table.splitlines()[0]


def test_a_recipe_is_the_policy_the_block_and_the_scales_that_it_says(run):
    np.save("x.npy", heavy((64, 96), 2).astype(np.float32))
    options = ("--policy", "three_way", "--block", "16x8", "--scaling", "e8m0")
    by_recipe = run("x.npy", "--json", "--recipe", "mor:three_way:16x8:e8m0")
    assert by_recipe == run("x.npy", "--json", *options)
    limit = ("--threshold", "0.5")
    assert run("x.npy", *limit, "--recipe", "mor:tensor") == run("x.npy", *limit)


def test_names_choose_tensors(run, tmp_path):
    """The totals are of those that are left, and the others are counted with the reason."""
    x = heavy((16, 16), 2).astype(np.float32)
    path = write(tmp_path / "x.npz", {"a.weight": x, "b.weight": x, "b.bias": x[0]})
    found = json.loads(run(path, "--json", "--include", "weight$", "--exclude", "^a"))
    assert [record["name"] for record in found["tensors"]] == ["b.weight"]
    assert found["totals"]["elements"] == 256
    assert found["left_out"] == {"not named as --include weight$": 1, "named as --exclude ^a": 1}
    assert "left out: 1 tensor, named as --exclude bias" in run(path, "--exclude", "bias")


@pytest.mark.parametrize("recipe", ["e5m2:fp32:row", "mxfp8:rceil", "nvfp4:torchao"])
def test_a_recipe_may_be_a_representation_alone(run, recipe):
    x = heavy((64, 96), 0.5).astype(np.float32)
    np.save("x.npy", x)
    found = json.loads(run("x.npy", "--json", "--recipe", recipe))
    given = {
        "e5m2:fp32:row": lambda: mor_ref.quantize(x, "e5m2", scaling="fp32", block="row"),
        "mxfp8:rceil": lambda: mor_ref.quantize_mx(x, "e4m3", scale_rule="rceil"),
        "nvfp4:torchao": lambda: mor_ref.quantize_nvfp4(x, profile="torchao"),
    }
    (record,) = found["tensors"]
    assert record["error"] == given[recipe]().error.overall
    assert (record["decision"], record["distance"]) == (found["ladder"][0], None)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--policy", "tensor"], "policy is 'tensor', and recipe 'mor' decides it alone"),
        (["--block", "row"], "block is 'row', and recipe 'mor' decides it alone"),
        (["--scaling", "gam"], "scaling is 'gam', and recipe 'mor' decides it alone"),
    ],
)
def test_a_recipe_and_an_option_that_says_the_same_are_refused(run, options, said):
    np.save("x.npy", np.ones((2, 2), np.float32))
    assert f"mor-ref: {said}" in run("x.npy", "--recipe", "mor", *options, status=2)


def test_a_recipe_without_a_decision_is_refused():
    for recipe in ('{ representation = "unquantized" }', '{ representation = "delayed" }'):
        with pytest.raises(ValueError, match=r"which decides nothing|needs the steps of"):
            settings_under(recipe)


def test_records_are_flat():
    x = heavy((64, 96), 2).astype(np.float32)
    report = analyze(x, settings_for("two_way", block="8x16"), file="f", name="w").report
    (record,) = to_records([report])
    assert (record["file"], record["tensor"], record["shape"]) == ("f", "w", "64x96")
    result = mor_ref.mor(x, "two_way", block=(8, 16))
    for name in ("e4m3", "e5m2"):
        assert record[f"error {name}"] == result.error[name].overall
    assert record["units bf16"] == int((result.choice == 1).sum())
    assert all(isinstance(cell, str | int | float | None) for cell in record.values())
