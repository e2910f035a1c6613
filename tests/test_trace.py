"""Every rule has code and a test, and every id that is named is a rule."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
RULE = re.compile(r"^`{3,}\{rule\} (?P<title>.+)\n:id: (?P<id>[A-Z]+-\d{3})\n", re.MULTILINE)


def rules():
    """The ids of all rules, in the order of the text."""
    texts = [path.read_text() for path in sorted((ROOT / "spec").glob("*.md"))]
    return [found["id"] for text in texts for found in RULE.finditer(text)]


RULES = rules()
CHAPTERS = "|".join(sorted({rule.split("-")[0] for rule in RULES}))
ID = re.compile(rf"\b({CHAPTERS})-(\d{{3}})(?: to (?:{CHAPTERS})-(\d{{3}}))?")


def ids_in(text):
    """The ids that a text names, those inside of a range as well."""
    for chapter, first, last in ID.findall(text):
        for number in range(int(first), int(last or first) + 1):
            yield f"{chapter}-{number:03}"


def named_in(folder):
    return {name for path in (ROOT / folder).rglob("*.py") for name in ids_in(path.read_text())}


def test_ids_are_used_once():
    assert len(RULES) == len(set(RULES))
    assert RULES


@pytest.mark.parametrize("folder", ["mor_ref", "tests"])
def test_every_id_that_is_named_is_a_rule(folder):
    assert named_in(folder) - set(RULES) == set()


@pytest.mark.parametrize("folder", ["mor_ref", "tests"])
def test_every_rule_is_named_by_code_and_by_a_test(folder):
    assert set(RULES) - named_in(folder) == set()


def test_references_between_rules_are_not_dangling():
    texts = [path.read_text() for path in (ROOT / "spec").glob("*.md")]
    assert {name for text in texts for name in ids_in(text)} == set(RULES)
