"""The rows of a tensor, and the tiles that cover them."""

import functools

from mor_ref.exact.step import step

Rows = list[list[float]]


@step
def in_rows(numbers: list[float], rows: int, columns: int) -> Rows:
    """Return the rows of a tensor whose numbers are given in row-major order."""
    return [numbers[i * columns : (i + 1) * columns] for i in range(rows)]


@step
def cells(
    rows: int, columns: int, sides: tuple[int, int]
) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Return the places of the elements of each tile, row by row, from the top left (BLK-002)."""
    return dict(_tiles(rows, columns, (sides[0], sides[1])))


@functools.lru_cache(maxsize=4)  # several tensors of a suite have one shape
def _tiles(
    rows: int, columns: int, sides: tuple[int, int]
) -> dict[tuple[int, int], list[tuple[int, int]]]:
    height, width = sides
    return {
        (i // height, j // width): [
            (row, column)
            for row in range(i, min(i + height, rows))
            for column in range(j, min(j + width, columns))
        ]
        for i in range(0, rows, max(height, 1))
        for j in range(0, columns, max(width, 1))
    }
