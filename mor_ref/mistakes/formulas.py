"""Mistakes in formulas: each operator of a tree, done otherwise."""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from operator import ge, gt, le, lt
from typing import NamedTuple

from mor_ref.definitions.formats import formats
from mor_ref.definitions.formulas import (
    MAX,
    Apply,
    Computed,
    Formula,
    Name,
    Number,
    Percentile,
    nodes_of,
)
from mor_ref.exact.arithmetic import nearest_in, rn32, rn32_of_binary64
from mor_ref.exact.columns import Column
from mor_ref.mistakes.arithmetic import (
    OPERATIONS,
    ROUNDED,
    UNROUNDED,
    WORDS,
    fused,
    in_binary64,
    one_newton_step,
)

_ONE = Number(Fraction(1))
_ARITHMETIC = (*OPERATIONS, "min", "max", "abs", "or", "if", "<", ">")
_PRECEDENCE = {"if": 0, "or": 1, "<": 2, ">": 2, "+": 3, "-": 3, "*": 4, "/": 4}


class WrongFormula(NamedTuple):
    """A wrong formula: a word for its name, a sentence, and its tree."""

    name: str
    words: str
    formula: Formula


def text_of(formula: Formula, outer: int = -1) -> str:
    """Return a formula as it is written.

    >>> from mor_ref.definitions.formulas import parsed
    >>> text_of(parsed("amax * (S * (1 / 6)) or 1"))
    'amax * (S * (1 / 6)) or 1'
    """
    match formula:
        case Number(value):
            return _number(value)
        case Name(text):
            return text
        case Percentile() as percentile:
            return percentile.name
        case Apply("if", (test, a, b)):
            text = f"{text_of(a, 1)} if {text_of(test, 1)} else {text_of(b, 0)}"
            return f"({text})" if outer >= 0 else text
        case Apply(operator, (a, b)) if operator in _PRECEDENCE:
            own = _PRECEDENCE[operator]
            text = f"{text_of(a, own)} {operator} {text_of(b, own + 1)}"
            return f"({text})" if own < outer else text
        case Apply(operator, arguments):
            return f"{operator}({', '.join(map(text_of, arguments))})"
    raise AssertionError(formula)


def _number(value: Fraction) -> str:
    if value == MAX:
        return "MAX"
    if value.denominator == 1 and abs(value) < 1 << 24:
        return str(value.numerator)
    exponent = math.log2(abs(value)) if value else 0.0
    if exponent == int(exponent) and abs(value) == Fraction(2) ** int(exponent):
        return f"{'-' if value < 0 else ''}2**{int(exponent)}"
    return f"{float(value):.9g}"


def wrong_formulas(formula: Formula) -> Iterator[WrongFormula]:
    """Yield the formulas that differ in one operator, each once; twins of a name have a number."""
    seen, twins = {formula}, Counter[str]()
    for wrong in (*_whole(formula), *_at_nodes(formula)):
        if wrong.formula not in seen:
            seen.add(wrong.formula)
            twins[wrong.name] += 1
            twin = twins[wrong.name]
            yield wrong if twin == 1 else wrong._replace(name=f"{wrong.name}-{twin}")


def _at_nodes(formula: Formula) -> Iterator[WrongFormula]:
    """Yield what is wrong at each node; a program computes what is written twice once."""
    for node in dict.fromkeys(nodes_of(formula)):
        for wrong in _wrong_node(node, text_of(node)):
            yield wrong._replace(formula=_with(formula, node, wrong.formula))


def _with(formula: Formula, node: Formula, new: Formula) -> Formula:
    """Return a formula with another one in place of a node, wherever that is."""
    if formula == node:
        return new
    if not isinstance(formula, Apply):
        return formula
    arguments = tuple(_with(argument, node, new) for argument in formula.arguments)
    return Apply(formula.operator, arguments)


def _whole(formula: Formula) -> Iterator[WrongFormula]:
    """Yield a formula whose several operations are done in binary64, and rounded once."""
    count = sum(
        isinstance(node, Apply) and node.operator in OPERATIONS for node in nodes_of(formula)
    )
    is_plain = all(
        node.operator in _ARITHMETIC for node in nodes_of(formula) if isinstance(node, Apply)
    )
    if count < 2 or not is_plain:
        return
    leaves = tuple(dict.fromkeys(n for n in nodes_of(formula) if isinstance(n, Name | Percentile)))
    names = [leaf.text if isinstance(leaf, Name) else leaf.name for leaf in leaves]
    compute = _in_python(formula)
    operation = in_binary64(lambda *operands: compute(dict(zip(names, operands, strict=True))))
    yield WrongFormula(
        "in-binary64",
        f"`{text_of(formula)}` is computed in binary64 and rounded once",
        Computed("in-binary64", leaves, operation),
    )


