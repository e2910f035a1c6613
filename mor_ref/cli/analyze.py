"""`mor-ref analyze`: what MoR decides about the tensors of files."""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from mor_ref.analysis import (
    BlockMap,
    Settings,
    TensorReport,
    Totals,
    in_percent,
    settings_for,
    totals_of,
    worth_a_map,
)
from mor_ref.analysis_of_files import analyses_of
from mor_ref.cli.show import console_of_some_width
from mor_ref.tensor_files import SkippedTensor, StoredTensor, tensors_in
from mor_ref.workers import Workers, workers_named

_LONGEST_IN_PROGRESS = 30  # letters of a name


@dataclass(frozen=True)
class Listed:
    """What was found in the files."""

    stored: list[tuple[str, StoredTensor]]
    skipped: list[tuple[str, SkippedTensor]]
    without: list[str]  # the files that hold nothing at all


def run(
    files: list[str],
    *,
    policy: str,
    block: str | None,
    threshold: str | None,
    scaling: str,
    threads: int | None,
    executor: str,
    as_json: bool,
    plot: str | None,
) -> None:
    """Print what MoR decides about each tensor, and in total; draw it, if that is wanted."""
    with workers_named(executor) as workers:  # only one of many goes on, and says what is wrong
        settings = settings_for(
            policy, block=block, threshold=threshold, scaling=scaling, threads=threads
        )
        if plot is not None:
            from mor_ref.analysis_plot import check_path

            check_path(plot)  # an analysis may take long: better now than then
        listed = _list(files)
        reports, mapped = _analyze_all(listed.stored, settings, workers)
    totals = totals_of(reports, settings)
    if as_json:
        document = _document(reports, listed, totals, settings)
        print(json.dumps(document, indent=1, allow_nan=False))
    else:
        _print(reports, listed, totals, settings, console_of_some_width())
    if plot is not None:
        if mapped is None:
            raise ValueError("there is nothing to plot: no tensor was analyzed")
        from mor_ref.analysis_plot import draw

        draw(plot, reports, mapped, settings)


def _list(files: list[str]) -> Listed:
    listed = Listed([], [], [])
    for file in files:
        is_without = True
        for tensor in tensors_in(file):
            is_without = False
            if isinstance(tensor, StoredTensor):
                listed.stored.append((file, tensor))
            else:
                listed.skipped.append((file, tensor))
        if is_without:
            listed.without.append(file)
    return listed


def _analyze_all(
    stored: list[tuple[str, StoredTensor]], settings: Settings, workers: Workers | None
) -> tuple[list[TensorReport], tuple[TensorReport, BlockMap] | None]:
    """The reports, and the map of one tensor; of the others nothing else is kept."""
    reports: list[TensorReport] = []
    mapped: tuple[TensorReport, BlockMap] | None = None
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as progress:
        task = progress.add_task("", total=sum(_weight(tensor) for _, tensor in stored))
        analyses = analyses_of(stored, settings, workers)
        for _, tensor in stored:
            progress.update(task, description=_shown(tensor.name)[-_LONGEST_IN_PROGRESS:])
            found = next(analyses)
            reports.append(found.report)
            if mapped is None or worth_a_map(found.report) > worth_a_map(mapped[0]):
                mapped = found.report, found.blocks
            progress.advance(task, _weight(tensor))
    return reports, mapped


def _weight(tensor: StoredTensor) -> int:
    """What a tensor adds to the progress: one without elements is work, too."""
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
                "dynamic_range": report.dynamic_range,
                "log2_dynamic_range": report.log2_dynamic_range,
            }
            for report in reports
        ],
        "skipped": [{"file": file} | asdict(tensor) for file, tensor in listed.skipped],
        "files_without_tensors": listed.without,
        "totals": asdict(totals) | {"shares": totals.shares, "fp8_share": totals.fp8_share},
    }


# ---------------------------------------------------------------------- for people


@dataclass(frozen=True)
class Column:
    """A column of the table: its heading and a cell for each tensor."""

    heading: str
    cells: list[str]

    @property
    def width(self) -> int:
        """How wide the longest of them is."""
        return max(len(text) for text in (self.heading, *self.cells))


