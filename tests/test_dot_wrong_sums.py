"""Golden vectors of dot products against kernels with wrong exponents, widths, cuts and tails.

`undetected_sums.json` has those kernels that no row shows, of all that a search has tried. Most of
them have the same results: no sum and no exponent of the formats of the profile is that wide.
"""

import json
from functools import cache
from pathlib import Path

import dots_in_integers as right
import pytest
import wrong_chunks
from dots_in_integers import CUT, Kernel

from mor_ref import golden
from mor_ref.definitions.dot import DOT_PROFILES
from mor_ref.golden.inputs.found_dots import first_with_numbers_of

UNDETECTED = json.loads(
    Path(__file__).with_name("undetected_sums.json").read_text(encoding="ascii")
)
SUITES = ("dot_chunks", "dot", "dot_scaled")


@cache
def cases_of(suite):
    """Return the prepared cases of each profile that cuts its sums, with the products of a row."""
    found = {}
    for case in golden.load(suite):
        name = case.parameters["dot_profile"]
        if DOT_PROFILES[name].family in CUT:
            one = (right.prepared(case), case.arrays["a"].shape[1])
            found.setdefault(name, []).append(one)
    for cases in found.values():
        cases.sort(key=lambda one: not one[0].name.endswith(("specials", "reversed")))
    return found


def once(names):
    """Return the profiles that differ in more than their names."""
    return sorted({first_with_numbers_of(DOT_PROFILES[name]) for name in names})


def shows(kernel, cases):
    """Return whether a case has other fields under a kernel."""
    for case, count in cases:
        kernel.count = count
        if right.rows_that_differ(kernel, case).any():
            return True
    return False


def unseen(suite, profile):
    """Return the names of wrong kernels that a suite does not show."""
    row, cases = DOT_PROFILES[profile], cases_of(suite)[profile]
    tables = wrong_chunks.TABLES[:-1] if suite == "dot_chunks" else wrong_chunks.TABLES
    return [
        name
        for name, changes in wrong_chunks.kernels(row, tables)
        if not shows(wrong_chunks.kernel_of(row, changes), cases)
    ]


@pytest.mark.parametrize("suite", SUITES)
def test_whole_numbers_have_the_fields_of_the_suites(suite):
    """DOT-007, DOT-009, DOT-011, DOT-017, DOT-018: as they are, all kernels are right."""
    for name, cases in cases_of(suite).items():
        assert not shows(Kernel(DOT_PROFILES[name]), cases), name


PAIRS = [(s, p) for s in SUITES for p in once([*cases_of(s)])]
CHEAP = ("dot-ampere_bf16", "dot-cdna3_bf16_k4", "dot-hopper_fp8", "dot_chunks-cdna3_fp8",
         "dot_chunks-ampere_tf32")  # fmt: skip


@pytest.mark.tier("full", but=[f"[{name}]" for name in CHEAP])
@pytest.mark.parametrize(("suite", "profile"), PAIRS, ids=map("-".join, PAIRS))
def test_every_wrong_sum_shows(suite, profile):
    """Lanes without an exponent, narrow sums and exponents, cuts of CDNA 3, e0 and tails."""
    assert unseen(suite, profile) == UNDETECTED[suite].get(profile, [])
