"""Kernels that store heads and positions of a sequence in the wrong order: this has a name."""

import ml_dtypes
import numpy as np
import pytest

import mor_ref
from mor_ref.recipes import own_recipe
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.diagnosing.sample import samples_of
from mor_ref.verify.diagnosing.structure import structures_of
from mor_ref.verify.own_fields import fields_of_operation
from mor_ref.verify.own_inputs import from_arrays
from mor_ref.verify.own_tensors import SUITE, own_tensors
from mor_ref.verify.reporting.structure_text import structure_lines

HEADS, WIDTH = 4, 64
KERNELS = {}


def kernel(lengths, recipe, *says):
    """Add a wrong kernel to the table: a function of x and the right fields.

    `lengths` are those of the sequences, one for each tensor of heads, positions and columns.
    """

    def add(change):
        KERNELS[change.__name__] = lengths, recipe, change, says
        return change

    return add


def tensors(lengths):
    """Return tensors whose rows and blocks have unlike magnitudes."""
    draws = np.random.default_rng(11)
    for k, length in enumerate(lengths):
        x = draws.standard_normal((HEADS * length, WIDTH))
        x *= np.exp2(draws.integers(-9, 9, (len(x), 1)) + draws.integers(-3, 3, (1, WIDTH)))
        yield f"{k}", x.astype(np.float32)


def lines_of(lengths, recipe, change):
    """Return the sentences on the structure of the mistakes of a kernel."""
    asked = own_recipe(recipe).asked
    own = own_tensors(own_recipe(recipe), from_arrays(dict(tensors(lengths))))
    cases = [case for _, some in own.parts() for case in some]
    answers = {case.name: change(case.arrays["x"].view(np.float32), case.arrays) for case in cases}
    fields = list(fields_of_operation(asked))
    evidence = Evidence(SUITE, asked.operation, fields, cases, answers)
    return list(structure_lines(structures_of(list(samples_of(evidence)))))


def reordered(array, shape, *axes):
    """Return an array with the axes of its view of a shape in another order."""
    return array.reshape(shape).transpose(axes).reshape(array.shape)


def positions_first(array):
    """Return rows of positions and heads, from rows of heads and positions."""
    return reordered(array, (HEADS, -1, array.shape[1]), 1, 0, 2)


def in_mxfp8(x):
    """Return the fields of MXFP8, as a kernel computes them."""
    blocks = x.reshape(len(x), -1, 32)
    scale = (np.frexp(np.abs(blocks).max(2))[1] - 1 - 8 + 127).astype(np.uint8)
    scaled = np.clip(blocks / np.exp2(scale.astype(np.float32) - 127)[..., None], -448, 448)
    code = scaled.astype(ml_dtypes.float8_e4m3fn).view(np.uint8).reshape(x.shape)
    return {"scale": scale, "code": code}


ROWS = "rows are in another order: "
FIELDS = "scale and code: "


@kernel([12], "mxfp8", f"{FIELDS}{ROWS}[12, 4] instead of [4, 12], in all ")
def rows_of_positions_and_heads(x, _):
    return in_mxfp8(positions_first(x))


@kernel([12, 10, 7], "mxfp8", f"{FIELDS}{ROWS}[n, 4] instead of [4, n], in all ")
def rows_of_positions_and_heads_of_several_lengths(x, _):
    return in_mxfp8(positions_first(x))


@kernel([12, 10, 7], "nvfp4", f": {ROWS}[4, n] instead of [n, 4], in all ")
def rows_of_heads_and_positions(_, right):
    """Take rows of positions and heads for those of heads and positions."""

    def heads_first(array):
        return reordered(array, (-1, HEADS, array.shape[1]), 1, 0, 2)

    return {name: heads_first(right[name]) for name in ("code", "block_scale")}


@kernel([12, 10], "e4m3:gam:8x8", f"code: {ROWS}[n, 4] instead of [4, n], in all ")
def codes_alone(_, right):
    return {"code": positions_first(right["code"])}


@kernel([12, 10], "int8:torchao_0_18:row", f": {ROWS}[n, 4] instead of [4, n], in all ")
def integers(_, right):
    return {name: positions_first(right[name]) for name in ("code", "scale", "zero_point")}


@kernel([12, 24], "mxfp8", f"{FIELDS}{ROWS}[n, 6, 4] instead of [n, 4, 6], in all ")
def sequences_of_six_positions(x, _):
    """Take sequences with heads of their own: n, 4, 6 and the columns."""
    return in_mxfp8(reordered(x, (-1, HEADS, 6, WIDTH), 0, 2, 1, 3))


