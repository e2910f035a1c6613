"""How the text of the pages is set: powers, signs that keep together, tables on narrow screens."""

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

LOG = logging.getLogger(__name__)
_AS_WRITTEN = (
    nodes.literal,
    nodes.literal_block,
    nodes.doctest_block,
    nodes.raw,
    nodes.comment,
    nodes.title,
    nodes.math,
    nodes.math_block,
    addnodes.desc_signature,
)
# A power such as 2^23, 2^-6 or 2^(E(a) + 1), after its base.
_POWER = re.compile(r"(?<=[\w)])\^(?:\(((?:[^()]|\([^()]*\))*)\)|([-−]?\w+))")
# A piece of an exponent that was not raised: that of 2^min(e, 127), which needs 2^(min(e, 127)).
_TORN = re.compile(r"[(\[^]|\.\d")
_UNRAISED = re.compile(r"[\w)]\^.{0,9}")
_RULE_ID = re.compile(r"[A-Z]{3}-\d{3}")
_OPTION = re.compile(r"--[\w-]+( [\w.=-]{1,12}| '[^']{1,16}')?")
_END_OF_LINE = re.compile(r"<br ?/?>|\n")
# Spaces in a number of percent, in an approximate number and in an interval, which no line breaks.
_WITHIN_NUMBERS = re.compile(r"(?<=\d) (?=%)|(?<=≈) |(?<=\d) (?=to [+-]\d)|(?<=\d to) (?=[+-]\d)")
# Characters in the longest line of a column from which on it is text, and needs room; or words.
_TEXT, _WORDS = 36, 14
# What has a class of its own: nodes, their whole text, and the class.
_MARKED = (
    (nodes.literal, _OPTION, "unbroken"),
    (nodes.reference, _RULE_ID, "rule-id"),
)


class Typography(SphinxTransform):
    """After ids of rules have become links."""

    default_priority = 600

    def apply(self, **_: Any) -> None:  # noqa: D102, what every transform does
        for text in list(self.document.findall(nodes.Text)):
            if not _is_within(text, _AS_WRITTEN):
                whole = _WITHIN_NUMBERS.sub("\N{NO-BREAK SPACE}", text)
                parts = with_powers(whole)
                for power in torn_powers(parts):
                    message = "%r is not raised as a whole: put its exponent in ()"
                    LOG.warning(message, power, location=text.parent)
                text.parent.replace(text, parts)
        _mark(self.document)
        for block in self.document.findall(nodes.literal_block):
            _drop_empty_end(block)
        for table in self.document.findall(nodes.table):
            if "trace" not in table["classes"]:
                _mark_columns_of_text(table)
        for image in self.document.findall(nodes.image):
            image.parent["classes"].append("of-picture")


def _mark(document: nodes.document) -> None:
    """Give nodes of a certain text their class."""
    for node, pattern, name in _MARKED:
        for found in document.findall(node):
            if pattern.fullmatch(found.astext()):
                found["classes"].append(name)


def _is_within(node: nodes.Node, kinds: tuple[type[nodes.Node], ...]) -> bool:
    above = node.parent
    while above is not None and not isinstance(above, kinds):
        above = above.parent
    return above is not None


def with_powers(text: str) -> list[nodes.Node]:
    """Return a text with raised powers."""
    parts: list[nodes.Node] = []
    end = 0
    for found in _POWER.finditer(text):
        raised = (found[1] or found[2]).replace("-", "−")
        parts += [nodes.Text(text[end : found.start()]), nodes.superscript("", raised)]
        end = found.end()
    return [*parts, nodes.Text(text[end:])]


def torn_powers(parts: list[nodes.Node]) -> list[str]:
    """Return each power of a text with raised powers that is not raised as a whole."""
    texts = [part.astext() for part in parts]
    powers = zip(texts[::2], texts[1::2], texts[2::2], strict=False)
    torn = [f"{base[-9:]}^{raised}{rest[:9]}" for base, raised, rest in powers if _TORN.match(rest)]
    return torn + [found[0] for text in texts[::2] for found in _UNRAISED.finditer(text)]


def _drop_empty_end(block: nodes.literal_block) -> None:
    """Remove the line between doctest's expectation and the end of the block."""
    text = block.astext()
    if block.rawsource == text and text.endswith("\n"):
        block.rawsource = text.rstrip("\n")
        block[:] = [nodes.Text(block.rawsource)]


def _mark_columns_of_text(table: nodes.table) -> None:
    """Mark the columns that need room on a narrow screen: those of text, and of some words."""
    rows = list(table.findall(nodes.row))
    heads = sum(isinstance(row.parent, nodes.thead) for row in rows)
    for cells in zip(*(row.children for row in rows), strict=False):
        widths = [max(map(len, _END_OF_LINE.split(cell.astext()))) for cell in cells]
        is_of_words = max(widths[heads:], default=0) >= _WORDS
        kind = "of-text" if max(widths) >= _TEXT else "of-words" if is_of_words else None
        for cell in cells if kind else ():
            cell["classes"].append(kind)
