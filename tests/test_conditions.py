"""Conditions: which entries of tensors differ, in the fewest words, and no word by accident."""

import re

import numpy as np
import pytest
from tired_kernels import Tired, cases_of, evidence_of, mxfp8

from mor_ref.verify.diagnosing.condition import condition
from mor_ref.verify.diagnosing.entries import entries_of
from mor_ref.verify.diagnosing.sample import samples_of
from mor_ref.verify.diagnosing.structure import structures_of
from mor_ref.verify.reporting.structure_text import structure_lines


def tensors(*shapes):
    random = np.random.default_rng(4)

    def one(rows, columns):
        x = random.standard_normal((rows, columns)) * np.exp2(random.integers(-7, 7, (rows, 1)))
        return (x * np.exp2(random.integers(-3, 3, (1, columns)))).astype(np.float32)

    return {f"t{k}": one(*shape) for k, shape in enumerate(shapes)}


@pytest.fixture
def given(monkeypatch):
    """Return a function that replaces the tensors of kernels."""

    def use(*shapes):
        monkeypatch.setattr("tired_kernels.tensors", lambda: tensors(*shapes))
        cases_of.cache_clear()

    yield use
    cases_of.cache_clear()


def lines_of(kernel):
    return list(structure_lines(structures_of(list(samples_of(evidence_of(kernel))))))


def left_at_zero(places, field="code"):
    """Return a kernel that does not write some places, given by a function of the field."""

    def kernel(x):
        found = mxfp8(x)
        found[field] = found[field].copy()
        found[field][places(found[field])] = 0
        return found

    return Tired("mxfp8", kernel, ())


def after(share):
    """Return a function that marks the rows after a share of them, which a kernel rounds down."""

    def places(array):
        return np.arange(len(array)) >= int(len(array) * share)

    return places


def tail(threads):
    """Return a function that marks the tail of all entries: whole groups alone are launched."""

    def places(array):
        place = np.arange(array.size).reshape(array.shape)
        return place >= array.size - array.size % threads

    return places


PLACES = {
    "second half of the rows": (after(1 / 2), "row >= half of the rows, rounded down"),
    "last quarter of the rows": (after(3 / 4), "row >= three quarters of the rows, rounded down"),
    "second half of the columns": (
        lambda array: after(1 / 2)(array.T)[np.newaxis].repeat(len(array), 0),
        "column >= half of the columns",
    ),
    "half of the rows, rounded up": (
        lambda array: np.arange(len(array)) >= (len(array) + 1) // 2,
        "row >= half of the rows, rounded up",
    ),
    "tail of 64": (tail(64), "it is after the last whole 64 of all entries"),
    "tail of 256": (tail(256), "it is after the last whole 256 of all entries"),
    "a launch that is too small": (
        lambda array: np.arange(array.size).reshape(array.shape) >= 2048,
        "the place, row by row, >= 2,048",
    ),
}


@pytest.mark.tier("full", but=["[second half of the rows]", "[tail of 64]"])
@pytest.mark.parametrize("name", PLACES)
def test_places_relative_to_the_size_of_tensors_are_named(name, given):
    """Tensors have several sizes: no number of a row or a column says where."""
    places, words = PLACES[name]
    given((16, 256), (26, 200), (37, 96))
    zero, where = lines_of(left_at_zero(places))
    assert zero.startswith("code: each entry is 0x00 (0), in all ")
    said = re.escape(f"code: an entry that it would change differs only if {words}: all ")
    assert re.match(said + r"[\d,]+ there differ, and none of the [\d,]+ others", where), where


@pytest.mark.tier("full")
def test_half_of_the_scales_are_named(given):
    given((16, 256), (26, 200), (37, 96))
    _, where = lines_of(left_at_zero(after(1 / 2), "scale"))
    assert "differs only if row >= half of the rows, rounded down: all 212 there" in where


def test_one_tensor_has_the_number_of_the_row(given):
    given((16, 96))
    _, where = lines_of(left_at_zero(after(1 / 2)))
    assert "differs only if row >= 8: all " in where


@pytest.mark.parametrize("sides", [(1, 2, 3, 4, 5, 9, 17), (1, 2, 3, 8, 9, 16, 17)], ids=str)
def test_a_condition_says_once_how_far_an_entry_is_down_its_column(given, sides):
    """A last row is in the last quarter of the rows, rounded up, but for three rows or less."""

    def last_of_many(array):
        marks = np.zeros(array.shape, np.bool_)
        marks[-1] = len(array) >= 4
        return marks

    given(*((rows, 64) for rows in sides))
    _, where = lines_of(left_at_zero(last_of_many))
    words = re.search(r"differs only if (.*): all ", where)[1]
    of_ends = ("last row of blocks", "row is the last", "of the rows", "last row - row")
    assert sum(one in words for one in of_ends) == 1


def entries_that_differ(where, chance=1.0):
    """Return the entries of a kernel whose codes are one larger in some places, or most of these.

    `where` returns marks, given the rows and the columns.
    """
    random = np.random.default_rng(7)

    def kernel(x):
        found = mxfp8(x)
        code = found["code"]
        wrong = where(*np.indices(code.shape)) & (random.random(code.shape) < chance)
        return {"code": code ^ wrong}

    return entries_of("code", list(samples_of(evidence_of(Tired("mxfp8", kernel, ())))))


def said_of(e):
    return condition(e, e.differs, e.matches).words


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (40, "column mod 8 is 7"),
        (400, "column mod 8 is 7 and it is not in the last row of blocks"),
    ],
)
def test_a_property_that_excludes_a_few_entries_by_accident_is_not_said(given, columns, words):
    """Five codes of the last row happen to be right; fifty do not."""
    given((24, columns))
    e = entries_that_differ(lambda row, column: (column % 8 == 7) & (row < 23))
    assert said_of(e) == words


@pytest.mark.tier("full", but=["[0.8]"])
@pytest.mark.parametrize("chance", [1.0, 0.8])
def test_a_property_that_excludes_many_entries_is_said(given, chance):
    given((48, 96))
    e = entries_that_differ(lambda row, column: (column == 5) & (row % 2 == 0), chance)
    assert re.fullmatch(
        r"column is 5 and (row mod 2 is 0|\(row \+ column\) mod 2 is 1)", said_of(e)
    )
