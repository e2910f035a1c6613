"""NVFP4 profiles of a user: any that is accepted has one meaning, and any other is refused."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels import needed
from records import adversarial, shapes

from mor_ref.definitions.nvfp4 import BLOCK_SCALE_RULES, PROFILES, TILES, Nvfp4Profile
from mor_ref.golden.model.suite import Case
from mor_ref.operations import OPERATIONS
from mor_ref.verify.candidates.kernels import kernels_named

RULES = tuple(BLOCK_SCALE_RULES)
PER_ROW = [name for name, rule in BLOCK_SCALE_RULES.items() if not rule.error]
RANGES = st.floats(2, allow_infinity=False, width=32)
ROWS = ((1, 16),)
PROFILE = st.one_of(
    st.builds(Nvfp4Profile, st.just("any"), st.sampled_from(RULES), RANGES),
    st.builds(
        Nvfp4Profile,
        st.just("any"),
        st.sampled_from(PER_ROW),
        RANGES,
        per_row=st.just(True),
        tiles=st.just(ROWS),
    ),
)


def case(profile, x, tile):
    parameters = {"profile": profile.name, "tile": list(tile), "source": "f32"}
    return Case("any", parameters, {"x": x.view(np.uint32)})


def wrong_fields(found, expected):
    return [n for n in found if found[n].ravel().tolist() != expected[n].ravel().tolist()]


@pytest.mark.tier("full")
@given(PROFILE, st.sampled_from(TILES), shapes, st.integers(0, 1 << 30))
def test_any_accepted_profile(profile, tile, shape, seed):
    """The engine and the kernels match the exact model."""
    needed.compiler()
    rows = adversarial((math.prod(shape[:-1]), shape[-1] if shape else 1), seed)
    asked = case(profile, rows, tile if tile in profile.tiles else ROWS[0])
    PROFILES["any"] = profile
    try:
        operation = OPERATIONS["nvfp4"]
        expected = operation.exact(asked.parameters, asked.arrays)
        by_engine = operation.engine(asked.parameters, asked.arrays)
        by_kernels = kernels_named("cuda-host").answer("any", "nvfp4", asked)
    finally:
        del PROFILES["any"]
    assert wrong_fields(by_engine, expected) == []
    assert wrong_fields(by_kernels, expected) == []


@pytest.mark.parametrize("number", [2688, 2688.0, np.float32(2688), np.float64(2688)])
def test_a_range_is_a_float(number):
    assert type(Nvfp4Profile("mine", "te", number).range) is float


REFUSED_RANGES = [
    (1000.3, "which is not a number of binary32; the nearest is 1000.2999877929688"),
    *((number, "give a number of at least 2, such as 2688.0") for number in (1.5, 0.0, -5.0)),
    *((number, "which is no finite number of binary32") for number in (math.nan, -math.inf, 1e39)),
    (10**400, "which is no number of binary32"),
    *((other, "give a number, such as 2688.0") for other in ("2688", None, True)),
]


@pytest.mark.parametrize(("number", "words"), REFUSED_RANGES)
def test_a_range_that_is_refused(number, words):
    with pytest.raises((TypeError, ValueError), match=f"range is .*{words}"):
        Nvfp4Profile("mine", "te", number)


@pytest.mark.parametrize("rule", ["nosuch", "4over6", None, ["te"]])
def test_a_rule_that_is_refused(rule):
    with pytest.raises(ValueError, match="rule is .*, which is not known; .*take one of te, te_2"):
        Nvfp4Profile("mine", rule)


@pytest.mark.parametrize("rule", sorted(set(RULES) - set(PER_ROW)))
def test_four_over_six_has_no_scale_of_a_row(rule):
    with pytest.raises(ValueError, match=f"per_row is given with rule '{rule}'.*; leave per_row"):
        Nvfp4Profile("mine", rule, per_row=True, tiles=ROWS)


@pytest.mark.parametrize("tiles", [TILES, ((16, 16),)])
def test_a_tile_of_many_rows_has_no_scale_of_a_row(tiles):
    with pytest.raises(ValueError, match=r"per_row is given with tiles .*; give tiles=\(\(1, 16"):
        Nvfp4Profile("mine", "te", per_row=True, tiles=tiles)


@pytest.mark.parametrize("tiles", [(), (1, 16), ((1, 32),), [(1, 16)], None])
def test_tiles_that_are_refused(tiles):
    with pytest.raises(ValueError, match=r"tiles is .*; give a tuple of \(1, 16\), of \(16, 16\)"):
        Nvfp4Profile("mine", "te", tiles=tiles)
