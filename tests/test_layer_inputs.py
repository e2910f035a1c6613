"""Errors of weights under the inputs of their layers: weighted by them, and of the outputs."""

import csv
import io
import json
import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from analyzing import heavy, running, sentence, write
from extras import imported, needs
from worker_pools import two_processes

from mor_ref import quantize_mx, quantize_nvfp4
from mor_ref.analysis import InputMeasures, large_tensors, layer_inputs
from mor_ref.analysis.compare_files import compare_files, compared
from mor_ref.analysis.compare_tensor import compare, total
from mor_ref.analysis.inputs_by_name import inputs_named
from mor_ref.analysis.recipes import recipes_from
from mor_ref.analysis.summary import latex_of, markdown_of, summaries
from mor_ref.analysis.tensor_files import tensors_in
from mor_ref.definitions.blocks import partition
from mor_ref.exact import policies
from mor_ref.recipes import Situation, as_tensor_recipe
from mor_ref.representations import REPRESENTATIONS, FunctionRepresentation
from mor_ref.workers.pools import processes

__all__ = ["two_processes"]  # a fixture

BF16 = ml_dtypes.bfloat16
CLOSE = {"rel": 1e-12}


def errors(one):
    return one.on_inputs.weighted_error, one.on_inputs.output_error


def in_fractions(w, y, x):
    """Return both errors by the sums of their definitions, without rounding until the root."""
    w, y, x = ([[Fraction(float(v)) for v in row] for row in each] for each in (w, y, x))
    columns = range(len(x[0]))
    m = [sum(row[j] ** 2 for row in x) / len(x) for j in columns]
    d = [[a - b for a, b in zip(*rows, strict=True)] for rows in zip(w, y, strict=True)]

    def weighted(each):
        return sum(m[j] * sum(row[j] ** 2 for row in each) for j in columns)

    def output(each):
        return sum(sum(s[j] * row[j] for j in columns) ** 2 for s in x for row in each)

    return math.sqrt(weighted(d) / weighted(w)), math.sqrt(output(d) / output(w))


def a_weight(shape=(6, 32), seed=0):
    return heavy(shape, 1, seed).astype(np.float32)


def some_inputs(shape=(5, 32), seed=1):
    x = np.random.default_rng(seed).standard_normal(shape)
    return x * np.exp2(np.random.default_rng(seed + 1).integers(-4, 5, shape[-1]))


@pytest.mark.parametrize("dtype", [np.float32, BF16, np.float16, np.float64])
@pytest.mark.parametrize(
    ("recipe", "quantized"),
    [
        ("mxfp4", lambda w: quantize_mx(w, "e2m1").dequantize()),
        ("nvfp4:modelopt", lambda w: quantize_nvfp4(w, profile="modelopt").dequantize()),
    ],
)
def test_errors_are_those_of_the_definitions_in_fractions(recipe, quantized, dtype):
    w, x = a_weight().astype(dtype), some_inputs()
    found = compare(w, [recipe], inputs=x)[recipe]
    expected = in_fractions(w.astype(np.float32), quantized(w), x)
    assert errors(found) == pytest.approx(expected, **CLOSE)
    assert found.on_inputs.samples == 5
    assert min(expected) > 0.01


@pytest.mark.parametrize("recipe", ["mor:three_way:3x20", "mor:nvfp4:e8m0:5x16"])
def test_units_have_the_y_that_they_took(recipe):
    """ERR-008: from the exact model; a unit that no representation takes is bfloat16."""
    random, x = np.random.default_rng(11), some_inputs((5, 40))
    w = random.standard_normal((7, 40)) * np.exp2(random.integers(-12, 5, (7, 40)))
    w[:3, :20] = random.standard_normal((3, 20))
    w = w.astype(np.float32)
    tensor_recipe = as_tensor_recipe(recipe)
    policy = tensor_recipe.policy_in(Situation())
    parts = partition(w.shape, tensor_recipe.cut, policy.group)
    rows = [[float(v) for v in row] for row in w]
    mixed = policies.mix(rows, policy, tensor_recipe.scales, parts)
    y = policies.restored(rows, mixed, policy, parts)
    found = compare(w, [recipe], inputs=x)[recipe]
    assert len([count for count in found.taken.values() if count]) > 1
    assert errors(found) == pytest.approx(in_fractions(w, y, x), **CLOSE)


