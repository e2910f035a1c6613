"""Plain English: phrases that make a sentence hard to read, each with a better one."""

import ast
import functools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from mor_docs.trace import RULE, rules_of
from typer.main import get_command

from mor_ref.cli import app

ROOT = Path(__file__).resolve().parent.parent
NO_QUESTION = r"(?! to\b)(?![^.:;]*\?)"
BEFORE_NOUNS = "after|and|before|by|for|from|in|of|on|than|that|with"
# "bit-exact in the given part" is a verdict of reports.
INSTEAD = {
    r"\bvoices?\b": "implementation",
    r"\bheld to\b": "checked against, or compared with",
    r"(?<!there )\bis no (?!more\b|longer\b|less\b)[a-z]+": "is not a",
    r"(?<!there )\bare no (?!more\b|longer\b|less\b)[a-z]+": "are not",
    r"\bleave (?:it|them|the group) away\b": "omit",
    r"\bof which\b": "a sentence of its own",
    r"\bthe kept\b|\bkept (?:digests|files|ones|rates|vectors)\b": "the bundled",
    r"\b(?:digests?|files|rates) that (?:is|are) kept\b": "bundled",
    r"\bfolders?\b": "directory",
    r"\bbesides?\b": "next to, or other than",
    r"\bt(?:ells?|elling|old)\b": "says, names, sets, or distinguishes",
    r"\bgives\b|\bg(?:ive|iven|ave) back\b": "returns, or is, has, writes",
    r"\b(?:choices|encoders|operations|profiles|quantizers|results|they|two) part\b": "differ",
    r"\bstands?\b(?! for\b|-in)": "is",
    rf"\b(?<!bit-exact in )(?-i:what) (?:is|are|was|were|has|had)\b{NO_QUESTION}": "a noun",
    rf"(?<!bit-exact )\b(?:{BEFORE_NOUNS}) (?-i:what)\b{NO_QUESTION}": "a noun: the rest",
    r"\bunder gam\b": "with gam scaling",
}
WORDS_THAT_GO = {"beside", "besides", "folder", "folders", "tell", "telling", "tells", "told"}
WORDS_THAT_GO |= {"voice", "voices"}
A_NOUN_FIRST = {rf"(?<=\. )(?-i:What)\b{NO_QUESTION}": "a noun: the rest"}
IN_DOCSTRINGS = {r"\AWhat\b": "a verb (functions) or a noun (records) first"} | A_NOUN_FIRST
NO_VERBS = (
    *("A", "All", "An", "At", "Each", "Every", "For", "How", "In", "It", "No", "None", "Of", "One"),
    *("So", "Some", "That", "The", "Their", "There", "These", "This", "Those", "What", "When"),
    *("Where", "Whether", "Which", "Who", "Whoever", "Whose", "Why"),
)
# A name of code, a preposition, and "Codes" or "Kills": the imperative has no s.
NO_IMPERATIVES = ("By", "However", "Under", "With", r"(?-i:[a-z]\w*|\w[a-z]*(?<![su])s)")
IN_FUNCTIONS = {rf"\A(?:{'|'.join((*NO_VERBS, *NO_IMPERATIVES))})\b": "a verb first"}
IN_CAPITALS = ("MUST", "SHALL", "SHOULD", "MAY")  # of BCP 14, and words of English
# Their strings are in the manifest of the golden files, which a change of words must not change.
IN_MANIFEST = ("mor_ref/golden/inputs/", "mor_ref/golden/suites/")
# The docstring of a deviation is its summary: a noun, as of a record.
NOT_OF_FUNCTIONS = (*IN_MANIFEST, "mor_ref/deviations/")
MOST_WORDS = 30  # of a sentence; 25 are the aim
OF_BCP_14 = "are to be interpreted as described in BCP 14"  # a sentence that RFC 8174 prescribes
SYMBOLS_OF_SCALINGS = re.compile(r"\bunder `(?:gam|e8m0|fp32)`", re.IGNORECASE)
MATH = re.compile(r"^\$\$.*?^\$\$|\$[^$\n]+\$", re.MULTILINE | re.DOTALL)
NO_SENTENCES = re.compile(r"^(?:\||#|:::|:[\w-]+:|\(\w+\)=)")  # tables, headings, directives
VERBS_FIRST = re.compile(r"(?:mor_ref|docs/mor_docs|benchmarks|experiments|tests)/.*\.py$")
STRING_OR_COMMENT = re.compile(
    r""" \"{3}(?:\\.|[^\\])*?\"{3} | '{3}(?:\\.|[^\\])*?'{3} | "(?:\\.|[^"\\\n])*" """
    r"""| '(?:\\.|[^'\\\n])*' | \#([^\n]*) """,
    re.VERBOSE | re.DOTALL,
)
CODE = re.compile(r"^(`{3,}).*?^\1$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
PAGES = (
    *("*.md", "docs/*.md", "docs/guide/*.md", "docs/reference/*.md", "docs/explorer/index.html"),
    *("spec/*.md", "examples/**/*.md", "experiments/**/*.md", "tests/**/*.md", "mor_ref/**/*.html"),
)
PROGRAMS = (
    *("mor_ref/**/*.py", "docs/**/*.py", "benchmarks/*.py", "examples/**/*.py", "tests/**/*.py"),
    *("*.py", "experiments/**/*.py", "mor_ref/**/*.cu", "mor_ref/**/*.cuh", "mor_ref/**/*.h"),
    *("tests/**/*.cu", "examples/**/*.c", "examples/**/*.sv", "docs/explorer/*.js"),
)
FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in (*PAGES, *PROGRAMS)
    for path in ROOT.glob(pattern)
    if path != Path(__file__)  # its strings are such phrases
)


