"""The suites that a candidate is verified on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mor_ref.golden.model.suite import chosen
from mor_ref.golden.store.manifest import read_manifest

Entry = dict[str, Any]  # of a manifest, about one suite


@dataclass(frozen=True)
class Suites:
    """Suites of a directory by their names, with the manifest's entry of each.

    `known` are the names of all suites of the directory.
    """

    directory: Path
    entries: Mapping[str, Entry]
    known: tuple[str, ...]


def suites_in(directory: Path, names: Sequence[str] = ()) -> Suites:
    """Return the suites of these names in a directory, or all of them if no name is given."""
    entries = read_manifest(directory)["suites"]
    wanted = {name: entries[name] for name in chosen(entries, list(names))}
    return Suites(directory, wanted, tuple(entries))
