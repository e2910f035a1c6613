"""The targets of tests/fuzz hold for their seeds, whole and cut; CONTRIBUTING.md says more."""

import pytest
from fuzz import answers, folders, lines, manifests, suites


@pytest.mark.parametrize(
    "target", [answers, manifests, suites, folders, lines], ids=lambda t: t.__name__
)
def test_targets_hold_for_their_seeds(target):
    for seed in target.SEEDS:
        for end in {0, 1, len(seed) // 2, len(seed) - 1, len(seed)}:
            target.one_input(seed[:end])
