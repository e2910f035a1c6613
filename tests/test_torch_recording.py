"""Recordings of training: measures, rows, files and pictures."""

import csv
import math
import struct
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from extras import imported, is_there, needs

from mor_ref.definitions.formats import formats
from mor_ref.exact import training as exact

pytestmark = needs("torch")
torch = imported("torch") if is_there("torch") else None

if torch:
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    import mor_ref.torch as mt
    from mor_ref.recipes import Situation, as_tensor_recipe
    from mor_ref.torch import on_cpu
    from mor_ref.torch.layers import Observation
    from mor_ref.torch.measures import measure
    from mor_ref.torch.operator import quantize
    from mor_ref.torch.recording_files import _scalars, table
    from mor_ref.torch.recording_pictures import MEASURES


def model_of(recipe, **arguments):
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(32, 48), nn.GELU(), nn.Linear(48, 32))
    mt.convert(model, recipe, **arguments)
    return model


def train(model, steps, microbatches=1, run=None):
    generator = torch.Generator().manual_seed(7)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        for _ in range(microbatches):
            x = torch.randn(16, 32, generator=generator)
            (run or model)(x).square().mean().backward()
        optimizer.step()
        mt.advance(model)
    return [parameter.detach().clone() for parameter in model.parameters()]


def recorded(recipe="mor_tensor", steps=3, every=2, microbatches=1, run=None):
    model = model_of(recipe)
    with mt.record(model, every=every) as recording:
        train(model, steps, microbatches, run and run(model))
    return recording


def measured(x, tensor_recipe, axis="row", scale=1.0):
    """Return the recorded row of a tensor, and the numbers of x and y."""
    situation = Situation(scale)
    x = torch.as_tensor(np.asarray(x, np.float32)).to(torch.bfloat16)
    y, statistics = quantize(x, tensor_recipe.text, axis, situation)
    found = on_cpu.quantization(x, tensor_recipe, axis, situation)
    seen = Observation(
        "a", "input", axis, tensor_recipe, statistics, 0, False, x, y, situation, found
    )
    row = measure(seen, 0)
    assert measure(seen._replace(quantization=None), 0) == row  # as after a GPU
    return row, x.double().numpy(), y.double().numpy()


def hard_numbers(seed=0, shape=(24, 40)):
    """Return numbers of many sizes, zeros, and a few that are far larger."""
    random = np.random.default_rng(seed)
    x = random.standard_normal(shape) * np.exp2(random.integers(-24, 9, shape))
    x[random.random(shape) < 0.1] = 0
    return x


TENSOR_RECIPES = torch and {
    "tensor": mt.Mor("tensor", "tensor", threshold="0.9"),
    "fallback": mt.Mor("tensor", "tensor", threshold="0.0001"),
    "three_way": mt.Mor("three_way", (8, 8)),
    "fp32": mt.Scaled("e5m2", "row"),
    "delayed": mt.Delayed("e4m3"),
    "mx": mt.Mx("e4m3"),
    "mxfp4": mt.Mx("e2m1"),
    "nvfp4": mt.Nvfp4(),
    "random": mt.Nvfp4(rounding="sr"),
    "divides": mt.Nvfp4("modelopt"),
}


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize("name", TENSOR_RECIPES or ["needs torch"])
@pytest.mark.parametrize("axis", ["row", "column"])
def test_sums_are_exact_and_flushed_elements_are_counted(name, axis):
    """TRN-010 and TRN-011, against sums of fractions over every element."""
    row, x, y = measured(hard_numbers(), TENSOR_RECIPES[name], axis)
    pairs = list(zip(x.ravel().tolist(), y.ravel().tolist(), strict=True))
    signal, noise = exact.signal(pairs), exact.noise(pairs)
    assert (row.signal, row.noise) == (float(signal), float(noise))
    assert row.sqnr == pytest.approx(exact.sqnr(signal, noise), rel=1e-14)
    assert row.flushed == sum(exact.is_flushed(*pair) for pair in pairs)
    assert row.nonzero == np.count_nonzero(x)
    assert row.elements == x.size
    assert row.nonfinite == 0
    assert row.amax == abs(x).max()
    assert row.amin == abs(x[x != 0]).min()


def test_an_operand_that_stays_has_an_infinite_ratio():
    row, *_ = measured(hard_numbers(), TENSOR_RECIPES["fallback"])
    assert row.choices == {"e4m3": 0, "bf16": 1}
    assert (row.noise, row.sqnr, row.saturated) == (0, math.inf, 0)


