"""The pictures of formats and errors: their numbers are those of the exact model and the engine."""

import csv
import math
import re
from fractions import Fraction
from urllib.parse import unquote

import numpy as np
import pytest
from explorer_browser import ROOT, context_of
from extras import needs
from mor_docs.shown import (
    checkpoint,
    dot_pictures,
    error_pictures,
    format_pictures,
    integers,
    markup,
    slider,
)

import mor_ref
from mor_ref import formats
from mor_ref.definitions.dot import DOT_PROFILES


def rows_of(shown):
    """Return the rows of the CSV that a picture links to."""
    (lines,) = re.findall(r'href="data:text/csv;charset=utf-8,([^"]*)"', shown)
    return list(csv.DictReader(unquote(lines).splitlines()))


def test_a_link_holds_the_numbers():
    shown = markup.data("name", ["a", "b"], [[1, 'x "'], [0.5, "%"]])
    assert 'download="name.csv"' in shown
    assert rows_of(shown) == [{"a": "1", "b": 'x "'}, {"a": "0.5", "b": "%"}]


def test_ranges_are_those_of_the_catalogue():
    rows = rows_of(format_pictures.ranges())
    assert [row["format"] for row in rows] == list(formats)
    found = {row["format"]: [float(row[name]) for name in list(row)[1:]] for row in rows}
    assert found["e4m3"] == [2**-9, 2**-6, 448]
    assert found["e5m2"] == [2**-16, 2**-14, 57344]
    assert found["e8m0"] == [2.0**-127, 2.0**-127, 2.0**127]
    assert found["int8_mx"] == [2**-6, 2**-6, 127 / 64]


def test_numbers_are_those_of_the_engine():
    rows = rows_of(format_pictures.numbers("e4m3", "e2m1"))
    for name in ("e4m3", "e2m1"):
        own = [row for row in rows if row["format"] == name]
        codes = np.array([int(row["code"], 16) for row in own], np.uint8)
        assert [float(row["number"]) for row in own] == mor_ref.decode(codes, name).tolist()
        assert len(own) == formats[name].largest_code


def test_integers_with_a_zero_point_use_their_whole_range():
    """The text next to the picture says so, and which profile has a code for the maximum."""
    rows = rows_of(integers.steps())
    found = {name: {float(r["y"]) for r in rows if r["grid"] == name} for name in integers._WAYS}
    torch, peg, zero_point = found.values()
    assert (len(torch), len(peg), len(zero_point)) == (6, 6, 8)
    assert max(peg) == 3 > max(torch)
    assert min(zero_point) > -1.2 > min(torch)


@pytest.fixture
def few_dots(monkeypatch):
    """Draw pictures of few and short dot products."""
    cached = dot_pictures._drawn, dot_pictures._codes, dot_pictures._rows, dot_pictures._error
    for name, value in (("_ROWS", 3), ("_LENGTHS", (6, 8)), ("_LONG", 8)):
        monkeypatch.setattr(dot_pictures, name, value)
    for function in cached:
        function.cache_clear()
    yield
    for function in cached:
        function.cache_clear()


@pytest.mark.tier("full")
@pytest.mark.usefixtures("few_dots")
def test_errors_are_of_every_profile_of_floating_point_sums():
    """DOT-002: a profile on a curve of another one has its bits on the numbers of the picture."""
    rows = rows_of(dot_pictures.compared())
    assert {row["profile"] for row in rows} == {*DOT_PROFILES.specified} - {"int32", "switchback"}
    for row in rows:
        assert float(row["256"]) == pytest.approx(dot_pictures._error(row["profile"], 8), rel=1e-3)
    for shown in (dot_pictures.errors(), dot_pictures.wide_errors(), dot_pictures.f16_errors()):
        assert shown.count("<polyline") == 12


