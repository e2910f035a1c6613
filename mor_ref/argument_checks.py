"""Arguments that are a name or a whole number, and answers that help when they are not."""

import difflib
import itertools
import math
import operator
import re
import reprlib
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import SupportsFloat

_MOST_ITEMS, _MOST_DIMENSIONS = 1 << 32, 64  # of nested lists; NumPy takes as many dimensions


class UnknownNameError(KeyError, ValueError):
    """A name that is not in its catalogue; both a KeyError and a ValueError."""

    def __str__(self) -> str:
        return str(self.args[0])


# Names in other software, as `spelling` writes them, with the names here of the same meaning: one,
# several if the name does not choose among them, or none.
OtherNames = Mapping[str, Sequence[str]]


def known_name(
    argument: str, given: object, known: Iterable[str], also: OtherNames | None = None
) -> str:
    """Return `given` if it is a known name; `also` has other people's names for the hint."""
    names = list(known)
    if isinstance(given, str) and given in names:
        return given
    hint, choice = hint_of(given, names, also), _choice(text_of(given).lower(), names)
    remedy = f"{hint}take {choice}" if names else "add it first, as --rows MODULE does for commands"
    raise UnknownNameError(f"{argument} is {shown(given)}, which is not known; {remedy}")


def hint_of(given: object, names: Collection[str], also: OtherNames | None = None) -> str:
    """Return a question for the known names that somebody means, or a word that there is none.

    A hint never changes the meaning: it is another spelling of a known name, a name in other
    software that means the same, or a slip of a letter that is near to one name alone.

    >>> hint_of("E4M3", ["e4m3", "e4m3fnuz"]), hint_of("e4m3fn", ["e4m3", "e4m3fnuz"])
    ("did you mean 'e4m3'? ", '')
    """
    text = spelling(given)
    same = [name for name in names if spelling(name) == text]
    if not same and also is not None and text in also:
        same = list(also[text])
        if not same:
            return "none of the known names means the same; "
    near = same or [name for name in names if _is_slip(text, spelling(name))]
    if not same and len(near) != 1:
        return ""
    return f"did you mean {' or '.join(map(repr, near))}? "


def spelling(name: object) -> str:
    """Return a name in small letters, without separators and without the name of a library.

    >>> spelling("torch.float8_e4m3fn"), spelling("Te-Row")
    ('float8e4m3fn', 'terow')
    """
    text = text_of(getattr(name, "__name__", name)).lower()
    return re.sub("[ _-]", "", _LIBRARY.sub("", text))


def text_of(given: object) -> str:
    """Return what is given as text; lists in short, as a few may stand for more than memory has."""
    return shown(given) if isinstance(given, list | tuple | dict) else str(given)


def shown(given: object) -> str:
    """Return what is given as Python writes it, in a few words if it is long."""
    return _SHORT.repr(given)


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 100  # characters


_LIBRARY = re.compile(r"(torch|jax\.numpy|jnp|ml_dtypes|numpy|np|tl)\.")


def _is_slip(text: str, name: str) -> bool:
    """Return whether two names differ in one letter of one word: one too many, too few or another.

    Digits are never a slip, as another digit is another format or another version. Nor is a letter
    of a word as short as those in `e4m3fnuz`.
    """
    given, known = (re.findall("[a-z]+|[^a-z]+", one) for one in (text, name))
    if len(given) != len(known):
        return False
    pairs = [pair for pair in zip(given, known, strict=True) if len(set(pair)) > 1]
    if len(pairs) != 1 or not pairs[0][0].isalpha() or len(pairs[0][0]) < _SHORTEST_WITH_SLIP:
        return False
    word, other = pairs[0]
    same = (a == b for a, b in zip(word, other, strict=False))
    start = sum(itertools.takewhile(bool, same))
    rest, left = word[start:], other[start:]
    return left in (rest[1:], left[:1] + rest, left[:1] + rest[1:])


_SHORTEST_WITH_SLIP = 4


def _choice(text: str, names: list[str]) -> str:
    """Return the names to choose from: of many those that are like the text, if any are."""
    near = difflib.get_close_matches(text, names, n=_MOST_SHOWN)
    like = [name for name in names if name in near or text in name.lower()]
    if len(names) > _MOST_SHOWN and 0 < len(like) <= _MOST_SHOWN:
        return f"one of {', '.join(like)}, or of the {len(names) - len(like)} others"
    return f"one of {', '.join(names)}" if len(names) > 1 else "".join(names)


_MOST_SHOWN = 24  # of the names of a catalogue, in a message

# Names go to programs as one token, into the names of cases, and into files (PRO-002).
_NAME_OF_A_ROW = re.compile("[A-Za-z][A-Za-z0-9_-]*")


def fault_of_name(given: object) -> str | None:
    """Return the fault of the name of a new row, and the next step; None without a fault."""
    if isinstance(given, str) and _NAME_OF_A_ROW.fullmatch(given):
        return None
    return f"name is {shown(given)}; give a letter, and then letters, digits, _ or -"


def lacking(given: object, members: Sequence[str]) -> str:
    """Return which members an object has and lacks, if it has some of them.

    >>> lacking(1, ["real", "imag", "phase"])
    ', which has real and imag but no phase'
    """
    has = [name for name in members if hasattr(given, name)]
    lacks = [name for name in members if name not in has]
    return f", which has {_and(has)} but no {_and(lacks)}" if has and lacks else ""


