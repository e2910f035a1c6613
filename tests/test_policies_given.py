"""Policies, texts and files where recipes are given: they work, or a sentence says what to do."""

import re

import numpy as np
import pytest
from extras import needs

import mor_ref
from mor_ref import BlockFormat, BlockScale, MeanRelativeError, Policy, Rung
from mor_ref.analysis.recipes import recipes_from
from mor_ref.recipes import Mor, as_policy, as_tensor_recipe, own_recipe, policy_text
from mor_ref.recipes.training import Operand
from mor_ref.representations import REPRESENTATIONS, FunctionRepresentation, as_representation

POLICY = Policy("mine", (Rung("e4m3", MeanRelativeError("0.05")),))
TEXT = """name = "colon"
[[ladder]]
representation = "mxfp8:rceil"
metric = "relative_frobenius"
threshold = 0.1
"""
SCALE = BlockScale("s", (1, 32), "amax / 448")
BLOCKS = BlockFormat("own_blocks", "e4m3", (SCALE,), decode="s")
X = np.random.default_rng(5).standard_normal((64, 64)).astype(np.float32)


def test_a_policy_is_a_recipe_as_its_text_is():
    """MOR-018: a policy, its text and the recipe of it are one."""
    assert as_tensor_recipe(POLICY) == as_tensor_recipe(policy_text(POLICY)) == Mor(POLICY)
    assert own_recipe(POLICY).tensor_recipe == Mor(POLICY)
    assert [recipe.tensor_recipe for recipe in recipes_from([POLICY])] == [Mor(POLICY)]
    assert Operand(POLICY).row == Mor(POLICY)
    with pytest.raises(TypeError, match="give a list of recipes"):
        recipes_from(POLICY)
    with pytest.raises(ValueError, match=r"is the policy 'mine'; call mor_ref\.mor\(x, policy\)"):
        mor_ref.quantize(X, POLICY)


@needs("torch")
def test_torch_takes_a_policy():
    import torch

    from mor_ref.torch import convert, fake_quantize

    y = fake_quantize(torch.from_numpy(X), POLICY)
    assert np.array_equal(y.float().numpy(), mor_ref.mor(X, POLICY).dequantize())
    for given in (POLICY, TEXT):
        assert convert(torch.nn.Sequential(torch.nn.Linear(64, 8)), given) == ("0",)
    wrong = TEXT.replace("relative_frobenius", "frobenius")
    with pytest.raises(ValueError, match="metric of rung 0 of policy 'colon' is 'frobenius'"):
        convert(torch.nn.Sequential(torch.nn.Linear(64, 8)), wrong)
    with pytest.raises(ValueError, match="'no.toml', a file that does not exist"):
        convert(torch.nn.Sequential(torch.nn.Linear(64, 8)), "no.toml")


def test_an_unknown_metric_is_told_each_name_once():
    with pytest.raises(ValueError, match="which is not known") as refused:
        as_policy(TEXT.replace("relative_frobenius", "frobenius"))
    names = re.split(r", | ", str(refused.value).split("take one of ")[1])
    assert "sqnr" in names
    assert len(names) == len(set(names))


def test_a_block_format_without_element_is_told_so():
    table = 'name = "a"\ndecode = "s"\n[[scales]]\nname = "s"\nover = [1, 32]\nnumber = "amax"\n'
    for read in (as_tensor_recipe, lambda text: mor_ref.quantize(X, text)):
        with pytest.raises(ValueError, match="has scales, as a block format has, but no element"):
            read(table)


def test_a_file_is_told_from_one_that_does_not_exist(tmp_path):
    there = tmp_path / "there.toml"
    there.write_text(BLOCKS.text)
    for read in (as_tensor_recipe, lambda text: mor_ref.quantize(X, text)):
        with pytest.raises(ValueError, match="the name of a file; give its content"):
            read(str(there))
        with pytest.raises(ValueError, match=r"no\.toml', a file that does not exist; give the"):
            read(str(tmp_path / "no.toml"))


def test_two_ors_are_told_how_to_be_written():
    with pytest.raises(ValueError, match=r"two `or` in a row; give 'amax or \(1 or 2\)'"):
        BlockFormat("a", "e4m3", (BlockScale("s", (1, 32), "amax or 1 or 2"),), decode="s")
    with pytest.raises(ValueError, match=r"give 'amax or \(1 or \(2 or 3\)\)'"):
        BlockFormat("a", "e4m3", (BlockScale("s", (1, 32), "amax or 1 or 2 or 3"),), decode="s")
    right = BlockScale("s", (1, 32), "amax or (1 or 2)")
    assert BlockFormat("a", "e4m3", (right,), decode="s").scales == (right,)


def test_an_operand_says_how_a_text_is_given():
    """TRN-002: a recipe, which a text becomes."""
    with pytest.raises(
        TypeError, match=r"row is 'mxfp8:rceil', a text; give mor_ref\.recipes\.as_"
    ):
        Operand("mxfp8:rceil")
    assert Operand(as_tensor_recipe("mxfp8:rceil")).row.scale_rule == "rceil"


@pytest.mark.parametrize("row", [BLOCKS, lambda x: x], ids=["block format", "function"])
def test_what_becomes_a_row_is_told_how(row):
    with pytest.raises(TypeError, match=r"give mor_ref\.representations\.as_representation\("):
        REPRESENTATIONS["own_blocks"] = row


def test_as_representation_makes_a_row():
    REPRESENTATIONS["own_blocks"] = as_representation(BLOCKS)
    try:
        assert as_representation("own_blocks").bits == 8
    finally:
        del REPRESENTATIONS["own_blocks"]


@pytest.mark.parametrize("bits", ["8", 0, -1, 65, 2.5, True])
def test_the_bits_of_a_function_are_a_whole_number(bits):
    """MOR-017: what its author says is checked."""
    with pytest.raises((TypeError, ValueError), match=f"bits is {bits!r}; give an int"):
        FunctionRepresentation(lambda x: x, "mine", bits)