def _print(
    reports: list[TensorReport],
    listed: Listed,
    totals: Totals,
    settings: Settings,
    console: Console,
) -> None:
    for line in (
        *(_table(reports, settings, console.width) if reports else ()),
        *_overflow_lines(reports, settings),
        *_skipped_lines(listed),
        *_total_lines(totals, settings),
    ):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _table(reports: list[TensorReport], settings: Settings, width: int) -> Iterator[str]:
    """Lines of at most so many letters: a name that is too long for its column has its own."""
    names = [_shown(report.name) for report in reports]
    longest = max(map(len, ("tensor", *names)))
    columns = _columns(reports, settings)
    wider = columns + _columns_if_there_is_room(reports)
    columns = wider if longest + _width_of(wider) <= width else columns
    room = min(longest, max(width - _width_of(columns), len("tensor")))
    yield _line("tensor", room, [column.heading for column in columns], columns)
    file = None
    for row, (name, report) in enumerate(zip(names, reports, strict=True)):
        if report.file not in (file, report.name):
            yield f"{_shown(report.file)}:"
        file = report.file
        if len(name) > room:
            yield name
        cells = [column.cells[row] for column in columns]
        yield _line(name if len(name) <= room else "", room, cells, columns)
    yield f"error: mean relative error in {settings.first}; range: log2(amax / amin); -: none"


def _width_of(columns: list[Column]) -> int:
    return sum(1 + column.width for column in columns)


def _line(name: str, room: int, cells: list[str], columns: list[Column]) -> str:
    parts = [cell.rjust(column.width) for cell, column in zip(cells, columns, strict=True)]
    return " ".join([name.ljust(room), *parts])


def _columns(reports: list[TensorReport], settings: Settings) -> list[Column]:
    columns = [
        Column("shape", ["x".join(map(str, r.shape)) or "scalar" for r in reports]),
        Column("dtype", [r.dtype for r in reports]),
    ]
    if settings.policy.unit == "tensor":
        columns.append(Column("took", [r.decision or "-" for r in reports]))
    else:
        for name in settings.policy.names:
            shares = [in_percent(r.shares[name]) if any(r.units.values()) else "-" for r in reports]
            columns.append(Column(f"{name} %", shares))
    columns.append(Column("error %", [f"{100 * r.error:.3g}" for r in reports]))
    if settings.limit is not None:
        threshold = 100 * settings.thresholds[settings.first]
        distances = ["-" if r.distance is None else f"{100 * r.distance:+.3g}" for r in reports]
        columns.append(Column(f"vs {threshold:.4g} %", distances))
    return [
        *columns,
        Column("zeros", [_count(r.zeros) for r in reports]),
        Column("NaN,inf", [_count(r.nonfinite) for r in reports]),
        Column("range", [_number(r.log2_dynamic_range, ".1f") for r in reports]),
    ]


def _columns_if_there_is_room(reports: list[TensorReport]) -> list[Column]:
    return [
        Column("amax", [_number(r.amax, ".3g") for r in reports]),
        Column("amin", [_number(r.amin, ".3g") for r in reports]),
    ]


def _overflow_lines(reports: list[TensorReport], settings: Settings) -> Iterator[str]:
    """Why a tensor stays in bf16 whose error is small, and which has no infinity itself."""
    for report in reports:
        if report.overflows:
            count = _of(report.overflows, "finite number")
            yield f"{_shown(report.name)}: {count} would become infinite under {settings.first}"


def _skipped_lines(listed: Listed) -> Iterator[str]:
    for file, tensor in listed.skipped:
        where = "" if tensor.name == file else f" in {_shown(file)}"
        sides = "x".join(map(str, tensor.shape)) or "scalar"
        yield f"skipped: {_shown(tensor.name)}{where} ({sides} {tensor.dtype}): {tensor.reason}"
    for file in listed.without:
        yield f"{_shown(file)} holds no tensors"


def _total_lines(totals: Totals, settings: Settings) -> Iterator[str]:
    is_whole = settings.policy.unit == "tensor"
    units = sum(totals.units.values())
    counts = [_of(totals.tensors, "tensor"), _of(totals.elements, "element")]
    yield ", ".join(counts if is_whole else [*counts, _of(units, "block")])
    if units:
        shares = ", ".join(
            f"{name} {in_percent(share)} % ({totals.units[name]:,})"
            for name, share in totals.shares.items()
        )
        what = "tensors" if is_whole else "blocks"
        yield f"share of {what}: {shares}"
        yield f"share of {what} in FP8: {in_percent(totals.fp8_share)} %"


def _of(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'s' * (count != 1)}"


def _count(count: int) -> str:
    """Five digits, or three and a unit; all digits are in the JSON."""
    if count < 100_000:
        return str(count)
    if count < 100_000_000:
        return f"{count / 1e6:.2f}M"
    return f"{count / 1e9:.2f}G"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _shown(name: str) -> str:
    """A name as it is, unless it would steer the terminal or not be seen."""
    return name if name and name.isprintable() else repr(name)
