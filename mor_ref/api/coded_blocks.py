"""Records as codes and scales in blocks, which `matmul` multiplies."""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Bits
from mor_ref.definitions.format import Format
from mor_ref.records import Record


@dataclass(frozen=True, eq=False, repr=False)
class CodedBlocks(Record):
    """Codes of a matrix, and its blocks (GEM-003).

    `scale` has the factor of each block of `tile`, and `codes_of_scale` its code, if an instruction
    takes it. `overall` has one factor of all blocks, or one for each row of the record, which are
    columns here if it `is_flipped`.

    `scale` and `overall` multiply the numbers of the codes.

    >>> import mor_ref, numpy as np
    >>> blocks = mor_ref.quantize(np.float32([[0.5, -1.0]]), "e4m3", scaling="e8m0").in_blocks()
    >>> blocks, (mor_ref.decode(blocks.codes, "e4m3") * blocks.scale).tolist()
    (<1x2 codes of e4m3 in blocks of 1x2>, [[0.5, -1.0]])
    """

    codes: Bits
    fmt: Format
    tile: tuple[int, int]
    scale: NDArray[np.float64] | None = None
    codes_of_scale: Bits | None = None
    scale_format: Format | None = None
    overall: NDArray[np.float32] | None = None
    is_flipped: bool = False

    def __repr__(self) -> str:
        rows, columns = self.tile
        shape = "x".join(map(str, self.codes.shape))
        return f"<{shape} codes of {self.fmt.name} in blocks of {rows}x{columns}>"

    @property
    def transposed(self) -> "CodedBlocks":
        """The codes and blocks of the transpose."""
        return CodedBlocks(
            self.codes.T,
            self.fmt,
            self.tile[::-1],
            None if self.scale is None else self.scale.T,
            None if self.codes_of_scale is None else self.codes_of_scale.T,
            self.scale_format,
            self.overall,
            not self.is_flipped,
        )

    def overall_by_row(self) -> NDArray[np.float32]:
        """Return the factor of each row that all of its blocks share."""
        if self.overall is None:
            return np.ones(len(self.codes), np.float32)
        if self.overall.size > 1 and self.is_flipped:
            raise ValueError(
                "a record of quantize_nvfp4 has a scale for each place of K; quantize the "
                "transpose, and give transposed(...) of the record"
            )
        return np.broadcast_to(self.overall, len(self.codes)).astype(np.float32)

    def spread_to_rows(self, grid: NDArray[Any]) -> NDArray[Any]:
        """Return the entries of blocks, repeated for each row."""
        return np.repeat(grid, self.tile[0], axis=0)[: len(self.codes)]


@runtime_checkable
class Coded(Protocol):
    """A record that returns its codes and scales in blocks."""

    def in_blocks(self) -> CodedBlocks:
        """Return the codes, and the factor of each block (GEM-003)."""


@runtime_checkable
class Dequantized(Protocol):
    """A record that returns its numbers."""

    def dequantize(self) -> NDArray[np.float32]:
        """Return y in the shape of x."""
