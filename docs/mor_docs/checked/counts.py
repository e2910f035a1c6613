"""On how many entries of the vectors the formulas of each rule were checked.

`PYTHONPATH=docs python -m mor_docs.checked.counts` checks all, and writes how many there are.
"""

import functools
import json
from collections import Counter
from pathlib import Path

from mor_docs.checked import CHECKS
from mor_docs.checked.check import Check, is_same

FILE = Path(__file__).with_name("counts.json")


def differing(check: Check, every: int = 1) -> tuple[int, list[str]]:
    """Return how many entries were checked, and what is wrong in those that differ."""
    checked, wrong = 0, []
    for entry in check.all_entries(every):
        checked += 1
        for name, value in check.values(entry).items():
            if not is_same(value, entry[name]):
                wrong.append(f"{name} is {value} by {check.rules} for {dict(entry.fields)}")
    return checked, wrong


def counts() -> dict[str, int]:
    """Check all formulas on all entries, and return how many each rule had."""
    found: Counter[str] = Counter()
    for check in CHECKS:
        checked, wrong = differing(check)
        if wrong:
            raise SystemExit(wrong[0])
        found.update(dict.fromkeys(check.rules.split(), checked))
    return dict(sorted(found.items()))


@functools.cache
def known_counts() -> dict[str, int]:
    """Return the counts that were written."""
    written: dict[str, int] = json.loads(FILE.read_text("utf-8"))
    return written


if __name__ == "__main__":
    FILE.write_text(json.dumps(counts(), indent=1) + "\n", encoding="utf-8")
