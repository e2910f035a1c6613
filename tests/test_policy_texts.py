"""Texts of policies: what they mean, equal ones of equal policies, and refusals (MOR-018)."""

import json
import re
import tomllib
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from extras import needs
from forking import mor_ref as run
from hypothesis import given
from hypothesis import strategies as st

import mor_ref
from mor_ref import (
    BlockFormat,
    BlockScale,
    Cosine,
    FitsRange,
    Format,
    LargestByRow,
    MeanRelativeError,
    Metric,
    NotWorseThan,
    Policy,
    RelativeFrobenius,
    Rung,
    Sqnr,
)
from mor_ref.analysis import analyze, compare
from mor_ref.analysis.analyze_tensor import settings_for
from mor_ref.definitions.roles import KINDS, Role
from mor_ref.metrics import METRICS, Always
from mor_ref.policies import POLICIES
from mor_ref.recipes import (
    Mor,
    Situation,
    as_policy,
    as_tensor_recipe,
    own_recipe,
    policy_text,
)
from mor_ref.representations import (
    REPRESENTATIONS,
    FunctionRepresentation,
    MxBlocks,
    Nvfp4Tiles,
    as_representation,
)

CAREFUL = """
name = "careful"
unit = "block"
block = [16, 32]

[[ladder]]
representation = "nvfp4"
metric = "relative_frobenius"
threshold = { "*" = 0.1, gradient = 0.15 }

[[ladder]]
representation = "mxfp8:rceil"
metric = "sqnr"
threshold = 31.5

[[ladder]]
representation = "e4m3"
metric = "not_worse_than"
yardstick = "e5m2"
"""
# The same, written as a record.
RECORD = Policy(
    "careful",
    (
        Rung("nvfp4", RelativeFrobenius({"*": "0.1", "gradient": "0.15"})),
        Rung(MxBlocks("e4m3", "rceil"), Sqnr("31.5")),
        Rung("e4m3", NotWorseThan("e5m2")),
    ),
    unit="block",
    block=(16, 32),
)
OWN = BlockFormat("own", "e2m1", (BlockScale("s", (1, 8), "amax / 6 or 1", "bf16"),), decode="s")
X = np.random.default_rng(5).standard_normal((48, 96)).astype(np.float32)
X[:16, :32] = 1  # nvfp4 loses nothing here
X[16:32] = 1.06 * np.exp(X[16:32] / 8)  # all of one binade, far from one another
X[32:, :32] *= 2e-7

thresholds = st.sampled_from([0.5, "0.125", Decimal("0.07"), Fraction(1, 22)])
by_role = st.dictionaries(st.sampled_from(["*", "weight", "layers.*:gradient"]), thresholds,
                          min_size=1)  # fmt: skip
with_threshold = st.builds(
    lambda kind, threshold: kind(threshold),
    st.sampled_from([MeanRelativeError, RelativeFrobenius, Sqnr, Cosine, LargestByRow]),
    thresholds | by_role,
)
metrics = with_threshold | st.sampled_from(
    [Always(), FitsRange("e5m2"), NotWorseThan("e5m2"), NotWorseThan(OWN), FitsRange("e4m3")]
)
rows = st.sampled_from(
    [
        "nvfp4",
        "te_2_13",
        "e4m3",
        "e5m2",
        "mxfp8",
        "int8",
        "mx9",
        "seq1.58",
        OWN,
        MxBlocks("e2m1", "even", 16),
        Nvfp4Tiles("te", (16, 16)),
    ]
)
ladders = st.lists(
    st.builds(Rung, rows, metrics), min_size=1, max_size=4, unique_by=lambda rung: rung.name
)
policies = st.builds(
    Policy,
    st.just("mine"),
    ladders.map(tuple),
    unit=st.sampled_from(["tensor", "block"]),
    block=st.sampled_from(["row", "tensor", (2, 16), (128, 128)]),
    group=st.sampled_from(["tensor", "row"]),
)


@given(policies)
def test_a_text_is_read_as_the_policy_that_wrote_it(policy):
    """MOR-018: and it is a policy among recipes, and their texts."""
    text = policy_text(policy)
    read = as_policy(text)
    assert policy_text(read) == text == policy_text(as_policy(json.dumps(tomllib.loads(text))))
    assert [rung.representation for rung in read.ladder] == [
        rung.representation for rung in policy.ladder
    ]
    assert [type(rung.metric) for rung in read.ladder] == [
        type(rung.metric) for rung in policy.ladder
    ]
    assert (read.unit, read.block, read.group) == (policy.unit, policy.block, policy.group)
    recipe = as_tensor_recipe(text)
    assert as_tensor_recipe(str(recipe)) == recipe == as_tensor_recipe(tomllib.loads(text))
    assert hash(as_tensor_recipe(str(recipe))) == hash(recipe)


