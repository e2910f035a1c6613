"""Whole wrong kernels on a user's tensors: the structure of their mistakes is named."""

import re

import pytest
from tired_kernels import KERNELS, Tired, evidence_of, mxfp8, nvfp4

from mor_ref.verify.diagnosing.sample import samples_of
from mor_ref.verify.diagnosing.structure import structures_of
from mor_ref.verify.reporting.structure_text import structure_lines


def structures(recipe, kernel):
    return structures_of(list(samples_of(evidence_of(Tired(recipe, kernel, ())))))


@pytest.mark.parametrize("name", KERNELS)
def test_a_tired_kernel_is_named(name):
    """And its counts are of the plain array, without padding."""
    one = KERNELS[name]
    evidence = evidence_of(one)
    found = structures_of(list(samples_of(evidence)))
    text = "\n".join(structure_lines(found))
    for words in one.says:
        assert re.search(words, text), text
    for case in evidence.cases:
        for compared in evidence.comparisons[case.name]:
            assert compared.expected.shape == case.arrays[compared.suite_field].shape


@pytest.mark.parametrize(("recipe", "kernel"), [("mxfp8", mxfp8), ("nvfp4", nvfp4)])
def test_the_kernels_are_right_before_the_mistake(recipe, kernel):
    assert structures(recipe, kernel) == []
