"""Formulas of blocks and their scales: text in which each operator is one rounding to binary32.

`+ - * /` round once, a literal is rounded once, and the name of a format rounds to it. `a or b` is
b where a is 0, and `a if test else b` tests `c < d`, `c > d`, or whether a number is not 0. min and
max keep a NaN of their first argument. `square(a)` is a * a. `pow2(a, turn)` is the power of two of
the binade of a, or the next one if the significand of a is at least `turn`. `percentile(p)` is a
magnitude of the part of a scale, as amax is. A function of a user is a word as well.
"""

import ast
import difflib
import functools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from mor_ref.definitions.formats import formats
from mor_ref.definitions.formula_functions import PERCENTILE, RESERVED, WORDS, formula_functions

MAX = Fraction(2**24 - 1) * 2**104  # the largest number of binary32
_CONSTANTS = {"MAX": MAX}
_LARGEST, _SMALLEST = Fraction(10) ** 100, Fraction(1, 10**100)  # far beyond binary32
_MOST_BITS = 10_000  # of a power, before it is known to be within these
_DEEPEST = 100
_LONGEST = 2_000  # characters
_PERCENTS = 10_000  # of one percent, at most: so that a rank is a product of 64 bits
_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Lt: "<", ast.Gt: ">",
}  # fmt: skip


@dataclass(frozen=True)
class Number:
    """A literal, exactly; it is rounded where it is used."""

    value: Fraction


@dataclass(frozen=True)
class Name:
    """A name: that of an amax, a scale or a number."""

    text: str


@dataclass(frozen=True)
class Percentile:
    """A percentile of the magnitudes that an amax counts (BLF-007)."""

    percent: Fraction

    @property
    def name(self) -> str:
        """The name of its numbers."""
        return f"{PERCENTILE}({self.percent})"


@dataclass(frozen=True)
class Apply:
    """An operator, a function or the name of a format, and its arguments."""

    operator: str
    arguments: "tuple[Formula, ...]"


@dataclass(frozen=True)
class Computed(Apply):
    """A function of columns of numbers, and its arguments: no text has it, but a wrong program."""

    function: Callable[..., Sequence[float]]


Formula = Number | Name | Percentile | Apply


class FormulaError(ValueError):
    """A formula that cannot be read, or has an unknown name."""


@functools.lru_cache(maxsize=1024)
def parsed(text: "str | Formula") -> Formula:
    """Return the tree of a formula; a tree is returned as it is.

    >>> parsed("amax / 6")
    Apply(operator='/', arguments=(Name(text='amax'), Number(value=Fraction(6, 1))))
    """
    if not isinstance(text, str):
        return text
    if len(text) > _LONGEST:
        raise FormulaError(
            f"formula {text[:20]!r}... has {len(text):,} characters; give at most {_LONGEST:,}"
        )
    for column, letter in enumerate(text, start=1):
        if not letter.isascii() or letter == "#":  # Python reads a name in other letters as ASCII
            raise FormulaError(
                f"formula {text!r} cannot be read at column {column}: no formula has {letter!r}"
            )
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        before = len(text) - len(text.lstrip())
        column = before + (error.offset or len(text.strip()) + 1)  # 0 is the end
        raise FormulaError(
            f"formula {text!r} cannot be read at column {column}: {error.msg}"
        ) from None
    except (RecursionError, MemoryError):  # of Python's own reader
        raise _too_deep(text) from None
    except ValueError as error:
        raise FormulaError(f"formula {text!r} cannot be read: {error}") from None
    _check_depth(tree, text)
    return _formula(tree, text)


def _check_depth(tree: ast.expr, text: str) -> None:
    level: list[ast.AST] = [tree]
    for _ in range(_DEEPEST):
        level = [inner for node in level for inner in ast.iter_child_nodes(node)]
    if level:
        raise _too_deep(text)


def _too_deep(text: str) -> FormulaError:
    return FormulaError(
        f"formula {text[:20]!r}... has more than {_DEEPEST} operators one in the other, as in a "
        "sum of as many terms; give a shorter one"
    )


def nodes_of(formula: Formula) -> Iterator[Formula]:
    """Yield a formula and all that it is made of, each before its arguments."""
    yield formula
    if isinstance(formula, Apply):
        for argument in formula.arguments:
            yield from nodes_of(argument)