def test_a_text_means_the_policy_of_its_words():
    """MOR-018: the choices and outputs of a record written by hand, however it is given."""
    expected = mor_ref.mor(X, RECORD)
    assert len(set(expected.choice.ravel().tolist())) > 2
    for given_policy in (CAREFUL, tomllib.loads(CAREFUL), json.dumps(tomllib.loads(CAREFUL))):
        result = mor_ref.mor(X, given_policy)
        assert result.choice.tolist() == expected.choice.tolist()
        assert result.output.tolist() == expected.output.tolist()
    assert policy_text(RECORD) == policy_text(as_policy(CAREFUL))
    assert Mor(RECORD) == as_tensor_recipe(CAREFUL)
    assert Mor(RECORD).block == (16, 32)
    assert Mor(RECORD, block="row").block == "row"
    assert own_recipe(CAREFUL).title == "mor:careful"


@pytest.mark.parametrize("name", POLICIES.specified)
def test_the_text_of_a_row_is_its_name_in_recipes(name):
    assert as_policy(policy_text(POLICIES[name])).names == POLICIES[name].names
    assert Mor(POLICIES[name]) == Mor(name)
    assert as_tensor_recipe(policy_text(POLICIES[name])).policy == name


def test_thresholds_depend_on_the_tensor():
    """MOR-015: the threshold of a gradient is another one, in analyses and for a layer."""
    recipe = as_tensor_recipe(CAREFUL)
    first = recipe.for_tensor(Role("layers.0", "gradient")).policy_in(Situation()).ladder[0]
    assert first.metric.threshold == "0.15"
    shares = {kind: compare(X, [CAREFUL], kind=kind)["mor:careful"].measures for kind in KINDS}
    by_hand = {kind: mor_ref.mor(X, RECORD.for_tensor(Role(kind=kind))) for kind in KINDS}
    for kind in KINDS:
        by_record = analyze(X, settings_for(RECORD, kind=kind)).report
        assert analyze(X, settings_for(CAREFUL, kind=kind)).report == by_record
        assert shares[kind].mse > 0
    assert by_hand["gradient"].choice.tolist() != by_hand["weight"].choice.tolist()


def test_commands_take_a_file(tmp_path):
    """compare, analyze, quantize, dequantize and verify, whose suite has the text of the policy."""
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "careful.toml").write_text(CAREFUL)
    compared = json.loads(run("compare", "x.npy", "--recipe", "careful.toml", "--json",
                              cwd=tmp_path).stdout)  # fmt: skip
    assert "mor:careful" in json.dumps(compared)
    by_recipe = run("analyze", "x.npy", "--recipe", "careful.toml", cwd=tmp_path)
    assert (
        run("analyze", "x.npy", "--policy", "careful.toml", cwd=tmp_path).stdout == by_recipe.stdout
    )
    made = run("quantize", "x.npy", "--recipe", "careful.toml", "--out", "q.npz", cwd=tmp_path)
    assert made.returncode == 0
    assert run("dequantize", "q.npz", "--out", "y.npy", cwd=tmp_path).returncode == 0
    y = np.load(tmp_path / "y.npy")
    assert y.tobytes() == mor_ref.mor(X, RECORD).dequantize().tobytes()
    done = run("verify", "numba", "--inputs", "x.npy", "--recipe", "careful.toml", cwd=tmp_path)
    assert "numba: match" in done.stdout


@needs("torch")
def test_layers_are_trained_under_a_text():
    import torch

    from mor_ref.torch import convert, revert

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 16))
    x, y = torch.randn(8, 64), []
    POLICIES["careful"] = RECORD
    try:
        for recipe in (CAREFUL, "mor:careful"):
            convert(model, recipe)
            out = model(x)
            out.square().mean().backward()
            y.append((out.detach(), model[0].weight.grad.clone()))
            model.zero_grad()
            revert(model)
    finally:
        del POLICIES["careful"]
    assert all(map(torch.equal, *y))


class Own(Metric):
    """A metric of a user."""

    name = "own_metric"

    def accepts(self, own, errors, amax, amin):
        del errors, amax, amin
        return own.nonzero < 5