def test_what_is_not_finite_is_in_no_sum():
    """TRN-010: the tensor stays, and its finite numbers are the signal."""
    row, *_ = measured([[1.5, math.inf, -2.0, math.nan, 0.0]], TENSOR_RECIPES["tensor"])
    assert (row.signal, row.noise) == (6.25, 0)
    assert (row.nonzero, row.nonfinite, row.flushed) == (2, 2, 0)


def test_sums_do_not_depend_on_the_order():
    """TRN-010: binary64 would lose the small squares next to a large one."""
    x = np.array([[2.0**60, *[2.0**-20] * 63]])
    forward, backward = (measured(one, TENSOR_RECIPES["fp32"])[0] for one in (x, x[:, ::-1]))
    assert forward.signal == backward.signal == float(Fraction(2**120) + 63 * Fraction(1, 2**40))
    assert forward.noise == float(63 * Fraction(1, 2**40))
    assert forward.flushed == 63


@pytest.mark.parametrize("scale", [1.0, 64.0, 2.0**14])
def test_elements_beyond_a_delayed_scale_saturate(scale):
    """TRN-011, against a count by the exact model."""
    row, x, y = measured(hard_numbers(), TENSOR_RECIPES["delayed"], scale=scale)
    expected = sum(exact.is_saturated(one * scale, formats["e4m3"]) for one in x.ravel().tolist())
    assert row.saturated == expected
    at_the_largest = abs(y) == 448 / scale
    assert expected <= np.count_nonzero(at_the_largest)
    assert (expected > 0) == (scale > 1)


def test_saturation_begins_where_rounding_does_not_explain_it():
    """TRN-011: the numbers of E4M3 next to 448 are 32 apart."""
    row, *_ = measured([[448, 460, 464, -464, 466, -900]], TENSOR_RECIPES["delayed"])
    assert row.saturated == 2
    assert [exact.is_saturated(x, formats["e4m3"]) for x in (464.0, 466.0)] == [False, True]


@pytest.mark.parametrize("axis", ["row", "column"])
def test_elements_of_an_mx_block_saturate_under_floor(axis):
    """TRN-011: blocks of 32 along the axis, whose scale is 2^(8 - floor(log2(amax)))."""
    x = np.random.default_rng(4).standard_normal((64, 64)).astype(ml_dtypes.bfloat16)
    row, x, _ = measured(x.astype(np.float32), TENSOR_RECIPES["mx"], axis)
    blocks = (x if axis == "row" else x.T).reshape(-1, 32)
    shared = np.floor(np.log2(abs(blocks).max(axis=1)))
    assert row.saturated == np.count_nonzero(abs(blocks) * 2.0 ** (8 - shared[:, None]) > 464) > 0
    assert row.exponents == {"mxfp8_e4m3": (8 - shared.max(), 8 - shared.min())}


def test_saturation_that_nobody_counts_is_not_known(tmp_path):
    """TRN-011: integers have a rule of their own, and no bound of a format; it is not 0."""
    row, *_ = measured(hard_numbers(), as_tensor_recipe("int8"))
    assert row.saturated is None
    assert math.isnan(row.saturated_share)
    assert table([row])["saturated"] == table([row])["saturated_share"] == [None]
    mt.to_csv([row], tmp_path / "a.csv")
    (line,) = csv.DictReader((tmp_path / "a.csv").read_text().splitlines())
    assert line["saturated"] == line["saturated_share"] == ""
    assert np.isnan(MEASURES["saturated"].of(row))
    known = replace(row, saturated=3)
    assert "saturated" in _scalars(known)
    assert "saturated" not in _scalars(row)
    *_, drawn = mt.shares_over_time([row, replace(row, step=1)]).axes
    assert all(np.isnan(line.get_ydata()).all() for line in drawn.lines)


def test_saturation_counts_only_in_units_that_took_the_format():
    """TRN-011: under a low threshold nothing saturates, as nothing is quantized."""
    both = [mt.Mor("tensor", "row", "fp32", threshold) for threshold in ("0.0001", "0.9")]
    assert [measured(hard_numbers(), one)[0].saturated for one in both] == [0, 0]


@pytest.mark.parametrize("scaling", ["gam", "e8m0", "fp32"])
def test_exponents_are_those_of_the_scales(scaling):
    """TRN-012, against the public scales of each row."""
    import mor_ref

    row, x, _ = measured(hard_numbers(), mt.Scaled("e4m3", "row", scaling))
    scales = mor_ref.quantize(x, "e4m3", scaling=scaling, block="row").scale.ravel().tolist()
    own = [exact.scale_exponent(scale, divides=False) for scale in scales]
    assert row.exponents == {"e4m3": (min(own), max(own))}
    assert exact.scale_exponent(6.0, divides=True) == -2