def _applied(formula: Formula) -> Iterator[Apply]:
    return (node for node in nodes_of(formula) if isinstance(node, Apply))


def names_in(formula: Formula) -> Iterator[str]:
    """Yield the names of a formula, each as often as it occurs."""
    return (node.text for node in nodes_of(formula) if isinstance(node, Name))


def is_own_word(operator: str) -> bool:
    """Return whether an operator is a function of a user."""
    return operator.isidentifier() and not (
        operator in ("or", "if") or operator in WORDS or operator in formats
    )


def own_words_in(formula: Formula) -> Iterator[str]:
    """Yield the functions of a user in a formula, each as often as it occurs."""
    return (call.operator for call in _own_calls(formula))


def _own_calls(formula: Formula) -> Iterator[Apply]:
    return (node for node in _applied(formula) if is_own_word(node.operator))


def words_in(text: str) -> frozenset[str]:
    """Return the operators, functions and formats of a formula."""
    return frozenset(node.operator for node in _applied(parsed(text)))


def percentiles_in(formula: Formula) -> Iterator[Percentile]:
    """Yield the percentiles of a formula, each as often as it occurs."""
    return (node for node in nodes_of(formula) if isinstance(node, Percentile))


def reserved_words() -> frozenset[str]:
    """Return the words of formulas that no scale can be named."""
    return RESERVED.union(formats, formula_functions)


def check_formula(
    place: str,
    text: str,
    known: Collection[str],
    functions: Collection[str] = (),
    *,
    of_part: bool = True,
) -> None:
    """BLF-002 and BLF-007: refuse an unknown word or name, and an order that loses a NaN.

    `functions` are those of a user that need not be here. `of_part` says whether the formula is of
    a part of a tensor, which has percentiles.
    """
    try:
        formula = parsed(text)
    except FormulaError as error:
        raise FormulaError(f"{place}: {error}") from None
    for name in names_in(formula):
        if name not in known:
            raise FormulaError(
                f"{place} is a formula {text!r} that has {name!r}; {_near(name, known)}give one "
                f"of {', '.join(known)}"
            )
    if not of_part and any(percentiles_in(formula)):
        raise FormulaError(
            f"{place} is a formula {text!r} that has a percentile; give it in the number of a "
            "scale, or in a try"
        )
    for call in _own_calls(formula):
        _check_call(place, text, call, functions)
    for losing in _losing_nans(text):
        raise FormulaError(
            f"{place} is a formula {text!r} that loses a NaN in {losing}, which keeps that of its "
            "first argument alone; exchange its arguments"
        )


def _near(name: str, known: Collection[str]) -> str:
    """Return a question for the name that somebody means, if there is one like it."""
    return "".join(
        f"did you mean {near}? " for near in difflib.get_close_matches(name, known, 1, 0.7)
    )


def _check_call(place: str, text: str, call: Apply, functions: Collection[str]) -> None:
    """BLF-010: refuse a function that nobody knows, and one with another number of arguments."""
    name, count = call.operator, len(call.arguments)
    own = formula_functions.known(name)
    if own is None and name not in functions:
        known = (*WORDS, PERCENTILE, *formula_functions)
        hint = _near(name, (*known, *formats))
        raise FormulaError(
            f"{place} is a formula {text!r} that calls {name!r}; {hint}give {', '.join(known)} or "
            f"the name of a format, or add your function: "
            f"mor_ref.formula_functions[{name!r}] = mor_ref.FormulaFunction({name})"
        )
    if own is not None and own.count != count:
        raise FormulaError(
            f"{place} is a formula {text!r} that gives {name} {count} arguments; give {own.count}"
        )


@functools.lru_cache(maxsize=1024)
def _losing_nans(text: str) -> tuple[str, ...]:
    """Return each min and max whose second argument alone depends on a tensor, as it is written."""
    source, losing = text.strip(), list[str]()
    for node in ast.walk(ast.parse(source, mode="eval")):
        match node:
            case ast.Call(func=ast.Name(id="min" | "max"), args=[first, second]):
                if _depends_on_a_tensor(_formula(second, text)) and not _depends_on_a_tensor(
                    _formula(first, text)
                ):
                    losing.append(ast.get_source_segment(source, node) or "")
    return tuple(losing)