def by_numpy(w, y, x):
    """Return both errors by the formulas with NumPy, whose norms are in binary64."""
    w, y, x = (np.asarray(each, np.float64) for each in (w, y, x))
    roots = np.sqrt((x**2).mean(axis=0))
    norm = np.linalg.norm
    return norm((w - y) * roots) / norm(w * roots), norm(x @ w.T - x @ y.T) / norm(x @ w.T)


@pytest.mark.parametrize("recipe", ["mxfp4", "nvfp4", "e4m3:gam:8x16", "e4m3:gam:column", "int8"])
@pytest.mark.parametrize("at_once", [1, 1000, 1 << 20])
def test_errors_do_not_depend_on_the_pieces(monkeypatch, recipe, at_once):
    w, x = a_weight((200, 96)), some_inputs((70, 96))
    right = compare(w, [recipe], inputs=x)[recipe]
    monkeypatch.setattr(large_tensors, "AT_ONCE", 1000)
    monkeypatch.setattr(layer_inputs, "_AT_ONCE", at_once)
    found = compare(w, [recipe], inputs=x)[recipe]
    assert errors(found) == pytest.approx(errors(right), **CLOSE)
    assert found.measures == right.measures


@pytest.mark.parametrize("shape", [(40, 1), (1, 70000), (3, 0), (0, 16)])
def test_narrow_wide_and_empty_weights(shape):
    w, x = a_weight(shape), some_inputs((3, shape[-1]))
    found = compare(w, ["mxint8"], inputs=x)["mxint8"]
    if w.size:
        y = quantize_mx(w, "int8_mx").dequantize()
        assert errors(found) == pytest.approx(by_numpy(w, y, x), **CLOSE)
    else:
        assert errors(found) == (0, 0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, BF16, np.int64])
def test_leading_axes_fold_and_inputs_have_any_dtype(dtype):
    w, x = a_weight((2, 3, 32)), (20 * some_inputs((4, 5, 32))).astype(dtype)
    found = compare(w, ["mxfp4"], inputs=x)["mxfp4"]
    y = quantize_mx(w, "e2m1").dequantize()
    folded = (each.reshape(-1, 32) for each in (w, y, x))
    assert errors(found) == pytest.approx(by_numpy(*folded), **CLOSE)
    assert found.on_inputs.samples == 20
    alone = compare(w, ["mxfp4"], inputs=x[0, 0])["mxfp4"]
    assert alone.on_inputs.samples == 1


@needs("torch")
def test_inputs_of_torch():
    torch = imported("torch")
    w, x = torch.from_numpy(a_weight()), torch.from_numpy(some_inputs()).bfloat16()
    found = compare(w, ["mxfp4"], inputs=x)["mxfp4"]
    y = quantize_mx(w.numpy(), "e2m1").dequantize()
    assert errors(found) == pytest.approx(by_numpy(w, y, x.double()), **CLOSE)


@pytest.fixture
def pruned(monkeypatch):
    """Add quantizers of a user: one drops the first column of a weight, the other the second."""

    def without_first(x):
        return x * np.array([0, 1], np.float32)

    def without_second(x):
        return x * np.array([1, 0], np.float32)

    for function in (without_first, without_second):
        row = FunctionRepresentation(function, bits=8)
        monkeypatch.setitem(REPRESENTATIONS, row.name, row)
    return ["without_first", "without_second"]


def test_weighting_reverses_the_order_of_recipes(pruned):
    """The first column is 4 and its inputs 1; the second is 1, and its inputs 8."""
    w = np.tile(np.array([[4.0, 1.0]], np.float32), (3, 1))
    x = np.array([[1.0, 8.0], [-1.0, 8.0], [1.0, -8.0], [-1.0, -8.0]])
    first, second = compare(w, pruned, inputs=x).values()
    assert first.measures.sqnr < second.measures.sqnr
    expected = [math.sqrt(16 / 80), math.sqrt(64 / 80)]
    assert [one.on_inputs.weighted_error for one in (first, second)] == pytest.approx(expected)
    # The columns of x are orthogonal, so that the weights say all about the output.
    assert [one.on_inputs.output_error for one in (first, second)] == pytest.approx(expected)


def test_errors_that_cancel_in_the_output_have_a_weight(monkeypatch):
    """Both columns of x are the same, and the quantizer moves a number from one to the other."""

    def moved(w):
        return w + np.array([1, -1], np.float32)

    monkeypatch.setitem(REPRESENTATIONS, "moved", FunctionRepresentation(moved, bits=8))
    w, x = np.array([[2.0, 2.0]], np.float32), np.array([[1.0, 1.0], [3.0, 3.0]])
    found = compare(w, ["moved"], inputs=x)["moved"]
    assert errors(found) == (0.5, 0)