def test_errors_and_decisions_are_those_of_mor():
    import mor_ref

    row, x, _ = measured(hard_numbers(), TENSOR_RECIPES["three_way"])
    found = mor_ref.mor(x.astype(np.float32), "three_way", block=(8, 8))
    assert row.errors == {name: one.overall for name, one in found.error.items()}
    assert row.shares == found.shares
    assert row.units == found.choice.size == 15


# ---------------------------------------------------------------------- rows


def test_steps_and_microbatches_are_counted():
    """TRN-013."""
    recording = recorded(steps=5, every=2, microbatches=2)
    places = [
        (row.step, row.layer, row.operand, row.axis, row.microbatch) for row in recording.rows
    ]
    operands = ("input", "weight", "grad_output")
    assert sorted(places) == sorted(
        (step, layer, operand, "row", microbatch)
        for step in (0, 2, 4) for layer in "02" for operand in operands for microbatch in (0, 1)
    )  # fmt: skip


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_does_not_double_rows(reentrant):
    """TRN-013: rows of the second forward pass are marked, and equal."""

    def run(model):
        return lambda x: checkpoint(model, x.requires_grad_(), use_reentrant=reentrant)

    plain, again = recorded(), recorded(run=run)
    assert again.counted == plain.rows
    marked = [row for row in again.rows if row.is_recomputed]
    assert len(marked) == len([row for row in plain.rows if row.operand != "grad_output"])
    assert {row.microbatch for row in marked} == {0}


@pytest.mark.parametrize("recipe", ["mor_channel", "fp8_delayed", "nvfp4_random"])
def test_recording_changes_no_bit(recipe):
    """TRN-013."""
    plain = train(model_of(recipe), 3)
    model = model_of(recipe)
    with mt.record(model, every=1) as recording:
        found = train(model, 3)
    assert recording.rows
    assert all(torch.equal(a, b) for a, b in zip(plain, found, strict=True))


# Both warnings are torch's own.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
def test_a_compiled_model_is_recorded_as_any_other():
    torch._dynamo.reset()
    plain = recorded()
    compiled = recorded(run=lambda model: torch.compile(model, backend="aot_eager"))
    assert compiled.rows == plain.rows


def test_evaluation_and_what_follows_a_stop_are_not_recorded():
    """TRN-013."""
    model = model_of("mor_tensor")
    recording = mt.record(model, every=1)
    model.eval()
    model(torch.ones(2, 32))
    assert recording.rows == []
    model.train()
    recording.stop()
    model(torch.ones(2, 32))
    assert recording.rows == []


def test_a_resumed_run_goes_on_counting():
    model = model_of("mor_tensor")
    train(model, 3)
    other = model_of("mor_tensor")
    mt.load_state(other, mt.state(model))
    with mt.record(other, every=2) as recording:
        train(other, 2)
    assert {row.step for row in recording.rows} == {4}


def test_a_stopped_recording_does_not_begin_again():
    recording = mt.record(model_of("mor_tensor"))
    recording.stop()
    with pytest.raises(RuntimeError, match="was stopped; call mor_ref.torch.record for another"):
        recording.__enter__()


@pytest.mark.parametrize("every", [0, -1])
def test_a_rate_below_one_is_refused(every):
    with pytest.raises(ValueError, match=f"every is {every}; give an int from 1"):
        mt.record(model_of("mor_tensor"), every)


# ---------------------------------------------------------------------- files


