"""`mor-ref golden`: list, make and check suites of golden vectors."""

import json
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from mor_ref.arguments import whole_number
from mor_ref.cli.show import console_of_some_width
from mor_ref.golden import kept_files
from mor_ref.golden.container import read_manifest
from mor_ref.golden.make import make
from mor_ref.golden.suite import Size, chosen
from mor_ref.golden.suites import SUITES
from mor_ref.verify.check import check, compare_manifests
from mor_ref.verify.compare import Difference

_SHOWN = 5  # differences of a suite


def run_list(*, as_json: bool) -> None:
    """Print the suites."""
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
    kept = read_manifest(kept_files())["suites"]
    table = Table("suite", "cases", "elements", "title", box=None, pad_edge=False)
    for suite in SUITES.values():
        entry = kept.get(suite.name)
        counts = ("-", "-") if entry is None else (len(entry["cases"]), f"{entry['elements']:,}")
        table.add_row(suite.name, *map(str, counts), suite.title)
    console_of_some_width().print(table)


def run_make(names: list[str], out: str, size: int, seed: int) -> None:
    """Make suites in a folder."""
    factor = whole_number("size", size, 1, 1 << 20)
    made_with = Size(factor, whole_number("seed", seed, 0, 0xFFFF))
    suites = chosen(SUITES, names)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as progress:
        task = progress.add_task("making suites", total=len(suites))
        make(
            [suite.name for suite in suites],
            Path(out),
            made_with,
            lambda name: progress.update(task, advance=1, description=f"made {name}"),
        )
    print(f"{len(suites)} suites are in {out}")


def run_check(folder: str | None, names: list[str], same_as: str | None, *, as_json: bool) -> int:
    """Print what is off in a folder of suites; the exit status is 1 if anything is."""
    path = Path(folder) if folder else kept_files()
    console = Console(stderr=True)
    manifest = read_manifest(path)
    wanted = len(names) or len(manifest["suites"])
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task("checking suites", total=wanted)

        def show(name: str, _: list[Difference]) -> None:
            progress.update(task, advance=1, description=f"checked {name}")

        found = check(path, names, show)
    others = compare_manifests(path, Path(same_as)) if same_as else []
    if as_json:
        differing = {name: [str(one) for one in all_of] for name, all_of in found.items()}
        print(json.dumps({"suites": differing, "manifests": others}, indent=1))
    else:
        _print(found, others, same_as)
    return 1 if others or any(found.values()) else 0


def _print(found: dict[str, list[Difference]], others: list[str], same_as: str | None) -> None:
    for name, differences in found.items():
        print(f"{name}: {'as the engine has it' if not differences else 'DIFFERS'}")
        for difference in differences[:_SHOWN]:
            print(f"  {difference}")
        if len(differences) > _SHOWN:
            print(f"  and {len(differences) - _SHOWN} more fields")
    if same_as:
        print(f"manifest: {'the same as that' if not others else 'NOT that'} of {same_as}")
        for line in others:
            print(f"  {line}")
