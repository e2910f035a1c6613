"""The report on README's kernel: as the command prints it, and as a page of its own."""

import functools
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path

from mor_docs.trace import ROOT, rules_of

PAGE = "example-report.html"
COMMAND = ("verify", "mykernel:run", "--suite", "mx_blocks")
_KERNEL = re.compile(r"```python\n# mykernel\.py\n(.*?)```", re.DOTALL)
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
    found = _KERNEL.search((ROOT / "README.md").read_text("utf-8"))
    if found is None:
        raise ValueError("README.md has no block of Python that begins with # mykernel.py")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "mykernel.py").write_text(found[1], "utf-8")
        program = (
            f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom mor_ref.cli import main\nmain()"
        )
        done = subprocess.run(  # noqa: S603, README's own kernel
            [sys.executable, "-c", program, *COMMAND, "--report", "report.html"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 1:
            raise ValueError(f"README's kernel has a mismatch, but: {done.stdout}{done.stderr}")
        return done.stdout, (Path(folder) / "report.html").read_text("utf-8")


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
