"""Representations: their names, refusals, and the counts of a unit that cuts a tile."""

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from integers import Integers
from records import SOURCES, adversarial, error_of_tensor, exact_mor, listed, rows_of
from test_trace import ROOT, table_after

import mor_ref
from mor_ref import MeanRelativeError, NotWorseThan, Policy, Rung, formats
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.definitions.scales import ScalingBlocks
from mor_ref.engine.strips import STRIP
from mor_ref.exact import quantization
from mor_ref.representations import (
    REPRESENTATIONS,
    MxBlocks,
    Nvfp4Tiles,
    ScaledFormat,
    as_representation,
)
from mor_ref.schemes.affine.representation import AffineBlocks
from mor_ref.schemes.selection.definition import KNOWN_SELECTIONS
from mor_ref.schemes.selection.representation import SelectedNumbers

X = np.random.default_rng(0).standard_normal((8, 64)).astype(np.float32)


def test_the_printed_names_are_those_of_the_catalogue():
    """MOR-007."""
    printed = table_after(":id: MOR-007", Path(ROOT) / "spec/policies.md")
    rows = {row[0]: row[1:] for row in printed if not row[0].startswith("that of")}
    assert set(rows) == {*REPRESENTATIONS, *KNOWN_SELECTIONS}
    for name, (kind, element, scaled) in rows.items():
        if kind.startswith("selection by"):
            expected = SelectedNumbers(name)
            assert kind.split()[2] == expected.rules.by
            assert as_representation(name) == expected
            continue
        if kind == "NVFP4, tiles (1, 16)":
            expected = Nvfp4Tiles(scaled, name=name)
        else:
            assert kind == "MX, k = 32"
            expected = MxBlocks(element, scaled, 32, name)
        assert as_representation(name) == expected
        assert expected.bits == formats[element].bits
    assert as_representation("e4m3") == ScaledFormat(formats["e4m3"])
    assert as_representation("uint4") == AffineBlocks("uint4")
    assert [as_representation(name) for name in PROFILES] == [Nvfp4Tiles(p) for p in PROFILES]


@pytest.mark.parametrize(
    ("one", "name"),
    [
        (Nvfp4Tiles("te"), "te"),
        (Nvfp4Tiles("te_4over6_mse", (16, 16)), "te_4over6_mse_16x16"),
        (Nvfp4Tiles("te", (16, 16), "square"), "square"),
        (MxBlocks("e3m4"), "mx_e3m4"),
        (MxBlocks("int8_mx", "even"), "mxint8_even"),
        (MxBlocks(formats["e2m1"], "rceil", 16), "mxfp4_rceil_16"),
    ],
)
def test_a_name_says_what_is_not_usual(one, name):
    """MOR-007: records of other tiles, rules and blocks have names of their own."""
    assert one.name == name
    assert as_representation(one) is one
    found = mor_ref.mor(X, Policy("mine", (Rung(one, MeanRelativeError(1)),)))
    assert found.ladder == (name, "bf16")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: as_representation("mxfp6"), ValueError, "did you mean 'mxfp"),
        (lambda: as_representation("int33"), ValueError, "grid is 'int33', which is not known"),
        (lambda: as_representation("bf16"), ValueError, "give a signed format"),
        (lambda: as_representation(4), TypeError, "representation is 4; give a name, a Format"),
        (lambda: NotWorseThan("mxfp"), ValueError, "representation is 'mxfp', which is not known"),
        (lambda: Nvfp4Tiles("e4m3"), ValueError, "profile is 'e4m3', which is not known"),
        (lambda: Nvfp4Tiles("te_row", (16, 16)), ValueError, "profile 'te_row' takes (1, 16)"),
        (lambda: MxBlocks("bf16"), ValueError, "elements of MX are signed"),
        (lambda: MxBlocks("e4m3", "round"), ValueError, "scale_rule is 'round'"),
        (lambda: MxBlocks("e4m3", block=0), ValueError, "block is 0; give an int from 1"),
        (lambda: MxBlocks("e4m3", name="a b"), ValueError, "name is 'a b'; give a letter"),
        (lambda: Nvfp4Tiles("te", name="a/b"), ValueError, "name is 'a/b'; give a letter"),
        (lambda: as_representation(Integers("a b")), ValueError, "name is 'a b'; give a letter"),
        (
            lambda: Policy(
                "p",
                (Rung("mxfp4", NotWorseThan(MxBlocks("e2m1", "ceil", name="mxfp4"))),),
            ),
            ValueError,
            "ladder has two representations named 'mxfp4'; give one another name",
        ),
    ],
)
def test_what_is_refused(make, error, message):
    """MOR-007."""
    with pytest.raises(error, match=re.escape(message)):
        make()


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("nvfp4", mor_ref.quantize_nvfp4),
        ("modelopt", lambda x: mor_ref.quantize_nvfp4(x, profile="modelopt")),
        ("mxfp8", lambda x: mor_ref.quantize_mx(x, "e4m3")),
        ("mxint8", lambda x: mor_ref.quantize_mx(x, "int8_mx")),
    ],
)
@pytest.mark.parametrize("block", [(3, 5), (4, 8), "column"])
def test_a_unit_that_cuts_a_tile_has_the_y_of_the_whole_tile(name, whole, block):
    """MOR-007: by the quantizer of the whole tensor, which knows nothing of units."""
    policy = Policy(
        "mine", (Rung("e2m1", MeanRelativeError("1e-9")), Rung(name, NotWorseThan(name)))
    )
    found = mor_ref.mor(X, Policy("mine", policy.ladder, unit="block", block=block))
    y = whole(X)
    assert (found.choice == 1).all()
    assert np.array_equal(found.quantized[name].codes, y.codes)
    assert np.array_equal(found.output, y.dequantize(ml_dtypes.bfloat16).view(np.uint16))
    assert int(found.error[name].sum.sum()) == int(y.error.sum.sum())


