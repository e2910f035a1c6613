"""Links of the finished site: one that leads nowhere stops the build, whoever made it.

Sphinx checks the references that it resolves itself. Addresses that are written as they are (of
cards, of raw HTML, of rules, sources and suites) are checked here, in the pages as they came out.
"""

import os
import re
from collections.abc import Iterator
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sphinx.application import Sphinx
from sphinx.errors import SphinxError

# The attribute of a tag that leads to another file, or loads it.
ADDRESSES = {"a": "href", "link": "href", "script": "src", "img": "src", "iframe": "src"}


# There are hundreds of thousands of tags: a parser of HTML takes four times as long.
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_PROGRAM = re.compile(r"(<(script|style)\b[^>]*>).*?</\2>", re.DOTALL)
_TAG = re.compile(r'<([a-z][a-z0-9]*)\s((?:[^<>"]|"[^"]*")*)>')
_ATTRIBUTE = re.compile(r'(?:^|\s)(id|name|href|src)="([^"]*)"')


class Page:
    """The ids of a page, its links, and the files that it loads."""

    def __init__(self, path: Path) -> None:
        self.ids: set[str] = set()
        self.links: set[str] = set()
        for tag, attributes in _TAG.findall(_tags_alone(path.read_text("utf-8"))):
            known = {name: unescape(value) for name, value in _ATTRIBUTE.findall(attributes)}
            self.ids |= {known[name] for name in ("id", "name") if name in known}
            address = known.get(ADDRESSES.get(tag, ""))
            if address is not None:
                self.links.add(address)


def _tags_alone(text: str) -> str:
    """Return the text of a page without comments, scripts and styles."""
    return _PROGRAM.sub(r"\1", _COMMENT.sub("", text))


def check(app: Sphinx, failure: Exception | None) -> None:
    """Warn of dead links when Sphinx has finished the site."""
    if failure is None and app.builder.format == "html" and not app.tags.has("print"):
        found = [f"{page} links to {link}" for page, link in dead_links(Path(app.outdir))]
        if found:
            raise SphinxError("links that lead nowhere:\n" + "\n".join(found))


def dead_links(site: Path) -> Iterator[tuple[str, str]]:
    """Yield links inside of a site to a file or an id that does not exist."""
    page_of = cache(Page)
    for path in sorted(site.rglob("*.html")):
        for link in sorted(page_of(path).links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            named = os.path.normpath(path.parent / unquote(parts.path))
            target = Path(named) if parts.path else path
            anchor = unquote(parts.fragment)
            # In an address of the explorer, name=value is not an id.
            has_ids = anchor and "=" not in anchor and target.suffix == ".html"
            if not target.is_file() or (has_ids and anchor not in page_of(target).ids):
                yield path.relative_to(site).as_posix(), link
