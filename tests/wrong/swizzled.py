"""Scales in tiles of 128x4, with the tiles in a wrong order.

The scales themselves are those of the engine.
"""

import numpy as np

from mor_ref.operations import OPERATIONS
from wrong.kernel import Kernel
from wrong.nvfp4_parts import ALL

KERNELS: list[Kernel] = []
VIEW = "swizzled_128x4"
SCALES = {"mx": "scale", "nvfp4": "block_scale"}


def by_rows(row, column, grid):
    """Return the index of a tile: tiles lie row by row."""
    return row * grid[1] + column


def by_columns(row, column, grid):
    return column * grid[0] + row


def swizzled(scale, tile_at):
    """Return scales in tiles: `tile_at` takes its place in their grid, and the grid."""
    rows, columns = scale.shape
    grid = -(-rows // 128), -(-columns // 4)
    r, c = np.indices(scale.shape)
    inside = r % 32 * 16 + r // 32 % 4 * 4 + c % 4
    flat = np.zeros(grid[0] * grid[1] * 512, scale.dtype)
    flat[tile_at(r // 128, c // 4, grid) * 512 + inside] = scale
    return flat


def stride_of_whole_tiles(columns):
    """Return an order whose stride is the number of whole tiles in a row, or 1."""
    return lambda row, column, _: row * max(columns // 4, 1) + column


def layout(name, mistake, operation, tile_at, profile=None):
    """Take the place of each tile as a function of the number of columns of scales."""
    field = SCALES[operation]

    def run(asked, parameters, inputs):
        if asked != operation or parameters.get("profile") != profile or "recipe" in parameters:
            return None
        scale = OPERATIONS[operation].engine(parameters, inputs)[field]
        return {f"{field}@{VIEW}": swizzled(scale, tile_at(scale.shape[1]))}

    KERNELS.append(Kernel(f"swizzled.{name}.{profile or operation}", run, mistake))


for operation, profile in (("mx", None), *(("nvfp4", one) for one in ALL)):
    layout("by_rows", "", operation, lambda _: by_rows, profile)
    layout("by_columns", "Tiles lie column by column.", operation, lambda _: by_columns, profile)
    layout("stride", "A row of tiles has as many as there are whole ones.", operation,
           stride_of_whole_tiles, profile)  # fmt: skip
