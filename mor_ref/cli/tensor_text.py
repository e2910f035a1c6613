"""Tables of tensors, and lists of those that were skipped, for all commands on files."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from mor_ref.analysis.listing import Listed
from mor_ref.analysis.stored_tensors import name_shown
from mor_ref.counts_in_words import counted


@dataclass(frozen=True)
class TextColumn:
    """A column of a table: its heading, and a cell for each row."""

    heading: str
    cells: list[str]

    @cached_property  # all rows ask for it
    def width(self) -> int:
        """The width of the longest cell."""
        return max(len(text) for text in (self.heading, *self.cells))


def width_of(columns: Sequence[TextColumn]) -> int:
    """Return the width of columns, with a space before each."""
    return sum(1 + column.width for column in columns)


def line_of(name: str, room: int, cells: Sequence[str], columns: Sequence[TextColumn]) -> str:
    """Return a row: a name, and a cell for each column."""
    parts = [cell.rjust(column.width) for cell, column in zip(cells, columns, strict=True)]
    return " ".join([name.ljust(room), *parts])


def skipped_lines(listed: Listed) -> Iterator[str]:
    """Yield the tensors that are not read, with the reason, and the files without tensors."""
    for file, tensor in listed.skipped:
        where = "" if tensor.name == file else f" in {name_shown(file)}"
        yield f"skipped: {tensor.said(where)}"
    for reason, count in listed.left_out.items():
        yield f"left out: {counted(count, 'tensor')}, {reason}"
    for file in listed.without:
        yield f"{name_shown(file)} holds no tensors"
