"""Training under policies that see the role of a tensor, and remember (MOR-015, MOR-016)."""

import copy
import json
import re

import numpy as np
import pytest
from extras import imported, is_there, needs

import mor_ref
from mor_ref import Policy, RelativeFrobenius, Role, Rung
from mor_ref.policies import POLICIES
from mor_ref.recipes import Mor, Situation, as_tensor_recipe
from mor_ref.recipes.training import KIND_OF, Operand, Recipe

torch = imported("torch") if is_there("torch") else None
if torch:
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    from mor_ref.torch import advance, convert, fake_quantize, load_state, observe, state

BY_KIND = RelativeFrobenius({"*": 0.5, "weight": 0.1, "0:gradient": 0.2, "2:gradient": 0.3})


@pytest.fixture
def policy(monkeypatch):
    """Return a function that adds a policy named mine, with these rungs."""

    def add(*rungs, **fields):
        monkeypatch.setitem(POLICIES, "mine", Policy("mine", rungs, block=(16, 16), **fields))
        return POLICIES["mine"]

    return add


def small_model(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 32))


def train(model, steps, first=0, microbatches=1):
    """Train, and return the losses; inputs are those of their steps."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    losses = []
    for step in range(first, first + steps):
        optimizer.zero_grad()
        for part in range(microbatches):
            x = torch.randn(32, 32, generator=torch.Generator().manual_seed(100 * step + part))
            loss = (model(x) - x).square().mean()
            loss.backward()
        optimizer.step()
        advance(model)
        losses.append(loss.item())
    return losses


# ---------------------------------------------------------------------- thresholds by role


def test_a_recipe_has_the_thresholds_of_a_layer(policy):
    """MOR-015: of an operand and a layer, where a table has several."""
    policy(Rung("nvfp4", BY_KIND), Rung("e4m3", RelativeFrobenius(0.05)))
    each = Operand(Mor("mine"), Mor("mine"))
    recipe = Recipe("r", each, Operand(Mor("mine")), each).for_layer("model.2")
    assert {operand: getattr(recipe, operand).row.threshold for operand in KIND_OF} == {
        "input": {"nvfp4": "0.5"},
        "weight": {"nvfp4": "0.1"},
        "grad_output": {"nvfp4": "0.3"},
    }
    assert recipe.input.column == recipe.input.row
    assert recipe.weight.column is None
    assert Recipe.from_text(str(recipe)) == recipe
    assert recipe.for_layer("0") == recipe


def test_thresholds_of_a_recipe_are_tables_by_rung_and_role():
    """MOR-015, in Python and in TOML."""
    text = 'representation = "mor"\npolicy = "nvfp4"\n[threshold]\ne4m3 = 0.1\n'
    text += '[threshold.nvfp4]\n"*" = "0.2"\n"layers.0" = 0.3\n"layers.0:gradient" = 0.4\n'
    recipe = as_tensor_recipe(text)
    table = {"*": "0.2", "layers.0": "0.3", "layers.0:gradient": "0.4"}
    assert recipe == Mor("nvfp4", threshold={"e4m3": 0.1, "nvfp4": table})
    assert hash(recipe) == hash(as_tensor_recipe(str(recipe)))
    assert as_tensor_recipe(str(recipe)) == recipe
    for role, threshold in (
        (Role(), "0.2"),
        (Role("layers.0.up", "weight"), "0.3"),
        (Role("layers.0.up", "gradient"), "0.4"),
    ):
        chosen = recipe.for_tensor(role)
        assert chosen == Mor("nvfp4", threshold={"e4m3": 0.1, "nvfp4": threshold})
        rungs = [rung.metric.value for rung in recipe.policy_in(Situation(role=role)).ladder]
        assert rungs == [float(threshold), 0.1]
    assert Mor("nvfp4", threshold="0.1").for_tensor(Role()) == Mor("nvfp4", threshold="0.1")


@needs("torch")
def test_layers_quantize_with_the_thresholds_of_their_roles(policy):
    """MOR-015: each quantization is that of `mor` with its threshold alone."""
    policy(Rung("nvfp4", BY_KIND), unit="block")
    model = small_model()
    convert(model, "mor:mine")
    seen = []
    with observe(model, seen.append):
        model(torch.randn(32, 32, requires_grad=True)).square().mean().backward()
    thresholds = {"input": 0.5, "weight": 0.1, "0grad_output": 0.2, "2grad_output": 0.3}
    assert len(seen) == 2 * 6
    for one in seen:
        key = one.operand if one.operand in thresholds else f"{one.layer}{one.operand}"
        rung = Rung("nvfp4", RelativeFrobenius(thresholds[key]))
        x = one.x if one.axis == "row" else one.x.T.contiguous()
        expected = mor_ref.mor(x, Policy("alone", (rung,), "block", (16, 16)))
        y = one.y if one.axis == "row" else one.y.T
        assert np.array_equal(y.float().numpy(), expected.dequantize()), (one.layer, one.operand)


@needs("torch")
def test_a_layer_without_a_threshold_is_refused_before_any_is_converted(policy):
    policy(Rung("nvfp4", RelativeFrobenius({"weight": 0.1, "0": 0.1})))
    model = small_model()
    with pytest.raises(ValueError, match="not for an activation of layer '2'"):
        convert(model, "mor:mine")
    assert type(model[0]) is nn.Linear
    assert convert(model, "mor:mine", include="0") == ("0",)


@needs("torch")
def test_a_tensor_alone_has_the_kind_of_its_operand(policy):
    policy(Rung("e4m3", RelativeFrobenius({"weight": 1, "gradient": "1e-9"})))
    x = torch.randn(16, 16)
    kept, quantized = (fake_quantize(x, "mor:mine", operand=o) for o in ("grad_output", "weight"))
    assert torch.equal(kept, x.bfloat16().float())
    assert not torch.equal(quantized, kept)
    with pytest.raises(ValueError, match="threshold is given for weight, gradient, but not for"):
        fake_quantize(x, "mor:mine")


# ---------------------------------------------------------------------- functions and states


@needs("torch")
def test_a_function_decides_as_the_metric_that_it_repeats(policy):
    """MOR-014: a layer that asks a function has the bits of one that asks no function."""
    outputs = []
    for metric in (RelativeFrobenius("0.09"), lambda unit: unit.relative_frobenius < 0.09):
        policy(Rung("nvfp4", metric), Rung("mxfp8", RelativeFrobenius("0.03")), unit="block")
        model = small_model()
        convert(model, "mor:mine")
        x = torch.randn(40, 32, generator=torch.Generator().manual_seed(1), requires_grad=True)
        y = model(x)
        y.square().mean().backward()
        outputs.append([y, x.grad, *(p.grad for p in model.parameters())])
    assert all(torch.equal(*both) for both in zip(*outputs, strict=True))


@needs("torch")
def test_a_function_is_given_the_role_of_each_tensor(policy):
    """MOR-015: layer, kind and step."""
    seen = []

    def metric(unit, _):
        seen.append((unit.step, unit.layer, unit.kind))
        return True

    policy(Rung("e4m3", metric))
    model = small_model()
    convert(model, "mor:mine")
    train(model, 2)
    for step in range(2):
        roles = [(layer, kind) for when, layer, kind in seen if when == step]
        # The first layer needs no gradient of its input, which takes a row of its gradient, too.
        assert {role: roles.count(role) for role in roles} == {
            ("0", "activation"): 2, ("0", "weight"): 1, ("0", "gradient"): 1,
            ("2", "activation"): 2, ("2", "weight"): 2, ("2", "gradient"): 2,
        }  # fmt: skip


def hysteresis(unit, state):
    limit = 0.09 * (1.05 if state.get("taken") else 1)
    state["taken"] = unit.relative_frobenius < limit
    return state["taken"]


def running_amax(unit, state):
    state["amax"] = max(unit.amax, 0.9 * state.get("amax", 0.0))
    return state["amax"] < 1.25 * unit.amax


@needs("torch")
@pytest.mark.parametrize("metric", [hysteresis, running_amax])
def test_a_run_goes_on_from_a_saved_state(policy, metric):
    """MOR-016: in plain values, through JSON, between steps and in the middle of one."""
    policy(Rung("nvfp4", metric), Rung("e4m3", metric), unit="block")
    model = small_model()
    convert(model, "mor:mine")
    train(model, 3)
    saved = json.loads(json.dumps(state(model)))
    assert saved["0"]["memories"].keys() == {
        "input row", "weight row", "grad_output column", "input column",
    }  # fmt: skip
    other = copy.deepcopy(model)
    losses = train(model, 3, 3)
    again = small_model()
    again.load_state_dict(other.state_dict())
    convert(again, "mor:mine")
    load_state(again, saved)
    assert state(again) == state(other)
    assert train(again, 3, 3) == losses
    assert state(again) == state(model)
    forgetful = small_model()
    forgetful.load_state_dict(other.state_dict())
    convert(forgetful, "mor:mine")
    assert train(forgetful, 3, 3) != losses


@needs("torch")
def test_a_step_begins_with_the_states_of_the_step_before(policy):
    """MOR-016: evaluations and what a checkpoint computes again change nothing."""
    given = []

    def metric(unit, state):
        given.append(state.get("x"))
        state["x"] = float(unit.x[0, 0])
        return True

    policy(Rung("e4m3", metric))
    layer = nn.Linear(4, 4)
    convert(nn.Sequential(layer), Recipe("r", *[Operand(Mor("mine"))] * 3))
    memory = layer.mor_ref_layer

    def call(number):
        given.clear()
        return layer(torch.full((2, 4), float(number), requires_grad=True))

    first = call(1)
    assert given == [None, None]
    call(2)
    assert given == [None, None]
    advance(layer)
    assert memory.memories["input row"] == {"e4m3 0 0": {"x": 2.0}}
    layer.eval()
    call(3)
    assert given[0] == 2.0
    layer.train()
    with torch.no_grad():
        call(3)
    advance(layer)
    assert memory.memories["input row"] == {"e4m3 0 0": {"x": 2.0}}
    del first
    inputs = [torch.full((2, 4), float(n), requires_grad=True) for n in (4, 5)]
    outputs = [checkpoint(layer, x, use_reentrant=False) for x in inputs]
    given.clear()
    for y in outputs:
        y.sum().backward()
    assert given[0] == 2.0
    advance(layer)
    assert memory.memories["input row"] == {"e4m3 0 0": {"x": 5.0}}


@needs("torch")
def test_a_step_of_a_policy_with_a_state_has_to_end(policy):
    policy(Rung("e4m3", hysteresis))
    model = small_model()
    convert(model, "mor:mine")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(2, 32)).sum().backward()
    optimizer.step()
    with pytest.raises(RuntimeError, match="its step has not ended"):
        model(torch.ones(2, 32))
    policy(Rung("e4m3", lambda unit: unit.sqnr > 20))
    model = small_model()
    convert(model, "mor:mine")
    for _ in range(2):
        model(torch.ones(2, 32)).sum().backward()
        optimizer.step()


@needs("torch")
@pytest.mark.parametrize(
    ("value", "has"),
    [
        (np.ones(2), "a ndarray"),
        ({1: 2}, "a dict with keys that are no texts"),
        ((1, 2), "a tuple"),
    ],
)
def test_a_state_that_a_checkpoint_changes_is_refused(policy, value, has):
    def metric(_, state):
        state["x"] = value
        return True

    policy(Rung("e4m3", metric))
    model = small_model()
    convert(model, "mor:mine")
    model(torch.ones(2, 32))
    with pytest.raises(
        TypeError, match=f"the memory of layer '0' has {has}, which a checkpoint does not keep as"
    ):
        state(model)


@needs("torch")
@pytest.mark.parametrize(
    ("memories", "message"),
    [
        ({"bias row": {}}, "memories are of other operands"),
        ([], "memories are of other operands"),
        ({"weight row": {"e4m3 0 0": 1}}, "memories have no state for each unit"),
        ({"weight row": 1}, "memories have no state for each unit"),
    ],
)
def test_damaged_memories_are_refused(policy, memories, message):
    policy(Rung("e4m3", hysteresis))
    model = small_model()
    convert(model, "mor:mine")
    saved = state(model)
    saved["0"]["memories"] = memories
    with pytest.raises(ValueError, match=re.escape(message)):
        load_state(model, saved)
    for one in saved.values():  # as an earlier version saved it
        del one["memories"], one["next_memories"]
    load_state(model, saved)
