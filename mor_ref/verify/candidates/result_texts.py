"""Results as lines of numbers, as memory files, and as raw bytes: the way back of an export."""

import codecs
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.golden.model.views import SEPARATOR
from mor_ref.operations.integers import Integers
from mor_ref.verify.candidates.candidate import Answer
from mor_ref.verify.candidates.result_columns import Column, ColumnsError

# A line of an export about a field: "# scale (expected, e8m0, shape 183, ...".
_ABOUT = re.compile(r"(?:#|//) (\S+) \((?:input|expected), ")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DIGITS = re.compile("[0-9a-fA-F]+(?:_[0-9a-fA-F]+)*")
_SHOWN = 40  # characters of a word
_BITS = 4  # of a digit


def text_of(content: bytes) -> str:
    """Return the text of a file; a byte order mark of UTF-8 may be in front of it."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ColumnsError("is in UTF-16; write it in ASCII")
    return content.removeprefix(codecs.BOM_UTF8).decode("ascii", "replace")


def names_in(text: str) -> list[str]:
    """Return the fields that the comments of an exported file name."""
    return _ABOUT.findall(text)


def of_lines(text: str, columns: list[Column], *, by_row: bool) -> Answer:
    """Return the fields of lines, as hexadecimal numbers.

    If rows are independent, a line has the entries of each field of a row in turn. The fields of a
    tensor have other rows each: they come one after the other, in lines of any length.
    """
    lines = (line.split("#")[0].split() for line in text.splitlines())
    rows = [line for line in lines if line]
    if not by_row:
        return _in_turn([word for row in rows for word in row], columns)
    wide = sum(column.per_row for column in columns)
    for number, row in enumerate(rows):
        if len(row) != wide:
            raise ColumnsError(f"has {len(row)} numbers in row {number}, but {wide} are expected")
    found, start = {}, 0
    for column in columns:
        end = start + column.per_row
        words = [word for row in rows for word in row[start:end]]
        found[column.name] = _array(column, words, len(rows))
        start = end
    return found


def of_memory(text: str, columns: list[Column], *, by_row: bool) -> Answer:
    """Return the fields of a memory file: a word for each row, the first field in the upper bits.

    An entry has whole bytes, but for a file of one field, whose words may be shorter. A memory of a
    tensor has a word for each entry, one field after the other, or for each row of its one field.
    """
    there = _words(text)
    of_rows = len(columns) == 1 and len(there) == columns[0].shape[0]
    if (not by_row and not of_rows) or (of_rows and columns[0].per_row == 1):
        return _in_turn(there, columns)
    narrow = [column.narrow for column in columns]
    if of_rows:
        _check_digits(columns[0], there)
    if of_rows and _digits(there) == 2 * _bytes_of_row(narrow):
        columns = narrow
    words = [_number(word, 8 * _bytes_of_row(columns)) for word in there]
    found, rest = {}, 8 * _bytes_of_row(columns)
    for column in columns:
        bits = 8 * column.size
        entries = []
        for word in words:
            shifts = range(rest - bits, rest - bits * column.per_row - 1, -bits)
            entries += [word >> shift & (1 << bits) - 1 for shift in shifts]
        rest -= bits * column.per_row
        _check_rows(column, len(words))
        found[column.name] = column.array(entries)
    return found


def _check_digits(column: Column, words: list[str]) -> None:
    """Refuse words with a digit for each entry of a row: either end may have the first one."""
    upper, is_short = int("f0" * column.per_row, 16), _digits(words) <= column.per_row
    if (
        column.bits <= _BITS
        and is_short
        and any(_number(word, _BITS * column.per_row) & upper for word in words)
    ):
        raise ColumnsError(
            f"has words of a digit for each entry of {column.name}; write two digits for each, the "
            "first entry in the upper bits"
        )


def _in_turn(words: list[str], columns: list[Column]) -> Answer:
    """Return whole fields, one after the other, row by row."""
    right = sum(column.entries for column in columns)
    if len(words) != right:
        parts = " + ".join(f"{column.entries:,} of {column.name}" for column in columns)
        raise ColumnsError(
            f"has {len(words):,} numbers, but {right:,} are expected, one for each entry: {parts}"
        )
    found, start = {}, 0
    for column in columns:
        some = words[start : start + column.entries]
        found[column.name] = _of_words(column, some)
        start += column.entries
    return found


def of_bytes(content: bytes, columns: list[Column], byteorder: str) -> Answer:
    """Return the fields of raw bytes: whole arrays, row by row, one after the other.

    The codes of a grid, or its zero points as well, can be as wide as the grid.
    """
    right = sum(column.nbytes for column in columns)
    of_codes = [column.narrow if _is_code(column) else column for column in columns]
    for narrow in (of_codes, [column.narrow for column in columns]):
        if len(content) != right and len(content) == sum(column.nbytes for column in narrow):
            columns, right = narrow, len(content)
    if len(content) != right:
        parts = " + ".join(f"{column.nbytes:,} of {column.name}" for column in columns)
        raise ColumnsError(f"has {len(content):,} bytes, but {right:,} are expected: {parts}")
    found, start = {}, 0
    order = "<" if byteorder == "little" else ">"
    for column in columns:
        part = content[start : start + column.nbytes]
        entries = np.frombuffer(part, f"{order}u{column.size}")
        found[column.name] = column.array(entries)
        start += column.nbytes
    return found


def _digits(words: list[str]) -> int:
    """Return how many digits the longest word has."""
    return max((len(word.replace("_", "")) for word in words), default=0)


def _is_code(column: Column) -> bool:
    return column.name.partition(SEPARATOR)[0] == "code"


def _words(text: str) -> list[str]:
    """Return the words of a memory file by their addresses, which must leave none out."""
    found: dict[int, str] = {}
    for address, word in _addressed(_COMMENT.sub(" ", text)):
        if address in found:
            raise ColumnsError(f"has word {address} twice")
        found[address] = word
    missing = next((k for k in range(len(found)) if k not in found), None)
    if missing is not None:
        raise ColumnsError(f"has no word {missing}")
    return [found[k] for k in range(len(found))]


def _addressed(text: str) -> Iterator[tuple[int, str]]:
    address = 0
    for token in text.split():
        if token.startswith("@"):
            address = _number(token[1:], 32)
        else:
            yield address, token
            address += 1


def _array(column: Column, words: list[str], rows: int) -> NDArray[Any]:
    _check_rows(column, rows)
    return _of_words(column, words)


def _of_words(column: Column, words: list[str]) -> NDArray[Any]:
    """Return the entries of words; integers of a grid with a sign can have fewer digits."""
    numbers = column.array([_number(word, 8 * column.size) for word in words])
    is_signed = column.grid is not None and column.grid.signed
    takes = Integers(column.size, is_signed, column.grid if is_signed else None)
    return takes.extended(numbers, _BITS * _digits(words))


def _check_rows(column: Column, rows: int) -> None:
    if rows != column.shape[0]:
        raise ColumnsError(f"has {rows} rows, but {column.shape[0]} are expected")


def _number(word: str, bits: int) -> int:
    """Return a hexadecimal number of so many bits; x and z are digits that a simulator left."""
    if not _DIGITS.fullmatch(word):
        shown = ascii(word)[1:-1][:_SHOWN]
        if word[:2].lower() == "0x":
            raise ColumnsError(f"has {shown}; write hexadecimal numbers without 0x")
        undefined = bool(set(word.lower()) & set("xz?")) and not set(word.lower()) - set(
            "0123456789abcdefxz?_"
        )
        why = "undefined digits" if undefined else "no hexadecimal number"
        raise ColumnsError(f"has {why} in {shown}")
    number = int(word.replace("_", ""), 16)
    if number >> bits:
        raise ColumnsError(f"has {word[:_SHOWN]}, which does not fit {bits} bits")
    return number


def _bytes_of_row(columns: list[Column]) -> int:
    return sum(column.size * column.per_row for column in columns)
