"""Every field of a policy reaches every function that takes one, and the expected values."""

from collections import Counter
from dataclasses import fields, replace

import numpy as np
import pytest
from extras import imported, is_there, needs
from records import differing, engine_mor, engine_quantize, exact_mor, exact_quantize, rows_of

import mor_ref
from mor_ref import MeanRelativeError, NotWorseThan, Policy, Rung
from mor_ref.analysis import analyze, compare, settings_for
from mor_ref.definitions.blocks import in_parameters, partition
from mor_ref.exact import policies
from mor_ref.exact.errors import error_sum
from mor_ref.operations import OPERATIONS
from mor_ref.policies import POLICIES
from mor_ref.recipes import Asked, Mor, rungs_of
from mor_ref.verify import own_tensors

torch = imported("torch") if is_there("torch") else None
if torch:
    from mor_ref.torch import fake_quantize

X = np.random.default_rng(7).standard_normal((12, 96), dtype=np.float32)
X[4:8] *= np.exp2(np.random.default_rng(8).integers(-12, 1, (4, 96))).astype(np.float32)
MEAN = MeanRelativeError("0.02")
MINE = Policy(
    "mine",
    (Rung("e4m3", MEAN), Rung("e5m2", NotWorseThan("e3m4"))),
    unit="block",
    block=(2, 16),
    group=(4, 48),
)
# Policies that differ from MINE in one field.
OTHERS = {
    "ladder": {
        "threshold": (Rung("e4m3", MeanRelativeError("0.023")), MINE.ladder[1]),
        "yardstick": (MINE.ladder[0], Rung("e5m2", NotWorseThan("e5m2"))),
        "format": (Rung("e3m4", MEAN), MINE.ladder[1]),
        "order": MINE.ladder[::-1],
    },
    "unit": {"tensor": "tensor"},
    "block": {"rows": (1, 16), "columns": (2, 8)},
    "group": {"rows": (2, 96), "sides": (2, 16), "columns": (12, 48), "tensor": "tensor"},
}
CHANGED = {
    f"{field}-{name}": replace(MINE, **{field: value})
    for field, values in OTHERS.items()
    for name, value in values.items()
} | {
    "group-row": replace(MINE, block=(1, 16), group="row"),
    "unit-tensor-group-row": replace(MINE, unit="tensor", block=(1, 16), group="row"),
}
EACH = pytest.mark.parametrize("policy", [MINE, *CHANGED.values()], ids=["mine", *CHANGED])
FEW = pytest.mark.tier("full", but=["group-rows", "unit-tensor-group-row"])


@pytest.fixture(autouse=True)
def _as_rows(monkeypatch):
    """Add the policy of a test as a row, so that recipes name it."""
    monkeypatch.setitem(POLICIES, "mine", MINE)


def by_model(policy, x=X):
    """Return a tensor with a policy by the exact model, which is given each field by name."""
    cut = partition(x.shape, policy.block, policy.group)
    return policies.mix(rows_of(x), policy, "gam", cut), cut


def named(monkeypatch, policy):
    """Return the recipe that names a policy."""
    monkeypatch.setitem(POLICIES, "mine", policy)
    return "mor:mine"


def test_every_field_is_changed():
    assert {*OTHERS} == {field.name for field in fields(Policy)} - {"name"}


@pytest.mark.parametrize("policy", CHANGED.values(), ids=CHANGED)
def test_a_field_that_is_dropped_would_be_seen(policy):
    """Each policy has another result than the one that it is made from, so none matches both."""
    assert exact_mor(X, policy) != exact_mor(X, MINE)


@FEW
@EACH
def test_mor_takes_every_field(policy):
    assert differing(engine_mor(X, policy), exact_mor(X, policy)) == {}


@FEW
@EACH
def test_the_rungs_take_every_field(policy):
    asked = {"policy": policy, "scaling": "gam", "block": policy.block, "source": "f32"}
    of_rungs = rungs_of(Asked("mor", asked))
    assert [*of_rungs] == [one.name for one in policy.tried]
    for name, rung in of_rungs.items():
        given = rung.parameters
        found = OPERATIONS[rung.operation].engine(given, {"x": X.view(np.uint32)})
        how = {"block": policy.block, "group": policy.group}
        right = exact_quantize(X, name, **how)
        assert found["code"].ravel().tolist() == right["codes"]
        assert found["scale"].view(np.float32).tolist() == right["scale"]
        assert differing(engine_quantize(X, name, **how), right) == {}