def _in_python(formula: Formula) -> Callable[[dict[str, float]], float]:
    """Return a formula as a function of Python's floats, which are of binary64."""
    match formula:
        case Number(value):
            constant = float(value)
            return lambda _: constant
        case Name(text):
            return lambda names: names[text]
        case Percentile() as percentile:
            return lambda names: names[percentile.name]
        case Apply(operator, arguments):
            parts = [_in_python(argument) for argument in arguments]
            operation = _IN_PYTHON[operator]
            return lambda names: operation(*(part(names) for part in parts))
    raise AssertionError(formula)


def _divided(a: float, b: float) -> float:
    if b != 0:
        return a / b
    is_nan = a == 0 or math.isnan(a)
    return math.nan if is_nan else math.copysign(math.inf, a) * math.copysign(1, b)


_IN_PYTHON: dict[str, Callable[..., float]] = {
    **UNROUNDED,
    "/": _divided,
    "abs": abs,
    "min": min,
    "max": max,
    "or": lambda a, b: a or b,
    "if": lambda test, a, b: a if test else b,
    "<": lt,
    ">": gt,
}


def _wrong_node(node: Formula, text: str) -> Iterator[WrongFormula]:
    if isinstance(node, Number):
        yield from _wrong_number(node, text)
    if not isinstance(node, Apply):
        return
    operator, arguments = node.operator, node.arguments
    if operator in OPERATIONS:
        called = f"the {WORDS[operator]} `{text}`"
        for wrong in ROUNDED:
            name = f"{WORDS[operator]}-{wrong.name}"
            computed = Computed(f"{operator} {wrong.name}", arguments, wrong.of(operator))
            yield WrongFormula(name, f"{called} {wrong.words}", computed)
        yield from _rewritten(node, called)
    if operator in _EXCHANGED:
        other = Apply(_EXCHANGED[operator], arguments)
        yield WrongFormula(
            f"{other.operator}-for-{operator}", f"`{text}` is `{text_of(other)}`", other
        )
    if operator in _WRONG_WORDS:
        yield from _WRONG_WORDS[operator](node, text)
    elif operator in formats:
        yield from _wrong_rounding(node, text)


_EXCHANGED = {"square": "abs", "abs": "square"}


def _wrong_number(node: Number, text: str) -> Iterator[WrongFormula]:
    """Yield constants that a narrower format holds, where it changes them."""
    for name, words in (("bf16", "bfloat16"), ("f16", "binary16")):
        value = nearest_in(rn32(node.value), formats[name])
        if math.isfinite(value) and Fraction(value) != node.value:
            sentence = f"the constant {text} is rounded to {words}"
            yield WrongFormula(f"constant-in-{name}", sentence, Number(Fraction(value)))


def _rewritten(node: Apply, called: str) -> Iterator[WrongFormula]:
    """Yield what is the same for real numbers, and is rounded otherwise."""
    for name, formula in (*_other_quotients(node), *_other_orders(node)):
        yield WrongFormula(name, f"{called} is computed as `{text_of(formula)}`", formula)
    match node:
        case Apply("/", (a, b)):
            words = f"{called} is a product with a reciprocal of one Newton step"
            yield WrongFormula("newton", words, Computed("newton", (a, b), one_newton_step))
        case Apply("+" | "-" as sign, (Apply("*", (a, b)), c)):
            fma = Computed(f"fused {sign}", (a, b, c), fused(1 if sign == "+" else -1))
            yield WrongFormula("fused", f"{called} is fused, with one rounding", fma)


def _other_quotients(node: Apply) -> Iterator[tuple[str, Formula]]:
    match node:
        case Apply("/", (a, b)) if a != _ONE:
            yield "by-reciprocal", Apply("*", (a, Apply("/", (_ONE, b))))
        case Apply("*", (a, Apply("/", (first, b)))) if first == _ONE:
            yield "divided", Apply("/", (a, b))


