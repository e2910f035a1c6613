"""BLF-009: elements that are values of a table, such as NF4 and FP4 of bitsandbytes."""

import itertools
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mor_ref
from mor_ref import BlockFormat, BlockScale, FormatError, TableFormat
from mor_ref.analysis import analyze, compare, settings_under
from mor_ref.definitions.block_formats import BlockFormatError, block_format_of
from mor_ref.exact import block_formats as exact
from mor_ref.exact.errors import error_sum
from mor_ref.golden.model.suite import Size
from mor_ref.golden.suites.block_formats import suite_of
from mor_ref.operations.bits import numbers_of

_LARGEST, _SMALLEST = float(np.finfo(np.float32).max), 2.0**-149

# As published with QLoRA and bitsandbytes.
NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
    0.7229568362236023, 1.0,
)  # fmt: skip
NF4_LIMITS = (
    -0.8480964004993439, -0.6106329262256622, -0.4599952697753906, -0.33967943489551544,
    -0.23460740596055984, -0.13791173323988914, -0.045525018125772476, 0.03979014977812767,
    0.1202552504837513, 0.2035212516784668, 0.2920137718319893, 0.3893125355243683,
    0.5016634166240692, 0.6427869200706482, 0.8614784181118011,
)  # fmt: skip
# Magnitudes of FP4 in bitsandbytes by their codes, and the limits between them as they ascend.
FP4_MAGNITUDES = (0.0, 0.005208333, 0.6666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25)
FP4_LIMITS = (0.00260417, 0.0859375, 0.20833333, 0.29166667, 0.4166667, 0.583333, 0.8333333)


def in_blocks(element: TableFormat, number: str = "amax or 1", **given: Any) -> BlockFormat:
    """Return blocks of 64 numbers."""
    factors = given or {"decode": "s"}
    return BlockFormat("own", element, (BlockScale("s", (1, 64), number),), **factors)


def plain(element: TableFormat) -> BlockFormat:
    """Return a block format whose scales are 1."""
    return in_blocks(element, "1")


def random_table(count: int, seed: int) -> TableFormat:
    """Return values of many magnitudes in no order; few have both zeros."""
    rng = np.random.default_rng(seed)
    values = np.float32(rng.standard_normal(count) * np.exp2(rng.integers(-9, 9, count)))
    if count > 4:
        values[:2] = 0.0, -0.0
    return TableFormat("own", tuple(values.tolist()))


TABLES = {
    **{f"{count} values": random_table(count, count) for count in (2, 3, 5, 16, 17, 40, 256)},
    "nf4": TableFormat("nf4", NF4),
    "ends of binary32": TableFormat(
        "ends", (_LARGEST, -_LARGEST, _SMALLEST, 3 * _SMALLEST, 2.0**-126, -_SMALLEST)
    ),
    "positive": TableFormat("positive", (1, 2, 4)),
    "negative": TableFormat("negative", (-1, -0.0, -7)),
    "one apart": TableFormat("apart", (1, 1 + 2.0**-23, 1 + 2.0**-22)),
}


