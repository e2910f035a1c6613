"""The suites that a candidate is verified on."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mor_ref.analysis.stored_tensors import SkippedTensor
from mor_ref.golden.model.suite import chosen
from mor_ref.golden.store.manifest import read_manifest

Entry = dict[str, Any]  # of a manifest, about one suite


@dataclass(frozen=True)
class Suites:
    """Suites of a directory by their names, with the manifest's entry of each.

    `known` are the names of all suites of the directory. If there are numbers in `most_diagnosed`,
    mismatches in more than so many numbers of a suite are not diagnosed. `named` is how a report
    names the suites, if they are not in a directory, and `parts` how many parts they come in.
    `skipped` are the tensors of a user that no recipe takes, and `rounded` the names of those of
    float64. The expected bits of so many tensors are `expected_from_engine`, and not from the exact
    model. Suites `of_rungs` count if a candidate has answers to them, and `optional` ones if files
    of results have them.
    """

    directory: Path
    entries: Mapping[str, Entry]
    known: tuple[str, ...]
    most_diagnosed: int | None = None
    named: str = ""
    parts: int = 0
    skipped: tuple[SkippedTensor, ...] = ()
    of_rungs: Mapping[str, Entry] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    rounded: tuple[str, ...] = ()
    expected_from_engine: int = 0

    def of_files(self, there: Collection[str]) -> "Suites":
        """Return the suites without optional ones that are not among those of files."""
        away = self.optional.difference(there)
        left = {name: entry for name, entry in self.entries.items() if name not in away}
        parts = self.parts and self.parts - len(self.entries) + len(left)
        known = tuple(name for name in self.known if name not in away)
        return replace(self, entries=left, parts=parts, known=known)

    @property
    def steps(self) -> int:
        """How many suites, or parts of them, are asked."""
        return self.parts or len(self.entries)

    @property
    def source(self) -> str:
        """Where the suites are from, as reports name it."""
        return self.named or str(self.directory)


def suites_in(directory: Path, names: Sequence[str] = ()) -> Suites:
    """Return the suites of these names in a directory, or all of them if no name is given."""
    entries = read_manifest(directory)["suites"]
    wanted = {name: entries[name] for name in chosen(entries, list(names))}
    return Suites(directory, wanted, tuple(entries))
