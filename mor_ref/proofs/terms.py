"""Terms: computations of binary32 numbers and of words of 32 bits, as trees that are data.

NumPy evaluates a term for columns of variables, and a solver decides questions about all of them.
A tree that is made twice is one object.
"""

import functools
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Sort = Literal["number", "word", "test"]
Direction = Literal["nearest", "away", "zero", "up", "down"]


@dataclass(frozen=True, eq=False)
class Term:
    """An operator, its arguments, and what else it is told: a constant, a rounding or a width."""

    operator: str
    arguments: "tuple[Term, ...]"
    data: tuple[Hashable, ...]
    sort: Sort


@functools.cache
def _made(
    operator: str, arguments: tuple[Term, ...], data: tuple[Hashable, ...], sort: Sort
) -> Term:
    return Term(operator, arguments, data, sort)


def variable(name: str) -> Term:
    """Return a number that may be any of binary32."""
    return _made("variable", (), (name,), "number")


def number(bits: int) -> Term:
    """Return the number of a binary32 pattern."""
    return _made("number", (), (bits,), "number")


def word(value: int) -> Term:
    """Return a word of 32 bits; a negative one wraps."""
    return _made("word", (), (value % (1 << 32),), "word")


def arithmetic(operator: str, *operands: Term, direction: Direction = "nearest") -> Term:
    """Return a sum, difference, product or quotient, or the fused a * b + c, rounded once."""
    return _made(operator, operands, (direction,), "number")


def in_format(x: Term, exponent_bits: int, significand_bits: int) -> Term:
    """Return a number rounded to a narrower format of IEEE 754; the hidden bit counts."""
    return _made("in_format", (x,), (exponent_bits, significand_bits), "number")


def absolute(x: Term) -> Term:
    """Return the magnitude of a number."""
    return _made("absolute", (x,), (), "number")


def negative(x: Term) -> Term:
    """Return a number with the other sign."""
    return _made("negative", (x,), (), "number")


def is_class(kind: Literal["nan", "infinite", "zero", "subnormal", "signed"], x: Term) -> Term:
    """Return whether a number is of a class; a zero can be signed as well, but no NaN."""
    return _made(kind, (x,), (), "test")


def is_less(a: Term, b: Term) -> Term:
    """Return whether a < b as numbers or words; nothing is less than a NaN."""
    return _made("less", (a, b), (a.sort,), "test")


def same(a: Term, b: Term) -> Term:
    """Return whether two words are equal, or two numbers have the same bits; NaNs are alike."""
    if a is b:
        return true()
    return _made("same", (a, b), (a.sort,), "test")


def true() -> Term:
    """Return a test that always holds."""
    return _made("true", (), (), "test")


def is_not(a: Term) -> Term:
    """Return whether a test does not hold."""
    return _made("not", (a,), (), "test")


def all_of(tests: Iterable[Term]) -> Term:
    """Return whether all tests hold."""
    result = true()
    for test in tests:
        result = test if result is true() else _made("and", (result, test), (), "test")
    return result


def any_of(tests: Iterable[Term]) -> Term:
    """Return whether some test holds."""
    return is_not(all_of(map(is_not, tests)))


def choice(test: Term, a: Term, b: Term) -> Term:
    """Return a where a test holds, else b."""
    if test is true() or a is b:
        return a
    return _made("choice", (test, a, b), (a.sort,), a.sort)


def bits_of(x: Term) -> Term:
    """Return the pattern of a number; of a NaN, a pattern that nothing may depend on."""
    return _made("bits", (x,), (), "word")


def number_of(bits: Term) -> Term:
    """Return the number of a pattern."""
    return _made("number_of", (bits,), (), "number")


def count_of(x: Term, direction: Direction) -> Term:
    """Return a number from 0 to 2^24 as an integer, rounded."""
    return _made("count", (x,), (direction,), "word")


def number_from_count(count: Term) -> Term:
    """Return an integer below 2^24 as a number."""
    return _made("from_count", (count,), (), "number")


def on_words(operator: Literal["+", "-", "&", "|", "<<", ">>"], a: Term, b: Term) -> Term:
    """Return an operation on words, which wraps."""
    return _made(f"word{operator}", (a, b), (), "word")


def in_order(term: Term) -> Iterator[Term]:
    """Yield a term and all that it is made of, each once, after its arguments."""
    seen, waiting = set[Term](), [(term, False)]
    while waiting:
        each, is_open = waiting.pop()
        if is_open:
            yield each
        elif each not in seen:
            seen.add(each)
            waiting.append((each, True))
            waiting += [(argument, False) for argument in each.arguments]


def with_others(term: Term, others: Mapping[Term, Term]) -> Term:
    """Return a term with other terms in place of some."""
    made = dict[Term, Term]()
    for each in in_order(term):
        arguments = tuple(made[argument] for argument in each.arguments)
        made[each] = others.get(each) or _made(each.operator, arguments, each.data, each.sort)
    return made[term]


def variables_of(term: Term) -> list[str]:
    """Return the names of the variables of a term."""
    return [str(each.data[0]) for each in in_order(term) if each.operator == "variable"]


def evaluated(term: Term, variables: Mapping[str, Any], operators: Mapping[str, Any]) -> Any:
    """Return the value of a term, given those of its variables and a function of each operator."""
    values = dict[Term, Any]()
    for each in in_order(term):
        if each.operator == "variable":
            values[each] = variables[str(each.data[0])]
        else:
            operands = map(values.__getitem__, each.arguments)
            values[each] = operators[each.operator](*operands, *each.data)
    return values[term]
