"""`mor-ref analyze`: files of every kind, held to mor itself and to plain NumPy."""

import json
import math
import os
import subprocess
import sys
import tracemalloc
import weakref
import zipfile
from dataclasses import FrozenInstanceError
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from extras import imported
from safetensors.numpy import save_file

import mor_ref
from mor_ref import MeanRelativeError, Policy, Rung, cli
from mor_ref.analysis.tensor_files import SkippedTensor, StoredTensor, tensors_in
from mor_ref.analysis.tensors import analyze, settings_for, worth_a_map
from mor_ref.analysis.totals import totals_of

BF16 = ml_dtypes.bfloat16
DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": BF16}
POLICIES = ("tensor", "two_way", "three_way", "nvfp4")


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """The command, in this process and in a folder of its own: what it prints, and its status."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run_it(*arguments, status=0):
        monkeypatch.setattr(sys, "argv", ["mor-ref", "analyze", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        assert (ended.value.code or 0) == status, printed.err + printed.out
        return printed.out if status == 0 else printed.err

    return run_it


def heavy(shape, spread, seed=0):
    """Numbers whose magnitudes spread over many binades, with zeros of both signs."""
    random = np.random.default_rng(seed)
    x = random.standard_normal(shape) * np.exp(random.standard_normal(shape) * spread)
    x[random.random(shape) < 0.05] = 0.0
    x[random.random(shape) < 0.02] = -0.0
    return x


def with_specials(x):
    """The same with numbers that are not finite, and a subnormal of every format but binary64."""
    x = x.copy()
    x.flat[[1, 5, 11]] = np.nan, np.inf, -np.inf
    x.flat[2] = 6e-8
    return x


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


def write(path, tensors):
    """A file of that kind; a .npy file takes the only tensor."""
    if path.suffix == ".npy":
        np.save(path, *tensors.values())
    elif path.suffix == ".npz":
        np.savez_compressed(path, **tensors)
    else:
        save_file(tensors, path)
    return path


def taken(x, found):
    """How many numbers took each representation: each block as high and wide as it is there."""
    rows, columns = (x.size // x.shape[-1] if x.size else 0, x.shape[-1]) if x.shape else (1, 1)
    height, width = found.units.block
    of_each = np.repeat(np.repeat(found.choice, height, axis=0), width, axis=1)[:rows, :columns]
    return {name: int((of_each == rung).sum()) for rung, name in enumerate(found.ladder)}


def expected(x, policy, **arguments):
    """What there is to say of a tensor, from mor itself and from NumPy."""
    result = mor_ref.mor(x, policy, **arguments)
    first = result.policy.names[0]
    wide = x.astype(np.float32).astype(np.float64)
    finite = np.abs(wide[np.isfinite(wide) & (wide != 0)])
    amax, amin = (float(finite.max()), float(finite.min())) if finite.size else (None, None)
    has_one = policy == "tensor" and x.size
    return {
        "shape": list(x.shape),
        "decision": result.ladder[int(result.choice[0, 0])] if has_one else None,
        "taken": taken(x, result),
        "shares": {name: n / max(x.size, 1) for name, n in taken(x, result).items()},
        "unit_shares": result.shares,
        "error": result.error[first].overall,
        "zeros": int((wide == 0).sum()),
        "nonfinite": int((~np.isfinite(wide)).sum()),
        "amax": amax,
        "amin": amin,
        "dynamic_range": amax / amin if finite.size else None,
        "log2_dynamic_range": math.log2(amax / amin) if finite.size else None,
    }


def fields(record, wanted):
    return {name: record[name] for name in wanted}


# ---------------------------------------------------------------------- values


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
    for refused in (np.ones(3, np.int32), np.ma.masked_array([1.0]), "1", [1, 2]):
        with pytest.raises(TypeError, match=r"^x (has|is|holds) "):
            analyze(refused, settings)


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
    assert "x: 1 finite number would become infinite under e4m3" in lines
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


# ---------------------------------------------------------------------- totals


def test_the_totals_of_a_tensor_policy_count_tensors(run):
    np.savez(
        "x.npz",
        good=np.full((200, 300), 1.5, np.float32),
        also=np.ones(3, np.float32),
        zero=np.zeros(5, np.float32),
        bad=np.array([1.0, np.nan], np.float32),
        none=np.zeros((0, 3), np.float32),
    )
    totals = json.loads(run("x.npz", "--json"))["totals"]
    assert totals == {
        "tensors": 5,
        "elements": 60010,
        "units": {"e4m3": 3, "bf16": 1},
        "taken": {"e4m3": 60008, "bf16": 2},
        "bits": {"e4m3": 8, "bf16": 16},
        "shares": {"e4m3": 60008 / 60010, "bf16": 2 / 60010},
        "unit_shares": {"e4m3": 0.75, "bf16": 0.25},
        "width_shares": {"8": 60008 / 60010, "16": 2 / 60010},
        "unit_width_shares": {"8": 0.75, "16": 0.25},
    }
    text = run("x.npz")
    assert "5 tensors, 60,010 elements\n" in text
    assert "share of tensors: e4m3 75.0 % (3), bf16 25.0 % (1)\n" in text
    assert "share of elements: e4m3 >99.9 %, bf16 <0.1 %\n" in text
    assert "in FP8: 75.0 % of tensors, >99.9 % of elements\n" in text


def three_kinds_of_blocks():
    """Four rows of four blocks of 2x4: twelve for e4m3, one for e5m2, three for bf16."""
    x = np.ones((8, 16), np.float32)
    for row, column in ((0, 0), (4, 4), (6, 12)):
        x[row, column] = np.nan
    x[2, 8:12] = 2.0 ** np.arange(0, -28, -7)
    return x


def test_the_totals_of_other_policies_count_blocks(run):
    np.savez("x.npz", x=three_kinds_of_blocks(), y=np.ones((4, 4), np.float32))
    found = json.loads(run("x.npz", "--json", "--policy", "three_way", "--block", "2x4"))
    assert [record["units"] for record in found["tensors"]] == [
        {"e4m3": 12, "e5m2": 1, "bf16": 3},
        {"e4m3": 2, "e5m2": 0, "bf16": 0},
    ]
    assert found["totals"] == {
        "tensors": 2,
        "elements": 144,
        "units": {"e4m3": 14, "e5m2": 1, "bf16": 3},
        "taken": {"e4m3": 112, "e5m2": 8, "bf16": 24},
        "bits": {"e4m3": 8, "e5m2": 8, "bf16": 16},
        "shares": {"e4m3": 112 / 144, "e5m2": 8 / 144, "bf16": 24 / 144},
        "unit_shares": {"e4m3": 14 / 18, "e5m2": 1 / 18, "bf16": 3 / 18},
        "width_shares": {"8": 120 / 144, "16": 24 / 144},
        "unit_width_shares": {"8": 15 / 18, "16": 3 / 18},
    }
    text = run("x.npz", "--policy", "three_way", "--block", "2x4")
    assert "share of blocks: e4m3 77.8 % (14), e5m2 5.6 % (1), bf16 16.7 % (3)\n" in text
    assert "share of elements: e4m3 77.8 %, e5m2 5.6 %, bf16 16.7 %\n" in text
    assert "in FP8: 83.3 % of blocks, 83.3 % of elements\n" in text


def test_blocks_count_as_large_as_they_are(run):
    """A LayerNorm has eight small blocks, and a matrix sixteen large ones."""
    norm = np.full(1000, np.nan, np.float32)
    norm[:128] = 1.5
    np.savez("x.npz", weight=np.ones((512, 512), np.float32), norm=norm)
    found = json.loads(run("x.npz", "--json", "--policy", "nvfp4"))
    elements = 512 * 512 + 1000
    assert found["totals"]["units"] == {"nvfp4": 17, "e4m3": 0, "bf16": 7}
    assert found["totals"]["taken"] == {"nvfp4": 512 * 512 + 128, "e4m3": 0, "bf16": 872}
    assert found["totals"]["shares"]["bf16"] == 872 / elements
    assert found["tensors"][1]["shares"] == {"nvfp4": 0.128, "e4m3": 0.0, "bf16": 0.872}
    text = run("x.npz", "--policy", "nvfp4")
    assert text.splitlines()[-6:] == [
        "nvfp4 %, e4m3 %, bf16 %: shares of the elements",
        "2 tensors, 263,144 elements, 24 blocks",
        "share of blocks: nvfp4 70.8 % (17), e4m3 0.0 % (0), bf16 29.2 % (7)",
        "share of elements: nvfp4 99.7 %, e4m3 0.0 %, bf16 0.3 %",
        "in FP4: 70.8 % of blocks, 99.7 % of elements",
        "in FP8: 0.0 % of blocks, 0.0 % of elements",
    ]


@pytest.mark.parametrize("block", ["7x5", "64x1", "1x1", "200x300", "row", "column", "tensor"])
def test_every_number_is_counted_once(block):
    for shape in ((64, 23), (3, 9, 7), (50,), (), (0, 3)):
        x = heavy(shape or (1,), 3).astype(np.float32).reshape(shape)
        report = analyze(x, settings_for("three_way", block=block)).report
        cut = tuple(map(int, block.split("x"))) if "x" in block else block
        assert report.taken == taken(x, mor_ref.mor(x, "three_way", block=cut))
        assert sum(report.taken.values()) == x.size


def test_nvfp4_has_four_bits():
    settings = settings_for("nvfp4", block="1x16")
    x = np.ones((2, 16), np.float32)
    x[1, 3] = np.nan
    totals = totals_of([analyze(x, settings).report], settings)
    assert totals.units == {"nvfp4": 1, "e4m3": 0, "bf16": 1}
    assert totals.width_shares == {4: 0.5, 8: 0.0, 16: 0.5}
    own = Policy("own", (Rung("e2m3", MeanRelativeError(1)), Rung("e5m2", MeanRelativeError(1))))
    assert totals_of([], settings_for(own)).bits == {"e2m3": 6, "e5m2": 8, "bf16": 16}
    assert totals_of([], settings).shares == {"nvfp4": 0.0, "e4m3": 0.0, "bf16": 0.0}


def test_the_map_is_of_the_most_divided_tensor_or_of_the_worst():
    by_block = settings_for("three_way", block="2x4")
    mixed = analyze(three_kinds_of_blocks(), by_block).report
    lost = analyze(np.full((8, 16), np.nan, np.float32), by_block).report
    good = analyze(np.ones((8, 16), np.float32), by_block).report
    assert (mixed.minority, lost.minority, good.minority) == (4, 0, 0)
    assert worth_a_map(mixed) > worth_a_map(lost) > worth_a_map(good)
    near, far, broken = (
        analyze(x, settings_for()).report
        for x in (heavy((40, 40), 0.1), heavy((40, 40), 4), np.array([np.nan]))
    )
    assert worth_a_map(far) > worth_a_map(broken) > worth_a_map(near)


# ---------------------------------------------------------------------- what lies in files


def test_what_holds_no_floats_is_skipped_with_a_reason(run, tmp_path):
    others = {
        "count": np.arange(6, dtype=np.int64).reshape(2, 3),
        "mask": np.ones(3, bool),
        "small": np.ones(4, ml_dtypes.float8_e4m3fn),
        "x": np.ones(3, np.float32),
    }
    write(tmp_path / "x.npz", others | {"z": np.ones(2, complex), "text": np.array(["a"])})
    write(tmp_path / "x.safetensors", others)
    np.save("wide.npy", np.ones(2, np.longdouble))
    found = json.loads(run("x.npz", "x.safetensors", "wide.npy", "--json"))
    assert [record["name"] for record in found["tensors"]] == ["x", "x"]
    assert {(s["file"], s["name"]): s["reason"].split(",")[0] for s in found["skipped"]} == {
        ("x.npz", "count"): "it holds integers",
        ("x.npz", "mask"): "it holds booleans",
        ("x.npz", "small"): "it holds records or raw bytes",
        ("x.npz", "z"): "it holds complex numbers",
        ("x.npz", "text"): "it holds no numbers",
        ("x.safetensors", "count"): "it holds integers",
        ("x.safetensors", "mask"): "it holds booleans",
        ("x.safetensors", "small"): (
            "it holds floats of so few bits that they are quantized already"
        ),
        ("wide.npy", "wide.npy"): "it holds floats wider than f64",
    }
    text = run("x.npz", "x.safetensors", "wide.npy")
    assert "skipped: count in x.npz (2x3 int64): it holds integers\n" in text
    assert "skipped: small in x.safetensors (4 F8_E4M3): it holds floats of so few" in text
    assert "skipped: wide.npy (2 " in text
    assert "2 tensors, 6 elements" in text


def test_what_is_no_array_in_a_npz_is_skipped(run):
    np.savez("x.npz", x=np.ones(3, np.float32))
    with zipfile.ZipFile("x.npz", "a") as archive:
        archive.writestr("readme.txt", "hello")
    assert "skipped: readme.txt in x.npz (scalar -): it is not a .npy file" in run("x.npz")


def test_files_without_tensors_are_said_to_be_so(run, tmp_path):
    np.savez("none.npz")
    save_file({}, tmp_path / "none.safetensors")
    text = run("none.npz", "none.safetensors")
    assert text == (
        "none.npz holds no tensors\nnone.safetensors holds no tensors\n0 tensors, 0 elements\n"
    )
    found = json.loads(run("none.npz", "none.safetensors", "--json"))
    assert found["files_without_tensors"] == ["none.npz", "none.safetensors"]
    assert (found["tensors"], found["totals"]["width_shares"]) == ([], {"8": 0, "16": 0})


def test_the_layers_of_a_safetensors_file_are_in_the_order_of_their_numbers(tmp_path):
    names = ["embed", "layers.2.w", "layers.10.w", "layers.10.w2", "norm"]
    path = write(tmp_path / "x.safetensors", {name: np.ones(2, np.float32) for name in names[::-1]})
    assert [tensor.name for tensor in tensors_in(str(path))] == names


def test_records_are_frozen_and_know_shape_and_dtype_before_anything_is_read(tmp_path):
    path = write(tmp_path / "x.npz", {"x": np.ones((2, 3), BF16), "n": np.arange(4)})
    x, n = tensors_in(str(path))
    path.unlink()
    assert isinstance(x, StoredTensor)
    assert (x.name, x.shape, x.dtype) == ("x", (2, 3), "bf16")
    assert n == SkippedTensor("n", (4,), "int64", "it holds integers")
    with pytest.raises(FrozenInstanceError):
        x.name = "y"
    with pytest.raises(ValueError, match=r"x\.npz cannot be read .*No such file"):
        x.load()


@pytest.mark.parametrize("damage", [lambda d: d[:-4], lambda d: d + b"1234"])
def test_the_length_of_a_file_is_looked_at_before_anything_is_read(tmp_path, damage):
    path = write(tmp_path / "x.npy", {"x": np.ones((2, 3), np.float32)})
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(
        ValueError, match=r"shape \(2, 3\) of float32 takes 24 bytes, and 2[08] are"
    ):
        list(tensors_in(str(path)))


def test_a_file_that_is_emptied_meanwhile_is_an_error_too(tmp_path):
    path = write(tmp_path / "x.npy", {"x": np.ones((2, 3), np.float32)})
    (x,) = tensors_in(str(path))
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"x\.npy cannot be read as a \.npy file \(No data left"):
        x.load()


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_tensors_are_loaded_in_row_major_order_and_native_bytes(tmp_path, suffix):
    x = np.asfortranarray(np.arange(6).reshape(2, 3).astype(">f4"))
    (tensor,) = tensors_in(str(write(tmp_path / f"x{suffix}", {"x": x})))
    loaded = tensor.load()
    assert (loaded.dtype, loaded.flags.c_contiguous) == (np.dtype("=f4"), True)
    assert loaded.tolist() == [[0, 1, 2], [3, 4, 5]]


# ---------------------------------------------------------------------- memory


def test_one_tensor_is_in_memory_at_a_time(tmp_path, monkeypatch):
    from mor_ref.cli import analyze as command

    path = write(tmp_path / "x.npz", {f"x{k}": np.ones((64, 64), np.float32) for k in range(6)})
    given = []

    def watched(file):
        for tensor in tensors_in(file):

            def load(tensor=tensor):
                assert [ref() for ref in given] == [None] * len(given)
                x = tensor.load()
                given.append(weakref.ref(x))
                return x

            yield StoredTensor(tensor.name, tensor.shape, tensor.dtype, load)

    monkeypatch.setattr(command, "tensors_in", watched)
    listed = command._list([str(path)])
    assert not given
    reports, _ = command._analyze_all(listed.stored, settings_for(), None)
    assert len(reports) == len(given) == 6


def test_a_large_file_is_not_read_into_memory(tmp_path):
    """256 MiB that the disk does not have either: of each element, 3 bytes are made at once."""
    path = tmp_path / "large.npy"
    x = np.lib.format.open_memmap(path, "w+", np.float32, (8192, 8192))
    x[8191, 8190:] = 2.0, np.nan
    x.flush()
    del x
    tracemalloc.start()
    try:
        (tensor,) = tensors_in(str(path))
        report = analyze(tensor.load(), settings_for()).report
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (report.zeros, report.nonfinite, report.amax) == (2**26 - 2, 1, 2.0)
    assert peak < 3.5 * 2**26


def test_what_does_not_fit_is_said(run, monkeypatch):
    np.save("x.npy", np.ones(3, np.float32))

    def full(*_arguments, **_options):
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr("mor_ref.analysis.tensors.mor", full)
    assert "x.npy does not fit into memory (Unable to allocate 9 TiB)" in run("x.npy", status=2)


# ---------------------------------------------------------------------- mistakes


def sentence(text):
    """The last line that is printed, after the progress bar."""
    assert "Traceback" not in text
    return text.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gone.npy"], "gone.npy is not there; give a file that ends in one of .npy, .npz"),
        (["folder"], "folder is a directory; name the files in it"),
        (["folder.npz"], "folder.npz is a directory; name the files in it"),
        (["x.bin"], "x.bin ends in '.bin'; give a file that ends in one of .npy, .npz"),
        (["empty.npy"], "empty.npy is empty; save or download it again"),
        (["empty.npz"], "empty.npz is empty; save or download it again"),
        (["empty.safetensors"], "empty.safetensors is empty; save or download it again"),
        (["x.npy", "--block", "3by4"], "block is '3by4'; give tensor, row, column, or rows and"),
        (["x.npy", "--block", "-1x4"], "block is '-1x4'; give tensor, row, column, or rows and"),
        (["none.npz", "--block", "0x4"], "a side of block is 0; give an int from 1 to"),
        (["x.npy", "--policy", "tensors"], "policy is 'tensors', which is not known; did you mean"),
        (["x.npy", "--threshold", "2"], "threshold is '2'; give a number above 0 and up to 1"),
        (["x.npy", "--threshold", "a"], "threshold is 'a'; give a number above 0 and up to 1"),
        (
            ["x.npy", "--threshold", "0.1", "--policy", "two_way"],
            "threshold is given, but policy 'two_way' has no mean relative error of 'e4m3'",
        ),
        (
            ["x.npy", "--threshold", "nvfp4=0.1"],
            "threshold is given, but policy 'tensor' has no mean relative error of 'nvfp4'; give",
        ),
        (["x.npy", "--threshold", "e4m3="], "threshold is ''; give a number above 0 and up to 1"),
        (
            ["x.npy", "--threshold", "0.1", "--threshold", "e4m3=0.1"],
            "threshold is given twice for e4m3; give it once",
        ),
        (["x.npy", "--scaling", "fp8"], "scaling is 'fp8', which is not known"),
        (["x.npy", "--threads", "0"], "threads is 0; give an int from 1 to"),
        (["x.npy", "--plot", "x.jpg"], "plot is 'x.jpg'; give a file name that ends in .png"),
        (["x.npy", "--plot", "no/x.png"], "plot is 'no/x.png', which cannot be written; name a"),
        (["x.npy", "--plot", "folder.png"], "plot is 'folder.png', which cannot be written; name"),
        (["x.npy", "--plot", "x.npy/x.png"], "plot is 'x.npy/x.png', which cannot be written; n"),
        (["none.npz", "--plot", "x.png"], "there is nothing to plot: no tensor was analyzed"),
    ],
)
def test_mistakes_are_a_sentence_and_status_2(run, tmp_path, arguments, said):
    if "--plot" in arguments:
        imported("matplotlib")
    np.save("x.npy", np.ones(3, np.float32))
    np.savez("none.npz")
    for name in ("folder", "folder.npz", "folder.png"):
        (tmp_path / name).mkdir()
    for name in ("x.bin", "empty.npy", "empty.npz", "empty.safetensors"):
        (tmp_path / name).touch()
    assert sentence(run(*arguments, status=2)).startswith(f"mor-ref: {said}")


def changed(data, place, text):
    return data[:place] + text + data[place + len(text) :]


def in_directory(data, offset, text):
    """A change to the first entry of the directory at the end of an archive."""
    return changed(data, data.index(b"PK\x01\x02") + offset, text)


CORRUPT = {
    "half a header": (".npy", lambda d: d[:40]),
    "numbers missing": (".npy", lambda d: d[:-4]),
    "numbers left over": (".npy", lambda d: d + b"1234"),
    "no header": (".npy", lambda _: b"hello, this is no array" * 9),
    "a header of nonsense": (".npy", lambda d: changed(d, 12, b"((((((((")),
    "a version to come": (".npy", lambda d: changed(d, 6, b"\x09")),
    "negative sides": (".npy", lambda d: d.replace(b"(16, 16)", b"(-4,-64)")),
    "half an archive": (".npz", lambda d: d[: len(d) // 2]),
    "another number": (".npz", lambda d: changed(d, d.index(b"NUMPY") + 200, b"\xff\xfe")),
    "another checksum": (".npz", lambda d: in_directory(d, 16, b"crc!")),
    "a password": (".npz", lambda d: in_directory(d, 8, b"\x01")),
    "an unknown method": (".npz", lambda d: in_directory(d, 10, b"\x63")),
    "nothing that inflates": (
        ".npz",
        lambda d: in_directory(changed(d, d.index(b"\x93NUMPY"), b"\x07"), 10, b"\x08"),
    ),
    "a member of nonsense": (".npz", lambda d: changed(d, d.index(b"\x93NUMPY"), b"hello!")),
    "half a tensor": (".safetensors", lambda d: d[:-4]),
    "too long a header": (".safetensors", lambda d: changed(d, 0, b"\xff" * 8)),
    "no JSON": (".safetensors", lambda d: changed(d, 8, b"hello")),
    "two bytes": (".safetensors", lambda _: b"hi"),
}


@pytest.mark.parametrize("fault", CORRUPT)
def test_corrupt_files_are_told_from_whole_ones(run, tmp_path, fault):
    suffix, damage = CORRUPT[fault]
    path = tmp_path / f"x{suffix}"
    x = {"x": np.full((16, 16), 1.5, np.float32)}
    np.savez(path, **x) if suffix == ".npz" else write(path, x)
    whole = path.read_bytes()
    run(path.name)
    path.write_bytes(damage(whole))
    assert path.read_bytes() != whole
    said = sentence(run(path.name, status=2))
    assert said.startswith(f"mor-ref: {path.name} cannot be read as a {suffix} file (")
    assert said.endswith("); save or download it again")


class Bomb:
    """What unpickling runs."""

    def __reduce__(self):
        return (os.mkdir, ("unpickled",))


def test_objects_are_never_unpickled(run, tmp_path):
    objects = np.array([Bomb()], object)
    np.save("x.npy", objects)
    np.savez("x.npz", good=np.ones(2, np.float32), bad=objects)
    assert sentence(run("x.npy", status=2)).startswith("mor-ref: x.npy holds Python objects, which")
    said = sentence(run("x.npz", status=2))
    assert said.startswith("mor-ref: bad in x.npz holds Python objects, which are never unpickled")
    assert not (tmp_path / "unpickled").exists()


# ---------------------------------------------------------------------- what is printed


def test_a_table_of_many_tensors_fits_80_columns(run, tmp_path):
    long = "model.layers.{}.self_attn.query_projection.weight"
    tensors = {long.format(k): heavy((64, 32), k % 4, k).astype(BF16) for k in range(12)}
    write(tmp_path / "model.safetensors", tensors | {"w": np.full((3, 4), 1e-7, np.float32)})
    for policy in POLICIES:
        lines = run("model.safetensors", "--policy", policy).splitlines()
        assert max(map(len, lines)) <= 80
        assert lines[1] == "model.safetensors:"
        heading, row = lines[0], lines[lines.index(long.format(2)) + 1]
        assert row.split()[:2] == ["64x32", "bf16"]
        assert (len(row), row[: row.index("64x32")].strip()) == (len(heading), "")
        assert [line for line in lines if line.startswith("w ")]


def test_a_row_says_what_the_json_says(run):
    x = with_specials(heavy((300, 40), 1)).astype(np.float32)
    np.savez("x.npz", x=x, many=np.zeros((1000, 200), np.float32))
    lines = run("x.npz").splitlines()
    wanted = expected(x, "tensor")
    heading = "tensor shape dtype took error % vs 4.5 % zeros NaN,inf range amax amin"
    assert " ".join(lines[0].split()) == heading
    assert lines[2].split() == [
        "x",
        "300x40",
        "f32",
        "bf16",
        f"{100 * wanted['error']:.3g}",
        f"{100 * wanted['error'] - 4.5:+.3g}",
        str(wanted["zeros"]),
        "3",
        f"{wanted['log2_dynamic_range']:.1f}",
        f"{wanted['amax']:.3g}",
        f"{wanted['amin']:.3g}",
    ]
    assert lines[3].split()[6:] == ["0.20M", "0", "-", "-", "-"]


def test_a_name_that_is_wider_than_the_window_is_whole(run, tmp_path):
    name = "layer " * 30
    write(tmp_path / "x.safetensors", {name: np.ones(3, np.float32), name + "n": np.arange(3)})
    lines = run("x.safetensors").splitlines()
    assert lines[2] == name
    assert any(line.startswith(f"skipped: {name}n in x.safetensors (3 I64): it") for line in lines)


def test_several_files_are_told_apart(run, tmp_path):
    x = {"x": np.ones(3, np.float32)}
    for name in ("a.npz", "b.npz", "c.npy"):
        write(tmp_path / name, x)
    lines = run("a.npz", "./c.npy", "b.npz").splitlines()
    assert [line.split()[0] for line in lines[1:6]] == ["a.npz:", "x", "./c.npy", "b.npz:", "x"]


def test_names_do_not_steer_the_terminal(run, tmp_path):
    write(tmp_path / "x.safetensors", {"\x1b[31mred[bold]": np.ones(3, np.float32)})
    text = run("x.safetensors")
    assert "\x1b" not in text
    assert r"'\x1b[31mred[bold]'" in text


def test_the_json_is_one_document_that_says_everything(run):
    np.savez("x.npz", x=with_specials(heavy((30, 40), 1)).astype(np.float32), n=np.arange(3))
    text = run("x.npz", "--json", "--policy", "three_way", "--block", "row")
    found = json.loads(text)
    assert json.loads(json.dumps(found)) == found
    assert text == json.dumps(found, indent=1) + "\n"
    settings = ("policy", "unit", "ladder", "block", "scaling", "error_in")
    assert [found[name] for name in settings] == [
        "three_way",
        "block",
        ["e4m3", "e5m2", "bf16"],
        "row",
        "gam",
        "e4m3",
    ]
    assert found["skipped"] == [
        {
            "file": "x.npz",
            "name": "n",
            "shape": [3],
            "dtype": "int64",
            "reason": "it holds integers",
        }
    ]


# ---------------------------------------------------------------------- the picture


@pytest.fixture
def drawn(run, monkeypatch):
    """The figure that the command draws, besides writing it."""
    figure = imported("matplotlib.figure")
    figures = []
    save = figure.Figure.savefig
    monkeypatch.setattr(
        figure.Figure, "savefig", lambda f, *a, **k: (figures.append(f), save(f, *a, **k))
    )

    def draw(*arguments):
        run(*arguments, "--plot", "x.png")
        return figures.pop()

    return draw


def labels_of(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_the_picture_of_a_tensor_policy(drawn, tmp_path):
    x = heavy((64, 48), 3).astype(np.float32)
    tensors = {"good": np.ones((8, 8), np.float32), "bad": x, "none": np.zeros((0, 2), np.float32)}
    np.savez("x.npz", **tensors)
    figure = drawn("x.npz", "--block", "16x16")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    errors, blocks = figure.axes
    dots = [dots.get_offsets().tolist() for dots in errors.collections]
    error = 100 * mor_ref.mor(x, block=(16, 16)).error["e4m3"].overall
    assert dots == [[[1.0, 0.0]], [[2.0, error]], [[3.0, 0.0]], [[2.0, error]]]
    assert labels_of(errors) == [
        "takes e4m3",
        "stays in bf16",
        "has no elements",
        "shown below",
        "threshold 4.5 %",
    ]
    assert [line.get_ydata()[0] for line in errors.lines] == [pytest.approx(4.5)]
    assert [text.get_text() for text in errors.get_xticklabels()] == ["good", "bad", "none"]
    assert blocks.get_title() == "The worst tensor: bad, 64x48 f32"
    wanted = mor_ref.quantize(x, "e4m3", block=(16, 16)).error.mean_relative_error
    assert np.array_equal(blocks.images[0].get_array(), 100 * wanted)
    assert all(axes.get_xlabel() or axes is errors for axes in figure.axes)
    assert all(axes.get_ylabel() for axes in figure.axes)


def test_the_picture_of_a_block_policy(drawn):
    x = three_kinds_of_blocks()
    np.savez("x.npz", ones=np.ones((4, 4), np.float32), x=x)
    errors, shares, blocks = drawn("x.npz", "--policy", "three_way", "--block", "2x4").axes
    assert (labels_of(errors), len(errors.lines)) == (["a tensor", "shown below"], 0)
    bars = [[(b.get_y(), b.get_height()) for b in bars] for bars in shares.containers]
    assert bars == [[(0, 100), (0, 75)], [(100, 0), (75, 6.25)], [(100, 0), (81.25, 18.75)]]
    assert labels_of(shares) == ["e4m3", "e5m2", "bf16"]
    assert blocks.get_title() == "The most divided tensor: x, 8x16 f32"
    choice = mor_ref.mor(x, "three_way", block=(2, 4)).choice
    assert np.array_equal(blocks.images[0].get_array(), choice)
    assert labels_of(blocks) == ["e4m3 75.0 %", "e5m2 6.2 %", "bf16 18.8 %"]


@pytest.mark.parametrize("policy", ["tensor", "nvfp4"])
def test_the_picture_of_many_tensors_numbers_them_and_rings_one(drawn, policy):
    tensors = {f"layer_{k}": heavy((8, 8), 0.1 * k, k).astype(np.float32) for k in range(60)}
    np.savez("x.npz", **tensors)
    figure = drawn("x.npz", "--policy", policy)
    *dots, ring = figure.axes[0].collections
    assert sum(len(some.get_offsets()) for some in dots) == 60
    assert figure.axes[-2].get_xlabel() == "tensor, in the order of the table"
    ((place, error),) = ring.get_offsets().tolist()
    assert f": layer_{place - 1:g}, 8x8 f32" in figure.axes[-1].get_title()
    first = "nvfp4" if policy == "nvfp4" else "e4m3"
    shown = mor_ref.mor(tensors[f"layer_{place - 1:g}"], policy).error[first].overall
    assert error == pytest.approx(100 * shown)


@pytest.mark.parametrize("policy", ["tensor", "three_way"])
@pytest.mark.parametrize("shape", [(0, 3), (), (5,), (2000, 1), (1, 2000)])
def test_the_picture_of_one_tensor_of_any_shape(drawn, policy, shape):
    np.save("a$b$.npy", np.ones(shape, np.float32))
    figure = drawn("a$b$.npy", "--policy", policy, "--block", "1x1")
    assert figure.axes[-1].get_title().startswith(r"The tensor: a\$b\$.npy, ")
    assert all(max(image.get_array().shape) <= 1500 for image in figure.axes[-1].images)


def test_a_picture_that_cannot_be_written_in_the_end(run, monkeypatch):
    figure = imported("matplotlib.figure")
    np.save("x.npy", np.ones(3, np.float32))

    def full(*_arguments, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(figure.Figure, "savefig", full)
    said = sentence(run("x.npy", "--plot", "x.png", status=2))
    assert said == "mor-ref: plot is 'x.png', which cannot be written (No space left on device)"


def test_without_matplotlib_the_plot_alone_is_refused(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    np.save("x.npy", np.ones(3, np.float32))
    assert "1 tensor, 3 elements" in run("x.npy")
    said = sentence(run("x.npy", "--plot", "x.png", status=2))
    assert said.endswith("which is not installed; pip install 'mor-ref[plot]'")


def test_only_what_is_needed_is_imported(tmp_path):
    path = write(tmp_path / "x.npy", {"x": np.ones(3, np.float32)})
    program = (
        "import sys; from mor_ref import cli; sys.argv[:] = ['mor-ref', *sys.argv[1:]]\n"
        "try: cli.main()\n"
        "except SystemExit: pass\n"
        "print([name for name in ('numpy', 'safetensors', 'matplotlib') if name in sys.modules])"
    )
    for arguments, loaded in (
        (["analyze", "--help"], "[]"),
        (["analyze", str(path)], "['numpy', 'safetensors']"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines()[-1] == loaded
