"""How a tensor is cut: rows and columns, blocks, and groups of whole blocks."""

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, Protocol

from mor_ref.argument_checks import known_name, shown, whole_number

_MOST_GROUPS = 1 << 40
NamedCut = Literal["tensor", "row", "column"]
Cut = NamedCut | tuple[int, int]


class PairArray(Protocol):
    """An array of two numbers, for type checkers."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its length, in a tuple."""

    def __getitem__(self, at: int, /) -> Any: ...


# What functions take: they make a cut of it.
Pair = tuple[int, int] | list[int] | PairArray
CutLike = NamedCut | Pair
_NAMED_CUTS = ("tensor", "row", "column")
_OTHER_CUTS = {
    **dict.fromkeys(("pertensor", "tensorwise", "whole"), ("tensor",)),
    **dict.fromkeys(("perrow", "rowwise", "rows", "pertoken", "token"), ("row",)),
    **dict.fromkeys(("percolumn", "columnwise", "colwise", "col", "columns"), ("column",)),
    **dict.fromkeys(("perchannel", "channel", "axis", "peraxis"), ("row", "column")),
}
LARGEST_SIDE = 1 << 62
_LARGEST_UNIT = 1 << 40  # elements, so that sums and their products with a threshold fit 64 bits


class CutError(ValueError):
    """A tensor that cannot be cut as it was asked for."""


@dataclass(frozen=True)
class Partition:
    """A tensor of rows and columns, tiled by blocks from the top left, and by groups (BLK-001).

    Sides are clipped to those of the tensor; blocks and groups at the lower and at the right edge
    may be smaller still.
    """

    rows: int
    columns: int
    block: tuple[int, int]
    group: tuple[int, int]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:  # plans of small tensors are found by it, call by call
        return hash((self.rows, self.columns, self.block, self.group))

    @cached_property
    def grid(self) -> tuple[int, int]:
        """How many rows and columns of blocks there are (BLK-004)."""
        return _tiles(self.rows, self.block[0]), _tiles(self.columns, self.block[1])

    @cached_property
    def group_grid(self) -> tuple[int, int]:
        """How many rows and columns of groups there are."""
        return _tiles(self.rows, self.group[0]), _tiles(self.columns, self.group[1])

    @cached_property
    def groups(self) -> "Partition":
        """The partition whose blocks are these groups."""
        return Partition(self.rows, self.columns, self.group, self.group)

    def regrouped(self, group: CutLike, argument: str = "group") -> "Partition":
        """Return the same blocks in other groups (BLK-003)."""
        sides = _sides(argument, group, self.rows, self.columns)
        for name, side, block, whole in zip(
            ("rows", "columns"), sides, self.block, (self.rows, self.columns), strict=True
        ):
            if side < whole and side % block:
                raise ValueError(
                    f"{argument} is {group!r}, whose {side} {name} cut blocks of {block}; "
                    f"give a multiple of {block}, or a side as long as the tensor's"
                )
        return Partition(self.rows, self.columns, self.block, sides)


