"""A policy with blocks of its own has these blocks wherever it is named."""

import numpy as np
import pytest
from extras import needs

import mor_ref
from mor_ref.analysis import analyze, compare, settings_for, settings_under
from mor_ref.definitions.blocks import partition
from mor_ref.exact.policies import mix
from mor_ref.metrics import NotWorseThan
from mor_ref.policies import POLICIES, Policy, Rung
from mor_ref.recipes import Mor, as_tensor_recipe, short_text

BLOCK = (1, 8)
TINY = Policy("tiny", (Rung("e4m3", NotWorseThan("e5m2")),), unit="block", block=BLOCK)
X = (2.0 ** np.random.default_rng(5).integers(-12, 12, (4, 32))).astype(np.float32)
X *= np.random.default_rng(6).uniform(1, 2, X.shape).astype(np.float32)


@pytest.fixture(autouse=True)
def _tiny(monkeypatch):
    monkeypatch.setitem(POLICIES, "tiny", TINY)


def decided_in(block):
    """Return the rung of each block by the exact model, in rows of the grid."""
    parts = partition(X.shape, block, "tensor")
    decisions = mix(X.tolist(), TINY, "gam", parts).decisions
    rows, columns = parts.grid
    return [[decisions[i, j].choice for j in range(columns)] for i in range(rows)]


def test_the_blocks_decide_otherwise_than_those_of_the_usual_policies():
    choice = np.array(decided_in(BLOCK))
    assert 0 < choice.sum() < choice.size
    assert mor_ref.mor(X, "tiny").choice.tolist() == choice.tolist()


def test_analyze():
    count = int(np.sum(decided_in(BLOCK))), int(np.size(decided_in(BLOCK)))
    for found in (settings_for("tiny"), settings_under("mor:tiny")):
        report = analyze(X, found).report
        assert report.units == {"e4m3": count[1] - count[0], "bf16": count[0]}


def test_compare():
    (found,) = compare(X, ["mor:tiny"]).values()
    assert found.taken["bf16"] == 8 * np.sum(decided_in(BLOCK))


def test_verify():
    def mine(*asked):
        right = mor_ref.mor(asked[-1]["x"].view(np.float32), "tiny")
        return {"choice": right.choice, "output": right.output}

    assert mor_ref.verify(mine, inputs={"x": X}, recipe="mor:tiny")


@needs("torch")
def test_training():
    import torch

    from mor_ref.torch import Operand, Recipe, fake_quantize

    own = Operand(Mor("tiny"))
    found = fake_quantize(torch.from_numpy(X), Recipe("mine", own, own, own))
    output = mor_ref.mor(X, "tiny").output
    right = (output.astype(np.uint32) << 16).view(np.float32)
    assert np.array_equal(found.float().numpy(), right)


def test_a_given_block_goes_before():
    assert Mor("tiny").block == BLOCK
    assert as_tensor_recipe("mor:tiny:2x8").cut == (2, 8)
    assert short_text(Mor("tiny")) == "mor:tiny:gam:1x8"
    assert as_tensor_recipe(Mor("tiny").text) == Mor("tiny")
    assert Mor("tensor").block == (128, 128)
