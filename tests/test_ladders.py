"""mor with ladders of one's own: the choice of each unit, and that its output is of that choice.

The engine and the kernels, which run on the CPU here, are compared with the exact model.
"""

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from integers import Integers
from kernels import needed
from kernels.tensors import bits
from records import SCALED, SOURCES, adversarial, differing, engine_mor, exact_mor

import mor_ref
from mor_ref import (
    FitsRange,
    Format,
    MeanRelativeError,
    Metric,
    NotWorseThan,
    Policy,
    Rung,
    formats,
)
from mor_ref.cuda import policies
from mor_ref.cuda.host import Host
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.definitions.nvfp4 import PROFILES, TILES
from mor_ref.definitions.scales import SCALINGS
from mor_ref.representations import REPRESENTATIONS, MxBlocks, Nvfp4Tiles, as_representation

# Names that mean something elsewhere: "bf16" is what a unit without a rung is called.
OWN = [
    Format("bf16", exponent_bits=3, mantissa_bits=4, bias=3, specials="fn"),
    Format("e3m1", exponent_bits=3, mantissa_bits=1, bias=3, specials="none"),
    Format("lowest", exponent_bits=4, mantissa_bits=3, bias=12, specials="fnuz"),
    Format(
        "int8", exponent_bits=0, mantissa_bits=7, bias=-6, specials="none", sign="twos-complement"
    ),
]
OF_TILES = [
    *REPRESENTATIONS,
    *PROFILES,
    *(Nvfp4Tiles(p.name, TILES[1]) for p in PROFILES.values() if TILES[1] in p.tiles),
    *(MxBlocks(element, rule) for element in ("e4m3", "e2m1") for rule in SCALE_RULES),
    *(MxBlocks(fmt, block=block) for fmt, block in zip(OWN, (1, 5, 16, 20), strict=True)),
]
# One format by name and as such, and a quantizer whose implementations give y.
KINDS = [st.sampled_from(each) for each in ([*SCALED, formats["e4m3"], *OWN], OF_TILES)]
representations = st.one_of(*KINDS, st.just(Integers()))
BLOCKS = ["tensor", "row", "column", (1, 4), (2, 16), (3, 5), (128, 128)]


@dataclass(frozen=True)
class WithinSteps(Metric):
    """A metric from outside: at most so many steps an element worse than a yardstick."""

    steps: int
    yardstick: object

    @property
    def yardsticks(self):
        return (as_representation(self.yardstick),)

    def accepts(self, own, errors, amax, amin):
        (yardstick,) = self.yardsticks
        worse = own.sum - errors[yardstick.name].sum
        assert all(type(number) is int for number in (own.sum, own.nonzero, own.nonfinite))
        assert own.nonfinite == 0
        return worse < self.steps * own.nonzero and amax <= 2.0**40 * amin


@dataclass(frozen=True)
class Unfinished(Metric):
    """A metric with an answer that is not true or false, or with a yardstick by name."""

    yardsticks: tuple = ()

    def accepts(self, own, errors, amax, amin):
        del own, errors, amax, amin


@pytest.mark.parametrize("mor", [exact_mor, engine_mor], ids=["exact", "engine"])
def test_a_metric_says_true_or_false(mor):
    with pytest.raises(TypeError, match="accepts of metric 'Unfinished' returned None; return a b"):
        mor(np.ones((1, 2), np.float32), Policy("mine", (Rung("e4m3", Unfinished()),)))


def test_yardsticks_are_representations():
    with pytest.raises(TypeError, match=r"yardsticks of a metric has 'e5m2'; give representations"):
        Policy("mine", (Rung("e4m3", Unfinished(("e5m2",))),))


@st.composite
def metrics(draw):
    """Draw any metric; its yardstick may be a rung before or after, or not in the ladder."""
    match draw(st.sampled_from(["mean", "not worse", "range", "own"])):
        case "mean":
            return MeanRelativeError(draw(st.sampled_from(["0.01", "0.03", "0.06", "0.15", 1])))
        case "not worse":
            return NotWorseThan(draw(representations))
        case "own":
            return draw(st.builds(WithinSteps, st.integers(1, 1 << 20), representations))
        case _:
            return FitsRange(draw(st.sampled_from(["e2m1", "e4m3", "e5m2", "f16", "e8m0"])))


