"""All schemes on the same tensors: the recipes of the page and of `mor-ref compare --schemes`."""

import json
import sys

import numpy as np
import pytest
from mor_docs.shown import schemes

from mor_ref import cli
from mor_ref.analysis.recipes import SCHEMES, recipes_from
from mor_ref.definitions.levels import LEVEL_KINDS
from mor_ref.definitions.shared import SHARED_KINDS
from mor_ref.treatments import TREATMENTS

IN_TRAINING = {"delayed", "unquantized"}  # one needs steps, the other quantizes nothing


def test_every_scheme_is_there():
    """Each kind of treatment, each kind of levels, and the shared microexponents."""
    kinds = {recipe.treatment.name for recipe in recipes_from(SCHEMES)}
    assert kinds == set(TREATMENTS) - IN_TRAINING - {"row"}  # of a user
    assert set(LEVEL_KINDS.specified) | {"mx9", "mx6", "mx4", "bfp16"} <= set(SCHEMES)
    assert set(SHARED_KINDS.specified) - set(SCHEMES) == {"bfp16_carry"}


def test_the_page_has_every_recipe_and_the_best_ones():
    shown = schemes.results()
    assert all(f"| `{recipe}` |" in shown for recipe in SCHEMES)
    for name, found in schemes.compared().items():
        best = schemes.best().split(f"* {name}: ")[1].split("\n")[0]
        for recipe in best.replace("`", "").split(", "):
            own = found[recipe]
            beaten = [
                other
                for other in found.values()
                if other.bits_per_number <= own.bits_per_number
                and other.measures.sqnr > own.measures.sqnr
            ]
            assert beaten == [], recipe
    assert all(f">{recipe}</text>" in schemes.ratios() for recipe in SCHEMES)


def test_the_command_compares_them(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", schemes.tensors()["weights"][:64, :64])
    monkeypatch.setattr(sys, "argv", ["mor-ref", "compare", "x.npy", "--schemes", "--json"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code
    assert list(json.loads(capsys.readouterr().out)["recipes"]) == list(SCHEMES)
