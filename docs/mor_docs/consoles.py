"""Blocks of consoles: their lines wrap, as in a terminal, and the rest of a line is set in."""

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

# Cells of a line of a table, which is as wide as a terminal at most.
_OF_TABLE = re.compile(r"\S {2,}\S|[─│━┃]")
_WIDTH = 92
_BLOCK = re.compile(
    r'(<div class="wraps [^>]*><div[^>]*><pre>(?:<span></span>)?)(.*?)</pre>', re.DOTALL
)
_TAG, _INDENT = re.compile(r"<[^>]*>"), re.compile(" *")
_OPTION, _UNBROKEN = re.compile(r"(?<![\w-])(--[a-z][\w-]*)"), r'<span class="unbroken">\1</span>'


def connect(app: Sphinx) -> None:
    """Connect the transform of blocks, and that of the finished pages."""
    app.add_transform(Wrapping)
    app.connect("html-page-context", _hang_lines)


class Wrapping(SphinxTransform):
    """Marks the blocks that wrap."""

    default_priority = 610

    def apply(self, **_: Any) -> None:  # noqa: D102, what every transform does
        for block in self.document.findall(nodes.literal_block):
            text = block.astext()
            language = block.get("language")
            is_typed = text.startswith(">>>") or language == "sh"
            if is_typed or (language in ("console", "text") and wraps(text)):
                block["classes"].append("wraps")


def wraps(text: str) -> bool:
    """Return whether lines may wrap: not those of a table."""
    lines = text.splitlines()
    is_narrow = all(len(line) <= _WIDTH for line in lines)
    return not (is_narrow and any(map(_OF_TABLE.search, lines)))


def _hang_lines(app: Sphinx, page: str, template: str, context: dict[str, Any], _: object) -> None:
    del app, page, template
    if "body" in context:
        context["body"] = with_rows(context["body"])


def with_rows(body: str) -> str:
    """Make an element of each line of the blocks that wrap."""
    return _BLOCK.sub(_rows_of, body)


def _rows_of(found: re.Match[str]) -> str:
    lines = found[2].split("\n")
    if any(line.count("<span") != line.count("</span>") for line in lines):
        return found[0]  # an element of several lines
    return found[1] + "\n".join(map(_row, lines)) + "</pre>"


def _row(line: str) -> str:
    """Return a line as an element, set in from its own indent on; options are not broken."""
    if not line:
        return line
    indent = _INDENT.match(_TAG.sub("", line)).end()  # type: ignore[union-attr]  # of any length
    style = f' style="--indent: {indent}ch"' if indent else ""
    return f'<span class="row"{style}>{_OPTION.sub(_UNBROKEN, line)}</span>'
