"""Plain English: phrases that make a sentence hard to read, with what to write instead."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from mor_ref.cli import app

ROOT = Path(__file__).resolve().parent.parent
INSTEAD = {
    r"\bvoices?\b": "implementation",
    r"\bheld to\b": "checked against, or compared with",
    r"(?<!there )\bis no (?!more\b|longer\b|less\b)[a-z]+": "is not a",
    r"\bof which\b": "a sentence of its own",
    r"\bthe kept\b": "the bundled",
    r"\bfolders?\b": "directory",
}
IN_DOCSTRINGS = {r"\AWhat\b": "a verb (functions) or a noun (records) first"}
CODE = re.compile(r"^(`{3,}).*?^\1$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
PAGES = ("README.md", "docs/index.md", "docs/guide/*.md", "docs/reference/*.md", "spec/*.md")
FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in (*PAGES, "mor_ref/**/*.py")
    for path in ROOT.glob(pattern)
)


def found_in(text: str, instead: dict[str, str]) -> Iterator[str]:
    """Yield a sentence for each phrase of a text, outside of code."""
    prose = " ".join(CODE.sub("`code`", text).split())
    for pattern, better in instead.items():
        for phrase in re.finditer(pattern, prose, re.IGNORECASE):
            around = prose[max(0, phrase.start() - 30) : phrase.end() + 30]
            yield f"'{phrase[0]}' in '{around}': write {better}"


def found_in_file(name: str) -> list[str]:
    text = (ROOT / name).read_text()
    if name.endswith(".md"):
        return list(found_in(text, INSTEAD))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, documented))
    docstrings = (ast.get_docstring(node) or "" for node in nodes)
    return [line for text in docstrings for line in found_in(text, INSTEAD | IN_DOCSTRINGS)]


@pytest.mark.parametrize("name", FILES)
def test_prose(name):
    lines = found_in_file(name)
    assert not lines, "\n".join(lines)


def helps_of(command, name="mor-ref"):
    yield name, command.help or ""
    for parameter in command.params:
        yield f"{name} {parameter.name}", getattr(parameter, "help", None) or ""
    for inner_name, inner in getattr(command, "commands", {}).items():
        yield from helps_of(inner, f"{name} {inner_name}")


def test_prose_of_help():
    helps = list(helps_of(get_command(app)))
    assert len(helps) > 40
    assert [(name, line) for name, text in helps for line in found_in(text, INSTEAD)] == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Three voices; a folder of\nwhich the kept is no link.", 5),
        ("It is no longer so, there is no limit, and `folder`.\n```\nheld to\n```\n", 0),
        ("What is given. What is kept.", 1),
    ],
)
def test_phrases_are_found(text, count):
    assert len(list(found_in(text, INSTEAD | IN_DOCSTRINGS))) == count
