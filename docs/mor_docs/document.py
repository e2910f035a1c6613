"""The specification as a document to print: `python -m mor_docs.document PAGE PDF`.

PAGE is what Sphinx's builder singlehtml makes under the tag print. Chromium prints it: the MathML
of the site needs no other program, while Sphinx's LaTeX knows neither MathML nor SVG.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from html import escape
from itertools import pairwise
from pathlib import Path

from mor_docs.shown import edition
from mor_docs.trace import ROOT

_BODY = re.compile(r'<div class="body" role="main">(.*?)<div class="clearer">', re.DOTALL)
_HEADING = re.compile(
    r'<section[^>]* id="([^"]+)"[^>]*>\s*(?:<span[^>]*></span>)*<h([1-4])>(.*?)</h'
)
_NO_LINK = re.compile(r'<a class="headerlink".*?</a>', re.DOTALL)
_FIRST_CHAPTER = 'id="document-spec/'
# All chapters are on one page, but the links to rules are those of pages.
_TO_RULE = re.compile(r'href="(?:#document-)?spec/[\w-]+(?:\.html)?#')
_TO_CHAPTER = re.compile(r'href="spec/([\w-]+)\.html"')
_STYLES = ("docs/_static/site.css", "docs/_static/rules.css", "docs/mor_docs/print.css")
# The colours of the site have no names on paper.
_COLOURS = {
    "foreground-primary": "#000",
    "foreground-muted": "#555",
    "background-primary": "#fff",
    "background-border": "#bbb",
    "brand-primary": "#14509b",
}


def compose(page: str) -> str:
    """Return a page of Sphinx as a document: a title page, contents, and the chapters."""
    found = _BODY.search(page)
    if found is None:
        raise ValueError("the page has no body; make it with sphinx -b singlehtml -t print")
    body = _NO_LINK.sub("", found[1]).replace("<details ", "<details open ")
    body = _TO_RULE.sub('href="#', _TO_CHAPTER.sub(r'href="#document-spec/\1"', body))
    chapters = body[body.index(_FIRST_CHAPTER) - len("<span ") :]
    front = (
        '<div class="front"><p class="title">mor_ref</p>'
        "<p>The specification of every bit of small number formats, MX, NVFP4 and MoR</p>"
        f"<p>{escape(edition.line())}</p></div>"
    )
    title = "<title>The specification of mor_ref</title>"
    head = f'<head><meta charset="utf-8">{title}<style>{_style()}</style></head>'
    whole = f"<body>{front}{contents(chapters)}{chapters}</body>"
    return f'<!doctype html><html lang="en">{head}{whole}</html>'


def _style() -> str:
    colours = "".join(f"--color-{name}: {value}; " for name, value in _COLOURS.items())
    return "\n".join([f":root {{ {colours} }}", *((ROOT / name).read_text() for name in _STYLES)])


def contents(chapters: str) -> str:
    """Return a list of the chapters, each with its headings."""
    headings = [
        (anchor, int(level), _plain(text)) for anchor, level, text in _HEADING.findall(chapters)
    ]
    top = min(level for _, level, _ in headings)
    lines = []
    for (anchor, level, text), (_, after, _) in pairwise([*headings, ("", top, "")]):
        if level <= top + 1:
            lines.append(f'<li><a href="#{anchor}">{text}</a>')
            lines.append("<ol>" if level == top and after > top else "</li>")
            lines.append("</ol></li>" if level > top and after == top else "")
    return f'<div class="contents"><h1>Contents</h1><ol>{"".join(lines)}</ol></div>'


def _plain(text: str) -> str:
    return re.sub(r"<[^>]+>", "", text).strip()


def print_pdf(document: str, pdf: Path) -> None:
    """Print a document with chromium; the file is there when it is whole."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        sys.exit("spec-pdf prints with chromium, and there is none; apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder:
        page, printed = Path(folder) / "page.html", Path(folder) / "page.pdf"
        page.write_text(document, encoding="utf-8")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        options += ["--no-pdf-header-footer", "--generate-pdf-document-outline"]
        command = [
            program,
            *options,
            f"--user-data-dir={folder}/profile",
            f"--print-to-pdf={printed}",
            page.as_uri(),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode or not printed.exists():
            sys.exit(f"chromium printed nothing: {done.stderr.strip().splitlines()[-1:]}")
        shutil.move(printed, pdf)


if __name__ == "__main__":
    print_pdf(compose(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2]))