def test_numbers_that_sqnr_leaves_out_are_left_out():
    w, x = a_weight(), some_inputs()
    w[0, 3], w[1, 5], w[2, 0] = np.nan, np.inf, 1e9
    found = compare(w, ["e5m2:fp32:row"], inputs=x)["e5m2:fp32:row"]
    assert found.measures.measured == w.size - 2
    assert all(math.isfinite(error) and error > 0 for error in errors(found))
    finite = np.where(np.isfinite(w), w, 0)
    roots = (x**2).mean(axis=0)
    signal = float((finite.astype(np.float64) ** 2 @ roots).sum())
    assert found.on_inputs.weighted_signal == pytest.approx(signal, **CLOSE)


def test_a_weight_or_inputs_of_zeros(monkeypatch):
    ones = FunctionRepresentation(np.ones_like, bits=1)
    monkeypatch.setitem(REPRESENTATIONS, "ones_like", ones)
    w, zeros = a_weight(), np.zeros((6, 32), np.float32)
    assert errors(compare(w, ["mxfp4"], inputs=zeros)["mxfp4"]) == (0, 0)
    assert errors(compare(zeros, ["mxfp4"], inputs=some_inputs())["mxfp4"]) == (0, 0)
    assert errors(compare(zeros, ["ones_like"], inputs=some_inputs())["ones_like"]) == (
        math.inf,
        math.inf,
    )


def test_vectors_and_weights_without_inputs_have_no_such_error():
    for found in (
        compare(a_weight(), ["mxfp4"])["mxfp4"],
        compare(a_weight(32), ["mxfp4"], inputs=some_inputs())["mxfp4"],
    ):
        assert found.on_inputs == InputMeasures()
        assert all(map(math.isnan, errors(found)))


@pytest.mark.parametrize("shape", [(5, 31), (32, 5), (0, 32), (), (3, 5, 6)])
def test_inputs_of_another_layer_are_refused_with_both_shapes(shape):
    with pytest.raises(ValueError, match=r"^inputs is .*, and x is 6x32; give ") as refused:
        compare(a_weight(), ["mxfp4"], inputs=np.ones(shape))
    assert ("x".join(map(str, shape)) or "scalar") in str(refused.value)


@pytest.mark.parametrize("number", [math.nan, -math.inf, 1e39])
def test_inputs_that_are_not_finite_are_refused(number):
    x = some_inputs()
    x[4, 31] = number
    with pytest.raises(ValueError, match="inputs has a number that is NaN, infinite or beyond"):
        compare(a_weight(), ["mxfp4"], inputs=x)


def test_large_and_small_inputs_have_sums_in_binary64():
    w, x = a_weight() * np.float32(1e30), some_inputs()
    for scale in (1e-40, 1e34):
        found = compare(w, ["mxfp4"], inputs=scale * x)["mxfp4"]
        plain = compare(w, ["mxfp4"], inputs=x)["mxfp4"]
        assert errors(found) == pytest.approx(errors(plain), rel=1e-9)


# ------------------------------------------------------------------------------- several tensors

WEIGHTS = {"up": (16, 32), "down": (32, 48), "alone": (8, 16), "bias": (48,)}
SAMPLES = {"up": (5, 32), "down": (2, 9, 48), "bias": (3, 48), "other": (4, 4)}
RECIPES = ("mxfp4", "nvfp4:modelopt")


@pytest.fixture
def model(tmp_path):
    weights = {name: a_weight(shape, k) for k, (name, shape) in enumerate(WEIGHTS.items())}
    write(tmp_path / "model.safetensors", weights)
    write(tmp_path / "inputs.npz", inputs())
    return tmp_path / "model.safetensors"


def inputs():
    return {name: some_inputs(shape, k) for k, (name, shape) in enumerate(SAMPLES.items())}


@pytest.fixture
def run(monkeypatch, capsys, tmp_path, model):
    """Return a function that runs the command on the model in its own directory."""
    monkeypatch.chdir(tmp_path)
    options = [word for recipe in RECIPES for word in ("--recipe", recipe)]
    return running(monkeypatch, capsys, "compare", model.name, *options, columns=120)


