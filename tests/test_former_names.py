"""Names of earlier versions answer with the names of today."""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import stable
from extras import needs
from typer.testing import CliRunner

import mor_ref
import mor_ref.cuda
import mor_ref.recipes
from mor_ref.analysis import NamedRecipe
from mor_ref.cli import app, main
from mor_ref.recipes import as_tensor_recipe
from mor_ref.representations import as_representation, formulas_of
from mor_ref.schemes.levels.representation import LevelRows
from mor_ref.schemes.shared.representation import SharedBlocks


def test_the_former_names_of_recipes() -> None:
    from mor_ref import recipes, treatments

    with pytest.warns(DeprecationWarning, match="is mor_ref.recipes.TensorRecipe now"):
        assert treatments.Treatment is recipes.TensorRecipe
    with pytest.warns(DeprecationWarning, match="is mor_ref.recipes.own_recipe now"):
        assert treatments.own_recipe is recipes.own_recipe
    with pytest.raises(AttributeError, match="has no attribute 'Recipe'"):
        _ = treatments.Recipe
    own = recipes.own_recipe("nvfp4").tensor_recipe
    says = "argument treatment of short_text is tensor_recipe now"
    with pytest.warns(DeprecationWarning, match=says) as warned:
        assert recipes.short_text(treatment=own) == "nvfp4:te:1x16"
    assert warned[0].filename == __file__


def test_the_former_name_of_the_profile_of_an_encoder() -> None:
    with pytest.warns(DeprecationWarning, match="argument preset of encode is profile now"):
        codes = mor_ref.encode([float("nan"), -500.0], "e4m3", preset="ml_dtypes")
    assert codes.tolist() == [0x7F, 0xFF]
    assert mor_ref.encode([-500.0], "e4m3").tolist() == [0xFE]
    with pytest.raises(TypeError, match="preset and profile are given"):
        mor_ref.encode([1.0], "e4m3", preset="torch", profile="torch")


def test_the_former_name_of_the_profile_on_a_gpu() -> None:
    with (
        pytest.warns(DeprecationWarning, match="argument preset of encode is profile now"),
        pytest.raises(ValueError, match="profile 'torchs' is not known|profile is 'torchs'"),
    ):
        mor_ref.cuda.encode([1.0], "e4m3", preset="torchs")
    with pytest.raises(TypeError, match="preset and profile are given"):
        mor_ref.cuda.encode([1.0], "e4m3", preset="torch", profile="torch")


SHARED = (mor_ref.quantize_shared, "mx9"), (mor_ref.quantize_levels, "seq2")


@pytest.mark.parametrize(("quantize", "name"), SHARED)
def test_the_former_name_of_a_representation(quantize, name, tmp_path) -> None:
    """Of the argument, of the attribute, and in files of records."""
    x = np.float32([[0.25, -1.5]])
    now = quantize(x, representation=name)
    with pytest.warns(
        DeprecationWarning, match=f"argument kind of {quantize.__name__} is represen"
    ):
        assert quantize(x, kind=name) == now
    with pytest.warns(DeprecationWarning, match=r"\w+.kind is \w+.representation now"):
        assert now.kind == now.representation == name
    now.save(tmp_path / "now.safetensors")
    content = (tmp_path / "now.safetensors").read_bytes()
    size = int.from_bytes(content[:8], "little")
    head = content[8 : 8 + size].replace(b"representation", b"kind")
    (tmp_path / "former.safetensors").write_bytes(
        len(head).to_bytes(8, "little") + head + content[8 + size :]
    )
    with pytest.warns(DeprecationWarning, match="argument kind of"):
        assert mor_ref.load(tmp_path / "former.safetensors") == now


@pytest.mark.parametrize("quantize", [mor_ref.cuda.quantize_shared, mor_ref.cuda.quantize_levels])
def test_the_former_name_of_a_representation_on_a_gpu(quantize) -> None:
    with (
        pytest.warns(DeprecationWarning, match="argument kind of"),
        pytest.raises(ValueError, match="representation is 'mx8', which is not known"),
    ):
        quantize(np.float32([[1]]), kind="mx8")


@pytest.mark.parametrize("name", ["mxfp8", "te", "e4m3"])
def test_the_former_name_of_the_formulas_of_a_representation(name: str) -> None:
    row = as_representation(name)
    kind = type(row).__name__
    with pytest.warns(DeprecationWarning, match=f"{kind}.scheme is {kind}.formulas now"):
        scheme = row.scheme  # type: ignore[attr-defined]
    assert scheme("fp32", "tensor", "tensor") == formulas_of(row, "fp32", "tensor", "tensor")


