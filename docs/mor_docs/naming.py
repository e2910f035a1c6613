"""Where a source names rules: in its words on a definition or a statement, and not in passing.

An id counts in a docstring, in a comment on a line or right above it, and in the id of a case of a
test. There it begins a sentence, or is alone in parentheses or between commas: "ENC-003: a tie"
and "a tie (ENC-003)" name the rule, "as ENC-003 has it" does not. Texts and patterns do not count.
"""

import ast
import functools
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ID = re.compile(r"\b([A-Z]{3})-(\d{3})(?: to \1-(\d{3}))?")
# What looks like an id of a rule, and is the name of something else.
NO_IDS = ("AVX-512", "SHA-256")
_IDS = r"[A-Z]{3}-\d{3}(?:(?:, and |, | and | to )[A-Z]{3}-\d{3})*"
_NAMED = re.compile(rf"(?:^|[.;] ){_IDS}|(?:, |\(){_IDS}(?=[.,;)]|$)")
_DEFINITIONS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

Remark = tuple[int, str]  # a line, and the words on it


def ids_in(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the ids in a text, and whether each is of a range such as ENC-002 to ENC-005."""
    for chapter, first, last in ID.findall(text):
        for number in range(int(first), int(last or first) + 1):
            rule = f"{chapter}-{number:03}"
            if rule not in NO_IDS:
                yield rule, bool(last)


def named_in(path: Path) -> Iterator[tuple[int, str, bool]]:
    """Yield the rules that a source names: the line of the named object, and as `ids_in`."""
    for line, said in _remarks(path):
        for found in _NAMED.finditer(" ".join(said.split())):
            for rule, in_range in ids_in(found[0]):
                yield line, rule, in_range


def lines_of_tests(path: Path) -> set[int]:
    """Return the lines of test functions with their decorators, and of the ids of cases."""
    source = path.read_text()
    if path.suffix != ".py":
        return set(range(1, len(source.splitlines()) + 1))
    found = set()
    for node in _nodes_of(source):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            first = min([node.lineno, *(line.lineno for line in node.decorator_list)])
            found |= set(range(first, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.keyword) and node.arg == "id":
            found.add(node.value.lineno)
    return found


def _remarks(path: Path) -> Iterator[Remark]:
    source = path.read_text()
    if not ID.search(source):
        return
    lines = source.splitlines()
    if path.suffix == ".py":
        yield from _of_definitions(source)
        yield from _by_comments(lines, _python_comments(source))
    else:
        yield from _by_comments(lines, _c_comments(lines))


@functools.lru_cache(maxsize=1)  # a file of tests is asked about twice in a row
def _nodes_of(source: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(source)))


def _of_definitions(source: str) -> Iterator[Remark]:
    """Yield docstrings, and the ids of cases."""
    for node in _nodes_of(source):
        if isinstance(node, _DEFINITIONS):
            yield getattr(node, "lineno", 1), ast.get_docstring(node) or ""
        elif isinstance(node, ast.Call):
            ids = (argument.value for argument in node.keywords if argument.arg == "id")
            yield from ((i.lineno, str(i.value)) for i in ids if isinstance(i, ast.Constant))


def _python_comments(source: str) -> dict[int, tuple[int, str]]:
    """Return, for each line with a comment, the column where it begins and its text.

    Nothing if no line has both a comment and an id: to find the tokens takes long.
    """
    if not any(ID.search(line, line.find("#")) for line in source.splitlines() if "#" in line):
        return {}
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = (token for token in tokens if token.type == tokenize.COMMENT)
    return {token.start[0]: (token.start[1], token.string[1:]) for token in comments}


def _c_comments(lines: list[str]) -> dict[int, tuple[int, str]]:
    parted = ((number, *line.partition("//")) for number, line in enumerate(lines, 1))
    return {number: (len(code), text) for number, code, mark, text in parted if mark}


def _by_comments(lines: list[str], comments: dict[int, tuple[int, str]]) -> Iterator[Remark]:
    """Yield comments that end a line or precede one; those at the top are of the file."""
    above: list[str] = []
    for number, line in enumerate(lines, 1):
        column, text = comments.get(number, (len(line), ""))
        is_code = bool(line[:column].strip())
        if not is_code and text:
            above.append(text)
            continue
        if above and (is_code or len(above) == number - 1):
            yield 1 if len(above) == number - 1 else number, " ".join(above)
        above = []
        if is_code and text:
            yield number, text
