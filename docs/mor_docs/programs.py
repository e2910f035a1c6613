"""The lines of the exact model that implement a rule, as the pages show them."""

import ast
import functools
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mor_docs.trace import Place

MODEL = "mor_ref/exact/"
# A rule of steps that are spread over more lines than that is read in the copy of the source.
MOST_LINES = 60


@dataclass(frozen=True)
class Piece:
    """Lines of a source: a function, or a statement of one."""

    path: str
    line: int
    text: str


def pieces_of(root: Path, places: list[Place]) -> list[Piece]:
    """Return what the exact model does for a rule, each line once; nothing if it is too long."""
    found: list[Piece] = []
    for path in dict.fromkeys(place.path for place in places if place.path.startswith(MODEL)):
        lines = {place.line for place in places if place.path == path}
        spans = sorted({span for line in lines if (span := _span(root / path, line))})
        source = (root / path).read_text().splitlines()
        found += [
            Piece(path, first, textwrap.dedent("\n".join(_lines(source, first, last, without))))
            for first, last, without in _outermost(spans)
        ]
    return found if sum(piece.text.count("\n") + 1 for piece in found) <= MOST_LINES else []


Span = tuple[int, int, tuple[int, int]]  # the first line, the last one, and those of the docstring


def _outermost(spans: list[Span]) -> Iterator[Span]:
    end = 0
    for span in sorted(spans, key=lambda span: (span[0], -span[1])):
        if span[1] > end:
            yield span
            end = span[1]


def _lines(source: list[str], first: int, last: int, without: tuple[int, int]) -> Iterator[str]:
    for number in range(first, last + 1):
        if not without[0] <= number <= without[1]:
            yield source[number - 1].rstrip()


def _span(path: Path, line: int) -> Span | None:
    """Return the longest statement that begins on a line; None for a module or a class."""
    starting = _starting(path).get(line)
    if starting is None or isinstance(starting, (ast.ClassDef, ast.Expr)):  # a docstring
        return None
    without = (0, -1)
    if isinstance(starting, ast.FunctionDef) and ast.get_docstring(starting):
        docstring = starting.body[0]
        without = (docstring.lineno, docstring.end_lineno or docstring.lineno)
    return line, _last(starting), without


def _last(node: ast.AST) -> int:
    """Return the last line of a statement, or of a case of `match`."""
    return max(getattr(part, "end_lineno", 0) for part in ast.walk(node))


@functools.cache
def _starting(path: Path) -> dict[int, ast.AST]:
    """Return the outermost statement that begins on each line."""
    found: dict[int, ast.AST] = {}
    for node in ast.walk(ast.parse(path.read_text())):  # those above come first
        if isinstance(node, ast.match_case):
            found.setdefault(node.pattern.lineno, node)
        elif isinstance(node, ast.stmt):
            found.setdefault(node.lineno, node)
    return found
