"""The page of speeds and its picture: what can be held of them without measuring."""

import math
import re
from string import Formatter
from xml.etree import ElementTree as ET

import pytest
from explorer_browser import ROOT, context_of
from extras import of_benchmarks

all_rows = of_benchmarks("all_rows")
chart = of_benchmarks("chart")
page = of_benchmarks("page")
rows = of_benchmarks("rows")
scale = of_benchmarks("scale")
table = of_benchmarks("table")

SVG = "{http://www.w3.org/2000/svg}"
NARROW = 358  # what a page of 390 leaves for a picture
# The longest names that there are, and ratios from far below 1 to far above.
RATIOS = {
    "NVFP4 of bf16, te_4over6_mse, 16x16 tiles": {"NumPy with ml_dtypes": 0.01, "torch": 28.1},
    "MX e4m3 of f32 and back, few": {"gfloat": 938.0, "compressed-tensors": 160.0, "pychop": 1.0},
}


def measured(contender, ratio):
    return rows.Measured(contender, ratio, 1, differing=0)


def line_of(operation, ratios):
    own = rows.Contender(prepare=lambda x: lambda: x)
    row = rows.Row(operation, lambda: None, dict.fromkeys(ratios, own))
    ours = {rows.OURS: rows.Measured(rows.OURS, 1.0, 1)}
    return table.Line(row, ours | {name: measured(name, ratio) for name, ratio in ratios.items()})


@pytest.fixture
def picture():
    lines = [line_of(operation, ratios) for operation, ratios in RATIOS.items()]
    return ET.fromstring(chart.as_svg(table.Results({}, lines)))  # noqa: S314, made here


def shapes(picture, kind):
    return [shape for shape in picture.iter(f"{SVG}{kind}") if shape.get("class") != "ground"]


def test_the_picture_can_be_read_on_a_narrow_screen(picture):
    """A name is above its bars, which have nearly all of the width; letters are not tiny."""
    width = float(picture.get("viewBox").split()[2])
    assert float(picture.get("font-size")) * NARROW / width >= 10
    at = {
        text.text: (float(text.get("x")), float(text.get("y"))) for text in shapes(picture, "text")
    }
    tops = iter(float(bar.get("y")) for bar in shapes(picture, "rect"))
    for operation, ratios in RATIOS.items():
        left, bottom = at[operation]
        assert left < width / 10
        assert all(bottom < next(tops) for _ in ratios)


def test_nothing_of_the_picture_is_cut_off(picture):
    _, _, width, height = map(float, picture.get("viewBox").split())
    for bar in shapes(picture, "rect"):
        left = float(bar.get("x"))
        assert 0 <= left <= left + float(bar.get("width")) <= width
    for text in shapes(picture, "text"):
        length = 0.55 * float(picture.get("font-size")) * len(text.text)
        left = float(text.get("x")) - (length / 2 if text.get("text-anchor") else 0)
        assert 0 <= left <= left + length <= width
        assert float(text.get("y")) < height


def test_bars_are_as_long_as_ratios_say(picture):
    ratios = [ratio for of_row in RATIOS.values() for ratio in of_row.values()]
    lengths = [float(bar.get("width")) for bar in shapes(picture, "rect")]
    factors = {
        round(length / math.log10(ratio), 0)
        for length, ratio in zip(lengths, ratios, strict=True)
        if ratio > 1
    }
    assert len(factors) == 1
    assert lengths[ratios.index(1.0)] == 0


def luminance(colour):
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("shades", [chart.LIGHT, chart.DARK], ids=["light", "dark"])
def test_colours_differ_from_the_ground(shades):
    for colour in (shades.text, *shades.bars):
        dark, light = sorted((luminance(colour), luminance(shades.ground)))
        assert (light + 0.05) / (dark + 0.05) >= 4.5, colour


def test_every_shape_has_a_colour_of_each_kind_of_page(picture):
    light, dark = picture.find(f"{SVG}style").text.split("@media (prefers-color-scheme: dark)")
    for kind in {bar.get("class") for bar in shapes(picture, "rect")} | {"ground"}:
        pattern = rf"\.{kind} {{ fill: (#\w{{6}}) }}"
        assert re.search(pattern, light)[1] != re.search(pattern, dark)[1]


# The page as the theme has it: a reader's choice is in an attribute of its body.
PAGE = """<style>{style}</style><body data-theme="{theme}"><p class="of-picture">
<img src="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' width='540'/%3E"></p>"""


@pytest.mark.tier("full")
@pytest.mark.parametrize(
    ("system", "theme", "kind"),
    [
        ("light", "auto", "light"),
        ("light", "dark", "dark"),
        ("dark", "auto", "dark"),
        ("dark", "light", "light"),
    ],
)
def test_the_site_shows_the_picture_as_its_reader_chose_and_does_not_widen_it(
    browser, system, theme, kind
):
    style = (ROOT / "docs" / "_static" / "site.css").read_text()
    shown_in = context_of(browser, color_scheme=system).new_page()
    shown_in.set_content(PAGE.format(style=style, theme=theme))
    shown = shown_in.evaluate("getComputedStyle(document.querySelector('img')).colorScheme")
    assert shown == kind
    shown_in.set_viewport_size({"width": 390, "height": 600})
    assert shown_in.locator("img").evaluate("image => image.width") == 540


def texts_of(template):
    """Return the text of a template between its arguments."""
    return [text for text, *_ in Formatter().parse(template) if text.strip()]


def headings_of(*names):
    return f"| {' | '.join(names)} |"


SPEED = [
    *texts_of(page.HEAD),
    *texts_of(page.LOOPS),
    *(headings_of(*names) for names in (table.HEADINGS, page.OF_LOOPS, page.OF_PIPELINES)),
]
SCALE = [*texts_of(scale.TEXT), *(f"| {s.name} | {s.written} |" for s in scale.SWEEPS)]
SCALE += [text for s in scale.SWEEPS for text in (f" ns ({s.rate_of})", f"({s.gpu_reason})")]


@pytest.mark.parametrize(("name", "texts"), [("speed.md", SPEED), ("scale.md", SCALE)])
def test_a_page_is_not_older_than_what_writes_it(name, texts):
    """`make bench-page` writes it anew."""
    shown = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert [text for text in texts if text not in shown] == []


def test_the_picture_is_not_older_than_what_draws_it():
    assert chart.style() in (ROOT / "docs" / "speed.svg").read_text(encoding="utf-8")


def test_the_table_has_every_row_and_every_library_that_is_compared():
    """A new row of the benchmarks needs a measurement: `make bench`, then `make bench-page`."""
    lines = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8").splitlines()
    missing = []
    for row in all_rows.ROWS:
        shown = next((line for line in lines if line.startswith(f"| {row.operation} |")), "")
        names = [name for name, c in row.contenders.items() if c.bits and not c.expected]
        of_others = [f"{name} " for name in names if name != rows.OURS]
        missing += [(row.operation, name) for name in ("| ", *of_others) if name not in shown]
    assert missing == []
