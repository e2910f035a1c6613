"""Suites: their sizes and names, and tensors whose decision changes with one step."""

import numpy as np
import pytest

from mor_ref import formats, golden
from mor_ref.definitions.mx import SCALE_RULES, ScaleRule
from mor_ref.deviations import applied
from mor_ref.exact.arithmetic import quotient
from mor_ref.golden.inputs.enlarged import questions
from mor_ref.golden.inputs.mx_blocks import turning_tensor, underflowing
from mor_ref.golden.inputs.tensors_at_thresholds import turning_points
from mor_ref.golden.model.suite import Size
from mor_ref.golden.suites import SUITES
from mor_ref.golden.suites.mx import ELEMENTS
from mor_ref.mistakes.catalogue import CAUSES
from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import numbers_of

# The larger ones are made by the same functions.
SMALL = [f"[{name}]" for name in ("decisions", "error_steps", "nvfp4_te", "policies", "decode")]


def numbers(suite, size):
    return [
        (case.name, name, array)
        for case in questions(suite, size)
        for name, array in case.arrays.items()
    ]


# The rates and steps of Adam are few and given; mx_decoding has every code, most of them once.
WITH_RANDOM = [name for name in SUITES if name not in ("fp8lm_rates", "mx_decoding")]


@pytest.mark.tier("full", one_in=3, but=SMALL)
@pytest.mark.parametrize("name", WITH_RANDOM)
def test_every_suite_is_made_larger(name):
    """By random cases, which are an eighth of it or more: the edges are there once.

    Arrays of one row do not count: the row of integers whose sum wraps is longer than all others.
    """
    once, thrice = (
        sum(array.size for _, _, array in numbers(SUITES[name], Size(factor)) if len(array) > 1)
        for factor in (1, 3)
    )
    assert 4 * thrice > 5 * once


@pytest.mark.tier("full", one_in=3, but=SMALL)
@pytest.mark.parametrize("name", WITH_RANDOM)
def test_every_larger_suite_depends_on_its_seed(name):
    some, others = (numbers(SUITES[name], Size(2, seed)) for seed in (0, 5))
    both = zip(some, others, strict=True)
    assert any(a.shape != b.shape or np.any(a != b) for (_, _, a), (_, _, b) in both)


OF_TENSORS = [name for name, of in SUITES.items() if OPERATIONS[of.operation].first_axes == "rc"]


@pytest.mark.parametrize("name", OF_TENSORS)
def test_tensors_are_beyond_a_tile_of_scales_and_end_behind_vectors(name):
    """So that the order of tiles of 128x4 scales shows, and a loop without its last number."""
    tensors = [case.arrays["x"] for case in golden.load(name)]
    assert any(x.shape == (130, 160) for x in tensors)
    assert any(x.size % 16 == 1 and min(x.shape) > 1 for x in tensors)


@pytest.mark.tier("full", one_in=3, but=SMALL)
@pytest.mark.parametrize("name", SUITES)
def test_names_of_cases_are_distinct(name):
    names = [case.name for case in questions(SUITES[name], Size(3))]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", ELEMENTS)
def test_one_quotient_underflows_and_the_next_does_not(name):
    """MXS-006: a tie goes to 0; no quotient by a largest number below 2 is half of the smallest."""
    amaxes = numbers_of(underflowing(formats[name])[:, 0], "f32")
    quotients = [quotient(amax, formats[name].largest) for amax in amaxes]
    assert quotients == ([] if name == "int8_mx" else [0.0, 2.0**-149])


@pytest.mark.parametrize("like", SCALE_RULES.specified)
def test_an_own_scale_rule_has_the_inputs_of_the_rule_that_it_is_like(monkeypatch, like):
    monkeypatch.setitem(SCALE_RULES, "mine", ScaleRule("mine", SCALE_RULES[like].up_from))
    for fmt in map(formats.__getitem__, ELEMENTS):
        found, expected = (turning_tensor(fmt, rule).x for rule in ("mine", like))
        assert np.array_equal(found, expected)


def choices(tensor, policy):
    """Return the choice of the exact model for a tensor that is one unit."""
    parameters = {"policy": policy, "scaling": "gam", "block": [128, 128], "source": "f32"}
    found = OPERATIONS["mor"].exact(parameters, {"x": tensor.x})
    return int(found["choice"].item())


@pytest.mark.parametrize(
    ("start", "policy", "wanted"),
    [
        ("e4m3", "tensor", {"below": 0, "at": 1, "above": 1}),
        ("nvfp4", "nvfp4", {"below": 0, "at": 2, "above": 2}),
    ],
)
def test_one_step_of_an_error_sum_changes_the_decision(start, policy, wanted):
    for tensor in turning_points():
        if tensor.name.startswith(f"{start}_"):
            assert choices(tensor, policy) == wanted[tensor.name.split("_")[1]], tensor.name


@pytest.mark.tier("full", but=["[MOR-002/mean-in-binary32-tensor]"])
@pytest.mark.parametrize(
    ("deviation", "policy"),
    [
        ("MOR-002/with-equals", "tensor"),
        ("MOR-002/mean-in-binary32", "tensor"),
        ("MOR-004/with-subnormals", "three_way"),
        ("MOR-004/by-quotient", "three_way"),
    ],
)
def test_turning_points_expose_each_deviation_of_a_threshold(deviation, policy):
    found = [choices(tensor, policy) for tensor in turning_points()]
    with applied(CAUSES[deviation]):
        others = [choices(tensor, policy) for tensor in turning_points()]
    assert found != others