def edges_of(element: TableFormat) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return values and midpoints, the numbers next to them, and special numbers."""
    values = sorted(map(Fraction, element.values))
    points = [*values, *((a + b) / 2 for a, b in itertools.pairwise(values))]
    near = np.float32([float(point) for point in points])
    with np.errstate(over="ignore"):
        both = [np.nextafter(near, np.float32(to)) for to in (-np.inf, np.inf)]
    special = np.float32([0, -0.0, np.inf, -np.inf, _LARGEST, -_LARGEST, _SMALLEST, -_SMALLEST])
    return np.concatenate([near, *both, special])[np.newaxis]


def nearest(x: float, element: TableFormat) -> float:
    """Return the nearest value, and of two the lower; infinities are next to the ends."""
    number = Fraction(min(max(x, -2 * _LARGEST), 2 * _LARGEST))
    return min(element.values, key=lambda value: (abs(Fraction(value) - number), value))


@pytest.mark.parametrize("name", TABLES)
def test_a_number_takes_the_nearest_value(name: str) -> None:
    """BLF-009: by the distances to all values, in the engine and in the exact model."""
    element, x = TABLES[name], edges_of(TABLES[name])
    record = mor_ref.quantize(x, plain(element))
    expected = [nearest(number, element) for number in x.ravel().tolist()]
    assert record.dequantize().ravel().tolist() == expected
    assert mor_ref.decode(record.codes, element).ravel().tolist() == expected
    assert record.codes.max() < len(element.values)
    blocks = exact.quantize(x.ravel().tolist(), x.shape, plain(element))
    assert record.codes.ravel().tolist() == list(blocks.codes)
    signs = np.signbit(record.dequantize())  # -0 is of negative numbers, and of no zero
    is_zero = record.dequantize() == 0
    if name.endswith("values") and len(element.values) > 4:
        assert np.array_equal(signs[is_zero], x[is_zero] < 0)


@pytest.mark.parametrize("name", TABLES)
def test_a_nan_has_the_code_of_the_largest_value(name: str) -> None:
    """BLF-009."""
    element = TABLES[name]
    x = np.float32([[np.nan, -np.nan, 1]])
    codes = mor_ref.quantize(x, plain(element)).codes.ravel().tolist()
    assert element.values[codes[0]] == element.values[codes[1]] == max(element.values)
    assert codes == exact.quantize(x.ravel().tolist(), x.shape, plain(element)).codes


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("decode", [None, "s"])
def test_blocks_with_tries_and_special_numbers(name: str, decode: str | None) -> None:
    """BLF-004, BLF-005, BLF-009: the engine has the bits of the exact model."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((5, 150)) * np.exp2(rng.integers(-20, 20, (5, 150)))
    for number in (0.0, -0.0, np.nan, np.inf, -np.inf):
        x[rng.random(x.shape) < 0.01] = number
    x = x.astype(np.float32)
    given = {"decode": decode, "encode": "min(1 / s, MAX)", "tries": ("t", "0.7 * t")}
    own = in_blocks(TABLES[name], "amax / 3", **given)
    record = mor_ref.quantize(x, own)
    blocks = exact.quantize(x.ravel().tolist(), x.shape, own)
    np.testing.assert_array_equal(record.codes.ravel(), blocks.codes)
    np.testing.assert_array_equal(record.dequantize().ravel(), blocks.y)
    np.testing.assert_array_equal(record.scales["s"].ravel(), blocks.scales["s"].numbers["s"])


def test_errors_of_values_of_another_sign() -> None:
    """ERR-001 to ERR-004: a value may have another sign than its number."""
    element = TableFormat("far", (-4, 0.5))
    x = np.float32([[-0.75, -1.5, 0.25, 0.125, -2, 3, -0.0, 1e-30]])
    record = mor_ref.quantize(x, plain(element))
    y = record.dequantize()
    assert y.ravel().tolist() == [0.5, 0.5, 0.5, 0.5, -4, 0.5, 0.5, 0.5]
    expected = error_sum(zip(x.ravel().tolist(), y.ravel().tolist(), strict=True))
    assert record.error.sum.item() == expected.sum
    assert record.error.nonzero.item() == expected.nonzero == 7


def test_a_policy_writes_values_of_another_sign() -> None:
    """MOR-006, QNT-003, BLF-009: the output of a rung is y in bfloat16."""
    element = TableFormat("far", (0.5, -4.1, 2.3))
    x = np.random.default_rng(1).standard_normal((8, 64), dtype=np.float32)
    rung = mor_ref.Rung(plain(element), mor_ref.MeanRelativeError(1))
    output = mor_ref.mor(x, mor_ref.Policy("own", (rung,))).output
    y = mor_ref.quantize(x, plain(element)).dequantize()
    codes = mor_ref.encode(y, "bf16", overflow="ieee")
    np.testing.assert_array_equal(np.asarray(output).view(np.uint16), codes)


# ---------------------------------------------------------------------- bitsandbytes


