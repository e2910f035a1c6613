"""How much of some suites a candidate answered, in numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mor_ref.verify.evidence import Evidence
from mor_ref.verify.wording import counted

Entry = Mapping[str, Any]  # of a manifest, on a suite


@dataclass(frozen=True)
class Extent:
    """So many suites, fields of them, cases and rules. A field of two suites counts twice."""

    suites: int
    fields: int
    cases: int
    rules: int

    def of(self, asked: "Extent") -> str:
        """How much this is of what was asked, in words."""
        nouns = ("field", "case", "rule", "suite")
        return ", ".join(
            _share(getattr(self, f"{noun}s"), getattr(asked, f"{noun}s"), noun) for noun in nouns
        )


def _share(given: int, of: int, noun: str) -> str:
    return counted(of, noun) if given == of else f"{given:,} of {counted(of, noun)}"


def asked_of(entries: Mapping[str, Entry]) -> Extent:
    """All that these suites have."""
    return Extent(
        len(entries),
        sum(len(_expected(entry)) for entry in entries.values()),
        sum(len(entry["cases"]) for entry in entries.values()),
        len({rule for entry in entries.values() for rule in entry["rules"]}),
    )


def given_of(found: list[Evidence], entries: Mapping[str, Entry]) -> Extent:
    """What was given, of a suite in which something was; rules are those of the fields."""
    answered = [evidence for evidence in found if evidence.answered]
    rules: set[str] = set()
    for evidence in answered:
        entry = entries[evidence.suite]
        fields = [field for field in _expected(entry) if field["name"] in evidence.given]
        is_whole = len(fields) == len(_expected(entry))
        rules |= {*entry["rules"]} if is_whole else {r for field in fields for r in field["rules"]}
    return Extent(
        len(answered),
        sum(len(evidence.given) for evidence in answered),
        sum(evidence.answered for evidence in answered),
        len(rules),
    )


def _expected(entry: Entry) -> list[Mapping[str, Any]]:
    """The fields of a suite that are expected."""
    return [field for field in entry["fields"] if field["role"] == "expected"]