def found_in(text: str, instead: dict[str, str]) -> Iterator[str]:
    """Yield a sentence for each phrase of a text, outside of code."""
    prose = " ".join(CODE.sub("`code`", text).split())
    for pattern, better in instead.items():
        for phrase in re.finditer(pattern, prose, re.IGNORECASE):
            around = prose[max(0, phrase.start() - 30) : phrase.end() + 30]
            yield f"'{phrase[0]}' in '{around}': write {better}"


def without_fences(text: str) -> str:
    """Return a page with its rules as prose: their fences would make them code."""
    return RULE.sub(r"\g<title>\n\g<options>\n\g<text>", text)


def comments_of(text: str) -> Iterator[str]:
    """Yield the comments of a source; those on lines that follow one another are one."""
    last = 0
    joined: list[str] = []
    for found in STRING_OR_COMMENT.finditer(text):
        if found[1] is not None:
            if joined and text.count("\n", last, found.start()) == 1:
                joined[-1] += found[1]
            else:
                joined.append(found[1])
            last = found.end()
    yield from joined


def comments_of_c(text: str) -> Iterator[str]:
    """Yield the comments of a source in C, CUDA or SystemVerilog, as `comments_of` does."""
    for block in re.finditer(r"(?:^ *//.*\n)+|//.*|/\*[\s\S]*?\*/", text, re.MULTILINE):
        yield re.sub(r"^ *//", "", block[0], flags=re.MULTILINE)


@functools.lru_cache(maxsize=1)
def nodes_of(text: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(text)))


