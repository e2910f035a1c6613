"""Pages next to the vectors of a block format or a policy of a user, as HTML and as text."""

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from mor_ref.golden.model.suite import Case, Suite
from mor_ref.golden.model.views import axes_of
from mor_ref.golden.store.suite_files import file_of
from mor_ref.operations.bits import f32_bits

_COLUMNS = 100  # of the text
_CSS = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;margin:1rem 0}"
    "td,th{border:1px solid #bbb;padding:.2rem .6rem;text-align:left;vertical-align:top}"
    "pre{background:#f4f4f4;padding:.8rem;overflow-x:auto}"
)


@dataclass(frozen=True)
class Table:
    """Rows of cells, of which the first is the head."""

    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Code:
    """Lines as they are."""

    text: str


@dataclass(frozen=True)
class Head:
    """The title of a part, at a level from 1 on."""

    text: str
    level: int = 2


Piece = Head | Table | Code | str  # a str is a paragraph


def page_files_of(name: str) -> tuple[str, str]:
    """Return the names of the pages of a suite."""
    return f"{name}.html", f"{name}.txt"


def pages(name: str, page: Iterable[Piece]) -> dict[str, bytes]:
    """Return the page of a suite by the names of its files."""
    pieces = list(page)
    body = "\n".join(map(_as_html, pieces))
    html = (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f"<title>{escape(name)}</title>\n<style>{_CSS}</style>\n{body}\n</html>\n"
    )
    text = "\n\n".join(map(_as_text, pieces)) + "\n"
    return dict(zip(page_files_of(name), (html.encode(), text.encode()), strict=True))


def _as_html(piece: Piece) -> str:
    match piece:
        case Head(text, level):
            return f"<h{level}>{escape(text)}</h{level}>"
        case Code(text):
            return f"<pre>{escape(text)}</pre>"
        case Table(rows):
            tags = ("th", *["td"] * len(rows))
            lines = (
                "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row)
                for tag, row in zip(tags, rows, strict=False)
            )
            return "<table>" + "\n".join(f"<tr>{line}</tr>" for line in lines) + "</table>"
    return f"<p>{escape(piece)}</p>"


def _as_text(piece: Piece) -> str:
    match piece:
        case Head(text, level):
            return f"{text}\n{'=-'[level > 1] * len(text)}" if level < 3 else text
        case Code(text):
            return "\n".join(f"    {line}" for line in text.splitlines())
        case Table(rows):
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            padded = (
                "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
                for row in rows
            )
            first, *others = (line.rstrip() for line in padded)
            return "\n".join([first, "-" * len(first), *others])
    return textwrap.fill(piece, _COLUMNS, break_on_hyphens=False)


def shown_number(number: float) -> str:
    """Return a number of binary32 in the fewest digits that say which it is."""
    if abs(number) < 1 << 24 and number == int(number):
        return f"{number:.0f}"
    return next(text for digits in range(1, 18) if _is_same(text := f"{number:.{digits}g}", number))


def _is_same(text: str, number: float) -> bool:
    if not math.isfinite(number):
        return True
    near = float(text)
    return abs(near) <= 3.4028235e38 and f32_bits(near) == f32_bits(number)


def shown_bits(number: float) -> str:
    """Return the bits of a number of binary32."""
    return f"0x{f32_bits(number):08X}"


def vectors_section(suite: Suite, cases: Sequence[Case], shown: Sequence[str]) -> Iterator[Piece]:
    """Yield the meaning of the fields and cases; a kernel is shown to return some of them."""
    yield (
        f"{file_of(suite.name)} is a safetensors file. Its arrays are named CASE/FIELD and are of "
        "unsigned integers, which are the bits of numbers and codes, row by row. MANIFEST.json "
        "lists the fields, and for each case its parameters; source is the format of x."
    )
    rows = [
        (
            field.name,
            field.role,
            field.format,
            " x ".join(axes_of(suite.operation, field.name).names),
            field.meaning,
        )
        for field in suite.fields
    ]
    yield Table([("field", "role", "format", "shape", "meaning"), *rows])
    shapes = [
        (case.name, case.parameters["source"], "x".join(map(str, case.arrays["x"].shape)))
        for case in cases
    ]
    yield Table([("case", "source", "shape of x"), *shapes])
    yield "To verify a kernel, and to compare these files with the exact model:"
    yield Code("mor-ref verify my_kernel:run --vectors .\nmor-ref golden check .")
    yield (
        f"The function is given the operation ({suite.operation}), the parameters and the inputs "
        "of a case, and returns the expected fields that it has:"
    )
    returned = ", ".join(f"'{name}': {name}" for name in shown)
    yield Code(
        "def run(operation, parameters, inputs):\n"
        "    x = inputs['x'].view(np.float32)  # if parameters['source'] is 'f32'\n"
        "    ...\n"
        f"    return {{{returned}}}"
    )
