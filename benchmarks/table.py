"""The table: from pytest-benchmark's results to lines, on the terminal and in Markdown."""

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.all_rows import ROWS
from benchmarks.rows import AS_MANY_BYTES, COPY, OURS, Measured, Row, Verdict

SHOWN = 3
HEADINGS = (
    "operation",
    "numbers",
    "ns each",
    "bytes",
    "of a copy",
    "next to it",
    "compared",
    "wanted",
)


class Line(NamedTuple):
    """A row with its measurements."""

    row: Row
    found: dict[str, Measured]

    @property
    def ours(self) -> Measured:
        """Ours."""
        return self.found[OURS]

    @property
    def bytes_each(self) -> float | None:
        """The bytes that ours reads and writes for a number, if it reads any."""
        return self.ours.moved / self.ours.elements if self.ours.moved else None

    @property
    def share_of_copy(self) -> float | None:
        """The rate of the bytes of ours over that of those of a copy of as many."""
        copy = self.found.get(AS_MANY_BYTES)
        return self.ours.rate / copy.rate if copy else None

    @property
    def peers(self) -> list[Measured]:
        """Those whose result is compared with ours: they carry out the same operation."""
        return [m for m in self._others if m.differing is not None and not self._has_own(m)]

    @property
    def variants(self) -> list[Measured]:
        """Ours with other arguments, slowest first."""
        others = [m for m in self._others if m not in self.peers]
        return sorted(others, key=lambda m: -m.nanoseconds)

    @property
    def verdicts(self) -> list[Verdict]:
        """The limits."""
        return self.row.judged(self.found)

    @property
    def _others(self) -> list[Measured]:
        return [m for m in self.found.values() if m.contender not in (OURS, COPY, AS_MANY_BYTES)]

    def _has_own(self, measured: Measured) -> bool:
        return self.row.contenders[measured.contender].expected is not None

    def ratio(self, other: Measured) -> float:
        """Return the time of another contender for an element, over ours."""
        return other.nanoseconds / self.ours.nanoseconds


class Results(NamedTuple):
    """A run."""

    machine: dict[str, Any]
    lines: list[Line]

    def line(self, operation: str) -> Line:
        """Return the line of an operation."""
        return next(line for line in self.lines if line.row.operation == operation)

    @property
    def verdicts(self) -> list[tuple[Line, Verdict]]:
        """All of them, each with its line."""
        return [(line, verdict) for line in self.lines for verdict in line.verdicts]


def read(path: Path) -> Results:
    """Return the results in a file; of a contender's turns the best time counts."""
    content = json.loads(path.read_text(encoding="utf-8"))
    found: dict[str, dict[str, Measured]] = defaultdict(dict)
    for entry in content["benchmarks"]:
        facts, seconds = entry["extra_info"], entry["stats"]["min"]
        of_row = found[entry["group"]]
        before = of_row.get(facts["contender"])
        best = seconds if before is None else min(seconds, before.seconds)
        of_row[facts["contender"]] = Measured(**facts, seconds=best)
    lines = [Line(row, found[row.operation]) for row in ROWS if OURS in found[row.operation]]
    return Results(content["machine_info"], lines)


def power_of_two(count: int) -> str:
    """Return a count in words: 2^24, or the digits."""
    return f"2^{count.bit_length() - 1}" if count & (count - 1) == 0 else f"{count:,}"


def in_words(line: Line, measured: Measured) -> str:
    """Return one contender next to ours."""
    text = f"{measured.contender} {line.ratio(measured):.3g} x"
    if measured.differing:
        text += f" ({measured.differing:,} differ: it {measured.differs})"
    return text


def cells(line: Line) -> Iterator[tuple[str, ...]]:
    """Yield the content of each column, as one or more lines."""
    variants = [in_words(line, m) for m in line.variants[:SHOWN]]
    yield (line.row.operation,)
    yield (power_of_two(line.ours.elements),)
    yield (f"{line.ours.nanoseconds:.3f}",)
    yield ("" if line.bytes_each is None else f"{line.bytes_each:.3g}",)
    yield ("" if line.share_of_copy is None else f"{line.share_of_copy:.2f}",)
    yield (*(in_words(line, m) for m in line.peers), *variants)
    yield (line.row.compared if line.peers else "",)
    yield tuple(f"{'' if v.is_met else 'NOT MET: '}{v.text}" for v in line.verdicts)


def as_terminal(results: Results) -> Table:
    """Return the table for a terminal."""
    table = Table(*HEADINGS, box=None)
    for line in results.lines:
        table.add_row(*("\n".join(lines) for lines in cells(line)))
    return table


def as_markdown(results: Results) -> str:
    """Return the table in Markdown."""
    rows = [HEADINGS, ("---", "--:", "--:", "--:", "--:", "---", "---", "---")]
    rows += [tuple("<br>".join(lines) for lines in cells(line)) for line in results.lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> int:
    """Print the table of a file of results; the status is 1 if a limit is not kept."""
    results = read(Path(sys.argv[1]))
    Console().print(as_terminal(results))
    return int(not all(verdict.is_met for _, verdict in results.verdicts))


if __name__ == "__main__":
    sys.exit(main())