def rows_and_columns(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return a tensor as rows and columns; a vector is one row, leading axes fold (BLK-001)."""
    rows = 1
    for side in shape[:-1]:
        rows *= side
    return rows, shape[-1] if shape else 1


def partition(shape: tuple[int, ...], block: CutLike, group: CutLike = "tensor") -> Partition:
    """Return the partition of a tensor of that shape (BLK-001, BLK-002).

    >>> partition((4, 6), block=(3, 4)).grid
    (2, 2)
    """
    if is_plain(block) and is_plain(group):
        return _kept_partition(shape, block, group)  # type: ignore[arg-type]  # both are plain
    return _partition(shape, block, group)


@lru_cache(maxsize=1024)
def in_one_block(shape: tuple[int, ...]) -> Partition:
    """Return the partition of a tensor of that shape that is a single block."""
    return _partition(shape, "tensor", "tensor")


def is_plain(cut: CutLike) -> bool:
    """Return whether equal cuts mean the same: 1.0 and True, which equal 1, are refused."""
    if type(cut) is not tuple:
        return type(cut) is str
    return len(cut) == 2 and type(cut[0]) is int and type(cut[1]) is int


def _partition(shape: tuple[int, ...], block: CutLike, group: CutLike) -> Partition:
    rows, columns = rows_and_columns(shape)
    sides = _sides("block", block, rows, columns)
    check_unit("block", sides)
    return Partition(rows, columns, sides, sides).regrouped(group)


_kept_partition = lru_cache(maxsize=1024)(_partition)  # those of calls in a loop


def as_cut(argument: str, cut: CutLike) -> Cut:
    """Return a cut as a name or a tuple; refuse anything else, before there is a tensor."""
    _sides(argument, cut, 1, 1)
    return cut if isinstance(cut, str) else (int(cut[0]), int(cut[1]))


def pair_of(sides: Any) -> tuple[Any, Any] | None:
    """Return two numbers of a tuple, a list or an array of one dimension; None if it is no pair."""
    is_listed = isinstance(sides, tuple | list) and len(sides) == 2
    return tuple(sides) if is_listed or getattr(sides, "shape", None) == (2,) else None


def in_parameters(cut: Cut) -> str | list[int]:
    """Return a cut in the form of a parameter of suites."""
    return cut if isinstance(cut, str) else list(cut)


def cut_in(word: str) -> Cut | None:
    """Return the cut that a word names: tensor, row, column or 128x128; None if it names none."""
    return word if word in _NAMED_CUTS else sides_in(word)  # type: ignore[return-value]  # a name


def word_of(cut: Cut) -> str:
    """Return the word that names a cut.

    >>> word_of((1, 128)), cut_in(word_of("row"))
    ('1x128', 'row')
    """
    return cut if isinstance(cut, str) else f"{cut[0]}x{cut[1]}"


def sides_in(word: str) -> tuple[int, int] | None:
    """Return the rows and columns that a word names, such as 1x16; None if it names none."""
    sides = re.fullmatch(r"([0-9]{1,20})x([0-9]{1,20})", word)
    return (int(sides[1]), int(sides[2])) if sides else None


def check_unit(argument: str, sides: tuple[int, int]) -> None:
    """Refuse a unit whose sums might not fit (ERR-005)."""
    if sides[0] * sides[1] > _LARGEST_UNIT:
        raise ValueError(
            f"{argument} has {sides[0]} x {sides[1]} elements; give one of at most 2^40"
        )


def _sides(argument: str, cut: CutLike, rows: int, columns: int) -> tuple[int, int]:
    """Return the sides of a block, at most those of the tensor, and at least 1."""
    whole = max(rows, 1), max(columns, 1)
    if isinstance(cut, str):
        known_name(argument, cut, _NAMED_CUTS, _OTHER_CUTS)
        return {"tensor": whole, "row": (1, whole[1]), "column": (whole[0], 1)}[cut]
    pair = pair_of(cut)
    if pair is None:
        names = ", ".join(repr(name) for name in _NAMED_CUTS)
        raise TypeError(f"{argument} is {shown(cut)}; give {names} or a pair (rows, columns)")
    sides = [whole_number(f"a side of {argument}", side, 1, LARGEST_SIDE) for side in pair]
    return min(sides[0], whole[0]), min(sides[1], whole[1])


def _tiles(length: int, side: int) -> int:
    return -(-length // side)


def check_groups(groups: int, columns: int) -> int:
    """Return the number of groups; refuse one that does not divide the columns (AFF-010)."""
    count = whole_number("groups", groups, 1, _MOST_GROUPS)
    if columns % count or count > max(columns, 1):
        raise CutError(
            f"groups is {count}, which does not divide the {columns} columns of x; give a divisor"
        )
    return count