def _and(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + " and " * (len(names) > 1) + names[-1]


def check_name(given: object) -> None:
    """Refuse a name that a new row cannot have."""
    fault = fault_of_name(given)
    if fault:
        raise ValueError(fault)


def directory_named(argument: str, given: str) -> Path:
    """Return the path of a directory; refuse '', the value of an unset variable of a shell."""
    if not given:
        raise ValueError(f"{argument} is ''; give a directory; . is the current one")
    return Path(given)


def whole_number(argument: str, given: object, lowest: int, highest: int) -> int:
    """Return `given` as an int, if it is one between the two."""
    try:
        number = operator.index(given)  # type: ignore[arg-type]  # which is found out here
    except TypeError:
        number = None
    if number is None or isinstance(given, bool):
        raise TypeError(f"{argument} is {shown(given)}; {_whole_numbers(lowest, highest)}")
    if not lowest <= number <= highest:
        raise ValueError(f"{argument} is {shown(number)}; {_whole_numbers(lowest, highest)}")
    return number


def _whole_numbers(lowest: int, highest: int) -> str:
    return f"give an int from {lowest} to {'2^62' if highest == 1 << 62 else highest}"


def real_number(argument: str, given: object, example: str) -> float:
    """Return a number as a float, if it is one: of Python, NumPy, ml_dtypes, torch or JAX.

    >>> import numpy as np
    >>> real_number("amax", np.float32(3.5), "3.5"), real_number("amax", np.array(2), "3.5")
    (3.5, 2.0)
    """
    shape = getattr(given, "shape", ())
    if shape != ():
        sides = " x ".join(map(str, shape))
        raise TypeError(f"{argument} is an array of {sides}; give one number, such as {example}")
    is_bool = isinstance(given, bool) or "bool" in str(getattr(given, "dtype", ""))
    if is_bool or not isinstance(given, SupportsFloat):
        raise TypeError(f"{argument} is {shown(given)}; give a number, such as {example}")
    try:
        return float(given)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(
            f"{argument} is {shown(given)}, which is no number of binary32 ({error}); give "
            f"one, such as {example}"
        ) from None


def binary64_number(argument: str, given: object, example: str) -> float:
    """Return a number that binary64 has; refuse any other with the nearest one."""
    number = real_number(argument, given, example)
    if _is_rounded(given, number):
        raise ValueError(
            f"{argument} is {shown(given)}, which is not a number of binary64; the nearest "
            f"is {number!r}, which float() gives"
        )
    return number


def _is_rounded(given: object, number: float) -> bool:
    """Return whether a number is another one as a float; those of few types can be."""
    if type(given) is float or math.isnan(number):
        return False
    with suppress(TypeError):
        return operator.index(given) != number  # type: ignore[arg-type]  # which is found out here
    is_wide = isinstance(given, Fraction | Decimal) or "longdouble" in type(given).__name__
    return is_wide and given != number


def binary32_number(argument: str, given: object, example: str) -> float:
    """Return a finite number that binary32 has; refuse any other with the nearest one."""
    number = real_number(argument, given, example)
    try:
        (nearest,) = struct.unpack("<f", struct.pack("<f", number))
    except OverflowError:
        nearest = math.inf
    if not math.isfinite(nearest):
        raise ValueError(
            f"{argument} is {number!r}, which is no finite number of binary32; give one, such as "
            f"{example}"
        )
    if nearest != number or _is_rounded(given, number):
        other = number if nearest != number else given
        raise ValueError(
            f"{argument} is {shown(other)}, which is not a number of binary32; the nearest is "
            f"{nearest!r}, which np.float32({number!r}) gives"
        )
    return number


def positive_binary32(argument: str, given: object, example: str) -> float:
    """Return a positive, finite number that binary32 has; refuse any other."""
    number = binary32_number(argument, given, example)
    if number <= 0:
        raise ValueError(f"{argument} is {number!r}; give a positive number, such as {example}")
    return number


def error_text(error: BaseException) -> str:
    """Return the message of somebody's exception in a line; its `__str__` may raise another."""
    try:
        return " ".join(str(error).split())
    except Exception:  # noqa: BLE001 (whatever it raises, it says nothing)
        return "an exception whose text cannot be had"


def items_of(x: list[object] | tuple[object, ...]) -> Iterator[object]:
    """Yield the items of lists and tuples, at any depth; those of a list that comes again once."""
    waiting, seen = [x], {id(x)}
    while waiting:
        for item in waiting.pop():
            if not isinstance(item, list | tuple):
                yield item
            elif id(item) not in seen:
                seen.add(id(item))
                waiting.append(item)


def check_lists(argument: str, x: object) -> None:
    """Refuse lists that no array has: a few may stand for more numbers than any memory holds.

    A list may contain itself, or have the same list in it over and over.
    """
    sides, inner = 1, x
    for _ in range(_MOST_DIMENSIONS):
        if not isinstance(inner, list | tuple) or not inner:
            return
        if sides > _MOST_ITEMS:
            break
        sides *= len(inner)
        inner = inner[0]
    raise ValueError(
        f"{argument} has a list that contains itself, or the same lists over and over, more than "
        f"{_MOST_ITEMS:,} numbers or {_MOST_DIMENSIONS} dimensions; give an array"
    )
