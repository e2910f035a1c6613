"""Catalogues of rows: what a user cannot add, and why."""

import re

import pytest
from integers import Integers

import mor_ref
from mor_ref import Format, MeanRelativeError, MxBlocks, Policy, Rung, formats
from mor_ref.definitions.mx import SCALE_RULES, ScaleRule
from mor_ref.definitions.nvfp4 import PROFILES, Nvfp4Profile
from mor_ref.metrics import METRICS
from mor_ref.policies import POLICIES
from mor_ref.representations import REPRESENTATIONS

KINDS = {
    "Format": formats,
    "Nvfp4Profile": PROFILES,
    "ScaleRule": SCALE_RULES,
    "Policy": POLICIES,
    "Metric": METRICS,
    "Representation": REPRESENTATIONS,
}
FORMAT = Format("mine", exponent_bits=3, mantissa_bits=3, bias=4, specials="fn")
ROWS = {
    "format": (formats, lambda name: Format(name, exponent_bits=3, mantissa_bits=3, bias=4)),
    "profile": (PROFILES, lambda name: Nvfp4Profile(name, "te")),
    "representation": (REPRESENTATIONS, Integers),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("row", [3, None, "e4m3", 1.5, Integers], ids=str)
def test_only_a_row_is_added(kind, row):
    catalogue = KINDS[kind]
    names = list(catalogue)
    with pytest.raises(TypeError, match=f"'mine' is given .*; give a {kind}$"):
        catalogue["mine"] = row
    assert list(catalogue) == names


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "Format"])
def test_a_row_of_another_catalogue_is_not_a_row(kind):
    with pytest.raises(TypeError, match=f"is not a row of this catalogue; give a {kind}$"):
        KINDS[kind]["mine"] = FORMAT


@pytest.mark.parametrize("noun", ROWS)
@pytest.mark.parametrize("name", ["e4m3", "te", "mxfp8", "nvfp4", "bf16"])
def test_a_representation_has_one_meaning(noun, name):
    """Formats, NVFP4 profiles and representations share their names (MOR-007)."""
    catalogue, row = ROWS[noun]
    before = Rung(name, MeanRelativeError(1)).representation if name != "bf16" else None
    said = f"{noun} '{name}' (has the name of a|is a row of the spec)"
    with pytest.raises(ValueError, match=said):
        catalogue[name] = row(name)
    if before:
        assert Rung(name, MeanRelativeError(1)).representation == before


@pytest.mark.parametrize("noun", ROWS)
@pytest.mark.parametrize("name", ["uint4", "int8", "int12", "mor"])
def test_a_row_does_not_have_a_name_that_recipes_read_first(noun, name):
    """Integers and policies of MoR have these names in recipes (MOR-007)."""
    catalogue, row = ROWS[noun]
    sentence = f"{noun} '{name}' has the name of integers or of a policy; give a row of another"
    with pytest.raises(ValueError, match=sentence):
        catalogue[name] = row(name)
    assert name not in catalogue


@pytest.mark.parametrize("first", ROWS)
@pytest.mark.parametrize("second", ROWS)
def test_rows_of_a_user_share_no_name(first, second, monkeypatch):
    catalogue, row = ROWS[first]
    monkeypatch.setitem(catalogue, "mine", row("mine"))
    other, another = ROWS[second]
    if other is catalogue:  # a user replaces a row of his own
        other["mine"] = another("mine")
        return
    sentence = f"{second} 'mine' has the name of a {first}, which .*; give a row of another name"
    with pytest.raises(ValueError, match=sentence):
        other["mine"] = another("mine")


def test_other_catalogues_have_names_of_their_own(monkeypatch):
    monkeypatch.setitem(formats, "mine", FORMAT)
    monkeypatch.setitem(SCALE_RULES, "mine", ScaleRule("mine"))
    policy = Policy("mine", (Rung("mine", MeanRelativeError(1)),))
    monkeypatch.setitem(POLICIES, "mine", policy)
    assert Rung(MxBlocks("mine", "mine", name="of_mine"), MeanRelativeError(1)).name == "of_mine"


@pytest.mark.parametrize("up_from", [1 << 24, 3.0, "1"])
def test_a_scale_rule_takes_a_function(up_from):
    with pytest.raises(TypeError, match=r"up_from is .*; give a function of the width, such as la"):
        ScaleRule("mine", up_from)


@pytest.mark.parametrize("up_from", [1 << 24, (1 << 23) + 1, -1, 3.0, None])
def test_a_scale_rule_goes_up_from_23_bits(up_from, monkeypatch):
    monkeypatch.setitem(SCALE_RULES, "mine", ScaleRule("mine", lambda _: up_from))
    sentence = f"up_from(3) of scale_rule 'mine' is {up_from}; give an int from 0 to 8388608"
    with pytest.raises((TypeError, ValueError), match=re.escape(sentence)):
        mor_ref.quantize_mx([1.0], "e4m3", scale_rule="mine")
