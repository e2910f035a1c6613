"""Elements that saturated (TRN-011), counted by the engine and by the exact model."""

import numpy as np
import pytest

from mor_ref.arrays import numbers_from
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.formats import formats
from mor_ref.engine.blocks import Sides
from mor_ref.engine.saturation import count_saturated
from mor_ref.engine.strips import TileScales
from mor_ref.exact.training import is_saturated

RUNG = 1


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize("divides", [False, True], ids=["multiplies", "divides"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(
    ("shape", "tile", "unit"),
    [((6, 40), (1, 16), (2, 20)), ((5, 2200), (2, 300), (3, 700)), ((530, 4), (300, 3), (7, 2))],
    ids=str,
)
def test_elements_of_the_units_that_took_a_rung_are_counted(shape, tile, unit, dtype, divides):
    """Tiles and units cut each other, edges cut some, and a row is longer than a strip."""
    random = np.random.default_rng(5)
    x = (random.standard_normal(shape) * 300).astype(dtype)
    x[0, :3] = np.inf, np.nan, -np.inf
    x[1] = 464 * np.exp2(random.integers(-2, 3, shape[1]))  # with some scales, the limit itself
    grid = partition(shape, tile, tile).grid
    scales = np.exp2(random.integers(-2, 3, grid)).astype(np.float32)
    bits = scales.view(np.uint32)
    of_tiles = TileScales(Sides(*tile), *((None, bits) if divides else (bits, None)))
    units = partition(shape, unit, unit)
    choice = random.integers(0, 3, units.grid, np.uint8)
    found = count_saturated(
        numbers_from(x, "x"), formats["e4m3"], of_tiles, units, choice, RUNG, threads=2
    )
    factors = 1 / scales if divides else scales  # powers of two: both are exact
    expected = sum(
        is_saturated(float(x[i, j]) * float(factors[i // tile[0], j // tile[1]]), formats["e4m3"])
        for i, j in np.ndindex(shape)
        if choice[i // unit[0], j // unit[1]] == RUNG
    )
    assert found == expected > 0
