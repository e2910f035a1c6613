"""The experiment: its text, its runs, what they record, and that they can be stopped."""

import hashlib
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from extras import imported, needs

imported("torch")
import torch

import mor_ref
from experiments import corpus as corpora
from experiments import running, train
from experiments.__main__ import app, seeds_in
from experiments.commands import run_as_program
from experiments.corpus import CorpusError, checked, divided
from experiments.files import write_whole
from experiments.gpt import started, turned, turns
from experiments.measuring import measured
from experiments.results import collect, not_among, read
from experiments.runs import (
    ALL_SETTINGS,
    ARMS,
    BLOCK,
    CHANNEL,
    LOST,
    SIZES,
    TENSOR,
    THREE_WAY,
    TWO_WAY,
    Run,
    measured_in,
    planned,
    rows,
)
from mor_ref.torch import convert, observe
from mor_ref.workers.pools import processes

pytestmark = needs("torch")

ROOT = Path(__file__).resolve().parent.parent
SMOKE = SIZES["smoke"]
DIRECT = ("bf16", "one_ulp", "matched_noise", "mor_tensor", "mor_channel", "nvfp4")


@pytest.fixture(scope="module")
def text():
    """Return a text that takes no time to make."""
    words = np.random.default_rng(5).choice([b"tensor ", b"block ", b"scale ", b"of "], 2000)
    return divided(b"".join(words))


def smoke(arm, seed=0, steps=3):
    return Run("smoke", steps, arm, seed)


def without_time(document):
    return {name: at for name, at in document.items() if name != "seconds_per_step"}


# ---------------------------------------------------------------------- the text


def test_a_text_of_other_bytes_is_refused():
    with pytest.raises(CorpusError, match=f"SHA-256 {hashlib.sha256(b'?').hexdigest()}, not"):
        checked(b"?")


def test_the_last_twentieth_is_for_validation():
    found = divided(bytes(range(200)))
    assert found.training.tolist() == list(range(190))
    assert found.validation.tolist() == list(range(190, 200))


@pytest.mark.tier("full")
def test_the_text_is_made_from_the_installed_packages(tmp_path):
    for name in corpora.PACKAGES:
        imported(name)
    made = corpora.corpus(tmp_path)
    kept = (tmp_path / "corpus.txt").read_bytes()
    assert len(made.training) + len(made.validation) == len(kept) == 6_520_628


class Installed:
    """A distribution as importlib.metadata returns it."""

    def __init__(self, version, *files):
        self.version, self.files = version, files


def test_packages_are_checked(monkeypatch):
    monkeypatch.setattr(corpora.importlib.metadata, "distribution", lambda _: Installed("1.13.0"))
    with pytest.raises(CorpusError, match=r"sympy is 1\.13\.0, not 1\.14\.0; install it with"):
        corpora.docstrings()


def test_files_are_checked_by_their_record(monkeypatch, tmp_path):
    (tmp_path / "one.py").write_text(f'"""{"x" * 300}"""')
    record = tmp_path / "made-1.0.dist-info" / "RECORD"
    record.parent.mkdir()
    digest = corpora.base64.urlsafe_b64encode(
        hashlib.sha256((tmp_path / "one.py").read_bytes()).digest()
    )
    record.write_text(f"one.py,sha256={digest.rstrip(b'=').decode()},306\nmissing.txt,,\n")
    (record.parent / "METADATA").write_text("Name: made\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(corpora, "PACKAGES", {"made": "1.0"})
    assert corpora.docstrings() == [b"x" * 300]
    (tmp_path / "one.py").write_text(f'"""{"y" * 300}"""')
    with pytest.raises(CorpusError, match=r"one\.py of made is not as its RECORD says"):
        corpora.docstrings()


# ---------------------------------------------------------------------- the plan


def test_the_plan_is_that_of_the_readme():
    plan = planned("A", 1200)
    assert len(plan) == len(set(plan)) == 8 * 8 + 6 * 4
    assert plan[0] == Run("A", 1200, "bf16", 0)
    assert {run.seed for run in plan if run.arm == "nvfp4"} == set(range(4))
    assert planned("A", 5, ("nvfp4",), (7, 9)) == [Run("A", 5, "nvfp4", s) for s in (7, 9)]


def cells_of_readme(first):
    """Return the rows of the plan's table whose head begins with a word."""
    lines = (ROOT / "experiments" / "README.md").read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {first} |"))
    rest = itertools.takewhile(lambda line: line.startswith("|"), lines[start + 2 :])
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in rest]