def _other_orders(node: Apply) -> Iterator[tuple[str, Formula]]:
    match node:
        case Apply("*", (Apply("*", (a, b)), c)):
            yield "other-order", Apply("*", (a, Apply("*", (b, c))))
        case Apply("*", (Apply("/", (a, b)), c)):
            yield "other-order", Apply("/", (Apply("*", (a, c)), b))
        case Apply("/", (Apply("/", (a, b)), c)):
            yield "other-order", Apply("/", (a, Apply("*", (b, c))))
        case Apply("/", (Apply("*", (a, b)), c)):
            yield "other-order", Apply("*", (a, Apply("/", (b, c))))
        case Apply("+", (Apply("+", (a, b)), c)):
            yield "other-order", Apply("+", (a, Apply("+", (b, c))))
    match node:
        case Apply("*", (a, Apply("/", (b, c)))) if b != _ONE:
            yield "other-order-of-right", Apply("/", (Apply("*", (a, b)), c))
        case Apply("*", (a, Apply("*", (b, c)))):
            yield "other-order-of-right", Apply("*", (Apply("*", (a, b)), c))
        case Apply("/", (a, Apply("/", (b, c)))):
            yield "other-order-of-right", Apply("/", (Apply("*", (a, c)), b))
        case Apply("/", (a, Apply("*", (b, c)))):
            yield "other-order-of-right", Apply("/", (Apply("/", (a, b)), c))


def _wrong_limit(node: Apply, text: str) -> Iterator[WrongFormula]:
    a, b = node.arguments
    if not isinstance(a, Number):
        yield WrongFormula("limit-left-out", f"`{text}` is `{text_of(a)}`", a)
    if not isinstance(b, Number):
        name = "limit-left-out" if isinstance(a, Number) else "number-left-out"
        yield WrongFormula(name, f"`{text}` is `{text_of(b)}`", b)
    keeps = min if node.operator == "min" else max

    def drops_nan(first: Column, second: Column) -> Column:
        return [
            y if math.isnan(x) else x if math.isnan(y) else keeps(x, y)
            for x, y in zip(first, second, strict=True)
        ]

    computed = Computed(f"nan-dropped {node.operator}", (a, b), drops_nan)
    yield WrongFormula("nan-dropped", f"`{text}` drops a NaN", computed)


def _wrong_or(node: Apply, text: str) -> Iterator[WrongFormula]:
    yield WrongFormula(
        "zero-not-replaced", f"`{text}` is not replaced where it is 0", node.arguments[0]
    )


def _wrong_if(node: Apply, text: str) -> Iterator[WrongFormula]:
    test, a, b = node.arguments
    yield WrongFormula("never", f"the test of `{text}` never holds", b)
    yield WrongFormula("always", f"the test of `{text}` always holds", a)
    if isinstance(test, Apply) and test.operator in ("<", ">"):
        compare = le if test.operator == "<" else ge

        def with_equals(first: Column, second: Column) -> Column:
            return list(map(float, map(compare, first, second)))

        wrong = Apply("if", (Computed(f"{test.operator}=", test.arguments, with_equals), a, b))
        sentence = f"`{text_of(test)}` holds for equal numbers as well"
        yield WrongFormula("with-equals", sentence, wrong)


def _wrong_power(node: Apply, text: str) -> Iterator[WrongFormula]:
    x, turn = node.arguments
    for name, words, fixed in (
        ("floor", "rounds down to a power of two", Fraction(2)),
        ("ceil", "rounds up to a power of two", 1 + Fraction(1, 1 << 23)),
    ):
        yield WrongFormula(name, f"`{text}` {words}", Apply("pow2", (x, Number(fixed))))

    def by_logarithm(numbers: Column, turns: Column) -> Column:
        return [_by_logarithm(number, turn) for number, turn in zip(numbers, turns, strict=True)]

    sentence = f"the exponent of `{text}` comes from a logarithm in binary32"
    yield WrongFormula("log2-in-binary32", sentence, Computed("log2", (x, turn), by_logarithm))


def _by_logarithm(x: float, turn: float) -> float:
    if x == 0 or not math.isfinite(x):
        return x
    exponent = math.floor(rn32_of_binary64(math.log2(abs(x))))
    goes_up = math.ldexp(abs(x), -exponent) >= turn
    return math.copysign(math.ldexp(1.0, exponent + goes_up), x)


def _wrong_rounding(node: Apply, text: str) -> Iterator[WrongFormula]:
    (argument,) = node.arguments
    yield WrongFormula("not-rounded", f"`{text}` is not rounded", argument)


_WRONG_WORDS: dict[str, Callable[[Apply, str], Iterator[WrongFormula]]] = {
    "min": _wrong_limit,
    "max": _wrong_limit,
    "or": _wrong_or,
    "if": _wrong_if,
    "pow2": _wrong_power,
}