def activations() -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return more numbers than a small tensor has."""
    x = np.random.default_rng(7).standard_normal((2100, 192), dtype=np.float32)
    x[5, :64] = 0
    return x


def normalised(x: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return numbers times 1 / absmax in blocks of 64, in binary32; blocks of zeros stay."""
    blocks = x.reshape(-1, 64)
    largest = np.abs(blocks).max(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        factor = np.minimum(np.float32(1) / largest, np.finfo(np.float32).max)
    return (blocks * factor).reshape(x.shape)


def kernels_of(element: TableFormat) -> BlockFormat:
    """Return blocks as the kernels have them."""
    return in_blocks(element, "amax", decode="s", encode="min(1 / s, MAX)")


def test_nf4_of_bitsandbytes() -> None:
    """BLF-009: its decisions are comparisons with limits, which NumPy repeats here."""
    x, limits = activations(), np.float32(NF4_LIMITS)
    x[7, :15] = limits
    x[7, 15:30] = np.nextafter(limits, np.float32(2))
    x[7, 30:64] = 1
    own = kernels_of(TableFormat("nf4", NF4, NF4_LIMITS))
    record = mor_ref.quantize(x, own)
    codes = (normalised(x)[..., np.newaxis] > limits).sum(axis=-1)
    np.testing.assert_array_equal(record.codes, codes)
    largest = np.abs(x).reshape(-1, 64).max(axis=1, keepdims=True)
    y = np.float32(NF4)[codes].reshape(-1, 64) * largest
    np.testing.assert_array_equal(record.dequantize().reshape(-1, 64), y)
    # Limits that are not rounded are others: at some limits, and nowhere else.
    exactly = mor_ref.quantize(x, kernels_of(TableFormat("nf4", NF4)))
    differing = np.argwhere(exactly.codes != record.codes)
    assert 0 < len(differing) < 15
    assert {row for row, _ in differing.tolist()} == {7}


def test_fp4_of_bitsandbytes() -> None:
    """BLF-009: a sign and a magnitude, in codes that do not ascend; ties go towards zero."""
    magnitudes, limits = np.float32(FP4_MAGNITUDES), np.float32(FP4_LIMITS)
    below = np.nextafter(-limits[::-1], np.float32(-np.inf))  # -limit itself goes up
    element = TableFormat(
        "fp4",
        (*magnitudes.tolist(), *(-magnitudes).tolist()),
        (*below.tolist(), -_SMALLEST, *limits.tolist()),
    )
    x = activations()
    x[7, :14] = np.concatenate([limits, -limits])
    x[7, 14:64] = 1
    record = mor_ref.quantize(x, kernels_of(element))
    scaled = normalised(x)
    places = (np.abs(scaled)[..., np.newaxis] > limits).sum(axis=-1)
    ascending = np.argsort(magnitudes)
    np.testing.assert_array_equal(record.codes, ascending[places] + 8 * (scaled < 0))


# ---------------------------------------------------------------------- texts and files

TOML = """
name = "own"
element = { name = "odd", values = [3, -0.0, 0.1, -1e20, 0] }
decode = "s"

[[scales]]
name = "s"
over = [1, 64]
number = "amax or 1"
"""


def test_a_text_has_the_values() -> None:
    """BLF-006, BLF-009: values are rounded to binary32 once, and -0 is not 0."""
    own = block_format_of(tomllib.loads(TOML))
    values = (3.0, -0.0, float(np.float32(0.1)), float(np.float32(-1e20)), 0.0)
    assert own == in_blocks(TableFormat("odd", values))
    assert block_format_of(tomllib.loads(own.text)).text == own.text
    assert "limits" not in own.text
    other = in_blocks(TableFormat("odd", (3, 0, *values[2:4], -0.0)))
    assert own != other
    assert own.text != other.text
    assert own.digest != other.digest


def test_limits_are_written_if_they_are_not_halfway() -> None:
    """BLF-006."""
    halfway = TableFormat("own", (1, 3, 2), (1.5, 2.5))
    assert halfway == TableFormat("own", (1, 3, 2))
    assert halfway.limits is None
    own = in_blocks(TableFormat("own", (1, 3, 2), (1.5, 2.6)))
    assert "limits = [1.5, 2.5999999046325684]" in own.text
    assert block_format_of(tomllib.loads(own.text)) == own != in_blocks(halfway)
    x = np.float32([[1.5, 1.6, 2.6, 2.61]])
    assert mor_ref.quantize(x, plain(own.fmt)).codes.tolist() == [[0, 2, 2, 1]]


def test_a_record_goes_through_a_file(tmp_path: Path) -> None:
    own = in_blocks(TableFormat("own", NF4, NF4_LIMITS))
    record = mor_ref.quantize(activations()[:20], own)
    for ending in ("npz", "safetensors"):
        record.save(tmp_path / f"record.{ending}")
        assert mor_ref.load(tmp_path / f"record.{ending}") == record
    assert record.packed.size == record.codes.size // 2


def test_recipes_take_a_table() -> None:
    x, own = activations()[:64], in_blocks(TABLES["nf4"])
    results = compare(x, [own, "mxfp4"])
    assert results["own"].measures.sqnr > results["mxfp4"].measures.sqnr
    assert "own" in analyze(x, settings_under(own)).report.shares


def test_vectors_reach_the_limits_of_a_table() -> None:
    """The inputs of a suite tell a table from one whose limits are next to its own."""
    element = TableFormat("own", NF4, NF4_LIMITS)
    limits = np.nextafter(np.float32(element.limits or ()), np.float32(2))
    other = in_blocks(TableFormat("own", NF4, tuple(limits.tolist())))
    own = in_blocks(element)
    x = [
        np.float32(numbers_of(case.arrays["x"], case.parameters["source"]))
        for case in suite_of(own).questions(Size())
    ]
    both = [[mor_ref.quantize(each, made).codes for each in x] for made in (own, other)]
    pairs = [
        (int(a), int(b))
        for left, right in zip(*both, strict=True)
        for a, b in zip(left.ravel(), right.ravel(), strict=True)
        if a != b
    ]
    assert {a for a, _ in pairs} == set(range(1, 16))


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("values", "limits", "has"),
    [
        ((1,), None, "1 values; give 2 to 256"),
        (tuple(range(257)), None, "257 values; give 2 to 256"),
        ((1, 2, 1), None, "1.0 twice"),
        ((0.1, 0.1 + 2.0**-40), None, "twice"),
        ((1, np.nan), None, "values has nan"),
        ((1, 1e39), None, "values has 1e[+]39"),
        ((True, 2), None, "values has True"),
        ("12", None, "values is '12'"),
        ((1, "2"), None, "values has '2'"),
        ((1, 2), (1, 2), "it has 2 limits; give 1"),
        ((1, 2, 3), (2, 1.5), "ascending order"),
        ((1, 2, 3), (2, 2), "ascending order"),
    ],
)
def test_tables_that_cannot_exist(values: Any, limits: Any, has: str) -> None:
    """BLF-009."""
    with pytest.raises(FormatError, match=has):
        TableFormat("own", values, limits)


