"""The recipe of any representation by its name."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mor_ref.recipes.block_formats import TAKEN
from mor_ref.recipes.tensor_recipe import OfKind, checked_digest
from mor_ref.representations import (
    REPRESENTATIONS,
    FormulaBlocks,
    Representation,
    as_representation,
)


@dataclass(frozen=True)
class Row(OfKind):
    """A representation by its name, such as a row of a user; scaling blocks are the tensor.

    `code` is the digest of a row of a user (MOR-017). It is found if it is not given.
    """

    of: str = "nvfp4"
    code: str = ""
    name = "row"

    def check(self) -> None:
        """Refuse a name of other code than the text was written with."""
        rows = REPRESENTATIONS
        row = rows.known(self.of) if self.of not in rows.specified else None
        object.__setattr__(self, "code", checked_digest(row, self.of, self.code))
        super().check()

    @property
    def takes(self) -> tuple[str, ...]:
        """What a block format takes; nothing of any other row."""
        return TAKEN if isinstance(self.row, FormulaBlocks) else ()

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The fields, as text has them: a digest if there is one."""
        return {"of": self.of, "code": self.code or None}

    @property
    def row(self) -> Representation:
        """The representation."""
        return as_representation(self.of)
