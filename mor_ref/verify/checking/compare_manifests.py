"""Comparing the manifests of two directories of suites."""

from pathlib import Path

from mor_ref.golden.store.manifest import read_manifest


def compare_manifests(directory: Path, other: Path) -> list[str]:
    """Return the differences between two directories of suites, suite by suite."""
    ours, theirs = read_manifest(directory), read_manifest(other)
    lines = []
    if ours["made_with"] != theirs["made_with"]:
        lines.append(f"made with {ours['made_with']} and with {theirs['made_with']}")
    for name in sorted({*ours["suites"], *theirs["suites"]}):
        here, there = ours["suites"].get(name), theirs["suites"].get(name)
        if here is None or there is None:
            lines.append(f"{name}: only in {directory if there is None else other}")
        elif here != there:
            keys = [key for key in {**here, **there} if here.get(key) != there.get(key)]
            lines.append(f"{name}: another {', '.join(keys)}")
    return lines
