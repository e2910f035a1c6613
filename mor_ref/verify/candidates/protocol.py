"""The text that goes between mor-ref and another program: chapter `protocol` of the specification.

Nothing here starts or waits for anything: questions become text, and text becomes answers.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.golden.model.suite import Case
from mor_ref.operations.call import Arrays
from mor_ref.operations.parameters import PLACED, RECIPE
from mor_ref.verify.candidates.candidate import CandidateError

Fields = dict[str, NDArray[np.uint64]]

GREETING = b"mor-ref-protocol 1\n"  # PRO-001
LONGEST_TOKEN = 255
NUMBERS_IN_A_LINE = 16
_TOKEN = re.compile(r"[!-~]+")
_NAME = re.compile(rb"[!-~]{1,%d}" % LONGEST_TOKEN)
_NUMBER = re.compile(rb"[0-9A-Fa-f]{1,16}")
_SHAPE = re.compile(rb"[0-9]{1,9}(x[0-9]{1,9}){0,3}")
_LARGEST = 1 << 40  # PRO-005: entries of an array
_END = re.compile(rb"^[ \t\r]*(?:done|skip)[ \t\r]*\n", re.MULTILINE)
_FIRST_LINE = re.compile(rb"\s*(\S[^\n]*)\n")
_FIRST_WORDS = (b"out", b"done", b"skip")
_SHOWN = 60  # bytes of a program's output


def question_text(suite: str, operation: str, case: Case) -> bytes:
    """PRO-003: a case as the program is asked it."""
    return "".join(f"{line}\n" for line in _question_lines(suite, operation, case)).encode("ascii")


def _question_lines(suite: str, operation: str, case: Case) -> Iterator[str]:
    yield " ".join(["case", _token(suite), _token(operation), _token(case.name)])
    for name, value in case.parameters.items():
        yield f"param {_token(name)} {_value(_without_places(value) if name == RECIPE else value)}"
    for name, array in case.arrays.items():
        yield f"in {_token(name)} {'x'.join(map(str, array.shape))}"
        yield from _number_lines(array)
    yield "run"


def _without_places(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """PRO-003: the numbers of the recipe that have places are in x, and many for one token."""
    return {name: value for name, value in recipe.items() if name != PLACED}


def _token(text: str) -> str:
    """PRO-002."""
    if not _TOKEN.fullmatch(text) or len(text) > LONGEST_TOKEN:
        raise CandidateError(
            f"{text[:_SHOWN]!r} cannot be sent to a program; take names of ASCII without white "
            f"space, of at most {LONGEST_TOKEN} characters"
        )
    return text


def _value(value: Any) -> str:
    """PRO-004: a parameter as one token."""
    if isinstance(value, str) and _TOKEN.fullmatch(value):
        return _token(value)
    if isinstance(value, Sequence) and value and all(type(side) is int for side in value):
        return _token("x".join(map(str, value)))
    # Outside of strings there is no space with these separators, and inside it may be escaped.
    return _token(json.dumps(value, separators=(",", ":")).replace(" ", "\\u0020"))


def _number_lines(array: NDArray[Any]) -> Iterator[str]:
    """PRO-005: with all leading zeros."""
    size = array.dtype.itemsize
    content = array.astype(array.dtype.newbyteorder(">")).tobytes()
    step = NUMBERS_IN_A_LINE * size
    for start in range(0, len(content), step):
        yield content[start : start + step].hex(" ", size)


def answer_limit(arrays: Arrays) -> int:
    """PRO-008: how many bytes an answer to these inputs may have."""
    return (1 << 20) + 256 * sum(array.size for array in arrays.values())


class Received:
    """The bytes of an answer so far, and the end of the answer, if it is there (PRO-006)."""

    def __init__(self, limit: int) -> None:
        self.text = bytearray()
        self.end: int | None = None
        self._limit = limit
        self._line = 0  # where the last line begins
        self._is_begun = False  # whether the first line is there

    def add(self, chunk: bytes) -> None:
        """Append the next bytes of the answer."""
        newline = chunk.rfind(b"\n")
        self.text += chunk
        if self.end is None and newline >= 0:
            found = _END.search(self.text, self._line)
            self.end = found.end() if found else None
            self._line = len(self.text) - len(chunk) + newline + 1
        if not self._is_begun and newline >= 0:
            self._check_begin()
        if len(self.text) > self._limit:
            raise CandidateError(
                f"the answer has more than {self._limit} bytes ({shown(self.text)}); end it with a "
                "line done"
            )

    def _check_begin(self) -> None:
        """Refuse a first line that begins no answer: its end may never come."""
        first = _FIRST_LINE.match(self.text)
        if first is not None:
            self._is_begun = True
            if first[1].split()[0] not in _FIRST_WORDS:
                raise _no_field(first[1].rstrip())


def shown(text: bytes | bytearray) -> str:
    """Return the text of a program, shortened and in quotes."""
    return repr(bytes(text[:_SHOWN]))[1:] + (".." if len(text) > _SHOWN else "")


def parse_answer(text: bytes) -> Fields | None:
    """PRO-006: the fields of an answer, or None for `skip`."""
    words = text.split()
    if words == [b"skip"]:
        return None
    if not words or words[-1] != b"done":
        raise CandidateError(f"the answer is {shown(text)}; end it with a line done")
    last = len(words) - 1
    fields: Fields = {}
    at = 0
    while at < last:
        if words[at] != b"out":
            raise _no_field(b" ".join(words[at:last]))
        if at + 3 > last:
            raise CandidateError(
                "the answer ends amid a field; give `out NAME SHAPE` and its numbers"
            )
        next_one = _next_field(words, at + 3, last)
        name = _field_name(words[at + 1], fields)
        fields[name] = _array(name, words[at + 2], words[at + 3 : next_one])
        at = next_one
    return fields


def _no_field(found: bytes) -> CandidateError:
    return CandidateError(
        f"the answer has {shown(found)} where a field begins; give `out NAME SHAPE` and its "
        "numbers, or a line `skip` alone"
    )


def _next_field(words: Sequence[bytes], start: int, last: int) -> int:
    """Return where the next field begins: at the word `out`, which is not a number."""
    return next((at for at in range(start, last) if words[at] == b"out"), last)


def _field_name(word: bytes, already: Fields) -> str:
    if not _NAME.fullmatch(word):
        raise CandidateError(f"{shown(word)} is not the name of a field; use one of the suite's")
    name = word.decode("ascii")
    if name in already:
        raise CandidateError(f"field {name} is there twice; give it once")
    return name


def _array(name: str, shape: bytes, words: Sequence[bytes]) -> NDArray[np.uint64]:
    if not _SHAPE.fullmatch(shape):
        raise CandidateError(
            f"field {name} has the shape {shown(shape)}; give one to four sizes, as 12 or 3x4"
        )
    sides = [int(side) for side in shape.split(b"x")]
    # An array without entries has a shape as well, and NumPy holds it to its other sides.
    if math.prod(max(side, 1) for side in sides) > _LARGEST:
        raise CandidateError(
            f"field {name} has the shape {shown(shape)}; give at most 2^40 entries"
        )
    for word in words:
        if not _NUMBER.fullmatch(word):
            raise CandidateError(
                f"field {name} holds {shown(word)}; give hexadecimal digits, 1 to 16, without 0x"
            )
    if len(words) != math.prod(sides):
        raise CandidateError(
            f"field {name} has {len(words)} numbers; give {math.prod(sides)} for its shape "
            f"{shape.decode('ascii')}"
        )
    numbers = [int(word, 16) for word in words]
    return np.array(numbers, np.uint64).reshape(sides)
