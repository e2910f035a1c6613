"""Thresholds: the scales of the exact model turn at the amaxes of the suites."""

from fractions import Fraction

import numpy as np
import pytest

from mor_ref import formats
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.exact import mx, nvfp4
from mor_ref.exact.scales import ideal_scale
from mor_ref.golden import load
from mor_ref.golden.inputs.amaxes_at_thresholds import (
    BINADES,
    around,
    hard_divisors,
    pairs_of_gam,
    pairs_of_tiles,
)
from mor_ref.golden.inputs.found_tiles import found_tiles
from mor_ref.golden.suites.mx import ELEMENTS
from mor_ref.golden.suites.scales import SCALED
from mor_ref.operations.bits import numbers_of


def number(bits):
    return numbers_of(np.array([bits], np.uint32), "f32")[0]


@pytest.mark.parametrize("name", ELEMENTS)
@pytest.mark.parametrize("rule", SCALE_RULES)
def test_scales_of_mx_turn_at_their_amax(name, rule):
    """At the turn or one step above it, in each binade whose codes are in range."""
    turned = 0
    for binade in BINADES:
        steps = around(SCALE_RULES[rule].turn_of(formats[name]), (binade,), (-1, 0, 1))[:3]
        codes = [mx.scale_code([number(bits)], formats[name], rule) for bits in steps]
        turned += codes[0] < codes[-1]
    assert turned >= len(BINADES) - 2  # the smallest have the code 0


@pytest.mark.parametrize("name", SCALED)
def test_exponents_of_scales_turn_above_the_largest(name):
    """THM-004: the exponent is one less above the largest number's significand."""
    largest = formats[name].largest
    for binade in BINADES:
        at, above = around(Fraction(largest), (binade,), (0, 1))[:2]
        exponents = [ideal_scale(largest, number(bits)).exponent for bits in (at, above)]
        assert exponents == [-binade, -binade - 1]


@pytest.mark.tier("full")
@pytest.mark.parametrize("significand", [Fraction(7, 4), Fraction(3, 2), Fraction(15, 8)])
def test_hard_divisors_are_nearer_to_ties_than_others(significand):
    def from_tie(divisor):
        quotient = significand * (1 << 23) / divisor
        units = quotient * (1 << 23 if quotient >= 1 else 1 << 24)
        return abs(units % 1 - Fraction(1, 2))

    found = hard_divisors(significand)
    others = np.random.default_rng(5).integers(1 << 23, 1 << 24, 20000).tolist()
    assert len(set(found)) == 16
    assert max(map(from_tie, found)) < min(map(from_tie, set(others) - set(found)))


def test_mantissas_of_blocks_are_next_to_those_of_groups():
    largest = formats["e4m3"].largest
    apart = []
    for group, block in zip(*pairs_of_gam(formats["e4m3"]), strict=True):
        mantissas = [ideal_scale(largest, number(bits)).mantissa for bits in (group, block)]
        apart.append(mantissas[0] - mantissas[1])
        assert block <= group
    assert {-1, 0, 1} <= set(apart)
    assert np.mean(np.abs(apart) < 8) > 0.5


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_scales_of_tiles_turn_at_ties(profile):
    """Each run of steps begins below a tie of e4m3, and ends above it."""
    wholes, tiles = pairs_of_tiles(Fraction(profile.range) / 6)
    codes = []
    for whole, tile in zip(map(number, wholes), map(number, tiles), strict=True):
        scale = nvfp4.global_scale(profile, whole)
        if profile.scales.error:
            codes.append(nvfp4.four_over_six_candidates(profile, tile, scale)[0].code)
        else:
            codes.append(nvfp4.tile_scale(profile, [[tile]], whole, scale).code)
    runs = np.array(codes).reshape(-1, 10)
    assert np.mean(runs[:, 0] != runs[:, -1]) > 0.5


FOUND = [profile for profile in PROFILES if len(found_tiles(profile, "blocks")[0])]


def test_the_profiles_with_found_tiles():
    """A profile whose tiles were not searched for has none; tests/wrong/README.md says how."""
    assert len(FOUND) >= 10


@pytest.mark.parametrize("profile", FOUND)
def test_suites_contain_the_found_tiles(profile):
    case = next(case for case in load("nvfp4_blocks") if case.name == profile)
    there = {
        (int(amax), *map(int, x))
        for amax, x in zip(*map(case.arrays.get, ("amax", "x")), strict=True)
    }
    found = {
        (int(amax), *map(int, x)) for amax, x in zip(*found_tiles(profile, "blocks"), strict=True)
    }
    assert len(found) > 10
    assert found <= there
