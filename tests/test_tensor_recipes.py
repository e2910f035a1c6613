"""Recipes from texts, and tensors as cases of operations."""

import re
from dataclasses import replace

import numpy as np
import pytest

from mor_ref.golden.inputs.own_tensors import cases_of
from mor_ref.operations import OPERATIONS
from mor_ref.recipes import (
    TENSOR_RECIPES,
    Mor,
    Mx,
    Nvfp4,
    Scaled,
    Situation,
    as_tensor_recipe,
    own_recipe,
    short_text,
)
from mor_ref.recipes.recipe_text import takes_of
from mor_ref.representations import REPRESENTATIONS, MxBlocks, Nvfp4Tiles
from mor_ref.schemes.affine.recipe import Integers
from mor_ref.schemes.affine.representation import AffineBlocks
from mor_ref.schemes.levels.recipe import Levels
from mor_ref.schemes.levels.representation import LevelRows
from mor_ref.schemes.mixed.recipe import Mixture
from mor_ref.schemes.mixed.representation import mixture
from mor_ref.verify.own_inputs import from_arrays

MEANT = {
    "e4m3:gam:128x128": Scaled("e4m3", (128, 128), "gam"),
    "e5m2:tensor:fp32": Scaled("e5m2", "tensor", "fp32"),
    "mxfp8": Mx("e4m3"),
    "mxfp8_e5m2:ceil": Mx("e5m2", "ceil"),
    "mxfp4:16:rceil": Mx("e2m1", "rceil", 16),
    "nvfp4": Nvfp4(),
    "nvfp4:16x16": Nvfp4("te", (16, 16)),
    "te_4over6_mse": Nvfp4("te_4over6_mse"),
    "mor": Mor(),
    "mor:three_way": Mor("three_way"),
    "mor:row": Mor(block="row"),
    "mor:tensor:tensor": Mor("tensor", "tensor"),
    "mor:0.05:e8m0": Mor(threshold="0.05", scaling="e8m0"),
    '{ representation = "mx", fmt = "e2m1" }': Mx("e2m1"),
    '{"representation": "mor", "policy": "two_way", "block": [64, 32]}': Mor("two_way", (64, 32)),
}


@pytest.mark.parametrize("text", MEANT)
def test_a_text_means(text):
    tensor_recipe = as_tensor_recipe(text)
    assert tensor_recipe == MEANT[text]
    assert as_tensor_recipe(short_text(tensor_recipe)) == tensor_recipe


OF_ROWS = {
    "mine": (MxBlocks("e4m3", "rceil", 16, name="mine"), Mx("e4m3", "rceil", 16)),
    "mine:rceil": (MxBlocks("e2m1", block=16, name="mine"), Mx("e2m1", "rceil", 16)),
    "mine:16x16": (Nvfp4Tiles("te_2_13", name="mine"), Nvfp4("te_2_13", (16, 16))),
    "my_tiles": (Nvfp4Tiles("te", (16, 16), name="my_tiles"), Nvfp4("te", (16, 16))),
    "my_rows": (
        AffineBlocks("uint4", "onnx", (1, 32), symmetric=False, name="my_rows"),
        Integers("uint4", "onnx", (1, 32), "asymmetric"),
    ),
    "my_mix": (
        replace(mixture("int8_or_e4m3", (1, 32)), name="my_mix"),
        Mixture("int8_or_e4m3", (1, 32)),
    ),
    "mine:bf16": (LevelRows("lsq3", name="mine"), Levels("lsq3", "bf16")),
}


@pytest.mark.parametrize("text", OF_ROWS)
def test_the_name_of_a_representation_means_all_of_its_fields(text, monkeypatch):
    row, tensor_recipe = OF_ROWS[text]
    monkeypatch.setitem(REPRESENTATIONS, row.name, row)
    found = as_tensor_recipe(text)
    assert (found.asked, takes_of(found)) == (tensor_recipe.asked, tensor_recipe.takes)
    assert as_tensor_recipe(short_text(found)) == found
    if text == row.name:  # with more words it is not the row, and has not its name
        assert found.policy_in(Situation()).ladder[0].representation is row
    else:
        assert found == tensor_recipe


def test_every_kind_has_a_text_that_means_it():
    for row in TENSOR_RECIPES.values():
        assert as_tensor_recipe(short_text(row)) == row