def test_csv_is_read_back(tmp_path):
    recording = recorded("fp8_current")
    mt.to_csv(recording.rows, tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(recording.rows)
    for line, row in zip(lines, recording.rows, strict=True):
        assert (line["layer"], line["operand"], line["axis"]) == (row.layer, row.operand, row.axis)
        assert (int(line["step"]), line["is_recomputed"]) == (row.step, "False")
        assert (float(line["sqnr"]), float(line["amax"])) == (row.sqnr, row.amax)
        (name,) = row.errors
        assert float(line[f"error {name}"]) == row.errors[name]
        assert int(line[f"choice {name}"]) == row.choices[name]
        assert int(line[f"lowest_exponent {name}"]) == row.exponents[name][0]
        assert line["error e5m2" if name == "e4m3" else "error e4m3"] == ""


@needs("pyarrow")
def test_parquet_is_read_back(tmp_path):
    from pyarrow import parquet

    recording = recorded("fp8_current")
    mt.to_parquet(recording.rows, tmp_path / "a.parquet")
    read = parquet.read_table(tmp_path / "a.parquet").to_pydict()
    assert read["sqnr"] == [row.sqnr for row in recording.rows]
    assert read["saturated"] == [row.saturated for row in recording.rows]
    assert read["error e5m2"] == [row.errors.get("e5m2") for row in recording.rows]


@needs("tensorboard")
def test_event_files_are_read_back(tmp_path):
    """TRN-013: what a checkpoint computes again is not in them."""
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    def run(model):
        return lambda x: checkpoint(model, x, use_reentrant=False)

    recording = recorded(run=run, microbatches=2)
    mt.to_tensorboard(recording.rows, tmp_path)
    (file,) = tmp_path.iterdir()
    found = [
        (value.tag, event.step, value.tensor.float_val[0])
        for event in EventFileLoader(str(file)).Load()
        for value in event.summary.value
    ]
    expected = [
        (f"{row.layer}/{row.operand} by row/sqnr", row.step, as_float32(row.sqnr))
        for row in recording.counted
        if not row.microbatch
    ]
    assert [one for one in found if one[0].endswith("sqnr")] == expected
    assert expected


def as_float32(number):
    return struct.unpack("f", struct.pack("f", number))[0]


# ---------------------------------------------------------------------- pictures


@needs("matplotlib")
@pytest.mark.parametrize("draw", ["heat_map", "errors_by_operand", "shares_over_time"])
@pytest.mark.parametrize("width", [0, -1.0, float("nan"), "wide"])
def test_a_width_that_is_none_is_refused(draw, width):
    model = model_of("mor_tensor")
    with mt.record(model) as recording:
        train(model, 1)
    with pytest.raises(ValueError, match=f"width is {width!r}; give inches from 4 to 100"):
        getattr(mt, draw)(recording, width=width)


@pytest.mark.tier("full")
@pytest.mark.parametrize("width", [5.0, 10.0])
def test_pictures_are_drawn(tmp_path, width):
    """Panels are next to each other, or below each other; a bar of colours is one more."""
    from matplotlib.image import imread

    rows = recorded("nvfp4_2d", steps=2, every=1).rows
    for draw, count in ((mt.heat_map, 6), (mt.errors_by_operand, 3), (mt.shares_over_time, 3)):
        figure = draw(rows, width=width)
        assert len(figure.axes) == count
        figure.savefig(tmp_path / "a.png")
        _, columns, _ = imread(tmp_path / "a.png").shape
        assert columns == 120 * width


@needs("matplotlib")
def test_a_heat_map_has_the_measures_of_layers_and_steps():
    """TRN-013: with a checkpoint, each cell is the same."""
    rows = recorded(steps=3, every=1).rows
    figure = mt.heat_map([*rows, *recorded_again(rows)], "sqnr")
    panel = figure.axes[0]
    cells = panel.images[0].get_array()
    own = [row for row in rows if row.operand == "input"]
    expected = [[row.sqnr for row in own if row.layer == layer] for layer in "02"]
    assert np.array_equal(cells, expected)
    assert [tick.get_text() for tick in panel.get_yticklabels()] == ["0", "2"]


def recorded_again(rows):
    from dataclasses import replace

    return [replace(row, is_recomputed=True, sqnr=0.0) for row in rows]


def test_what_is_not_a_row_of_a_recording_is_refused(tmp_path):
    with pytest.raises(TypeError, match="rows have 1; give a recording, or some of its rows"):
        mt.to_csv([1, 2], tmp_path / "rows.csv")
    assert not list(tmp_path.iterdir())


@needs("matplotlib")
def test_nothing_to_draw_is_said():
    with pytest.raises(ValueError, match="rows are empty; record a model while it trains"):
        mt.heat_map([])
    with pytest.raises(ValueError, match="measure"):
        mt.heat_map(recorded(steps=1).rows, "colour")


def test_names_of_layers_keep_what_distinguishes_them():
    """A picture has room for some letters of a name."""
    from mor_ref.torch.recording_pictures import _short, _without_common_words

    names = [f"transformer.h.{k}.self_attention_output_projection" for k in (3, 17)]
    assert [_short(one) for one in _without_common_words(names)] == [
        "3.self_atten..t_projection", "17.self_atte..t_projection",
    ]  # fmt: skip
    assert _without_common_words(["a.b", "a"]) == ["a.b", "a"]
    assert _without_common_words(["a.b"]) == ["b"]


def test_a_recording_is_its_rows():
    recording = recorded()
    assert list(recording) == recording.rows


@pytest.mark.tier("full")
def test_the_example_draws_three_pictures(tmp_path):
    program = Path(__file__).parents[1] / "examples/training/record_a_run.py"
    command = [sys.executable, program, "--steps", "2", "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("step 0: loss 5.")
    names = {"heat_map.png", "errors_by_operand.png", "shares_over_time.png"}
    assert {path.name for path in tmp_path.iterdir()} == names
