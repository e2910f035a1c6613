"""`mor-ref analyze`: the decisions of MoR for the tensors of files."""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.progress import TaskProgressColumn, TimeRemainingColumn

from mor_ref.analysis.analyze_files import analyses_of
from mor_ref.analysis.analyze_tensor import (
    BlockMap,
    Settings,
    TensorReport,
    settings_for,
    worth_a_map,
)
from mor_ref.analysis.listing import Listed, Selection, list_tensors
from mor_ref.analysis.recipes import settings_under
from mor_ref.analysis.stored_tensors import name_shown
from mor_ref.analysis.tensor_files import StoredTensor, files_read
from mor_ref.analysis.totals import Totals, totals_of
from mor_ref.cli.analyze_text import print_analysis
from mor_ref.cli.options import recipe_in_file
from mor_ref.cli.outputs import output_named
from mor_ref.cli.show import Bars
from mor_ref.definitions.roles import kind_named
from mor_ref.metrics import ByTensor, Threshold
from mor_ref.whole_files import write_whole
from mor_ref.workers.pools import Workers, workers_named

_ALL = "*"  # the pattern of all layers
_LONGEST_IN_PROGRESS = 30  # letters of a name


def run(
    files: list[str],
    *,
    selection: Selection,
    recipe: str | None,
    policy: str | None,
    block: str | None,
    thresholds: list[str],
    scaling: str | None,
    kind: str,
    threads: int | None,
    executor: str,
    as_json: bool,
    plot: str | None,
) -> None:
    """Print the decisions of MoR for each tensor, and in total; draw a picture on request."""
    with workers_named(executor) as workers:  # of the processes of MPI, only one continues
        limits, of_kind = _thresholds(thresholds) or None, kind_named(kind)
        if recipe is None:
            settings = settings_for(
                recipe_in_file(policy) or "tensor",
                block=block,
                threshold=limits,
                scaling=scaling,
                threads=threads,
                kind=of_kind,
            )
        else:
            _refuse_next_to_a_recipe(recipe, {"policy": policy, "block": block, "scaling": scaling})
            settings = settings_under(recipe, threshold=limits, threads=threads, kind=of_kind)
        if plot is not None:
            from mor_ref.analysis.plot import check_path

            check_path(plot)  # an analysis may take long: so refuse early
            output_named("plot", plot, files_read(files))
        listed = list_tensors(files, selection)
        reports, mapped = _analyze_all(listed.stored, settings, workers)
    totals = totals_of(reports, settings)
    if as_json:
        document = _document(reports, listed, totals, settings)
        print(json.dumps(document, indent=1, allow_nan=False))
    else:
        print_analysis(reports, listed, totals, settings)
    if plot is not None:
        if mapped is None:
            raise ValueError("there is nothing to plot: no tensor was analyzed")
        from mor_ref.analysis.plot import picture

        write_whole(Path(plot), picture(reports, mapped, settings))


def _refuse_next_to_a_recipe(recipe: str, options: dict[str, str | None]) -> None:
    """Refuse options that a recipe decides."""
    for name, given in options.items():
        if given is not None:
            raise ValueError(
                f"{name} is {given!r}, and recipe {recipe!r} decides it alone; leave out "
                "one of the two"
            )


def _thresholds(given: list[str]) -> dict[str, Threshold | ByTensor]:
    """Return the thresholds by the names of rungs; a number alone is for e4m3 (MOR-015)."""
    found: dict[str, dict[str, Threshold]] = {}
    for text in given:
        named, is_named, threshold = text.rpartition("=")
        name, is_of_some, tensors = (named if is_named else "e4m3").partition(":")
        of_rung = found.setdefault(name, {})
        key = tensors if is_of_some else _ALL
        if key in of_rung:
            raise ValueError(f"threshold is given twice for {named or name}; give it once")
        of_rung[key] = threshold
    return {name: one[_ALL] if one.keys() == {_ALL} else one for name, one in found.items()}


def _analyze_all(
    stored: list[tuple[str, StoredTensor]], settings: Settings, workers: Workers | None
) -> tuple[list[TensorReport], tuple[TensorReport, BlockMap] | None]:
    """Return all reports, and the block map of one tensor."""
    reports: list[TensorReport] = []
    mapped: tuple[TensorReport, BlockMap] | None = None
    with Bars(TaskProgressColumn(), TimeRemainingColumn(), hidden=not stored) as progress:
        task = progress.add_task("", total=sum(_weight(tensor) for _, tensor in stored))
        analyses = analyses_of(stored, settings, workers)
        for _, tensor in stored:
            progress.update(task, description=name_shown(tensor.name)[-_LONGEST_IN_PROGRESS:])
            found = next(analyses)
            reports.append(found.report)
            if mapped is None or worth_a_map(found.report) > worth_a_map(mapped[0]):
                mapped = found.report, found.blocks
            progress.advance(task, _weight(tensor))
    return reports, mapped


def _weight(tensor: StoredTensor) -> int:
    """Return the progress of a tensor; a tensor without elements is work, too."""
    return math.prod(tensor.shape) + 1


# ---------------------------------------------------------------------- JSON


def _document(
    reports: list[TensorReport], listed: Listed, totals: Totals, settings: Settings
) -> dict[str, Any]:
    return {
        "policy": settings.policy.name,
        "unit": settings.policy.unit,
        "ladder": settings.policy.names,
        "block": settings.block,
        "scaling": settings.scaling,
        "thresholds": settings.thresholds,
        "error_in": settings.first,
        "tensors": [
            asdict(report)
            | {
                "shares": report.shares,
                "unit_shares": report.unit_shares,
                "dynamic_range": report.dynamic_range,
                "log2_dynamic_range": report.log2_dynamic_range,
            }
            for report in reports
        ],
        "left_out": listed.left_out,
        "skipped": [{"file": file} | asdict(tensor) for file, tensor in listed.skipped],
        "files_without_tensors": listed.without,
        "totals": asdict(totals)
        | {
            "shares": totals.shares,
            "unit_shares": totals.unit_shares,
            "width_shares": totals.width_shares,
            "unit_width_shares": totals.unit_width_shares,
        },
    }