@pytest.mark.parametrize("text", [text for text in MEANT if "0.05" not in text])
def test_a_recipe_is_an_operation_with_its_parameters(text):
    asked = as_tensor_recipe(text).asked
    operation = OPERATIONS[asked.operation]
    assert {*asked.parameters, "source"} == {*operation.parameters}
    for name, value in asked.parameters.items():
        assert operation.parameters[name].holds(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("e4m3:gam:gam", "recipe is 'e4m3:gam:gam', where 'gam' is given twice; give it once"),
        ("mxfp9", "recipe is 'mxfp9', which is not known; take one"),
        ("nvfp5", "recipe is 'nvfp5', which is not known; take one"),
        ("3_way", "recipe is '3_way', which is not known; take one"),
        ("Three_way", "is 'Three_way', which is not known; did you mean 'mor:three_way'? take"),
        ("mxfp9:8", "the first word of recipe 'mxfp9:8' is 'mxfp9', which is not known; take"),
        (
            "mor:sub_tensor",
            "'sub_tensor' is not known; give a word for policy (tensor, two",
        ),
        (
            "mor:nearly",
            "'nearly' is not known; give a word for policy (tensor, two_way, three_way, ",
        ),
        ("mor:nearly", "nvfp4), or for scaling (gam, e8m0, fp32), or for block, or for threshold"),
        ("mxfp8:ceil:16:16", "where '16' is given twice; give it once"),
        ("mxfp8:rceil:rceil", "where 'rceil' is given twice; give it once"),
        ("mxfp8:rceil:floor", "where 'floor' is a second word for scale_rule; give one"),
        ("mxfp8:ceil:16:odd", "where 'odd' is not known; give nothing more"),
        ("{", "recipe is '{', which is neither TOML"),
        (
            "{}",
            "recipe is '{}', which is neither a name nor a table with fields; give e4m3:gam:",
        ),
        ("[]", "recipe is '[]', which is neither a name nor a table with fields; give e4m3"),
        ("[3]", "recipe is '[3]', which is neither a name nor a table with fields; give e4m3"),
        (" ", "recipe is ' ', which is neither a name nor a table with fields; give e4m3"),
        ('"mxfp8"', """recipe is '"mxfp8"', which is neither a name nor a table"""),
        ("3", "recipe is '3', which is neither a name nor a table with fields; give e4m3"),
        ({}, "recipe is {}, which is neither a name nor a table with fields; give e4m3"),
        (
            "[mine]\nrepresentation = 'mx'",
            "recipe has no representation; give one of unquantized, mor",
        ),
        ("my.toml", "recipe is 'my.toml', a file that does not exist; give the content of one"),
        ("mxfp8:RCEIL", "where 'RCEIL' is not known; did you mean 'rceil'?"),
        ("nvfp4:TE:1X16", "where 'TE' is not known; did you mean 'te'?"),
        ('{"representation": "mor", "x": 1}', "a key of recipe is 'x', which is not known"),
        ("bf16:gam:row", "format 'bf16' has 16 bits"),
    ],
)
def test_another_text_is_refused(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        as_tensor_recipe(text)


@pytest.mark.parametrize(
    ("tensor_recipe", "message"),
    [
        (as_tensor_recipe("mor:0.05"), "add a policy with this threshold as a row"),
        (Nvfp4(rounding="sr"), "but no operation of the suites computes it"),
        (Nvfp4(hadamard=16), "but no operation of the suites computes it"),
        (TENSOR_RECIPES["delayed"], "but no operation of the suites computes it"),
        (TENSOR_RECIPES["unquantized"], "but no operation of the suites computes it"),
    ],
)
def test_a_recipe_that_is_no_operation_says_so(tensor_recipe, message):
    with pytest.raises(ValueError, match=message):
        _ = tensor_recipe.asked


def test_names_of_cases_are_names_of_files_and_differ_in_c():
    names = ["a/b", "a_b", "A.b", "../x", "", "é" * 300]
    tensors = from_arrays(dict.fromkeys(names, np.ones(2, np.float16)))
    found = [case.name for case in cases_of(own_recipe("mxfp8"), tensors)]
    assert found[:4] == ["a_b", "a_b-2", "A.b-3", "_x"]
    assert found[4] == "tensor"
    assert len(found[5]) == 80
    assert len(set(found)) == len(names)


def test_tensors_without_numbers_are_no_cases_and_vectors_are_rows():
    tensors = {
        "none": np.ones((0, 4), np.float32),
        "one": np.float32(1),
        "three": np.ones((2, 3, 4), np.float32),
    }
    cases = cases_of(own_recipe("mxfp8"), from_arrays(tensors))
    found = {case.name: case.arrays["x"].shape for case in cases}
    assert found == {"one": (1, 1), "three": (6, 4)}
