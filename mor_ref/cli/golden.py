"""`mor-ref golden`: list, make, check and export suites of golden vectors."""

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rich.table import Table

from mor_ref.addresses import cause_path, on_site, rule_path
from mor_ref.argument_checks import (
    UnknownNameError,
    directory_named,
    known_name,
    whole_number,
)
from mor_ref.cli.options import recipe_in_file
from mor_ref.cli.show import Bars, bar, console_of_some_width
from mor_ref.cli.statuses import Status, comparison_status
from mor_ref.counts_in_words import counted
from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.definitions.tables import FrozenTable
from mor_ref.golden import bundled_files
from mor_ref.golden.export.export import export
from mor_ref.golden.generation.mistakes_shown import (
    MODELLED,
    InSuite,
    kinds_of,
    mistakes_in,
    mistakes_shown,
)
from mor_ref.golden.generation.vectors import Asked, has_deviations, make, name_of
from mor_ref.golden.model.suite import Size, Suite, chosen
from mor_ref.golden.store.manifest import read_manifest
from mor_ref.golden.store.suite_files import described
from mor_ref.golden.suites import SUITES
from mor_ref.golden.suites.own import Own, name_of_own, own_of_suite
from mor_ref.mistakes import Shown, mistakes_of
from mor_ref.mistakes.block_formats import sites_and_operators
from mor_ref.mistakes.catalogue import CAUSES
from mor_ref.policies import PREFIX
from mor_ref.recipes import Mor, as_block_format, as_tensor_recipe, is_recipe
from mor_ref.verify.checking.check import check, lines
from mor_ref.verify.checking.compare_manifests import compare_manifests
from mor_ref.verify.reporting.rules import known_among
from mor_ref.verify.reporting.text import addresses
from mor_ref.workers.added_rows import modules_of_rows
from mor_ref.workers.pools import workers_named

if TYPE_CHECKING:
    from mor_ref.proofs.survivors import Verdict


