"""quantize: the engine's records are those of the exact model, and the words that users meet."""

import ml_dtypes
import numpy as np
import pytest
from extras import imported, needs
from hypothesis import given
from hypothesis import strategies as st
from records import (
    SCALED,
    SOURCES,
    adversarial,
    differing,
    engine_mx,
    engine_quantize,
    exact_mx,
    exact_quantize,
    shapes,
)

import mor_ref
from mor_ref import Format
from mor_ref.definitions.scales import SCALINGS
from mor_ref.exact import quantization
from mor_ref.exact.errors import error_sum, error_term

BLOCKS = ["tensor", "row", "column", (4, 8), (2, 5), (1, 1), (3, 64)]
SHAPES = [(5, 37), (1, 50), (33, 1), (1, 1), (), (0, 4), (3, 0), (2, 3, 17), (40,)]


@pytest.mark.tier("full", but=["(5, 37)", "()"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("scaling", SCALINGS)
def test_every_record_is_that_of_the_exact_model(shape, scaling):
    for k, block in enumerate(BLOCKS):
        x = adversarial(shape, k, SOURCES[k % 4])
        fmt = SCALED[k % len(SCALED)]
        found = engine_quantize(x, fmt, scaling=scaling, block=block)
        assert differing(found, exact_quantize(x, fmt, scaling, block)) == {}, (block, fmt)


@given(
    shapes,
    st.integers(0, 1 << 30),
    st.sampled_from(SOURCES),
    st.sampled_from(SCALED),
    st.sampled_from(SCALINGS),
    st.tuples(st.integers(1, 5), st.integers(1, 12)),
    st.integers(1, 3),
)
def test_any_tensor(shape, seed, dtype, fmt, scaling, block, times):
    x = adversarial(shape, seed, dtype)
    group = (block[0] * times, block[1] * 2) if scaling == "gam" else "tensor"
    found = engine_quantize(x, fmt, scaling=scaling, block=block, group=group)
    assert differing(found, exact_quantize(x, fmt, scaling, block, group)) == {}


def test_a_users_own_format():
    """Integers of eight bits are scaled as well: two's complement, no exponent."""
    int8 = Format(
        "int8", exponent_bits=0, mantissa_bits=7, bias=-6, specials="none", sign="twos-complement"
    )
    assert int8.largest == 127
    x = adversarial((6, 20), 3)
    found = engine_quantize(x, int8, block=(2, 10))
    assert differing(found, exact_quantize(x, int8, block=(2, 10))) == {}


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize(
    ("exponent_bits", "mantissa_bits", "bias", "specials"),
    [(6, 1, -48, "ieee"), (6, 1, -64, "none"), (5, 2, -96, "none"), (4, 3, -112, "none"),
     (4, 3, -89, "fn"), (4, 3, -88, "fn"), (1, 6, -126, "none"), (3, 4, -120, "none")],
)  # fmt: skip
def test_formats_with_large_exponents(scaling, exponent_bits, mantissa_bits, bias, specials):
    """QNT-001: where the power that rounds would leave binary32."""
    fmt = Format(
        "tall",
        exponent_bits=exponent_bits,
        mantissa_bits=mantissa_bits,
        bias=bias,
        specials=specials,
    )
    top = np.float32(fmt.largest)
    share = np.float32(2.0) ** -np.arange(0, 90, dtype=np.float32)
    with np.errstate(over="ignore"):
        x = np.stack([top * share, top * share * np.float32(1.1), -top * share * np.float32(0.7)])
    x[1, :3] = [np.inf, np.nan, 1e-45]
    found = engine_quantize(x, fmt, scaling=scaling, block="row")
    assert differing(found, exact_quantize(x, fmt, scaling, "row")) == {}
    assert differing(engine_mx(x, fmt), exact_mx(x, fmt)) == {}


def test_an_error_term_of_what_is_lost():
    """ERR-001: d may be infinite or NaN, r is 1."""
    for y in (np.inf, -np.inf, np.nan):
        term = error_term(1.0, y)
        assert (term.r, term.u) == (1.0, 1 << 23)


def test_codes_are_those_of_the_product():
    """QNT-001: 3 * RN32(448 / 3) rounds to 448, and 1.1 goes through two roundings."""
    found = mor_ref.quantize(np.array([3.0, 1.1], np.float32), "e4m3", scaling="fp32")
    xs = np.float32(1.1) * (np.float32(448) / np.float32(3))
    assert found.codes.tolist() == mor_ref.encode([448.0, float(xs)], "e4m3").tolist()


def test_dequantization_divides():
    """QNT-002: a reciprocal would give another number here."""
    x = np.array([[3.0, 1.1, np.nan]], np.float32)
    found = mor_ref.quantize(x, "e4m3", scaling="fp32")
    scale = found.scale[0, 0]
    values = mor_ref.decode(found.codes, "e4m3")
    y = found.dequantize()
    assert y[0, :2].tolist() == (values[0, :2] / scale).tolist()
    assert y[0, 2:].view(np.uint32).tolist() == [0x7FFFFFFF]
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    found = mor_ref.quantize(x, "e4m3", scaling="fp32", block="row")
    by_reciprocal = mor_ref.decode(found.codes, "e4m3") * (np.float32(1) / found.scale)
    assert not np.array_equal(found.dequantize(), by_reciprocal)


def test_fake_quantization_to_bfloat16():
    """QNT-003, against the conversion of ml_dtypes."""
    x = adversarial((9, 40), 5)
    found = mor_ref.quantize(x, "e5m2", block="row")
    y = found.dequantize()
    rounded = found.dequantize(ml_dtypes.bfloat16)
    is_number = ~np.isnan(y)
    assert rounded.dtype == ml_dtypes.bfloat16
    with np.errstate(all="ignore"):
        expected = y.astype(ml_dtypes.bfloat16)
    assert np.array_equal(rounded[is_number].view(np.uint16), expected[is_number].view(np.uint16))
    with pytest.raises(TypeError, match="dtype is float64; give float32, or bfloat16 of ml_dtypes"):
        found.dequantize(np.float64)


def test_binary64_becomes_binary32_first():
    """QNT-004: just above a tie of e4m3, which binary32 does not see."""
    tie = np.array([448.0, 1.0625 + 2.0**-40])
    assert mor_ref.quantize(tie, "e4m3", scaling="e8m0").codes[1] == 0x38
    assert mor_ref.encode(tie, "e4m3")[1] == 0x39
    assert mor_ref.quantize([1e300], "e4m3").error.nonfinite.tolist() == [[1]]


def test_an_error_term():
    """ERR-001, by hand: 1.1 becomes 1.125 under a scale of 1."""
    term = error_term(float(np.float32(1.1)), 1.125)
    d = np.float32(1.125) - np.float32(1.1)
    r = d / np.float32(1.1)
    assert (term.d, term.r) == (float(d), float(r))
    assert term.u == (np.float32(1) + r).view(np.uint32) - np.float32(1).view(np.uint32)
    assert error_term(1.0, 5.0).r == 1.0
    assert error_term(1.0, -5.0).u == 1 << 23


def test_what_counts_in_a_sum():
    """ERR-002: neither zeros nor non-finites; and ties to even in u."""
    found = mor_ref.quantize(np.array([[1.0, 0.0, -0.0, np.nan, 1.75]], np.float32), "e4m3")
    assert found.error.nonzero.tolist() == [[2]]
    assert found.error.sum.tolist() == [[sum_of([1.0, 1.75], found)]]


def sum_of(numbers, found):
    scale = float(found.scale[0, 0])
    element = quantization.quantize_element
    return sum(error_term(x, element(x, scale, found.fmt).y).u for x in numbers)


def test_elements_that_are_lost():
    """ERR-003: the smallest y that bfloat16 rounds to infinity, and the one below it."""
    largest = np.array([0x7F7F8000, 0x7F7F7FFF], np.uint32).view(np.float32)
    for x, lost in zip(largest, (1, 0), strict=True):
        y = float(x)
        assert error_sum([(1.0, y)]).nonfinite == lost
        assert error_sum([(1.0, -y)]).nonfinite == lost
    assert error_sum([(np.inf, 1.0), (np.nan, 1.0), (0.0, 0.0)]).nonfinite == 2
    for scaling in SCALINGS:  # under fp32, y is a finite number next to the largest x
        x = np.array([[largest[0], 1], [largest[1], 1], [3e38, 1], [np.inf, np.nan]], np.float32)
        found = mor_ref.quantize(x, "e4m3", block="row", scaling=scaling)
        expected = exact_quantize(x, "e4m3", scaling, "row")["error"]
        assert found.error.nonfinite[:, 0].tolist() == [row[0][2] for row in expected]
        if scaling == "fp32":
            assert found.error.nonfinite[:, 0].tolist() == [1, 0, 0, 2]
            assert np.isfinite(found.dequantize()[0, 0])


def test_sums_add_up_and_need_no_order():
    """ERR-004: for blocks shuffled, for one and two threads, and for other layouts of memory."""
    x = adversarial((600, 2500), 11, ml_dtypes.bfloat16)
    whole = mor_ref.quantize(x, "e4m3", block="tensor", scaling="e8m0")
    blocks = mor_ref.quantize(x, "e4m3", block=(100, 500), scaling="e8m0")
    tiles = np.asarray(x).reshape(6, 100, 5, 500).swapaxes(1, 2).reshape(30, 100, 500)
    order = np.random.default_rng(1).permutation(30)
    shuffled = tiles[order].reshape(6, 5, 100, 500).swapaxes(1, 2).reshape(600, 2500)
    again = mor_ref.quantize(shuffled, "e4m3", block=(100, 500), scaling="e8m0")
    for name in ("sum", "nonzero", "nonfinite"):
        ours, theirs = getattr(blocks.error, name), getattr(again.error, name)
        assert np.array_equal(ours.ravel()[order], theirs.ravel())
        assert getattr(whole.error, name).shape == (1, 1)
    everything = mor_ref.quantize(x, "e4m3", block=(100, 500), threads=1)
    for other in (
        mor_ref.quantize(x, "e4m3", block=(100, 500)),
        mor_ref.quantize(np.asfortranarray(x), "e4m3", block=(100, 500)),
    ):
        for name in ("sum", "nonzero", "nonfinite"):
            assert np.array_equal(getattr(everything.error, name), getattr(other.error, name))
        assert np.array_equal(everything.codes, other.codes)


def test_a_tall_column_of_whole_errors():
    """ERR-004: more errors of 1 than 32 bits hold, in one column of one block."""
    x = np.full((1500, 3), 1e-30, np.float32)
    x[0] = 1.0
    found = mor_ref.quantize(x, "e4m3", threads=1)
    assert found.error.sum.tolist() == [[3 * 1499 << 23]]
    assert found.error.nonzero.tolist() == [[4500]]


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize("shape", [(3, 2049), (257, 3), (600, 1), (1, 70000), (16, 65540)], ids=str)
@pytest.mark.parametrize("block", ["tensor", "row", "column", (300, 2100)], ids=str)
def test_beyond_one_strip_and_one_part(shape, block):
    """Sums of many pieces are those of NumPy's 64-bit integers, over the engine's own y."""
    x = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    found = mor_ref.quantize(x, "e4m3", block=block)
    y = found.dequantize()
    r = np.minimum(np.abs(x - y) / np.abs(x), np.float32(1))
    u = (np.float32(1) + r).view(np.uint32) - np.uint32(0x3F800000)
    assert found.error.sum.sum() == u.sum(dtype=np.uint64)
    assert found.error.nonzero.sum() == x.size
    rows, columns = found.partition.block
    for i, j in np.ndindex(*found.partition.grid):
        where = np.s_[i * rows : (i + 1) * rows, j * columns : (j + 1) * columns]
        assert found.error.sum[i, j] == u[where].sum(dtype=np.uint64)
        assert found.amax[i, j] == np.abs(x[where]).max()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"fmt": "e4m4"}, ValueError, "format is 'e4m4', which is not known; take one of e4m3,"),
        ({"scaling": "mx"}, ValueError, "scaling is 'mx', which is not known; take one of gam"),
        ({"block": "rows"}, ValueError, "block is 'rows', which is not known"),
        ({"threads": 0}, ValueError, "threads is 0; give an int from 1"),
        ({"x": [True]}, TypeError, "x holds the bool True"),
    ],
)
def test_wrong_arguments(arguments, error, message):
    given = {"x": [1.0], "fmt": "e4m3"} | arguments
    with pytest.raises(error) as refused:
        mor_ref.quantize(given.pop("x"), given.pop("fmt"), **given)
    assert message in str(refused.value)


def test_what_a_record_says():
    x = np.ones((4, 6), ml_dtypes.bfloat16)
    found = mor_ref.quantize(x, "e4m3", block=(2, 3), group=(4, 3))
    assert repr(found) == (
        "<4x6 bfloat16 as e4m3: gam scales of 4 blocks of 2x3, mean relative error 0 %, "
        "0 non-finite>"
    )
    assert repr(found.error) == "<2x2 error sums, mean relative error 0 %, 0 non-finite>"
    assert found.error.mean_relative_error.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    empty = mor_ref.quantize(np.zeros((0, 3)), "e4m3")
    assert empty.error.overall == 0
    assert "0 blocks" in repr(empty)
    with pytest.raises(AttributeError):
        found.codes = None


@needs("torch")
def test_torch_tensors_are_taken():
    torch = imported("torch")
    x = torch.linspace(-3, 3, 60).reshape(5, 12).to(torch.bfloat16)
    found = mor_ref.quantize(x, "e4m3", block=(2, 5))
    same = mor_ref.quantize(x.float().numpy(), "e4m3", block=(2, 5))
    assert np.array_equal(found.codes, same.codes)
