"""The map that CONTRIBUTING begins with: each answer is there, and each room and arrow."""

import ast
import functools
import re
import tokenize
from pathlib import Path

import pytest

from mor_ref.definitions.encoding import DETERMINISTIC_ROUNDINGS

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "mor_ref"
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("## Where is it?")[2].partition("## Commands")[0]
ROWS = [line for line in TABLE.splitlines() if line.startswith("|")][2:]
ANSWER = re.compile(r"\| ([^|`]+) \| (`[^|`]+`(?:, `[^|`]+`)*) \| `([^|`]+)`([^|]*) \|")
MATCHES = [ANSWER.fullmatch(row) for row in ROWS]
ANSWERS = [match.groups() for match in MATCHES if match]
QUESTIONS = {
    "the exact code of a rule",
    "the kernel of a rule of MX, NVFP4 and other block formats",
    "the kernel of a rule of another chapter",
    "the golden vectors of a rule",
    "the text of a rule, and its page",
    "where a call's arguments become bits",
    "add a format",
    "add a rounding",
    "add a profile",
    "add a field to an operation",
    "add a command",
    "the code of a command",
}
PICTURE = (ROOT / "docs" / "_static" / "house.svg").read_text(encoding="utf-8")


# ------------------------------------------------------------------------- the answers


def names_in(path: Path) -> set[str]:
    """Return what a file defines, says in whole or as a word of a list, and explains.

    A name is a definition, a whole string or a word of it, a decorator, or the id of a rule in a
    comment or a docstring. A part of a longer name is none.
    """
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return {*re.findall(r"[\w-]+", text), *re.findall(r":id: [\w-]+", text)}
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found |= {name, *(f"@{ast.unparse(one)}" for one in node.decorator_list)}
            case ast.Assign(targets=targets):
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case ast.Constant(value=str(value)):
                found |= set(re.findall(r"[\w-]+", value))
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT:
                found |= set(re.findall(r"[\w-]+", token.string))
    return {*found, *(name.partition("(")[0] for name in found)}


