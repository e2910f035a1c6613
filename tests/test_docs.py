"""The sources of the documentation: what its pages show, and their lists."""

import re

import pytest
from mor_docs import consoles
from mor_docs.shown import command_line, formats, scaling, tensors
from mor_docs.typography import torn_powers, with_powers
from site_of_docs import ROOT

import mor_ref


def test_every_chapter_is_listed_next_to_the_chapters():
    listed = re.findall(r"\((\w+\.md)\)", (ROOT / "spec" / "README.md").read_text())
    kept = {path.name for path in (ROOT / "spec").glob("*.md")} - {"README.md"}
    assert sorted(listed) == sorted(kept)


def test_the_rows_of_formats_are_shown():
    """FMT-009."""
    shown = formats.rows().splitlines()
    assert [line.split()[1] for line in shown[2:]] == list(mor_ref.formats)
    assert "| e5m2fnuz | 5 | 2 | 16 | fnuz | yes |" in shown
    assert "| e8m0 | 8 | 0 | 127 | fn | no |" in shown
    assert "| int8_mx | 0 | 7 | 0 | none | two's complement |" in shown


def test_signs_are_those_of_a_minus():
    """FMT-008: in every place of a line."""
    shown = formats.decoded("int8_mx", "0x80")
    assert "\N{MINUS SIGN}128 · 2^\N{MINUS SIGN}6, FMT-008" in shown


def test_arrows_have_heads():
    drawings = [tensors.ladder("three_way"), scaling.decrement("e4m3", "7.5", "3.3", "0.011")]
    for drawn in drawings:
        assert drawn.count('class="head"') == drawn.count('class="arrow"') > 0


WORDS = {"binade", "canonical NaN", "case", "error sum", "profile", "representation", "RN32", "ulp"}


def test_the_glossary_has_the_words_of_the_rules_in_order():
    """And the words of others, in a list of their own."""
    page = (ROOT / "docs" / "guide" / "glossary.md").read_text()
    lists = re.findall(r"```\{glossary\}\n(.*?)```", page, re.DOTALL)
    entries = [[entry.splitlines() for entry in text.split("\n\n")] for text in lists]
    ours, others = ({line for entry in each for line in entry} for each in entries)
    assert ours >= WORDS
    assert others >= {"scale factor", "microscaling", "block size", "saturation", "denormal"}
    for first in ([entry[0] for entry in each] for each in entries):
        assert first == sorted(first, key=str.casefold)


def test_parameters_have_the_names_of_the_usage_and_are_said_to_be_required():
    shown = command_line.commands()
    text = shown.partition("## mor-ref exhaustive\n")[2].partition("## ")[0]
    assert "{FORMAT}" in text
    assert "| `FORMAT` | The target format. | required |" in text


@pytest.mark.parametrize(
    ("text", "is_torn"),
    [
        ("2^min(e, 127)", True),
        ("s(x) * 2^E(x) and", True),
        ("2^(1 - (2 - (3 - 4)))", True),
        ("a power 2^-1.5", True),
        ("2^{e}", True),
        ("2^(min(e, 127))", False),
        ("2^-22. Then 2^(E(x) - 1) / 2^n", False),
        ("z ^ (z >> 30)", False),
    ],
)
def test_a_power_that_is_not_raised_as_a_whole_is_found(text, is_torn):
    assert bool(torn_powers(with_powers(text))) is is_torn


@pytest.mark.parametrize(
    ("text", "is_wrapped"),
    [
        ("$ a command\nits output", True),
        ("name  error\na     1", False),
        (f"name  error\n{93 * 'a'}", True),
    ],
)
def test_lines_of_consoles_wrap_but_for_tables(text, is_wrapped):
    assert consoles.wraps(text) == is_wrapped


def test_lines_that_wrap_are_elements_of_their_own():
    """But for those of an element of several lines; their text stays the same."""
    begin = '<div class="wraps highlight"><div><pre>'
    shown = consoles.with_rows(f"{begin}a\n<span>b</span>\n</pre>")
    row = '<span class="row">{}</span>\n'.format
    assert shown == f"{begin}{row('a')}{row('<span>b</span>')}</pre>"
    shown = consoles.with_rows(f"{begin}  <b>$</b> run --all-of</pre>")
    option = '<span class="unbroken">--all-of</span>'
    assert shown == (
        f'{begin}<span class="row" style="--indent: 2ch">  <b>$</b> run {option}</span></pre>'
    )
    for other in (f"{begin}<span>a\nb</span>\n</pre>", "<div><div><pre>a\nb</pre>"):
        assert consoles.with_rows(other) == other
