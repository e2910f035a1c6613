"""Analyzing: totals of tensors and blocks, and the tensor that is drawn as a map."""

import json

import numpy as np
import pytest
from analyzing import heavy, run, taken, three_kinds_of_blocks

import mor_ref
from mor_ref import MeanRelativeError, Policy, Rung
from mor_ref.analysis.analyze_tensor import analyze, settings_for, worth_a_map
from mor_ref.analysis.totals import totals_of

__all__ = ["run"]  # a fixture


def test_the_totals_of_a_tensor_policy_count_tensors(run):
    np.savez(
        "x.npz",
        good=np.full((200, 300), 1.5, np.float32),
        also=np.ones(3, np.float32),
        zero=np.zeros(5, np.float32),
        bad=np.array([1.0, np.nan], np.float32),
        none=np.zeros((0, 3), np.float32),
    )
    totals = json.loads(run("x.npz", "--json"))["totals"]
    assert totals == {
        "tensors": 5,
        "elements": 60010,
        "units": {"e4m3": 3, "bf16": 1},
        "taken": {"e4m3": 60008, "bf16": 2},
        "bits": {"e4m3": 8, "bf16": 16},
        "shares": {"e4m3": 60008 / 60010, "bf16": 2 / 60010},
        "unit_shares": {"e4m3": 0.75, "bf16": 0.25},
        "width_shares": {"8": 60008 / 60010, "16": 2 / 60010},
        "unit_width_shares": {"8": 0.75, "16": 0.25},
    }
    text = run("x.npz")
    assert "5 tensors, 60,010 elements\n" in text
    assert "share of tensors: e4m3 75.0 % (3), bf16 25.0 % (1)\n" in text
    assert "share of elements: e4m3 >99.9 %, bf16 <0.1 %\n" in text
    assert "in 8 bits: >99.9 % of elements, 75.0 % of tensors\n" in text


def test_the_totals_of_other_policies_count_blocks(run):
    np.savez("x.npz", x=three_kinds_of_blocks(), y=np.ones((4, 4), np.float32))
    found = json.loads(run("x.npz", "--json", "--policy", "three_way", "--block", "2x4"))
    assert [record["units"] for record in found["tensors"]] == [
        {"e4m3": 12, "e5m2": 1, "bf16": 3},
        {"e4m3": 2, "e5m2": 0, "bf16": 0},
    ]
    assert found["totals"] == {
        "tensors": 2,
        "elements": 144,
        "units": {"e4m3": 14, "e5m2": 1, "bf16": 3},
        "taken": {"e4m3": 112, "e5m2": 8, "bf16": 24},
        "bits": {"e4m3": 8, "e5m2": 8, "bf16": 16},
        "shares": {"e4m3": 112 / 144, "e5m2": 8 / 144, "bf16": 24 / 144},
        "unit_shares": {"e4m3": 14 / 18, "e5m2": 1 / 18, "bf16": 3 / 18},
        "width_shares": {"8": 120 / 144, "16": 24 / 144},
        "unit_width_shares": {"8": 15 / 18, "16": 3 / 18},
    }
    text = run("x.npz", "--policy", "three_way", "--block", "2x4")
    assert "share of blocks: e4m3 77.8 % (14), e5m2 5.6 % (1), bf16 16.7 % (3)\n" in text
    assert "share of elements: e4m3 77.8 %, e5m2 5.6 %, bf16 16.7 %\n" in text
    assert "in 8 bits: 83.3 % of elements, 83.3 % of blocks\n" in text


def test_blocks_count_as_large_as_they_are(run):
    """A LayerNorm has eight small blocks, and a matrix sixteen large ones."""
    norm = np.full(1000, np.nan, np.float32)
    norm[:128] = 1.5
    np.savez("x.npz", weight=np.ones((512, 512), np.float32), norm=norm)
    found = json.loads(run("x.npz", "--json", "--policy", "nvfp4"))
    elements = 512 * 512 + 1000
    assert found["totals"]["units"] == {"nvfp4": 17, "e4m3": 0, "bf16": 7}
    assert found["totals"]["taken"] == {"nvfp4": 512 * 512 + 128, "e4m3": 0, "bf16": 872}
    assert found["totals"]["shares"]["bf16"] == 872 / elements
    assert found["tensors"][1]["shares"] == {"nvfp4": 0.128, "e4m3": 0.0, "bf16": 0.872}
    text = run("x.npz", "--policy", "nvfp4")
    assert text.splitlines()[-6:] == [
        "nvfp4 %, e4m3 %, bf16 %: shares of the elements",
        "2 tensors, 263,144 elements, 24 blocks",
        "share of elements: nvfp4 99.7 %, e4m3 0.0 %, bf16 0.3 %",
        "share of blocks: nvfp4 70.8 % (17), e4m3 0.0 % (0), bf16 29.2 % (7)",
        "in 4 bits: 99.7 % of elements, 70.8 % of blocks",
        "in 8 bits: 0.0 % of elements, 0.0 % of blocks",
    ]


@pytest.mark.parametrize("block", ["7x5", "64x1", "1x1", "200x300", "row", "column", "tensor"])
def test_every_number_is_counted_once(block):
    for shape in ((64, 23), (3, 9, 7), (50,), (), (0, 3)):
        x = heavy(shape or (1,), 3).astype(np.float32).reshape(shape)
        report = analyze(x, settings_for("three_way", block=block)).report
        cut = tuple(map(int, block.split("x"))) if "x" in block else block
        assert report.taken == taken(x, mor_ref.mor(x, "three_way", block=cut))
        assert sum(report.taken.values()) == x.size


def test_nvfp4_has_four_bits():
    settings = settings_for("nvfp4", block="1x16")
    x = np.ones((2, 16), np.float32)
    x[1, 3] = np.nan
    totals = totals_of([analyze(x, settings).report], settings)
    assert totals.units == {"nvfp4": 1, "e4m3": 0, "bf16": 1}
    assert totals.width_shares == {4: 0.5, 8: 0.0, 16: 0.5}
    own = Policy("own", (Rung("e2m3", MeanRelativeError(1)), Rung("e5m2", MeanRelativeError(1))))
    assert totals_of([], settings_for(own)).bits == {"e2m3": 6, "e5m2": 8, "bf16": 16}
    assert totals_of([], settings).shares == {"nvfp4": 0.0, "e4m3": 0.0, "bf16": 0.0}


def test_the_map_is_of_the_most_divided_tensor_or_of_the_worst():
    by_block = settings_for("three_way", block="2x4")
    mixed = analyze(three_kinds_of_blocks(), by_block).report
    lost = analyze(np.full((8, 16), np.nan, np.float32), by_block).report
    good = analyze(np.ones((8, 16), np.float32), by_block).report
    assert (mixed.minority, lost.minority, good.minority) == (4, 0, 0)
    assert worth_a_map(mixed) > worth_a_map(lost) > worth_a_map(good)
    near, far, broken = (
        analyze(x, settings_for()).report
        for x in (heavy((40, 40), 0.1), heavy((40, 40), 4), np.array([np.nan]))
    )
    assert worth_a_map(far) > worth_a_map(broken) > worth_a_map(near)
