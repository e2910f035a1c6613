"""How golden vectors check formulas: what an entry is, and what the formulas have for it.

The formulas are those of the chapters, word by word. An entry is what the vectors have of one
number, with the fields of its row, or of one row. Formulas of several rules can follow from each
other, as those of the encoder do.
"""

import functools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from mor_docs.evaluation import values_of
from mor_docs.exact_values import Number, number
from mor_ref import golden
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import as_format
from mor_ref.golden.model.suite import Case
from mor_ref.golden.suites import SUITES
from mor_ref.operations.fields import Field

SPEC = Path(__file__).resolve().parents[3] / "spec"
_RULE = re.compile(r"^:id: (\S+)$", re.MULTILINE)
_BLOCK = re.compile(r"^\$\$\n(.*?)^\$\$$", re.DOTALL | re.MULTILINE)
_END = re.compile(r"^```", re.MULTILINE)
_FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}

Names = Mapping[str, Any]


def formulas_of(rule: str) -> tuple[str, ...]:
    """Return the blocks of formulas of a rule, as its chapter has them."""
    return _formulas()[rule]


@functools.cache
def _formulas() -> dict[str, tuple[str, ...]]:
    """Return the blocks of formulas of all rules; a rule ends with its fence."""
    texts = [chapter.read_text() for chapter in SPEC.glob("*.md")]
    rules = [(found[1], text[found.end() :]) for text in texts for found in _RULE.finditer(text)]
    return {rule: tuple(_BLOCK.findall(_END.split(after, 1)[0])) for rule, after in rules}


@dataclass(frozen=True)
class Entry:
    """What the vectors have of one number, or of one row."""

    parameters: Names
    fields: Names

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]

    @property
    def fmt(self) -> Format:
        """The format of the elements."""
        return as_format(self.parameters["format"])


def nothing(_: Entry) -> Names:
    """Return no names and no texts."""
    return {}


def always(_: Entry) -> bool:
    """Return that formulas are about each entry."""
    return True


@dataclass(frozen=True)
class Check:
    """Formulas of rules, one after the other, and the fields of a suite that they lead to.

    `results` are fields by the names in the formulas; "" is what has no name. `names` and `texts`
    return what an entry has for the names and the texts of the formulas. `cases` are the parameters
    of the cases that the formulas are about, and `entries` says which of their entries. If
    `is_rounded`, each operator is one RN32.
    """

    rules: str
    suite: str
    results: Mapping[str, str]
    names: Callable[[Entry], Names]
    texts: Callable[[Entry], Names] = nothing
    _: KW_ONLY
    cases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    entries: Callable[[Entry], bool] = always
    by_row: bool = False
    is_rounded: bool = False

    def all_entries(self, every: int = 1) -> Iterator[Entry]:
        """Return the entries that the formulas are about, or those of every so many rows."""
        for case in golden.load(self.suite):
            if all(case.parameters[name] in values for name, values in self.cases.items()):
                yield from filter(self.entries, _entries(self.suite, case, self.by_row, every))

    def values(self, entry: Entry) -> dict[str, Any]:
        """Return the values that the formulas have for an entry, by the fields."""
        known = dict(self.names(entry))
        meanings = self.texts(entry)

        def text(written: str) -> Any:
            return meaning(written, meanings)

        for formula in chain.from_iterable(map(formulas_of, self.rules.split())):
            if not known.keys() >= self.results.keys():
                known |= values_of(formula, known, text, is_rounded=self.is_rounded)
        return {name: known[result] for result, name in self.results.items()}


def meaning(text: str, meanings: Names) -> Any:
    """Return what a text in a formula means, by the words that it begins with.

    >>> meaning("rtz, toward zero", {"rtz": True, "rtp": False})
    True
    """
    if text.startswith("NaN"):
        return math.nan
    return meanings[max((words for words in meanings if text.startswith(words)), key=len)]


def is_same(value: Any, expected: Number) -> bool:
    """Return whether a value is that of the vectors: NaN is NaN, and zeros have signs."""
    if isinstance(value, float) and isinstance(expected, float):
        return (math.isnan(value) and math.isnan(expected)) or repr(value) == repr(expected)
    return bool(value == expected)


def _entries(suite: str, case: Case, by_row: bool, every: int) -> Iterator[Entry]:
    axes = {declared.name: declared.axes for declared in SUITES[suite].fields}
    rows = {
        declared.name: _numbers(declared, case, every)
        for declared in SUITES[suite].fields
        if declared.name in case.arrays
    }
    of_numbers = [] if by_row else [name for name in rows if axes[name] != "n"]
    for values in zip(*rows.values(), strict=True):
        row = dict(zip(rows, values, strict=True))
        if not of_numbers:
            yield Entry(case.parameters, row)
        each = [_twice(row[name]) if axes[name] == "pair" else row[name] for name in of_numbers]
        for numbers in zip(*each, strict=False):  # the last pair can be one number
            yield Entry(case.parameters, row | dict(zip(of_numbers, numbers, strict=True)))


def _twice(pairs: list[Number]) -> list[Number]:
    """Return what pairs have, for each number of a pair."""
    return [value for value in pairs for _ in range(2)]


def _numbers(declared: Field, case: Case, every: int) -> list[Any]:
    """Return the numbers of a field: floating-point numbers, or integers."""
    fmt = declared.format
    dtype = _FLOATS.get(case.parameters["source"] if fmt == "source" else fmt)
    rows = case.arrays[declared.name][::every]
    if dtype is not None:
        with np.errstate(invalid="ignore"):  # of signalling NaNs
            return _each(number, rows.view(dtype).astype(np.float64).tolist())
    return _each(lambda bits: number(declared.number(bits)), rows.tolist())


def _each(made: Callable[[Any], Number], rows: list[Any]) -> list[Any]:
    return [_each(made, row) if isinstance(row, list) else made(row) for row in rows]


def value_of(code: Number, fmt: str) -> Number:
    """Return the number that a code stands for."""
    return number(as_format(fmt).value(int(code)))


def is_finite(x: Number) -> bool:
    """Return whether a number is neither infinite nor NaN."""
    return isinstance(x, Fraction) or x == 0
