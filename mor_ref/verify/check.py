"""Holding a folder of suites to its manifest, and its values to the engine."""

from collections.abc import Callable
from pathlib import Path

from mor_ref.arguments import known_name
from mor_ref.golden.container import GoldenError, read_manifest, read_suite
from mor_ref.verify.compare import Difference, differences
from mor_ref.verify.engine import OPERATIONS


def check_suite(folder: Path, name: str) -> list[Difference]:
    """What the engine computes otherwise; a file that is not as the manifest says is refused."""
    entry = read_manifest(folder)["suites"][name]
    if entry["operation"] not in OPERATIONS:
        raise GoldenError(
            f"suite {name!r} is of operation {entry['operation']!r}, which is unknown"
        )
    cases = read_suite(folder, name, entry)
    inputs = tuple(field["name"] for field in entry["fields"] if field["role"] == "input")
    return list(differences(cases, inputs, OPERATIONS[entry["operation"]]))


def check(
    folder: Path, names: list[str], on_suite: Callable[[str, list[Difference]], None]
) -> dict[str, list[Difference]]:
    """The differences of each suite of a folder, all of them if none is named."""
    there = read_manifest(folder)["suites"]
    found = {}
    for name in [known_name("suite", name, there) for name in names] or list(there):
        found[name] = check_suite(folder, name)
        on_suite(name, found[name])
    return found


def compare_manifests(folder: Path, other: Path) -> list[str]:
    """What two folders of suites differ in, suite by suite; nothing if they hold the same bytes."""
    ours, theirs = read_manifest(folder), read_manifest(other)
    lines = []
    if ours["made_with"] != theirs["made_with"]:
        lines.append(f"made with {ours['made_with']} and with {theirs['made_with']}")
    for name in sorted({*ours["suites"], *theirs["suites"]}):
        here, there = ours["suites"].get(name), theirs["suites"].get(name)
        if here is None or there is None:
            lines.append(f"{name}: only in {folder if there is None else other}")
        elif here != there:
            keys = [key for key in here if here[key] != there.get(key)]
            lines.append(f"{name}: another {', '.join(keys)}")
    return lines