def test_sizes_are_those_of_the_readme():
    for name, parameters, *numbers, rate in cells_of_readme("size"):
        size = SIZES[name]
        found = (size.layers, size.width, size.heads, size.batch, size.context)
        assert [str(number) for number in found] == numbers
        assert size.rate == float(rate)
        count = 12 * size.layers * size.width**2 + (2 * size.layers + 1 + 512) * size.width
        assert float(parameters.removesuffix(" M")) == pytest.approx(count / 1e6, rel=0.02)
    assert sum(weight.numel() for weight in started(SIZES["A"], 0).parameters()) == 853_120


def test_arms_are_those_of_the_readme():
    for family, names, seeds in cells_of_readme("family"):
        arms = [arm for arm in ARMS.values() if arm.family == family]
        assert [arm.name for arm in arms] == names.replace("`", "").split(", ")
        assert {arm.seeds for arm in arms} == {int(seeds)}


def test_all_partitions_are_measured_in_the_first_seeds_of_bf16():
    assert [measured_in(smoke("bf16", seed)) for seed in (3, 4)] == [ALL_SETTINGS, ()]
    assert measured_in(smoke("mor_channel", 7)) == (CHANNEL,)


# ---------------------------------------------------------------------- the model


def test_rope_turns_half_of_a_head_and_keeps_its_length():
    x = torch.randn(1, 2, SMOKE.context, SMOKE.width // SMOKE.heads)
    y = turned(x, turns(SMOKE))
    assert torch.equal(y[..., 8:], x[..., 8:])
    assert torch.equal(y[:, :, 0], x[:, :, 0])
    assert torch.allclose(y.norm(dim=-1), x.norm(dim=-1))
    # Attention of turned vectors depends on their distance alone.
    same = turned(torch.ones(SMOKE.context, 16), turns(SMOKE))
    products = same @ same.T
    assert torch.allclose(products.diagonal(3), products[0, 3].expand(SMOKE.context - 3))


def test_a_seed_gives_the_same_weights_whatever_else_draws():
    torch.manual_seed(1)
    one = started(SMOKE, 7).state_dict()
    torch.rand(5)
    other = started(SMOKE, 7).state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_the_rate_warms_up_and_falls_to_a_tenth():
    rates = [train.rate_at(step, 1200) for step in range(1200)]
    assert rates[0] == pytest.approx(1 / 60)
    assert rates[59] == rates[60] == 1.0
    assert rates[-1] == pytest.approx(0.1, abs=1e-4)


# ---------------------------------------------------------------------- a run


@pytest.mark.tier("full", but=["[one_ulp]"])
@pytest.mark.parametrize("arm", DIRECT)
def test_a_run_has_the_same_bits_each_time(text, arm):
    one, other = (without_time(train.trained(smoke(arm), text)) for _ in range(2))
    assert one == other
    assert len(one["losses"]) == 3


@pytest.mark.tier("full")
def test_arms_of_a_seed_start_alike_and_then_differ(text):
    losses = {arm: train.trained(smoke(arm), text)["losses"] for arm in DIRECT}
    for arm in DIRECT:
        assert losses[arm][0] == pytest.approx(losses["bf16"][0], rel=2e-3)
    assert len({tuple(each) for each in losses.values()}) == len(DIRECT)


def test_measuring_does_not_change_a_run(text, monkeypatch):
    measured_run = train.trained(smoke("bf16"), text)
    monkeypatch.setattr(train, "measured_in", lambda _: ())
    assert train.trained(smoke("bf16"), text)["losses"] == measured_run["losses"]


def test_one_ulp_moves_one_number(text):
    del text
    models = [started(SMOKE, 3) for _ in range(2)]
    train.disturb(models[1], train.linear_layers(models[1]), ARMS["one_ulp"], 3)
    moved = [
        (a != b).sum().item()
        for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True)
    ]
    assert sum(moved) == 1
    weights = [model.blocks[0].fc1.weight[0, 3].bfloat16() for model in models]
    codes = [weight.view(torch.int16).item() for weight in weights]
    assert abs(codes[1] - codes[0]) == 1