class _Named(Protocol):
    """A mistake, of a formula or of a step."""

    @property
    def name(self) -> str:
        """Its id."""

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that it breaks."""


class _Sentence(_Named, Protocol):
    """A mistake that is said in a sentence."""

    @property
    def summary(self) -> str:
        """What a kernel with it does."""


def run_list(name: str | None, *, as_json: bool) -> None:
    """Print the suites, or the fields of one suite."""
    if name is not None:
        _show_suite(SUITES[known_name("suite", name, SUITES)], as_json=as_json)
        return
    if as_json:
        rows = [
            {
                "name": suite.name,
                "title": suite.title,
                "operation": suite.operation,
                "rules": list(suite.rules),
                "normative": suite.normative,
            }
            for suite in SUITES.values()
        ]
        print(json.dumps(rows, indent=1))
        return
    bundled = read_manifest(bundled_files())["suites"]
    table = Table("suite", "cases", "elements", "title", box=None, pad_edge=False)
    for suite in SUITES.values():
        entry = bundled.get(suite.name)
        counts = ("-", "-") if entry is None else (len(entry["cases"]), f"{entry['elements']:,}")
        table.add_row(suite.name, *map(str, counts), suite.title)
    console_of_some_width().print(table)


def run_list_cases(suite: str | None, *, as_json: bool) -> None:
    """Print the names of the cases of a suite."""
    if suite is None:
        raise ValueError("--cases needs a suite; give its name before --cases")
    bundled = read_manifest(bundled_files())["suites"]
    names = list(bundled[known_name("suite", suite, bundled)]["cases"])
    print(json.dumps(names, indent=1) if as_json else "\n".join(names))


def _show_suite(suite: Suite, *, as_json: bool) -> None:
    bundled = read_manifest(bundled_files())["suites"]
    entry = bundled.get(suite.name, {"cases": {}})
    if as_json:
        print(json.dumps({"name": suite.name, **entry}, indent=1))
        return
    print(f"{suite.name}: {suite.title}")
    print(f"operation {suite.operation}; rules {', '.join(suite.rules)}")
    for case, parameters in list(entry["cases"].items())[:1]:
        print(f"{len(entry['cases'])} cases, the first is {case}: {json.dumps(parameters)}")
    columns = ("field", "role", "format", "shape", "meaning", "views")
    table = Table(*columns, box=None, pad_edge=False)
    for field in described(suite)["fields"]:
        shape, views = " x ".join(field["shape"]), ", ".join(field["views"])
        table.add_row(field["name"], field["role"], field["format"], shape, field["meaning"], views)
    console_of_some_width().print(table)


def run_make(
    names: list[str],
    out: str,
    size: int,
    seed: int,
    same_as: str | None,
    executor: str,
    *,
    searches: bool,
) -> int:
    """Make suites in a directory, and return the exit status."""
    other = None if same_as is None else directory_named("same_as", same_as)
    with workers_named(executor) as workers:  # of the processes of MPI, only one continues
        target = directory_named("out", out)
        made_with = _size(size, seed)
        suites = _asked(names)
        with _Making(list(map(name_of, suites))) as making:
            done, step = making.done, making.step
            make(suites, target, made_with, done, workers, step, searches=searches)
    print(f"{_are(len(suites), 'suite')} in {out}")
    return comparison_status(differs=other is not None and _differs_from(target, other))


def _size(size: int, seed: int) -> Size:
    """Return the size and the seed of suites; refuse those that none has."""
    factor = whole_number("size", size, 1, 1 << 20)
    return Size(factor, whole_number("seed", seed, 0, 0xFFFF))


def run_mistakes(name: str, size: int, seed: int, seconds: float | None, *, as_json: bool) -> None:
    """Print which mistakes of a block format its suite shows, or a suite of a modelled chapter."""
    if name in MODELLED:
        if seconds is not None:
            raise ValueError(
                f"--prove is given with {name}, whose mistakes are no formulas; omit it, or give a "
                "block format"
            )
        _print_mistakes_in(name, as_json=as_json)
        return
    if not _is_text(name):
        raise ValueError(
            f"FORMAT is {name!r}; give the file of a block format, such as OWN.toml, or a recipe "
            f"such as mxfp8:rceil, or {', '.join(MODELLED)}"
        )
    block_format = _block_format(name)
    made_with = _size(size, seed)
    with bar("trying", "tried", len(mistakes_of(block_format))) as done:
        rows = mistakes_shown(block_format, made_with, done)
    left = [row.mistake for row in rows if row.case is None]
    verdicts = {} if seconds is None else _verdicts(block_format, left, seconds)
    if as_json:
        print(json.dumps([_shown_row(row, verdicts) for row in rows], indent=1))
        return
    print(f"{block_format.name}: {len(rows) - len(left)} of {counted(len(rows), 'mistake')} shown")
    if seconds is not None:
        _print_verdicts(left, verdicts)
    elif left:
        _print_group("no entry differs with these:", left)
    _print_addresses(left)


_GROUPS = {
    "shown": "other numbers show these:",
    "open": "these are open:",
    "proved": "these have the same bits for all numbers, which is proved:",
}


def _print_verdicts(left: Sequence[_Sentence], verdicts: "Mapping[str, Verdict]") -> None:
    for kind, title in _GROUPS.items():
        group = [mistake for mistake in left if verdicts[mistake.name].kind == kind]
        if group:
            _print_group(title, group, {one.name: verdicts[one.name].words for one in group})


def _print_group(
    title: str, mistakes: Sequence[_Sentence], words: Mapping[str, str] = FrozenTable({})
) -> None:
    print(title)
    for mistake in mistakes:
        print(f"  {mistake.name}: {mistake.summary}")
        if words.get(mistake.name):
            print(f"    {words[mistake.name]}")


def _verdicts(
    block_format: BlockFormat, left: Sequence[_Named], seconds: float
) -> "dict[str, Verdict]":
    """Return what a solver says of the mistakes that no entry shows, by their ids."""
    if not seconds > 0:
        raise ValueError(f"--prove is {seconds:g}; give the seconds of a question, such as 3")
    try:
        from mor_ref.proofs.survivors import verdict_on
    except ModuleNotFoundError as error:
        if error.name != "bitwuzla":
            raise
        raise ValueError(
            "--prove needs Bitwuzla, a solver, which is not installed; pip install 'mor-ref[prove]'"
        ) from None
    names = {mistake.name for mistake in left}
    mistakes = [one for one in sites_and_operators(block_format) if one.name in names]
    verdicts = {}
    with bar("proving", "proved", len(mistakes)) as done:
        for mistake in mistakes:
            verdicts[mistake.name] = verdict_on(block_format, mistake, seconds)
            done(mistake.name)
    return verdicts


def _print_mistakes_in(suite: str, *, as_json: bool) -> None:
    with bar("trying", "tried", sum(map(len, kinds_of(suite)))) as done:
        found = mistakes_in(suite, lambda: done(suite))
    if as_json:
        print(json.dumps([_row_of(name, one) for name, one in found.items()], indent=1))
        return
    left = [name for name, one in found.items() if not any(v.shown for v in one.suite)]
    print(f"{suite}: {len(found) - len(left)} of {counted(len(found), 'mistake')} shown")
    for name in left:
        holes = [verdict.kind for verdict in found[name].derived if verdict.shown]
        where = f"derived inputs show it: {', '.join(holes)}" if holes else "open"
        print(f"  {name}: {where}")
    _print_addresses([found[name].suite[0].mistake for name in left])


def _print_addresses(mistakes: Sequence[_Named]) -> None:
    rules = {rule for mistake in mistakes for rule in mistake.rules}
    for line in addresses((mistake.name for mistake in mistakes), sorted(rules)):
        print(line)


def _addresses(mistake: _Named) -> dict[str, str]:
    """Return where a mistake and its rules are described, as reports of verify have it."""
    causes = {mistake.name: cause_path(mistake.name)} if mistake.name in CAUSES else {}
    rules = {rule.id: rule_path(rule.id) for rule in known_among(mistake.rules)}
    return {name: on_site(path) for name, path in (causes | rules).items()}


def _row_of(name: str, found: InSuite) -> dict[str, Any]:
    """Return the kinds of calls in which a mistake shows, and those in which it is open."""
    mistake = found.suite[0].mistake
    named = {"mistake": name, "summary": mistake.summary, "rules": list(mistake.rules)}
    return named | {
        "addresses": _addresses(mistake),
        "shown": [one.kind for one in found.suite if one.shown],
        "derived": [one.kind for one in found.derived if one.shown],
        "open": [one.kind for one in found.derived if one.touched and not one.shown],
    }


def _shown_row(row: Shown, verdicts: "Mapping[str, Verdict]") -> dict[str, Any]:
    mistake = row.mistake
    named = {"mistake": mistake.name, "summary": mistake.summary, "rules": list(mistake.rules)}
    verdict = verdicts.get(mistake.name)
    proof = None if verdict is None else {"kind": verdict.kind, "words": verdict.words}
    shown = {"case": row.case, "field": row.field, "proof": proof}
    return {**named, "addresses": _addresses(mistake), **shown}


def _differs_from(directory: Path, other: Path) -> bool:
    """Print how a directory differs from another, and return whether it does."""
    differences = compare_manifests(directory, other)
    print(f"manifest {'differs from' if differences else 'equals'} the one of {other}")
    for line in differences:
        print(f"  {line}")
    return bool(differences)


def _asked(names: list[str]) -> list[Asked]:
    """Return the suites of these names, and the block formats and policies of files and recipes.

    A suite of the user's own is known once its module is.
    """
    of_texts = {name: _own(name) for name in names if _is_text(name)}
    others = [name for name in names if name not in of_texts]
    try:
        suites = chosen(SUITES, others) if others or not of_texts else []
    except UnknownNameError as error:
        hint = "; give the file of a block format or of a policy, such as OWN.toml"
        if not modules_of_rows():
            hint += ", or --rows MODULE before golden for a suite of your own"
        raise UnknownNameError(f"{error}{hint}") from None
    own = list(dict.fromkeys(of_texts.values()))
    known = [name_of_own(one) for one in own]
    twice = [name for name in known if known.count(name) > 1]
    if twice:
        raise ValueError(
            f"two block formats or policies have the name {twice[0]!r}; give them other names"
        )
    return [*suites, *own]


def _is_text(name: str) -> bool:
    """Return whether a name is not that of a suite, but a file of TOML or a recipe."""
    return name not in SUITES and (
        name.endswith(".toml") or name.startswith(PREFIX) or is_recipe(name)
    )


def _block_format(name: str) -> BlockFormat:
    return as_block_format(_text_of(name))


def _own(name: str) -> Own:
    """Return the block format or the policy of a file or a recipe."""
    text = _text_of(name)
    tensor_recipe = as_tensor_recipe(text)
    return tensor_recipe if isinstance(tensor_recipe, Mor) else as_block_format(text)


def _text_of(name: str) -> str:
    if name.endswith(".toml") and not Path(name).is_file():
        raise ValueError(f"SUITE is {name!r}, a file that is not there; give one that is")
    return recipe_in_file(name) or ""


def _exposed(name: str, entry: Mapping[str, Any]) -> str:
    """Say how many deviations a suite exposes, if there are some that it has to expose."""
    if has_deviations(name):
        return f"exposes {counted(len(entry['kills']), 'mistake')}"
    own = own_of_suite(name, entry)
    if not isinstance(own, BlockFormat):
        return "no mistake names it, so how many it exposes is not known"
    mistakes = counted(len(mistakes_of(own)), "mistake")
    return f"{mistakes} follow from its formulas: `mor-ref golden mistakes` counts those it shows"


class _Making(Bars):
    """A bar for cases made and witnesses checked, with a line for each suite that is done."""

    def __init__(self, suites: list[str]) -> None:
        super().__init__()
        bundled = read_manifest(bundled_files())["suites"]
        self._steps_left = {
            name: len(bundled[name]["cases"]) + len(bundled[name]["kills"])
            for name in suites
            if name in bundled
        }
        self._counting = threading.Lock()  # steps come from another thread
        self._task = self.add_task(
            "making cases, checking witnesses", total=sum(self._steps_left.values())
        )

    def step(self, name: str) -> None:
        """Count a step of a suite; those of a suite made again, or larger, are not in the total."""
        with self._counting:
            if self._steps_left.get(name, 0) > 0:
                self._steps_left[name] -= 1
                self.advance(self._task)

    def done(self, name: str, entry: Mapping[str, Any]) -> None:
        """Print what a suite has in it, its size, and how many deviations it exposes."""
        cases = counted(len(entry["cases"]), "case")
        size = f"{cases}, {counted(entry['elements'], 'element')}"
        line = f"{name}: {entry['title']}; {size}, {_exposed(name, entry)}"
        self.console.print(line, soft_wrap=True)
        with self._counting:  # a few of its steps may be on their way
            self.advance(self._task, self._steps_left.pop(name, 0))


def run_export(
    directory: str | None, kind: str, out: str, names: list[str], views: list[str]
) -> None:
    """Write suites in another form."""
    found = export(_source(directory), kind, directory_named("out", out), names, views)
    print(f"{_are(found.files, 'file')} in {out}")
    if found.left_out:
        count = counted(len(found.left_out), "suite")
        print(f"left out, as {kind} cannot hold tensors: {count}, {', '.join(found.left_out)}")


def _source(directory: str | None) -> Path:
    """Return the directory to read: the bundled suites, unless a directory is named."""
    if directory in SUITES and not Path(directory).exists():
        raise ValueError(
            f"DIR is {directory!r}, which is the name of a suite, but not of a directory here; "
            f"give --suite {directory}"
        )
    path = bundled_files() if directory is None else directory_named("DIR", directory)
    if path.is_file():
        raise ValueError(f"DIR is {directory!r}, which is a file; give a directory of suites")
    return path


def _are(count: int, noun: str) -> str:
    return f"{counted(count, noun)} {'is' if count == 1 else 'are'}"


def run_check(
    directory: str | None, names: list[str], same_as: str | None, *, as_json: bool
) -> int:
    """Print the findings in a directory of suites, and return the exit status."""
    path = _source(directory)
    other = None if same_as is None else directory_named("same_as", same_as)
    wanted = chosen(read_manifest(path)["suites"], names)
    with bar("checking suites", "checked", len(wanted)) as on_suite:
        found = check(path, names, on_suite)
    if as_json:
        others = compare_manifests(path, other) if other else []
        record = asdict(found) | {"verdict": found.verdict, "manifests": others}
        print(json.dumps(record, indent=1))
        differs = bool(others)
    else:
        for line in lines(found):
            print(line)
        differs = other is not None and _differs_from(path, other)
    if found.verdict == "unusable":
        return Status.WRONG_CALL
    return comparison_status(differs=differs or found.verdict != "match")