def test_errors_against_magnitude_have_a_valley():
    """With 3 bits of mantissa, the mean error of normal numbers is between 1 and 4 %."""
    rows = rows_of(format_pictures.errors("e4m3"))
    points = {float(row["log2 of x"]): float(row["mean error in %"]) for row in rows}
    valley = [error for place, error in points.items() if -6 < place < 8.75]
    assert 1 < min(valley) < max(valley) < 4
    assert {error for place, error in points.items() if place < -10.25} == {100}
    x = 2.0 ** np.linspace(4, 4.25, 16, endpoint=False, dtype=np.float64) * 2 ** (1 / 128)
    y = mor_ref.decode(mor_ref.encode(x, "e4m3"), "e4m3")
    assert points[4.125] == pytest.approx(100 * np.mean(np.abs(y - x) / x), abs=0.001)


def test_the_frames_of_the_decrement_are_what_the_engine_gives():
    shown = slider.decrement("e4m3", "7.5")
    rows = rows_of(shown)
    amaxes = np.array([[float(row["amax"]), 7.5] for row in rows], np.float32)
    for amax, row in zip(amaxes, rows, strict=True):
        found = mor_ref.quantize(amax[None], "e4m3", block=(1, 1))
        assert int(row["stored"]) == found.scale_exponent[0, 0]
        assert np.float32(row["scale"]) == found.scale[0, 0]
        ideal = Fraction(448) / Fraction(row["amax"])
        is_lower = math.floor(math.log2(ideal)) > int(row["stored"]) - 127
        assert (row["decrement"] == "True") == is_lower
    assert {row["decrement"] for row in rows} == {"True", "False"}
    assert shown.count("<g>") == len(rows)


def test_histograms_count_every_number():
    """The errors of four numbers: 0, 1/8, 1/2 and 1; a zero is not counted."""
    x, y = np.float32([1, 8, 2, 4, 0]), np.float32([1, 9, 1, 8, 0])
    shares, exact, mean = error_pictures.histogram(x, y)
    assert (exact, mean) == (0.25, (1 / 8 + 1 / 2 + 1) / 4)
    assert shares == [0.25 if place == -2 else 0.5 if place == 0 else 0 for place in range(-12, 1)]
    for row in rows_of(error_pictures.histograms()):
        bins = [
            float(value)
            for name, value in row.items()
            if name not in ("representation", "mean in %")
        ]
        assert sum(bins) == pytest.approx(100, abs=0.01)


def test_the_share_accepted_is_what_mor_decides():
    rows = rows_of(error_pictures.accepted("32"))
    for kind, x in error_pictures.kinds().items():
        (row,) = (r for r in rows if (r["tensor"], r["threshold in %"]) == (f"{kind}, e4m3", "4.5"))
        sums = mor_ref.quantize(x, "e4m3", block=(32, 32)).error
        share = np.mean(sums.sum < 377487 * sums.nonzero)  # T of MOR-002
        assert float(row["accepted in %"]) == pytest.approx(100 * share, abs=0.01)


@needs("matplotlib")
@pytest.mark.tier("full")
def test_the_picture_of_the_checkpoint_is_written(tmp_path):
    checkpoint.write(tmp_path)
    from matplotlib.image import imread

    light, dark = (imread(tmp_path / name)[0, 0, :3] for name in checkpoint.PICTURES)
    assert light.min() == 1
    assert dark.max() < 0.2
    for kind, name in zip(("light", "dark"), checkpoint.PICTURES, strict=True):
        assert f'<img class="only-{kind}" src="../{name}"' in checkpoint.errors()


@pytest.mark.tier("full")
def test_the_slider_moves_the_picture(browser):
    shown = slider.decrement("e4m3", "7.5").split("```{raw} html\n")[1].split("\n```")[0]
    css = (ROOT / "docs" / "_static" / "site.css").read_text("utf-8")
    page = context_of(browser).new_page()
    page.set_content(f"<style>{css}</style>{shown}")
    for place in ("0", "30"):
        page.locator("input").fill(place)
        assert page.locator("svg > g:visible").count() == 1
        assert page.locator("svg > g").nth(int(place)).is_visible()