def test_matched_noise_is_unbiased_and_of_the_size_of_e4m3():
    from experiments.disturbances import disturbed

    x = torch.linspace(1, 2, 100_000).bfloat16()
    noise = disturbed(x, torch.Generator().manual_seed(0)).double() / x.double() - 1
    assert abs(noise.mean().item()) < 5e-4
    assert noise.abs().mean().item() == pytest.approx(0.0225, rel=0.01)
    error = mor_ref.quantize(x.float().numpy(), "e4m3").error
    assert error.overall == pytest.approx(0.0225, rel=0.05)


# ---------------------------------------------------------------------- measuring


def test_a_mean_decides_as_mor_does_at_each_threshold():
    x = torch.randn(64, 64) ** 3
    mean = measured(x, TENSOR, "row")
    for threshold in (0.02, 0.0225, mean / 2**23, (mean + 1) / 2**23, 0.03, 0.045):
        written = f"{threshold:.12f}"
        limit = mor_ref.MeanRelativeError(written).limit
        found = mor_ref.mor(x.bfloat16(), "tensor", block="tensor", threshold=written)
        assert (mean < limit) == (found.choice.item() == 0)


def test_a_number_that_is_not_finite_is_accepted_by_no_threshold():
    assert measured(torch.tensor([[1.0, torch.inf]]), TENSOR, "row") == LOST
    assert measured(torch.zeros(2, 2), TENSOR, "row") == 0


def test_directions_are_measured_apart_for_channels_only():
    assert len(rows(("0.qkv",), CHANNEL)) == 2 * len(rows(("0.qkv",), BLOCK)) == 6
    x = torch.randn(8, 32) * torch.logspace(-6, 6, 32, 2)
    by_row, by_column = (measured(x, CHANNEL, way) for way in ("row", "column"))
    assert by_row != by_column == measured(x.T, CHANNEL, "row")


@pytest.mark.tier("full", but=["[mor_tensor-setting0-fields0]"])
@pytest.mark.parametrize(
    ("arm", "setting", "fields"),
    [
        ("mor_tensor", TENSOR, ("sum e4m3", "nonzero e4m3")),
        ("mor_block", BLOCK, ("sum e4m3", "nonzero e4m3")),
        ("mor_channel", CHANNEL, ("sum e4m3", "nonzero e4m3")),
        ("mor_two_way", TWO_WAY, ("choice e4m3", "choice bf16")),
        ("mor_three_way", THREE_WAY, ("choice e4m3", "choice e5m2", "choice bf16")),
    ],
)
def test_what_is_measured_is_what_the_layers_quantized(text, monkeypatch, arm, setting, fields):
    """Compare with the statistics of the recipe, which sees the operands itself."""
    seen = {}

    def observed(model, *arguments, **options):
        convert(model, *arguments, **options)
        observe(model, note)

    def note(one):
        numbers = dict(zip(one.tensor_recipe.statistics, one.statistics.tolist(), strict=True))
        found = [numbers[field] for field in fields]
        by_mean = setting.is_by_tensor
        seen.setdefault((one.layer, one.operand, one.axis), []).append(
            found[0] // max(found[1], 1) if by_mean else found
        )

    monkeypatch.setattr(train, "convert", observed)
    found = train.trained(smoke(arm), text)["measured"]
    names = found["layers"]
    for step, row in zip(found["steps"], found["found"][setting.name], strict=True):
        for (layer, operand, way), number in zip(rows(tuple(names), setting), row, strict=True):
            assert seen[f"blocks.{layer}", operand, way][step] == number, (layer, operand, way)


# ---------------------------------------------------------------------- many runs


@pytest.fixture
def place(text, tmp_path, monkeypatch):
    """Return a directory for runs, which read the small text."""
    monkeypatch.setattr(train, "corpus", lambda _: text)
    return tmp_path