@kernel([12, 20], "mxfp8", f"{FIELDS}{ROWS}[n, 4, 2] instead of [4, n, 2], in all ")
def pairs_of_positions(x, _):
    return in_mxfp8(reordered(x, (HEADS, -1, 2, WIDTH), 1, 0, 2, 3))


@kernel(
    [12, 10], "mxfp8", "code: columns are in another order: [16, 4] instead of [4, 16], in all "
)
def columns_of_numbers_and_heads(_, right):
    code = right["code"]
    return {"code": reordered(code, (len(code), HEADS, -1), 0, 2, 1)}


@kernel(
    [12, 10], "mxfp8", "code: entries are in another order: [4, n, 16] instead of [n, 4, 16], in "
)
def heads_are_not_moved_back(_, right):
    """Return heads, positions and numbers, where rows are positions."""
    code = right["code"]
    return {"code": reordered(code, (len(code), HEADS, -1), 1, 0, 2)}


@kernel(
    [12, 10], "mxfp8", "code: entries are in another order: [n, 4, 16] instead of [4, n, 16], in "
)
def heads_are_moved_twice(_, right):
    code = right["code"]
    return {"code": reordered(code, (HEADS, len(code), -1), 1, 0, 2)}


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize("name", KERNELS)
def test_exchanged_axes_are_named(name):
    lengths, recipe, change, says = KERNELS[name]
    lines = lines_of(lengths, recipe, change)
    for words in says:
        assert any(words in line for line in lines), lines


def rows_in_order(order):
    """Return a kernel that stores the rows of MXFP8 in another order."""

    def change(x, right):
        rows = order(np.arange(len(x)))
        return {name: right[name][rows] for name in ("scale", "code")}

    return change


def swapped_in_tiles(rows):
    return rows.reshape(-1, 4)[:, [0, 3, 2, 1]].ravel()


OTHER_ORDERS = {
    "at random": (lambda rows: np.random.default_rng(3).permutation(rows), "other places"),
    "the last first": (lambda rows: rows[::-1], "[last - i, j]"),
    "rolled by a whole head": (lambda rows: np.roll(rows, 12), "[i - 12, j], around the end"),
    "two rows of a head": (lambda rows: np.r_[rows[:1], rows[2], rows[1], rows[3:]], "1 and 2 are"),
    "pairs of rows": (lambda rows: rows ^ 1, "[i ^ 1, j]"),
    "two in each four rows": (swapped_in_tiles, "other places"),
    "the even ones first": (lambda rows: np.r_[rows[::2], rows[1::2]], "all even ones first"),
}


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize("name", OTHER_ORDERS)
def test_another_order_has_another_name(name):
    order, words = OTHER_ORDERS[name]
    lines = lines_of([12], "mxfp8", rows_in_order(order))
    assert any(words in line for line in lines), lines
    assert not any(" instead of [" in line for line in lines), lines


def one_code_less(_, right):
    code = right["code"]
    return {"code": code - (code % 3 == 1).astype(np.uint8)}


def one_scale_for_four_rows(_, right):
    rows = np.arange(len(right["scale"]))
    return {"scale": right["scale"][rows - rows % 4]}


def half_of_the_scales_one_less(_, right):
    return {"scale": right["scale"] - (np.indices(right["scale"].shape)[0] % 2).astype(np.uint8)}


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize(
    "change", [one_code_less, one_scale_for_four_rows, half_of_the_scales_one_less]
)
@pytest.mark.parametrize("lengths", [[12], [12, 10, 7], [1], [64]])
def test_other_mistakes_are_not_of_axes(change, lengths):
    assert not any(" instead of [" in line for line in lines_of(lengths, "mxfp8", change))


@pytest.mark.parametrize("field", ["code", "scale"])
def test_rows_that_are_alike_are_no_evidence(field):
    """Tokens come again and again: another rounding of some rows has the bits of other rows."""

    def change(_, right):
        wrong = right[field].copy()
        wrong[1::4] = right[field][2]
        return {field: wrong}

    lines = lines_of([12, 10], "mxfp8", change)
    assert not any(" instead of [" in line for line in lines), lines


@pytest.mark.tier("full")
def test_a_deviation_keeps_its_name_next_to_exchanged_axes(monkeypatch):
    monkeypatch.setattr("mor_ref.verify.diagnosing.diagnosis.PAIRS_END", 0)

    def function(_, __, inputs):
        return in_mxfp8(positions_first(inputs["x"].view(np.float32)))

    found = mor_ref.verify(function, inputs=dict(tensors([5, 6])), recipe="mxfp8:rceil")
    text = str(found)
    assert " are explained by `MXS-003/always` (" in text, text
    assert ", with entries in other places" in text, text
    assert f"scale and code, after `MXS-003/always`: {ROWS}[n, 4] instead of [4, n], in " in text, (
        text
    )
