"""Operators of mistakes as terms: what `mor_ref.mistakes.arithmetic` computes for columns."""

from collections.abc import Callable, Iterator

from mor_ref.mistakes.arithmetic import OPERATIONS
from mor_ref.proofs.terms import (
    Direction,
    Term,
    absolute,
    arithmetic,
    bits_of,
    choice,
    in_format,
    is_class,
    is_less,
    negative,
    number,
    number_of,
    on_words,
    word,
)

Operation = Callable[..., Term]
_ZERO, _ONE, _TWO, _MAX = number(0), number(0x3F800000), number(0x40000000), number(0x7F7FFFFF)
_DIRECTIONS: dict[str, Direction] = {
    "truncated": "zero",
    "up": "up",
    "down": "down",
    "ties-away": "away",
}
_NARROW = {"bf16": (8, 8), "f16": (5, 11), "tf32": (8, 11)}


def _as_is(operator: str) -> Operation:
    if operator == "square":
        return lambda a: arithmetic("*", a, a)
    return lambda a, b: arithmetic(operator, a, b)


def _directed(operator: str, direction: Direction) -> Operation:
    """Return an operation that rounds in a direction; a sum that is exactly 0 has no other sign."""
    nearest = _as_is(operator)
    if operator == "square":
        return lambda a: arithmetic("*", a, a, direction=direction)
    if operator in "*/":
        return lambda a, b: arithmetic(operator, a, b, direction=direction)

    def run(a: Term, b: Term) -> Term:
        near = nearest(a, b)
        other = arithmetic(operator, a, b, direction=direction)
        return choice(is_class("zero", near), near, other)

    return run


def _flushed(x: Term) -> Term:
    zero = choice(is_class("signed", x), negative(_ZERO), _ZERO)
    return choice(is_class("subnormal", x), zero, x)


def _saturated(x: Term) -> Term:
    largest = choice(is_class("signed", x), negative(_MAX), _MAX)
    return choice(is_class("infinite", x), largest, x)


def _changed(operator: str) -> Iterator[tuple[str, Operation]]:
    """Yield the operations with which a wrong program computes one, by their words."""
    right = _as_is(operator)
    for name, direction in _DIRECTIONS.items():
        yield name, _directed(operator, direction)
    changes = {f"in-{name}": _narrowed(*widths) for name, widths in _NARROW.items()}
    changes |= {"flushed": _flushed, "saturated": _saturated}
    for name, change in changes.items():
        yield name, lambda *operands, change=change: change(right(*operands))
        yield f"operands-{name}", lambda *operands, change=change: right(*map(change, operands))


def _narrowed(exponent_bits: int, significand_bits: int) -> Callable[[Term], Term]:
    return lambda x: in_format(x, exponent_bits, significand_bits)


def _newton(a: Term, b: Term) -> Term:
    """Return a times a reciprocal of b that starts from that of the next number."""
    bits = bits_of(b)
    above = choice(
        is_class("signed", b), on_words("-", bits, word(1)), on_words("+", bits, word(1))
    )
    is_plain = is_less(absolute(b), number(0x7F800000))
    moved = choice(is_class("zero", b), b, choice(is_plain, number_of(above), b))
    first = arithmetic("/", _ONE, moved)
    rest = arithmetic("-", _TWO, arithmetic("*", b, first))
    return arithmetic("*", a, arithmetic("*", first, rest))


def _without_nan(right: Operation) -> Operation:
    def run(a: Term, b: Term) -> Term:
        kept = choice(is_class("nan", b), a, right(a, b))
        return choice(is_class("nan", a), b, kept)

    return run


def _or_equal(a: Term, b: Term) -> Term:
    is_nan = choice(is_class("nan", a), is_class("nan", a), is_class("nan", b))
    more = choice(is_less(b, a), _ZERO, _ONE)
    return choice(is_nan, _ZERO, more)


WRONG: dict[str, Operation] = {
    **{
        f"{operator} {name}": operation
        for operator in OPERATIONS
        for name, operation in _changed(operator)
    },
    "newton": _newton,
    "fused +": lambda a, b, c: arithmetic("fused", a, b, c),
    "fused -": lambda a, b, c: arithmetic("fused", a, b, negative(c)),
    "nan-dropped min": _without_nan(lambda a, b: choice(is_less(b, a), b, a)),
    "nan-dropped max": _without_nan(lambda a, b: choice(is_less(a, b), b, a)),
    "<=": _or_equal,
    ">=": lambda a, b: _or_equal(b, a),
}