@given(
    st.tuples(st.integers(0, 9), st.integers(0, 40)),
    st.integers(0, 1 << 30),
    st.sampled_from(SOURCES),
    st.sampled_from(["tensor", "row", "column", (2, 16), (3, 5)]),
)
def test_error_sums_of_given_numbers(shape, seed, dtype, block):
    """ERR-001 to ERR-004, of a y of any sign and size."""
    from mor_ref.arrays import numbers_from
    from mor_ref.engine.measuring import measure

    x, y = adversarial(shape, seed, dtype), adversarial(shape, seed + 1, np.float32)
    cut = partition(x.shape, block)
    sums = measure(numbers_from(x, "x"), numbers_from(y, "y"), cut, None)
    elements = [[quantization.Element(v, 0, v) for v in row] for row in rows_of(y)]
    total = error_of_tensor(x, elements)
    assert [int(v) for v in sums.sum(axis=(0, 1))] == [
        sum(entry[k] for row in total for entry in row) for k in range(3)
    ]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_error_sums_behind_the_first_strip(dtype):
    """ERR-004: of each block, where rows are longer than a strip."""
    from mor_ref.arrays import numbers_from
    from mor_ref.engine.measuring import measure

    shape, (rows, columns) = (2, STRIP + 37), (2, 1500)
    x, y = adversarial(shape, 1, dtype), adversarial(shape, 2, np.float32)
    cut = partition(shape, (rows, columns))
    sums = measure(numbers_from(x, "x"), numbers_from(y, "y"), cut, None)
    for i, j in np.ndindex(sums.shape[:2]):
        block = np.s_[i * rows : (i + 1) * rows, j * columns : (j + 1) * columns]
        elements = [[quantization.Element(v, 0, v) for v in row] for row in rows_of(y[block])]
        assert sums[i, j].tolist() == list(error_of_tensor(x[block], elements)[0][0])


def test_a_quantizer_from_outside():
    """MOR-007: the record of a representation whose implementation returns y."""
    policy = Policy("mine", (Rung(Integers(), MeanRelativeError(1)),), unit="block", block=(4, 8))
    found, expected = mor_ref.mor(X, policy), exact_mor(X, policy)
    assert found.output.ravel().tolist() == expected["output"]
    record = found.quantized["uint4_rows"]
    assert listed(record.error) == listed(found.error["uint4_rows"])
    narrow = record.dequantize(ml_dtypes.bfloat16)
    assert np.array_equal(narrow, record.dequantize().astype(ml_dtypes.bfloat16))
    assert ScalingBlocks._fields == ("parts", "scaling", "amax", "given")
