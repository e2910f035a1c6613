"""The site that the tests of the documentation build once, and made-up projects."""

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

from extras import imported
from mor_docs.trace import rules_of

imported("sphinx_needs")
imported("furo")


ROOT = Path(__file__).resolve().parent.parent
RULES = rules_of(ROOT / "spec")


def build(source, out, *options):
    """Run Sphinx as make docs does."""
    command = ["-m", "sphinx", "-b", "html", "-q", "-W", "--keep-going", "--nitpicky", *options]
    return subprocess.run(
        [sys.executable, *command, source, out],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )


class Page(HTMLParser):
    """The ids of a page, its links, and the files that it loads."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loads = set(), set(), set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        self.ids |= {known[key] for key in ("id", "name") if known.get(key)}
        if tag == "a" and "href" in known:
            self.links.add(known["href"])
        if tag in ("script", "img", "iframe") and "src" in known:
            self.loads.add(known["src"])
        if tag == "link" and known.get("rel") in ("stylesheet", "icon", "preload"):
            self.loads.add(known["href"])


def cells(text, column):
    """Return a column of the last table in a text of MyST, without its marks."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    start = max(i for i, line in enumerate(lines) if set(line) <= set("|- ")) + 1
    return [line.strip("| ").split(" | ")[column].strip("` ") for line in lines[start:]]
