"""The text of `mor-ref analyze`."""

from collections.abc import Iterator

from mor_ref.analysis.analyze_tensor import Settings, TensorReport, in_percent
from mor_ref.analysis.listing import Listed
from mor_ref.analysis.stored_tensors import name_shown
from mor_ref.analysis.totals import Totals
from mor_ref.cli.show import console_of_some_width
from mor_ref.cli.tensor_text import TextColumn, line_of, skipped_lines, width_of
from mor_ref.counts_in_words import counted

_BF16 = 16  # bits


def print_analysis(
    reports: list[TensorReport], listed: Listed, totals: Totals, settings: Settings
) -> None:
    """Print a table of the tensors, the skipped tensors, and the totals."""
    console = console_of_some_width()
    for line in (
        *(_table(reports, settings, console.width) if reports else ()),
        *_overflow_lines(reports, settings),
        *skipped_lines(listed),
        *_total_lines(totals, settings),
    ):
        console.print(line, soft_wrap=True)


def _table(reports: list[TensorReport], settings: Settings, width: int) -> Iterator[str]:
    """Yield lines of at most this width; a name too long for its column has its own line."""
    names = [name_shown(report.name) for report in reports]
    longest = max(map(len, ("tensor", *names)))
    columns = _columns(reports, settings)
    wider = columns + _columns_if_there_is_room(reports)
    columns = wider if longest + width_of(wider) <= width else columns
    room = min(longest, max(width - width_of(columns), len("tensor")))
    yield line_of("tensor", room, [column.heading for column in columns], columns)
    file = None
    for row, (name, report) in enumerate(zip(names, reports, strict=True)):
        if report.file not in (file, report.name):
            yield f"{name_shown(report.file)}:"
        file = report.file
        if len(name) > room:
            yield name
        cells = [column.cells[row] for column in columns]
        yield line_of(name if len(name) <= room else "", room, cells, columns)
    yield f"error: mean relative error in {settings.first}; range: log2(amax / amin); -: none"
    if settings.policy.unit == "block":
        yield f"{', '.join(f'{name} %' for name in settings.policy.names)}: shares of the elements"


def _columns(reports: list[TensorReport], settings: Settings) -> list[TextColumn]:
    columns = [
        TextColumn("shape", ["x".join(map(str, r.shape)) or "scalar" for r in reports]),
        TextColumn("dtype", [r.dtype for r in reports]),
    ]
    if settings.policy.unit == "tensor":
        columns.append(TextColumn("took", [r.decision or "-" for r in reports]))
    else:
        for name in settings.policy.names:
            shares = [in_percent(r.shares[name]) if any(r.units.values()) else "-" for r in reports]
            columns.append(TextColumn(f"{name} %", shares))
    columns.append(TextColumn("error %", [f"{100 * r.error:.3g}" for r in reports]))
    if settings.limit is not None:
        threshold = 100 * settings.mean_thresholds[settings.first]
        distances = ["-" if r.distance is None else f"{100 * r.distance:+.3g}" for r in reports]
        columns.append(TextColumn(f"vs {threshold:.4g} %", distances))
    return [
        *columns,
        TextColumn("zeros", [_count(r.zeros) for r in reports]),
        TextColumn("NaN,inf", [_count(r.nonfinite) for r in reports]),
        TextColumn("range", [_number(r.log2_dynamic_range, ".1f") for r in reports]),
    ]


def _columns_if_there_is_room(reports: list[TensorReport]) -> list[TextColumn]:
    return [
        TextColumn("amax", [_number(r.amax, ".3g") for r in reports]),
        TextColumn("amin", [_number(r.amin, ".3g") for r in reports]),
    ]


def _overflow_lines(reports: list[TensorReport], settings: Settings) -> Iterator[str]:
    """Yield the count of finite numbers that overflow: why a small error stays in bf16."""
    for report in reports:
        if report.overflows:
            count = counted(report.overflows, "finite number")
            yield f"{name_shown(report.name)}: {count} would become infinite in {settings.first}"


def _total_lines(totals: Totals, settings: Settings) -> Iterator[str]:
    is_whole = settings.policy.unit == "tensor"
    units = sum(totals.units.values())
    counts = [counted(totals.tensors, "tensor"), counted(totals.elements, "element")]
    yield ", ".join(counts if is_whole else [*counts, counted(units, "block")])
    if units:
        what = "tensors" if is_whole else "blocks"
        shown = {name: f" ({count:,})" for name, count in totals.units.items()}
        yield f"share of elements: {_named(totals.shares, {})}"
        yield f"share of {what}: {_named(totals.unit_shares, shown)}"
        for width, share in totals.width_shares.items():
            if width < _BF16:
                of_units = in_percent(totals.unit_width_shares[width])
                yield f"in {width} bits: {in_percent(share)} % of elements, {of_units} % of {what}"


def _named(shares: dict[str, float], more: dict[str, str]) -> str:
    """Return representations with their shares, and the additions for some."""
    each = (f"{name} {in_percent(share)} %{more.get(name, '')}" for name, share in shares.items())
    return ", ".join(each)


def _count(count: int) -> str:
    """Return five digits, or three with a unit; the JSON has all digits."""
    if count < 100_000:
        return str(count)
    if count < 100_000_000:
        return f"{count / 1e6:.2f}M"
    return f"{count / 1e9:.2f}G"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
