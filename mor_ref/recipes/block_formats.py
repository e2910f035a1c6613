"""Recipes of block formats, and block formats from all that can be read as one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mor_ref.definitions.block_formats import BlockFormat, block_format_of, table_of_block_format
from mor_ref.definitions.block_formulas import mx_formulas
from mor_ref.definitions.formats import formats
from mor_ref.recipes.tensor_recipe import REPRESENTATION, OfRow
from mor_ref.representations import FormulaBlocks

TAKEN = ("amax", "scale")  # of the outermost scale of a block format (BLF-008)
_USUAL = mx_formulas(formats["e4m3"], "floor", 32)


@dataclass(frozen=True)
class Blocks(OfRow):
    """A block format, whose table has its fields."""

    block_format: BlockFormat = _USUAL
    name = "blocks"

    @property
    def head(self) -> str:
        """The name of the block format."""
        return self.block_format.name

    @property
    def title(self) -> str:
        """The name of the block format."""
        return self.block_format.name

    @property
    def takes(self) -> tuple[str, ...]:
        """What a block format takes."""
        return TAKEN

    @property
    def row(self) -> FormulaBlocks:
        """The block format as a representation."""
        return FormulaBlocks(self.block_format)

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The fields of the block format."""
        return table_of_block_format(self.block_format)


def is_table_of_blocks(table: Mapping[str, Any]) -> bool:
    """Return whether a table is that of a block format, with or without its representation."""
    return table.get(REPRESENTATION, Blocks.name) == Blocks.name and (
        "element" in table or REPRESENTATION in table
    )


def blocks_of_table(table: Mapping[str, Any]) -> Blocks:
    """Return the recipe of a table."""
    return Blocks(block_format_of({key: table[key] for key in table if key != REPRESENTATION}))
