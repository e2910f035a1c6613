"""The rows of a tensor, and the tiles that cover them."""

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
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for i in range(rows):
        for j in range(columns):
            found.setdefault((i // sides[0], j // sides[1]), []).append((i, j))
    return found
