"""A committed tensor distinguishes every pair of NVFP4 profiles and of MX rules.

`find_witnesses.py` has found the tensors and names the other contents of witnesses.json.
"""

import json

import ml_dtypes
import numpy as np
import pytest
from find_witnesses import FILE, compact, recipes
from inputs import ALL_BF16
from mor_docs.shown.profiles import bell_shaped, differences, pairs_of
from records import engine_mx, engine_nvfp4, exact_mx, exact_nvfp4

import mor_ref

RECORDED = json.loads(FILE.read_text())
RECIPES = {heading: (names, how) for heading, names, how in recipes()}
MODELS = {"exact": (exact_nvfp4, exact_mx), "engine": (engine_nvfp4, engine_mx)}
every_recipe = pytest.mark.parametrize("heading", RECIPES)


def test_all_recipes_are_recorded():
    assert RECORDED["witnesses"].keys() == RECORDED["differing scales and codes"].keys()
    assert RECORDED["witnesses"].keys() == RECIPES.keys()


@every_recipe
def test_every_pair_has_a_witness(heading):
    """On which codes or scales differ."""
    witnesses = RECORDED["witnesses"][heading]
    told_apart = [pair for witness in witnesses for pair in witness["tells_apart"]]
    assert sorted(told_apart) == sorted(pairs_of(RECIPES[heading][0]))
    for witness in witnesses:
        for pair in witness["tells_apart"]:
            a, b = (witness["expected"][name] for name in pair.split())
            assert (a["codes"], a["scale"]) != (b["codes"], b["scale"]), pair


@pytest.mark.tier("full", but=["engine-"])
@every_recipe
@pytest.mark.parametrize("model", MODELS)
def test_witness(heading, model):
    """NVF-003 to NVF-010, MXS-002 to MXS-007: the results of both models are the recorded ones."""
    names, how = RECIPES[heading]
    for witness in RECORDED["witnesses"][heading]:
        words = [[int(word, 16) for word in row.split()] for row in witness["x"]]
        x = np.array(words, np.uint32).view(np.float32)
        assert witness["expected"].keys() == set(names)
        for name, expected in witness["expected"].items():
            argument = {"scale_rule" if "fmt" in how else "profile": name}
            found = MODELS[model]["fmt" in how](x, **how, **argument)
            assert compact(found, x.shape) == expected, name


@pytest.mark.tier("full", but=["nvfp4 1x16"])
@every_recipe
def test_how_often_pairs_differ(heading):
    """Of 16384 scales and 262144 codes; MX has half as many scales, tiles of 16x16 a sixteenth."""
    recorded = RECORDED["differing scales and codes"][heading]
    assert differences(bell_shaped(), *RECIPES[heading]) == recorded


def test_pairs_that_are_alike_somewhere_are_those_below():
    assert RECORDED["alike"].keys() == {"te te_row", "even rceil"}


def test_one_row_is_a_tensor():
    """NVF-003: to te_row as to te."""
    for tensor in bell_shaped()[:4]:
        for row in tensor[:8].astype(np.float32):
            found = engine_nvfp4(row[None], profile="te_row")
            assert found == engine_nvfp4(row[None], profile="te")
    row = row[None, :32]
    assert exact_nvfp4(row, "te_row") == exact_nvfp4(row, "te")


def test_even_is_rceil_for_int8_of_bfloat16():
    """MXS-005, MXS-006: for every amax; but not for float32."""
    amax = ALL_BF16[~np.isnan(ALL_BF16.astype(np.float32))][:, None]
    even, rceil = (mor_ref.quantize_mx(amax, "int8_mx", scale_rule=r) for r in ("even", "rceil"))
    assert amax.dtype == ml_dtypes.bfloat16
    assert np.array_equal(even.scale, rceil.scale)
    between = np.array([[1.99]], np.float32)
    even, rceil = (mor_ref.quantize_mx(between, "int8_mx", scale_rule=r) for r in ("even", "rceil"))
    assert (even.scale.item(), rceil.scale.item()) == (127, 128)