@pytest.mark.tier("full")
def test_an_interrupted_experiment_goes_on(place):
    runs = planned("smoke", 3, ("bf16", "mor_tensor"), (0, 1))
    train.do(runs[1], place, "cpu")
    before = (place / runs[1].path).stat().st_mtime_ns
    assert running.missing(runs, place) == [runs[0], *runs[2:]]
    told = list(running.done_by(processes(), runs, place, "cpu"))
    assert [progress.done for progress in told] == [2, 3, 4]
    assert {progress.run for progress in told} == set(runs) - {runs[1]}
    assert "4 of 4 runs" in str(told[-1])
    assert "about 0 min left" in str(told[-1])
    assert running.missing(runs, place) == []
    assert (place / runs[1].path).stat().st_mtime_ns == before
    assert list(running.done_by(processes(), runs, place, "cpu")) == []


def test_a_file_that_cannot_be_written_whole_is_not_there(tmp_path, monkeypatch):
    def full(path, content):
        with path.open("wb") as file:
            file.write(content[:1])
        raise OSError("the disk is full")

    monkeypatch.setattr(type(tmp_path), "write_bytes", full)
    with pytest.raises(OSError, match="full"):
        write_whole(tmp_path / "one" / "run.json", b"{}")
    assert not (tmp_path / "one" / "run.json").exists()


@pytest.mark.tier("full")
def test_results_are_collected_and_read_again(place, tmp_path_factory):
    runs = planned("smoke", 3, ("bf16", "mor_tensor"), (0, 1))
    for run in runs:
        train.do(run, place, "cpu")
    out = tmp_path_factory.mktemp("results")
    paths = collect(place, out)
    assert [path.relative_to(out).as_posix() for path in paths] == [
        "smoke-3/bf16.json",
        "smoke-3/mor_tensor.json",
    ]
    results = read(out / "smoke-3")
    whole = json.loads((place / runs[0].path).read_text())
    assert results.arms["bf16"].losses[0] == whole["losses"][-1]
    assert results.arms["bf16"].runs[0]["curve"] == [round(loss, 4) for loss in whole["losses"]]
    found = list(results.arms["mor_tensor"].measured(TENSOR))
    assert [(seed, step) for seed, step, *_ in found] == [(s, t) for s in (0, 1) for t in range(3)]


def test_an_experiment_goes_on_from_its_results(place):
    """Runs that were collected elsewhere stay, and are not asked for again."""
    runs = planned("smoke", 1, ("bf16",), (0, 1, 2))
    places = [place / name for name in ("first", "second")]
    train.do(runs[1], places[0], "cpu")
    train.do(runs[2], places[1], "cpu")
    out = place / "results"
    assert not_among(runs, out) == runs
    collect(places[0], out)
    assert not_among(runs, out) == [runs[0], runs[2]]
    collect(places[1], out)
    assert not_among(runs, out) == [runs[0]]
    assert list(read(out / "smoke-1").arms["bf16"].runs) == [1, 2]


@pytest.mark.tier("full", but_one_in=5)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--size", "Z"], "size is 'Z', which is not known; take one of smoke, A"),
        (["--arms", "bf16,fp9"], "arms is 'fp9', which is not known"),
        (["--device", "tpu"], "device is 'tpu'"),
        (["--seeds", "0,x"], "seeds is '0,x'; give whole numbers from 0 with commas, such as 0,1"),
        (["--seeds", "0,-1"], "seeds is '0,-1'; give whole numbers from 0 with commas"),
    ],
)
def test_a_wrong_option_is_one_sentence(tmp_path, monkeypatch, options, message):
    monkeypatch.setattr("sys.argv", ["experiments", "run", "--in", str(tmp_path), *options])
    with pytest.raises(SystemExit) as ended:
        run_as_program(app)
    assert ended.value.code.startswith(f"error: {message}")  # which Python prints, with status 1
    assert len(ended.value.code.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_seeds_count_once():
    assert seeds_in("1,0,1") == (1, 0)


def test_a_damaged_file_of_a_run_is_named(tmp_path):
    damaged = tmp_path / "smoke-1" / "bf16-0.json"
    damaged.parent.mkdir()
    damaged.write_bytes(b"{")
    with pytest.raises(ValueError, match=r"bf16-0\.json is damaged .*; delete it, and do its run"):
        collect(tmp_path, tmp_path / "results")
    assert not (tmp_path / "results").exists()
