"""All representations on the same tensors: the recipes of the page and of the command."""

import json
import sys

import ml_dtypes
import numpy as np
import pytest
from mor_docs.shown import representations

import mor_ref
from mor_ref import cli
from mor_ref.analysis import compare
from mor_ref.analysis.recipes import OF_ALL_REPRESENTATIONS, recipes_from
from mor_ref.cuda.host import Host
from mor_ref.cuda.launching import Bits
from mor_ref.definitions.blocks import partition
from mor_ref.recipes import TENSOR_RECIPES, Situation, as_tensor_recipe
from mor_ref.schemes.levels.definition import LEVEL_KINDS
from mor_ref.schemes.selection.cuda import llm_int8, pb_llm
from mor_ref.schemes.selection.definition import KNOWN_SELECTIONS
from mor_ref.schemes.shared.definition import SHARED_KINDS

IN_TRAINING = {"delayed", "unquantized"}  # one needs steps, the other quantizes nothing
OF_USERS = {"blocks"}  # whose formulas have no usual form


def test_every_representation_is_there():
    """Each kind of recipe, each kind of levels, and the shared microexponents."""
    kinds = {recipe.tensor_recipe.name for recipe in recipes_from(OF_ALL_REPRESENTATIONS)}
    assert kinds == set(TENSOR_RECIPES) - IN_TRAINING - OF_USERS
    assert set(KNOWN_SELECTIONS) <= set(OF_ALL_REPRESENTATIONS)
    assert any("permuted_groups" in recipe for recipe in OF_ALL_REPRESENTATIONS)
    assert set(LEVEL_KINDS.specified) | {"mx9", "mx6", "mx4", "bfp16"} <= set(
        OF_ALL_REPRESENTATIONS
    )
    assert set(SHARED_KINDS.specified) - set(OF_ALL_REPRESENTATIONS) == {"bfp16_carry"}


def test_the_page_has_every_recipe_and_the_best_ones():
    shown = representations.results()
    assert all(f"| `{recipe}` |" in shown for recipe in OF_ALL_REPRESENTATIONS)
    for name, found in representations.compared().items():
        best = representations.best().split(f"* {name}: ")[1].split("\n")[0]
        for recipe in best.replace("`", "").split(", "):
            own = found[recipe]
            beaten = [
                other
                for other in found.values()
                if other.bits_per_number <= own.bits_per_number
                and other.measures.sqnr > own.measures.sqnr
            ]
            assert beaten == [], recipe
    assert all(f">{recipe}</text>" in representations.ratios() for recipe in OF_ALL_REPRESENTATIONS)


def test_the_command_compares_them(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", representations.tensors()["weights"][:64, :64])
    monkeypatch.setattr(sys, "argv", ["mor-ref", "compare", "x.npy", "--representations", "--json"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code
    assert list(json.loads(capsys.readouterr().out)["recipes"]) == list(OF_ALL_REPRESENTATIONS)


def test_a_representation_that_a_tensor_cannot_take_is_left_out(monkeypatch, capsys, tmp_path):
    """AFF-010: eight groups do not divide 30 columns, and the totals need every tensor."""
    monkeypatch.chdir(tmp_path)
    x, recipe = representations.tensors()["weights"], "uint8:peg:asymmetric:8_permuted_groups"
    np.savez("x.npz", whole=x[:16, :64], narrow=x[:16, :30])
    said = "narrow in x.npz: groups is 8, which does not divide the 30 columns of x"
    for option in ("--json", "--threads=1"):
        monkeypatch.setattr(
            sys, "argv", ["mor-ref", "compare", "x.npz", "--representations", option]
        )
        with pytest.raises(SystemExit) as ended:
            cli.main()
        found = capsys.readouterr().out
        assert not ended.value.code
        if option == "--json":
            document = json.loads(found)
            assert document["recipes_left_out"] == {recipe: said}
            assert list(document["recipes"]) == [
                one for one in OF_ALL_REPRESENTATIONS if one != recipe
            ]
        else:
            assert f"left out: {recipe}, as a tensor cannot take it ({said})" in found


def test_bits_of_selections_are_those_of_the_numbers_that_are_selected():
    """SEL-005: equal magnitudes are not selected, and a kept column has the bits of its dtype."""
    x = np.array([[1, 1, 1, 2], [1, 1, 9, 3]], np.float32)
    wide, narrow = (compare(x.astype(dtype), ["pb_llm", "llm_int8"]) for dtype in "fe")
    one = np.ones((2, 4), np.float32)
    assert compare(one, ["pb_llm"])["pb_llm"].bits == 8 + 8 + 2 * 40 + 32
    assert wide["pb_llm"].bits == narrow["pb_llm"].bits == 8 + 8 + 2 * 40 + 32
    assert compare(np.arange(20.0), ["pb_llm"])["pb_llm"].bits == 20 + 19 + 8 + 40 + 32
    assert wide["llm_int8"].bits == 6 * 8 + 2 * 32 + 4 + 2 * 32
    assert narrow["llm_int8"].bits == 6 * 8 + 2 * 16 + 4 + 2 * 32


@pytest.mark.parametrize("selection", KNOWN_SELECTIONS)
def test_a_selection_has_no_operation(selection):
    """SEL-005: a user cannot add a method to a row of the specification, so no method is asked."""
    with pytest.raises(ValueError, match=f'of = "{selection}" }}, but no operation of the suites'):
        _ = as_tensor_recipe(selection).asked


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("selection", KNOWN_SELECTIONS)
def test_selections_as_representations(selection, dtype):
    """SEL-003 to SEL-005: y of every implementation, with special numbers."""
    random = np.random.default_rng(5)
    x = random.standard_normal((6, 40)) * np.exp(random.standard_normal((6, 40)))
    x = (2 * x).astype(dtype)
    x[0, 3], x[2, 7], x[4, 11], x[5, 6], x[3] = np.nan, np.inf, -np.inf, 6, 0
    policy = as_tensor_recipe(selection).policy_in(Situation())
    row = policy.ladder[0].representation
    for numbers in (x, x[:, :0], x[:1], np.zeros((3, 4), dtype)):
        words = numbers.astype(np.float32).view(np.uint32)
        own = numbers.view(np.uint16) if numbers.itemsize == 2 else words
        rows = [[float(one) for one in row] for row in numbers.astype(np.float32)]
        whole = partition(numbers.shape, "tensor")
        exact = [element.y for each in row.exact(rows, "fp32", whole) for element in each]
        expected = np.array(exact, np.float32).reshape(numbers.shape)
        found = mor_ref.mor(numbers, policy, block="tensor")
        np.testing.assert_array_equal(found.quantized[selection].dequantize(), expected)
        kernels = {"pb_llm": pb_llm, "llm_int8": llm_int8}[selection]
        source = {np.float32: "f32", np.float16: "f16"}.get(dtype, "bf16")
        limit = KNOWN_SELECTIONS[selection].limit
        y = kernels(Host(), Bits(np.ascontiguousarray(own), source), limit).view(np.float32)
        np.testing.assert_array_equal(y, expected)
