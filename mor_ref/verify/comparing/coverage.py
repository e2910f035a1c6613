"""How much of some suites a candidate answered, in numbers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mor_ref.counts_in_words import counted
from mor_ref.verify.comparing.evidence import Evidence

Entry = Mapping[str, Any]  # of a manifest, on a suite
_Place = tuple[str, str]  # a case, and a field of it


@dataclass(frozen=True)
class Coverage:
    """So many suites, fields of them, cases and rules. A field of two suites counts twice.

    A field or a case counts as given if something of it was, a rule only if all was (CON-002).
    """

    suites: int
    fields: int
    cases: int
    rules: int

    def of(self, asked: "Coverage") -> str:
        """Say how much of the asked this is."""
        return ", ".join(
            (
                _share(self.fields, asked.fields, "field"),
                _share(self.cases, asked.cases, "case"),
                _share(self.rules, asked.rules, "rule", " in full"),
                _share(self.suites, asked.suites, "suite"),
            )
        )


@dataclass(frozen=True)
class SuiteAnswers:
    """How much the answers to a suite have: fields, cases, and fields that a case omits.

    Fields of cases, by the names of both, are `compared` if an entry of them was, and `left_out`
    if a part of them has no such entry.
    """

    suite: str
    fields: frozenset[str]
    answered: frozenset[str]
    omitted: frozenset[str]
    compared: frozenset[_Place]
    left_out: frozenset[_Place]

    def __add__(self, more: "SuiteAnswers") -> "SuiteAnswers":
        """Return what the answers to two parts of a suite have."""
        return SuiteAnswers(
            self.suite,
            self.fields | more.fields,
            self.answered | more.answered,
            self.omitted | more.omitted,
            self.compared | more.compared,
            self.left_out | more.left_out,
        )

    @property
    def counted_fields(self) -> frozenset[str]:
        """The fields that were given, unless they are left out as a whole."""
        nothing = {field for _, field in self.left_out} - {field for _, field in self.compared}
        return self.fields - nothing

    @property
    def cases(self) -> int:
        """How many cases were answered, without those that are left out as a whole."""
        nothing = {case for case, _ in self.left_out} - {case for case, _ in self.compared}
        return len(self.answered - nothing)

    @property
    def lacking(self) -> frozenset[str]:
        """The fields that a case omits, or that are left out there as a whole."""
        return self.omitted | {field for _, field in self.left_out - self.compared}


def given_in(evidence: Evidence) -> SuiteAnswers:
    """Return how much the answers have. A field without entries counts as compared."""
    expected = [field.name for field in evidence.fields if field.role == "expected"]
    omitted = frozenset(name for name in expected if not evidence.has_all_of(name))
    compared, left_out = set[_Place](), set[_Place]()
    for field in evidence.given:
        for case in evidence.answered_with(field):
            is_left_out = case.arrays[field].size and not evidence.size_of(case, field)
            (left_out if is_left_out else compared).add((case.name, field))
    return SuiteAnswers(
        evidence.suite,
        frozenset(evidence.given),
        frozenset(evidence.answers if evidence.given else ()),
        omitted | evidence.fields_left_out,
        frozenset(compared),
        frozenset(left_out),
    )


def _share(given: int, of: int, noun: str, how: str = "") -> str:
    return counted(of, noun) if given == of else f"{given:,} of {counted(of, noun)}{how}"


def asked_of(entries: Mapping[str, Entry]) -> Coverage:
    """Count the fields, cases and rules of these suites."""
    return Coverage(
        len(entries),
        sum(len(_expected(entry)) for entry in entries.values()),
        sum(len(entry["cases"]) for entry in entries.values()),
        len(_rules_of(entries)),
    )


def given_of(found: Iterable[SuiteAnswers], entries: Mapping[str, Entry]) -> Coverage:
    """Return the coverage of the answers to a suite that has answers."""
    answered = {one.suite: one for one in found if one.cases}
    left_out: set[str] = set()
    for suite, entry in entries.items():
        left_out |= _left_out(answered.get(suite), entry)
    return Coverage(
        len(answered),
        sum(len(one.counted_fields) for one in answered.values()),
        sum(one.cases for one in answered.values()),
        len(_rules_of(entries) - left_out),
    )


def _rules_of(entries: Mapping[str, Entry]) -> set[str]:
    return {rule for entry in entries.values() for rule in entry["rules"]}


def _left_out(given: SuiteAnswers | None, entry: Entry) -> set[str]:
    """Return the rules of the fields that the answer to a case of the suite lacks.

    A rule that no field names is about all of them.
    """
    if given is None:
        return {*entry["rules"]}
    fields = _expected(entry)
    absent = [field for field in fields if field["name"] in given.lacking]
    named = {rule for field in fields for rule in field["rules"]}
    of_all = {*entry["rules"]} - named if absent else set()
    return of_all | {rule for field in absent for rule in field["rules"]}


def _expected(entry: Entry) -> list[Mapping[str, Any]]:
    """Return the fields of a suite that are expected."""
    return [field for field in entry["fields"] if field["role"] == "expected"]
