"""The report on README's kernel: as the command prints it, and as a page of its own."""

import functools
import re
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path

from mor_docs.shown.running import block_of, mor_ref_in
from mor_docs.trace import ROOT, rules_of

PAGE = "example-report.html"
COMMAND = ("verify", "mykernel:run", "--suite", "mx_blocks")
_RULE = re.compile(r"\b[A-Z]{3}-\d{3}\b")
# Lines of the report that a reader looks for, what each answers, and their look.
_ANSWERS = (
    (re.compile(r"^\w+: mismatch"), "is it wrong?", "bad"),
    (re.compile(r"^  first mismatching field"), "in which step?", "bad"),
    (re.compile(r"^  all \S+ mismatches are explained"), "why, and which rule says so", "cause"),
    (re.compile(r"^  case .* the first at"), "which bits, and on which input", "bits"),
)
_LAST = re.compile(r"^    at \[")  # more entries of a case, which the page has


@functools.cache
def _made() -> tuple[str, str]:
    """Verify README's kernel, and return the text and the page."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "mykernel.py").write_text(block_of("README.md", "# mykernel.py"), "utf-8")
        done = mor_ref_in(folder, *COMMAND, "--report", "report.html", "--site", "./")
        if done.returncode != 1:
            raise ValueError(f"README's kernel has a mismatch, but: {done.stdout}{done.stderr}")
        return done.stdout, (folder / "report.html").read_text("utf-8")


def write(target: Path) -> None:
    """Write the report as a page, next to the pages of the site."""
    (target / PAGE).write_text(_made()[1], encoding="utf-8")


def console() -> str:
    """Show what the command prints, and the question that each line of it answers.

    The links are those of a page at the top of the site.
    """
    command = " ".join(("mor-ref", *COMMAND))
    shown = "\n".join(_lines(_made()[0]))
    return (
        "```{raw} html\n"
        f'<figure class="report"><figcaption><code>$ {escape(command)}</code></figcaption>\n'
        f"<pre>{shown}</pre>\n"
        f'<p><a href="{PAGE}">The same report as a page</a>, with every field and picture</p>'
        "</figure>\n```\n"
    )


def _lines(report: str) -> Iterator[str]:
    """Yield the lines up to the first wrong entry, each in a look of its own."""
    for line in report.splitlines():
        if _LAST.match(line):
            return
        found = next((one for one in _ANSWERS if one[0].match(line)), None)
        note = f'<span class="answer">{found[1]}</span>' if found else ""
        kind = f"line {found[2]}" if found else "line"
        indent = len(line) - len(line.lstrip())
        style = f' style="--indent: {indent}ch"' if indent else ""
        yield f'<span class="{kind}"{style}>{_with_links(line.strip())}{note}</span>'


def _with_links(line: str) -> str:
    chapters = {rule.id: rule.chapter for rule in rules_of(ROOT / "spec")}

    def link(found: re.Match[str]) -> str:
        return f'<a href="spec/{chapters[found[0]]}.html#{found[0]}">{found[0]}</a>'

    shown = re.sub(r"`([^`]*)`", r"<b>\1</b>", escape(line))
    return _RULE.sub(link, shown)
