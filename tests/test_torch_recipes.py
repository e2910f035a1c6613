"""Recipes of training as values: text and back, and refusals (TRN-003)."""

import sys
from dataclasses import dataclass

import pytest

from mor_ref.definitions.before_blocks import Hadamard
from mor_ref.metrics import Always
from mor_ref.policies import POLICIES
from mor_ref.recipes import (
    TENSOR_RECIPES,
    Delayed,
    Mor,
    Mx,
    Nvfp4,
    Scaled,
    Situation,
    TensorRecipe,
    Unquantized,
)
from mor_ref.recipes.training import Operand, Recipe
from mor_ref.recipes.training_recipes import recipes, training_recipe

PLAIN = Operand(Unquantized())
NAMES = ("bf16", "mor_tensor", "mor_channel", "mor_block", "mor_two_way", "mor_three_way",
         "fp8_current", "fp8_delayed", "fp8_lm", "nvfp4_2d", "nvfp4_random",
         "nvfp4_te")  # fmt: skip


def test_the_catalogue_has_the_recipes_of_the_specification():
    """TRN-003."""
    assert tuple(recipes) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_is_read_from_its_text(name):
    recipe = recipes[name]
    read = Recipe.from_text(str(recipe))
    assert read == recipe
    assert hash(read) == hash(recipe)
    assert str(read) == str(recipe)


@pytest.mark.parametrize("name", ["", "two words", "\U0001f600", 'a "b" \\ \n\t\x00\x7f\x85', "ü"])
def test_any_name_is_read_from_the_text(name):
    named = recipes["mxfp8:rceil"].named(name)
    assert Recipe.from_text(str(named)) == named


def test_a_name_is_a_text():
    with pytest.raises(TypeError, match="name is 3; give a text"):
        recipes["mxfp8:rceil"].named(3)


def test_a_text_says_what_is_done_to_each_operand():
    """TRN-003, of a recipe with all kinds of recipes."""
    mine = Recipe(
        "mine",
        Operand(Mor("tensor", (64, 64), "fp32", "0.03"), Mx("e5m2", "ceil", 16)),
        Operand(Scaled("e5m2", "row", "e8m0")),
        Operand(Delayed("e4m3", 4, "most_recent", "e8m0", 2)),
    )
    assert str(mine) == (
        'name = "mine"\nmatmul = "torch"\n'
        '\n[input]\nrow = { representation = "mor", policy = "tensor", block = [64, 64], '
        'scaling = "fp32", '
        'threshold = "0.03" }\n'
        'column = { representation = "mx", fmt = "e5m2", scale_rule = "ceil", block = 16 }\n'
        '\n[weight]\nrow = { representation = "scaled", fmt = "e5m2", block = "row", '
        'scaling = "e8m0" }\n'
        '\n[grad_output]\nrow = { representation = "delayed", fmt = "e4m3", history = 4, '
        'amax = "most_recent", scaling = "e8m0", margin = 2 }\n'
    )
    assert Recipe.from_text(str(mine)) == mine
    assert mine.input.quantized == "each"
    assert mine.weight.quantized == "once"


def test_a_recipe_of_a_user_is_read_from_text(monkeypatch):
    @dataclass(frozen=True)
    class Mine(TensorRecipe):
        fmt: str = "e5m2"
        name = "mine"

        def policy_in(self, situation):
            return Scaled(self.fmt).policy_in(situation)

    monkeypatch.setattr(TENSOR_RECIPES, "_rows", dict(TENSOR_RECIPES))
    TENSOR_RECIPES["mine"] = Mine()
    recipe = Recipe("mine", Operand(Mine("e4m3")), PLAIN, PLAIN)
    assert Recipe.from_text(str(recipe)) == recipe


