"""Making suites: in processes, one for each suite, and written as they are done."""

from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from mor_ref.golden.container import (
    MANIFEST,
    GoldenError,
    file_of,
    manifest_entry,
    read_manifest,
    read_suite,
    suite_bytes,
    write_manifest,
)
from mor_ref.golden.files import write_inside
from mor_ref.golden.suite import Size

OnSuite = Callable[[str], None]


def made(name: str, size: Size) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The files of a suite by their names, and its entry in the manifest."""
    from mor_ref.golden.kills import completed, kills
    from mor_ref.golden.negative import negative, negative_file_of
    from mor_ref.golden.suites import SUITES

    suite = SUITES[name]
    cases = [completed(suite, question) for question in suite.questions(size)]
    content = suite_bytes(cases)
    entry = {**manifest_entry(suite, cases, content), "kills": kills(suite, cases)}
    files = {file_of(name): content}
    wrong = negative(suite, cases)
    if wrong is not None:
        files[negative_file_of(name)], entry["negative"] = wrong
    return files, entry


def make(
    names: Iterable[str],
    folder: Path,
    size: Size,
    on_suite: OnSuite = lambda _: None,
) -> None:
    """Make suites in a folder; what is there already, whole and made alike, is left as it is.

    The manifest is written after each suite, and lists what is there: an interrupted run is taken
    up where it ended.
    """
    wanted = list(names)
    made_with = {"size": size.factor, "seed": size.seed}
    entries = _entries_there(folder, made_with)
    for name in wanted:
        if name in entries:
            on_suite(name)
    with ProcessPoolExecutor() as pool:
        waiting = {pool.submit(made, name, size): name for name in wanted if name not in entries}
        for done in as_completed(waiting):
            name = waiting[done]
            files, entries[name] = done.result()
            for path, content in files.items():
                write_inside(folder, path, content)
            write_manifest(folder, dict(sorted(entries.items())), made_with)
            on_suite(name)


def _entries_there(folder: Path, made_with: dict[str, int]) -> dict[str, Any]:
    """The entries of the suites that are there, whole, and made with the same size and seed."""
    if not (folder / MANIFEST).exists():
        return {}
    manifest = read_manifest(folder)
    there = manifest["made_with"]
    if there != made_with:
        raise GoldenError(
            f"{folder} holds suites made with {there}, and these are to be made with {made_with}; "
            "give another folder"
        )
    entries: dict[str, Any] = manifest["suites"]
    return {name: entry for name, entry in entries.items() if _is_whole(folder, name, entry)}


def _is_whole(folder: Path, name: str, entry: dict[str, Any]) -> bool:
    try:
        read_suite(folder, name, entry)
    except GoldenError:
        return False
    return True