def expected_of(model):
    """Return the errors of each weight with inputs, and those of all, for the first recipe."""
    squares = np.zeros(4)
    each = {}
    for tensor in tensors_in(str(model)):
        if tensor.name in ("up", "down"):
            w, x = tensor.load(), inputs()[tensor.name].reshape(-1, tensor.shape[-1])
            y = quantize_mx(w, "e2m1").dequantize()
            each[tensor.name] = by_numpy(w, y, x)
            w, y = w.astype(np.float64), y.astype(np.float64)
            m = (x**2).mean(axis=0)
            weighted = [((w - y) ** 2 @ m).sum(), (w**2 @ m).sum()]
            output = [((x @ (w - y).T) ** 2).sum(), ((x @ w.T) ** 2).sum()]
            squares += [*weighted, *(sums / len(x) for sums in output)]
    return each, (math.sqrt(squares[0] / squares[1]), math.sqrt(squares[2] / squares[3]))


@pytest.mark.parametrize("kind", ["arrays", "a file", "files"])
def test_inputs_go_by_the_names_of_weights(model, kind):
    file = str(model.with_name("inputs.npz"))
    given = {"arrays": inputs(), "a file": file, "files": [file]}[kind]
    found = compare_files(str(model), RECIPES, inputs=given)
    each, of_all = expected_of(model)
    assert found.with_inputs == 2
    for tensor in found.tensors:
        if tensor.name in each:
            assert errors(tensor.under[0]) == pytest.approx(each[tensor.name], **CLOSE)
        else:
            assert all(map(math.isnan, errors(tensor.under[0])))
    assert errors(found.totals[0]) == pytest.approx(of_all, **CLOSE)
    assert found.totals[0].on_inputs.samples == 5 + 18


def test_more_samples_do_not_weigh_more(model):
    """A weight counts by its squares and the mean squares of its inputs."""
    twice = {**inputs(), "down": np.tile(inputs()["down"], (2, 1, 1))}
    one, other = (compare_files(str(model), RECIPES, inputs=each) for each in (inputs(), twice))
    for first, second in zip(one.totals, other.totals, strict=True):
        assert errors(first) == pytest.approx(errors(second), **CLOSE)
    assert total("mxfp4", []).on_inputs == InputMeasures()


def test_records_and_json_have_the_errors(run, model):
    found = compare_files(model.name, RECIPES, inputs=inputs())
    document = json.loads(run("--inputs", "inputs.npz", "--json", "--out", "t.csv"))
    each, of_all = expected_of(model)
    first = document["totals"][0]
    assert (first["weighted_error"], first["output_error"]) == pytest.approx(of_all, **CLOSE)
    records = {one["tensor"]: one for one in document["tensors"] if one["recipe"] == "mxfp4"}
    for name, record in records.items():
        here = record["weighted_error"], record["output_error"]
        assert here == (pytest.approx(each[name], **CLOSE) if name in each else (None, None))
    assert [records[name]["samples"] for name in ("up", "down", "alone")] == [5, 18, 0]
    rows = list(csv.DictReader(io.StringIO(model.with_name("t.csv").read_text())))
    assert rows == [{name: str(cell) for name, cell in one.items()} for one in found.to_records()]
    assert [row["output_error"] for row in rows if row["tensor"] == "alone"] == ["nan", "nan"]


def test_without_inputs_tables_are_as_before(run, model):
    document = json.loads(run("--json", "--out", "t.csv"))
    keys = {"samples", "weighted_error", "output_error"}
    assert not keys & {*document["totals"][0], *document["tensors"][0]}
    assert "weighted" not in run() + model.with_name("t.csv").read_text()
    found = compare_files(str(model), RECIPES)
    assert "weighted" not in markdown_of(found).decode() + latex_of(found).decode()


def test_the_table_has_a_column_for_each_error(run, model):
    text = run("--inputs", "inputs.npz")
    lines = text.splitlines()
    (heading,) = (line for line in lines if line.startswith("recipe"))
    (row,) = (line for line in lines if line.startswith("mxfp4 "))
    assert "SQNR dB weighted % output %" in heading
    _, of_all = expected_of(model)
    assert row.split()[4:6] == [f"{100 * error:.3g}" for error in of_all]
    assert "weighted, output: relative errors under the inputs of 2 of 3 tensors; not bi" in text
    assert "weighted" not in run("--inputs", "inputs.npz", columns=40)


