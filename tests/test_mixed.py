"""Mixtures of formats: errors, sums and choices by hand, and three implementations compared."""

import numpy as np
import pytest

import mor_ref
from mor_ref import formats
from mor_ref.analysis import compare
from mor_ref.definitions.blocks import partition
from mor_ref.operations import OPERATIONS
from mor_ref.recipes import as_tensor_recipe, short_text
from mor_ref.representations import MxBlocks, as_representation
from mor_ref.schemes.affine.representation import AffineBlocks
from mor_ref.schemes.mixed.definition import MIXTURES, integer_format
from mor_ref.schemes.mixed.definition import Mixture as MixtureOfFormats
from mor_ref.schemes.mixed.engine import joined
from mor_ref.schemes.mixed.engine import least as least_of
from mor_ref.schemes.mixed.exact import error_in_units, layer_errors, least, mixed, squared_error
from mor_ref.schemes.mixed.recipe import Mixture
from mor_ref.schemes.mixed.representation import candidates_from
from mor_ref.verify import assert_bit_exact

TOPS = np.array([1.0, 1.75, 2.0**-126, 2.0**-140, 3e38, 1e-20, 448, 6], np.float32)


def numbers_at_edges(seed, rows, columns=20):
    """Return rows of many binades; some have zeros, subnormal numbers, infinities or NaN."""
    random = np.random.default_rng(seed)
    steep = np.exp2(-random.integers(0, 30, (rows, columns)) * (np.arange(rows) % 3)[:, None])
    x = random.uniform(-1, 1, (rows, columns)) * steep
    x = (x * TOPS[np.arange(rows) % 8, None].astype(np.float64)).astype(np.float32)
    x[::5, 3], x[1::6, 4], x[2::7, 5], x[3] = np.nan, np.inf, -0.0, 0
    return x


CANDIDATES = (
    ("int8", "e4m3"),
    ("int4", "e2m1_ieee"),
    ("e2m1", "int3", "mxfp4", "seq2"),
    ("e5m2", AffineBlocks("int8", "onnx", symmetric=False), MxBlocks("e4m3", block=16)),
)


def test_integers_are_formats_and_have_a_name():
    """MFQ-001: int3 to int8 in two's complement, and the other representations."""
    assert integer_format(8).value(0x80) == -128
    assert integer_format(4).value(0xF) == -1
    assert [integer_format(n).largest for n in (3, 8)] == [3, 127]
    x = np.array([127, -127, 63.4, 0.5, -0.6], np.float32)
    found = mor_ref.mix_formats(x, ("int8",))
    assert found.codes.tolist() == [127, 0x81, 63, 0, 0xFF]
    assert found.scale.tolist() == [[1.0]]
    for wrong in ("int2", "int9"):
        with pytest.raises(ValueError, match="give int3 to int8, or a record such as"):
            mor_ref.mix_formats(x, (wrong,))
    for wrong in ((), "int8", ("e4m3",) * 17):
        with pytest.raises(ValueError, match="give a tuple of 1 to 16 of them"):
            mor_ref.mix_formats(x, wrong)
    with pytest.raises(ValueError, match="give each only once"):
        mor_ref.mix_formats(x, ("e4m3", formats["e4m3"]))


@pytest.mark.parametrize("other", ["mxfp4", MxBlocks("e4m3", block=16), "te"])
def test_codes_of_formats_alone(other):
    """MFQ-006: blocks of MX and NVFP4 have scales of their own, so the record has y alone."""
    x = np.random.default_rng(3).standard_normal((8, 64)).astype(np.float32)
    x[:4, ::16] *= 400
    found = mor_ref.mix_formats(x, ("int8", "e4m3", other), block=(4, 16))
    assert found.codes is found.scale is None
    assert set(np.unique(found.choice)) == {0, 1}
    alone = mor_ref.mix_formats(x, ("int8", "e4m3"), block=(4, 16))
    assert alone.y.tobytes() == found.y.tobytes()
    assert alone.scale.shape == (2, 4)
    taken = np.repeat(np.repeat(alone.choice, 4, 0), 16, 1)
    codes = [one.codes for one in alone.quantized.values()]
    assert (alone.codes == np.where(taken == 0, *codes)).all()


