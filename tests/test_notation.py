"""Formulas of the specification: their notation, and MathML."""

import math
import re
from xml.etree import ElementTree as ET

import pytest
from mor_docs.notation import NotationError, to_mathml
from mor_docs.programs import pieces_of
from mor_docs.shown.special_codes import special_codes
from mor_docs.trace import Place
from site_of_docs import ROOT, cells

import mor_ref

SPEC = sorted((ROOT / "spec").glob("*.md"))
FORMULA = re.compile(r"^ *\$\$\n(.*?)^ *\$\$$|\$([^$\n]+)\$", re.MULTILINE | re.DOTALL)


def written(made):
    """Return a formula of MathML as a line: raised parts in ^{}, lowered ones in _{}."""
    plain = made.replace("&#8289;", "").replace("&#160;", " ").replace("\N{MINUS SIGN}", "-")
    return _written(ET.fromstring(plain))  # noqa: S314, made here


def _written(node):
    parts = [_written(part) for part in node]
    joined = {
        "msup": "{}^{{{}}}",
        "msub": "{}_{{{}}}",
        "mfrac": "({})/({})",
    }.get(node.tag)
    if joined:
        return joined.format(*parts)
    end = {"mtr": "; ", "mtd": " "}.get(node.tag, "")
    return (node.text or "").strip("\n") + "".join(parts) + end


@pytest.mark.parametrize(
    ("formula", "shown"),
    [
        ("2^min(e, 127)", "2^{min(e,127)}"),
        ("2^(e - B)", "2^{e-B}"),
        ("2^-22 * n", "2^{-22}·n"),
        ("s(x) * 2^E(x)", "s(x)·2^{E(x)}"),
        ("RN32(q_amax / a)", "RN_{32}(q_{amax}/a)"),
        ("r[i] + |x - y|", "r_{i}+|x-y|"),
        ("r[i + h]", "r_{i+h}"),
        ("floor(log2(x)) <= FLT_MAX", "⌊log_{2}(x)⌋≤FLT_MAX"),
        ("i in [a, b)", "i in [a,b)"),
        ("(z xor (z >> 30)) % 4", "(z⊕(z≫30))mod4"),
        ('"a text, (" if x != 0', "a text, ( if x≠0"),
    ],
)
def test_a_formula_in_a_line(formula, shown):
    assert written(to_mathml(formula, block=False)) == shown


def test_a_formula_of_its_own_has_fractions_but_not_in_parentheses():
    assert written(to_mathml("a = (b + 1) / c^2", block=True)) == "a=(b+1)/(c^{2})"
    assert written(to_mathml("(a / b) * 2", block=True)) == "(a/b)·2"


def test_cases_belong_to_the_line_above():
    cases = "c =\n    0  if x = 0\n    1  else\nd = c\n"
    assert written(to_mathml(cases, block=True)) == "c=0  if x=0 ; 1  else  ;  ; d=c ; "


@pytest.mark.parametrize("formula", ["(a", "a)", "|a", "2^", "a $ b", "^2", "[a", '"text', "2^2^n"])
def test_half_a_formula_is_refused(formula):
    with pytest.raises(NotationError, match=re.escape(repr(formula)[1:-1])):
        to_mathml(formula, block=False)


def test_every_formula_of_the_specification_can_be_read():
    found = [one for path in SPEC for one in formulas_of(path.read_text())]
    assert len(found) > 60
    for formula, is_block in found:
        assert written(to_mathml(formula, block=is_block))


def formulas_of(text):
    for block, line in FORMULA.findall(text):
        yield block or line, bool(block)


def test_what_the_explorer_is_asked_is_known_to_it():
    """An address with a name that the page does not know would show something else."""
    page = (ROOT / "docs" / "explorer" / "page.js").read_text()
    known = set(re.findall(r"(\w+):", page.split("const DEFAULTS = {")[1].split("};")[0]))
    asked = re.findall(r"^:explore: (.+)$", "".join(p.read_text() for p in SPEC), re.MULTILINE)
    assert len(asked) > 40
    assert {part.split("=")[0] for one in asked for part in one.split("&")} <= known


def test_a_rule_is_shown_as_the_lines_that_name_it(tmp_path):
    """A function without its docstring, a branch of a match, a statement; each line once."""
    source = tmp_path / "mor_ref" / "exact" / "one.py"
    source.parent.mkdir(parents=True)
    source.write_text(
        "def one(x):\n    '''What it does (TIN-001).'''\n    if x:\n        return 1\n"
        "    return 2\n\n\n"
        "def two(x):\n    match x:\n        case 1:  # TIN-002\n            return 3\n"
    )
    places = [Place("mor_ref/exact/one.py", line) for line in (1, 3, 10)]
    first, second = pieces_of(tmp_path, places)
    assert first.text == "def one(x):\n    if x:\n        return 1\n    return 2"
    assert second.text == "case 1:  # TIN-002\n    return 3"
    assert second.line == 10
    assert pieces_of(tmp_path, [Place("mor_ref/engine/one.py", 1)]) == []


@pytest.mark.parametrize("name", [name for name, fmt in mor_ref.formats.items() if fmt.bits <= 8])
def test_special_codes_are_what_all_codes_decode_to(name):
    fmt = mor_ref.formats[name]
    row = cells(special_codes(), 0).index(name)
    zero, _, largest, lowest, infinity, nan = (codes(special_codes(), row, i) for i in range(1, 7))
    numbers = {code: fmt.value(code) for code in range(fmt.code_count)}
    finite = {code: x for code, x in numbers.items() if math.isfinite(x)}
    assert zero == [code for code, x in numbers.items() if x == 0]
    assert infinity == [code for code, x in numbers.items() if math.isinf(x)]
    assert nan == [code for code, x in numbers.items() if math.isnan(x)]
    assert largest == [max(finite, key=finite.get)]
    assert lowest == [0x81 if name == "int8_mx" else min(finite, key=finite.get)]


def codes(shown, row, column):
    """Return the codes of a cell: those of a range from the first to the last."""
    found = []
    for part in cells(shown, column)[row].replace("`", "").split(", "):
        ends = [int(code, 16) for code in part.split(" to ") if code != "—"]
        found += range(ends[0], ends[-1] + 1) if ends else []
    return found