def _depends_on_a_tensor(formula: Formula) -> bool:
    return any(names_in(formula)) or any(percentiles_in(formula))


def _formula(node: ast.expr, text: str) -> Formula:
    number = _constant(node, text)
    if number is not None:
        return Number(number)
    match node:
        case ast.Name(id=name):
            return Name(name)
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div()):
            return Apply(_OPERATORS[type(node.op)], _formulas((node.left, node.right), text))
        case ast.Compare(left=left, ops=[ast.Lt() | ast.Gt() as compared], comparators=[right]):
            return Apply(_OPERATORS[type(compared)], _formulas((left, right), text))
        case ast.BoolOp(op=ast.Or(), values=[_, _]):
            return Apply("or", _formulas(tuple(node.values), text))
        case ast.IfExp():
            return Apply("if", _formulas((node.test, node.body, node.orelse), text))
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name == PERCENTILE:
            return _percentile(argument, text)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            count = 1 if name in formats else WORDS.get(name, len(arguments))
            if count == len(arguments):  # a word that is not known may be a function of a user
                return Apply(name, _formulas(tuple(arguments), text))
    raise _no_formula(node, text)


def _no_formula(node: ast.expr, text: str) -> FormulaError:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        *others, a, b = map(ast.unparse, node.values)
        instead = functools.reduce(
            lambda right, left: f"{left} or ({right})", others[::-1], f"{a} or {b}"
        )
        return FormulaError(f"formula {text!r} has two `or` in a row; give {instead!r}")
    return FormulaError(
        f"formula {text!r} has {ast.unparse(node)!r}; give numbers, names, + - * /, `a or b`, "
        "`a if b < c else d`, the name of a format, or "
        f"{', '.join((*WORDS, PERCENTILE, *formula_functions))}"
    )


def _percentile(argument: ast.expr, text: str) -> Percentile:
    """BLF-007: refuse a percentile that is not one of a hundred, or that has a long fraction."""
    percent = _constant(argument, text)
    if percent is None or not 0 < percent <= 100 or (percent * _PERCENTS).denominator > 1:
        raise FormulaError(
            f"formula {text!r} has a percentile of {ast.unparse(argument)!r}; give a number above "
            "0 and at most 100 with at most 4 decimals, such as 99.5"
        )
    return Percentile(percent)


def _formulas(nodes: tuple[ast.expr, ...], text: str) -> tuple[Formula, ...]:
    return tuple(_formula(node, text) for node in nodes)


def _constant(node: ast.expr, text: str) -> Fraction | None:
    """Return the number that a literal, a power of literals or a named constant is, or None."""
    match node:
        case ast.Constant(value=int() | float()):
            return _literal(ast.get_source_segment(text.strip(), node) or "", text)
        case ast.Name(id=name):
            return _CONSTANTS.get(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number = _constant(operand, text)
            return None if number is None else -number
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            base, exponent = _constant(left, text), _constant(right, text)
            if base is not None and exponent is not None and exponent.denominator == 1:
                return _power(base, int(exponent), ast.unparse(node), text)
    return None


def _literal(literal: str, text: str) -> Fraction:
    try:
        number = Decimal(literal.replace("_", ""))
    except ArithmeticError:
        raise FormulaError(
            f"formula {text!r} has {literal}, which is no decimal number; give one such as "
            "16 or 0.25"
        ) from None
    if number and not -100 <= number.adjusted() < 100:
        raise _beyond_binary32(literal, text)
    return Fraction(number) if number else Fraction(0)


def _power(base: Fraction, exponent: int, literal: str, text: str) -> Fraction:
    bits = max(abs(base.numerator), base.denominator).bit_length() * abs(exponent)
    if bits > _MOST_BITS or (base == 0 and exponent < 0):
        raise _beyond_binary32(literal, text)
    number = base**exponent
    if number and not _SMALLEST <= abs(number) < _LARGEST:
        raise _beyond_binary32(literal, text)
    return number


def _beyond_binary32(literal: str, text: str) -> FormulaError:
    return FormulaError(
        f"formula {text!r} has {literal}, which is far beyond the numbers of binary32; give 0, or "
        "one from 1e-100 to 1e100"
    )
