"""The map that CONTRIBUTING begins with: each answer is there, and each room of the picture."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("## Commands")[0]
ANSWERS = re.findall(r"^\| (.+?) \| (`.+?`) \| `(.+?)`.* \|$", TABLE, re.MULTILINE)
PICTURE = (ROOT / "docs" / "_static" / "house.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(("question", "paths", "word"), ANSWERS)
def test_an_answer_is_in_its_files(question: str, paths: str, word: str) -> None:
    for path in re.findall(r"`(.+?)`", paths):
        assert word in (ROOT / path).read_text(encoding="utf-8"), f"{question}: {path}"


def test_there_are_ten_questions_or_more() -> None:
    assert len(ANSWERS) >= 10


def test_the_rooms_of_the_picture_are_all_there_are() -> None:
    rooms = {
        room
        for names in re.findall(r'class="name"[^>]*>(.+?)</text>', PICTURE)
        for room in names.split(", ")
    }
    package = ROOT / "mor_ref"
    there = {path.name for path in package.iterdir() if (path / "__init__.py").exists()}
    there |= {path.stem for path in package.glob("*.py")}
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
        "printable",
        "processor_modes",
        "record_files",
        "record_pictures",
        "records",
    }
    assert there - rooms == others | {"signals", "treatments", "whole_files", "workers"}


def test_the_call_of_the_picture_goes_where_it_says() -> None:
    files = (ROOT / "mor_ref" / "api" / f"{name}.py" for name in ("mx", "block_formats"))
    source = "".join(path.read_text(encoding="utf-8") for path in files)
    steps = re.findall(r'class="label"[^>]*>\d (.+?)</text>', PICTURE)
    for name in ", ".join(steps).split(", "):
        assert f"{name}(" in source, name
