"""The values of formulas, computed from their text: the same notation that pages show.

Operators are exact, as the chapter on notation says, or each is one RN32, where a rule says so.
"""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from types import CodeType
from typing import Any

from mor_docs import exact_values
from mor_docs.exact_values import Number, number
from mor_docs.notation import NotationError, cells_of, rows_of, tokens_of
from mor_ref.exact.arithmetic import FLT_MAX, rn32

_OPERATORS: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: exact_values.total,
    ast.Sub: exact_values.difference,
    ast.Mult: exact_values.product,
    ast.Div: exact_values.quotient,
}
_EXACT: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Mod: exact_values.remainder,
    ast.FloorDiv: exact_values.quotient_rounded_down,
    ast.Pow: exact_values.power,
    ast.BitXor: exact_values.exclusive_or,
}
# What signs are called in Python, where they have the same precedence.
_SIGNS = {"^": "**", "=": "=="}


def rounded_to_binary32(a: Number) -> Number:
    """Return RN32(a); a zero keeps the sign of a (ART-001).

    >>> rounded_to_binary32(Fraction(1, 3)) == Fraction(11184811, 2**25)
    True
    """
    if isinstance(a, float):
        return a
    rounded = rn32(a)
    return number(-0.0 if rounded == 0 and a < 0 else rounded)


FUNCTIONS: Mapping[str, Any] = {
    "RN32": rounded_to_binary32,
    "floor": exact_values.floor,
    "ceil": exact_values.ceil,
    "log2": exact_values.Logarithm,
    "rint": exact_values.rint,
    "trunc": exact_values.trunc,
    "min": exact_values.smallest,
    "max": exact_values.largest,
    "abs": abs,
    "FLT_MAX": number(FLT_MAX),
    "infinity": float("inf"),
    "inf": float("inf"),
}


@dataclass(frozen=True)
class _Case:
    value: CodeType
    condition: CodeType | None  # None where there is none, and in the last case


@dataclass(frozen=True)
class _Row:
    """A name and its cases, of which the first that applies is its value."""

    name: str
    cases: tuple[_Case, ...]


def _unknown(text: str) -> Any:
    raise NotationError(f"{text!r} has no meaning here")


def values_of(
    formula: str,
    names: Mapping[str, Any],
    text: Callable[[str], Any] = _unknown,
    *,
    is_rounded: bool = False,
) -> dict[str, Any]:
    """Return what the rows of a formula define, given the names in them and what texts mean.

    A row without a name is the value of "". If `is_rounded`, each operator is one RN32.

    >>> values_of("u = 2^(p - M)", {"p": number(-2), "M": number(3)})
    {'u': Fraction(1, 32)}
    """
    known = {**FUNCTIONS, **names, "text": text}
    defined: dict[str, Any] = {}
    for row in _rows(formula, is_rounded):
        value = _value(row, known)
        known[row.name] = defined[row.name] = value
    return defined


def _value(row: _Row, known: dict[str, Any]) -> Any:
    for case in row.cases:
        if case.condition is None or eval(case.condition, _GLOBALS, known):  # noqa: S307, of the chapters
            return eval(case.value, _GLOBALS, known)  # noqa: S307
    raise NotationError(f"no case of {row.name!r} applies")


@cache
def _rows(formula: str, is_rounded: bool) -> tuple[_Row, ...]:
    return tuple(_row(head, cases, is_rounded) for head, cases in rows_of(formula))


def _row(head: str, cases: list[str], is_rounded: bool) -> _Row:
    name, equals, value = head.partition("=")
    is_definition = bool(equals) and name.strip().isidentifier()
    if not cases:
        text = value if is_definition else head
        return _Row(name.strip() if is_definition else "", (_case(text.strip(), is_rounded),))
    return _Row(name.strip(), tuple(_case(case, is_rounded) for case in cases))


def _case(line: str, is_rounded: bool) -> _Case:
    value, *conditions = cells_of(line)
    condition = " ".join(conditions).removeprefix("if ").removeprefix("for ").strip()
    is_last = condition in ("", "else")
    return _Case(
        _compiled(value, is_rounded), None if is_last else _compiled(condition, is_rounded)
    )


def _compiled(text: str, is_rounded: bool) -> CodeType:
    tree = ast.parse(" ".join(_in_python(text)), mode="eval")
    operations = _Operations(is_rounded=is_rounded)
    return compile(ast.fix_missing_locations(operations.visit(tree)), text, "eval")


def _in_python(text: str) -> Iterator[str]:
    """Return the tokens of a formula as those of an expression in Python."""
    is_open = False
    for kind, part in tokens_of(text):
        if kind == "text":
            yield f"text({part})"
        elif part == "|":
            is_open = not is_open
            yield "abs(" if is_open else ")"
        elif part == "xor":
            yield "^"
        else:
            yield _SIGNS.get(part, part)


class _Operations(ast.NodeTransformer):
    """Operators and numbers as calls of what computes them."""

    def __init__(self, *, is_rounded: bool) -> None:
        self._is_rounded = is_rounded

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        operands = [self.visit(node.left), self.visit(node.right)]
        name = f"_{type(node.op).__name__}"
        rounds = self._is_rounded and type(node.op) in _OPERATORS
        return _call(f"{name}_rounded" if rounds else name, operands)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str):
            return node
        return _call("_number", [ast.Constant(str(node.value))])


def _call(name: str, arguments: list[ast.expr]) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), arguments, [])


@cache
def _written(text: str) -> Number:
    return number(Fraction(text))


def _then_rounded(
    operator: Callable[[Number, Number], Number],
) -> Callable[[Number, Number], Number]:
    return lambda a, b: rounded_to_binary32(operator(a, b))


_GLOBALS: dict[str, Any] = {
    "__builtins__": {},
    "_number": _written,
    **{f"_{op.__name__}": function for op, function in {**_OPERATORS, **_EXACT}.items()},
    **{f"_{op.__name__}_rounded": _then_rounded(function) for op, function in _OPERATORS.items()},
}
