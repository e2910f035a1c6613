"""Measures of recipes (ERR-006 to ERR-009): the engine and the exact model, bit for bit."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from worker_pools import two_threads

from mor_ref import MeanRelativeError, Policy, Rung
from mor_ref.analysis.compare_tensor import compare, total
from mor_ref.analysis.recipes import recipes_from
from mor_ref.analysis.storage import stored_bits
from mor_ref.api.dequantization import values
from mor_ref.api.measures import Measures, saturated
from mor_ref.arrays import numbers_from
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.scales import ScalingBlocks
from mor_ref.engine.scales import amax_of_blocks
from mor_ref.engine.squares import measure
from mor_ref.exact import policies
from mor_ref.exact.errors import error_sum, is_flushed, sqnr, squares
from mor_ref.exact.quantization import Element
from mor_ref.exact.training import is_saturated
from mor_ref.recipes import Situation, TensorRecipe, as_tensor_recipe

__all__ = ["two_threads"]  # a fixture

BF16 = ml_dtypes.bfloat16
ALONE = ["e4m3:gam:3x20", "e5m2:fp32:row", "mxfp8:rceil:16", "mxint8", "nvfp4", "nvfp4:te:16x16",
         "nvfp4:torchao"]  # fmt: skip
MIXED = ["mor:tensor", "mor:two_way:3x20", "mor:three_way:3x20", "mor:nvfp4:e8m0:5x16"]


def numbers(dtype, shape=(7, 40), *, with_specials=True):
    """Return numbers of many binades, some for each kind of unit."""
    random = np.random.default_rng(11)
    x = random.standard_normal(shape) * np.exp2(random.integers(-12, 5, shape))
    x[:3, : shape[1] // 2] = random.standard_normal((3, shape[1] // 2))
    x[3:, shape[1] // 2 :] = random.standard_normal((shape[0] - 3, shape[1] // 2))
    x[0, :3] = 0.0, -0.0, 1e-9
    if with_specials:
        x[4, 30:34] = np.nan, np.inf, -np.inf, 6e4
    return x.astype(np.float32).astype(dtype)


def exact_pairs(x, tensor_recipe):
    """Return x and y of each element, and how many saturated, from the exact model (ERR-008)."""
    rows = [[float(v) for v in row] for row in np.asarray(x, np.float32)]
    policy = tensor_recipe.policy_in(Situation())
    parts = partition(x.shape, tensor_recipe.cut, policy.group)
    found = policies.mix(rows, policy, tensor_recipe.scales, parts)
    if tensor_recipe.name == "mor":
        y = policies.restored(rows, found, policy, parts)
    else:
        y = [[one.y for one in row] for row in found.tried[policy.names[0]]]
    return [(a, b) for xs, ys in zip(rows, y, strict=True) for a, b in zip(xs, ys, strict=True)]


def exact_measures(pairs):
    """Return the measures of pairs of x and y but the count of saturated ones."""
    sums, found = error_sum(pairs), squares(pairs)
    return {
        "elements": len(pairs),
        "sum": sums.sum,
        "nonzero": sums.nonzero,
        "nonfinite": sums.nonfinite,
        "flushed": sum(is_flushed(x, y) for x, y in pairs),
        "measured": found.measured,
        "signal": found.signal,
        "noise": found.noise,
        "largest": found.largest,
    }


def without_saturated(measures):
    return {name: n for name, n in vars(measures).items() if name != "saturated"}


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize(
    ("dtype", "with_specials"),
    [(np.float32, False), (BF16, True), (np.float16, False), (np.float64, True)],
    ids=["f32", "bf16 with specials", "f16", "f64 with specials"],
)
@pytest.mark.parametrize("recipe", [*ALONE, *MIXED])
def test_measures_are_those_of_the_exact_model(recipe, dtype, with_specials):
    """ERR-006 to ERR-008."""
    x = numbers(dtype, with_specials=with_specials)
    found = compare(x, [recipe])[recipe]
    pairs = exact_pairs(x, as_tensor_recipe(recipe))
    assert without_saturated(found.measures) == exact_measures(pairs)
    assert found.measures.noise > 0 or with_specials
    wanted = sqnr(found.measures.signal, found.measures.noise)
    assert found.measures.sqnr == pytest.approx(wanted, rel=1e-14)


def test_units_that_stay_bfloat16_are_rounded_to_it():
    """ERR-008: some units take each rung of a policy, and some none."""
    found = compare(numbers(np.float32), ["mor:three_way:3x20"])["mor:three_way:3x20"]
    assert all(found.taken.values())
    assert sum(found.taken.values()) == 7 * 40
    alone = compare(numbers(np.float32), ['{ representation = "unquantized" }'])
    (found,) = alone.values()
    pairs = [(float(v), float(np.float32(v.astype(BF16)))) for v in numbers(np.float32).reshape(-1)]
    assert without_saturated(found.measures) == exact_measures(pairs)
    assert (found.taken, found.bits_per_number) == ({"bf16": 280}, 16.0)


def test_a_representation_alone_has_all_elements_of_a_tensor_with_a_nan():
    """ERR-008: training falls back to bfloat16 there; a comparison does not."""
    x = numbers(np.float32)
    found = compare(x, ["e5m2:fp32:tensor"])["e5m2:fp32:tensor"]
    assert found.taken == {"e5m2": 280, "bf16": 0}
    assert found.measures.nonfinite == 3


@pytest.mark.parametrize(
    ("shape", "threads"), [((1, 9000), 1), ((9000, 1), 2), ((530, 2100), 2), ((0, 7), 1), ((), 1)]
)
@pytest.mark.usefixtures("two_threads")
def test_sums_of_squares_do_not_depend_on_strips_parts_and_threads(shape, threads):
    """ERR-006: y is 0 here, so that d is x; more rows than are carried at once, and wider ones."""
    random = np.random.default_rng(3)
    x = random.standard_normal(shape) * np.exp2(random.integers(-150, 100, shape))
    x = np.asarray(x, np.float32)
    with np.errstate(over="ignore"):
        found = measure(numbers_from(x, "x"), partition(x.shape, "tensor"), [], threads)
    mantissas, exponents = np.frexp(np.abs(x.astype(np.float64)))
    whole = (mantissas.reshape(-1) * 2**24).astype(np.int64).tolist()
    scales = (exponents.reshape(-1) - 24 + 149).tolist()
    expected = sum(m * m << 2 * e if e >= 0 else (m >> -e) ** 2
                   for m, e in zip(whole, scales, strict=True))  # fmt: skip
    assert (found.squares, found.measured) == (expected, x.size)
    assert found.flushed == found.nonzero == np.count_nonzero(x)
    assert found.largest == np.abs(x).max(initial=np.float32(0)).view(np.uint32)


def test_the_parts_of_a_large_tensor_have_their_own_y():
    """ERR-008: blocks of MX do not cross rows, so that pieces of rows add up to the whole."""
    x = np.random.default_rng(4).standard_normal((2050, 1024)).astype(BF16)
    recipes = ["mxfp4", '{ representation = "unquantized" }']
    pieces = [compare(x[top : top + 700], recipes) for top in range(0, 2050, 700)]
    for name, whole in compare(x, recipes).items():
        assert total(name, (piece[name] for piece in pieces)) == whole


@dataclass(frozen=True)
class Whole:
    """Whole numbers, as a user may have them: the implementation returns y alone."""

    name: str = "whole"
    bits: int = 8

    def exact(self, x, scaling, parts):
        del scaling, parts
        return [
            [Element(v, 0, float(round(v)) if math.isfinite(v) else v) for v in row] for row in x
        ]

    def engine(self, numbers, blocks, out, threads):
        x = numbers.bits.view(numbers.dtype).astype(np.float32)
        return values(numbers, np.rint(x) + np.float32(0), blocks, out, threads)

    def cuda(self, device, x, blocks):
        raise NotImplementedError


@dataclass(frozen=True)
class Own(TensorRecipe):
    """The recipe of a user."""

    name = "mor"

    def policy_in(self, situation):
        del situation
        rungs = (Rung(Whole(), MeanRelativeError("0.3")), Rung("mxfp8", MeanRelativeError("0.1")))
        return Policy("own", rungs, unit="block", block=(3, 20))

    @property
    def cut(self):
        return (3, 20)


@pytest.mark.parametrize("dtype", [np.float32, BF16, np.float64], ids=str)
def test_the_representation_of_a_user_is_measured(dtype):
    """ERR-008: its y is not rounded."""
    x = numbers(dtype)
    x[:3, :20] *= 10
    (found,) = compare(x, [Own()]).values()
    assert all(found.taken.values())
    assert found.bits is None  # ERR-009: it does not say how many
    assert without_saturated(found.measures) == exact_measures(exact_pairs(x, Own()))
    assert found.measures.saturated is None  # TRN-011: nobody counted
    assert math.isnan(found.measures.saturated_share)


def test_what_nobody_counted_is_not_known():
    """Also in sums. A representation that took nothing leaves nothing open."""
    known, unknown = Measures(saturated=3), Measures(saturated=None)
    assert (known + known).saturated == 6
    assert (known + unknown).saturated is None
    assert (unknown + known).saturated is None
    found = compare(np.ones((4, 32), np.float32), ["mxfp8", "int8", "lsq4"])
    counts = [one.measures.saturated for one in found.values()]
    assert counts == [0, None, None]
    ladder = (Rung("mxfp8", MeanRelativeError("0.3")), Rung(Whole(), MeanRelativeError("0.3")))
    numbers = numbers_from(np.ones((4, 32), np.float32), "x")
    units = partition((4, 32), "tensor")
    blocks = ScalingBlocks(units, "fp32", amax_of_blocks(numbers, units, None))
    tried = [rung.representation.engine(numbers, blocks, None, None) for rung in ladder]
    of_rungs = [saturated(numbers, tried, units, np.full((1, 1), k, np.uint8)) for k in range(3)]
    assert of_rungs == [0, None, 0]


def test_sums_that_are_large_carry():
    """ERR-006: 2^20 squares of the largest significand of one exponent."""
    x = np.full((256, 4096), np.float32(2 - 2**-23))
    found = measure(numbers_from(x, "x"), partition(x.shape, "tensor"), [], 1)
    assert found.squares == 2**20 * (2**24 - 1) ** 2 << 2 * (149 - 23)


@pytest.mark.parametrize("ends", [(3.4028234663852886e38, 1e-45), (1e-45, 1e-45)])
def test_the_ends_of_binary32_are_exact(ends):
    """ERR-006 and ERR-007: the squares of the largest and of the smallest number."""
    x = np.array(ends, np.float32)
    found = compare(x, ["e4m3:fp32:row"])["e4m3:fp32:row"].measures
    assert found.signal == sum(int((Fraction(float(v)) ** 2) * 2**298) for v in x)
    assert squares([(float(v), 0.0) for v in x]).noise == found.signal


def test_elements_that_saturate_are_counted_per_rung():
    """ERR-007: the limit is that of the exact model."""
    random = np.random.default_rng(2)
    x = (random.standard_normal((16, 64)) * 3).astype(np.float32)
    found = compare(x, ["mxfp4:floor"])["mxfp4:floor"].measures
    policy = as_tensor_recipe("mxfp4:floor").policy_in(Situation())
    elements = policy.ladder[0].representation.exact(x.tolist(), "fp32", None)
    fmt = policy.ladder[0].representation.element
    assert found.saturated == sum(is_saturated(one.xs, fmt) for row in elements for one in row) > 0
    assert found.saturated_share == found.saturated / 1024


def test_measures_without_noise():
    """ERR-007: a ratio is infinite, and nothing is the error of no elements."""
    found = compare(np.ones((2, 32), np.float32), ["mxfp8"])["mxfp8"].measures
    assert (found.noise, found.sqnr, found.error, found.mse) == (0, math.inf, 0.0, 0.0)
    assert found.largest == 0.0
    empty = compare(np.ones((0, 32), np.float32), ["mxfp8", "mor:three_way", "nvfp4"])
    assert all((one.bits, one.measures) == (0, Measures()) for one in empty.values())


def test_the_mean_of_squares_is_of_the_measured_elements():
    """ERR-007: an infinity, a NaN and their y are left out."""
    x = np.array([1.0625, 0.0, 0.5, np.nan, np.inf], np.float32)
    found = compare(x, ["mxfp8:3"])["mxfp8:3"].measures
    assert (found.measured, found.nonzero, found.nonfinite) == (3, 2, 2)
    assert found.mse == (2.0**-4) ** 2 / 3
    assert found.largest == 2.0**-4


def test_the_measures_of_two_tensors_add_up():
    """ERR-007: halves of a tensor have the totals of the whole, if scales do not cross."""
    x = numbers(np.float32, (8, 64))
    whole = compare(x, ["mxfp8"])["mxfp8"]
    halves = [compare(half, ["mxfp8"])["mxfp8"] for half in (x[:3], x[3:])]
    assert total("mxfp8", halves) == whole


@pytest.mark.parametrize(
    ("recipe", "bits"),
    [
        ("e4m3:fp32:tensor", 8 * 256 * 384 + 32),
        ("e4m3:e8m0:128x128", 8 * 256 * 384 + 8 * 6),
        ("e4m3:gam:100x100", 8 * 256 * 384 + 8 * 12 + 23),
        ("mxfp8:floor:40", 8 * 256 * 384 + 8 * 256 * 10),
        ("mxfp4", 4 * 256 * 384 + 8 * 256 * 12),
        ("nvfp4", 4 * 256 * 384 + 8 * 256 * 24 + 32),
        ("nvfp4:te_row", 4 * 256 * 384 + 8 * 256 * 24 + 32 * 256),
        ("mor:tensor", 8 * 256 * 384 + 8 * 6 + 23 + 1),
        ("mor:three_way", 8 * 256 * 384 + 8 * 6 + 23 + 2 * 6),
    ],
)
def test_bits_are_codes_scales_and_decisions(recipe, bits):
    """ERR-009: one representation takes all."""
    x = np.ones((256, 384), BF16)
    found = compare(x, [recipe])[recipe]
    assert (found.bits, found.bits_per_number) == (bits, bits / (256 * 384))


def test_bits_of_a_mixture_are_in_proportion():
    """ERR-009: of 100 elements 70 took e4m3, and the scales of both have some."""
    rungs = (Rung("e4m3", MeanRelativeError("0.1")), Rung("mxfp4", MeanRelativeError("0.2")))
    own = Policy("own", rungs, unit="block", block=(1, 10))
    taken = {"e4m3": 70, "mxfp4": 20, "bf16": 10}
    found = stored_bits(own, taken, 10, (10, 10), (1, 10), "gam")
    scales = math.ceil((8 * 10 + 23) * 70 / 100), math.ceil(8 * 10 * 20 / 100)
    assert found == 8 * 70 + 4 * 20 + 16 * 10 + sum(scales) + 2 * 10
    three = replace(own, ladder=(*rungs, Rung("e5m2", MeanRelativeError("0.3"))))
    assert stored_bits(three, taken | {"e5m2": 0}, 10, (10, 10), (1, 10), "gam") == found


def test_recipes_of_training_are_refused():
    for text in ('{ representation = "delayed" }', '{ representation = "nvfp4", rounding = "sr" }'):
        with pytest.raises(ValueError, match="which needs the steps of a training; give a recipe"):
            recipes_from([text])
    with pytest.raises(ValueError, match="recipe nvfp4 is given twice; give it once"):
        recipes_from(["nvfp4", "nvfp4"])
