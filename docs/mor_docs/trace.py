"""The trace of every rule: to the code that implements it, its CUDA, its tests and its suites.

It is read from the sources: a rule is a block in `spec/`, and whoever implements or tests it names
its id (`mor_docs.naming`).
"""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mor_docs.naming import ids_in, lines_of_tests, named_in
from mor_ref.golden.suites import SUITES

ROOT = Path(__file__).resolve().parents[2]

RULE = re.compile(
    r"^(?P<fence>`{3,})\{rule\} (?P<title>.+)\n(?P<options>(?::.+\n)+)\n"
    r"(?P<text>[\s\S]+?)\n(?P=fence)$",
    re.MULTILINE,
)
OPTION = re.compile(r"^:(\w+): *(.*)$", re.MULTILINE)

# The origin of each column of the trace, and sources there that only name rules.
_OF_CUDA = r"cuda/|schemes/\w+/cuda"
_NAMING = r"deviations/|mistakes/|golden/suites/|schemes/\w+/(deviations|suites)"
SOURCES = {
    "code": (
        "mor_ref",
        f"(?!{_OF_CUDA}|{_NAMING})",
    ),
    "cuda": ("mor_ref", _OF_CUDA),
    "tests": ("tests", ""),
    "examples": ("examples", ""),
}
# The option of a rule that says why it has nothing in a column.
REASONS = {"cuda": "host", "tests": "untestable", "suites": "suiteless"}
# What is said of a rule that has neither.
GAPS = {
    "code": "no code: none in mor_ref names it",
    "cuda": "no CUDA: none in mor_ref/cuda names it; or say why, as :host:",
    "tests": "no test of its own: none in tests names it outside of a range; or say why, as "
    ":untestable:",
    "suites": "no suite: none has it among its rules; or say why, as :suiteless:",
}
PROGRAMS = (".py", ".cu", ".cuh", ".sv", ".c")
# Where every id must be that of a rule: in all that people read.
READ = ("*.md", *(f"{folder}/**/*" for folder in ("benchmarks", "docs", "examples", "spec")))
READ += ("mor_ref/**/*", "tests/**/*")
TEXTS = (*PROGRAMS, ".md", ".js", ".h", ".cpp", ".html")
# The chapters of the projects that tests make up: one with rules of their own, and one without.
MADE_UP = ("TIN", "NIT")


@dataclass(frozen=True)
class Rule:
    """A rule of the specification, and its place."""

    id: str
    title: str
    origin: str
    chapter: str  # the name of the file without its ending
    text: str
    reasons: dict[str, str]  # of each column in which it has nothing: why


@dataclass(frozen=True, order=True)
class Place:
    """A line of a source that a rule is named for; `in_range` if in a range of rules."""

    path: str
    line: int
    in_range: bool = False


@dataclass(frozen=True)
class Trace:
    """The places of a repository that name each of its rules, in the columns of `SOURCES`."""

    rules: dict[str, Rule]
    places: dict[str, dict[str, list[Place]]]  # of each column and rule
    suites: dict[str, list[str]]  # of each id, known or not
    unknown: list[tuple[str, Place]]  # ids of no rule, anywhere in a line

    def of(self, column: str, rule: str) -> list[Place]:
        """Return the lines that name a rule, those of a file together.

        A test of a range of rules counts for one of them only where that has no test of its own.
        """
        places = self.places[column].get(rule, [])
        if column == "tests" and not all(place.in_range for place in places):
            places = [place for place in places if not place.in_range]
        lines = {(place.path, place.line): place for place in places}
        return sorted(lines.values(), key=lambda place: (_after_the_models(place.path), place))

    def problems(self) -> Iterator[str]:
        """Yield a sentence for each rule that lacks a link, and for each unknown id."""
        for unknown, place in self.unknown:
            yield f"{place.path}:{place.line} names {unknown}, which is not a rule"
        for unknown in sorted(self.suites.keys() - self.rules.keys()):
            yield f"the suite {self.suites[unknown][0]} names {unknown}, which is not a rule"
        for rule in self.rules.values():
            yield from self._gaps(rule)

    def _gaps(self, rule: Rule) -> Iterator[str]:
        """Yield a sentence for each column with neither links nor a reason, or with both."""
        for column, gap in GAPS.items():
            has_links, has_reason = self._has_own(column, rule.id), column in rule.reasons
            if not has_links and not has_reason:
                yield f"{rule.id} has {gap}"
            if has_links and has_reason:
                option = f":{REASONS[column]}:"
                yield f"{rule.id} has links to {column}, and {option} says why it has none"

    def _has_own(self, column: str, rule: str) -> bool:
        if column == "suites":
            return bool(self.suites.get(rule))
        places = self.places[column].get(rule, [])
        return any(column != "tests" or not place.in_range for place in places)


