"""Flat records as CSV, Parquet and JSON."""

import csv
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mor_ref.printable import cell

Record = Mapping[str, Any]


def csv_of(records: Sequence[Record]) -> bytes:
    """Return records as CSV, with a line of names; no text is a formula of a spreadsheet."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(records[0]) if records else [])
    writer.writeheader()
    writer.writerows({name: cell(content) for name, content in one.items()} for one in records)
    return text.getvalue().encode()


def json_of(records: Sequence[Record]) -> bytes:
    """Return records as a list of objects; an infinite number is null."""
    return f"{json.dumps([finite(one) for one in records], indent=1, allow_nan=False)}\n".encode()


def parquet_of(records: Sequence[Record]) -> bytes:
    """Return records as Parquet, with pyarrow."""
    pa, parquet = _pyarrow()
    written = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist([dict(one) for one in records]), written)
    return written.getvalue()


def finite(record: Record) -> dict[str, Any]:
    """Return a record whose infinite numbers are None, as JSON has none."""
    return {
        name: None if isinstance(cell, float) and not math.isfinite(cell) else cell
        for name, cell in record.items()
    }


WRITERS: Mapping[str, Callable[[Sequence[Record]], bytes]] = {
    ".csv": csv_of,
    ".json": json_of,
    ".parquet": parquet_of,
}


def check_ending(option: str, path: str, ending: str, also: Sequence[str]) -> None:
    """Refuse a file of no known kind, and name a missing library; `also` are other known ones."""
    if ending not in WRITERS:
        *known, last = *WRITERS, *also
        endings = f"{', '.join(known)} or {last}"
        raise ValueError(f"{option} is {path!r}; give a file that ends in {endings}")
    if ending == ".parquet":
        _pyarrow()


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise RuntimeError(
            "Parquet is written by pyarrow, which is not installed; pip install 'mor-ref[parquet]'"
        ) from error
    return pa, parquet
