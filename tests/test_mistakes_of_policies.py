"""Mistakes of policies: they follow from the source of the steps that decide."""

import functools

import numpy as np
import pytest
from bits_of_mistakes import equals
from wrong import REGISTERED
from wrong.causes import OF_POLICIES

from mor_ref.deviations import applied
from mor_ref.golden.generation import mistakes_shown
from mor_ref.golden.generation.mistakes_shown import MODELLED, kinds_of
from mor_ref.mistakes.catalogue import CAUSES, FORMER_IDS
from mor_ref.mistakes.catalogue import MODELLED as IDS
from mor_ref.mistakes.policies import (
    NO_MISTAKES,
    OF_TENSORS,
    mistakes_of_policies,
    pairs_of_sites_and_operators,
)
from mor_ref.operations import OPERATIONS

F, U = np.float32, np.uint32
SUITES = ("decisions", "unit_sums", "acceptance")
# Derived units alone show them.
HOLES = {"MOR-002/comparison-of-difference-in-64-bits", "MOR-013/comparison-in-binary64"}


@functools.cache
def derived(suite):
    """Return the derived inputs of a suite, as kinds of calls."""
    return kinds_of(suite)[1]


def shown(suite, kinds, mistakes):
    """Return the names of mistakes that some row of some kinds shows."""
    found = (one for kind in kinds for one in MODELLED[suite].matrix(mistakes, kind))
    return {verdict.mistake.name for verdict in found if verdict.shown}


@pytest.mark.parametrize("suite", SUITES)
def test_every_mistake_is_shown_by_derived_units_and_no_two_are_one(suite):
    mistakes = MODELLED[suite].mistakes()
    assert shown(suite, derived(suite), mistakes) == {one.name for one in mistakes}
    assert equals(mistakes, derived(suite)) == []


@pytest.mark.tier("full")
@pytest.mark.parametrize("suite", SUITES)
def test_suites_show_all_but_two(suite):
    mistakes = MODELLED[suite].mistakes()
    names = {one.name for one in mistakes}
    assert shown(suite, kinds_of(suite)[0], mistakes) == names - HOLES


@pytest.mark.tier("full")
def test_pairs_that_are_no_mistake_of_their_own_have_the_bits_of_another():
    """Or those of no mistake; a unit in which nothing counts has the sum 0."""
    pairs = {one.name: one for one in pairs_of_sites_and_operators()}
    kinds = {kind.name: kind for suite in SUITES for kind in derived(suite)}
    for name, why in NO_MISTAKES.items():
        if why.startswith("It is MOR-010"):
            there = [kind for name, kind in kinds.items() if name.startswith("relative_frobenius")]
            assert equals([pairs[name], pairs["MOR-010/zeros-refused"]], there)
        elif why.startswith("It is MOR-002"):
            kind = kinds["mean_relative_error"]
            (case,) = (one for one in mistakes_shown.derived_decisions() if one.name == kind.name)
            counted = np.flatnonzero(case.arrays["nonzero"] | (case.arrays["sum"] == 0))
            found = []
            for one in (pairs[name], pairs["MOR-002/with-equals"]):
                with applied(one.deviation):
                    found.append(kind.compute(counted)["accepted"])
            assert np.array_equal(*found)
        else:
            there = [kind for name, kind in kinds.items() if name.startswith("fits_range")]
            assert shown("decisions", there, [pairs[name]]) == set()


@pytest.mark.parametrize("name", [name for name in OF_POLICIES if name.startswith("decide.")])
def test_a_whole_wrong_kernel_has_the_bits_of_its_mistake(name):
    """A kernel that was written before the model, on derived sums of units."""
    (kernel,) = (one for one in REGISTERED if one.name == name)
    is_answered = False
    for case in mistakes_shown.derived_decisions():
        found = kernel.run("decide", case.parameters, case.arrays)
        if found is None:
            continue
        with applied(CAUSES[OF_POLICIES[name]]), np.errstate(all="ignore"):
            expected = OPERATIONS["decide"].exact(case.parameters, case.arrays)
        assert np.array_equal(found["accepted"].astype(bool), expected["accepted"].astype(bool))
        is_answered = True
    assert is_answered


def test_what_units_do_not_show_a_tensor_does():
    """The smallest magnitude of a unit, and the bits of a unit that falls back."""
    x = np.full((1, 48), 1.5, F)
    x[0, :4] = 0, 2.0**-130, 1.5, np.nan
    x[0, 16:32] = 0
    x[0, 40] = -(2.0**-20)
    wide = x.view(U).copy()
    wide[0, 5] = 0x3F80FFFF
    narrow = (x.view(U) >> 16).astype(np.uint16)
    narrow[0, 3] = 0x7F81
    exact = OPERATIONS["mor"].exact
    shown_by = {}
    for source, bits in (("f32", wide), ("bf16", narrow)):
        asked = {"policy": "three_way", "scaling": "gam", "block": [1, 16], "source": source}
        right = exact(asked, {"x": bits})
        for one in mistakes_of_policies():
            if one.name.startswith(OF_TENSORS):
                with applied(one.deviation):
                    found = exact(asked, {"x": bits})
                shown_by.setdefault(one.name, set()).update(
                    name for name in right if not np.array_equal(found[name], right[name])
                )
    assert {name for name, fields in shown_by.items() if "amin" in fields} == {
        name for name in shown_by if name.startswith("MOR-004/")
    }
    assert all("output" in shown_by[name] for name in shown_by if name.startswith("MOR-006/"))


def test_ids_are_a_rule_and_an_operator():
    mistakes = mistakes_of_policies()
    names = [one.name for one in mistakes]
    assert len({*names}) == len(names)
    assert {*names} <= IDS.keys()
    assert NO_MISTAKES.keys() <= {one.name for one in pairs_of_sites_and_operators()}
    assert all(one.summary.endswith(".") for one in mistakes)
    summary = CAUSES[FORMER_IDS["cosine_of_either_sign"]].summary
    assert summary == (
        "The test product > 0 is left out. Its name in golden/v1: cosine_of_either_sign."
    )
