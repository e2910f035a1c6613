"""Recordings as files: CSV, Parquet and the event files of TensorBoard."""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from mor_ref.printable import cell
from mor_ref.torch.measures import Measured

Cell = int | float | str | bool | None
_BY_NAME = ("choices", "errors", "exponents")  # fields with an entry for each representation
_HOW = "which is not installed; pip install 'mor-ref[record]'"


def table(rows: Iterable[Measured]) -> dict[str, list[Cell]]:
    """Return the columns of a recording.

    Representations have columns of their own: `choice e4m3`, `error e4m3`, and the lowest and the
    highest exponent of scales. A cell is None if the row has no such representation.
    """
    flat = [_flat(row) for row in rows]
    names = dict.fromkeys(name for row in flat for name in row)
    return {name: [row.get(name) for row in flat] for name in names}


def _flat(row: Measured) -> dict[str, Cell]:
    if not isinstance(row, Measured):
        raise TypeError(f"rows have {row!r}; give a recording, or some of its rows")
    cells: dict[str, Cell] = {
        field.name: getattr(row, field.name) for field in fields(row) if field.name not in _BY_NAME
    }
    known = None if row.saturated is None else row.saturated_share
    cells |= {"flushed_share": row.flushed_share, "saturated_share": known}
    cells |= {f"choice {name}": count for name, count in row.choices.items()}
    cells |= {f"error {name}": error for name, error in row.errors.items()}
    for name, (lowest, highest) in row.exponents.items():
        cells |= {f"lowest_exponent {name}": lowest, f"highest_exponent {name}": highest}
    return cells


def to_csv(rows: Iterable[Measured], path: str | Path) -> None:
    """Write a recording as CSV with a line of names; a cell without a number is empty."""
    columns = table(rows)
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(map(cell, columns))
        writer.writerows(map(cell, row) for row in zip(*columns.values(), strict=True))


def to_parquet(rows: Iterable[Measured], path: str | Path) -> None:
    """Write a recording as Parquet, with pyarrow; a cell without a number is null."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise RuntimeError(f"Parquet is written by pyarrow, {_HOW}") from error
    parquet.write_table(pa.table(table(rows)), path)


def to_tensorboard(rows: Iterable[Measured], directory: str | Path) -> None:
    """Write a recording as scalars of TensorBoard, `LAYER/OPERAND by AXIS/MEASURE`.

    A scalar is of the first microbatch of a step. Quantizations that a
    checkpoint computed again are left out.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise RuntimeError(f"event files are written by tensorboard, {_HOW}") from error
    with SummaryWriter(str(directory)) as writer:
        for row in rows:
            if row.microbatch or row.is_recomputed:
                continue
            for measure, number in _scalars(row).items():
                tag = f"{row.layer}/{row.operand} by {row.axis}/{measure}"
                writer.add_scalar(tag, number, row.step)


def _scalars(row: Measured) -> Mapping[str, Any]:
    """Return the measures of a row that are drawn as curves; SQNR only if it is finite."""
    shares = {f"share {name}": share for name, share in row.shares.items()}
    errors = {f"error {name}": error for name, error in row.errors.items()}
    ends = {f"exponent {name}": highest for name, (_, highest) in row.exponents.items()}
    others = {"amax": row.amax, "flushed": row.flushed_share}
    if row.saturated is not None:
        others["saturated"] = row.saturated_share
    ratio = {"sqnr": row.sqnr} if row.noise else {}
    return {**shares, **errors, **ends, **others, **ratio}
