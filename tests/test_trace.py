"""Every rule has code and a test, and every id that is named is a rule."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from mor_ref import Format, formats
from mor_ref.catalogue import presets
from mor_ref.conventions import SpecialCases
from mor_ref.golden.suites import SUITES

ROOT = Path(__file__).resolve().parent.parent
RULE = re.compile(r"^`{3,}\{rule\} (?P<title>.+)\n:id: (?P<id>[A-Z]+-\d{3})\n", re.MULTILINE)


def rules():
    """The ids of all rules, in the order of the text."""
    texts = [path.read_text() for path in sorted((ROOT / "spec").glob("*.md"))]
    return [found["id"] for text in texts for found in RULE.finditer(text)]


RULES = rules()
CHAPTERS = "|".join(sorted({rule.split("-")[0] for rule in RULES}))
WITHOUT_VALUES = ("VEC", "PRO")  # of how things are kept and sent: nothing to expect there
ID = re.compile(rf"\b({CHAPTERS})-(\d{{3}})(?: to (?:{CHAPTERS})-(\d{{3}}))?")


def ids_in(text, *, ranges=True):
    """The ids that a text names, those inside of a range as well if ranges count."""
    for chapter, first, last in ID.findall(text):
        if ranges or not last:
            for number in range(int(first), int(last or first) + 1):
                yield f"{chapter}-{number:03}"


def named_in(folder, **options):
    """The ids that the programs of a folder name."""
    paths = (ROOT / folder).rglob("*")
    texts = [path.read_text() for path in paths if path.suffix in (".py", ".sv")]
    return {name for text in texts for name in ids_in(text, **options)}


def test_ids_are_used_once():
    assert len(RULES) == len(set(RULES))
    assert RULES


@pytest.mark.parametrize("folder", ["mor_ref", "tests", "examples"])
def test_every_id_that_is_named_is_a_rule(folder):
    assert named_in(folder) - set(RULES) == set()


def test_every_rule_is_named_by_code():
    assert set(RULES) - named_in("mor_ref") == set()


def test_every_rule_is_named_by_a_test_of_its_own():
    """A test of many rules at once names a range of them, which does not count here."""
    assert set(RULES) - named_in("tests", ranges=False) == set()


def test_every_rule_has_a_suite():
    covered = {rule for suite in SUITES.values() for rule in suite.rules}
    assert {r for r in RULES if not r.startswith(WITHOUT_VALUES)} - covered == set()
    assert covered - set(RULES) == set()


def test_references_between_rules_are_not_dangling():
    texts = [path.read_text() for path in (ROOT / "spec").glob("*.md")]
    assert {name for text in texts for name in ids_in(text)} == set(RULES)


def table_after(heading, path):
    """The rows of the first table after a line, as lists of cells."""
    rule = path.read_text().split(heading, 1)[1].split("```", 1)[0]
    rows = [line.split("|")[1:-1] for line in rule.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def test_the_printed_formats_are_those_of_the_catalogue():
    """FMT-009."""
    signs = {"yes": "sign-magnitude", "no": "none", "two's complement": "twos-complement"}
    printed = [
        Format(
            name,
            exponent_bits=int(e),
            mantissa_bits=int(m),
            bias=int(b),
            specials=specials,
            sign=signs[sign],
        )
        for name, e, m, b, specials, sign in table_after(":id: FMT-009", ROOT / "spec/formats.md")
    ]
    assert printed == list(formats.values())


def test_the_printed_presets_are_those_of_the_catalogue():
    """ENC-016."""
    printed = {}
    table = table_after(":id: ENC-016", ROOT / "spec/encoding.md")
    for preset, names, overflow, nan, rest in table:
        codes = tuple(int(code, 16) for code in nan.split(", ")) if "0x" in nan else nan
        row = SpecialCases(overflow=overflow, nan=codes)
        if "(1)" in rest:
            row = replace(row, above_smallest_goes_up=True, power_of_two_rounding="rna")
        if "zero and negative numbers are NaN" in rest:
            row = replace(row, zero_code=0xFF, negative_code=0xFF)
        printed |= {(preset, name): row for name in names.split(", ")}
    assert printed == {(p, name): row for p, rows in presets.items() for name, row in rows.items()}
