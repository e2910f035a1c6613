"""Blocks and groups: those that tile a tensor, and refusals."""

import pytest

from mor_ref.definitions.blocks import Partition, partition, rows_and_columns


@pytest.mark.parametrize(
    ("shape", "sides"),
    [((), (1, 1)), ((5,), (1, 5)), ((4, 6), (4, 6)), ((2, 3, 8), (6, 8)), ((2, 0, 3), (0, 3))],
)
def test_a_tensor_is_rows_and_columns(shape, sides):
    """BLK-001."""
    assert rows_and_columns(shape) == sides


@pytest.mark.parametrize(
    ("block", "sides", "grid"),
    [
        ("tensor", (5, 7), (1, 1)),
        ("row", (1, 7), (5, 1)),
        ("column", (5, 1), (1, 7)),
        ((2, 3), (2, 3), (3, 3)),
        ((5, 7), (5, 7), (1, 1)),
        ((128, 4), (5, 4), (1, 2)),
        ([2, 3], (2, 3), (3, 3)),
    ],
)
def test_blocks_tile_from_the_top_left(block, sides, grid):
    """BLK-002."""
    cut = partition((5, 7), block)
    assert cut.block == sides
    assert cut.grid == grid


def test_an_empty_tensor_has_no_blocks():
    """BLK-004."""
    assert partition((0, 3), "row").grid == (0, 1)
    assert partition((3, 0), (2, 2)).grid == (2, 0)
    assert partition((0, 0), "tensor").group_grid == (0, 0)


@pytest.mark.parametrize(
    ("block", "group", "grid"),
    [
        ((2, 3), "tensor", (1, 1)),
        ((2, 3), (4, 3), (2, 3)),
        ((2, 3), (2, 9), (3, 1)),
        ((2, 3), (100, 6), (1, 2)),
        ((1, 3), "row", (5, 1)),
        ("column", "column", (1, 7)),
        ((8, 3), (5, 3), (1, 3)),
        ((8, 3), (16, 3), (1, 3)),
    ],
)
def test_groups_hold_whole_blocks(block, group, grid):
    """BLK-003."""
    assert partition((5, 7), block, group).group_grid == grid


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ((3, 3), "group is (3, 3), whose 3 rows cut blocks of 2; give a multiple of 2, or a side"),
        ((2, 4), "group is (2, 4), whose 4 columns cut blocks of 3"),
        ((4, 2), "group is (4, 2), whose 2 columns cut blocks of 3"),
        ("row", "group is 'row', whose 1 rows cut blocks of 2"),
    ],
)
def test_a_group_that_cuts_a_block_is_refused(group, message):
    """BLK-003."""
    with pytest.raises(ValueError, match="cut blocks") as refused:
        partition((9, 9), (2, 3), group)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("block", "error", "message"),
    [
        ("rows", ValueError, "block is 'rows', which is not known; did you mean 'row'?"),
        (4, TypeError, "block is 4; give 'tensor', 'row', 'column' or a pair (rows, columns)"),
        ((1, 2, 3), TypeError, "give 'tensor', 'row', 'column' or a pair"),
        ((0, 4), ValueError, "a side of block is 0; give an int from 1 to"),
        ((1.0, 4), TypeError, "a side of block is 1.0; give an int"),
        ((True, 4), TypeError, "a side of block is True"),
    ],
)
def test_what_is_no_block_is_refused(block, error, message):
    with pytest.raises(error) as refused:
        partition((5, 7), block)
    assert message in str(refused.value)


def test_a_unit_whose_sums_might_not_fit_is_refused():
    """ERR-005."""
    largest = (1 << 20, 1 << 20)
    assert partition(largest, "tensor") == Partition(*largest, largest, largest)
    with pytest.raises(ValueError, match="block has 1048577 x 1048576 elements; give one of at m"):
        partition(((1 << 20) + 1, 1 << 20), "tensor")
    assert partition(((1 << 20) + 1, 1 << 20), "row").grid == ((1 << 20) + 1, 1)
