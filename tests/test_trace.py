"""Every rule has code and a test, and every id that is named is a rule."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest
from mor_docs.naming import ids_in, named_in
from mor_docs.shown.traces import CHAPTERS
from mor_docs.trace import own_trace, rules_of

from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.formats import encoding_profiles
from mor_ref.operations import OPERATIONS

ROOT = Path(__file__).resolve().parent.parent


def test_ids_are_used_once():
    ids = [rule.id for rule in rules_of(ROOT / "spec")]
    assert len(ids) == len(set(ids))
    assert ids


def test_every_block_of_a_rule_is_read():
    blocks = sum(path.read_text().count("{rule}") for path in (ROOT / "spec").glob("*.md"))
    assert blocks == len(own_trace().rules)


def test_every_chapter_with_rules_is_on_the_page_of_the_trace():
    assert {rule.chapter for rule in own_trace().rules.values()} <= set(CHAPTERS)


def test_no_rule_lacks_a_link_and_no_id_is_unknown():
    """Of every rule there is code, a test of its own, and a suite if values are to be expected."""
    assert list(own_trace().problems()) == []


def lines_left_out(path):
    """Yield the lines of the tests of a file that no usual run has."""
    source = path.read_text()
    module = ast.parse(source if "mark.tier(" in source else "")
    for node in ast.walk(module):
        marks = getattr(node, "decorator_list", [])
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            node, marks = module, [node.value]  # noqa: PLW2901
        told = [ast.unparse(mark) for mark in marks]
        if any("mark.tier(" in mark and "but" not in mark for mark in told):
            last = getattr(node, "end_lineno", len(source.splitlines()))
            yield from range(getattr(node, "lineno", 1), last + 1)


def test_every_rule_has_a_test_in_a_usual_run():
    """And not only one of a tier."""
    left_out = {
        (path.relative_to(ROOT).as_posix(), line)
        for path in (ROOT / "tests").rglob("test_*.py")
        for line in lines_left_out(path)
    }
    places = own_trace().places["tests"]
    tested = {
        rule
        for rule in own_trace().rules
        if any((place.path, place.line) not in left_out for place in places.get(rule, []))
    }
    untestable = {name for name, rule in own_trace().rules.items() if "tests" in rule.reasons}
    assert tested | untestable == set(own_trace().rules)


def test_references_between_rules_are_not_dangling():
    texts = [path.read_text() for path in (ROOT / "spec").glob("*.md")]
    named = {rule for text in texts for rule, _ in ids_in(text)}
    assert named == set(own_trace().rules)


MARKED = re.compile(r"^:id: (?P<id>.+)\n:origin: (?P<origin>.+)\n(?P<rest>[\s\S]+)", re.MULTILINE)


def test_where_something_of_a_rule_is_ours_its_mark_and_its_note_say_so():
    """A rule of the paper, a standard or a vendor alone has no such note."""
    for path in (ROOT / "spec").glob("*.md"):
        for block in path.read_text().split("{rule} ")[1:]:
            found = MARKED.search(block)
            note = re.split(r"^`{3,}$", found["rest"], maxsplit=1, flags=re.MULTILINE)[1]
            is_named = bool(re.search(r"\b[Oo]urs\b", note.split("\n## ")[0]))
            if found["origin"] != "ours":
                assert found["origin"].endswith(" + ours") == is_named, found["id"]


@pytest.mark.parametrize(
    ("said", "rules"),
    [
        ("TIN-001.", ["TIN-001"]),
        ("TIN-001: a tie; TIN-002, if it is one. TIN-003", ["TIN-001", "TIN-002", "TIN-003"]),
        ("TIN-001, TIN-002 and TIN-003: ties", ["TIN-001", "TIN-002", "TIN-003"]),
        ("TIN-001 to TIN-003 under rne", ["TIN-001", "TIN-002", "TIN-003"]),
        ("A tie (TIN-001, TIN-002) accepts, TIN-003.", ["TIN-001", "TIN-002", "TIN-003"]),
        ("As TIN-001 forbids it, (see TIN-002) and what TIN-003 has", []),
        ("'TIN-001', (0, 'TIN-002')", []),
        ("TIN-001, which TIN-002 has as well", ["TIN-001"]),
        ("A tie, as TIN-001.", []),
    ],
)
def test_what_names_a_rule_and_what_mentions_it(tmp_path, said, rules):
    source = tmp_path / "kernel.cu"
    source.write_text(f"// {said}\nint x;\n")
    assert [rule for _, rule, _ in named_in(source)] == rules


PROGRAM = """\
'''Of the file (TIN-001).'''
import re

# TIN-002: of the next
# line.
x = re.compile("TIN-003|(TIN-003)")  # TIN-004
# TIN-005: of nothing

@decorated
def one():
    '''What it does (TIN-006).

    More of
    it (TIN-007).
    '''
    # In passing, as TIN-008 has it.
    return "TIN-009", {"rule": "(TIN-009)"}

case("TIN-010", id="TIN-011 a tie")
"""
KERNEL = """\
// Of the file
// (TIN-001).

#include "TIN-002.cuh"

// TIN-003: of the next line.
int x = 1;  // TIN-004
// TIN-005: of nothing

int y;
"""


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        (
            "one.py",
            PROGRAM,
            {
                "TIN-001": 1,
                "TIN-002": 6,
                "TIN-004": 6,
                "TIN-006": 10,
                "TIN-007": 10,
                "TIN-011": 19,
            },
        ),
        *(
            (f"one.{it}", KERNEL, {"TIN-001": 1, "TIN-003": 7, "TIN-004": 7})
            for it in ("cuh", "sv")
        ),
    ],
    ids=["py", "cuh", "sv"],
)
def test_names_lead_to_what_they_are_of(tmp_path, name, text, lines):
    source = tmp_path / name
    source.write_text(text)
    assert {rule: line for line, rule, _ in named_in(source)} == lines


def table_after(heading, path):
    """Return the rows of the first table after a line, as lists of cells."""
    rule = path.read_text().split(heading, 1)[1].split("```", 1)[0]
    rows = [line.split("|")[1:-1] for line in rule.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def _optional(call):
    """Return the names of the inputs that come with a parameter."""
    return {name for inputs in call.optional_inputs.values() for name in inputs}


def test_the_printed_operations_are_those_of_the_suites():
    """VEC-001."""
    printed = {
        name: (parameters, inputs)
        for name, parameters, inputs, _ in table_after(":id: VEC-001", ROOT / "spec/vectors.md")
    }
    assert printed == {
        name: (
            ", ".join([*call.parameters, *(f"[{parameter}]" for parameter in call.optional)]),
            ", ".join([*call.inputs, *(f"[{name}]" for name in sorted(_optional(call)))]),
        )
        for name, call in OPERATIONS.items()
    }


def test_the_printed_presets_are_those_of_the_catalogue():
    """ENC-016."""
    printed = {}
    table = table_after(":id: ENC-016", ROOT / "spec/encoding.md")
    for profile, names, overflow, nan, rest in table:
        codes = tuple(int(code, 16) for code in nan.split(", ")) if "0x" in nan else nan
        row = SpecialCases(overflow=overflow, nan=codes)
        if "(1)" in rest:
            row = replace(row, above_smallest_goes_up=True, power_of_two_rounding="rna")
        if "zero and negative numbers are NaN" in rest:
            row = replace(row, zero_code=0xFF, negative_code=0xFF)
        printed |= {(profile, name): row for name in names.split(", ")}
    assert printed == {
        (p, name): row for p, rows in encoding_profiles.items() for name, row in rows.items()
    }