PLAIN_TEXT = str(recipes["bf16"])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Recipe.from_text("name = 'x'"), "text has no input; give the text of str"),
        (lambda: Recipe.from_text("a b"), "text is not TOML .*; give the text of str"),
        (lambda: Recipe.from_text(b"name"), "text is b'name'; give the text of str"),
        (
            lambda: Recipe.from_text(PLAIN_TEXT.replace("row", "rows")),
            r"\[input\] of text has no row",
        ),
        (lambda: Recipe.from_text("matmuls = 'torch'\n" + PLAIN_TEXT), "did you mean 'matmul'"),
        (
            lambda: Recipe.from_text(PLAIN_TEXT.replace("representation", "sort")),
            "row of .input. has no representation",
        ),
        (
            lambda: Recipe.from_text(PLAIN_TEXT.replace(" }", ", fmt = 'e4m3' }")),
            "a key of row .* 'fmt'",
        ),
        (
            lambda: Recipe.from_text(
                "weight = 3\n" + PLAIN_TEXT.replace("[weight]\nrow", "[x]\nrow")
            ),
            "key of text is 'x'",
        ),
        (
            lambda: Recipe.from_text(PLAIN_TEXT.replace("row = {", "row = 3 # {")),
            "is 3, which is not a table",
        ),
        (
            lambda: Recipe.from_text(str(recipes["bf16"]).replace("unq", "q")),
            "take one of unquantized,",
        ),
        (lambda: Recipe("x", PLAIN, PLAIN, PLAIN, matmul="exact"), "matmul is 'exact'"),
        (lambda: Recipe("x", PLAIN, Unquantized(), PLAIN), "weight is .*; give an Operand"),
        (lambda: training_recipe("paper.toml"), "a file that does not exist; give the content"),
        (lambda: Operand("mor"), "row is 'mor', a text; give mor_ref.recipes.as_tensor_recipe"),
        (lambda: Mor("tensors"), "did you mean 'tensor'"),
        (lambda: Mor(block=(0, 1)), "a side of block is 0"),
        (lambda: Mor("two_way", threshold="0.1"), "has no threshold of"),
        (lambda: Scaled("bf16"), "format 'bf16' has 16 bits"),
        (lambda: Delayed(history=0), "history is 0; give an int"),
        (lambda: Nvfp4("modelopt", rounding="sr"), "divides by its scales; give rounding 'rne'"),
        (lambda: Nvfp4(tile=16), "tile is 16; profile 'te' takes"),
        (lambda: Nvfp4(hadamard=8), "hadamard is 8; give 16"),
        (lambda: Nvfp4(hadamard=Hadamard(16)), "or Hadamard.16, signs=0xd7e8, stored='bf16'."),
        (lambda: Nvfp4(hadamard=Hadamard(8, stored="bf16")), "hadamard is Hadamard.size=8"),
        (lambda: Nvfp4(hadamard={"size": 16, "sign": 1}), "did you mean 'signs'"),
    ],
)
def test_what_is_not_a_recipe_is_refused(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


TRANSFORMED = Operand(Nvfp4(), Nvfp4(hadamard=16))
TURNED_BY_TE = Operand(Nvfp4(), Nvfp4(hadamard=Hadamard(16, 0xD7E8, "bf16")))
RANDOM = Operand(Nvfp4(rounding="sr"))


@pytest.mark.parametrize(
    ("operands", "message"),
    [
        ((RANDOM, PLAIN, PLAIN), "input is rounded at random; give 'sr' to grad_output only"),
        ((Operand(Delayed(), Mx()), PLAIN, PLAIN), "input has a delayed scale in one direction"),
        ((PLAIN, RANDOM, PLAIN), "weight is rounded at random"),
        ((Operand(Nvfp4(hadamard=16)), PLAIN, PLAIN), "input has a Hadamard transform by row"),
        ((PLAIN, TRANSFORMED, PLAIN), "weight has a Hadamard transform by column"),
        ((TRANSFORMED, PLAIN, PLAIN), "input and grad_output have other Hadamard transforms"),
        ((TRANSFORMED, PLAIN, TURNED_BY_TE), "input and grad_output have other Hadamard"),
    ],
)
def test_recipes_that_do_not_go_together_are_refused(operands, message):
    """TRN-005, TRN-008 and TRN-009."""
    with pytest.raises(ValueError, match=message):
        Recipe("x", *operands)


def test_a_representation_alone_is_a_policy_that_always_accepts():
    """MOR-008."""
    for tensor_recipe in (Scaled(), Delayed(), Mx(), Nvfp4(), Nvfp4(rounding="sr")):
        (rung,) = tensor_recipe.policy_in(Situation()).ladder
        assert rung.metric == Always()
        assert tensor_recipe.policy_in(Situation()).unit == "tensor"
    assert Mor("three_way").policy_in(Situation()) == POLICIES["three_way"]


def test_recipes_need_no_torch():
    import subprocess

    script = (
        "import sys; from mor_ref.torch import recipes; str(recipes['nvfp4_2d']);"
        "print('torch' in sys.modules or 'numpy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
