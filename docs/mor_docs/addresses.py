"""Pages at the addresses that do not move: each leads to the place of a rule or a cause.

`spec/ENC-003` is a directory with an `index.html`, so that every server finds it by this address.
"""

import re
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from sphinx.application import Sphinx

from mor_docs.links import Page
from mor_ref.addresses import cause_path, rule_path
from mor_ref.mistakes.catalogue import CAUSES, FORMER_IDS, id_of

# Pages that have another name now; their former addresses lead to them.
FORMER_PAGES = {
    "guide/which-scheme": "guide/which-representation",
    "guide/more-schemes": "guide/more-representations",
}

if TYPE_CHECKING:
    from mor_docs.trace import Trace


def write(app: Sphinx, failure: Exception | None) -> None:
    """Write a page for each rule; in the site of this project, for causes and former pages, too."""
    if failure is None and app.builder.format == "html" and not app.tags.has("print"):
        site = Path(app.outdir)
        trace: Trace = app.env.rule_trace  # type: ignore[attr-defined]
        page_of = cache(Page)
        for rule in trace.rules.values():
            chapter = f"spec/{rule.chapter}.html"
            if rule.id in page_of(site / chapter).ids:  # else an error of the rule stops the build
                _write(site, rule_path(rule.id), f"{chapter}#{rule.id}", f"{rule.id} {rule.title}")
        if (Path(app.srcdir) / "explorer").is_dir():  # the project is this one
            for name in (*CAUSES, *FORMER_IDS):
                cause = CAUSES[id_of(name)]
                title = f"{cause.name}: {cause.summary}"
                place = f"spec/deviations.html#{anchor_of(cause.name)}"
                _write(site, cause_path(name), place, title)
            for former, now in FORMER_PAGES.items():
                page = site / f"{former}.html"
                page.parent.mkdir(exist_ok=True)
                page.write_text(forwarding("../" + f"{now}.html", now), encoding="utf-8")


def anchor_of(cause: str) -> str:
    """Return the anchor of a cause on the page of all.

    >>> anchor_of("SCL-002/floor-left-out")
    'deviation-scl-002-floor-left-out'
    """
    return f"deviation-{re.sub('[^a-z0-9]+', '-', cause.lower())}"


def _write(site: Path, path: str, place: str, title: str) -> None:
    """Write a page that leads to a place of the site at once."""
    page = site / path / "index.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(forwarding("../" * (path.count("/") + 1) + place, title), encoding="utf-8")


def forwarding(to: str, title: str) -> str:
    """Return a page that leads to a link at once; browsers that do not follow it show the link."""
    link, shown = escape(to), escape(title)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<title>{shown}</title>\n<link rel="canonical" href="{link}">\n'
        f'<meta http-equiv="refresh" content="0; url={link}">\n</head>\n'
        f'<body>\n<p><a href="{link}">{shown}</a></p>\n</body>\n</html>\n'
    )