def test_rows_of_a_user_have_digests(monkeypatch):
    """MOR-017: those of representations and of metrics; a text is refused with other code."""
    monkeypatch.setitem(REPRESENTATIONS, "whole", FunctionRepresentation(np.rint, "whole"))
    monkeypatch.setitem(METRICS, "own_metric", Own())
    text = policy_text(Policy("mine", (Rung("whole", METRICS["own_metric"]),)))
    assert text.count("sha256:") == 2
    assert as_policy(text).ladder == (Rung("whole", METRICS["own_metric"]),)
    monkeypatch.setitem(REPRESENTATIONS, "whole", FunctionRepresentation(np.round, "whole", bits=5))
    with pytest.raises(ValueError, match="its code or its fields changed since"):
        as_policy(text)


def test_what_no_text_has_is_refused():
    with pytest.raises(ValueError, match="the metric of rung 'e4m3' is .*; give a metric of mor"):
        policy_text(Policy("mine", (Rung("e4m3", lambda unit: unit.sqnr > 20),)))
    with pytest.raises(ValueError, match="rung 'rint' has a representation that is no row; add"):
        policy_text(Policy("mine", (Rung(np.rint, Always()),)))
    narrow = Format("narrow", exponent_bits=3, mantissa_bits=2, bias=3, specials="none")
    with pytest.raises(ValueError, match="rung 'narrow' has a representation that is no row; add"):
        policy_text(Policy("mine", (Rung(narrow, Always()),)))
    with pytest.raises(ValueError, match="the metric of rung 'e4m3' is FitsRange"):
        policy_text(Policy("mine", (Rung("e4m3", FitsRange(narrow)),)))
    with pytest.raises(ValueError, match="has no text, as the metric of rung"):
        Mor(Policy("mine", (Rung("e4m3", lambda unit: unit.sqnr > 20),)))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name = "careful"', "", "the policy has no name"),
        ('unit = "block"', 'unit = "blocks"', "unit is 'blocks'"),
        ('unit = "block"', "blok = 3", "a key of the policy is 'blok', which is not known; did"),
        ('"sqnr"', '"snr"', "metric of rung 1 of policy 'careful' is 'snr', which is not known"),
        ('"sqnr"', "3", "metric of rung 1 of policy 'careful' is 3"),
        ("threshold = 31.5", "", "rung 1 of policy 'careful', whose metric is sqnr, has no"),
        ("threshold = 31.5", "threshold = 0", "threshold is 0; give decibels above 0"),
        ("threshold = 31.5", 'threshold = 31.5\nfmt = "e5m2"', "is 'fmt', which is not known"),
        ('"mxfp8:rceil"', '"mxfp8:rcel"', "did you mean 'rceil'"),
        ('"mxfp8:rceil"', '"e5m2:gam:row"', "and scales are those of the policy; give 'e5m2'"),
        ('"mxfp8:rceil"', '"mor:tensor"', "which is no representation; give such as 'mxfp8'"),
        ('"mxfp8:rceil"', '"nvfp4"', "give each only once"),
        ("[[ladder]]", "[[ladr]]", "the policy has no ladder"),
        ('yardstick = "e5m2"', 'yardstick = "e5m9"', "e5m9"),
        ("metric =", "metrik =", "has no metric"),
        ("block = [16, 32]", "block = [16]", "block is"),
    ],
)  # fmt: skip
def test_a_wrong_text_is_refused_with_its_place(old, new, words):
    assert old in CAREFUL
    text = CAREFUL.replace(old, new)
    for read in (as_policy, as_tensor_recipe):
        if new == "[[ladr]]" and read is as_tensor_recipe:
            continue  # nothing says that it is a policy
        with pytest.raises((ValueError, TypeError), match=re.escape(words)):
            read(text)


def test_a_ladder_that_is_no_table_is_refused():
    with pytest.raises(
        TypeError, match=r"ladder is 'e4m3'; give tables, as \[\[ladder\]\] of TOML"
    ):
        as_policy('name = "a"\nladder = "e4m3"')
    with pytest.raises(ValueError, match="rung 0 of policy 'a' is 3, which is not a table"):
        as_policy('name = "a"\nladder = [3]')
    with pytest.raises(ValueError, match="'careful.toml', a file that does not exist; give the"):
        as_policy("careful.toml")
    assert as_representation("nvfp4") == as_policy(CAREFUL).ladder[0].representation