def test_scales_of_formats_below_four():
    """SCL-002 and SCL-003: a scale is never below 2^-126, and FP4 with infinities is scaled."""
    assert formats["e2m1_ieee"].largest == 3
    huge = np.array([3.4e38, 2.0**127, -(2.0**127), 0], np.float32)
    found = mor_ref.quantize(huge, "e2m1_ieee", scaling="fp32")
    assert found.scale.tolist() == [[2.0**-126]]
    assert found.codes.tolist() == [5, 4, 12, 0]
    assert found.dequantize().tolist()[1:] == [2.0**127, -(2.0**127), 0]
    usual = mor_ref.quantize(np.float32([1.5, 0.25]), "e2m1_ieee", scaling="fp32")
    assert usual.scale.tolist() == [[2.0]]
    with pytest.raises(ValueError, match="largest value is at least 2"):
        mor_ref.quantize(huge, formats["int8_mx"])


@pytest.mark.parametrize(
    ("x", "y", "largest", "u"),
    [
        (1.0, 1.0, 1.0, 0),
        (1.0, 0.0, 1.0, 1 << 20),
        (1.0, 0.0, 1.99, 1 << 20),
        (1.0, 0.0, 2.0, 1 << 19),
        (1.0, 1 + 2.0**-21, 1.0, 0),  # a tie goes to even
        (1.0, 1 + 3 * 2.0**-21, 1.0, 2),
        (1.0, 1 + 2.0**-21 + 2.0**-23, 1.0, 1),
        (1.0, -4.0, 1.0, 1 << 22),
        (1.0, 3e38, 1.0, 1 << 22),
        (1.0, float("inf"), 1.0, 1 << 22),
        (1.0, float("nan"), 1.0, 1 << 22),
        (float("inf"), 1.0, 1.0, 0),
        (float("nan"), 1.0, 1.0, 0),
        (0.0, 1.0, 0.0, 0),
        (2.0**-149, 0.0, 2.0**-149, 1 << 20),
        (2.0**-149, 0.0, 2.0**-146, 1 << 17),
        (3.4e38, -3.4e38, 3.4e38, 1 << 22),
    ],
)
def test_errors_of_numbers(x, y, largest, u):
    """MFQ-002: by hand, and as the engine has them."""
    x, y, largest = (float(np.float32(v)) for v in (x, y, largest))
    assert error_in_units(x, y, largest) == u
    if largest == abs(x) or not np.isfinite(x):
        return
    row = np.array([[x, largest]], np.float32)
    values = np.array([[y, largest]], np.float32)
    assert _squares(x=row, first=values, second=row) == [u * u, 0]


def _squares(**given):
    arrays = {name: array.view(np.uint32) for name, array in given.items()}
    found = OPERATIONS["mix_errors"].engine({"source": "f32"}, arrays)
    return [int(found[f"{name}_squares"][0]) for name in ("first", "second")]


def test_sums_are_exact():
    """MFQ-003: also beyond 64 bits, and whatever the number of threads."""
    assert squared_error([(1.0, 0.0), (0.5, 0.25)], 1.0) == (1 << 40) + (1 << 36)
    sums = np.array([[[(1 << 40) + 7, (1 << 50) + 1], [5, 3]]], np.uint64)
    assert joined(sums).tolist() == [[((1 << 50) + 1 << 32) + (1 << 40) + 7, (3 << 32) + 5]]
    assert joined(sums[:, 1:]).dtype == np.uint64
    one_less = joined(sums) - 1
    assert least_of([joined(sums), one_less]).tolist() == [[1, 1]]
    x = np.random.default_rng(0).standard_normal((700, 1700), dtype=np.float32)
    one, other = (mor_ref.mix_formats(x, threads=threads) for threads in (1, 2))
    assert {k: v.tolist() for k, v in one.squared_error.items()} == {
        k: v.tolist() for k, v in other.squared_error.items()
    }


def test_the_first_of_the_least_is_taken():
    """MFQ-004."""
    assert [least(errors) for errors in ([3, 2, 2], [2, 2], [5], [0, 0, 0])] == [1, 0, 0, 0]
    exact = np.array([[7.0, -7.0, 3.0, 1.0]], np.float32)  # both lose nothing
    for pair in (("int8", "int4"), ("int4", "int8")):
        found = mor_ref.mix_formats(exact, pair)
        assert found.squared_error["int4"].tolist() == [[0]]
        assert found.choice.tolist() == [[int(found.squared_error[pair[0]][0, 0] > 0)]]
    zeros = mor_ref.mix_formats(np.zeros((4, 4), np.float32))
    assert zeros.choice.tolist() == [[0]]
    assert zeros.amax.tolist() == [[0]]


