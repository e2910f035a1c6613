"""Comparing and analyzing large tensors, strip by strip, with the results of the whole."""

import ml_dtypes
import numpy as np
import pytest
from integers import Integers
from peak_memory import megabytes_of
from safetensors.numpy import save_file

from mor_ref.analysis import large_tensors
from mor_ref.analysis.analyze_tensor import analyze
from mor_ref.analysis.compare_tensor import compare
from mor_ref.analysis.recipes import USUAL, settings_under
from mor_ref.metrics import Always, MeanRelativeError
from mor_ref.policies import POLICIES, Policy, Rung
from mor_ref.recipes import as_tensor_recipe

RECIPES = (
    *(name for name in USUAL if name != "e4m3:gam:128x128"),
    "e4m3:gam:8x16",
    "e5m2:fp32:row",
    "e5m2:e8m0:8x16",
    "e4m3:gam:row",
    "e4m3:gam:tensor",
    "e4m3:e8m0:tensor",
    "e4m3:gam:column",
    "mxint8:ceil:24",
    "nvfp4:te:16x16",
    "nvfp4:te_row",
    "nvfp4:te_4over6_mse:16x16",
    "nvfp4:torchao",
    "mor:tensor:8x16",
    "mor:tensor:row:fp32",
    "mor:two_way:24x16",
    "mor:three_way:8x16",
    "mor:nvfp4:8x16:fp32",
    "mor:nvfp4:row",
    "int8",
    "int4:1x32",
    "int8:peg:1x32",
    "mx9",
    "seq2",
)


def tensor(kind):
    """Return numbers whose largest one is in the last rows, some of them special."""
    x = np.random.default_rng(4).standard_normal((200, 96), dtype=np.float32)
    x[-1, -1] = 900
    if kind == "wide":
        x *= np.exp2(np.random.default_rng(5).integers(-30, 9, x.shape)).astype(np.float32)
    if kind == "special":
        x[3, 3], x[-2, 5], x[100], x[7, 7] = np.nan, np.inf, 0, -0.0
    return x.astype(ml_dtypes.bfloat16) if kind == "narrow" else x


@pytest.mark.tier("full", but=["[wide]"])
@pytest.mark.parametrize("kind", ["plain", "wide", "special", "narrow"])
def test_strips_have_the_measures_of_the_whole(monkeypatch, kind):
    x = tensor(kind)
    right = compare(x, RECIPES)
    monkeypatch.setattr(large_tensors, "AT_ONCE", 1000)
    assert compare(x, RECIPES) == right


@pytest.mark.parametrize("kind", ["plain", "wide", "special", "narrow"])
@pytest.mark.parametrize(
    "recipe",
    [
        "mor:tensor:8x16",
        "mor:tensor:row",
        "mor:three_way:8x16",
        "mor:nvfp4:24x16",
        "mxfp8",
        "e4m3:fp32:tensor",
    ],
)
def test_the_analysis_of_strips_is_that_of_the_whole(monkeypatch, kind, recipe):
    x, settings = tensor(kind), settings_under(recipe)
    right = analyze(x, settings)
    monkeypatch.setattr(large_tensors, "AT_ONCE", 1000)
    found = analyze(x, settings)
    assert found.report == right.report
    assert np.array_equal(found.blocks.error, right.blocks.error)
    assert np.array_equal(found.blocks.choice, right.blocks.choice)


@pytest.mark.parametrize(
    ("recipe", "rows"),
    [
        ("mxfp8", 1),
        ("nvfp4:te:16x16", 16),
        ("e4m3:fp32:tensor", 1),
        ("e4m3:gam:8x16", 8),
        ("mor:nvfp4:24x16", 24),
        ("mor:tensor:row", 1),
        ("int4:1x32", 1),
        ("int8", None),
        ("int8:peg:1x32", None),
        ("e4m3:fp32:column", None),
        ("mor:three_way:tensor", None),
    ],
)
def test_rows_that_share_a_scale_or_a_decision_are_together(recipe, rows):
    assert (
        large_tensors.rows_together(large_tensors.how_of(as_tensor_recipe(recipe)), (200, 96))
        == rows
    )


def test_a_policy_of_a_user_is_cut_where_its_groups_are(monkeypatch):
    grouped = Policy(
        "grouped", (Rung("e4m3", MeanRelativeError("0.03")),), "block", (8, 16), group=(40, 96)
    )
    monkeypatch.setitem(POLICIES, "grouped", grouped)
    assert (
        large_tensors.rows_together(
            large_tensors.how_of(as_tensor_recipe("mor:grouped:8x16")), (200, 96)
        )
        == 40
    )
    right = compare(tensor("wide"), ["mor:grouped:8x16"])
    monkeypatch.setattr(large_tensors, "AT_ONCE", 1000)
    assert compare(tensor("wide"), ["mor:grouped:8x16"]) == right


class Unsaid(Integers):
    """Integers that do not say how many rows share a scale."""

    rows_together = None


@pytest.mark.parametrize(("row", "rows"), [(Integers(), 1), (Unsaid(), None)])
def test_a_row_of_a_user_is_cut_where_it_says(monkeypatch, row, rows):
    """Else it is quantized whole."""
    monkeypatch.setitem(POLICIES, "own", Policy("own", (Rung(row, Always()),)))
    how = large_tensors.how_of(as_tensor_recipe("mor:own:row"))
    assert large_tensors.rows_together(how, (200, 96)) == rows
    right = compare(tensor("wide"), ["mor:own:row"])
    monkeypatch.setattr(large_tensors, "AT_ONCE", 1000)
    assert compare(tensor("wide"), ["mor:own:row"]) == right


@pytest.mark.tier("full")
def test_memory_does_not_grow_with_a_tensor(tmp_path):
    """A tensor has 192 megabytes more; the memory of both commands grows by less than a quarter."""

    def megabytes(rows):
        x = np.random.default_rng(0).standard_normal((rows, 2048), dtype=np.float32)
        save_file({"x": x}, tmp_path / "in.safetensors")
        return [megabytes_of(name, tmp_path / "in.safetensors") for name in ("compare", "analyze")]

    for few, many in zip(megabytes(8 << 10), megabytes(32 << 10), strict=True):
        assert many - few < 48
