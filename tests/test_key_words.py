"""The key words of BCP 14 in the specification: rules use them, and notes do not."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from mor_docs.trace import RULE, rules_of

ROOT = Path(__file__).resolve().parent.parent
IN_CAPITALS = ("MUST", "SHALL", "SHOULD", "MAY")  # of BCP 14, and words of English
CODE = re.compile(r"^(`{3,}).*?^\1$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def words_in(text: str, words: Iterable[str]) -> list[str]:
    """Return the words that a text has outside of code, each with the text around it."""
    prose = " ".join(CODE.sub("`code`", text).split())
    found = re.finditer(rf".{{0,30}}\b(?:{'|'.join(words)})\b.{{0,30}}", prose)
    return [match[0] for match in found]


def informative(text: str) -> str:
    """Return a chapter without its rules, and without the paragraph of the key words."""
    paragraphs = RULE.sub("", text).split("\n\n")
    return "\n\n".join(part for part in paragraphs if not part.startswith("The key words "))


@pytest.mark.parametrize("rule", rules_of(ROOT / "spec"), ids=lambda rule: rule.id)
def test_demands_of_a_rule_are_in_capitals(rule):
    """BCP 14: in lower case these words demand nothing, and in a rule they would seem to."""
    assert words_in(rule.text, map(str.lower, IN_CAPITALS)) == []


@pytest.mark.parametrize("path", sorted((ROOT / "spec").glob("*.md")), ids=lambda path: path.stem)
def test_notes_demand_nothing(path):
    assert words_in(informative(path.read_text()), IN_CAPITALS) == []


def test_key_words_are_defined_and_used():
    """Once, in the chapter on conformance; every rule but the theorems uses one."""
    paragraphs = (ROOT / "spec/scope.md").read_text().split("\n\n")
    defined = [part for part in paragraphs if part.startswith("The key words ")]
    assert len(defined) == 1
    assert all(words_in(defined[0], [word]) for word in ("MUST NOT", "SHOULD NOT", "MAY", "BCP 14"))
    rules = rules_of(ROOT / "spec")
    without = [rule for rule in rules if not words_in(rule.text, IN_CAPITALS)]
    assert [rule.id for rule in without if rule.chapter != "theorems"] == []
    assert {rule.chapter for rule in without} == {"theorems"}


def test_key_words_are_found():
    rule = "```{rule} One\n:id: TIN-001\n:origin: ours\n\nIt MUST.\n```\n\n"
    note = "Note. It MAY; it\nmust not be `should`."
    assert words_in(note, ["must", "should"]) == ["Note. It MAY; it must not be `code`."]
    assert words_in("Mustard, dismay; as in May.", ["must", "may"]) == []
    assert informative(f"{rule}The key words MUST.\n\n{note}").strip() == note