def computed_many_at_a_time(policy):
    block = in_parameters(policy.block)
    asked = {"policy": "mine", "scaling": "gam", "block": block, "source": "f32"}
    return OPERATIONS["mor"].exact_of_many(asked, {"x": X.view(np.uint32)})


@FEW
@EACH
def test_the_model_of_many_numbers_takes_every_field(monkeypatch, policy):
    named(monkeypatch, policy)
    found, right = computed_many_at_a_time(policy), exact_mor(X, policy)
    assert found["output"].ravel().tolist() == right["output"]
    assert found["choice"].tolist() == right["choice"]
    for name, sums in right["error"].items():
        assert found[f"{name}.sum"].tolist() == [[one[0] for one in row] for row in sums]


def answering(policy):
    """Return a candidate that answers what the exact model computes with a policy."""

    def answer(_, parameters, inputs):
        assert parameters["scaling"] == "gam"
        right = exact_mor(inputs["x"].view(np.float32), policy)
        errors = {
            f"{name}.{kind}": np.array([[one[k] for one in row] for row in sums], np.uint64)
            for name, sums in right["error"].items()
            for k, kind in enumerate(("sum", "nonzero", "nonfinite"))
        }
        return errors | {
            "amax": np.array(right["amax"], np.float32).view(np.uint32),
            "amin": np.array(right["amin"], np.float32).view(np.uint32),
            "choice": np.array(right["choice"], np.uint8),
            "output": np.array(right["output"], np.uint16).reshape(inputs["x"].shape),
        }

    return answer


@FEW
@EACH
@pytest.mark.parametrize("recipe", ["named", "of its own"])
def test_verify_expects_what_every_field_says(monkeypatch, policy, recipe):
    if recipe == "named":
        recipe = named(monkeypatch, policy)
    else:
        recipe = Mor(replace(policy, name="another"))
    report = mor_ref.verify(answering(policy), inputs={"x": X}, recipe=recipe)
    assert report.verdict == "match", str(report)


@FEW
@EACH
def test_tensors_and_their_corners_have_the_same_expected_values(monkeypatch, policy):
    """Of a large tensor, the engine computes the expected values: its corner has the model's."""
    monkeypatch.setattr(own_tensors, "LARGEST_SMALL", 64)
    report = mor_ref.verify(answering(policy), inputs={"x": X}, recipe=named(monkeypatch, policy))
    assert [one.suite for one in report.results] == ["own", "own_corners"]
    assert report.verdict == "match", str(report)


@FEW
@EACH
def test_analyze_takes_every_field(policy):
    right, _ = by_model(policy)
    report = analyze(X, settings_for(policy)).report
    counts = Counter(policy.names[one.choice] for one in right.decisions.values())
    assert report.units == {name: counts[name] for name in policy.names}
    for name in right.tried:
        errors = [one.errors[name] for one in right.decisions.values()]
        mean = sum(e.sum for e in errors) / 2**23 / sum(e.nonzero for e in errors)
        assert report.errors[name] == mean


@FEW
@EACH
def test_compare_takes_every_field(monkeypatch, policy):
    right, cut = by_model(policy)
    restored = policies.restored(rows_of(X), right, policy, cut)
    y = [number for row in restored for number in row]
    error = error_sum(zip(X.ravel().tolist(), y, strict=True))
    recipe = named(monkeypatch, policy)
    found = compare(X, [recipe])[recipe]
    assert (found.measures.sum, found.measures.nonzero) == (error.sum, error.nonzero)
    size = cut.block[0] * cut.block[1] if policy.unit == "block" else X.size
    taken = Counter[str]()
    for one in right.decisions.values():
        taken[policy.names[one.choice]] += size
    assert {name: count for name, count in found.taken.items() if count} == taken


@needs("torch")
@FEW
@EACH
@pytest.mark.parametrize("axis", ["row", "column"])
def test_torch_takes_every_field(monkeypatch, policy, axis):
    x = X if axis == "row" else np.ascontiguousarray(X.T)
    y = fake_quantize(torch.from_numpy(x), named(monkeypatch, policy), axis=axis)
    found = y.numpy() if axis == "row" else np.ascontiguousarray(y.numpy().T)
    output = (found.view(np.uint32) >> 16).ravel().tolist()
    assert output == exact_mor(X, policy)["output"]