def test_tables_of_papers_have_the_intervals(model):
    found = compare_files(str(model), RECIPES, inputs=inputs())
    each, of_all = expected_of(model)
    first = summaries(found)[0]
    for k, sample in enumerate((first.weighted, first.output)):
        values = [100 * each[name][k] for name in ("down", "up")]
        assert sorted(sample.values) == pytest.approx(sorted(values), **CLOSE)
        half = 12.7062 * abs(values[0] - values[1]) / 2  # of two tensors: t / sqrt(2) * s
        assert sample.interval[1] - sample.mean == pytest.approx(half, rel=1e-5)
    cells = [cell.strip() for cell in markdown_of(found).decode().splitlines()[2].split("|")]
    assert [cells[7], cells[9]] == [f"{100 * error:.3g}" for error in of_all]
    low, high = (f"{end:.3g}" for end in first.output.interval)
    assert cells[10] == f"{first.output.mean:.3g} ({low} to {high})"
    assert "weighted, output: 2 tensors with inputs; mor_ref" in markdown_of(found).decode()
    latex = latex_of(found).decode()
    assert r"weighted error \% & weighted error \% (mean over tensors, 95 \%) & output er" in latex
    assert cells[10] in latex


@needs("matplotlib")
def test_the_picture_has_two_more_panels(run, model, monkeypatch):
    figures = []
    figure = imported("matplotlib.figure").Figure
    save = figure.savefig
    monkeypatch.setattr(figure, "savefig", lambda f, *a, **k: (figures.append(f), save(f, *a, **k)))
    run("--inputs", "inputs.npz", "--out", "t.png")
    each, of_all = expected_of(model)
    _, _, _, *panels = figures.pop().axes
    for k, axes in enumerate(panels):
        dots, line = axes.collections[:2]
        values = [100 * each[name][k] for name in ("down", "up")]
        assert sorted(dots.get_offsets()[:, 0].tolist()) == pytest.approx(sorted(values))
        assert line.get_segments()[0][0, 0] == pytest.approx(100 * of_all[k])
    assert len(panels) == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"up": np.ones((3, 31))},
            "up in bad.npz is 3x31, and up in model.safetensors is 16x32; give samples as rows,",
        ),
        ({"up": np.full((3, 32), np.nan)}, "up in bad.npz has a number that is NaN, infinite or "),
        ({"up": np.ones((3, 32), int)}, "inputs has up in bad.npz (3x32 int64): it holds integ"),
        (
            {"bias": np.ones((3, 48)), "left": np.ones((3, 8))},
            "inputs has no tensor with the name of a weight, but bias and 1 more; name the input",
        ),
    ],
)
def test_mistakes_are_a_sentence_and_status_2(run, model, given, said):
    write(model.with_name("bad.npz"), given)
    assert sentence(run("--inputs", "bad.npz", status=2)).startswith(f"mor-ref: {said}")


def test_files_of_inputs_are_read_alone(run, model):
    """A name is in one of them, and no output takes its place."""
    write(model.with_name("more.npz"), {"up": np.ones((3, 32))})
    said = sentence(run("--inputs", "inputs.npz", "--inputs", "more.npz", status=2))
    assert said.startswith("mor-ref: inputs has up in inputs.npz and in more.npz; give one file")
    write(model.with_name("more.npz"), {"alone": np.ones((3, 16))})
    text = run("--inputs", "inputs.npz", "--inputs", "more.npz")
    assert "under the inputs of 3 of 3 tensors" in text
    path = model.with_name("inputs.svg")
    path.symlink_to("inputs.npz")
    assert "inputs.svg" in sentence(run("--inputs", "inputs.npz", "--out", path.name, status=2))


def test_arrays_that_do_not_fit_are_refused_by_name(model):
    with pytest.raises(ValueError, match=r"^inputs\['up'\] is 3x31, and up in .* is 16x32; give"):
        compare_files(str(model), RECIPES, inputs={"up": np.ones((3, 31))})
    with pytest.raises(ValueError, match="inputs has no tensor with the name of a weight, but no"):
        compare_files(str(model), RECIPES, inputs={})


def test_workers_have_the_same_errors(model):
    stored = [(str(model), tensor) for tensor in tensors_in(str(model))]
    given = inputs_named(str(model.with_name("inputs.npz")), stored)
    recipes = recipes_from(RECIPES)
    here = list(compared(stored, recipes, "weight", None, inputs=given))
    there = list(compared(stored, recipes, "weight", None, processes(), given))
    assert [each.name for each in here] == [each.name for each in there]
    for ours, theirs in zip(here, there, strict=True):
        for one, other in zip(ours.under, theirs.under, strict=True):
            assert errors(one) == pytest.approx(errors(other), nan_ok=True, **CLOSE)
