"""The targets of tests/fuzz hold for their seeds, whole and cut; CONTRIBUTING.md says more."""

import re
from pathlib import Path

import pytest
from fuzz import answers, directories, lines, manifests, suites, tensors

ROOT = Path(__file__).resolve().parent.parent
TARGETS = [answers, manifests, suites, directories, lines, tensors]


@pytest.mark.tier("full", but=["[fuzz.answers]"])
@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.__name__)
def test_targets_hold_for_their_seeds(target):
    for seed in target.SEEDS:
        for end in {0, 1, len(seed) // 2, len(seed) - 1, len(seed)}:
            target.one_input(seed[:end])


def test_every_target_is_run_here_and_said_to_be():
    """The page leads to each, and to the command that fuzzes them."""
    found = {
        path.stem
        for path in (ROOT / "tests" / "fuzz").glob("*.py")
        if "def one_input(" in path.read_text()
    }
    assert {target.__name__.removeprefix("fuzz.") for target in TARGETS} == found
    page = (ROOT / "docs" / "guide" / "how-we-know.md").read_text()
    assert set(re.findall(r"/tests/fuzz/(\w+)\.py>", page)) == found
    _, _, how = (ROOT / "CONTRIBUTING.md").read_text().partition("\n## How to fuzz\n")
    how = how.partition("\n## ")[0]
    assert all(re.search(rf"`{name}`|-m fuzz\.{name} ", how) for name in found)