def fields_in(path: Path) -> set[str]:
    """Return the fields that a file declares for an operation, or else those of its classes."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    declared = {
        str(node.args[0].value).split()[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "expected"
        and isinstance(node.args[0], ast.Constant)
    }
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return declared or {
        statement.target.id
        for node in classes
        for statement in node.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    }


def test_every_row_is_a_question_with_its_files_and_a_word() -> None:
    assert [row for row, match in zip(ROWS, MATCHES, strict=True) if not match] == []


def test_the_questions_of_a_newcomer_are_all_there() -> None:
    asked = [question for question, *_ in ANSWERS]
    missing = [ask for ask in QUESTIONS if not any(question.startswith(ask) for question in asked)]
    assert missing == []


@pytest.mark.parametrize(("question", "paths", "word", "more"), ANSWERS)
def test_an_answer_is_in_its_files(question: str, paths: str, word: str, more: str) -> None:
    del more
    names = fields_in if "field" in question else names_in
    for path in re.findall(r"`(.+?)`", paths):
        assert word in names(ROOT / path), f"{question}: {path}"


# Of what is made, of a user, and the name of a mistake.
NOT_THERE = re.compile(r"s/other-order|build/|dist/|\.venv/|bin$|spec/ENC-003|DIRECTORY|nvidia/")


def test_every_path_of_the_page_is_there() -> None:
    """From the root, or from `mor_ref`, as the sentence around it says."""
    said = re.findall(r"`([\w.]+/[\w./*-]*|\w+\.(?:py|md|json|toml|svg))`", PAGE)
    roots = ROOT, ROOT / "mor_ref", ROOT / "mor_ref" / "schemes" / "affine"
    missing = {
        path
        for path in said
        if not NOT_THERE.match(path) and not any(list(root.glob(path)) for root in roots)
    }
    assert missing == set()


# ----------------------------------------------------------------------------- roundings


def roundings_in(path: Path) -> set[str]:
    """Return the roundings whose names are words of a file; those in C have a prefix."""
    words = set(re.findall(r"(?:MOR_)?([a-z]+)\b", path.read_text(encoding="utf-8"), re.IGNORECASE))
    return {word.lower() for word in words} & set(DETERMINISTIC_ROUNDINGS)


_FEW = "deviations|mistakes/(calls|operators)_of_|bibliography|proofs/solver"


def test_each_file_with_a_table_of_roundings_has_all_and_is_in_the_answer() -> None:
    """Mistakes, the sources of standards and a solver have a few on purpose."""
    places = ("mor_ref", "docs/explorer", "spec")
    suffixes = {".py", ".js", ".c", ".h", ".cpp", ".sv", ".md"}
    answered = {path for question, paths, *_ in ANSWERS if "rounding" in question
                for path in re.findall(r"`(.+?)`", paths)}  # fmt: skip
    for path in (path for place in places for path in (ROOT / place).rglob("*")):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix in suffixes and not re.search(_FEW, name):
            found = roundings_in(path)
            if len(found) >= len(DETERMINISTIC_ROUNDINGS) // 2 + 1:
                assert found == set(DETERMINISTIC_ROUNDINGS), name
                assert name in answered


# ----------------------------------------------------------------------------- the picture

Point = tuple[float, float]


def rooms_of_the_picture() -> dict[frozenset[str], tuple[float, float, float, float]]:
    """Return the left, top, right and bottom of each box, by the rooms that it names."""
    boxes = {}
    for group in re.findall(r"<g>(.+?)</g>", PICTURE):
        sides = re.search(r'x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)"', group)
        assert sides is not None
        x, y, width, height = map(float, sides.groups())
        names = ", ".join(re.findall(r'class="name"[^>]*>(.+?)</text>', group)).split(", ")
        boxes[frozenset(names)] = (x, y, x + width, y + height)
    return boxes


def room_at(point: Point) -> frozenset[str]:
    """Return the rooms whose box has a point on its border or inside; empty if none has."""
    x, y = point
    for names, (left, top, right, bottom) in rooms_of_the_picture().items():
        if left <= x <= right and top <= y <= bottom:
            return names
    return frozenset()


def arrows(kind: str) -> list[tuple[frozenset[str], frozenset[str]]]:
    """Return the rooms at the two ends of each arrow of a class."""
    found = []
    for path in re.findall(rf'class="{kind}" d="(.+?)"', PICTURE):
        x, y, way, *ends = re.findall(r"[\d.]+|[HV]", path)
        start = float(x), float(y)
        match way, *map(float, ends):
            case "H", across:
                to = across, start[1]
            case "V", down:
                to = start[0], down
            case _:
                to = float(way), float(ends[0])
        found.append((room_at(start), room_at(to)))
    return found


@functools.cache
def imported_by(room: str) -> set[str]:
    """Return the rooms that the files of a room import, also inside of functions."""
    names = set()
    for path in (PACKAGE / f"{room}.py", *(PACKAGE / room).rglob("*.py")):
        if path.exists():
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                match node:
                    case ast.ImportFrom(module="mor_ref", names=imported):
                        names |= {name.name for name in imported}
                    case ast.Import(names=[ast.alias(name="mor_ref")]):
                        names.add("api")  # whose functions the package has
                    case ast.ImportFrom(module=str(module)) if module.startswith("mor_ref."):
                        names.add(module.split(".")[1])
    return names


def test_an_arrow_is_an_import() -> None:
    for one, other in arrows("arrow"):
        assert one
        assert other
        assert any(imported_by(name) & other for name in one), (one, other)


def test_each_room_has_its_arrows() -> None:
    """From a room that imports it, and to one that it imports; schemes are of all rooms."""
    drawn = arrows("arrow")
    into, out_of = {to for _, to in drawn}, {start for start, _ in drawn}
    boxes = rooms_of_the_picture()
    ground = max(box[3] for box in boxes.values())
    for names, box in boxes.items():
        others = frozenset().union(*(other for other in boxes if other != names))
        if "schemes" not in names:
            assert names in into or not any(imported_by(other) & names for other in others), names
            assert names in out_of or box[3] == ground, names


def test_the_way_of_a_call_goes_from_api_to_the_rooms_of_its_steps() -> None:
    api, engine = frozenset({"api"}), frozenset({"engine"})
    (start, first), *steps = arrows("way")
    assert (start, first) == (frozenset(), api)
    assert steps == [
        (api, frozenset({"arrays", "argument_checks"})),
        (api, frozenset({"definitions"})),
        (api, engine),
        (engine, api),
    ]


def test_the_rooms_of_the_picture_are_all_there_are() -> None:
    rooms = {room for names in rooms_of_the_picture() for room in names}
    there = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    there |= {path.stem for path in PACKAGE.glob("*.py")}
    assert rooms <= there
    # Small modules, and the former name of recipes.
    others = {
        "__main__",
        "__init__",
        "addresses",
        "counts_in_words",
        "former_names",
        "explanations",
        "fp8lm",
        "habits",
        "layouts",
        "mapped_files",
        "printable",
        "processor_modes",
        "record_files",
        "record_pictures",
        "records",
    }
    assert there - rooms == others | {"signals", "tracing", "treatments", "whole_files", "workers"}


def test_the_call_of_the_picture_goes_where_it_says() -> None:
    files = (ROOT / "mor_ref" / "api" / f"{name}.py" for name in ("mx", "block_formats"))
    source = "".join(path.read_text(encoding="utf-8") for path in files)
    steps = re.findall(r'class="label"[^>]*>\d (.+?)</text>', PICTURE)
    for name in ", ".join(steps).split(", "):
        assert f"{name}(" in source, name
