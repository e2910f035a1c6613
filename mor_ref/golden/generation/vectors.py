"""Make suites, each in one process, and write each to its file as soon as it is done."""

import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.golden import bundled_files
from mor_ref.golden.generation.directory import RECORD, MadeBy, lock_directory
from mor_ref.golden.generation.negative import negative_file_of
from mor_ref.golden.generation.pages import page_files_of, pages
from mor_ref.golden.model.suite import Case, Size, Suite
from mor_ref.golden.store.manifest import MANIFEST, GoldenError, check_entry, read_manifest
from mor_ref.golden.store.suite_files import (
    file_of,
    manifest_entry,
    read_suite,
    suite_bytes,
    write_manifest,
)
from mor_ref.recipes import Mor
from mor_ref.whole_files import read_inside, write_inside
from mor_ref.workers.pools import Workers, processes
from mor_ref.workers.progress import OnStep, step_done

OnSuite = Callable[[str, Mapping[str, Any]], None]
# The name of a suite, or a block format or a policy, in a recipe, that a suite is made for.
Asked = str | BlockFormat | Mor
Made = tuple[dict[str, bytes], dict[str, Any]]

_SMALL = 20_000  # elements of a suite that one processor makes in a few seconds


def name_of(asked: Asked) -> str:
    """Return the name of a suite."""
    from mor_ref.golden.suites.own import name_of_own

    return asked if isinstance(asked, str) else name_of_own(asked)


def made(asked: Asked, size: Size, *, searches: bool = False) -> Made:
    """Return the files of a suite by their names, and its entry in the manifest.

    Its witnesses are those of the bundled suite that hold in it, or are searched. A block format
    and a policy also have a page, as HTML and as text.
    """
    from mor_ref.golden.generation.expected import Memory, with_expected
    from mor_ref.golden.generation.negative import negative
    from mor_ref.golden.generation.witnesses import (
        bundled_witnesses,
        holding_witnesses,
        searched_witnesses,
    )
    from mor_ref.golden.inputs.enlarged import questions

    suite, name = _suite(asked), name_of(asked)
    check_entry(name, {**manifest_entry(suite, [], b""), "kills": {}})  # before any work
    cases, memory = [], Memory()
    for question in questions(suite, size):
        cases.append(with_expected(suite, question, memory))
        step_done(name)
    content = suite_bytes(cases)
    witnesses = searched_witnesses if searches else holding_witnesses
    kills = witnesses(suite, cases, bundled_witnesses(name))
    entry = {**manifest_entry(suite, cases, content), "kills": kills}
    files = {file_of(name): content}
    wrong = negative(suite, cases)
    if wrong is not None:
        files[negative_file_of(name)], entry["negative"] = wrong
    check_entry(name, entry)
    if not isinstance(asked, str):
        files |= _pages(asked, suite, cases)
    return files, entry


def _suite(asked: Asked) -> Suite:
    """Return the suite of a name, of a block format or of a policy."""
    from mor_ref.golden.suites import SUITES
    from mor_ref.golden.suites.own import suite_of_own

    if isinstance(asked, str):
        return SUITES[asked]
    if name_of(asked) in SUITES:
        raise GoldenError(
            f"{_kind_of(asked)} {name_of(asked)!r} has the name of a suite of mor-ref golden list; "
            "give it another name"
        )
    return suite_of_own(asked)


def _kind_of(asked: BlockFormat | Mor) -> str:
    return "policy" if isinstance(asked, Mor) else "block format"


def _pages(asked: BlockFormat | Mor, suite: Suite, cases: Sequence[Case]) -> dict[str, bytes]:
    """Return the pages of a block format or a policy by the names of their files."""
    from mor_ref.golden.generation.format_pages import page_of_block_format
    from mor_ref.golden.generation.policy_pages import page_of_policy

    if isinstance(asked, Mor):
        return pages(suite.name, page_of_policy(asked, suite, cases))
    return pages(suite.name, page_of_block_format(asked, suite, cases))


