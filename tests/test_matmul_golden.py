"""Golden vectors of products of matrices: each wrong kernel shows in every kind that it is for."""

from functools import cache

import numpy as np
import pytest
from wrong_products import KERNELS, kinds_of

import mor_ref
from mor_ref import golden
from mor_ref.api import matmul_segments
from mor_ref.golden.suites.matmul import ENTRIES

NAMES = sorted(
    {
        f"{case.parameters['dot_profile']}.{case.parameters['record']}"
        for case in golden.load("matmul")
    }
)
PARTS = 8  # of the wrong kernels of a kind


@cache
def kinds():
    """Return the cases of each profile and kind of records."""
    return kinds_of(golden.load(ENTRIES.name))


@pytest.mark.tier("full", one_in=PARTS, but=["[0-cdna1_bf16.scaled]"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("part", range(PARTS))
def test_every_wrong_kernel_shows(part, name):
    """GEM-001, GEM-003, GEM-004: for each profile and kind of records of the suite."""
    kind = kinds()[name]
    of_it = [kernel for kernel in KERNELS if kernel.applies(kind)]
    assert len(of_it) > 50
    assert [kernel.name for kernel in of_it[part::PARTS] if not kernel.shows(kind)] == []


def test_every_wrong_kernel_is_for_a_kind():
    """A table in which a kernel applies to nothing would say nothing about it."""
    of_none = [one.name for one in KERNELS if not any(map(one.applies, kinds().values()))]
    assert of_none == []
    assert len({kernel.name for kernel in KERNELS}) == len(KERNELS)


PLACES = {
    "blocks of A": lambda *of: of[:1],
    "blocks of B": lambda *of: of[1:],
    "the longer ones": lambda a, b: (max(a, b),),
    "common divisors": lambda a, b: (int(np.gcd(a, b)),),
}


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("profile", ["hopper_fp8", "ada_fp8", "blackwell_fp8"])
def test_blocks_of_two_lengths_cut_k_at_the_ends_of_both(name, profile, monkeypatch):
    """GEM-003: other pieces have other bits. A case of the suite has one length of blocks."""
    random = np.random.default_rng(5)
    x, y = (
        random.standard_normal((8, 192), np.float32),
        random.standard_normal((192, 8), np.float32),
    )
    a = mor_ref.quantize(x, "e4m3", block=(1, 32), scaling="fp32")
    b = mor_ref.quantize(y, "e4m3", block=(48, 1), scaling="fp32")
    expected = mor_ref.matmul(a, b, profile=profile)

    def places(one, other, first, last):
        sides = PLACES[name](*(side.blocks_of(rung) for side, _, rung in (one, other)))
        ends = {k for side in sides for k in range(first - first % side + side, last, side)}
        return sorted({first, last} | ends)

    monkeypatch.setattr(matmul_segments, "_places", places)
    found = mor_ref.matmul(a, b, profile=profile)
    assert (found.view(np.uint32) != expected.view(np.uint32)).any()