def test_the_former_attribute_of_a_recipe() -> None:
    own = mor_ref.recipes.own_recipe("mxfp8")
    with pytest.warns(DeprecationWarning, match="OwnRecipe.treatment is OwnRecipe.tensor_recipe"):
        assert own.treatment is own.tensor_recipe
    assert own == mor_ref.recipes.own_recipe("mxfp8")


@pytest.mark.parametrize(
    ("owner", "former", "now", "value"),
    [
        (SharedBlocks, "kind", "of", "mx9"),
        (LevelRows, "kind", "of", "seq2"),
        (partial(NamedRecipe, "mine"), "treatment", "tensor_recipe", as_tensor_recipe("nvfp4")),
    ],
)
def test_the_former_name_of_a_field(owner, former, now, value) -> None:
    """It is taken, and read."""
    one = owner(**{now: value})
    name = type(one).__name__
    with pytest.warns(DeprecationWarning, match=f"argument {former} of {name} is {now}") as warned:
        assert owner(**{former: value}) == one
    assert warned[0].filename == __file__
    with pytest.warns(DeprecationWarning, match=f"{name}.{former} is {name}.{now} now"):
        assert getattr(one, former) == value
    with pytest.raises(TypeError, match=f"{former} and {now} are given"):
        owner(**{former: value, now: value})
    assert f"{now}=" in repr(one)
    assert f"{former}=" not in repr(one)


@needs("torch")
def test_the_former_names_of_training() -> None:
    from mor_ref import torch as training

    with pytest.warns(DeprecationWarning, match="is mor_ref.torch.TensorRecipe now"):
        assert training.Treatment is training.TensorRecipe
    recipe = training.recipes["mxfp8:rceil"]
    with pytest.warns(DeprecationWarning, match="Recipe.treatments is Recipe.tensor_recipes now"):
        assert list(recipe.treatments) == list(recipe.tensor_recipes)


def test_a_former_option_does_the_same_and_names_the_new_one() -> None:
    call = ["explain", "nan", "--format", "e4m3"]
    now = CliRunner().invoke(app, [*call, "--profile", "ml_dtypes"])
    assert now.stderr == ""
    for former in (["--preset", "ml_dtypes"], ["--preset=ml_dtypes"]):
        done = CliRunner().invoke(app, [*call, *former])
        assert done.stdout == now.stdout
        assert done.stderr == (
            "mor-ref: --preset is --profile now; the former name goes in version 0.4\n"
        )


@pytest.mark.parametrize(
    ("command", "now", "former"),
    [("explain", "--profile", "--preset"), ("compare", "--representations", "--schemes")],
)
def test_help_has_no_former_name_of_an_option(command: str, now: str, former: str) -> None:
    help_of = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).stdout
    assert now in help_of
    assert former not in help_of
    assert f"{command} {former}" in stable.listed()["commands"]
    assert f"{command} {former}" in stable.commands()  # after the help, too
    assert "--help" in help_of


def test_the_former_key_of_a_table_of_a_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = mor_ref.recipes.own_recipe('{ representation = "shared", of = "mx9" }')
    assert str(now.tensor_recipe).startswith('{ representation = "shared", of = "mx9"')
    says = "key kind of a recipe is representation now"
    for former in ('{ kind = "shared", of = "mx9" }', {"kind": "shared", "of": "mx9"}):
        with pytest.warns(DeprecationWarning, match=says):
            assert mor_ref.recipes.own_recipe(former) == now
    with pytest.raises(ValueError, match="recipe has kind and representation; give representation"):
        mor_ref.recipes.own_recipe({"kind": "mx", "representation": "mx"})
    np.save(tmp_path / "x.npy", np.ones((4, 32), np.float32))
    table = '{ kind = "shared", of = "mx9" }'
    call = ["mor-ref", "compare", f"{tmp_path}/x.npy", "--recipe", table]
    monkeypatch.setattr(sys, "argv", call)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert capsys.readouterr().err.splitlines()[0] == (
        f"mor-ref: {says}; the former name goes in version 0.4"
    )


def test_the_former_key_of_the_table_of_a_block_format() -> None:
    own = mor_ref.recipes.as_block_format("mxfp8")
    text = str(mor_ref.recipes.Blocks(own))
    with pytest.warns(DeprecationWarning, match="key kind of a recipe is representation now"):
        former = mor_ref.recipes.as_tensor_recipe(text.replace("representation =", "kind ="))
    assert former.block_format == own


@needs("torch")
def test_a_state_that_an_earlier_version_saved() -> None:
    from torch import nn

    from mor_ref.torch import convert, load_state, state

    model = nn.Sequential(nn.Linear(8, 16))
    convert(model, "fp8_delayed")
    saved = state(model)
    saved["0"]["recipe"] = saved["0"]["recipe"].replace("representation =", "kind =")
    with pytest.warns(DeprecationWarning, match="key kind of a recipe"):
        load_state(model, saved)
