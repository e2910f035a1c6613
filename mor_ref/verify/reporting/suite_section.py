"""The sections of a page on suites with mismatches, as far as there is room."""

import shlex
from collections import defaultdict
from typing import NamedTuple

from mor_ref.counts_in_words import counted
from mor_ref.verify.comparing.difference import Difference, Entry
from mor_ref.verify.reporting.causes import Cause, Found
from mor_ref.verify.reporting.picture import picture_of
from mor_ref.verify.reporting.templates import rendered
from mor_ref.verify.running.results import SuiteResult

_PICTURES, _OF_FIRST, _OF_OTHER = 20, 2, 1
_ROOM = 750_000  # characters of sections
_ROWS = 10  # of a table of kinds


class KindOfSuite(NamedTuple):
    """A way in which entries of a field differ in all cases, with the entry of one of them."""

    words: str
    entries: int
    difference: Difference
    entry: Entry


class Sections:
    """Sections that fill a page: each takes room from those after it. `ids` are of their suites.

    `command` verifies the candidate on the same vectors, if it is known.
    """

    def __init__(self, command: str | None, site: str | None) -> None:
        self.site = site
        self.ids: dict[str, str] = {}
        self._command = command
        self._room, self._pictures = _ROOM, _PICTURES

    def of(self, cause: Cause) -> list[str]:
        """Return the sections of the suites of a cause, the first of them without a fold."""
        found = []
        for k, one in enumerate(cause.suites):
            section = self._section(one, cause, is_first=k == 0)
            if len(section) > self._room:
                break
            self._room -= len(section)
            self.ids[one[0].suite] = f"suite-{len(self.ids)}"
            found.append(section)
        return found

    def _section(self, one: Found, cause: Cause, *, is_first: bool) -> str:
        result, diagnosis = one
        drawn = _drawn(result)
        chosen = drawn[: min(_OF_FIRST if is_first else _OF_OTHER, self._pictures)]
        kinds = kinds_of_suite(result)
        section = rendered(
            "suite.html",
            result=result,
            diagnosis=diagnosis,
            kind=cause.kind,
            site=self.site,
            number=len(self.ids),
            is_first=is_first,
            is_alone=len(cause.suites) == 1,
            counts=counts_of(result),
            pictures=[picture_of(difference) for difference in chosen],
            drawn=len(drawn),
            rows=kinds[:_ROWS],
            left_kinds=len(kinds[_ROWS:]),
            problems=[d for d in result.differences if d.problem],
            again=self._command and f"{self._command} --suite {shlex.quote(result.suite)}",
        )
        if len(section) <= self._room:
            self._pictures -= len(chosen)
        return section


def counts_of(result: SuiteResult) -> str:
    """Return how many entries differ, and how many fields of cases could not be compared."""
    differing, unlike = result.differing, result.not_comparable
    parts = [f"{differing:,}"] if differing or not (unlike or result.changes) else []
    if unlike:
        parts.append(f"{counted(unlike, 'field of a case')} not comparable")
    if result.changes:
        parts.append(f"another answer to {counted(len(result.changed_cases), 'case')}")
    return "; ".join(parts)


def kinds_of_suite(result: SuiteResult) -> list[KindOfSuite]:
    """Return each way in which the first mismatching field differs, then one of each other field.

    The entry is of the case in which the most entries differ in this way.
    """
    found: dict[tuple[str, str], list[KindOfSuite]] = defaultdict(list)
    for difference in result.differences:
        for kind in difference.kinds:
            one = KindOfSuite(kind.words, kind.count, difference, kind.entry)
            found[difference.suite_field, kind.words].append(one)
    each = [
        max(ones, key=_entries)._replace(entries=sum(map(_entries, ones)))
        for ones in found.values()
    ]
    rows = sorted(each, key=lambda row: -row.entries)
    first = [row for row in rows if not _is_later(result, row.difference)]
    later = [row for row in rows if _is_later(result, row.difference)]
    one_of_each = {row.difference.suite_field: row for row in reversed(later)}
    return [*first, *(row for row in later if row is one_of_each[row.difference.suite_field])]


def _entries(kind: KindOfSuite) -> int:
    return kind.entries


def _is_later(result: SuiteResult, difference: Difference) -> bool:
    """Return whether a difference is not of the first mismatching field."""
    first = result.first_mismatching_field
    return first is not None and difference.suite_field != first.name


def _drawn(result: SuiteResult) -> list[Difference]:
    """Return the fields for pictures: the first that mismatches, then the largest tensor."""
    found = [d for d in result.differences if d.picture and d.of > 1]
    return sorted(found, key=lambda d: (_is_later(result, d), -d.of))
