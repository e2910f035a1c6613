"""Constants of PTX and expressions of them, as ptxas reads them.

Integers have 64 bits, and a sign unless they end in U or are at least 2^63. Real numbers are
binary64.
"""

import functools
import math
import operator
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass

from mor_ref.ptx.program import WIDTHS

_MOST_BITS = 64  # of an integer
_MOST_DIGITS = 20  # of a decimal one
_MOST_DEPTH = 32  # of parentheses and signs
_LEAST_REAL = 32  # bits
_LEAST_NORMAL = 2.0**-1022
_WARP = 32
_TOKEN = re.compile(
    r"\s*(?:(?P<single>0[fF][0-9a-fA-F]{8})|(?P<double>0[dD][0-9a-fA-F]{16})"
    r"|(?P<real>(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)"
    r"|0[xX](?P<hex>[0-9a-fA-F]+U?)|0[bB](?P<binary>[01]+U?)|0(?P<octal>[0-7]+U?)"
    r"|(?P<decimal>(?:0|[1-9]\d*)U?)|(?P<warp>WARP_SZ\b)|\(\s*\.(?P<cast>[su]64)\s*\)"
    r"|(?P<sign>\|\||&&|==|!=|<=|>=|<<|>>|%(?![\w$])|[-+*/&|^<>!~?:()]))"
)
_BASES = {"hex": 16, "binary": 2, "octal": 8, "decimal": 10}
_MAY_BEGIN = frozenset("0123456789.+-!~(W")
_ORDER = ("||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %")
_STRENGTHS = {word: k for k, words in enumerate(_ORDER, 1) for word in words.split()}
_SUMS: dict[str, Callable[..., int | float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
}  # fmt: skip
_COMPARISONS: dict[str, Callable[..., bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt,
    "<=": operator.le, ">=": operator.ge,
}  # fmt: skip
_BITS: dict[str, Callable[[int, int], int]] = {
    "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip


@dataclass(frozen=True)
class Constant:
    """A constant: an integer (`s64`, `u64`), a real number (`f64`), or bits of binary32 (`b32`)."""

    type: str
    value: int | float


class MistakeError(ValueError):
    """Why a text is not a constant expression."""


@functools.lru_cache(1 << 12)
def _read(text: str) -> Constant | str:
    """Return a constant, or why there is none; names of registers and memory are not constants."""
    if text[:1] not in _MAY_BEGIN:
        return "is not supported"
    try:
        return _Reader(text).whole()
    except MistakeError as mistake:
        return str(mistake)


def constant_of(text: str) -> Constant | None:
    """Return the constant that a text is, or None."""
    found = _read(text)
    return found if isinstance(found, Constant) else None


def mistake_in(text: str) -> str:
    """Return why a text is not a constant."""
    found = _read(text)
    return found if isinstance(found, str) else "is not supported"


def number_of(text: str, kind: str) -> int | None:
    """Return a constant as the bits of a type, or None if the text is not one."""
    constant, bits = constant_of(text), WIDTHS[kind]
    if constant is None:
        return None
    if constant.type in ("s64", "u64"):
        return int(constant.value) & ((1 << bits) - 1)
    if bits < _LEAST_REAL:
        return None
    if constant.type == "b32":
        number = struct.unpack("<f", struct.pack("<I", constant.value))[0]
        return int(constant.value) if bits == _LEAST_REAL else _real_bits(number, bits)
    return _real_bits(constant.value, bits)


def _real_bits(number: float, bits: int) -> int:
    try:
        packed = struct.pack(">f" if bits == _LEAST_REAL else ">d", number)
    except OverflowError:
        packed = struct.pack(">f", math.copysign(math.inf, number))
    return int.from_bytes(packed, "big")


def wrapped(kind: str, number: int) -> Constant:
    """Return an integer of 64 bits, without the bits above them."""
    bits = number & ((1 << _MOST_BITS) - 1)
    has_sign = kind == "s64" and bits >> (_MOST_BITS - 1)
    return Constant(kind, bits - (1 << _MOST_BITS) if has_sign else bits)


class _Reader:
    """A constant expression and the place up to which it is read."""

    def __init__(self, text: str) -> None:
        self.tokens, self.at, self.depth, end = list[tuple[str, str]](), 0, 0, 0
        text = text.rstrip()
        while end < len(text):
            found = _TOKEN.match(text, end)
            if not found:
                raise MistakeError("is not supported")
            group = found.lastgroup or ""
            self.tokens.append((group, found[group]))
            end = found.end()

    def whole(self) -> Constant:
        """Return the value of all of the text."""
        found = self._choice()
        if self.at < len(self.tokens):
            raise MistakeError("is not supported")
        return found

    def _next(self) -> str:
        """Return the operator that follows, or an empty text."""
        group, word = self.tokens[self.at] if self.at < len(self.tokens) else ("", "")
        return word if group == "sign" else ""

    def _take(self, word: str) -> None:
        if self._next() != word:
            raise MistakeError("is not supported")
        self.at += 1

    def _choice(self) -> Constant:
        found = self._joined(1)
        if self._next() != "?":
            return found
        self._enter()
        self._take("?")
        first = self._choice()
        self._take(":")
        second = self._choice()
        self.depth -= 1
        if not all(map(_is_integer, (found, first, second))):
            raise MistakeError("chooses by real numbers, or between them")
        return first if found.value else second

    def _joined(self, least: int) -> Constant:
        """Return what operators join that bind at least so strongly."""
        found = self._signed()
        while (strength := _STRENGTHS.get(self._next(), 0)) >= least:
            word = self._next()
            self.at += 1
            found = _applied(word, found, self._joined(strength + 1))
        return found

    def _enter(self) -> None:
        self.depth += 1
        if self.depth > _MOST_DEPTH:
            raise MistakeError(f"is nested more than {_MOST_DEPTH} times")

    def _signed(self) -> Constant:
        group, word = self.tokens[self.at] if self.at < len(self.tokens) else ("", "")
        self.at += 1
        if group not in ("sign", "cast"):
            return _literal(group, word)
        self._enter()
        if word == "(":
            found = self._choice()
            self._take(")")
        elif group == "cast" or word in ("+", "-", "!", "~"):
            found = _changed(word, self._signed())
        else:
            raise MistakeError("is not supported")
        self.depth -= 1
        return found


def _is_integer(constant: Constant) -> bool:
    return constant.type in ("s64", "u64")


def _literal(group: str, word: str) -> Constant:
    """Return a number as it is written."""
    if group == "single":
        return Constant("b32", int.from_bytes(bytes.fromhex(word[2:]), "big"))
    if group == "double":
        return Constant("f64", struct.unpack(">d", bytes.fromhex(word[2:]))[0])
    if group == "real":
        number = float(word)
        is_tiny = number < _LEAST_NORMAL and bool(re.match(r"[.0]*[1-9]", word))
        if math.isinf(number) or is_tiny:
            raise MistakeError("is beyond the normal numbers of binary64")
        return Constant("f64", number)
    if group == "warp":
        return Constant("s64", _WARP)
    if group not in _BASES:
        raise MistakeError("is not supported")
    digits = word.removesuffix("U")
    is_long = group == "decimal" and len(digits) > _MOST_DIGITS
    number = 1 << _MOST_BITS if is_long else int(digits, _BASES[group])
    if number >> _MOST_BITS:
        raise MistakeError(f"is too large for {_MOST_BITS} bits")
    has_sign = digits == word and not number >> (_MOST_BITS - 1)
    return Constant("s64" if has_sign else "u64", number)


def _changed(word: str, of: Constant) -> Constant:
    """Return a constant behind a sign or a cast."""
    if of.type == "f64" and word in "+-":
        return Constant("f64", -of.value if word == "-" else of.value)
    if not _is_integer(of):
        raise MistakeError(f"has a real number behind {word!r}")
    number = int(of.value)
    if word == "!":
        return Constant("s64", int(not number))
    if word == "~":
        return wrapped("u64", ~number)
    return wrapped(of.type if word in "+-" else word, -number if word == "-" else number)


def _applied(word: str, a: Constant, b: Constant) -> Constant:
    """Return what an operator makes of two constants."""
    if a.type == b.type == "f64":
        return _of_reals(word, a.value, b.value)
    if not (_is_integer(a) and _is_integer(b)):
        raise MistakeError(f"has numbers of two types, or bits, at {word!r}")
    if word in ("&&", "||"):
        both = bool(a.value), bool(b.value)
        return Constant("s64", int(all(both) if word == "&&" else any(both)))
    x, y = int(a.value), int(b.value)
    if word in ("<<", ">>"):  # ptxas leaves it to the processor that it runs on
        count = y % _MOST_BITS
        return wrapped(a.type, x << count if word == "<<" else x >> count)
    kind = "u64" if word == "%" or "u64" in (a.type, b.type) else "s64"
    x, y = (int(wrapped(kind, each).value) for each in (x, y))
    if word in _COMPARISONS:
        return Constant("s64", int(_COMPARISONS[word](x, y)))
    if word in "/%":
        return wrapped(kind, _quotient(word, x, y))
    return wrapped(kind, int({**_SUMS, **_BITS}[word](x, y)))


def _quotient(word: str, x: int, y: int) -> int:
    if not y:
        raise MistakeError("divides by zero")
    if word == "%":
        return x % y
    found = abs(x) // abs(y) * (-1 if (x < 0) != (y < 0) else 1)
    if found >> (_MOST_BITS - 1) == 1 and x < 0:
        raise MistakeError("divides -2^63 by -1")
    return found


def _of_reals(word: str, x: float, y: float) -> Constant:
    if word in _COMPARISONS:
        return Constant("s64", int(_COMPARISONS[word](x, y)))
    if word == "/":
        if not y:
            raise MistakeError("divides by zero")
        return Constant("f64", x / y)
    if word not in _SUMS:
        raise MistakeError(f"has real numbers at {word!r}")
    return Constant("f64", _SUMS[word](x, y))