def _after_the_models(path: str) -> int:
    """Return a file's place in a row: the exact model, then the engine, then all others."""
    models = (r"mor_ref/(schemes/\w+/)?exact", r"mor_ref/(schemes/\w+/)?engine")
    return next((i for i, model in enumerate(models) if re.match(model, path)), len(models))


def rules_of(spec: Path) -> list[Rule]:
    """Return all rules in the files of a directory, in the order of file names and of the text."""
    return [rule for path in sorted(spec.glob("*.md")) for rule in _rules_in(path)]


def _rules_in(path: Path) -> Iterator[Rule]:
    for found in RULE.finditer(path.read_text()):
        options = dict(OPTION.findall(found["options"]))
        yield Rule(
            options["id"],
            found["title"],
            options["origin"],
            path.stem,
            found["text"],
            {column: options[name] for column, name in REASONS.items() if name in options},
        )


def trace(root: Path, suites: dict[str, tuple[str, ...]] | None = None) -> Trace:
    """Read the trace of a repository; `suites` are the rules of each, mor_ref's own if None."""
    rules = {rule.id: rule for rule in rules_of(root / "spec")}
    places = {
        column: _places_in(root, column, folder, files)
        for column, (folder, files) in SOURCES.items()
    }
    if suites is None:
        suites = {suite.name: suite.rules for suite in SUITES.values()}
    named: dict[str, list[str]] = {}
    for suite, its_rules in suites.items():
        for rule in its_rules:
            named.setdefault(rule, []).append(suite)
    return Trace(rules, places, named, list(_unknown(root, set(rules))))


@functools.cache
def own_trace() -> Trace:
    """Return the trace of this repository, which is read once."""
    return trace(ROOT)


def _unknown(root: Path, rules: set[str]) -> Iterator[tuple[str, Place]]:
    is_made_up = any(rule.startswith(MADE_UP) for rule in rules)
    for path in sorted(path for pattern in READ for path in root.glob(pattern)):
        if path.suffix in TEXTS:
            text = path.read_text()
            if all(rule in rules for rule, _ in ids_in(text)):
                continue
            for number, line in enumerate(text.splitlines(), 1):
                for rule, _ in ids_in(line):
                    if rule not in rules and (is_made_up or not rule.startswith(MADE_UP)):
                        yield rule, Place(path.relative_to(root).as_posix(), number)


def _programs(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.suffix in PROGRAMS)


def _places_in(root: Path, column: str, folder: str, files: str) -> dict[str, list[Place]]:
    found: dict[str, list[Place]] = {}
    for path in _programs(root / folder):
        if re.match(files, path.relative_to(root / folder).as_posix()):
            name = path.relative_to(root).as_posix()
            named = list(named_in(path))
            of_tests = lines_of_tests(path) if named and column == "tests" else None
            for line, rule, in_range in named:
                if of_tests is None or line in of_tests:
                    found.setdefault(rule, []).append(Place(name, line, in_range))
    return found
