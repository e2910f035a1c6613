"""Columns of bit patterns as lines of text, and back: hexadecimal digits with a space between.

A column has two digits for each byte of its dtype, so that all lines of a stream have one length.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.operations.call import Arrays
from mor_ref.operations.fields import bytes_of

NEWLINE = b"\n"
_SPACE = b" "
_IS_DIGIT = np.isin(np.arange(256), list(b"0123456789abcdefABCDEF"))


@dataclass(frozen=True)
class LineField:
    """A name, and the format of the bits under it: one of the catalogue, or f64, u8, u32, u64.

    A line has one entry of it, or a row of `count` entries.
    """

    name: str
    format: str
    count: int | None = None

    @property
    def size(self) -> int:
        """The bytes of an entry."""
        return bytes_of(self.format)

    @property
    def digits(self) -> int:
        """The hexadecimal digits of an entry."""
        return 2 * self.size

    @property
    def words(self) -> int:
        """The entries in a line."""
        return self.count or 1

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the entries in a line."""
        return () if self.count is None else (self.count,)


@dataclass(frozen=True)
class Line:
    """The columns of a line, from left to right."""

    columns: tuple[LineField, ...]

    @cached_property
    def length(self) -> int:
        """The characters of a line, the newline among them."""
        return sum((column.digits + 1) * column.words for column in self.columns)

    @cached_property
    def _record(self) -> np.dtype[np.void]:
        """An entry of each column, highest byte first, as it is written."""
        return np.dtype(
            [(column.name, f">u{column.size}", column.shape) for column in self.columns]
        )

    @cached_property
    def _gaps(self) -> NDArray[np.intp]:
        """Where the space or the newline after each entry is."""
        sizes = [column.digits + 1 for column in self.columns for _ in range(column.words)]
        return np.cumsum(sizes) - 1

    @cached_property
    def _digits(self) -> NDArray[np.intp]:
        """Where the digits are."""
        return np.delete(np.arange(self.length), self._gaps)

    def describe(self) -> str:
        """Return a description of a line, for messages."""
        *most, last = (
            f"{column.name} of {f'{column.count} times ' if column.count else ''}{column.digits}"
            for column in self.columns
        )
        listed = f"{', '.join(most)} and {last}" if most else last
        return f"{listed} hexadecimal digits, with one space between"

    def written(self, arrays: Arrays) -> bytes:
        """Return a line for each entry of the columns."""
        records = np.empty(len(arrays[self.columns[0].name]), self._record)
        for column in self.columns:
            records[column.name] = arrays[column.name]
        digits = np.frombuffer(records.tobytes().hex().encode("ascii"), np.uint8)
        digits = digits.reshape(records.size, 2 * self._record.itemsize)
        text = np.full((records.size, self.length), ord(_SPACE), np.uint8)
        text[:, -1] = ord(NEWLINE)
        text[:, self._digits] = digits
        return text.tobytes()

    def read(self, lines: bytes) -> Mapping[str, NDArray[np.unsignedinteger[Any]]]:
        """Return the entries of whole lines, up to the first line that differs from `describe`."""
        text = np.frombuffer(lines, np.uint8)
        ends = np.flatnonzero(text == ord(NEWLINE))
        rows = _until_first(ends == np.arange(1, ends.size + 1) * self.length - 1, ends)
        table = text[: rows.size * self.length].reshape(rows.size, self.length)
        records = self._records(table)
        if records is None:
            records = self._records(_until_first(self._are_right(table), table))
        return {
            column.name: records[column.name].astype(f"u{column.size}")  # type: ignore[index]
            for column in self.columns
        }

    def _records(self, table: NDArray[np.uint8]) -> NDArray[np.void] | None:
        """Return the entries of lines of the right length, or None if a line is not right."""
        if not (table[:, self._gaps[:-1]] == ord(_SPACE)).all():
            return None
        try:
            content = bytes.fromhex(table.tobytes().decode("ascii"))
        except ValueError:
            return None
        # fromhex passes over spaces: where one stands for two digits, there are bytes too few.
        if len(content) != len(table) * self._record.itemsize:
            return None
        return np.frombuffer(content, self._record)

    def _are_right(self, table: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Return which lines of the right length have digits and spaces where they should."""
        wrong = np.concatenate(
            [~_IS_DIGIT[table[:, self._digits]], table[:, self._gaps[:-1]] != ord(_SPACE)], axis=1
        )
        right: NDArray[np.bool_] = ~np.any(wrong, axis=1)
        return right


def _until_first(right: NDArray[np.bool_], entries: NDArray[Any]) -> NDArray[Any]:
    """Return the entries before the first that is not right."""
    return entries if right.all() else entries[: int(right.argmin())]