def make(
    asked: Iterable[Asked],
    directory: Path,
    size: Size,
    on_suite: OnSuite = lambda _name, _entry: None,
    workers: Workers | None = None,
    on_step: OnStep | None = None,
    *,
    searches: bool = False,
) -> None:
    """Make suites in a directory, and skip those that this program has already made there.

    The manifest is written after each suite, so that a later run can finish an interrupted one.
    `on_suite` is called with the name and the entry of each suite as it is done. The default
    workers are processes of this machine. They call `on_step`, in another thread, with the name of
    a suite: after each of its cases is made, and after the witness of each deviation. Witnesses are
    those of the bundled suites that hold, or are searched, which takes ten times as long.
    """
    wanted = {name_of(one): one for one in asked}
    for one in wanted.values():
        _suite(one)  # some block formats and policies are refused, before any work
    made_with = {"size": size.factor, "seed": size.seed}
    patterns = (MANIFEST, file_of("*"), negative_file_of("*"), *page_files_of("*"))
    with lock_directory(directory, patterns) as record:
        entries = _entries_there(directory, made_with, record, wanted)
        for name in wanted:
            if name in entries:
                on_suite(name, entries[name])
        waited_for = _in_order_of_work(name for name in wanted if name not in entries)
        shards = [(wanted[name], size) for name in waited_for]
        run = functools.partial(made, searches=searches)
        for number, (files, entry) in (workers or processes(on_step)).as_done(run, shards):
            name = waited_for[number]
            for path, content in files.items():
                write_inside(directory, path, content)
            entries[name] = entry
            write_manifest(directory, dict(sorted(entries.items())), made_with)
            on_suite(name, entry)
        if not waited_for:  # the digests of all inputs may have come or gone
            write_manifest(directory, dict(sorted(entries.items())), made_with)


def has_deviations(name: str) -> bool:
    """Return whether there are deviations that a suite has to expose; one of a user has none."""
    from mor_ref.deviations import DEVIATIONS

    return any(name in deviation.suites for deviation in DEVIATIONS.values())


def _in_order_of_work(names: Iterable[str]) -> list[str]:
    """Sort small suites first, by size, for an early result; then the others, largest first.

    A large suite that began last would keep one worker busy while the others wait.
    """
    bundled = read_manifest(bundled_files())["suites"]
    elements = {name: bundled.get(name, {"elements": 0})["elements"] for name in names}
    small = sorted((name for name in elements if elements[name] < _SMALL), key=elements.__getitem__)
    large = sorted(elements.keys() - small, key=lambda name: (-elements[name], name))
    return small + large


def _entries_there(
    directory: Path, made_with: dict[str, int], record: MadeBy, wanted: Mapping[str, Asked]
) -> dict[str, Any]:
    """Return the entries of the suites that this program has made there and that are whole."""
    manifest = read_manifest(directory) if (directory / MANIFEST).exists() else None
    entries: dict[str, Any] = {} if manifest is None else manifest["suites"]
    if manifest is not None and manifest["made_with"] != made_with:
        raise GoldenError(
            f"{directory} holds suites made with {manifest['made_with']}, but {made_with} was "
            "asked for; give another directory"
        )
    if entries and not record.is_of_this_program:
        made_by = (
            "another version of mor-ref or of a module of --rows"
            if record.is_signed
            else f"a version of mor-ref that {RECORD} does not name"
        )
        raise GoldenError(
            f"{directory} holds suites made by {made_by}; remove them, or give another directory"
        )
    record.sign()
    for name, entry in entries.items():
        _refuse_other(directory, name, entry, wanted.get(name))
    return {name: entry for name, entry in entries.items() if _is_whole(directory, name, entry)}


def _refuse_other(
    directory: Path, name: str, entry: Mapping[str, Any], asked: Asked | None
) -> None:
    """Refuse the suite of another block format or policy of the same name as the one asked for."""
    from mor_ref.golden.suites.own import is_made_for

    if isinstance(asked, BlockFormat | Mor) and not is_made_for(asked, entry):
        raise GoldenError(
            f"{directory} holds a suite {name!r} of another {_kind_of(asked)}; remove it, or give "
            "another directory"
        )


def _is_whole(directory: Path, name: str, entry: dict[str, Any]) -> bool:
    from mor_ref.golden.suites.own import own_of_suite

    files = () if own_of_suite(name, entry) is None else page_files_of(name)
    if not all((directory / file).is_file() for file in files):
        return False
    try:
        read_suite(directory, name, entry)
        wrong = read_inside(directory, negative_file_of(name)) if "negative" in entry else None
    except (GoldenError, OSError):
        return False
    return wrong is None or hashlib.sha256(wrong).hexdigest() == entry["negative"]["sha256"]