def test_a_layer_has_one_candidate():
    """MFQ-005: the sums of both tensors decide."""
    assert layer_errors([[1, 5], [9, 4]]) == [10, 9]
    even = np.linspace(-3, 3, 64, dtype=np.float32)
    outliers = np.where(np.arange(64000) % 640 == 0, 900, even.repeat(1000)).astype(np.float32)
    assert mor_ref.mix_formats(even).choice.item() == 0
    assert mor_ref.mix_formats(outliers).choice.item() == 1
    both = mor_ref.mix_layer([even, outliers])
    assert [one.choice.item() for one in both] == [1, 1]
    assert_bit_exact(both[0].codes, mor_ref.quantize(even, "e4m3", scaling="fp32").codes, "e4m3")
    assert mor_ref.mix_layer([even])[0].choice.item() == 0
    with pytest.raises(ValueError, match="tensors is empty"):
        mor_ref.mix_layer([])


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize("candidates", CANDIDATES, ids=lambda one: one[0])
@pytest.mark.parametrize("block", ["tensor", "row", "column", (4, 8)], ids=str)
def test_the_engine_has_the_bits_of_the_exact_model(candidates, block):
    """MFQ-001 to MFQ-006: on numbers at edges, each row with another binade."""
    x = numbers_at_edges(7, rows=24)
    of = candidates_from(candidates)
    found = mor_ref.mix_formats(x, candidates, block=block)
    cut = partition(x.shape, block)
    expected = mixed([[float(v) for v in row] for row in x], of, cut)
    for (i, j), unit in expected.units.items():
        own = [int(found.squared_error[one.name][i, j]) for one in of]
        assert own == unit.squared_error
        assert found.choice[i, j] == unit.choice
        assert found.amax[i, j] == unit.amax
    y = np.array([[e.y for e in row] for row in expected.elements], np.float32)
    np.testing.assert_array_equal(found.dequantize(), y)
    is_scaled = all(hasattr(one, "fmt") for one in of)
    assert (found.codes is not None) == (found.scale is not None) == is_scaled
    if is_scaled:
        codes = [[e.code for e in row] for row in expected.elements]
        assert found.codes.tolist() == codes


@pytest.mark.tier("full")
def test_squares_of_a_mixture_of_a_user_are_compared(monkeypatch):
    monkeypatch.setitem(MIXTURES, "own", MixtureOfFormats("own", ("e5m2", "int6")))

    def one_more(operation, parameters, inputs):
        found = OPERATIONS[operation].engine(parameters, inputs)
        return {**found, "int6.squares": found["int6.squares"] + np.uint64(1)}

    x = np.arange(64, dtype=np.float32).reshape(4, 16)
    asked = {"inputs": {"x": x}, "recipe": "own:4x8"}
    assert mor_ref.verify("numba", **asked).verdict == "match"
    (result,) = mor_ref.verify(one_more, **asked).results
    assert {one.suite_field for one in result.differences} == {"int6.squares"}


@pytest.mark.parametrize("recipe", ["int8_or_e4m3", "e2m1_or_int4:1x16", "int8_or_e4m3:row"])
def test_recipes(recipe):
    """MFQ-006: short texts, own tensors, and the bits of a number (ERR-009)."""
    one = as_tensor_recipe(recipe)
    name, _, block = recipe.partition(":")
    assert one == Mixture(name, as_tensor_recipe(f"{name}:{block or 'tensor'}").block)
    assert as_tensor_recipe(short_text(one)) == one == as_tensor_recipe(one.text)
    x = numbers_at_edges(5, rows=32, columns=32)
    x = np.ascontiguousarray(np.where(np.isfinite(x), x, np.float32(1)))
    assert mor_ref.verify("numba", inputs={"x": x}, recipe=recipe).verdict == "match"
    found = compare(x, [recipe])[recipe]
    of_formats = {"int8_or_e4m3": 8 + 33 / 1024, "e2m1_or_int4:1x16": 4 + 33 / 16,
                  "int8_or_e4m3:row": 8 + 33 / 32}  # fmt: skip
    assert found.bits_per_number == of_formats[recipe]


@pytest.mark.tier("full")
def test_mixtures_are_representations():
    """MOR-007: by name, and as candidates of other mixtures."""
    assert as_representation("int8_or_e4m3").name == "int8_or_e4m3"
    x = np.random.default_rng(1).standard_normal((16, 32), dtype=np.float32)
    found = mor_ref.mix_formats(x, ("int4_or_e2m1", "int8"))
    assert found.choice.item() == 1
    with pytest.raises(AssertionError, match=r"int8\.squares|choice"):
        assert_bit_exact(
            {"choice": np.uint8([[1]]), "y": np.zeros((16, 32), np.uint32)},
            mor_ref.mix_formats(x),
            x=x,
        )