def test_codes_that_a_table_does_not_have() -> None:
    """DEC-004, BLF-009: NaN if they fit the bits, and else refused."""
    element = TABLES["positive"]
    assert mor_ref.decode([0, 2, 1], element).tolist() == [1, 4, 2]
    assert np.isnan(mor_ref.decode([3], element)).all()
    with pytest.raises(ValueError, match="codes"):
        mor_ref.decode([4], element)


def test_what_a_table_is_not_for() -> None:
    """BLF-009."""
    x, element = np.float32([[1, 2]]), TABLES["nf4"]
    with pytest.raises(mor_ref.UnknownNameError, match="format is TableFormat"):
        mor_ref.encode(x, element)  # type: ignore[arg-type]
    with pytest.raises(BlockFormatError, match="drops the sign of zero, and nf4 is a table"):
        in_blocks(element, decode="s", drops_sign_of_zero=True)
    with pytest.raises(
        BlockFormatError, match="it has ties or zeros of its own, and nf4 is a tabl"
    ):
        in_blocks(element, decode="s", rounding="rna")
    with pytest.raises(TypeError, match="are not rounded at random"):
        mor_ref.quantize(x, plain(element), random_bits=np.uint32([[0, 0]]), n_random_bits=8)
    with pytest.raises(BlockFormatError, match="a format has no name"):
        block_format_of(tomllib.loads(TOML.replace('name = "odd", ', "")))
    with pytest.raises(mor_ref.UnknownNameError, match="limit"):
        block_format_of(tomllib.loads(TOML.replace("values", "limit = [], values")))