@st.composite
def ladders(draw):
    """Draw a policy of one to four rungs."""
    taken = representations.filter(lambda one: one != OWN[0])
    rungs = st.builds(Rung, taken, metrics())
    ladder = draw(st.lists(rungs, min_size=1, max_size=4, unique_by=lambda rung: rung.name))
    unit, block = draw(st.sampled_from(["tensor", "block"])), draw(st.sampled_from(BLOCKS))
    return Policy("mine", tuple(ladder), unit=unit, block=block)


shapes = st.tuples(st.integers(1, 7), st.integers(1, 37))
tensors = st.builds(adversarial, shapes, st.integers(0, 1 << 30), st.sampled_from(SOURCES))


def output_of_choice(x, found):
    """Return the bfloat16 output that the choices of a result call for."""
    rows, columns = found.units.rows, found.units.columns
    if x.dtype == np.float64:  # which every function but encode rounds to binary32 first
        with np.errstate(over="ignore"):
            x = x.astype(np.float32)
    kept = mor_ref.encode(x, "bf16", overflow="ieee") if x.dtype != ml_dtypes.bfloat16 else x
    candidates = [
        found.quantized[name].dequantize(ml_dtypes.bfloat16) for name in found.ladder[:-1]
    ]
    codes = [each.view(np.uint16).reshape(rows, columns) for each in (*candidates, kept)]
    height, width = found.units.block
    choice = found.choice.repeat(height, 0)[:rows].repeat(width, 1)[:, :columns]
    return np.choose(choice, codes).reshape(x.shape)


@pytest.mark.tier("full")
@given(tensors, ladders(), st.sampled_from(SCALINGS))
def test_the_engine(x, policy, scaling):
    """MOR-001 to MOR-006."""
    assert (
        differing(engine_mor(x, policy, scaling=scaling), exact_mor(x, policy, scaling=scaling))
        == {}
    )
    found = mor_ref.mor(x, policy, scaling=scaling)
    np.testing.assert_array_equal(found.output, output_of_choice(x, found))


@pytest.mark.tier("full")
@given(tensors, ladders(), st.sampled_from(SCALINGS))
def test_the_kernels(x, policy, scaling):
    """MOR-001 to MOR-006, by the sources of the GPU."""
    needed.compiler()
    parts = partition(x.shape, policy.block, policy.group)
    found = policies.mor(Host(), bits(x), policy, scaling, parts)
    expected = exact_mor(x, policy, scaling=scaling)
    actual = {
        "choice": found.choice.tolist(),
        "amax": found.extremes.amax.view(np.float32).tolist(),
        "amin": found.extremes.amin.view(np.float32).tolist(),
        "error": {name: np.stack(each, axis=-1).tolist() for name, each in found.error.items()},
        "output": found.output.ravel().tolist(),
    }
    del expected["codes"], expected["y"]  # the kernels keep none
    expected["error"] = {
        name: [[list(unit) for unit in row] for row in each]
        for name, each in expected["error"].items()
    }
    assert differing(actual, expected) == {}


@pytest.mark.parametrize("unit", ["tensor", "block"])
@pytest.mark.parametrize("yardstick", ["e4m3", formats["e4m3"]], ids=["name", "format"])
def test_a_rung_that_is_the_yardstick_of_a_later_one(unit, yardstick):
    """MOR-006: what a policy mentions last was taken for the first rung."""
    ladder = (Rung("e4m3", MeanRelativeError(0.045)), Rung("e5m2", NotWorseThan(yardstick)))
    x = np.array([[0.3, 1.7, -2.3, 0.9]], np.float32)
    found = mor_ref.mor(x, Policy("mine", ladder, unit=unit, block=(1, 4)))
    assert found.choice.tolist() == [[0]]
    y = found.quantized["e4m3"].dequantize(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(found.output, y.view(np.uint16))
    assert list(found.error) == ["e4m3", "e5m2"]


def test_a_yardstick_of_the_name_of_the_fallback():
    """MOR-006: a unit that takes no rung is not quantized to a format that is named bf16."""
    policy = Policy("mine", (Rung("e5m2", NotWorseThan(OWN[0])),))
    x = np.array([[1.0625, 1.125, 3.0, 1.1875]], np.float32)
    found = mor_ref.mor(x, policy)
    assert found.choice.tolist() == [[1]]
    assert found.output.tolist() == mor_ref.encode(x, "bf16").tolist()
    assert exact_mor(x, policy)["output"] == found.output.ravel().tolist()