def found_in_source(
    text: str, *, but_strings: bool = False, but_comments: bool = False
) -> Iterator[str]:
    """Yield a sentence for each phrase of docstrings, of other strings and of comments."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = nodes_of(text)
    bodies = [node.body for node in nodes if isinstance(node, documented)]
    docstrings = {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) in docstrings:
                yield from found_in(node.value.strip(), INSTEAD | IN_DOCSTRINGS)
            elif not but_strings:
                yield from found_in(node.value, INSTEAD)
    if not but_comments:
        for comment in comments_of(text):
            yield from found_in(comment, INSTEAD)


def no_verbs_in(text: str) -> Iterator[str]:
    """Yield a sentence for each function that does not begin with a verb.

    Properties are not read, for they are nouns; nor are tests: their docstrings are reasons.
    """
    functions = (node for node in nodes_of(text) if isinstance(node, ast.FunctionDef))
    for function in functions:
        is_property = any("property" in ast.unparse(one) for one in function.decorator_list)
        if not is_property and not function.name.startswith("test_"):
            docstring = ast.get_docstring(function) or ""
            yield from (f"{function.name}: {line}" for line in found_in(docstring, IN_FUNCTIONS))


def found_in_file(name: str) -> list[str]:
    text = (ROOT / name).read_text()
    if name.endswith((".md", ".html")):
        # The title of a rule may be "What a unit becomes".
        return [*found_in(without_fences(text), INSTEAD), *found_in(text, A_NOUN_FIRST)]
    if not name.endswith(".py"):
        return [line for comment in comments_of_c(text) for line in found_in(comment, INSTEAD)]
    in_manifest = name.startswith(IN_MANIFEST)
    # The strings of tests are data: what the code says, and what must be refused.
    but_strings = in_manifest or name.startswith("tests/")
    lines = list(found_in_source(text, but_strings=but_strings, but_comments=in_manifest))
    begins_with_verbs = VERBS_FIRST.match(name) and not name.startswith(NOT_OF_FUNCTIONS)
    return [*lines, *(no_verbs_in(text) if begins_with_verbs else ())]


@pytest.mark.parametrize("directory", sorted({str(Path(name).parent) for name in FILES}))
def test_prose(directory):
    names = [name for name in FILES if str(Path(name).parent) == directory]
    lines = [f"{name}: {line}" for name in names for line in found_in_file(name)]
    assert not lines, "\n".join(lines)


def sentences_of(text: str) -> Iterator[str]:
    """Yield the sentences of a page, and of its rules, without code, mathematics and tables."""
    prose = MATH.sub("math", CODE.sub(_code, without_fences(text)))
    lines = ["" if NO_SENTENCES.match(line) else line for line in prose.split("\n")]
    for paragraph in re.split(r"\n\s*\n|\n(?= *(?:[*-]|\d+\.) )", "\n".join(lines)):
        joined = re.sub(r"\]\([^)]*\)|</?a\b[^>]*>", "", " ".join(paragraph.split()))
        yield from re.split(r"(?<=[.!?])[)*_]* ", joined)


def _code(found: re.Match[str]) -> str:
    """Return a word for code in a line, and an empty paragraph for a block of code."""
    return "\n\n" if found[1] else "code"


def too_long(text: str) -> list[str]:
    """Return the sentences of a page that have more than `MOST_WORDS` words."""
    words = re.compile(r"[A-Za-z0-9][\w'./-]*")
    own = (one for one in sentences_of(text) if OF_BCP_14 not in one)
    return [one for one in own if len(words.findall(one)) > MOST_WORDS]


PAGES_OF_TEXT = [name for name in FILES if re.match(r"(?:spec|docs/guide)/.*\.md$|README", name)]


@pytest.mark.parametrize("name", PAGES_OF_TEXT)
def test_sentences_are_short(name):
    text = (ROOT / name).read_text()
    assert too_long(text) == []
    assert SYMBOLS_OF_SCALINGS.findall(text) == []  # "with gam scaling"


def test_long_sentences_are_found():
    """In prose, lists and rules; words of code, mathematics, tables and headings do not count."""
    long = "word " * 31
    assert len(too_long(f"Short. {long}end. Short.\n\n* {long}\n* {long}\n")) == 3
    assert len(too_long(f"```{{rule}} One\n:id: TIN-001\n:host: x\n\n{long}\n```\n")) == 1
    assert too_long("word " * 20 + "\n\n" + "word " * 30) == []
    for other in (f"```\n{long}\n```", f"`{long}`", f"$${long}$$", f"| {long} |", f"# {long}"):
        assert too_long(f"{'word ' * 20}\n{other}\n") == []
    assert SYMBOLS_OF_SCALINGS.search("Under `gam` it is so")


SOURCES = [name for name in FILES if VERBS_FIRST.match(name)]


def test_names_have_no_words_that_go():
    """Functions, classes and files have plain names; see `INSTEAD` for better words."""
    names = {Path(name).stem for name in SOURCES}
    for name in SOURCES:
        names |= set(re.findall(r"^ *(?:def|class) (\w+)", (ROOT / name).read_text(), re.MULTILINE))
    assert [name for name in sorted(names) if WORDS_THAT_GO & {*name.lower().split("_")}] == []


def words_in(text: str, words: Iterable[str]) -> list[str]:
    """Return the words that a text has outside of code, each with the text around it."""
    prose = " ".join(CODE.sub("`code`", text).split())
    found = re.finditer(rf".{{0,30}}\b(?:{'|'.join(words)})\b.{{0,30}}", prose)
    return [match[0] for match in found]


def informative(text: str) -> str:
    """Return a chapter without its rules, and without the paragraph of the key words."""
    paragraphs = RULE.sub("", text).split("\n\n")
    return "\n\n".join(part for part in paragraphs if not part.startswith("The key words "))


@pytest.mark.parametrize("rule", rules_of(ROOT / "spec"), ids=lambda rule: rule.id)
def test_demands_of_a_rule_are_in_capitals(rule):
    """BCP 14: in lower case these words demand nothing, and in a rule they would seem to."""
    assert words_in(rule.text, map(str.lower, IN_CAPITALS)) == []


@pytest.mark.parametrize("path", sorted((ROOT / "spec").glob("*.md")), ids=lambda path: path.stem)
def test_notes_demand_nothing(path):
    assert words_in(informative(path.read_text()), IN_CAPITALS) == []


def test_key_words_are_defined_and_used():
    """Once, in the chapter on conformance; every rule but the theorems uses one."""
    paragraphs = (ROOT / "spec/scope.md").read_text().split("\n\n")
    defined = [part for part in paragraphs if part.startswith("The key words ")]
    assert len(defined) == 1
    assert all(words_in(defined[0], [word]) for word in ("MUST NOT", "SHOULD NOT", "MAY", "BCP 14"))
    rules = rules_of(ROOT / "spec")
    without = [rule for rule in rules if not words_in(rule.text, IN_CAPITALS)]
    assert [rule.id for rule in without if rule.chapter != "theorems"] == []
    assert {rule.chapter for rule in without} == {"theorems"}


def test_key_words_are_found():
    rule = "```{rule} One\n:id: TIN-001\n:origin: ours\n\nIt MUST.\n```\n\n"
    note = "Note. It MAY; it\nmust not be `should`."
    assert words_in(note, ["must", "should"]) == ["Note. It MAY; it must not be `code`."]
    assert words_in("Mustard, dismay; as in May.", ["must", "may"]) == []
    assert informative(f"{rule}The key words MUST.\n\n{note}").strip() == note


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
        ("What is given. What is kept. What for? What is it?", 2),
        ("They are no links; there are no links, and they are no longer so.", 1),
        ("The errors tell of it, tell all of it apart; given back beside\nit.", 4),
        ("The profiles part; it stands for x, and stands there, as I told. It gives up.", 4),
        ("Name what is left, and the rest of what was. Of what? Ask: what is it?", 3),
        ("The kept files; files that are kept; they are kept.", 2),
        ("Under gam; with gam, and with `gam`.", 1),
        ("It is bit-exact in the given part, and it is a part of somewhat are.", 0),
    ],
)
def test_phrases_are_found(text, count):
    assert len(list(found_in(text, INSTEAD | IN_DOCSTRINGS))) == count


def test_phrases_of_a_page_are_found():
    assert len(list(found_in("Leave it away, or leave them away; go away.", INSTEAD))) == 2


def test_phrases_of_a_rule_are_found():
    rule = "```{rule} One\n:id: TIN-001\n:host: it tells\n\nIt gives `gives`.\n```\n"
    assert len(list(found_in(without_fences(rule), INSTEAD))) == 2
    assert list(found_in(rule, INSTEAD)) == []


def test_phrases_of_a_source_are_found():
    """In strings of all kinds; of comments those of several lines, and those that end a line."""
    source = (
        '"""What."""\n\n# It gives\n# back.\nx = f"{y} is no link"  # a folder\nz = "of " "which"\n'
    )
    assert len(list(found_in_source(source))) == 5
    assert len(list(found_in_source(source, but_strings=True))) == 3
    assert len(list(found_in_source(source, but_strings=True, but_comments=True))) == 1


def test_comments_of_c_are_found():
    """Those on lines that follow one another are one, so that a phrase may span them."""
    source = "int x;  // It gives\n  // y\n  // z.\n/* a\nfolder */\n"
    assert list(comments_of_c(source)) == [" It gives", " y\n z.\n", "/* a\nfolder */"]


def test_functions_without_a_verb_are_found():
    function = 'def f():\n    """{}"""\n'
    wrong = ("The sum.", "Whether it is.", "a sum", "No sum.", "Codes.", "Kills it.", "As it is.")
    for text in (*wrong, "By hand.", "amax of x"):
        assert len(list(no_verbs_in(function.format(text)))) == 1
        assert list(no_verbs_in(function.format(text).replace("f()", "test_f()"))) == []
        assert list(no_verbs_in("@functools.cached_property\n" + function.format(text))) == []
    for text in ("Return the sum.", "ENC-003: a sum.", "Note it.", "Another", "Pass it.", ""):
        assert list(no_verbs_in(function.format(text))) == []
