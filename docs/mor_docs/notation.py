"""Formulas: from the plain notation of the chapters to MathML.

A formula in a source reads as a line of a program does: `(1 + m / 2^M) * 2^(e - B)`. It is
written between dollar signs, in a line or in a block. In a block, a line of its own is a row, and
the indented lines after a line that ends with `=` are the cases of its value. Texts are in quotes.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

_TOKEN = re.compile(
    r"\s*(?:(?P<text>\"[^\"]*\")|(?P<number>0x[0-9A-Fa-f]+|\d+(?:\.\d+)?)"
    r"|(?P<name>[A-Za-z]\w*)|(?P<sign><=|>=|!=|//|>>|\.\.\.|->|[-+*/%^=<>|,;:()\[\]]))"
)
_SIGNS = {
    "*": "·",
    "-": "−",
    "<=": "≤",
    ">=": "≥",
    "!=": "≠",
    "...": "…",
    "->": "→",
    ">>": "≫",
    "%": "mod",
}
_WORDS = {"if", "else", "and", "or", "then", "of", "mod", "in", "for", "with"}
_OPERATORS = {"xor": "⊕", "infinity": "∞"}
# Functions that are written with brackets of their own.
_BRACKETS = {"floor": ("⌊", "⌋"), "ceil": ("⌈", "⌉")}
_CLOSING = {"(": ")]", "[": "])"}
_APPLIED = "<mo>&#8289;</mo>"


class NotationError(ValueError):
    """A formula that cannot be read."""


def to_mathml(formula: str, *, block: bool) -> str:
    """Return a formula as MathML.

    >>> to_mathml("2^-n", block=False)[:43]
    '<math alttext="2^-n"><mrow><msup><mn>2</mn>'
    """
    alternative = escape(" ".join(formula.split()))
    if not block:
        return f'<math alttext="{alternative}">{_row(formula, stacked=False)}</math>'
    return f'<math display="block" alttext="{alternative}">{_table(formula)}</math>'


def _row(formula: str, *, stacked: bool) -> str:
    return _Formula(formula, stacked=stacked).whole()


def rows_of(formula: str) -> list[tuple[str, list[str]]]:
    r"""Return the rows of a block, each with the cases of its value.

    >>> rows_of("u = 2^n\ny =\n    x  if x > 0\n    0  else")
    [('u = 2^n', []), ('y =', ['x  if x > 0', '0  else'])]
    """
    rows: list[tuple[str, list[str]]] = []
    for line in formula.splitlines():
        if line.strip() and line[:1].isspace() and rows and rows[-1][0].rstrip().endswith("="):
            rows[-1][1].append(line.strip())
        elif line.strip():
            rows.append((line.strip(), []))
    return rows


def cells_of(line: str) -> list[str]:
    """Return the parts of a line that two spaces or more divide."""
    return re.split(r" {2,}", line)


def tokens_of(formula: str) -> Iterator[tuple[str, str]]:
    """Return the tokens of a formula, each with its kind: text, number, name or sign."""
    at, end = 0, len(formula.rstrip())
    while at < end:
        found = _TOKEN.match(formula, at)
        if found is None:
            raise NotationError(f"{formula!r} has {formula[at:].strip()[:9]!r}")
        kind = str(found.lastgroup)
        yield kind, found[kind]
        at = found.end()


def _table(formula: str) -> str:
    """Return the rows of a block, with the cases of a value behind a brace."""
    rows = rows_of(formula)
    made = [_cases(head, cases) if cases else _cells(head) for head, cases in rows]
    if len(made) == 1 and not rows[0][1] and "  " not in rows[0][0]:
        return _row(rows[0][0], stacked=True)
    table = "".join(f"<mtr>{row}</mtr>" for row in made)
    return f'<mtable class="rows" displaystyle="true">{table}</mtable>'


def _cells(line: str) -> str:
    return "".join(f"<mtd>{_row(part, stacked=True)}</mtd>" for part in cells_of(line))


def _cases(head: str, cases: list[str]) -> str:
    rows = "".join(f"<mtr>{_cells(case)}</mtr>" for case in cases)
    table = f'<mtable class="cases" displaystyle="true">{rows}</mtable>'
    return f"<mtd><mrow>{_row(head, stacked=True)}{table}</mrow></mtd>"


@dataclass(frozen=True)
class _Term:
    """A part of a formula in MathML; `bare` is without its parentheses, where a bar groups it."""

    shown: str
    bare: str
    is_name: bool = False


def _plain(shown: str) -> _Term:
    return _Term(shown, shown)


class _Formula:
    """The tokens of a formula, and the place of the next one."""

    def __init__(self, formula: str, *, stacked: bool) -> None:
        self._formula, self._stacked = formula, stacked
        self._tokens = list(tokens_of(formula))
        self._at = 0

    def _next(self) -> tuple[str, str]:
        if self._at == len(self._tokens):
            raise NotationError(f"{self._formula!r} ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def whole(self) -> str:
        made = self._sequence("")
        if self._peek():
            raise NotationError(f"{self._formula!r} has {self._peek()!r} without its other half")
        return made

    def _sequence(self, closing: str) -> str:
        """Return the terms up to a closing sign, which stays."""
        parts: list[_Term] = []
        while self._peek() and self._peek() not in (*closing, *")]"):
            if self._peek() == "/" and self._stacked and parts:
                self._next()
                above, below = parts.pop().bare, self._term().bare
                parts.append(_plain(f"<mfrac>{above}{below}</mfrac>"))
            else:
                parts.append(self._term())
        return f"<mrow>{''.join(part.shown for part in parts)}</mrow>"

    def _term(self) -> _Term:
        """Return one operand with its index and its power, or one operator."""
        made = self._atom()
        if self._peek() == "[" and made.is_name:
            made = _plain(f"<msub>{made.shown}{self._bracketed(self._next()[1]).bare}</msub>")
        if self._peek() == "^":
            self._next()
            sign = "<mo>−</mo>" if self._peek() == "-" and self._next() else ""
            raised = f"<mrow>{sign}{self._atom().bare}</mrow>"
            made = _plain(f"<msup>{made.shown}{raised}</msup>")
        return made

    def _atom(self) -> _Term:
        kind, text = self._next()
        if kind == "text":
            return _plain(f"<mtext>{escape(text[1:-1])}</mtext>")
        if kind == "number":
            return _plain(f"<mn>{text}</mn>")
        if kind == "name":
            return self._named(text)
        if text in _CLOSING:
            return self._bracketed(text)
        if text == "|":
            inside = self._sequence("|")
            self._expect("|")
            return _fenced("|", inside, "|")
        if text in ")]^":
            raise NotationError(f"{self._formula!r} has {text!r} where a number is expected")
        return _plain(f"<mo>{escape(_SIGNS.get(text, text))}</mo>")

    def _named(self, name: str) -> _Term:
        """Return a word, an operator, a function with its argument, or a symbol."""
        if name in _WORDS:
            return _plain(f"<mtext>&#160;{name}&#160;</mtext>")
        if name in _OPERATORS:
            return _plain(f"<mo>{_OPERATORS[name]}</mo>")
        if self._peek() == "(" and name in _BRACKETS:
            before, after = _BRACKETS[name]
            return _fenced(before, self._bracketed(self._next()[1]).bare, after)
        if self._peek() == "(":
            argument = self._bracketed(self._next()[1]).shown
            return _plain(f"<mrow>{_identifier(name)}{_APPLIED}{argument}</mrow>")
        return _Term(_identifier(name), _identifier(name), is_name=True)

    def _bracketed(self, opening: str) -> _Term:
        """Return a term in brackets, where fractions do not grow; halves of an interval differ."""
        stacked, self._stacked = self._stacked, False
        inside = self._sequence(_CLOSING[opening])
        self._stacked = stacked
        closing = self._expect(_CLOSING[opening])
        fenced = _fenced(opening, inside, closing).shown
        return _Term(fenced, inside if opening + closing in ("()", "[]") else fenced)

    def _expect(self, wanted: str) -> str:
        if not self._peek() or self._peek() not in wanted:
            raise NotationError(f"{self._formula!r} lacks {' or '.join(wanted)}")
        return self._next()[1]


def _fenced(before: str, inside: str, after: str) -> _Term:
    return _plain(
        f'<mrow><mo fence="true">{before}</mo>{inside}<mo fence="true">{after}</mo></mrow>'
    )


def _identifier(name: str) -> str:
    """Return a name: one letter in italics, digits and the part after _ below the line."""
    if name.isupper() and "_" in name:  # FLT_MAX
        return f'<mi mathvariant="normal">{name}</mi>'
    base, _, below = name.partition("_")
    if not below:
        found = re.fullmatch(r"([A-Za-z]+?)(\d+)", name)
        base, below = (found[1], found[2]) if found else (name, "")
    shown = f"<mi>{base}</mi>" if len(base) == 1 else f'<mi mathvariant="normal">{base}</mi>'
    if not below:
        return shown
    kind = "mn" if below.isdigit() else "mtext"
    return f"<msub>{shown}<{kind}>{below.replace('_', ' ')}</{kind}></msub>"
