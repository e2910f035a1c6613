"""How the text of the pages is set: powers, signs that keep together, tables on narrow screens."""

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

_AS_WRITTEN = (
    nodes.literal,
    nodes.literal_block,
    nodes.doctest_block,
    nodes.raw,
    nodes.comment,
    nodes.title,
    addnodes.desc_signature,
)
# A power such as 2^23, 2^-6 or 2^(E(a) + 1), after its base.
_POWER = re.compile(r"(?<=[\w)])\^(?:\(((?:[^()]|\([^()]*\))*)\)|([-−]?\w+))")
_RULE_ID = re.compile(r"[A-Z]{3}-\d{3}")
_END_OF_LINE = re.compile(r"<br ?/?>|\n")
# Characters in the longest line of a column from which on it is text, and needs room.
_TEXT = 36


class Typography(SphinxTransform):
    """After ids of rules have become links."""

    default_priority = 600

    def apply(self, **_: Any) -> None:  # noqa: D102, what every transform does
        for text in list(self.document.findall(nodes.Text)):
            if not _is_within(text, _AS_WRITTEN):
                text.parent.replace(text, _with_powers(text.replace("≈ ", "≈\N{NO-BREAK SPACE}")))
        for link in self.document.findall(nodes.reference):
            if _RULE_ID.fullmatch(link.astext()):
                link["classes"].append("rule-id")
        for block in self.document.findall(nodes.literal_block):
            _drop_empty_end(block)
        for table in self.document.findall(nodes.table):
            if "trace" not in table["classes"]:
                _mark_columns_of_text(table)
        for image in self.document.findall(nodes.image):
            image.parent["classes"].append("of-picture")


def _is_within(node: nodes.Node, kinds: tuple[type[nodes.Node], ...]) -> bool:
    above = node.parent
    while above is not None and not isinstance(above, kinds):
        above = above.parent
    return above is not None


def _with_powers(text: str) -> list[nodes.Node]:
    """Return a text with raised powers."""
    parts: list[nodes.Node] = []
    end = 0
    for found in _POWER.finditer(text):
        raised = (found[1] or found[2]).replace("-", "−")
        parts += [nodes.Text(text[end : found.start()]), nodes.superscript("", raised)]
        end = found.end()
    return [*parts, nodes.Text(text[end:])]


def _drop_empty_end(block: nodes.literal_block) -> None:
    """Remove the line between doctest's expectation and the end of the block."""
    text = block.astext()
    if block.rawsource == text and text.endswith("\n"):
        block.rawsource = text.rstrip("\n")
        block[:] = [nodes.Text(block.rawsource)]


def _mark_columns_of_text(table: nodes.table) -> None:
    rows = list(table.findall(nodes.row))
    for cells in zip(*(row.children for row in rows), strict=False):
        lines = (line for cell in cells for line in _END_OF_LINE.split(cell.astext()))
        if max(map(len, lines)) >= _TEXT:
            for cell in cells:
                cell["classes"].append("of-text")
